"""The two kinds of vocabulary files, which are told apart by their content.

vocab.txt      one token per line, of BERT, ELECTRA and the Chinese ALBERT
spiece.model   a sentencepiece model, of ALBERT, which released ones call 30k-clean.model
"""

import os
import re
from collections.abc import Container

from bert.io import filesystem

VOCABULARY = "vocab.txt"
SENTENCE_PIECES = "spiece.model"
_ENDING = ".model"


def is_model(data: bytes) -> bool:
  """Whether these are the first 64 bytes or more of a sentencepiece model.

  It begins with its first piece: a message (tag 0x0a) with a name (0x0a) and a score (0x15).

  Example:
    >>> is_model(b"\\n\\x0e\\n\\x05<pad>\\x15\\0\\0\\0\\0\\x18\\x03"), is_model(b"[PAD]\\n[UNK]\\n")
    (True, False)
  """
  return re.match(rb"\n.{1,2}\n.", data, re.DOTALL) is not None and b"\x15" in data[:64]


def holds_model(path: str | os.PathLike) -> bool:
  """Whether a file is a sentencepiece model; False for one that cannot be read."""
  try:
    with filesystem.open_to_read(os.fspath(path)) as reader:
      return is_model(reader.read(64))
  except OSError:
    return False


def is_meant_as_model(path: str | os.PathLike) -> bool:
  """Whether a vocabulary file is to be read as a sentencepiece model: by content or by name."""
  return os.fspath(path).endswith(_ENDING) or holds_model(path)


def kept_name(path: str | os.PathLike) -> str:
  """The name that a copy of a vocabulary file has in the folder of a model."""
  return SENTENCE_PIECES if is_meant_as_model(path) else VOCABULARY


def is_of_model(vocab: Container[str]) -> bool:
  """Whether tokens are the pieces of a sentencepiece model."""
  return "<unk>" in vocab and "[UNK]" not in vocab


def unknown_token(vocab: Container[str]) -> str:
  """The token of what a vocabulary does not have.

  Example:
    >>> unknown_token({"[UNK]": 0}), unknown_token({"<unk>": 1})
    ('[UNK]', '<unk>')
  """
  return "<unk>" if is_of_model(vocab) else "[UNK]"


def padding_token(vocab: Container[str]) -> str:
  """The token of padding."""
  return "<pad>" if is_of_model(vocab) else "[PAD]"
