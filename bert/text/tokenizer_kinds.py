"""The kinds of tokenizers beside WordPiece, one module each, found by the vocabulary file.

  tokenizer_kinds.of("30k-clean.model").TOKENIZER("30k-clean.model")     # ALBERT's
  tokenizer_kinds.of("vocab.txt")               # None: `tokenization.FullTokenizer` reads it

Only this module imports one, when such a file is met: a model with a vocab.txt needs none. A new
kind is a module with what `Kind` has, a row here, and its files' name in `vocabulary_kind.py`.
"""

import importlib
import os
from typing import Any, Protocol, cast

from bert.io import filesystem, vocabulary_kind

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

  Of a vocab.json and its merges.txt that is one file.

  Raises:
    OSError: the file cannot be read.
    ValueError: it is bad.
  """
  if vocabulary_kind.is_meant_as_byte_pairs(vocab_file):
    return named(vocabulary_kind.BYTE_PAIRS).read(vocab_file).to_json().encode()
  return filesystem.read_bytes(vocab_file)
