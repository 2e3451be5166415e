"""DistilBERT's records: each line of the text is a sequence of its own, without masks.

  cut([2, 5, 6, 7, 8, 3], max_length=5, cls_id=2, sep_id=3)     # [[2, 5, 6, 3], [2, 7, 8, 3]]

As the original distillation prepares its text: a line longer than a record becomes several, and a
sequence of 11 tokens or fewer, or one of which half is unknown, is left out. A record has the
features of BERT's without masks, so that every model reads it; its label means nothing.
"""

import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from bert.io.tfrecord_bytes import encode_examples
from bert.pretraining.piece_tables import Tables
from bert.pretraining.record_output import Batch
from bert.pretraining.record_settings import RecordSettings
from bert.text import corpus, corpus_statistics, text_files

_BATCH = 512  # records that are serialized together
_TOO_SHORT = 11  # tokens


def cut(ids: Sequence[int], max_length: int, cls_id: int, sep_id: int) -> list[list[int]]:
  """Returns a sequence in parts that are not too long, each between [CLS] and [SEP]."""
  if len(ids) <= max_length:
    return [list(ids)]
  parts = []
  for start in range(0, len(ids), max_length - 2):
    part = list(ids[start : start + max_length - 2])
    part = part if part[0] == cls_id else [cls_id, *part]
    parts.append(part if part[-1] == sep_id else [*part, sep_id])
  return parts


def is_kept(ids: Sequence[int], unknown_id: int) -> bool:
  """Tells whether a sequence is long enough, and less than half of it unknown."""
  return len(ids) > _TOO_SHORT and list(ids).count(unknown_id) / len(ids) < 0.5


def records_of_range(
  part: text_files.TextRange,
  settings: RecordSettings,
  tables: Tables,
  statistics: corpus_statistics.TextStatistics,
) -> Iterator[Batch]:
  """As `blocks.records_of_range`."""
  sequences = _sequences_of_range(part, settings, tables, statistics)
  while batch := list(itertools.islice(sequences, _BATCH)):
    yield _records(batch, settings.max_seq_length, tables.pad_id)


def _sequences_of_range(part, settings, tables, statistics) -> Iterator[list[int]]:
  for sentence in corpus.read_range(part, settings.text_format, statistics):
    for text in corpus.parts(sentence) if sentence is not None else ():
      ids = tables.ids(text)
      statistics.add_sentence(len(ids), ids.count(tables.unknown_id))
      whole = [tables.cls_id, *ids, tables.sep_id]
      for sequence in cut(whole, settings.max_seq_length, tables.cls_id, tables.sep_id):
        if is_kept(sequence, tables.unknown_id):
          yield sequence


def _records(batch: Sequence[Sequence[int]], max_length: int, pad_id: int) -> Batch:
  input_ids = np.full((len(batch), max_length), pad_id, np.int32)  # [n, S]
  for row, ids in enumerate(batch):
    input_ids[row, : len(ids)] = ids
  lengths = np.array([len(ids) for ids in batch])
  features = {
    "input_ids": input_ids,
    "input_mask": np.arange(max_length) < lengths[:, np.newaxis],
    "segment_ids": np.zeros_like(input_ids),
    "next_sentence_labels": np.zeros((len(batch), 1), np.int32),
  }
  return Batch(list(encode_examples(features)), lengths.tolist())
