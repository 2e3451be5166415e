"""Record files: written whole or not at all, in the original's bytes; faults are named."""

import gzip
import json

import pytest
import tensorflow as tf

from bert.io import record_files
from bert.io.record_files import RecordError, records_of, write_records


def write(path, count):
  write_records(path, ({"label_ids": [number], "weight": 0.5} for number in range(count)))
  return str(path)


def test_records_have_the_original_types_and_one_order_of_bytes(tmp_path):
  path = tmp_path / "a.tf_record"
  more = {f"name_{number:02}": number for number in range(20)}
  assert write_records(path, [{**more, "b": [1, 2], "a": 0.5, "c": True, "d": "x"}]) == 1
  raw = next(iter(tf.data.TFRecordDataset(str(path)))).numpy()
  feature = tf.train.Example.FromString(raw).features.feature
  assert list(feature["b"].int64_list.value) == [1, 2]
  assert list(feature["a"].float_list.value) == [0.5]
  assert list(feature["c"].int64_list.value) == [1]
  assert list(feature["d"].bytes_list.value) == [b"x"]
  places = [raw.index(name.encode()) for name in sorted(more)]
  assert places == sorted(places)


def test_unwritable_path_is_named(tmp_path):
  with pytest.raises(OSError, match=r"nowhere/a\.tf_record"):
    write_records(tmp_path / "nowhere" / "a.tf_record", [{"a": [1]}])


def test_the_manifest_says_whether_a_file_is_compressed(tmp_path):
  path = tmp_path / "a"
  write(path, count=2)
  manifest = tmp_path / ".a.manifest.json"
  manifest.unlink()
  path.write_bytes(gzip.compress(path.read_bytes()))
  assert record_files.compression_of(path) == "GZIP"
  manifest.write_text('{"compression": "GZIP"}')
  assert len(list(records_of(path))) == 2
  manifest.write_text('{"compression": ""}')
  assert record_files.compression_of(path) == ""
  manifest.unlink()
  assert record_files.compression_of(write(tmp_path / "b", count=1)) == ""


def test_counting_checks_the_manifest(tmp_path):
  path = tmp_path / "a"
  write(path, count=6)
  manifest = tmp_path / ".a.manifest.json"
  facts = json.loads(manifest.read_text())
  manifest.write_text(json.dumps({**facts, "bytes": facts["bytes"] + 1}))
  with pytest.raises(RecordError, match="cut short or changed"):
    list(records_of(path))
  manifest.write_text(json.dumps({**facts, "records": 7}))
  with pytest.raises(RecordError, match="holds 6 records, but was written with 7"):
    list(records_of(path))


def test_a_remote_file_is_read(tmp_path):
  remote = f"file://{write(tmp_path / 'a', count=3)}"
  assert list(records_of(remote)) == list(records_of(tmp_path / "a"))
  (tmp_path / "a").write_bytes((tmp_path / "a").read_bytes()[:-1])
  with pytest.raises(RecordError, match=r"file:///.*a has \d+ bytes, but was written with"):
    list(records_of(remote))
  with pytest.raises(RecordError, match="missing does not exist"):
    list(records_of(f"file://{tmp_path / 'missing'}"))
