"""Files of text: found by patterns, cut into ranges, read line by line.

  files = find_input_files("wiki/*.txt,books.txt.gz")
  for part in text_ranges(files):
    for position, line in read_lines(part):
      ...

Files whose names end in `.gz` are compressed; remote files are opened by TensorFlow.
"""

import gzip
import itertools
import os
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import BinaryIO, NamedTuple

from absl import logging

from bert.io import filesystem, other_formats


class CorpusError(ValueError):
  """Text that cannot be used, or text files that cannot be read."""


# ---------------------------------------------------------------------------------------------
# File names.


# How marked up text begins, what it is, and what makes plain text of it.
_MARKUP = {
  rb"<doc id=": (
    "tags of WikiExtractor",
    "Remove them with the titles: sed -e '/^<doc /,/^$/d' -e 's/^<\\/doc>$//'",
  ),
  rb"<mediawiki\b": ("the XML of a wiki's dump", "Take its text out: WikiExtractor does"),
}
_START_BYTES = 1 << 16  # of a file, that are looked at


def find_input_files(patterns: str, takes_records: bool = False) -> list[str]:
  """Files that match comma-separated patterns; sorted within a pattern, without hidden files.

  Local files are looked into: text with tags is warned of.

  Args:
    patterns: of names.
    takes_records: whether TFRecord files are meant, too.

  Raises:
    CorpusError: a pattern matches nothing, a match is not a readable file of text, or all files
      are empty.
  """
  found: list[str] = []
  for pattern in filter(None, map(str.strip, patterns.split(","))):
    matches = filesystem.matching(pattern)
    if not matches:
      raise CorpusError(f"--input_file: {pattern} matches no file in {os.getcwd()}.")
    found += matches
  local = [path for path in found if not filesystem.is_remote(path)]
  starts = {path: _checked_start(path, takes_records) for path in local}
  empty = [path for path in local if not os.path.getsize(path)]
  if len(empty) == len(found):
    raise CorpusError(f"--input_file: all files are empty: {', '.join(empty) or repr(patterns)}.")
  if empty:
    logging.warning("%d of %d input files are empty: %s", len(empty), len(found), empty[:5])
  for tag, (what, remedy) in _MARKUP.items():
    marked = [path for path, start in starts.items() if re.search(b"(?m)^" + tag, start)]
    if marked:
      logging.warning(
        "%s holds %s, which are read as words (%d of %d files). %s.",
        *(marked[0], what, len(marked), len(found), remedy),
      )
  return found


def warn_of_json(input_files: Iterable[str], remedy: str) -> None:
  """Warns of the first file that begins as JSON Lines do: keys would be read as words.

  Of remote files only the very first is opened.
  """
  for number, path in enumerate(input_files):
    if number and filesystem.is_remote(path):
      continue
    with open_bytes(path) as reader:
      start = _read(reader.readline, path, other_formats.LONGEST)
    text = start.decode("utf-8-sig", "replace")
    if text.startswith("{") and other_formats.looks_like_json(text):
      logging.warning("%s holds JSON, which is read as text, its keys too. %s", path, remedy)
      return


def total_bytes(input_files: Iterable[str]) -> int:
  """Returns the size of all files together, or 0 if one is not on a local disk."""
  input_files = list(input_files)
  if not all(os.path.isfile(path) for path in input_files):
    return 0
  return sum(map(os.path.getsize, input_files))


def _checked_start(path: str, takes_records: bool) -> bytes:
  """Returns the first bytes of a file, unpacked; raises a CorpusError if they are no text."""
  if os.path.isdir(path):
    raise CorpusError(f"--input_file: {path} is a folder. Write {os.path.join(path, '*')} instead.")
  with open_bytes(path) as reader:  # an OSError names the file
    start = _read(reader.read, path, _START_BYTES)
  if takes_records and other_formats.are_records(start):
    return start
  if other := other_formats.find(start, pages=False):
    raise CorpusError(f"--input_file: {path} is {other[0]}. {other[1]}")
  if (place := start.find(0)) >= 0:
    raise CorpusError(
      f"--input_file: {path} is binary: byte {place + 1} is NUL. Give a pattern without it; from a "
      f"damaged text remove such bytes: tr -d '\\000' < {path} > text.txt"
    )
  return start


# ---------------------------------------------------------------------------------------------
# Parts of files, which can be read in parallel.


class TextRange(NamedTuple):
  """The lines of a file that begin at byte `start` or later, and before byte `end`.

  The `end` of a file's last range is None. A compressed file, or one that is not on a local disk,
  is a single range, since its size is unknown until it is read.
  """

  path: str
  start: int
  end: int | None


def text_ranges(input_files: Iterable[str], target_bytes: int = 1 << 20) -> list[TextRange]:
  """Cuts files into ranges of equal size, at most `target_bytes` each.

  The ranges depend only on the names and sizes of the files, so that every program cuts the same
  input in the same way, without reading it.
  """
  return [part for path in input_files for part in _ranges_of_file(path, target_bytes)]


def _ranges_of_file(path: str, target_bytes: int) -> Iterator[TextRange]:
  if filesystem.is_remote(path) or path.endswith(".gz"):
    yield TextRange(path, 0, None)
    return
  size = os.path.getsize(path)
  count = max(1, -(-size // target_bytes))
  bounds = [size * number // count for number in range(count)]
  for start, end in itertools.zip_longest(bounds, bounds[1:]):
    yield TextRange(path, start, end)


def read_lines(part: TextRange) -> Iterator[tuple[int, bytes]]:
  """Yields the lines of a range, each with the byte at which it begins, and its line end.

  Each line of a file is in exactly one range.
  """
  with open_bytes(part.path) as reader:
    position = part.start
    if part.start:
      # A line that begins exactly at `start` belongs here: the skipped one ends before it.
      reader.seek(part.start - 1)
      position += len(reader.readline()) - 1
    while part.end is None or position < part.end:
      line = _read(reader.readline, part.path)
      if not line:
        return
      yield position, line
      position += len(line)


def _read(read: Callable[[int], bytes], path: str, limit: int = -1) -> bytes:
  try:
    return read(limit)
  except (EOFError, zlib.error, gzip.BadGzipFile) as error:
    raise CorpusError(f"{path} is not a gzip file, or was cut short: {error}.") from None


def open_bytes(path: str) -> BinaryIO | gzip.GzipFile:
  """Opens a file, local or remote, compressed if its name ends in `.gz`."""
  file = filesystem.open_to_read(path)
  return _OwningGzipFile(file) if path.endswith(".gz") else file


class _OwningGzipFile(gzip.GzipFile):
  """Closes the compressed file below it, which `GzipFile` leaves open."""

  def __init__(self, file: BinaryIO):
    super().__init__(fileobj=file)
    self._file_below = file

  def close(self) -> None:
    """See base class."""
    super().close()
    self._file_below.close()


class LinePlace(NamedTuple):
  """A line of a text file."""

  path: str  # of the file
  position: int  # byte of the file at which the line begins


def describe_place(place: LinePlace) -> str:
  """Writes file and line number, counted only now: the reader of a part does not know it."""
  return f"{place.path}, line {line_number(place)}"


def line_number(place: LinePlace) -> int:
  """Counts the lines up to this one, which is included."""
  number, position = 1, place.position
  with open_bytes(place.path) as reader:
    while position > 0 and (data := reader.read(min(position, 1 << 20))):
      number += data.count(b"\n")
      position -= len(data)
  return number
