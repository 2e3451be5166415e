"""bert/checkpoints/checkpoint.py: the original's files both ways, damage found, and no moment fatal
to be killed at.

Run alone: python -m pytest tests/checkpoints/checkpoint_test.py
"""

import doctest
import errno
import json
import os
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
from absl import logging

from bert.checkpoints import checkpoint
from bert.checkpoints.checkpoint import CheckpointError
from bert.model import variables
from tests.kit.paths import ROOT

DATA = ".data-00000-of-00001"
KERNEL = "bert/pooler/dense/kernel"


def _values(step: int) -> dict[str, np.ndarray]:
  """A small checkpoint's content, every value of which depends on the step."""
  kernel = np.arange(12, dtype=np.float32).reshape(3, 4) + step
  return {
    "bert/embeddings/word_embeddings": np.full([50, 4], step / 7, np.float32),
    KERNEL: kernel,
    KERNEL + "/adam_m": -kernel,
    KERNEL + "/adam_v": kernel**2,
    "output_bias": np.array([step, 0.5], np.float32),
    "global_step": np.array(step, np.int64),
  }


def _save(directory, step, **options) -> str:
  return checkpoint.save(str(directory), step, _values(step), {"position": step * 32}, **options)


def _variables(values) -> dict[str, tf.Variable]:
  return {name: tf.Variable(tf.zeros_like(value)) for name, value in values.items()}


def _read(prefix) -> dict[str, np.ndarray]:
  """All tensors, by TensorFlow's own reader."""
  reader = tf.train.load_checkpoint(str(prefix))
  return {name: np.asarray(reader.get_tensor(name)) for name in reader.get_variable_to_shape_map()}


def _assert_same(actual, expected):
  assert sorted(actual) == sorted(expected)
  for name, value in expected.items():
    assert actual[name].dtype == value.dtype, name
    assert actual[name].shape == value.shape, name
    assert actual[name].tobytes() == value.tobytes(), name


@pytest.fixture
def warnings(monkeypatch):
  """Texts of the warnings logged so far."""
  texts = []
  monkeypatch.setattr(logging, "warning", lambda text, *args: texts.append(text % args))
  return texts


def test_doctests():
  assert doctest.testmod(checkpoint).attempted > 2
  assert doctest.testmod(checkpoint).failed == 0


# ---------------------------------------------------------------------------------------------
# Round trips


def test_round_trip_of_names_values_and_state(tmp_path):
  prefix = _save(tmp_path / "new" / "folder", 20)
  assert prefix == str(tmp_path / "new" / "folder" / "model.ckpt-20")
  restored = _variables(_values(20))
  checkpoint.restore(prefix, restored)
  _assert_same({name: v.numpy() for name, v in restored.items()}, _values(20))
  assert checkpoint.read_state(prefix) == {"position": 640}
  assert checkpoint.latest(str(tmp_path / "new" / "folder")) == prefix
  assert checkpoint.names_and_shapes(prefix)[KERNEL] == ([3, 4], tf.float32)


def test_files_are_those_of_the_original_plus_the_sidecar(tmp_path):
  _save(tmp_path, 20)
  assert sorted(os.listdir(tmp_path)) == [
    "checkpoint",
    "model.ckpt-20.data-00000-of-00001",
    "model.ckpt-20.index",
    "model.ckpt-20.state.json",
  ]
  assert (tmp_path / "checkpoint").read_text() == (
    'model_checkpoint_path: "model.ckpt-20"\nall_model_checkpoint_paths: "model.ckpt-20"\n'
  )
  assert "_CHECKPOINTABLE_OBJECT_GRAPH" not in _read(tmp_path / "model.ckpt-20")


def test_every_variable_of_a_store_is_in_the_file_and_the_other_way_round(tmp_path):
  store = variables.VariableStore()
  with variables.use_store(store), variables.variable_scope("bert"):
    for layer in ("layer_0", "layer_1"):
      with variables.variable_scope(layer):
        variables.get_variable("kernel", [2, 3], variables.truncated_normal_initializer(0.02))
        variables.get_variable("bias", [3])
  with variables.use_store(store):
    variables.get_global_step().assign(7)
  prefix = checkpoint.save(str(tmp_path), 7, store.variables, {})
  assert set(_read(prefix)) == set(store.variables)
  assert {tuple(s) for s, _ in checkpoint.names_and_shapes(prefix).values()} == {(2, 3), (3,), ()}
  _assert_same(_read(prefix), {n: v.numpy() for n, v in store.variables.items()})


def test_tensorflow_1_readers(tmp_path):
  for step in (10, 20):
    _save(tmp_path, step)
  assert tf.train.latest_checkpoint(str(tmp_path)) == str(tmp_path / "model.ckpt-20")
  state = tf.train.get_checkpoint_state(str(tmp_path))
  assert list(state.all_model_checkpoint_paths) == [
    str(tmp_path / "model.ckpt-10"),
    str(tmp_path / "model.ckpt-20"),
  ]
  _assert_same(_read(tmp_path / "model.ckpt-20"), _values(20))
  with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    kernel = tf.compat.v1.get_variable(KERNEL, [3, 4])
    tf.compat.v1.train.Saver().restore(session, str(tmp_path / "model.ckpt-20"))
    np.testing.assert_array_equal(session.run(kernel), _values(20)[KERNEL])


def test_checkpoints_of_tensorflow_1_savers(tmp_path):
  with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    for name, value in _values(3).items():
      tf.compat.v1.get_variable(name, initializer=tf.constant(value))
    session.run(tf.compat.v1.global_variables_initializer())
    saver = tf.compat.v1.train.Saver()
    saver.save(session, str(tmp_path / "model.ckpt"), global_step=3)
  prefix = checkpoint.latest(str(tmp_path))
  assert prefix == str(tmp_path / "model.ckpt-3")
  assert checkpoint.read_state(prefix) == {}
  restored = _variables(_values(3))
  checkpoint.restore(prefix, restored)
  _assert_same({name: v.numpy() for name, v in restored.items()}, _values(3))
  # Our next save adopts and, beyond `keep`, removes it, with its .meta file.
  _save(tmp_path, 4, keep=1)
  assert not list(tmp_path.glob("model.ckpt-3*"))


@pytest.mark.parametrize("dtype", [tf.bfloat16, tf.float16, tf.float64, tf.int32, tf.bool])
def test_other_types(tmp_path, dtype):
  value = tf.cast([[0.0, 1.0]], dtype)
  prefix = checkpoint.save(str(tmp_path), 1, {"x": value}, {})
  variable = tf.Variable(tf.zeros_like(value))
  checkpoint.restore(prefix, {"x": variable})
  np.testing.assert_array_equal(variable.numpy(), value.numpy())


def test_mirrored_variables(tmp_path):
  devices = tf.config.list_logical_devices("CPU")
  strategy = tf.distribute.MirroredStrategy([device.name for device in devices])
  with strategy.scope():
    mirrored = tf.Variable(tf.ones([2, 3]))
  prefix = checkpoint.save(str(tmp_path), 1, {"x": mirrored}, {})
  mirrored.assign(tf.zeros([2, 3]))
  with strategy.scope():
    checkpoint.restore(prefix, {"x": mirrored})
  np.testing.assert_array_equal(mirrored.numpy(), np.ones([2, 3]))


def test_restoring_while_a_function_is_traced(tmp_path):
  prefix = checkpoint.save(str(tmp_path), 1, {"x": tf.ones([2])}, {})
  variable = tf.Variable(tf.zeros([2]))

  @tf.function
  def step():
    checkpoint.init_from_checkpoint(prefix, {"x": variable})
    variable.assign_add(tf.ones([2]))

  step()
  step()
  assert variable.numpy().tolist() == [3.0, 3.0]


# ---------------------------------------------------------------------------------------------
# What the original wrote


def _bert_names(layers: int, heads: list[str]) -> set[str]:
  """All names of a training checkpoint of the original."""
  names = [f"bert/embeddings/{kind}_embeddings" for kind in ("word", "token_type", "position")]
  dense = ["bert/pooler/dense"]
  norms = ["bert/embeddings/LayerNorm"]
  for layer in (f"bert/encoder/layer_{i}/" for i in range(layers)):
    dense += [layer + "attention/self/" + part for part in ("query", "key", "value")]
    dense += [layer + part + "dense" for part in ("attention/output/", "intermediate/", "output/")]
    norms += [layer + part + "LayerNorm" for part in ("attention/output/", "output/")]
  names += [f"{place}/{part}" for place in dense for part in ("kernel", "bias")]
  names += [f"{place}/{part}" for place in norms for part in ("gamma", "beta")]
  names += heads
  slots = [f"{name}/{slot}" for name in names for slot in ("adam_m", "adam_v")]
  return {*names, *slots, "global_step"}


PRETRAINING_HEADS = [
  "cls/predictions/output_bias",
  "cls/predictions/transform/LayerNorm/beta",
  "cls/predictions/transform/LayerNorm/gamma",
  "cls/predictions/transform/dense/bias",
  "cls/predictions/transform/dense/kernel",
  "cls/seq_relationship/output_bias",
  "cls/seq_relationship/output_weights",
]
CLASSIFIER_HEADS = ["output_weights", "output_bias"]
GOLDENS = pytest.mark.parametrize(
  ("name", "heads"),
  [
    ("tiny_pretrain_20steps.ckpt", PRETRAINING_HEADS),
    ("tiny_classifier_20steps.ckpt", CLASSIFIER_HEADS),
  ],
)


def test_counts_of_the_base_model():
  assert len(_bert_names(12, PRETRAINING_HEADS)) == 619
  assert len(_bert_names(12, CLASSIFIER_HEADS)) == 604


@GOLDENS
def test_the_original_s_checkpoint_comes_back_byte_for_byte(golden_dir, tmp_path, name, heads):
  source = str(golden_dir / name)
  contents = checkpoint.names_and_shapes(source)
  assert set(contents) == _bert_names(2, heads)
  assert checkpoint.read_state(source) == {}
  restored = {n: tf.Variable(tf.zeros(shape, dtype)) for n, (shape, dtype) in contents.items()}
  checkpoint.restore(source, restored)
  assert restored["global_step"].numpy() == 20

  written = checkpoint.save(str(tmp_path), 20, restored, {})
  assert checkpoint.names_and_shapes(written) == contents
  _assert_same(_read(written), _read(source))
  assert pathlib.Path(written + DATA).read_bytes() == pathlib.Path(source + DATA).read_bytes()


@GOLDENS
def test_a_damaged_checkpoint_of_the_original(golden_dir, tmp_path, name, heads):
  del heads
  source = shutil.copy(golden_dir / (name + ".index"), tmp_path / "model.ckpt-20.index")
  assert pathlib.Path(source).exists()
  whole = (golden_dir / (name + DATA)).read_bytes()
  for size in range(0, len(whole), len(whole) // 50):
    (tmp_path / ("model.ckpt-20" + DATA)).write_bytes(whole[:size])
    assert checkpoint.latest(str(tmp_path)) is None
  (tmp_path / ("model.ckpt-20" + DATA)).write_bytes(whole)
  assert checkpoint.latest(str(tmp_path)) == str(tmp_path / "model.ckpt-20")


# ---------------------------------------------------------------------------------------------
# Restoring strictly


def test_restore_lists_everything_that_does_not_fit(tmp_path):
  prefix = _save(tmp_path, 20)
  wanted = _variables(_values(20))
  wanted["bert/new"] = tf.Variable(tf.zeros([2]))
  wanted[KERNEL] = tf.Variable(tf.zeros([3, 5]))
  wanted["output_bias"] = tf.Variable(tf.zeros([2], tf.float16))
  with pytest.raises(CheckpointError) as error:
    checkpoint.restore(prefix, wanted)
  message = str(error.value)
  assert "bert/new: not in the checkpoint" in message
  assert f"{KERNEL}: float32 [3, 4] in the checkpoint, float32 [3, 5] in the model" in message
  assert "output_bias: float32 [2] in the checkpoint, float16 [2] in the model" in message
  assert all(not v.numpy().any() for v in wanted.values()), "something was assigned"


def test_restore_takes_an_int32_step_and_names_what_it_does_not_use(tmp_path, monkeypatch):
  told = []
  monkeypatch.setattr(logging, "info", lambda text, *args: told.append(text % args))
  step = tf.Variable(0, dtype=tf.int32)
  checkpoint.restore(_save(tmp_path, 20), {"global_step": step})
  assert step.numpy() == 20
  assert [KERNEL in text for text in told] == [True]


def test_restore_of_nothing_there(tmp_path):
  with pytest.raises(CheckpointError, match=r"model\.ckpt-9\.index does not exist"):
    checkpoint.restore(str(tmp_path / "model.ckpt-9"), {})


# ---------------------------------------------------------------------------------------------
# Initialising by name


def _model(classes=2, width=4) -> dict[str, tf.Variable]:
  return {
    KERNEL: tf.Variable(tf.zeros([3, width])),
    "output_weights": tf.Variable(tf.fill([classes, 3], 9.0)),
    "output_bias": tf.Variable(tf.fill([classes], 9.0)),
    KERNEL + "/adam_m": tf.Variable(tf.zeros([3, width])),
    "global_step": tf.Variable(0, dtype=tf.int64),
  }


def test_initialising_by_name(tmp_path):
  model = _model()
  report = checkpoint.init_from_checkpoint(_save(tmp_path, 20), model)
  assert report.loaded == [KERNEL, "output_bias"]
  assert report.missing == ["output_weights"]
  assert report.unexpected == ["bert/embeddings/word_embeddings"]
  assert report.mismatched == []
  np.testing.assert_array_equal(model[KERNEL].numpy(), _values(20)[KERNEL])
  np.testing.assert_array_equal(model["output_weights"].numpy(), np.full([2, 3], 9.0))
  assert model["global_step"].numpy() == 0
  assert not model[KERNEL + "/adam_m"].numpy().any()
  assert report.summary().splitlines() == [
    f"Initialised from {tmp_path}/model.ckpt-20: 2 of 3 variables loaded.",
    "  missing, start fresh (1): output_weights",
    "  unexpected, not used (1): bert/embeddings/word_embeddings",
  ]


def test_a_head_of_another_size_starts_fresh(tmp_path):
  model = _model(classes=3)
  report = checkpoint.init_from_checkpoint(_save(tmp_path, 20), model)
  assert [mismatch[0] for mismatch in report.mismatched] == ["output_bias"]
  assert report.loaded == [KERNEL]
  assert model["output_bias"].numpy().tolist() == [9.0, 9.0, 9.0]
  assert (
    "the head starts fresh: "
    "output_bias: float32 [2] in the checkpoint, float32 [3] in the model" in report.summary()
  )


def test_an_encoder_of_another_size_is_refused(tmp_path):
  model = _model(width=5)
  with pytest.raises(CheckpointError, match=r"pooler/dense/kernel: float32 \[3, 4\] in .*\[3, 5\]"):
    checkpoint.init_from_checkpoint(_save(tmp_path, 20), model)
  assert model["output_bias"].numpy().tolist() == [9.0, 9.0], "something was assigned"


def test_a_missing_part_of_the_encoder_is_said_loudly(tmp_path):
  model = {**_model(), "bert/encoder/layer_9/kernel": tf.Variable([1.0])}
  summary = checkpoint.init_from_checkpoint(_save(tmp_path, 20), model).summary()
  assert "WARNING: 1 variables of bert/ are not in the checkpoint" in summary
  assert "bert/encoder/layer_9/kernel" in summary


@pytest.mark.parametrize("own", ["bert/other", "electra/kernel"])
def test_a_checkpoint_of_another_model_is_refused(tmp_path, own):
  # `output_bias` is in common, and must not be enough where the model has a body.
  model = {own: tf.Variable([1.0])}
  if own.startswith("bert/"):
    model["output_bias"] = tf.Variable([1.0, 2.0])
  with pytest.raises(CheckpointError, match=rf"asks for: {own}\n.*has: bert/embeddings/word_emb"):
    checkpoint.init_from_checkpoint(_save(tmp_path, 20), model)


def test_half_precision_weights_are_cast(tmp_path):
  prefix = checkpoint.save(str(tmp_path), 1, {KERNEL: tf.ones([3, 4], tf.float16)}, {})
  model = {KERNEL: tf.Variable(tf.zeros([3, 4]))}
  checkpoint.init_from_checkpoint(prefix, model)
  assert model[KERNEL].numpy().tolist() == np.ones([3, 4]).tolist()


def test_long_lists_are_cut_short(tmp_path):
  model = {KERNEL: tf.Variable(tf.zeros([3, 4]))}
  model |= {f"head/{i}": tf.Variable(0.0) for i in range(300)}
  summary = checkpoint.init_from_checkpoint(_save(tmp_path, 20), model).summary()
  assert "(300): head/0, head/1, head/2, head/3 and 296 more" in summary
  assert len(summary) < 500


def test_real_weights(data_dir):
  folder = data_dir / "weights" / "minilm_L-6_H-384_A-12"
  prefix = checkpoint.find_checkpoint(str(folder))
  assert prefix == str(folder / "bert_model.ckpt")
  contents = checkpoint.names_and_shapes(prefix)
  assert contents["bert/embeddings/word_embeddings"] == ([30522, 384], tf.float32)
  names = {name for name in _bert_names(6, []) if not checkpoint.is_training_state(name)}
  assert names <= set(contents)


# ---------------------------------------------------------------------------------------------
# Finding


def _released(folder) -> None:
  """A folder as the released archives unpack it."""
  os.makedirs(folder)
  prefix = _save(folder, 1)
  for suffix in (".index", DATA):
    os.rename(prefix + suffix, os.path.join(folder, "bert_model.ckpt" + suffix))
  os.remove(prefix + ".state.json")
  os.remove(os.path.join(folder, "checkpoint"))


def test_what_init_checkpoint_accepts(tmp_path):
  _released(tmp_path / "uncased")
  released = str(tmp_path / "uncased" / "bert_model.ckpt")
  for path in (released, released + ".index", released + DATA, tmp_path / "uncased"):
    assert checkpoint.find_checkpoint(path) == released
  double_slash = released.replace("/bert_model", "//bert_model")  # from DIR=.../uncased/
  assert checkpoint.find_checkpoint(double_slash) == double_slash
  assert checkpoint.find_checkpoint(str(tmp_path / "uncased") + "/") == released
  own = [_save(tmp_path / "out", step) for step in (5, 10)]
  assert checkpoint.find_checkpoint(str(tmp_path / "out")) == own[1]
  assert checkpoint.find_checkpoint(own[0]) == own[0]


def test_a_relative_prefix_in_the_current_folder(tmp_path, monkeypatch):
  _save(tmp_path, 5)
  monkeypatch.chdir(tmp_path)
  assert checkpoint.find_checkpoint("model.ckpt-5") == "model.ckpt-5"
  assert len(checkpoint.names_and_shapes("model.ckpt-5")) == 6
  assert checkpoint.find_checkpoint(".") == "./model.ckpt-5"


def test_a_missing_checkpoint_names_what_is_nearby(tmp_path):
  _released(tmp_path / "models" / "uncased")
  for path in (tmp_path / "models", tmp_path / "models" / "bert_model.ckpt"):
    with pytest.raises(CheckpointError, match=r"Nearby: .*/models/uncased/bert_model.ckpt"):
      checkpoint.find_checkpoint(str(path))
  with pytest.raises(CheckpointError, match=r"folder .*/nowhere does not exist"):
    checkpoint.find_checkpoint(str(tmp_path / "nowhere" / "bert_model.ckpt"))


def test_several_checkpoints_in_a_folder(tmp_path):
  _released(tmp_path / "a")
  for suffix in (".index", DATA):
    for name in ("one", "two"):
      shutil.copy(tmp_path / "a" / f"bert_model.ckpt{suffix}", tmp_path / (name + suffix))
  with pytest.raises(CheckpointError, match="several checkpoints, name one: one, two"):
    checkpoint.find_checkpoint(str(tmp_path))


def test_archives_and_other_files(tmp_path):
  with pytest.raises(CheckpointError, match="is an archive: unpack it"):
    checkpoint.find_checkpoint(str(tmp_path / "uncased_L-12_H-768_A-12.zip"))
  (tmp_path / "pytorch_model.bin").write_bytes(b"PK")
  with pytest.raises(CheckpointError, match="not a TensorFlow checkpoint"):
    checkpoint.find_checkpoint(str(tmp_path / "pytorch_model.bin"))


def test_saved_models_and_object_based_checkpoints(tmp_path):
  module = tf.Module()
  module.kernel = tf.Variable(tf.ones([2]))
  tf.saved_model.save(module, str(tmp_path / "export"))
  with pytest.raises(CheckpointError, match="is a SavedModel"):
    checkpoint.find_checkpoint(str(tmp_path / "export"))
  prefix = tf.train.Checkpoint(m=module).write(str(tmp_path / "tf2"))
  for path in (prefix, str(tmp_path / "export" / "variables" / "variables")):
    with pytest.raises(CheckpointError, match=r"_CHECKPOINTABLE_OBJECT_GRAPH.*Load it with"):
      checkpoint.find_checkpoint(path)
    with pytest.raises(CheckpointError, match="object-based"):
      checkpoint.init_from_checkpoint(path, {"x": module.kernel})


# ---------------------------------------------------------------------------------------------
# The `checkpoint` file


def test_nothing_there(tmp_path, warnings):
  assert checkpoint.latest(str(tmp_path)) is None
  assert checkpoint.latest(str(tmp_path / "nowhere")) is None
  assert checkpoint.list_checkpoints(str(tmp_path)) == []
  assert warnings == []


@pytest.mark.parametrize("content", [b"", b"\0\xff\xfe", b"model_checkpoint_path: ", b"{}" * 999])
def test_a_garbage_pointer(tmp_path, warnings, content):
  _save(tmp_path, 9)
  newest = _save(tmp_path, 10)
  (tmp_path / "checkpoint").write_bytes(content)
  assert checkpoint.latest(str(tmp_path)) == newest
  assert len(warnings) == 1
  assert f"{tmp_path}/checkpoint is damaged" in warnings[0]
  assert _save(tmp_path, 11) == checkpoint.latest(str(tmp_path))
  assert len(warnings) == 1


def test_no_pointer(tmp_path, warnings):
  newest = [_save(tmp_path, step) for step in (9, 10)][1]
  (tmp_path / "checkpoint").unlink()
  assert checkpoint.latest(str(tmp_path)) == newest
  assert warnings == []


def test_a_pointer_to_a_deleted_step(tmp_path, warnings):
  older = [_save(tmp_path, step) for step in (9, 10, 11)][1]
  for path in tmp_path.glob("model.ckpt-11.*"):
    path.unlink()
  assert checkpoint.latest(str(tmp_path)) == older
  assert len(warnings) == 1
  assert "model.ckpt-11.index does not exist" in warnings[0]
  assert older in warnings[0]


def test_the_pointer_wins_over_newer_steps(tmp_path, warnings):
  older, _ = (_save(tmp_path, step) for step in (9, 10))
  (tmp_path / "checkpoint").write_text('model_checkpoint_path: "model.ckpt-9"\n')
  assert checkpoint.latest(str(tmp_path)) == older
  assert warnings == []


def test_an_absolute_pointer_survives_moving_the_folder(tmp_path, warnings):
  _save(tmp_path / "before", 9)
  pointer = tmp_path / "before" / "checkpoint"
  pointer.write_text(f'model_checkpoint_path: "{tmp_path}/before/model.ckpt-9"\n')
  assert checkpoint.latest(str(tmp_path / "before")) == str(tmp_path / "before" / "model.ckpt-9")
  os.rename(tmp_path / "before", tmp_path / "after")
  assert checkpoint.latest(str(tmp_path / "after")) == str(tmp_path / "after" / "model.ckpt-9")
  assert warnings == []


def test_absolute_paths_count_in_the_order_of_writing(tmp_path):
  for step in (5, 9):
    _save(tmp_path, step)
  lines = [f'model_checkpoint_path: "{tmp_path}/model.ckpt-5"']
  lines += [f'all_model_checkpoint_paths: "{tmp_path}/model.ckpt-{step}"' for step in (9, 5)]
  (tmp_path / "checkpoint").write_text("\n".join(lines))
  _save(tmp_path, 7, keep=2)
  assert _listed(tmp_path) == [5, 7]


def test_a_pointer_into_a_sub_folder(tmp_path):
  best = _save(tmp_path / "best", 9)
  _save(tmp_path, 10)
  (tmp_path / "checkpoint").write_text('model_checkpoint_path: "best/model.ckpt-9"\n')
  assert checkpoint.latest(str(tmp_path)) == best


def test_a_missing_data_file_or_index(tmp_path, warnings):
  older, _, _ = (_save(tmp_path, step) for step in (9, 10, 11))
  (tmp_path / ("model.ckpt-11" + DATA)).unlink()
  (tmp_path / "model.ckpt-10.index").unlink()
  assert checkpoint.latest(str(tmp_path)) == older
  assert len(warnings) == 1
  assert checkpoint.list_checkpoints(str(tmp_path)) == [(9, older)]


def test_several_data_files(tmp_path):
  halves = dict(list(_values(5).items())[:3]), dict(list(_values(5).items())[3:])
  parts = []
  for i, half in enumerate(halves):
    parts.append(checkpoint.save(str(tmp_path / str(i)), 1, half, {}))
  merged = str(tmp_path / "model.ckpt-5")
  tf.raw_ops.MergeV2Checkpoints(checkpoint_prefixes=parts, destination_prefix=merged)
  assert (tmp_path / "model.ckpt-5.data-00001-of-00002").exists()
  assert checkpoint.latest(str(tmp_path)) == merged
  sidecar = tmp_path / "model.ckpt-5.state.json"  # of another checkpoint: it names other files
  shutil.copy(parts[0] + ".state.json", sidecar)
  assert checkpoint.latest(str(tmp_path)) is None
  sidecar.unlink()
  restored = _variables(_values(5))
  checkpoint.restore(merged, restored)
  _assert_same({name: v.numpy() for name, v in restored.items()}, _values(5))
  (tmp_path / "model.ckpt-5.data-00001-of-00002").unlink()
  with pytest.raises(CheckpointError, match=r"data files are missing, found only .*00000-of-00002"):
    checkpoint.restore(merged, restored)


# ---------------------------------------------------------------------------------------------
# Retention


def _steps(directory) -> list[int]:
  return [step for step, _ in checkpoint.list_checkpoints(str(directory))]


def _listed(directory) -> list[int]:
  paths = tf.train.get_checkpoint_state(str(directory)).all_model_checkpoint_paths
  return [int(path.rsplit("-", 1)[1]) for path in paths]


def test_five_are_kept(tmp_path):
  for step in range(0, 80, 10):
    _save(tmp_path, step)
  assert _steps(tmp_path) == _listed(tmp_path) == [30, 40, 50, 60, 70]
  assert len(os.listdir(tmp_path)) == 5 * 3 + 1


@pytest.mark.parametrize(("keep", "kept"), [(1, [4]), (2, [3, 4]), (0, [1, 2, 3, 4]), (None, 4)])
def test_other_numbers_are_kept(tmp_path, keep, kept):
  for step in (1, 2, 3, 4):
    _save(tmp_path, step, keep=keep)
  assert _steps(tmp_path) == _listed(tmp_path) == ([1, 2, 3, 4] if kept == 4 else kept)


def test_after_going_back_the_abandoned_steps_go_first(tmp_path):
  for step in (10, 20, 30):
    _save(tmp_path, step, keep=3)
  (tmp_path / "checkpoint").write_text('model_checkpoint_path: "model.ckpt-10"\n')
  _save(tmp_path, 15, keep=3)
  assert _listed(tmp_path) == [20, 30, 15]
  _save(tmp_path, 18, keep=3)
  assert _listed(tmp_path) == [30, 15, 18]
  assert checkpoint.latest(str(tmp_path)).endswith("-18")


def test_a_failing_purge_only_warns(tmp_path, warnings, monkeypatch):
  _save(tmp_path, 1)
  _save(tmp_path, 2)
  monkeypatch.setattr(os, "remove", _raising(OSError(errno.EROFS, "Read-only file system")))
  _save(tmp_path, 3, keep=1)
  assert ["Read-only" in warning for warning in warnings] == [True, True]
  assert _steps(tmp_path) == [1, 2, 3]
  assert _listed(tmp_path) == [3]
  monkeypatch.undo()
  _save(tmp_path, 4, keep=2)
  assert _steps(tmp_path) == _listed(tmp_path) == [3, 4]


def test_a_damaged_checkpoint_does_not_count_as_one_of_those_kept(tmp_path):
  _save(tmp_path, 1)
  (tmp_path / ("model.ckpt-" + "2" + DATA)).write_bytes(b"half")
  shutil.copy(tmp_path / "model.ckpt-1.index", tmp_path / "model.ckpt-2.index")
  _save(tmp_path, 3, keep=2)
  assert _steps(tmp_path) == _listed(tmp_path) == [1, 3]


# ---------------------------------------------------------------------------------------------
# Damage


def _raising(error):
  def function(*args, **kwargs):
    raise error

  return function


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
  prefix = _save(tmp_path, 20)
  path = pathlib.Path(prefix + suffix)
  content = path.read_bytes()
  for what, damaged in _damaged(content, block):
    path.write_bytes(damaged)
    with pytest.raises(CheckpointError, match=r"model\.ckpt-20") as error:
      checkpoint.restore(prefix, _variables(_values(20)))
    assert str(path) in str(error.value), what
    shown = error.value.__cause__ or (
      None if error.value.__suppress_context__ else error.value.__context__
    )
    assert shown is None, f"{what}: TensorFlow's traceback is shown"
    if what.startswith("cut") or suffix != DATA:
      assert checkpoint.latest(str(tmp_path)) is None, what


def test_a_damaged_index_without_a_sidecar(tmp_path):
  """As in the original's checkpoints: the index's own checksums find it, or it is harmless."""
  prefix = _save(tmp_path, 20)
  os.remove(prefix + ".state.json")
  path = pathlib.Path(prefix + ".index")
  messages = []
  for what, damaged in _damaged(path.read_bytes(), block=3):
    path.write_bytes(damaged)
    restored = _variables(_values(20))
    try:
      checkpoint.restore(prefix, restored)
    except CheckpointError as error:
      messages.append(str(error))
    else:  # a byte of padding
      assert "flipped" in what
      _assert_same({name: v.numpy() for name, v in restored.items()}, _values(20))
  assert all("model.ckpt-20" in message for message in messages)
  assert len(messages) > 100


def test_flipped_values_are_never_loaded(tmp_path):
  prefix = _save(tmp_path, 20)
  path = pathlib.Path(prefix + DATA)
  content = bytearray(path.read_bytes())
  content[100] ^= 1  # in word_embeddings
  path.write_bytes(content)
  table = {"bert/embeddings/word_embeddings": tf.Variable(tf.zeros([50, 4]))}
  with pytest.raises(CheckpointError, match="bert/embeddings/word_embeddings is damaged"):
    checkpoint.init_from_checkpoint(prefix, table)


def test_swapped_files_are_found(tmp_path):
  first, second = (_save(tmp_path, step) for step in (1, 2))
  shutil.copy(first + DATA, second + DATA)  # same size: the values' checksums find it
  with pytest.raises(CheckpointError, match="is damaged"):
    checkpoint.restore(second, _variables(_values(2)))
  shutil.copy(first + ".index", second + ".index")  # a consistent pair, of another step
  assert checkpoint.latest(str(tmp_path)) == first


def test_huge_declared_shapes_are_refused_before_anything_is_allocated(tmp_path, monkeypatch):
  prefix = str(tmp_path / "model.ckpt-1")
  tf.raw_ops.SaveV2(  # one row of a table that would take 4 TB
    prefix=prefix,
    tensor_names=[KERNEL],
    shape_and_slices=["1000000000000 1 0,1:0,1"],
    tensors=[tf.ones([1, 1])],
  )
  monkeypatch.setattr(tf.raw_ops, "RestoreV2", _raising(AssertionError("a tensor was read")))
  huge = tf.Variable(1.0, shape=tf.TensorShape(None))
  with pytest.raises(CheckpointError, match="4,000,000,000,000 bytes"):
    checkpoint.init_from_checkpoint(prefix, {KERNEL: huge})
  assert checkpoint.latest(str(tmp_path)) is None


def test_a_sidecar_of_a_newer_version(tmp_path):
  prefix = _save(tmp_path, 1)
  path = pathlib.Path(prefix + ".state.json")
  sidecar = json.loads(path.read_text())
  del sidecar["crc32"]
  sidecar["format_version"] = 99
  path.write_text(json.dumps({**sidecar, "crc32": checkpoint._checksum(sidecar)}))
  with pytest.raises(CheckpointError, match="format_version 99, this program reads 1"):
    checkpoint.read_state(prefix)


def test_state_that_json_cannot_hold_is_refused_before_writing(tmp_path):
  with pytest.raises(TypeError, match="not JSON serializable"):
    checkpoint.save(str(tmp_path / "out"), 1, _values(1), {"x": np.int64(1)})
  assert not (tmp_path / "out").exists()


# ---------------------------------------------------------------------------------------------
# Failing and dying while writing


def test_a_full_disk(tmp_path):
  """A real one: files may not grow beyond 400 bytes. It takes a process of its own."""
  older = _save(tmp_path, 1)
  script = f"""
import resource, signal, sys
sys.path[:0] = [{str(ROOT)!r}, {str(ROOT / "tests")!r}]
from bert.checkpoints import checkpoint; from tests.checkpoints import checkpoint_test
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (400, 400))
try:
  checkpoint_test._save({str(tmp_path)!r}, 2)
except checkpoint.CheckpointError as error:
  print(error)
"""
  done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
  assert f"Cannot write {tmp_path}/model.ckpt-2" in done.stdout
  assert "MiB free" in done.stdout
  assert "Earlier checkpoints are untouched" in done.stdout
  assert sorted(path.name for path in tmp_path.iterdir()) == [
    "checkpoint",
    *sorted(f"model.ckpt-1{suffix}" for suffix in (DATA, ".index", ".state.json")),
  ]
  assert checkpoint.latest(str(tmp_path)) == older


def test_a_file_that_comes_out_short_replaces_nothing(tmp_path, monkeypatch):
  older = _save(tmp_path, 1)
  write = tf.raw_ops.SaveV2

  def write_short(prefix, **kwargs):
    write(prefix=prefix, **kwargs)
    os.truncate(prefix + DATA, 100)

  monkeypatch.setattr(tf.raw_ops, "SaveV2", write_short)
  with pytest.raises(CheckpointError, match="truncated"):
    _save(tmp_path, 2, keep=1)
  assert checkpoint.latest(str(tmp_path)) == older
  assert _steps(tmp_path) == _listed(tmp_path) == [1]


@pytest.mark.parametrize("function", ["replace", "fsync"])
def test_an_error_at_any_call_is_clean_and_harmless(tmp_path, monkeypatch, function):
  _save(tmp_path, 1)
  original, calls, messages = getattr(os, function), [], []
  for nth in range(1, 99):
    calls.clear()

    def fail_at_nth(*args, **kwargs):
      calls.append(args)
      if len(calls) == nth:  # noqa: B023
        raise OSError(errno.EIO, "Input/output error")
      return original(*args, **kwargs)

    monkeypatch.setattr(os, function, fail_at_nth)
    try:
      _save(tmp_path, 1 + nth, keep=2)
    except CheckpointError as error:
      messages.append(str(error))
    monkeypatch.undo()
    assert not list(tmp_path.glob(".tmp-*"))
    step, prefix = checkpoint.list_checkpoints(str(tmp_path))[-1]
    _assert_same(_read(prefix), _values(step))
    assert checkpoint.latest(str(tmp_path)) is not None
    if len(calls) < nth:
      break
  assert len(messages) == nth - 1 > 0
  assert all("Input/output error" in message for message in messages)


def test_nothing_to_write(tmp_path):
  with pytest.raises(CheckpointError, match="Cannot write"):
    checkpoint.save(str(tmp_path), 1, {}, {})


def test_unusable_directories(tmp_path):
  (tmp_path / "file").write_text("")
  with pytest.raises(CheckpointError, match=r"Cannot write .*/file/model\.ckpt-1"):
    _save(tmp_path / "file", 1)
  with pytest.raises(CheckpointError, match="local folders only"):
    checkpoint.save("gs://bucket/out", 1, _values(1), {})


def test_everything_is_on_disk_before_it_becomes_visible(tmp_path, monkeypatch):
  """The order of fsync and rename, which no killing shows: only a power cut would."""
  events = []
  replace, fsync = os.replace, os.fsync

  def record_fsync(descriptor):
    path = os.path.basename(os.readlink(f"/proc/self/fd/{descriptor}"))
    events.append(("sync", path.removeprefix(".").removesuffix(".tmp")))
    fsync(descriptor)

  def record_replace(source, target):
    if os.path.dirname(target) == str(tmp_path):  # what becomes visible, not what is aside
      events.append(("rename", os.path.basename(target)))
    replace(source, target)

  monkeypatch.setattr(os, "fsync", record_fsync)
  monkeypatch.setattr(os, "replace", record_replace)
  _save(tmp_path, 3)
  name, folder = "model.ckpt-3", tmp_path.name
  renames = [event for event in events if event[0] == "rename"]
  assert renames[-2:] == [("rename", name + ".index"), ("rename", "checkpoint")]
  first = events.index(renames[0])
  for suffix in (DATA, ".index", ".state.json"):
    assert ("sync", name + suffix) in events[:first]
  index, pointer = (events.index(event) for event in renames[-2:])
  assert ("sync", folder) in events[first:index]
  assert ("sync", folder) in events[index:pointer]
  assert ("sync", "checkpoint") in events[index:pointer]
  assert ("sync", folder) in events[pointer:]


# Child process of the next tests: one import of TensorFlow, then, before its runtime starts, one
# fork for each moment to die at. The fork calls os._exit at its n-th call of something that
# changes the disk: nothing of Python's clean-up runs, as after SIGKILL.
_DYING = """
import os, shutil, sys
sys.path[:0] = sys.argv[1:3]
import tensorflow as tf
from bert.checkpoints import checkpoint; from tests.checkpoints import checkpoint_test

def die_at(nth):
  calls = 0
  def moment(before_dying=None):
    nonlocal calls
    calls += 1
    if calls == nth:
      if before_dying:
        before_dying()
      os._exit(137)
  def wrap(owner, name, damage=None):
    original = getattr(owner, name)
    def function(*args, **kwargs):
      moment()
      result = original(*args, **kwargs)
      if damage:
        moment(lambda: damage(**kwargs))
      return result
    setattr(owner, name, function)
  def half_written(prefix, **_):
    with open(prefix + ".data-00000-of-00001", "r+b") as file:
      os.ftruncate(file.fileno(), 77)
    open(prefix + ".index", "wb").close()
  for name in ("replace", "rename", "remove", "unlink", "rmdir", "mkdir", "link", "fsync"):
    wrap(os, name)
  wrap(tf.raw_ops, "SaveV2", damage=half_written)

for base, keep in zip(sys.argv[3::2], sys.argv[4::2]):
  for nth in range(1, 200):
    folder = f"{base}/killed/{nth:03}"
    shutil.copytree(base + "/seed", folder)
    child = os.fork()
    if child == 0:
      die_at(nth)
      checkpoint_test._save(folder, 30, keep=int(keep))
      os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status != 137:
      break
  if status != 0 or nth < 10:
    sys.exit(f"{base}: after {nth} runs a save ended with {status}")
"""


@pytest.fixture(scope="module")
def killed(tmp_path_factory) -> dict[str, list[pathlib.Path]]:
  """Folders as left by a `save` of step 30 that was killed at its 1st, 2nd, ... last call.

  What was there before: "later", steps 10 and 20, of which one may stay; "first", nothing; "same",
  a step 30 alone, with one tensor more.
  """
  bases = {name: tmp_path_factory.mktemp(name) for name in ("later", "first", "same")}
  _save(bases["later"] / "seed", 10)
  _save(bases["later"] / "seed", 20)
  (bases["first"] / "seed").mkdir()
  old_values = {**_values(30), "old": np.ones([1], np.float32)}
  checkpoint.save(str(bases["same"] / "seed"), 30, old_values, {"position": 960})
  runs = [text for base in bases.values() for text in (str(base), "1")]
  done = subprocess.run(
    [sys.executable, "-c", _DYING, str(ROOT), str(ROOT / "tests"), *runs],
    capture_output=True,
    text=True,
  )
  assert done.returncode == 0, done.stderr
  return {name: sorted((base / "killed").iterdir()) for name, base in bases.items()}


def _resume(folder) -> dict[str, np.ndarray] | None:
  """What a run started in `folder` finds; it saves step 40, and leaves nothing else behind."""
  prefix = checkpoint.latest(str(folder))
  found = None
  if prefix is not None:
    found = _read(prefix)
    restored = _variables(found)
    checkpoint.restore(prefix, restored)
    _assert_same({name: v.numpy() for name, v in restored.items()}, found)
    assert checkpoint.read_state(prefix) == {"position": int(found["global_step"]) * 32}
  _save(folder, 40, keep=1)
  assert sorted(path.name for path in folder.iterdir()) == [
    "checkpoint",
    *sorted(f"model.ckpt-40{suffix}" for suffix in (DATA, ".index", ".state.json")),
  ]
  assert tf.train.latest_checkpoint(str(folder)) == str(folder / "model.ckpt-40")
  return found


def test_killed_while_saving(killed):
  steps = []
  for folder in killed["later"]:
    found = _resume(folder)
    assert found is not None, folder
    steps.append(int(found["global_step"]))
    _assert_same(found, _values(steps[-1]))
  assert set(steps) == {20, 30}
  assert steps == sorted(steps)


def test_killed_while_saving_for_the_first_time(killed):
  results = [_resume(folder) for folder in killed["first"]]
  is_there = [found is not None for found in results]
  assert is_there == sorted(is_there)
  assert set(is_there) == {False, True}
  for found in filter(None, results):
    _assert_same(found, _values(30))


def test_killed_while_replacing_the_only_checkpoint(killed):
  """The same step again: at each moment either the old content or the new, never neither."""
  is_old = []
  for folder in killed["same"]:
    assert [step for step, _ in checkpoint.list_checkpoints(str(folder))] == [30], folder
    found = _resume(folder)
    is_old.append("old" in found)
    found.pop("old", None)
    _assert_same(found, _values(30))
  assert set(is_old) == {True, False}
  assert is_old == sorted(is_old, reverse=True)


def test_saving_the_same_step_again(tmp_path):
  _save(tmp_path, 30)
  prefix = checkpoint.save(
    str(tmp_path), 30, {**_values(30), "more": np.ones([1])}, {"position": -1}
  )
  assert "more" in _read(prefix)
  assert checkpoint.read_state(prefix) == {"position": -1}
  assert len(os.listdir(tmp_path)) == 4


def test_replacing_without_hard_links(tmp_path, monkeypatch):
  _save(tmp_path, 30)
  monkeypatch.setattr(os, "link", _raising(OSError(errno.EPERM, "Operation not permitted")))
  monkeypatch.setattr(checkpoint, "_delete", _raising(KeyboardInterrupt()))
  with pytest.raises(KeyboardInterrupt):
    _save(tmp_path, 30)
  copy = tmp_path / ".old-model.ckpt-30" / "model.ckpt-30"
  _assert_same(_read(copy), _values(30))
