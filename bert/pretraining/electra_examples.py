"""ELECTRA's pre-training records: text in one or two segments, without masks.

  builder = SegmentBuilder(max_length=128, rng=random.Random(12345))
  for sentence in document:  # lists of ids
    segments = builder.add(sentence)  # None until there is enough text

As google-research/electra's `build_pretraining_dataset.py`: sentences are gathered until they have
the target length, and divided between a first segment of about half of it and a second one. Both
are consecutive text, so a record has no label, and what is too long is cut. One in ten records has
a single segment, as tasks of one text have; one in twenty has a random, shorter target length.

Two streams, as for BERT's records: `records_of_files` makes the original's records in its order
from one generator; `records_of_range` has a generator for each document, so that any number of
processes makes the same ones.
"""

import itertools
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from absl import logging

from bert.io.tfrecord_bytes import encode_examples
from bert.pretraining.piece_tables import Tables
from bert.pretraining.random_streams import stream_key
from bert.pretraining.record_output import Batch, RecordFiles
from bert.pretraining.record_settings import RecordSettings
from bert.text import corpus, corpus_statistics, text_files

_BATCH = 512  # records that are serialized together
_SINGLE_SEGMENT_SHARE = 0.1
_SHORT_SHARE = 0.05
_SHORTEST = 5  # tokens
_ONE_SEGMENT = 100000  # tokens, the original's number for "any length"


class Segments(NamedTuple):
  """The ids of a record, without [CLS] and [SEP]; the second segment may be empty."""

  first: list[int]
  second: list[int]


class SegmentBuilder:
  """Gathers sentences of ids into the segments of records.

  The random draws and their order are the original's.
  """

  def __init__(self, max_length: int, rng: random.Random):
    """Starts with a record of `max_length` tokens, special ones included."""
    self._max_length = self._target = max_length
    self._rng = rng
    self._sentences: list[Sequence[int]] = []
    self._length = 0

  def add(self, sentence: Sequence[int]) -> Segments | None:
    """Adds a sentence; returns the segments of a record when there is enough text for one."""
    self._sentences.append(sentence)
    self._length += len(sentence)
    return self._segments() if self._length >= self._target else None

  def end_document(self) -> Segments | None:
    """Returns the segments of the sentences that remain, or None if none do."""
    return self._segments() if self._length else None

  def draw_target(self) -> None:
    """Draws the length of the next record."""
    self._target = self._max_length
    if self._rng.random() < _SHORT_SHARE:
      self._target = self._rng.randint(_SHORTEST, self._max_length)

  def _segments(self) -> Segments:
    first, second = self._divided()
    first = first[: self._max_length - 2]  # [CLS], [SEP]
    second = second[: max(0, self._max_length - len(first) - 3)]
    self._sentences, self._length = [], 0
    self.draw_target()
    return Segments(first, second)

  def _divided(self) -> tuple[list[int], list[int]]:
    if self._rng.random() < _SINGLE_SEGMENT_SHARE:
      half = _ONE_SEGMENT
    else:
      half = (self._target - 3) // 2
    first: list[int] = []
    second: list[int] = []
    for sentence in self._sentences:
      # A sentence across the middle goes to either side. A short one may return to the first
      # segment after a longer one went to the second.
      if (
        not first
        or len(first) + len(sentence) < half
        or (not second and len(first) < half and self._rng.random() < 0.5)
      ):
        first += sentence
      else:
        second += sentence
    return first, second


def create_records(
  input_files: Sequence[str],
  output_files: Sequence[str],
  settings: RecordSettings,
  tables: Tables,
  facts: Mapping[str, Any],
) -> int:
  """Writes the original's records, in its order, to files in turn; returns their number.

  The arguments are those of `workers.create_records`, and `piece_tables.load_tables(settings)`.

  Raises:
    CorpusError: the text is empty, or does not have the format of the settings.
    OSError: a file cannot be written.
  """
  statistics = settings.new_statistics(total_bytes=text_files.total_bytes(input_files))
  with RecordFiles(output_files, facts) as files:
    for batch in records_of_files(input_files, settings, tables, statistics):
      files.write_batch(batch)
    statistics.log()
    if not files.count:
      raise text_files.CorpusError(f"There is no text in {', '.join(input_files)}.")
  logging.info("Wrote %d total instances", files.count)
  return files.count


def records_of_files(
  input_files: Sequence[str],
  settings: RecordSettings,
  tables: Tables,
  statistics: corpus_statistics.TextStatistics,
) -> Iterator[Batch]:
  """Yields the original's records of a corpus, in its order, for a seed.

  The files are shuffled, the records are not. The end of a file ends a document.

  Raises:
    CorpusError: a line does not have the format of the settings.
  """
  rng = random.Random(settings.random_seed)
  shuffled = list(input_files)
  rng.shuffle(shuffled)
  builder = SegmentBuilder(settings.max_seq_length, rng)
  yield from _batches(
    _segments_of_files(shuffled, settings, tables, statistics, builder), settings, tables
  )


def _segments_of_files(paths, settings, tables, statistics, builder) -> Iterator[Segments | None]:
  for path in paths:
    for ids in corpus.read_sentences([path], _Ids(tables), statistics, settings.text_format):
      yield builder.end_document() if ids is None else builder.add(ids)
    yield builder.end_document()


class _Ids:
  """In place of a tokenizer, so that sentences are read as ids."""

  def __init__(self, tables: Tables):
    self.tokenize, self.unk_token = tables.ids, tables.unknown_id


def records_of_range(
  range_number: int,
  part: text_files.TextRange,
  settings: RecordSettings,
  tables: Tables,
  statistics: corpus_statistics.TextStatistics,
) -> Iterator[Batch]:
  """As `blocks.records_of_range`; of the text, only a record's is in memory."""
  segments = _segments_of_range(range_number, part, settings, tables, statistics)
  yield from _batches(segments, settings, tables)


def _segments_of_range(
  range_number: int, part, settings: RecordSettings, tables: Tables, statistics
) -> Iterator[Segments | None]:
  document, builder = 0, None
  for sentence in corpus.read_range(part, settings.text_format, statistics):
    if sentence is None:
      if builder:
        yield builder.end_document()
        document, builder = document + 1, None
      continue
    if builder is None:
      key = stream_key(settings.random_seed, range_number, document)
      builder = SegmentBuilder(settings.max_seq_length, random.Random(key))
      builder.draw_target()  # in the original, the record before it does
    for text in corpus.parts(sentence):
      ids = tables.ids(text)
      statistics.add_sentence(len(ids), ids.count(tables.unknown_id))
      yield builder.add(ids)


def _batches(
  segments: Iterable[Segments | None], settings: RecordSettings, tables: Tables
) -> Iterator[Batch]:
  complete = filter(None, segments)
  while batch := list(itertools.islice(complete, _BATCH)):
    yield _records(batch, settings.max_seq_length, tables)


def _records(batch: Sequence[Segments], max_length: int, tables: Tables) -> Batch:
  input_ids = np.zeros((len(batch), max_length), np.int32)  # [n, S]
  first_lengths, lengths = np.zeros((2, len(batch), 1), np.int64)
  for row, (first, second) in enumerate(batch):
    ids = [tables.cls_id, *first, tables.sep_id]
    first_lengths[row] = len(ids)
    ids += [*second, tables.sep_id] if second else []
    lengths[row] = len(ids)
    input_ids[row, : len(ids)] = ids
  column = np.arange(max_length)
  features = {
    "input_ids": input_ids,
    "input_mask": column < lengths,
    "segment_ids": (column >= first_lengths) & (column < lengths),
  }
  return Batch(list(encode_examples(features)), lengths[:, 0].tolist())
