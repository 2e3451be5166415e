"""A text in parts that many machines work on, and the files of their results.

  shards = plan("out.jsonl", text_files.find_input_files("texts/*.txt"), num_shards=10)
  for shard in claim(shards, "out.jsonl", facts):       # those that are not there yet
    lines = ShardLines(shard.text)
    ...                                                 # writes shard.output from these lines

The lines of a part are consecutive, and each part has an output file of its own, such as
`out.jsonl-00003-of-00010`. So nothing is sorted, no machine needs more than a part, and the files
one after the other hold the results in the order of the text.
"""

import functools
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from absl import logging

from bert.io import atomic_files, filesystem, text_lines
from bert.tasks import kinds
from bert.text import text_files

# Text of a shard: seconds of work at least, and minutes at most; in between, a thousandth of all.
_LEAST_BYTES, _MOST_BYTES, _SHARDS = 64 << 10, 16 << 20, 1000


class Shard(NamedTuple):
  """A part of the text and its output file."""

  output: str  # path of the file
  text: text_files.TextRange  # the part
  first_index: int = 0  # the number of lines before it in all of the text, where that is needed


class Work(NamedTuple):
  """What workers do with a shard. It is sent to them, so it holds paths and values, no model."""

  load_predictor: functools.partial  # `Predictor.load` of a model, by its path
  # Called with the predictor, the path of a file, `ShardLines`, the index of the first and, for
  # errors, `source`, it writes the results, and returns the number of lines.
  write_lines: functools.partial
  plugins: tuple[str, ...] = ()  # files of custom tasks

  def load(self) -> Any:
    """Loads the model; once in each process of a worker."""
    kinds.load_plugins(*self.plugins)
    return self.load_predictor()

  def write(self, predictor: Any, path: str, lines: "ShardLines", first_index: int) -> int:
    """Writes the results of lines to a file, and returns the number of lines."""
    return self.write_lines(predictor, path, lines, first_index, source=lines.place)

  def facts(self) -> dict[str, Any]:
    """What decides the results, in JSON's types: shards of runs that differ do not mix."""
    calls = (self.load_predictor, self.write_lines)
    settings = [[call.func.__qualname__, call.args, call.keywords] for call in calls]
    files = (self.load_predictor.keywords.get(name) for name in ("bert_config_file", "vocab_file"))
    paths = [*self.load_predictor.args, *filter(None, files), *self.plugins]
    return {"model": identity(*map(str, paths)), "settings": settings}


# ---------------------------------------------------------------------------------------------
# The parts and their files.


def plan(output_file: str, input_files: Sequence[str], num_shards: int = 0) -> list[Shard]:
  """Cuts the text into shards, in its order.

  Args:
    output_file: the beginning of all names.
    input_files: the text; a file has a shard of its own at least, and one that is compressed or not
      on a local disk no more, since it cannot be cut.
    num_shards: this many or more; 0 leaves it to the size of the text.
  """
  total = text_files.total_bytes(input_files)
  target = -(-total // num_shards) if num_shards else _shard_bytes(total)
  parts = text_files.text_ranges(input_files, max(1, target))
  return [
    Shard(shard_name(output_file, number, len(parts)), part) for number, part in enumerate(parts)
  ]


def _shard_bytes(total_bytes: int) -> int:
  """Bytes of text of a shard.

  Example:
    >>> [_shard_bytes(total) >> 10 for total in (1 << 20, 1 << 30, 1 << 40)]
    [64, 1048, 16384]
  """
  return min(_MOST_BYTES, max(_LEAST_BYTES, total_bytes // _SHARDS))


def shard_name(output_file: str, number: int, count: int) -> str:
  """Names a shard's file as Beam and TensorFlow do.

  Example:
    >>> shard_name("out.jsonl", 3, 10)
    'out.jsonl-00003-of-00010'
  """
  return f"{output_file}-{number:05d}-of-{count:05d}"


# ---------------------------------------------------------------------------------------------
# Lines.


class ShardLines:
  """The lines of a part of a file, as `text_lines.read_lines` yields those of a whole one."""

  def __init__(self, part: text_files.TextRange):
    self._part = part
    self._start = part.start  # where its first line begins

  def __iter__(self) -> Iterator[str]:
    """Yields the lines; the DataError of one that is not UTF-8 names it."""
    for number, (position, line) in enumerate(text_files.read_lines(self._part), start=1):
      if number == 1:
        self._start = position
      try:
        yield text_lines.decode(line, begins_file=position == 0)
      except UnicodeDecodeError as error:
        raise text_lines.not_utf8(error, self._part.path, self._number_in_file(number)) from None

  def place(self, number: int) -> str:
    """Says in which line of the file the n-th line of this part is; n counts from 1."""
    return text_lines.place(self._part.path, self._number_in_file(number))

  def _number_in_file(self, number: int) -> int:
    """Counted only now, for an error: the reader of a part does not know what was before it."""
    first = text_files.line_number(text_files.LinePlace(self._part.path, self._start))
    return first + number - 1


def count_lines(part: text_files.TextRange) -> int:
  """Counts the lines that `ShardLines` yields."""
  return sum(1 for _ in text_files.read_lines(part))


def numbered(shards: Sequence[Shard], counts: Sequence[int]) -> list[Shard]:
  """Returns the shards with their `first_index`, from the number of lines of each.

  Example:
    >>> part = text_files.TextRange("a", 0, None)
    >>> [shard.first_index for shard in numbered([Shard("x", part), Shard("y", part)], [7, 2])]
    [0, 7]
  """
  placed, before = [], 0
  for shard, count in zip(shards, counts, strict=True):
    placed.append(shard._replace(first_index=before))
    before += count
  return placed


# ---------------------------------------------------------------------------------------------
# Files of earlier runs.


class ShardError(ValueError):
  """Files of another run are where the results should go, or results are not where they should."""


def claim(shards: Sequence[Shard], output_file: str, facts: Mapping[str, Any]) -> list[Shard]:
  """Returns the shards that are not there yet, and notes in a file what run they are of.

  A run that was killed so goes on where it stopped, while files of a run with another text, model
  or settings stay what they are.

  Args:
    shards: all of them.
    output_file: the beginning of their names.
    facts: what decides the content of the shards.

  Raises:
    ShardError: there are files of another run.
  """
  note = _note_path(output_file)
  facts = json.loads(json.dumps({**facts, "shards": len(shards)}, default=str))
  there = set(existing(output_file))
  if there and (different := _differences(note, facts)):
    raise ShardError(
      f"{min(there)} is there already, of another run ({different}). Remove "
      f"{output_file}-*-of-*, or give another --output_file."
    )
  atomic_files.write_text(note, json.dumps(facts, indent=1) + "\n")
  waiting = [shard for shard in shards if shard.output not in there]
  if there:
    logging.info("%d of %d files are there already, of this run.", len(there), len(shards))
  return waiting


def existing(output_file: str) -> list[str]:
  """Lists the files that `shard_name` may have named, whatever their number."""
  folder, name = os.path.split(output_file)
  form = re.compile(re.escape(name) + r"-\d{5,}-of-\d{5,}")
  names = filesystem.list_folder(folder or ".")
  return [os.path.join(folder, each) for each in names if form.fullmatch(each)]


def _note_path(output_file: str) -> str:
  return atomic_files.hidden_beside(output_file, "run.json")


def _differences(note: str, facts: Mapping[str, Any]) -> str:
  """Names what differs from the run that wrote a note; empty if nothing does."""
  try:
    stored = json.loads(filesystem.read_bytes(note))
    names = sorted({*stored, *facts})
    return ", ".join(f"other {n}" for n in names if stored.get(n) != facts.get(n))
  except (OSError, ValueError, TypeError, AttributeError):
    return f"{note} does not say which"


def check_complete(shards: Sequence[Shard], output_file: str) -> None:
  """Raises an ShardError if a file is missing at the end of a run."""
  there = set(existing(output_file))
  missing = [shard.output for shard in shards if shard.output not in there]
  if missing:
    raise ShardError(
      f"{missing[0]} is not here at the end: the workers wrote it to a disk of their own. The "
      "output must be a path that all machines share."
    )


def identity(*paths: str) -> list[list]:
  """Returns name, size and time of change of files, of all files of folders, and of prefixes.

  It differs where a model or a text has changed. Of remote files it is the name alone.
  """
  found = []
  for path in paths:
    for each in _files(path):
      status = os.stat(each)
      found.append([each, status.st_size, status.st_mtime_ns])
    if filesystem.is_remote(path):
      found.append([path])
  return found


def _files(path: str) -> list[str]:
  if filesystem.is_remote(path):
    return []
  if os.path.isdir(path):
    walk = os.walk(path)
    return sorted(os.path.join(folder, name) for folder, _, names in walk for name in names)
  folder, name = os.path.split(path)
  names = filesystem.list_folder(folder or ".")
  if os.path.isfile(path):
    return [path]
  return [os.path.join(folder, each) for each in names if each.startswith(f"{name}.")]
