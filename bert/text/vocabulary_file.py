"""Vocabulary files: one token per line; the number of the line, from 0, is the token's id.

  tokens = read_tokens("vocab.txt")
  write_tokens("new_vocab.txt", tokens)

`tokenization.load_vocab` makes the original's dict of them.
"""

import codecs
import os
import warnings
from collections.abc import Iterable, Sequence

from bert.io import (
  atomic_files,
  filesystem,
  other_formats,
  tokenizer_settings,
  vocabulary_kind,
)

_MAX_BYTES = 1 << 28  # far above any vocabulary (multilingual: 1 MB); stops a wrong file
_NEEDED_TOKENS = ("[UNK]", "[CLS]", "[SEP]")
_PIECES_SHARE = 0.1  # from here on tokens that begin with "▁" are no accident


class VocabularyError(ValueError):
  """A vocabulary file cannot be used, or does not have the requested tokens."""


class UnknownItemError(VocabularyError, KeyError):
  """A token without an id, or an id without a token."""

  __str__ = Exception.__str__  # KeyError would put the message in quotes


class VocabularyWarning(UserWarning):
  """A vocabulary file is usable, but contains what its author can hardly have intended."""


def read_tokens(vocab_file: str | os.PathLike) -> list[str]:
  """Reads the lines of a UTF-8 vocabulary file, blank and repeated ones too: each takes an id.

  Of a tokenizer.json they are its tokens in the order of their ids. Oddities that do not prevent
  the file's use are `VocabularyWarning`s.

  Raises:
    VocabularyError: the file does not exist, is not UTF-8 text, or contains no token.
  """
  is_json = vocabulary_kind.holds_word_pieces(vocab_file)
  tokens = [line.strip() for line in (_tokens_in_json if is_json else _read_lines)(vocab_file)]
  first_line: dict[str, int] = {}
  blank, repeated = [], []
  for number, token in enumerate(tokens, 1):
    if not token:
      blank.append(f"line {number}")
    elif token in first_line:
      repeated.append(f"line {number} repeats {token!r} of line {first_line[token]}")
    first_line[token] = number
  if not any(tokens):
    raise VocabularyError(f"Vocabulary {vocab_file} is empty: expected one token per line.")
  with_space = sum(token.startswith("▁") and len(token) > 1 for token in tokens)
  if with_space > _PIECES_SHARE * len(tokens):
    supported_settings(vocab_file)  # which may name its class
    raise VocabularyError(
      f"Vocabulary {vocab_file} lists the pieces of a sentencepiece model, as KoBERT's does: this "
      "tokenizer is not supported."
    )
  missing = [repr(token) for token in _NEEDED_TOKENS if token not in first_line]
  at_end = len(blank) == len(tokens) - max(i for i, token in enumerate(tokens, 1) if token)
  left_out = "; a model whose vocab_size leaves out such last lines ignores them" if at_end else ""
  _warn_if(blank, vocab_file, f"blank lines take up ids that no word can have{left_out}")
  _warn_if(repeated, vocab_file, "the later line determines the id")
  _warn_if(missing, vocab_file, "missing tokens that BERT needs; converting them to ids will fail")
  return tokens


def supported_settings(vocab_file: str | os.PathLike) -> tokenizer_settings.TokenizerSettings:
  """Reads what is stated beside a vocabulary: see `tokenizer_settings.beside`.

  Raises:
    VocabularyError: the tokenizer is not supported, or a file is bad.
  """
  try:
    stated = tokenizer_settings.beside(vocab_file)
  except ValueError as error:
    raise VocabularyError(str(error)) from None
  if stated.refusal:
    raise VocabularyError(stated.refusal)
  return stated


def write_tokens(vocab_file: str, tokens: Iterable[str]) -> None:
  """Writes a vocabulary file, completely or not at all."""
  atomic_files.write_text(vocab_file, "".join(f"{token}\n" for token in tokens))


def _tokens_in_json(path) -> list[str]:
  try:
    return vocabulary_kind.tokens_in_json(path)
  except ValueError as error:
    raise VocabularyError(str(error)) from None


def _read_lines(vocab_file) -> list[str]:
  data = read_bytes(vocab_file)
  if vocabulary_kind.is_model(data):
    raise VocabularyError(
      f"{vocab_file} is a sentencepiece model; expected a text file with one token per line."
    )
  if other := other_formats.find(data):
    raise VocabularyError(f"Vocabulary {vocab_file} is {other[0]}. {other[1]}")
  if data.startswith(codecs.BOM_UTF8):
    _warn_if(["line 1"], vocab_file, "skipping a byte order mark; save the file without it")
    data = data[len(codecs.BOM_UTF8) :]
  try:
    text = data.decode("utf-8")
  except UnicodeDecodeError as error:
    line = data.count(b"\n", 0, error.start) + 1
    raise VocabularyError(
      f"Vocabulary {vocab_file}, line {line}: byte 0x{data[error.start]:02x} is not valid UTF-8. "
      "Save the file as UTF-8 text."
    ) from error
  # Not str.splitlines: real vocabularies hold tokens such as U+2028, at which it would split.
  # Dropping every \r is what TensorFlow's line reader did for the original.
  lines = text.replace("\r", "").split("\n")
  if not lines[-1]:  # what follows the last line's \n
    lines.pop()
  return lines


def read_bytes(
  vocab_file: str | os.PathLike, kind: str = "vocabulary", usual_name: str = "vocab.txt"
) -> bytes:
  """Reads a vocabulary file of either kind; `kind` and `usual_name` are for messages.

  Raises:
    VocabularyError: the file cannot be read, or is far too large.
  """
  path = os.fsdecode(vocab_file)
  title = kind[0].upper() + kind[1:]
  try:
    if filesystem.is_folder(path):
      raise VocabularyError(
        f"{title} {path} is a directory. Give the file inside it, usually "
        f"{os.path.join(path, usual_name)}."
      )
    with filesystem.open_to_read(path) as reader:
      data = reader.read(_MAX_BYTES + 1)
  except OSError as error:
    raise VocabularyError(
      f"Cannot read {kind} {path}: {error.strerror}. Give the {usual_name} that came with the "
      "model's checkpoint."
    ) from error
  if len(data) > _MAX_BYTES:
    raise VocabularyError(
      f"{title} {path} is larger than {_MAX_BYTES} bytes: this is some other file."
    )
  return data


def _warn_if(findings: Sequence[str], vocab_file, meaning: str) -> None:
  """Warns once about all `findings`, naming the first few."""
  if findings:
    more = f" and {len(findings) - 5} more" if len(findings) > 5 else ""
    listed = ", ".join(findings[:5]) + more
    warnings.warn(f"{vocab_file}: {meaning} ({listed}).", VocabularyWarning, stacklevel=4)
