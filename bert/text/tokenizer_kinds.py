"""The kinds of tokenizers beside WordPiece, found by the vocabulary file.

  tokenizer_kinds.of("30k-clean.model")         # SentencePieceTokenizer, ALBERT's
  tokenizer_kinds.of("vocab.txt")               # None: `tokenization.FullTokenizer` reads it

A kind's module is imported when such a file is met: a model with a vocab.txt needs none.
"""

import json
import os
from typing import Any

from bert.io import tokenizer_settings, vocabulary_kind
from bert.text import vocabulary_file


def of(vocab_file: str | os.PathLike) -> Any:
  """Returns the class of the tokenizer that reads a vocabulary file; None for word pieces.

  Its first arguments are those of `tokenization.FullTokenizer`; `read_vocab` reads token -> id
  alone.
  """
  name = vocabulary_kind.saved_vocabulary_name(vocab_file)
  if name == vocabulary_kind.SENTENCE_PIECES:
    from bert.text.sentence_pieces import SentencePieceTokenizer

    return SentencePieceTokenizer
  if name == vocabulary_kind.BYTE_PAIRS:
    from bert.text.byte_pairs import BytePairTokenizer

    return BytePairTokenizer
  return None


def kept_content(vocab_file: str | os.PathLike) -> bytes:
  """Returns the content of a vocabulary's copy in the folder of a model.

  Of a vocab.json and its merges.txt that is one file; of word pieces it is a vocab.txt.

  Raises:
    OSError: the file cannot be read.
    ValueError: it is bad.
  """
  if vocabulary_kind.is_meant_as_byte_pairs(vocab_file):
    from bert.text import byte_pairs

    return byte_pairs.read(vocab_file).to_json().encode()
  return vocabulary_kind.vocab_txt(vocab_file)


def kept_files(vocab_file: str | os.PathLike, with_case: bool = False) -> dict[str, bytes]:
  """Returns the contents of a vocabulary's copy, and of its settings: see `kept_settings`.

  Raises:
    OSError: a file cannot be read.
    ValueError: it is bad, or of a tokenizer that is not supported.
  """
  name = vocabulary_kind.saved_vocabulary_name(vocab_file)
  return {name: kept_content(vocab_file), **kept_settings(vocab_file, with_case)}


def kept_settings(vocab_file: str | os.PathLike, with_case: bool = False) -> dict[str, bytes]:
  """Returns a tokenizer_config.json of what is stated beside a vocabulary; empty if it is usual.

  `with_case` is for a copy without a sidecar, which would state the case.
  """
  stated = vocabulary_file.supported_settings(vocab_file)
  is_cased = with_case and stated.do_lower_case is False
  if not is_cased and stated.is_usual:
    return {}
  content = {**({"do_lower_case": False} if is_cased else {}), **stated.splitting}
  return {tokenizer_settings.CONFIG: (json.dumps(content, indent=2) + "\n").encode()}
