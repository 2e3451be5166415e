"""Which checkpoint is meant: by a user, and by a run that resumes."""

import os
import shutil

import pytest
import tensorflow as tf

from bert.checkpoints import finding, loading, saving
from bert.checkpoints.bundle_files import CheckpointError
from tests.kit.script_runs import assert_same_values
from tests.kit.small_checkpoints import DATA, save, values_of, variables_of


def _released(folder) -> None:
  """A folder as the released archives unpack it."""
  os.makedirs(folder)
  prefix = save(folder, 1)
  for suffix in (".index", DATA):
    os.rename(prefix + suffix, os.path.join(folder, "bert_model.ckpt" + suffix))
  os.remove(prefix + ".state.json")
  os.remove(os.path.join(folder, "checkpoint"))


def test_what_init_checkpoint_accepts(tmp_path):
  _released(tmp_path / "uncased")
  released = str(tmp_path / "uncased" / "bert_model.ckpt")
  for path in (released, released + ".index", released + DATA, tmp_path / "uncased"):
    assert finding.find_checkpoint(path) == released
  double_slash = released.replace("/bert_model", "//bert_model")  # from DIR=.../uncased/
  assert finding.find_checkpoint(double_slash) == double_slash
  assert finding.find_checkpoint(str(tmp_path / "uncased") + "/") == released
  own = [save(tmp_path / "out", step) for step in (5, 10)]
  assert finding.find_checkpoint(str(tmp_path / "out")) == own[1]
  assert finding.find_checkpoint(own[0]) == own[0]


def test_the_best_weights_of_a_run_come_before_the_newest(tmp_path):
  newest, best = save(tmp_path / "out", 10), save(tmp_path / "out" / "best", 5)
  assert finding.find_checkpoint(str(tmp_path / "out")) == best
  assert finding.find_checkpoint(newest) == newest
  assert finding.latest(str(tmp_path / "out")) == newest, "to resume from"


def test_the_best_weights_of_a_run_that_went_on_without_evaluation_are_of_the_past(tmp_path):
  best = save(tmp_path / "out" / "best", 5)
  for left, expected in ((False, best), (True, str(tmp_path / "out" / "model.ckpt-10"))):
    saving.save(tmp_path / "out", 10, {"a": [1.0]}, {"run": {"left_best": left}})
    assert finding.find_checkpoint(str(tmp_path / "out")) == expected
    assert finding.best(str(tmp_path / "out")) == (None if left else best)


def test_several_checkpoints_in_a_folder(tmp_path):
  _released(tmp_path / "a")
  for suffix in (".index", DATA):
    for name in ("one", "two"):
      shutil.copy(tmp_path / "a" / f"bert_model.ckpt{suffix}", tmp_path / (name + suffix))
  with pytest.raises(CheckpointError, match="several checkpoints, name one: one, two"):
    finding.find_checkpoint(str(tmp_path))


def test_saved_models_and_object_based_checkpoints(tmp_path):
  module = tf.Module()
  module.kernel = tf.Variable(tf.ones([2]))
  tf.saved_model.save(module, str(tmp_path / "export"))
  with pytest.raises(CheckpointError, match="is a SavedModel"):
    finding.find_checkpoint(str(tmp_path / "export"))
  prefix = tf.train.Checkpoint(m=module).write(str(tmp_path / "tf2"))
  for path in (prefix, str(tmp_path / "export" / "variables" / "variables")):
    with pytest.raises(CheckpointError, match=r"_CHECKPOINTABLE_OBJECT_GRAPH.*Load it with"):
      finding.find_checkpoint(path)
    with pytest.raises(CheckpointError, match="object-based"):
      loading.init_from_checkpoint(path, {"x": module.kernel})


# ---------------------------------------------------------------------------------------------
# The `checkpoint` file


@pytest.mark.parametrize("content", [b"", b"\0\xff\xfe", b"model_checkpoint_path: ", b"{}" * 999])
def test_a_garbage_pointer(tmp_path, warnings, content):
  save(tmp_path, 9)
  newest = save(tmp_path, 10)
  (tmp_path / "checkpoint").write_bytes(content)
  assert finding.latest(str(tmp_path)) == newest
  assert len(warnings) == 1
  assert f"{tmp_path}/checkpoint is damaged" in warnings[0]
  assert save(tmp_path, 11) == finding.latest(str(tmp_path))
  assert len(warnings) == 1


def test_a_pointer_to_a_deleted_step(tmp_path, warnings):
  older = [save(tmp_path, step) for step in (9, 10, 11)][1]
  for path in tmp_path.glob("model.ckpt-11.*"):
    path.unlink()
  assert finding.latest(str(tmp_path)) == older
  assert len(warnings) == 1
  assert "model.ckpt-11.index does not exist" in warnings[0]
  assert older in warnings[0]


def test_the_pointer_wins_over_newer_steps(tmp_path, warnings):
  older, _ = (save(tmp_path, step) for step in (9, 10))
  (tmp_path / "checkpoint").write_text('model_checkpoint_path: "model.ckpt-9"\n')
  assert finding.latest(str(tmp_path)) == older
  assert warnings == []


def test_an_absolute_pointer_survives_moving_the_folder(tmp_path, warnings):
  save(tmp_path / "before", 9)
  pointer = tmp_path / "before" / "checkpoint"
  pointer.write_text(f'model_checkpoint_path: "{tmp_path}/before/model.ckpt-9"\n')
  assert finding.latest(str(tmp_path / "before")) == str(tmp_path / "before" / "model.ckpt-9")
  os.rename(tmp_path / "before", tmp_path / "after")
  assert finding.latest(str(tmp_path / "after")) == str(tmp_path / "after" / "model.ckpt-9")
  assert warnings == []


def test_a_missing_data_file_or_index(tmp_path, warnings):
  older, _, _ = (save(tmp_path, step) for step in (9, 10, 11))
  (tmp_path / ("model.ckpt-11" + DATA)).unlink()
  (tmp_path / "model.ckpt-10.index").unlink()
  assert finding.latest(str(tmp_path)) == older
  assert len(warnings) == 1
  assert finding.list_checkpoints(str(tmp_path)) == [(9, older)]


def test_several_data_files(tmp_path):
  halves = dict(list(values_of(5).items())[:3]), dict(list(values_of(5).items())[3:])
  parts = []
  for i, half in enumerate(halves):
    parts.append(saving.save(str(tmp_path / str(i)), 1, half, {}))
  merged = str(tmp_path / "model.ckpt-5")
  tf.raw_ops.MergeV2Checkpoints(checkpoint_prefixes=parts, destination_prefix=merged)
  assert (tmp_path / "model.ckpt-5.data-00001-of-00002").exists()
  assert finding.latest(str(tmp_path)) == merged
  sidecar = tmp_path / "model.ckpt-5.state.json"  # of another checkpoint: it names other files
  shutil.copy(parts[0] + ".state.json", sidecar)
  assert finding.latest(str(tmp_path)) is None
  sidecar.unlink()
  restored = variables_of(values_of(5))
  loading.restore(merged, restored)
  assert_same_values({name: v.numpy() for name, v in restored.items()}, values_of(5))
  (tmp_path / "model.ckpt-5.data-00001-of-00002").unlink()
  with pytest.raises(CheckpointError, match=r"data files are missing, found only .*00000-of-00002"):
    loading.restore(merged, restored)
