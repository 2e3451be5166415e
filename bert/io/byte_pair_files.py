"""Files of a byte-level BPE: `tokenizer.json`, or `vocab.json` with `merges.txt` beside it.

  pairs = read("roberta-base/vocab.json")
  pairs.vocab["Ġthe"], pairs.merges[0]            # 5, ("Ġ", "t")
  pairs.to_json()                                 # a whole tokenizer.json

Each of the 256 bytes has a character; so tokens are spelled in the files (`byte_characters`).
"""

import functools
import itertools
import json
import os
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from bert.io import filesystem, json_files, tokenizer_settings
from bert.io.vocabulary_kind import BYTE_PAIRS as TOKENIZER
from bert.io.vocabulary_kind import CLS, MASK, MERGES, SEP

VOCABULARY = "vocab.json"

PAD, UNK = "<pad>", "<unk>"
_NEEDED = (CLS, PAD, SEP, UNK)
_MAX_BYTES = 1 << 28  # far above any vocabulary (roberta-base: 4 MB); stops a wrong file


class BytePairs(NamedTuple):
  """A vocabulary of byte-level BPE."""

  vocab: dict[str, int]  # token -> id, by id
  merges: list[tuple[str, str]]  # pairs of tokens, the first to be merged first
  # Tokens that stay whole in text, as `added_tokens` of a tokenizer.json.
  special: list[dict[str, Any]]
  add_prefix_space: bool  # whether a space goes before the first word of a text
  path: str  # of the file, for messages

  def to_json(self, whole_tokens: bool = True) -> str:
    """Writes a tokenizer.json, as the libraries tokenizers and transformers read it.

    Without `whole_tokens`, special tokens in text are text like any other.
    """
    added = {token["content"] for token in self.special}
    byte_level = {
      "type": "ByteLevel",
      "add_prefix_space": self.add_prefix_space,
      "trim_offsets": True,
      "use_regex": True,
    }
    content = {
      "version": "1.0",
      "truncation": None,
      "padding": None,
      "added_tokens": self.special if whole_tokens else [],
      "normalizer": None,
      "pre_tokenizer": byte_level,
      "post_processor": {
        "type": "RobertaProcessing",
        "sep": [SEP, self.vocab[SEP]],
        "cls": [CLS, self.vocab[CLS]],
        "trim_offsets": True,
        "add_prefix_space": self.add_prefix_space,
      },
      "decoder": {**byte_level, "add_prefix_space": True},
      "model": {
        "type": "BPE",
        "dropout": None,
        "unk_token": None,
        "continuing_subword_prefix": "",
        "end_of_word_suffix": "",
        "fuse_unk": False,
        "byte_fallback": False,
        "ignore_merges": False,
        "vocab": self.vocab,
        "merges": [list(pair) for pair in self.merges],
      },
    }
    assert added <= self.vocab.keys()
    return json.dumps(content, ensure_ascii=False)  # indented, it takes ten times as long

  def vocab_json(self) -> str:
    """Writes the content of `vocab.json`."""
    return json.dumps(self.vocab, ensure_ascii=False)

  def merges_txt(self) -> str:
    """Writes the content of `merges.txt`."""
    lines = [f"{first} {second}\n" for first, second in self.merges]
    return "".join(["#version: 0.2\n", *lines])


@functools.lru_cache(maxsize=1)
def byte_characters() -> tuple[str, ...]:
  """Returns the character that stands for each byte, as GPT-2 chose them.

  Printable bytes stand for themselves, the others for U+0100 and what follows.

  Example:
    >>> [byte_characters()[byte] for byte in b"a \\xc3"]
    ['a', 'Ġ', 'Ã']
  """
  printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
  others = iter(range(0x100, 0x200))
  return tuple(chr(byte if byte in printable else next(others)) for byte in range(256))


def read(path: str | os.PathLike) -> BytePairs:
  """Reads a `tokenizer.json`, or a `vocab.json` and the `merges.txt` beside it.

  A `tokenizer_config.json` beside it decides whether a space goes before a text.

  Raises:
    ValueError: a file is missing or bad, or they do not belong together; one line.
  """
  path = os.fsdecode(path)
  pairs, stated = _read(path), tokenizer_settings.beside(path).add_prefix_space
  return pairs if stated is None else pairs._replace(add_prefix_space=stated)


def _read(path: str) -> BytePairs:
  if os.path.basename(path) == MERGES:
    raise ValueError(f"{path} has no ids: give the {VOCABULARY} beside it.")
  content = _json(path)
  # These keys of a tokenizer.json may be tokens, too, with an id: roberta-base has "model".
  if any(type(content.get(key, 0)) is not int for key in ("model", "added_tokens")):
    return _from_tokenizer(content, path)
  vocab = _vocab(content, path)
  merges_file = os.path.join(os.path.dirname(path), MERGES)
  if not filesystem.is_file(merges_file):
    raise ValueError(
      f"{path} needs {MERGES} beside it, which is missing: both came with the model, or "
      f"{TOKENIZER}, which contains both."
    )
  special = [_special(token, vocab) for token in (CLS, PAD, SEP, UNK, MASK) if token in vocab]
  return _checked(BytePairs(vocab, read_merges(merges_file), special, False, path), merges_file)


def _json(path: str) -> dict[str, Any]:
  try:
    with filesystem.open_to_read(path) as reader:
      data = reader.read(_MAX_BYTES + 1)
  except OSError as error:
    raise ValueError(
      f"Cannot read vocabulary {path}: {error.strerror}. Give the {VOCABULARY} or {TOKENIZER} that "
      "came with the model."
    ) from error
  if len(data) > _MAX_BYTES:
    raise ValueError(f"Vocabulary {path} is larger than {_MAX_BYTES} bytes: some other file.")
  return json_files.object_in(data, f"Vocabulary {path}", "Fetch it again.")


def _vocab(content: Mapping[str, Any], path: str) -> dict[str, int]:
  for token, index in content.items():
    if type(index) is not int or index < 0:
      raise ValueError(f"{path}: {token!r:.40} has {index!r:.40} for an id, not a whole number.")
  vocab = dict(sorted(content.items(), key=lambda item: item[1]))
  if len(set(vocab.values())) != len(vocab):
    ids = list(vocab.values())
    twice = next(index for index, after in itertools.pairwise(ids) if index == after)
    tokens = [token for token, index in vocab.items() if index == twice]
    raise ValueError(f"{path}: {tokens[0]!r} and {tokens[1]!r} have the same id, {twice}.")
  return vocab


def _special(token: str, vocab: Mapping[str, int]) -> dict[str, Any]:
  """As RoBERTa's: the mask takes the white space on its left."""
  flags = {"single_word": False, "lstrip": token == MASK, "rstrip": False}
  return {"id": vocab[token], "content": token, **flags, "normalized": False, "special": True}


def read_merges(path: str) -> list[tuple[str, str]]:
  """Reads the pairs of a merges.txt, in their order; a ValueError if it is bad."""
  try:
    text = filesystem.read_bytes(path).decode("utf-8-sig")
  except UnicodeDecodeError:
    raise ValueError(f"{path} is not UTF-8 text. Fetch it again.") from None
  merges = []
  for number, line in enumerate(text.replace("\r", "").split("\n"), 1):
    if not line or (number == 1 and line.startswith("#version")):
      continue
    parts = line.split(" ")
    if len(parts) != 2 or not all(parts):
      raise ValueError(f"{path}, line {number}: {line!r:.60} is not two tokens with a space.")
    merges.append((parts[0], parts[1]))
  return merges


def _from_tokenizer(content: Mapping[str, Any], path: str) -> BytePairs:
  try:
    model, splitter = content["model"], content["pre_tokenizer"] or {}
    kind = model.get("type"), splitter.get("type")
    if kind != ("BPE", "ByteLevel") or content.get("normalizer"):
      raise ValueError(
        f"{path} is of another kind of tokenizer (model {kind[0]}, pre_tokenizer {kind[1]}, "
        f"normalizer {(content.get('normalizer') or {}).get('type')}); a byte-level BPE is BPE, "
        "ByteLevel and none."
      )
    merges = [tuple(m.split(" ") if isinstance(m, str) else m) for m in model["merges"]]
    if any(len(merge) != 2 for merge in merges):
      raise TypeError("merges")
    special = list(content.get("added_tokens") or ())
    vocab = {**model["vocab"], **{token["content"]: token["id"] for token in special}}
    add_prefix_space = bool(splitter.get("add_prefix_space", False))
  except (KeyError, TypeError, AttributeError) as error:
    raise ValueError(
      f"{path} is not a complete tokenizer.json ({type(error).__name__}: {error}). Fetch it again."
    ) from None
  pairs = BytePairs(_vocab(vocab, path), merges, special, add_prefix_space, path)
  return _checked(pairs, path)


def _checked(pairs: BytePairs, merges_file: str) -> BytePairs:
  vocab = pairs.vocab
  missing = [token for token in _NEEDED if token not in vocab]
  if any(token.endswith("</w>") for token in vocab):
    raise ValueError(
      f"{pairs.path} has tokens that end in </w>, a BPE of characters as HerBERT's: this tokenizer "
      "is not supported."
    )
  if missing:
    raise ValueError(
      f"{pairs.path} lacks the tokens {', '.join(missing)}: it is no vocabulary of RoBERTa's."
    )
  bytes_missing = sum(char not in vocab for char in byte_characters())
  if bytes_missing:
    raise ValueError(f"{pairs.path} lacks {bytes_missing} of the 256 bytes: it is not complete.")
  for first, second in pairs.merges:
    unknown = [token for token in (first, second, first + second) if token not in vocab]
    if unknown:
      raise ValueError(
        f"{merges_file}: {first!r} and {second!r} are merged, but {pairs.path} lacks "
        f"{unknown[0]!r}: they are of different models."
      )
  return pairs


def shown(token: str) -> str:
  """Writes a token as text; bytes that are no characters become U+FFFD.

  Example:
    >>> shown("Ġthe"), shown("<mask>"), shown("Ã©")
    (' the', '<mask>', 'é')
  """
  if re.fullmatch(r"<\w+>|</s>", token):
    return token
  byte_of = bytes_of_characters()
  if not all(char in byte_of for char in token):
    return token
  return bytes(byte_of[char] for char in token).decode(errors="replace")


@functools.lru_cache(maxsize=1)
def bytes_of_characters() -> dict[str, int]:
  """Returns the reverse of `byte_characters`."""
  return {char: byte for byte, char in enumerate(byte_characters())}
