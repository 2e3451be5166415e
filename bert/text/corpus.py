"""Text files -> sentences, and what is worth knowing about a text before a model trains on it.

A corpus is text in UTF-8: a line is a sentence, an empty line ends a document. `TextFormat` names
other forms that are understood. Files whose names end in `.gz` are compressed.

  statistics = TextStatistics()
  files = find_input_files("wiki/*.txt,books.txt")
  documents = split_documents(read_sentences(files, tokenizer, statistics))
  statistics.log()

`read_sentences` yields sentence by sentence, so that a reader who can use them that way needs no
memory that grows with the text.
"""

import codecs
import dataclasses
import glob
import gzip
import hashlib
import itertools
import json
import os
import time
import zlib
from collections.abc import Iterable, Iterator
from typing import BinaryIO, NamedTuple

from absl import logging

from bert.text.sentences import split_sentences

_LONG_LINE = 1 << 20  # characters; a longer line is tokenized piece by piece
_SAMPLED_LINES = 1 << 17  # about 20 MB of hashes


class CorpusError(ValueError):
  """Text that cannot be used, or files of text that cannot be read."""


# ---------------------------------------------------------------------------------------------
# Names of files.


def find_input_files(patterns: str) -> list[str]:
  """Files that match comma-separated patterns; sorted within a pattern, hidden ones left out.

  Raises:
    CorpusError: a pattern matches nothing, a match is no readable file, or all files are empty.
  """
  found: list[str] = []
  for pattern in filter(None, map(str.strip, patterns.split(","))):
    matches = sorted(_glob(pattern))
    if not matches:
      raise CorpusError(f"--input_file: {pattern} matches no file in {os.getcwd()}.")
    found += matches
  local = [path for path in found if "://" not in path]
  for path in local:
    _check_readable(path)
  empty = [path for path in local if not os.path.getsize(path)]
  if len(empty) == len(found):
    raise CorpusError(f"--input_file: there is no text in {', '.join(empty) or repr(patterns)}.")
  if empty:
    logging.warning("%d of %d input files are empty: %s", len(empty), len(found), empty[:5])
  return found


def _glob(pattern: str) -> list[str]:
  if "://" not in pattern:
    return glob.glob(pattern) or ([pattern] if os.path.exists(pattern) else [])
  import tensorflow as tf  # its file systems know gs://, s3://, hdfs://

  return tf.io.gfile.glob(pattern)


def total_bytes(input_files: Iterable[str]) -> int:
  """The size of all files, or 0 if one is not on a local disk."""
  input_files = list(input_files)
  if not all(os.path.isfile(path) for path in input_files):
    return 0
  return sum(map(os.path.getsize, input_files))


def _check_readable(path: str) -> None:
  if os.path.isdir(path):
    raise CorpusError(f"--input_file: {path} is a folder. Write {os.path.join(path, '*')} instead.")
  with open(path, "rb") as reader:  # an OSError names the file
    head = reader.read(4)
  if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
    raise CorpusError(f"--input_file: {path} is UTF-16 text. Convert it to UTF-8.")


# ---------------------------------------------------------------------------------------------
# Parts of files, which can be read side by side.


class TextRange(NamedTuple):
  """The lines of a file that begin at a byte from `start` on and before `end`.

  The `end` of the last range of a file is None: a compressed file, or one that is not on a local
  disk, is one range, whose size nobody knows before it is read.
  """

  path: str
  start: int
  end: int | None


def text_ranges(input_files: Iterable[str], target_bytes: int = 1 << 20) -> list[TextRange]:
  """Cuts files into ranges of equal size, of `target_bytes` at most.

  Ranges depend on the names and sizes of the files alone, so that every program that cuts the same
  input finds the same ones, without reading it.
  """
  return [part for path in input_files for part in _ranges_of_file(path, target_bytes)]


def _ranges_of_file(path: str, target_bytes: int) -> Iterator[TextRange]:
  if "://" in path or path.endswith(".gz"):
    yield TextRange(path, 0, None)
    return
  size = os.path.getsize(path)
  count = max(1, -(-size // target_bytes))
  bounds = [size * number // count for number in range(count)]
  for start, end in itertools.zip_longest(bounds, bounds[1:]):
    yield TextRange(path, start, end)


def read_lines(part: TextRange) -> Iterator[bytes]:
  """The lines of a range, each with its end of line; each line of a file is in one range."""
  for _, line in read_located_lines(part):
    yield line


def read_located_lines(part: TextRange) -> Iterator[tuple[int, bytes]]:
  """As `read_lines`, with the byte of the file at which each line begins."""
  with open_bytes(part.path) as reader:
    position = part.start
    if part.start:
      # A line that begins right at `start` belongs here: what is skipped ends before it.
      reader.seek(part.start - 1)
      position += len(reader.readline()) - 1
    while part.end is None or position < part.end:
      line = _read_line(reader, part.path)
      if not line:
        return
      yield position, line
      position += len(line)


def _read_line(reader: BinaryIO, path: str) -> bytes:
  try:
    return reader.readline()
  except (EOFError, zlib.error, gzip.BadGzipFile) as error:
    raise CorpusError(f"{path} is no gzip file, or was cut short: {error}.") from None


def open_bytes(path: str) -> BinaryIO:
  """Opens a file, local or remote, compressed if its name ends in `.gz`."""
  if "://" in path:
    import tensorflow as tf  # its file systems know gs://, s3://, hdfs://

    file = tf.io.gfile.GFile(path, "rb")
    return gzip.GzipFile(fileobj=file) if path.endswith(".gz") else file
  return gzip.open(path, "rb") if path.endswith(".gz") else open(path, "rb")


# ---------------------------------------------------------------------------------------------
# Text -> sentences.


class TextFormat(NamedTuple):
  """What the text files hold.

  Attributes:
    strict_utf8: refuse bytes that are not UTF-8, instead of replacing and counting them.
    split_sentences: a line is a paragraph, see `sentences.split_sentences`.
    jsonl_field: if not empty, a line is a JSON object and a document, and this field its text,
      whose lines are sentences (or paragraphs).
  """

  strict_utf8: bool = False
  split_sentences: bool = False
  jsonl_field: str = ""


PLAIN_TEXT = TextFormat()


def read_sentences(
  input_files: Iterable[str],
  tokenizer,
  statistics: "TextStatistics | None" = None,
  text_format: TextFormat = PLAIN_TEXT,
) -> Iterator[list[str] | None]:
  """Tokens of each sentence that has any, and None for each end of a document.

  As in the original, the end of a file does not end a document, a line ends at `\\n`, and every
  `\\r` is dropped.

  Args:
    input_files: read in this order.
    tokenizer: a `tokenization.FullTokenizer`. Lines above a million characters reach it in pieces
      cut at spaces, which gives the same tokens and needs less memory.
    statistics: counts what was read.
    text_format: what the files hold.

  Raises:
    CorpusError: a line is not as `text_format` says.
  """
  statistics = statistics or TextStatistics()
  for path in input_files:
    lines = read_located_lines(TextRange(path, 0, None))
    for sentence in _sentences_of_lines(path, lines, text_format, statistics):
      if sentence is None:
        yield None
        continue
      tokens = [token for part in parts(sentence) for token in tokenizer.tokenize(part)]
      statistics.add_sentence(len(tokens), tokens.count("[UNK]"))
      if tokens:
        yield tokens
  statistics.end_document()


def read_range(
  part: TextRange, text_format: TextFormat, statistics: "TextStatistics"
) -> Iterator[str | None]:
  """The sentences of the documents that belong to a range, and None for each end of a document.

  A document belongs to the range in which the empty line before it begins, and is read to its end,
  wherever that is. So each document belongs to one range, and no range has to look back. The end of
  a file ends a document here.

  Raises:
    CorpusError: a line is not as `text_format` says.
  """
  lines = read_located_lines(part) if text_format.jsonl_field else _lines_of_documents(part)
  yield from _sentences_of_lines(part.path, lines, text_format, statistics)
  statistics.end_document()
  yield None


def _lines_of_documents(part: TextRange) -> Iterator[tuple[int, bytes]]:
  inside = not part.start  # of a document of this range
  for position, data in read_located_lines(part._replace(end=None)):
    is_past = part.end is not None and position >= part.end
    if is_past and (not inside or _is_empty(data)):
      return
    inside = inside or _is_empty(data)
    if inside:
      yield position, data


def _is_empty(data: bytes) -> bool:
  return not data.decode("utf-8", "replace").replace("\r", "").strip()


def _sentences_of_lines(
  path: str,
  lines: Iterable[tuple[int, bytes]],
  text_format: TextFormat,
  statistics: "TextStatistics",
) -> Iterator[str | None]:
  for position, data in lines:
    line = _decode(data, text_format.strict_utf8, path, position, statistics)
    line = line.replace("\r", "").strip()
    statistics.add_line(data, is_empty=not line)
    if text_format.jsonl_field:
      if line:
        text = _text_of_json(line, text_format.jsonl_field, path, position)
        for text_line in filter(None, map(str.strip, text.replace("\r", "").split("\n"))):
          yield from _sentences_of_line(text_line, text_format)
      statistics.end_document()
      yield None
    elif line:
      yield from _sentences_of_line(line, text_format)
    else:
      statistics.end_document()
      yield None


def _sentences_of_line(line: str, text_format: TextFormat) -> list[str]:
  return split_sentences(line) if text_format.split_sentences else [line]


def _decode(
  data: bytes, strict: bool, path: str, position: int, statistics: "TextStatistics"
) -> str:
  try:
    return data.decode("utf-8")
  except UnicodeDecodeError as error:
    invalid = error
  if strict:
    raise CorpusError(
      f"{_place(path, position)}: byte {invalid.start + 1} of the line, "
      f"0x{data[invalid.start]:02x}, is not valid UTF-8. Convert the file, or leave --strict_utf8 "
      "out."
    )
  statistics.invalid_lines += 1
  statistics.first_invalid = statistics.first_invalid or _place(path, position)
  return data.decode("utf-8", "replace")  # the tokenizer drops U+FFFD


def _text_of_json(line: str, field: str, path: str, position: int) -> str:
  try:
    value = json.loads(line)
    if not isinstance(value, dict):
      reason = f"a JSON object is expected, not {line[:40]!r}"
    elif field not in value:
      reason = f"there is no field {field!r}, only {sorted(value)[:10]}"
    elif not isinstance(value[field], str):
      reason = f"field {field!r} is no text, but {str(value[field])[:40]!r}"
    else:
      # An unpaired surrogate can stand in JSON, but not in UTF-8.
      return value[field].encode("utf-8", "replace").decode("utf-8")
  except (ValueError, RecursionError) as error:
    reason = f"not JSON ({error})"
  raise CorpusError(f"--jsonl_field: {_place(path, position)}: {reason}.")


def _place(path: str, position: int) -> str:
  """File and line. The line is counted only now: who reads a part of a file does not know it."""
  number = 1
  with open_bytes(path) as reader:
    while position > 0 and (data := reader.read(min(position, 1 << 20))):
      number += data.count(b"\n")
      position -= len(data)
  return f"{path}, line {number}"


def parts(line: str, limit: int = _LONG_LINE) -> Iterator[str]:
  """Cuts a line at spaces into parts of about `limit` characters.

  Example:
    >>> list(parts("to be or not", limit=4))
    ['to ', 'be ', 'or ', 'not']
    >>> list(parts("unseparated words", limit=4))
    ['unseparated ', 'words']
  """
  start = 0
  while len(line) - start > limit:
    end = line.rfind(" ", start, start + limit) + 1 or line.find(" ", start + limit) + 1
    if not end:
      break
    yield line[start:end]
    start = end
  yield line[start:]


def split_documents(sentences: Iterable[list[str] | None]) -> list[list[list[str]]]:
  """Documents as lists of sentences; those without any are left out.

  Example:
    >>> split_documents([None, ["a", "##b"], ["c"], None, None, ["d"]])
    [[['a', '##b'], ['c']], [['d']]]
  """
  documents: list[list[list[str]]] = [[]]
  for sentence in sentences:
    if sentence is None:
      documents.append([])
    else:
      documents[-1].append(sentence)
  return [document for document in documents if document]


# ---------------------------------------------------------------------------------------------
# What is worth knowing before a model trains on a text for days.


COUNTS = (
  "read_bytes",
  "documents",
  "sentences",
  "one_sentence_documents",
  "documents_alone",
  "tokens",
  "unknown_tokens",
  "invalid_lines",
  "nul_lines",
)


@dataclasses.dataclass
class TextStatistics:
  """Counts of what was read.

  Attributes:
    total_bytes: of all input, for the progress line; 0 if unknown.
    logs_progress: whether there is such a line.
    documents_alone: documents that random next sentences of the same document were drawn for.
  """

  total_bytes: int = 0
  logs_progress: bool = True
  read_bytes: int = 0
  documents: int = 0
  sentences: int = 0
  one_sentence_documents: int = 0
  documents_alone: int = 0
  tokens: int = 0
  unknown_tokens: int = 0
  invalid_lines: int = 0
  first_invalid: str = ""
  nul_lines: int = 0

  def __post_init__(self):
    self._sentences_of_document = 0
    self._lines = LineSample()
    self._progress = Progress("Reading", self.total_bytes / 1e6, "MB")

  def add_line(self, data: bytes, is_empty: bool) -> None:
    """Counts one line of a file."""
    self.read_bytes += len(data)
    if self.logs_progress:
      self._progress.update(self.read_bytes / 1e6)
    if not is_empty:
      self._lines.add(data)
      self.nul_lines += b"\0" in data

  def add_sentence(self, tokens: int, unknown_tokens: int) -> None:
    """Counts one sentence, unless it has no tokens."""
    if tokens:
      self.sentences += 1
      self._sentences_of_document += 1
      self.tokens += tokens
      self.unknown_tokens += unknown_tokens

  def add(self, other: "TextStatistics") -> None:
    """Adds the counts of other text."""
    for name in COUNTS:
      setattr(self, name, getattr(self, name) + getattr(other, name))
    self.first_invalid = self.first_invalid or other.first_invalid
    self._lines.merge(other._lines)

  def end_document(self) -> None:
    """Notes an empty line, or the end of the text."""
    self.documents += self._sentences_of_document > 0
    self.one_sentence_documents += self._sentences_of_document == 1
    self._sentences_of_document = 0

  def log(self) -> None:
    """One line of figures, and warnings about what spoils a model."""
    logging.info(
      "Read %d documents, %d sentences, %d tokens (%.1f MB, %.2f MB/s).",
      self.documents,
      self.sentences,
      self.tokens,
      self.read_bytes / 1e6,
      self._progress.rate(self.read_bytes / 1e6),
    )
    for warning in self.warnings():
      logging.warning("%s", warning)

  def warnings(self) -> Iterator[str]:
    """What is likely to be a mistake, each with its consequence and its remedy."""
    if self.documents == 1:
      yield (
        "The corpus is one document: random next sentences come from that document, too, so there "
        "is little to learn from them. Put an empty line between documents."
      )
    if self.documents > 1 and self.one_sentence_documents > 0.1 * self.documents:
      share = self.one_sentence_documents / self.documents
      yield (
        f"{share:.0%} of the documents have one sentence: their next sentence is always random. "
        "An empty line belongs between documents only, and each sentence on a line of its own."
      )
    if self.documents > 1 and self.documents_alone > 0.1 * self.documents:
      yield (
        f"{self.documents_alone / self.documents:.0%} of the documents are so long that none other "
        "is near: their random next sentences come from themselves. Cut them, or use "
        "--no_next_sentence."
      )
    if self._lines.duplicate_share() > 0.1:
      yield (
        f"About {self._lines.duplicate_share():.0%} of the lines repeat an earlier line. A model "
        "learns those by heart: remove the duplicates."
      )
    if self.unknown_tokens > 0.05 * self.tokens:
      yield (
        f"{self.unknown_tokens / self.tokens:.0%} of the tokens are [UNK]: do the vocabulary and "
        "--do_lower_case fit this text?"
      )
    if self.invalid_lines:
      yield (
        f"{self.invalid_lines} lines are not valid UTF-8, the first one {self.first_invalid}; the "
        "invalid bytes were dropped. --strict_utf8 refuses them."
      )
    if self.nul_lines:
      yield f"{self.nul_lines} lines hold NUL bytes, which were dropped: is this text in UTF-8?"


class LineSample:
  """The share of repeated lines, estimated in fixed memory.

  A line is in the sample if its hash ends in enough zero bits, so all repetitions of a line are in
  or out together. When the sample is full, one more bit is asked for.
  """

  def __init__(self, capacity: int = _SAMPLED_LINES):
    self._capacity = capacity
    self._mask = 0
    self._count_of: dict[int, int] = {}

  def add(self, line: bytes) -> None:
    """Counts a line."""
    digest = hashlib.blake2b(line.strip(), digest_size=8).digest()
    key = int.from_bytes(digest, "little")
    if key & self._mask:
      return
    self._count_of[key] = self._count_of.get(key, 0) + 1
    if len(self._count_of) > self._capacity:
      self._keep(self._mask << 1 | 1)

  def merge(self, other: "LineSample") -> None:
    """Adds the lines of another sample."""
    for key, count in other._count_of.items():
      self._count_of[key] = self._count_of.get(key, 0) + count
    self._keep(max(self._mask, other._mask))
    while len(self._count_of) > self._capacity:
      self._keep(self._mask << 1 | 1)

  def _keep(self, mask: int) -> None:
    self._mask = mask
    self._count_of = {key: count for key, count in self._count_of.items() if not key & mask}

  def duplicate_share(self) -> float:
    """Of the lines, how many repeat an earlier one."""
    total = sum(self._count_of.values())
    return 1 - len(self._count_of) / total if total else 0.0


class Progress:
  """A line of log every ten seconds: how far, how fast, how much longer."""

  def __init__(self, what: str, total: float, unit: str, interval_s: float = 10.0):
    self._what, self._total, self._unit, self._interval_s = what, total, unit, interval_s
    self._begin = self._last = time.monotonic()

  def rate(self, done: float) -> float:
    """Units per second since the start."""
    return done / max(time.monotonic() - self._begin, 1e-9)

  def update(self, done: float) -> None:
    """Logs if it is time; `done` counts from the start."""
    now = time.monotonic()
    if now - self._last < self._interval_s:
      return
    self._last = now
    rate = self.rate(done)
    left = f", {(self._total - done) / rate:.0f} s left" if self._total and rate else ""
    total = f" of {self._total:.0f}" if self._total else ""
    logging.info("%s: %.0f%s %s, %.1f/s%s", self._what, done, total, self._unit, rate, left)
