"""Records that `create_pretraining_data.py` makes of the sample text, and what lies beside them.

log = create(tmp_path / "out", dupe_factor=2)
assert manifest_of(tmp_path / "out")["records"] == len(framed_records(tmp_path / "out"))
"""

import gzip
import hashlib
import json
import os
import pathlib
import random
from typing import Any

import numpy as np

from bert import create_pretraining_data
from bert.io import tfrecord_bytes
from bert.pretraining import blocks, piece_tables
from bert.text import corpus_statistics, text_files
from tests.kit.paths import SAMPLE_TEXT, SAMPLE_VOCAB
from tests.kit.script_runs import Script, values_in

SCRIPT = Script(create_pretraining_data)


def flags_for(output: str | os.PathLike, text=SAMPLE_TEXT, **flags) -> dict[str, Any]:
  """The flags of a run on `text`."""
  return {"input_file": text, "output_file": output, "vocab_file": SAMPLE_VOCAB, **flags}


def create(output: str | os.PathLike, text=SAMPLE_TEXT, **flags) -> str:
  """Runs the script in this process, expects that nothing fails, and returns its log."""
  return SCRIPT.run_well(**flags_for(output, text, **flags)).err


def in_memory(tokenizer, text=SAMPLE_TEXT, seed=12345, dupe_factor=3, **options):
  """Instances of 64 tokens at most."""
  return create_pretraining_data.create_training_instances(
    [str(text)], tokenizer, 64, dupe_factor, 0.2, 0.15, 10, random.Random(seed), **options
  )


def features_of(path, settings, target_bytes=1 << 20):
  """The records of a text, made in this process: name -> array of each."""
  import tensorflow as tf

  tables = piece_tables.load_tables(settings)
  found = []
  for number, part in enumerate(text_files.text_ranges([str(path)], target_bytes)):
    statistics = corpus_statistics.TextStatistics()
    for batch in blocks.records_of_range(number, part, target_bytes, settings, tables, statistics):
      for record, length in zip(batch.records, batch.lengths, strict=True):
        features = tf.train.Example.FromString(record).features.feature
        found.append(
          {
            name: np.array(feature.int64_list.value or feature.float_list.value)
            for name, feature in features.items()
          }
        )
        assert found[-1]["input_mask"].sum() == length
  return found


def framed_records(path: str | os.PathLike) -> list[bytes]:
  """The records of a file, each with its frame."""
  data = pathlib.Path(path).read_bytes()
  data = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
  records, start = [], 0
  while start < len(data):
    end = start + tfrecord_bytes.framed_size(data[start:])
    records.append(data[start:end])
    start = end
  return records


def assert_equal_to_recording(path: pathlib.Path, recording: pathlib.Path) -> None:
  """Records are those of an original, which were written down as lines of JSON, in its order."""
  with gzip.open(recording, "rt", encoding="utf-8") as lines:
    expected = [json.loads(line) for line in lines]
  found = values_in(path)
  assert len(found) == len(expected)
  for ours, original in zip(found, expected, strict=True):
    assert ours == original


def manifest_of(path: pathlib.Path) -> dict[str, Any]:
  """The facts that stand beside a file of records."""
  return json.loads((path.parent / f".{path.name}.manifest.json").read_text())


def sha256(path: pathlib.Path) -> str:
  """Of a file's content."""
  return hashlib.sha256(path.read_bytes()).hexdigest()


def names(folder: pathlib.Path) -> list[str]:
  """Of the files in a folder, hidden ones included."""
  return sorted(path.name for path in folder.iterdir())
