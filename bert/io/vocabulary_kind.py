"""The kinds of vocabulary files, which are told apart by their content.

vocab.txt       one token per line, of BERT, ELECTRA and the Chinese ALBERT
spiece.model    a sentencepiece model, of ALBERT, which released ones call 30k-clean.model
tokenizer.json  a byte-level BPE, of RoBERTa; or vocab.json with merges.txt beside it
"""

import json
import os
import re
from collections.abc import Container, Mapping

from bert.io import filesystem

# The name of each kind's file in the folder of a model.
VOCABULARY = "vocab.txt"
SENTENCE_PIECES = "spiece.model"
BYTE_PAIRS = "tokenizer.json"

MERGES = "merges.txt"  # of a byte-level BPE, beside its vocab.json
CLS, SEP, MASK = "<s>", "</s>", "<mask>"  # tokens of a byte-level BPE
_VOCAB_JSON = "vocab.json"
_ENDING = ".model"


def is_model(data: bytes) -> bool:
  """Tells whether these are the first 64 bytes or more of a sentencepiece model.

  It begins with its first piece: a message (tag 0x0a) with a name (0x0a) and a score (0x15).

  Example:
    >>> is_model(b"\\n\\x0e\\n\\x05<pad>\\x15\\0\\0\\0\\0\\x18\\x03"), is_model(b"[PAD]\\n[UNK]\\n")
    (True, False)
  """
  return re.match(rb"\n.{1,2}\n.", data, re.DOTALL) is not None and b"\x15" in data[:64]


def holds_model(path: str | os.PathLike) -> bool:
  """Tells whether a file is a sentencepiece model; False for one that cannot be read."""
  try:
    with filesystem.open_to_read(os.fsdecode(path)) as reader:
      return is_model(reader.read(64))
  except OSError:
    return False


def is_sentencepiece_file(path: str | os.PathLike) -> bool:
  """Whether a vocabulary file is to be read as a sentencepiece model: by content or by name."""
  return os.fsdecode(path).endswith(_ENDING) or holds_model(path)


def saved_vocabulary_name(path: str | os.PathLike) -> str:
  """Returns the name that a copy of a vocabulary file has in the folder of a model."""
  if is_meant_as_byte_pairs(path):
    return BYTE_PAIRS
  return SENTENCE_PIECES if is_sentencepiece_file(path) else VOCABULARY


def is_meant_as_byte_pairs(path: str | os.PathLike) -> bool:
  """Tells whether a vocabulary file is to be read as a byte-level BPE: by its name."""
  return os.path.basename(os.fsdecode(path)).endswith((".json", MERGES))


def holds_byte_pairs(path: str | os.PathLike) -> bool:
  """Tells whether a file is a `vocab.json`, or a `tokenizer.json` of a byte-level BPE."""
  name = os.path.basename(os.fsdecode(path))
  if name != BYTE_PAIRS:
    return name == _VOCAB_JSON and filesystem.is_file(os.fsdecode(path))
  try:
    model = json.loads(filesystem.read_bytes(os.fsdecode(path))).get("model")
    return model.get("type") == "BPE"
  except (OSError, ValueError, AttributeError):
    return False


def is_of_byte_pairs(vocab: Container[str]) -> bool:
  """Tells whether tokens are those of a byte-level BPE."""
  return CLS in vocab and SEP in vocab and "[CLS]" not in vocab


def is_of_model(vocab: Container[str]) -> bool:
  """Tells whether tokens are the pieces of a sentencepiece model."""
  return "<unk>" in vocab and "[UNK]" not in vocab and not is_of_byte_pairs(vocab)


def unknown_token(vocab: Container[str]) -> str:
  """Returns the token of what a vocabulary does not have.

  Example:
    >>> unknown_token({"[UNK]": 0}), unknown_token({"<unk>": 1})
    ('[UNK]', '<unk>')
  """
  return "[UNK]" if is_of_word_pieces(vocab) else "<unk>"


def padding_token(vocab: Container[str]) -> str:
  """Returns the token of padding."""
  return "[PAD]" if is_of_word_pieces(vocab) else "<pad>"


def ends_and_mask(vocab: Container[str]) -> tuple[str, str, str]:
  """Returns the tokens before and after a text, and for a masked word.

  Example:
    >>> ends_and_mask({"[CLS]": 0}), ends_and_mask({"<s>": 0, "</s>": 2})
    (('[CLS]', '[SEP]', '[MASK]'), ('<s>', '</s>', '<mask>'))
  """
  if is_of_byte_pairs(vocab):
    return CLS, SEP, MASK
  return "[CLS]", "[SEP]", "[MASK]"


def size(vocab: Mapping[str, int]) -> int:
  """Returns how many rows of embeddings a vocabulary needs: none for empty last lines.

  Example:
    >>> size({"[PAD]": 0, "": 1, "a": 2}), size({"[PAD]": 0, "a": 1, "": 3})
    (3, 2)
  """
  return 1 + max(index for token, index in vocab.items() if token)


def special_ids(vocab: Mapping[str, int]) -> list[int]:
  """Returns the ids of the special tokens that a vocabulary has.

  Example:
    >>> special_ids({"<s>": 0, "</s>": 2, "a": 3, "<mask>": 4})
    [0, 2, 4]
  """
  special = (*ends_and_mask(vocab), padding_token(vocab), unknown_token(vocab))
  return [vocab[token] for token in special if token in vocab]


def is_of_word_pieces(vocab: Container[str]) -> bool:
  """Tells whether tokens are those of a vocab.txt."""
  return not (is_of_model(vocab) or is_of_byte_pairs(vocab))
