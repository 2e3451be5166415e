"""The kinds of vocabulary files, which are told apart by their content.

vocab.txt       one token per line, of BERT, ELECTRA and the Chinese ALBERT
spiece.model    a sentencepiece model, of ALBERT, which released ones call 30k-clean.model
tokenizer.json  a byte-level BPE, of RoBERTa; or vocab.json with merges.txt beside it

A tokenizer.json may also hold word pieces: transformers 5 writes no vocab.txt.
"""

import json
import os
import re
from collections.abc import Container, Mapping
from typing import Any

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
  """Tells whether a vocabulary file is to be read as a byte-level BPE: by its name and content."""
  name = os.path.basename(os.fsdecode(path))
  return name.endswith((".json", MERGES)) and not holds_word_pieces(path)


def holds_byte_pairs(path: str | os.PathLike) -> bool:
  """Tells whether a file is a `vocab.json`, or a `tokenizer.json` of a byte-level BPE."""
  name = os.path.basename(os.fsdecode(path))
  if name != BYTE_PAIRS:
    return name == _VOCAB_JSON and filesystem.is_file(os.fsdecode(path))
  return _type_in(path) == "BPE"


def holds_word_pieces(path: str | os.PathLike) -> bool:
  """Tells whether a file is a `tokenizer.json` of word pieces."""
  name = os.path.basename(os.fsdecode(path))
  return name.endswith(".json") and name != _VOCAB_JSON and _type_in(path) == "WordPiece"


def is_read_here(path: str | os.PathLike) -> bool:
  """Tells whether a file is a `tokenizer.json` of word pieces, or of a byte-level BPE."""
  return holds_byte_pairs(path) or holds_word_pieces(path)


def tokens_in_json(path: str | os.PathLike) -> list[str]:
  """Returns the word pieces of a tokenizer.json, in the order of their ids; a ValueError if bad."""
  content = json.loads(filesystem.read_bytes(os.fsdecode(path)))
  ids = content["model"]["vocab"]
  try:
    ids = ids | {token["content"]: token["id"] for token in content.get("added_tokens", [])}
    tokens = sorted(ids, key=ids.get)
    is_in_order = [ids[token] for token in tokens] == list(range(len(ids)))
  except (TypeError, KeyError):  # keys that are not text, ids that are not numbers
    is_in_order = False
  if not is_in_order or not all(isinstance(token, str) for token in tokens):
    raise ValueError(f"{os.fsdecode(path)} does not number its tokens 0, 1, 2, ...")
  return tokens


def vocab_txt(path: str | os.PathLike) -> bytes:
  """Returns the content of a vocab.txt, or that of one with the word pieces of a tokenizer.json."""
  if not holds_word_pieces(path):
    return filesystem.read_bytes(os.fsdecode(path))
  return "".join(f"{token}\n" for token in tokens_in_json(path)).encode()


def _type_in(path: str | os.PathLike) -> str | None:
  try:
    return type_of_tokenizer(json.loads(filesystem.read_bytes(os.fsdecode(path))))
  except (OSError, ValueError, RecursionError):
    return None


def type_of_tokenizer(content: Any) -> str | None:
  """Returns the type of the model in a tokenizer.json, which old ones do not state.

  Example:
    >>> type_of_tokenizer({"model": {"vocab": {"[UNK]": 0}}}), type_of_tokenizer({})
    ('WordPiece', None)
  """
  model = content.get("model") if isinstance(content, dict) else None
  if not isinstance(model, dict):
    return None
  if isinstance(model.get("vocab"), dict):
    return model.get("type", "BPE" if "merges" in model else "WordPiece")
  return model.get("type", "Unigram")


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
