"""The kinds of tokenizers beside WordPiece, one module each, found by the vocabulary file.

  tokenizer_kinds.of("30k-clean.model").TOKENIZER("30k-clean.model")     # ALBERT's
  tokenizer_kinds.of("vocab.txt")               # None: `tokenization.FullTokenizer` reads it

Only this module imports one, when such a file is met: a model with a vocab.txt needs none. A new
kind is a module with what `Kind` has, a row here, and its files' name in `vocabulary_kind.py`.
"""

import importlib
import json
import os
from typing import Any, Protocol, cast

from bert.io import tokenizer_settings, vocabulary_kind
from bert.text import vocabulary_file

_MODULES = {
  vocabulary_kind.SENTENCE_PIECES: "bert.text.sentence_pieces",
  vocabulary_kind.BYTE_PAIRS: "bert.text.byte_pairs",
}


class Kind(Protocol):
  """What the module of a kind has.

  Attributes:
    TOKENIZER: the class, whose first arguments are those of `tokenization.FullTokenizer`.
  """

  TOKENIZER: Any

  def read_vocab(self, vocab_file: str | os.PathLike) -> dict[str, int]:
    """Reads token -> id; raises a `VocabularyError` if the file cannot be used."""


def of(vocab_file: str | os.PathLike) -> Kind | None:
  """Returns the module of the kind of a vocabulary file; None for word pieces."""
  name = vocabulary_kind.saved_vocabulary_name(vocab_file)
  return cast(Kind, named(name)) if name in _MODULES else None


def named(name: str) -> Any:
  """Returns a kind's module by the name of its files: `vocabulary_kind.saved_vocabulary_name`."""
  return importlib.import_module(_MODULES[name])


def kept_content(vocab_file: str | os.PathLike) -> bytes:
  """Returns the content of a vocabulary's copy in the folder of a model.

  Of a vocab.json and its merges.txt that is one file; of word pieces it is a vocab.txt.

  Raises:
    OSError: the file cannot be read.
    ValueError: it is bad.
  """
  if vocabulary_kind.is_meant_as_byte_pairs(vocab_file):
    return named(vocabulary_kind.BYTE_PAIRS).read(vocab_file).to_json().encode()
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
