"""Pre-training records by Apache Beam: `create_pretraining_data.py --runner=beam`.

  create_records(input_files, output_files, settings, facts, "--runner=FlinkRunner ...")

The same ranges of text are processed by the same function as with --num_workers (`blocks.py`), on
all machines of the runner, and give the same records. A hash of each record determines its output
file, so that every file contains the same records in every run; their order may differ.

Every machine needs access to the text, the vocabulary and the output under the given names, and an
installation of this project. Remote files are copied to their place when they are complete. What is
the same for all pipelines is in `bert/clusters`.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import apache_beam as beam
from absl import logging
from apache_beam.metrics import Metrics

from bert.clusters import attempts, pipelines
from bert.io.tfrecord_bytes import framed
from bert.pretraining import blocks, piece_tables, record_output
from bert.pretraining.record_settings import RecordSettings
from bert.text import corpus_statistics, text_files

_BUCKET_BYTES = 1 << 21  # of text; of its records, 4 to 6 MB, which are shuffled in memory
_BUCKETS_IF_UNKNOWN = 1 << 12
_COUNTERS = "create_pretraining_data"

# A framed record, and the number of its tokens without padding.
Record = tuple[bytes, int]


def create_records(
  input_files: Sequence[str],
  output_files: Sequence[str],
  settings: RecordSettings,
  facts: Mapping[str, Any],
  beam_args: str = "",
) -> int:
  """Writes a corpus' records to files, in random order; returns their number.

  The other arguments are those of `workers.create_records`.

  Args:
    beam_args: options of Beam and its runner, as on a command line.

  Raises:
    CorpusError: the text is empty.
    WorkError: a worker could not use the text or write a file.
    RunnerError: the options cannot be read, or the runner failed.
  """
  total_bytes = text_files.total_bytes(input_files)
  block_size = blocks.block_bytes(total_bytes)
  ranges = list(enumerate(text_files.text_ranges(input_files, block_size)))
  pass_bytes = total_bytes * settings.dupe_factor
  buckets = pass_bytes // _BUCKET_BYTES + 1 if total_bytes else _BUCKETS_IF_UNKNOWN
  pipeline = pipelines.create(beam_args)
  made = (
    pipeline
    | "Ranges" >> beam.Create(ranges)
    | "DealRanges" >> beam.Reshuffle()
    | "MakeRecords" >> beam.ParDo(MakeRecords(settings, block_size, len(output_files), buckets))
    | "GatherBuckets" >> beam.GroupByKey()
    | "ShuffleBuckets" >> beam.Map(_shuffled)
  )
  no_records = pipeline | "EveryFile" >> beam.Create([(n, []) for n in range(len(output_files))])
  _ = (
    (made, no_records)
    | beam.Flatten()
    | "GatherFiles" >> beam.GroupByKey()
    | "WriteFiles" >> beam.ParDo(WriteFile(output_files, facts))
  )
  statistics = settings.new_statistics(total_bytes=total_bytes)
  counts = pipelines.counted(pipelines.run(pipeline, beam_args), _COUNTERS)
  attempts.remove_remains(output_files)
  records = counts.get("records", 0)
  if not records:
    record_output.remove_records(output_files)
    raise text_files.CorpusError(f"There is no text in {', '.join(input_files)}.")
  for name in corpus_statistics.COUNTS:
    setattr(statistics, name, counts.get(name, 0))
  statistics.log()
  logging.info("Wrote %d total instances", records)
  return records


class MakeRecords(beam.DoFn):
  """(number, range) -> for each record ((output file, bucket), (hash, record))."""

  def __init__(self, settings, block_size: int, num_files: int, num_buckets: int):
    self._settings, self._block_size = settings, block_size
    self._num_files, self._num_buckets = num_files, num_buckets

  def setup(self) -> None:
    """Reads the vocabulary, once per process."""
    with pipelines.explained():
      self._tables = piece_tables.load_tables(self._settings)

  def process(
    self, element: tuple[int, text_files.TextRange]
  ) -> Iterator[tuple[tuple[int, int], tuple[int, Record]]]:
    """Creates the records of one range."""
    statistics = self._settings.new_statistics(logs_progress=False)
    batches = blocks.records_of_range(
      element[0],
      text_files.TextRange(*element[1]),
      self._block_size,
      self._settings,
      self._tables,
      statistics,
    )
    with pipelines.explained():
      for batch in batches:
        for record, tokens in zip(batch.records, batch.lengths, strict=True):
          key = int.from_bytes(hashlib.blake2b(record, digest_size=7).digest(), "little")
          place = key % self._num_files, key // self._num_files % self._num_buckets
          yield place, (key, (framed(record), tokens))
        Metrics.counter(_COUNTERS, "records").inc(len(batch.records))
    for name in corpus_statistics.COUNTS:
      Metrics.counter(_COUNTERS, name).inc(getattr(statistics, name))


def _shuffled(element) -> tuple[int, list[Record]]:
  """Returns a bucket's records in the order of their hashes, which is random."""
  (file_number, _), records = element
  return file_number, [record for _, record in sorted(records)]


class WriteFile(beam.DoFn):
  """(number of an output file, its buckets) -> no elements; writes the file and its manifest."""

  def __init__(self, output_files: Sequence[str], facts: Mapping[str, Any]):
    self._output_files, self._facts = list(output_files), dict(facts)

  def process(self, element: tuple[int, Iterable[list[Record]]]) -> None:
    """Writes one file; a repetition changes nothing."""
    with pipelines.explained(), attempts.whole(self._output_files[element[0]]) as path:
      with record_output.RecordFiles([path], self._facts) as files:
        for bucket in element[1]:
          for record, tokens in bucket:
            files.write_framed(record, tokens)
