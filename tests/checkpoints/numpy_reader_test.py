"""The reader of TensorFlow's checkpoints without TensorFlow."""

import pathlib
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

from bert.checkpoints.bundle_files import CheckpointError
from bert.checkpoints.numpy_reader import CheckpointReader
from tests.kit.paths import ROOT


@pytest.fixture
def written(tmp_path):
  """A checkpoint as TensorFlow writes it, and its values; many names, so several blocks."""
  pytest.importorskip("tensorflow")
  from bert.checkpoints import saving

  generator = np.random.default_rng(0)
  values = {
    f"bert/encoder/layer_{i}/attention/self/query/kernel": generator.normal(size=(i + 1, 3)).astype(
      "float32"
    )
    for i in range(300)
  }
  values |= {
    "global_step": np.int64(7),
    "empty": np.zeros((0, 4), "float32"),
    "half": np.ones(3, "float16"),
    "small": np.arange(4, dtype="int32"),
    "brain": np.ones(3, ml_dtypes.bfloat16),
    **{kind: np.array([0, 1, 2], kind) for kind in ("u1", "i1", "u2", "i2", "u4", "u8", "f8", "?")},
  }
  return saving.save(tmp_path / "run", 7, values, state={}), values


def test_reads_what_tensorflow_writes(written):
  prefix, values = written
  reader = CheckpointReader(prefix)
  contents = {name: (list(value.shape), value.dtype) for name, value in values.items()}
  assert reader.contents == contents
  for name, value in values.items():
    read = reader.read(name)
    assert read.dtype == value.dtype
    np.testing.assert_array_equal(read, value)


def test_damaged_values_are_noticed(written):
  prefix, values = written
  path = pathlib.Path(prefix + ".data-00000-of-00001")
  content = bytearray(path.read_bytes())
  content[len(content) // 2] ^= 1
  path.write_bytes(content)
  reader, damaged = CheckpointReader(prefix), []
  for name in values:
    try:
      reader.read(name)
    except CheckpointError:
      damaged.append(name)
  assert len(damaged) == 1
  path.write_bytes(content[:100])
  with pytest.raises(CheckpointError, match="is damaged"):
    reader.read("small")
  path.unlink()
  with pytest.raises(CheckpointError, match="does not exist"):
    reader.read("small")


def test_needs_no_tensorflow(golden_dir):
  code = """
import sys; from bert.checkpoints import finding
checkpoint = finding.find(sys.argv[1])
total = sum(checkpoint.read(name).size for name in checkpoint.contents)
assert "tensorflow" not in sys.modules
print(total)
"""
  folder = str(golden_dir / "tiny")
  done = subprocess.run(
    [sys.executable, "-c", code, folder], cwd=ROOT, capture_output=True, text=True, check=True
  )
  values = golden_dir / "tiny" / "bert_model.ckpt.data-00000-of-00001"
  assert int(done.stdout) * 4 == values.stat().st_size


def test_tensorflow_reads_what_is_written_without_it(tmp_path):
  from bert.checkpoints import numpy_writer

  (tmp_path / "file").touch()
  with pytest.raises(OSError, match="file/model"):
    numpy_writer.write(tmp_path / "file" / "model", {"a": np.zeros(2, np.float32)})
  numpy_writer.write(tmp_path / "model", {"a": np.ones(2, ml_dtypes.bfloat16), "b": np.int64(3)})
  reader = CheckpointReader(str(tmp_path / "model"))
  assert reader.read("a").tolist() == [1, 1]
  assert reader.read("b") == 3
  import tensorflow as tf

  theirs = tf.train.load_checkpoint(str(tmp_path / "model"))
  assert theirs.get_tensor("a").tolist() == [1, 1]
  assert theirs.get_tensor("b") == 3
