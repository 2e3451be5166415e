"""Answers and vectors of many texts by Apache Beam: `--runner=beam` of the scripts that predict.

  write_shards(work, input_files, "/shared/out.jsonl", "--runner=FlinkRunner ...")

`text_shards.py` cuts the text. A worker loads the model once in each of its processes, computes one
shard at a time, and writes its file, which appears when it is complete; results never pass through
the runner. A shard whose file is there is not computed again: a worker that dies costs the shard it
was at, and the same command goes on where a run was killed.

With `batch_invariant` the files one after the other equal the file of one process, bit for bit.
Otherwise the last bits of numbers may differ, as texts meet other texts in their batches.
"""

import json
import os
import threading
from collections.abc import Iterable, Sequence

import apache_beam as beam
from absl import logging
from apache_beam.metrics import Metrics
from apache_beam.utils.shared import Shared

from bert.clusters import attempts, pipelines
from bert.io import atomic_files, filesystem
from bert.predicting import text_shards
from bert.predicting.text_shards import Shard, ShardLines
from bert.text.text_files import TextRange

_COUNTERS = "predicting"


def write_shards(
  work: text_shards.Work,
  input_files: Sequence[str],
  output_file: str,
  beam_args: str = "",
  num_shards: int = 0,
  needs_index: bool = False,
) -> list[str]:
  """Writes the results of all lines of text files; returns the names of the files, in order.

  Args:
    work: what is done with the lines.
    input_files: the text.
    output_file: the beginning of the names.
    beam_args: options of Beam and its runner, as on a command line.
    num_shards: see `text_shards.plan`.
    needs_index: whether the work needs the number of a line in all of the text; it is counted in a
      pipeline of its own, before.

  Raises:
    WorkError: a line, the model or a file cannot be used.
    RunnerError: the options cannot be read, or the runner failed.
    ShardError: files of another run are in the way, or the files are not where they should be.
  """
  shards = text_shards.plan(output_file, input_files, num_shards)
  facts = {"text": text_shards.identity(*input_files), **work.facts()}
  names = [shard.output for shard in shards]
  if waiting := text_shards.claim(shards, output_file, facts):
    if needs_index:
      counts = _line_counts(shards, output_file, beam_args)
      first_lines = {shard.output: shard for shard in text_shards.numbered(shards, counts)}
      waiting = [first_lines[shard.output] for shard in waiting]
    _compute(work, waiting, beam_args)
  attempts.remove_remains(names)
  text_shards.check_complete(shards, output_file)
  logging.info("Wrote %s: %d files, %s first.", output_file, len(names), names[0])
  return names


def _compute(work: text_shards.Work, shards: Sequence[Shard], beam_args: str) -> None:
  pipeline = pipelines.create(beam_args)
  _ = (
    pipeline
    | "Shards"
    >> beam.Create([(each.output, tuple(each.text), each.first_index) for each in shards])
    | "DealShards" >> beam.Reshuffle()
    | "WriteShards" >> beam.ParDo(WriteShard(work))
  )
  counts = pipelines.counted(pipelines.run(pipeline, beam_args), _COUNTERS)
  logging.info("%d lines were read.", counts.get("lines", 0))


class _Loaded:
  """A model in a process of a worker, and a lock: one thread at a time uses it.

  The model itself takes all cores, and so no more than one chunk of texts is in memory.
  """

  def __init__(self, work: text_shards.Work):
    self.model = work.load()
    self.lock = threading.Lock()


class WriteShard(beam.DoFn):
  """(output file, range of text, index of its first line) -> no elements; writes the file."""

  def __init__(self, work: text_shards.Work):
    self._work = work
    self._shared = Shared()  # its copies in one process share one model

  def setup(self) -> None:
    """Loads the model, unless this process has it already."""
    with pipelines.explained():
      self._loaded = self._shared.acquire(lambda: _Loaded(self._work))

  def process(self, element: tuple[str, tuple, int]) -> None:
    """Writes one file; a repetition changes nothing."""
    output, part, first_index = element
    with pipelines.explained(), self._loaded.lock:
      # A runner may repeat what a lost worker had finished.
      if filesystem.exists(output):
        return
      with attempts.whole(output) as path:
        lines = ShardLines(TextRange(*part))
        count = self._work.write(self._loaded.model, path, lines, first_index)
    Metrics.counter(_COUNTERS, "lines").inc(count)


# ---------------------------------------------------------------------------------------------
# Lines before each shard.


def _line_counts(shards: Sequence[Shard], output_file: str, beam_args: str) -> list[int]:
  """Counts the lines of each shard, on all machines; they come back through a file."""
  path = atomic_files.hidden_beside(output_file, "lines.json")
  pipeline = pipelines.create(beam_args)
  _ = (
    pipeline
    | "Parts" >> beam.Create([(n, tuple(each.text)) for n, each in enumerate(shards)])
    | "DealParts" >> beam.Reshuffle()
    | "CountLines" >> beam.Map(_count_lines)
    | "GatherCounts" >> beam.GroupByKey()
    | "WriteCounts" >> beam.Map(_write_counts, path)
  )
  pipelines.run(pipeline, beam_args)
  try:
    counts = dict(json.loads(filesystem.read_bytes(path)))
    filesystem.remove(path)
  except FileNotFoundError:
    raise text_shards.ShardError(
      f"{os.path.dirname(output_file) or '.'} is not the folder that the workers see: {path} is "
      "not here. The output must be a path that all machines share."
    ) from None
  return [counts[number] for number in range(len(shards))]


def _count_lines(element: tuple[int, tuple]) -> tuple[int, tuple[int, int]]:
  number, part = element
  with pipelines.explained():
    return 0, (number, text_shards.count_lines(TextRange(*part)))


def _write_counts(element: tuple[int, Iterable[tuple[int, int]]], path: str) -> None:
  with pipelines.explained(), attempts.whole(path) as name:
    atomic_files.write_text(name, json.dumps(sorted(map(list, element[1]))))
