"""Text files -> sentences, and what is worth knowing about a text before a model trains on it.

A corpus is text in UTF-8: a line is a sentence, an empty line ends a document.

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
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import BinaryIO, NamedTuple

from absl import logging

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
  with open_bytes(part.path) as reader:
    position = part.start
    if part.start:
      # A line that begins right at `start` belongs here: what is skipped ends before it.
      reader.seek(part.start - 1)
      position += len(reader.readline()) - 1
    while part.end is None or position < part.end:
      line = reader.readline()
      if not line:
        return
      position += len(line)
      yield line


def open_bytes(path: str) -> BinaryIO:
  """Opens a file, local or remote, compressed if its name ends in `.gz`."""
  if "://" in path:
    import tensorflow as tf  # its file systems know gs://, s3://, hdfs://

    file = tf.io.gfile.GFile(path, "rb")
    return gzip.GzipFile(fileobj=file) if path.endswith(".gz") else file
  return gzip.open(path, "rb") if path.endswith(".gz") else open(path, "rb")


# ---------------------------------------------------------------------------------------------
# Text -> sentences.


def read_sentences(
  input_files: Iterable[str],
  tokenizer,
  statistics: "TextStatistics | None" = None,
  strict_utf8: bool = False,
) -> Iterator[list[str] | None]:
  """Tokens of each line that has any, and None for each empty line.

  As in the original, the end of a file does not end a document, a line ends at `\\n`, and every
  `\\r` is dropped.

  Args:
    input_files: read in this order.
    tokenizer: a `tokenization.FullTokenizer`. Lines above a million characters reach it in pieces
      cut at spaces, which gives the same tokens and needs less memory.
    statistics: counts what was read.
    strict_utf8: refuse bytes that are not UTF-8, instead of replacing and counting them.

  Raises:
    CorpusError: invalid UTF-8, with `strict_utf8`.
  """
  statistics = statistics or TextStatistics()
  for path in input_files:
    with open_bytes(path) as reader:
      for number, data in enumerate(reader, start=1):
        line = _decode(data, strict_utf8, f"{path}, line {number}", statistics)
        line = line.replace("\r", "").strip()
        tokens = [token for part in _parts(line) for token in tokenizer.tokenize(part)]
        statistics.add_line(data, line, tokens)
        if tokens:
          yield tokens
        elif not line:
          yield None
  statistics.end_document()


def _decode(data: bytes, strict: bool, place: str, statistics: "TextStatistics") -> str:
  try:
    return data.decode("utf-8")
  except UnicodeDecodeError as error:
    if strict:
      raise CorpusError(
        f"{place}: byte {error.start + 1} of the line, 0x{data[error.start]:02x}, is not valid "
        "UTF-8. Convert the file, or leave --strict_utf8 out."
      ) from None
  statistics.invalid_lines += 1
  statistics.first_invalid = statistics.first_invalid or place
  return data.decode("utf-8", "replace")  # the tokenizer drops U+FFFD


def _parts(line: str, limit: int = _LONG_LINE) -> Iterator[str]:
  """Cuts a line at spaces into parts of about `limit` characters.

  Example:
    >>> list(_parts("to be or not", limit=4))
    ['to ', 'be ', 'or ', 'not']
    >>> list(_parts("unseparated words", limit=4))
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


@dataclasses.dataclass
class TextStatistics:
  """Counts of `read_sentences`.

  Attributes:
    total_bytes: of all input, for the progress line; 0 if unknown.
  """

  total_bytes: int = 0
  read_bytes: int = 0
  documents: int = 0
  sentences: int = 0
  one_sentence_documents: int = 0
  tokens: int = 0
  unknown_tokens: int = 0
  invalid_lines: int = 0
  first_invalid: str = ""
  nul_lines: int = 0

  def __post_init__(self):
    self._sentences_of_document = 0
    self._lines = LineSample()
    self._progress = Progress("Reading", self.total_bytes / 1e6, "MB")

  def add_line(self, data: bytes, line: str, tokens: Sequence[str]) -> None:
    """Counts one line."""
    self.read_bytes += len(data)
    self._progress.update(self.read_bytes / 1e6)
    if not line:
      self.end_document()
      return
    self._lines.add(data)
    self.nul_lines += b"\0" in data
    if tokens:
      self.sentences += 1
      self._sentences_of_document += 1
      self.tokens += len(tokens)
      self.unknown_tokens += tokens.count("[UNK]")

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
      self._mask = self._mask << 1 | 1
      kept = {k: count for k, count in self._count_of.items() if not k & self._mask}
      self._count_of = kept

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
