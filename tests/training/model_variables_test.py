"""Where the values of a new run come from. Run: pytest tests/training/model_variables_test.py"""

import numpy as np
import pytest
import tensorflow as tf

from bert.checkpoints.bundle_files import CheckpointError
from bert.model.variables import get_variable, truncated_normal_initializer, use_store
from bert.training import resumption
from bert.training.model_variables import ModelVariables
from bert.training.run_config import RunConfig

NAMES = ("bert/encoder/kernel", "bert/pooler/dense/kernel", "output_weights")


def new_variables(folder, draws_later=True):
  """Variables as a graph creates them, each large enough to wait for its value."""
  variables = ModelVariables(RunConfig(str(folder)))
  with variables.store.drawing_later() if draws_later else use_store(variables.store):
    with use_store(variables.store):
      for name in NAMES:
        get_variable(name, [128, 128], truncated_normal_initializer(0.02))
  return variables


@pytest.fixture
def drawn(tmp_path):
  """The values of a run that draws all of them at once."""
  return {n: v.numpy() for n, v in new_variables(tmp_path, False).store.variables.items()}


def test_without_a_checkpoint_all_are_drawn(tmp_path, drawn):
  variables = new_variables(tmp_path)
  variables.initialise(None)
  for name in NAMES:
    np.testing.assert_array_equal(variables.store.variables[name], drawn[name])


def test_what_a_checkpoint_lacks_is_drawn(tmp_path, drawn):
  prefix = str(tmp_path / "init.ckpt")
  ones = {name: tf.ones([128, 128]) for name in NAMES[:1]}
  tf.raw_ops.SaveV2(
    prefix=prefix, tensor_names=list(ones), shape_and_slices=[""], tensors=list(ones.values())
  )
  variables = new_variables(tmp_path)
  variables.initialise(prefix, is_training=True)
  found = {name: variable.numpy() for name, variable in variables.store.variables.items()}
  assert (found[NAMES[0]] == 1.0).all()
  for name in NAMES[1:]:
    np.testing.assert_array_equal(found[name], drawn[name])


def test_a_head_of_another_shape_is_warned_of_or_refused(tmp_path, caplog):
  prefix = str(tmp_path / "init.ckpt")
  values = {name: tf.ones([128, 128]) for name in NAMES} | {NAMES[2]: tf.ones([3, 128])}
  tf.raw_ops.SaveV2(
    prefix=prefix, tensor_names=list(values), shape_and_slices=[""] * 3, tensors=[*values.values()]
  )
  mismatch = f"{NAMES[2]}: float32 [3, 128] in the checkpoint, float32 [128, 128] in the model"
  new_variables(tmp_path).initialise(prefix, is_training=True)
  said = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
  assert said == [f"OF ANOTHER SHAPE IN {prefix}, hence RANDOM:\n  {mismatch}"]
  with pytest.raises(CheckpointError, match="has a head of another shape") as error:
    new_variables(tmp_path).initialise(prefix)
  assert mismatch in str(error.value)


def test_a_resumed_run_keeps_what_it_has_saved(tmp_path):
  """A weight of zeros, too: it is no sign that a value is missing."""
  saved = new_variables(tmp_path, False)
  saved.store.variables[NAMES[1]].assign(tf.zeros([128, 128]))
  with use_store(saved.store):
    get_variable("global_step", [], dtype=tf.int64, trainable=False)
  saved.save(0, resumption.RunState(seed=1))
  variables = new_variables(tmp_path)
  variables.resume(str(tmp_path / "model.ckpt-0"))
  for name in NAMES:
    np.testing.assert_array_equal(
      variables.store.variables[name], saved.store.variables[name].numpy()
    )
