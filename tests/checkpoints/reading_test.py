"""What the original wrote comes back byte for byte; damage is found and named."""

import json
import os
import pathlib
import shutil

import pytest
import tensorflow as tf

from bert.checkpoints import bundle_files, finding, loading, reading, saving
from bert.checkpoints.bundle_files import CheckpointError
from tests.kit.checkpoint_names import CLASSIFIER_HEADS, PRETRAINING_HEADS, names_in_training
from tests.kit.script_runs import assert_same_values, tensors
from tests.kit.small_checkpoints import DATA, save, values_of, variables_of

GOLDENS = pytest.mark.parametrize(
  ("name", "heads"),
  [
    ("tiny_pretrain_20steps.ckpt", PRETRAINING_HEADS),
    ("tiny_classifier_20steps.ckpt", CLASSIFIER_HEADS),
  ],
)


@GOLDENS
def test_the_original_s_checkpoint_comes_back_byte_for_byte(golden_dir, tmp_path, name, heads):
  source = str(golden_dir / name)
  contents = reading.names_and_shapes(source)
  assert set(contents) == names_in_training(2, heads)
  assert reading.read_state(source) == {}
  restored = {n: tf.Variable(tf.zeros(shape, dtype)) for n, (shape, dtype) in contents.items()}
  loading.restore(source, restored)
  assert restored["global_step"].numpy() == 20

  written = saving.save(str(tmp_path), 20, restored, {})
  assert reading.names_and_shapes(written) == contents
  assert_same_values(tensors(written), tensors(source))
  assert pathlib.Path(written + DATA).read_bytes() == pathlib.Path(source + DATA).read_bytes()


# ---------------------------------------------------------------------------------------------
# Damage


def _damaged(content: bytes, block: int):
  """(description, content) with the file cut at each block, and one bit of each block flipped."""
  for cut in range(0, len(content), block):
    yield f"cut at {cut}", content[:cut]
  for place in range(block // 2, len(content), block):
    yield (
      f"flipped at {place}",
      content[:place] + bytes([content[place] ^ 4]) + content[place + 1 :],
    )


@pytest.mark.parametrize(("suffix", "block"), [(DATA, 19), (".index", 3), (".state.json", 5)])
def test_damage_is_found_and_named(tmp_path, suffix, block):
  prefix = save(tmp_path, 20)
  path = pathlib.Path(prefix + suffix)
  content = path.read_bytes()
  for what, damaged in _damaged(content, block):
    path.write_bytes(damaged)
    with pytest.raises(CheckpointError, match=r"model\.ckpt-20") as error:
      loading.restore(prefix, variables_of(values_of(20)))
    assert str(path) in str(error.value), what
    shown = error.value.__cause__ or (
      None if error.value.__suppress_context__ else error.value.__context__
    )
    assert shown is None, f"{what}: TensorFlow's traceback is shown"
    if what.startswith("cut") or suffix != DATA:
      assert finding.latest(str(tmp_path)) is None, what


def test_a_damaged_index_without_a_sidecar(tmp_path):
  """As in the original's checkpoints: the index's own checksums find it, or it is harmless."""
  prefix = save(tmp_path, 20)
  os.remove(prefix + ".state.json")
  path = pathlib.Path(prefix + ".index")
  messages = []
  for what, damaged in _damaged(path.read_bytes(), block=3):
    path.write_bytes(damaged)
    restored = variables_of(values_of(20))
    try:
      loading.restore(prefix, restored)
    except CheckpointError as error:
      messages.append(str(error))
    else:  # a byte of padding
      assert "flipped" in what
      assert_same_values({name: v.numpy() for name, v in restored.items()}, values_of(20))
  assert all("model.ckpt-20" in message for message in messages)
  assert len(messages) > 100


def test_swapped_files_are_found(tmp_path):
  first, second = (save(tmp_path, step) for step in (1, 2))
  shutil.copy(first + DATA, second + DATA)  # same size: the values' checksums find it
  with pytest.raises(CheckpointError, match="is damaged"):
    loading.restore(second, variables_of(values_of(2)))
  shutil.copy(first + ".index", second + ".index")  # a consistent pair, of another step
  assert finding.latest(str(tmp_path)) == first


def test_a_sidecar_of_a_newer_version(tmp_path):
  prefix = save(tmp_path, 1)
  path = pathlib.Path(prefix + ".state.json")
  sidecar = json.loads(path.read_text())
  del sidecar["crc32"]
  sidecar["format_version"] = 99
  path.write_text(json.dumps({**sidecar, "crc32": bundle_files._checksum(sidecar)}))
  with pytest.raises(CheckpointError, match="format_version 99, this program reads 1"):
    reading.read_state(prefix)
