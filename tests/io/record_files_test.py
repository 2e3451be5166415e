"""Record files: written whole or not at all, in the original's bytes; faults are named."""

import gzip
import json
import os
import subprocess
import sys

import pytest
import tensorflow as tf

from bert.io import record_files
from bert.io.record_files import RecordError, records_of, serialize_example, write_records
from tests.kit.paths import ROOT


def write(path, count):
  write_records(path, ({"label_ids": [number], "weight": 0.5} for number in range(count)))
  return str(path)


@pytest.mark.mutation("bert.io.record_files", "keyword deterministic")
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


@pytest.mark.ci
def test_bytes_do_not_depend_on_the_process():
  program = (
    "import sys; from bert.io import record_files;"
    "sys.stdout.write(record_files.serialize_example({f'f_{i}': [i] for i in range(20)}).hex())"
  )
  other = subprocess.run(
    [sys.executable, "-c", program],
    cwd=ROOT,
    env={**os.environ, "PYTHONHASHSEED": "1"},
    capture_output=True,
    text=True,
    check=True,
  ).stdout
  assert other == serialize_example({f"f_{i}": [i] for i in reversed(range(20))}).hex()


def test_unstorable_value_is_named():
  with pytest.raises(TypeError, match="label_ids"):
    serialize_example({"label_ids": [None]})


@pytest.mark.mutation("bert.io.record_files:write_records", 'written_whole() -> open({0}, "wb")')
@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_interrupted_writing_leaves_the_old_file_and_no_other(tmp_path, error):
  path = tmp_path / "a.tf_record"
  write(path, count=3)

  def examples():
    yield {"label_ids": [0]}
    raise error

  with pytest.raises(error):
    write_records(path, examples())
  assert sorted(os.listdir(tmp_path)) == [".a.tf_record.manifest.json", "a.tf_record"]
  assert len(list(records_of(path))) == 3


@pytest.mark.ci
def test_killed_writing_leaves_no_final_name(tmp_path):
  path = tmp_path / "a.tf_record"
  program = (
    "import os, sys; from bert.io import record_files\n"
    "def examples():\n"
    "  yield {'a': [1]}\n"
    "  os._exit(9)\n"
    "record_files.write_records(sys.argv[1], examples())\n"
  )
  process = subprocess.run(
    [sys.executable, "-c", program, str(path)], cwd=ROOT, capture_output=True
  )
  assert process.returncode == 9
  assert not path.exists()
  write(path, count=2)
  assert sorted(os.listdir(tmp_path)) == [".a.tf_record.manifest.json", "a.tf_record"]


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


@pytest.mark.mutation("bert.io.record_files:records_of", "guard")
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
