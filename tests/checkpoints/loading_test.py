"""Variables given the values of a checkpoint: all of them, or those that it has."""

import numpy as np
import pytest
import tensorflow as tf
from absl import logging

from bert import families
from bert.checkpoints import loading, saving
from bert.checkpoints.bundle_files import CheckpointError
from tests.kit.small_checkpoints import KERNEL, save, values_of, variables_of


def test_restoring_while_a_function_is_traced(tmp_path):
  prefix = saving.save(str(tmp_path), 1, {"x": tf.ones([2])}, {})
  variable = tf.Variable(tf.zeros([2]))

  @tf.function
  def step():
    loading.init_from_checkpoint(prefix, {"x": variable})
    variable.assign_add(tf.ones([2]))

  step()
  step()
  assert variable.numpy().tolist() == [3.0, 3.0]


def test_restore_lists_everything_that_does_not_fit(tmp_path):
  prefix = save(tmp_path, 20)
  wanted = variables_of(values_of(20))
  wanted["bert/new"] = tf.Variable(tf.zeros([2]))
  wanted[KERNEL] = tf.Variable(tf.zeros([3, 5]))
  wanted["output_bias"] = tf.Variable(tf.zeros([2], tf.float16))
  with pytest.raises(CheckpointError) as error:
    loading.restore(prefix, wanted)
  message = str(error.value)
  assert "bert/new: not in the checkpoint" in message
  assert f"{KERNEL}: float32 [3, 4] in the checkpoint, float32 [3, 5] in the model" in message
  assert "output_bias: float32 [2] in the checkpoint, float16 [2] in the model" in message
  assert all(not v.numpy().any() for v in wanted.values()), "something was assigned"


def test_restore_takes_an_int32_step_and_names_what_it_does_not_use(tmp_path, monkeypatch):
  told = []
  monkeypatch.setattr(logging, "info", lambda text, *args: told.append(text % args))
  step = tf.Variable(0, dtype=tf.int32)
  loading.restore(save(tmp_path, 20), {"global_step": step})
  assert step.numpy() == 20
  assert [KERNEL in text for text in told] == [True]


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
  report = loading.init_from_checkpoint(save(tmp_path, 20), model)
  assert report.loaded == [KERNEL, "output_bias"]
  assert report.missing == ["output_weights"]
  assert report.unexpected == ["bert/embeddings/word_embeddings"]
  assert report.mismatched == []
  np.testing.assert_array_equal(model[KERNEL].numpy(), values_of(20)[KERNEL])
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
  report = loading.init_from_checkpoint(save(tmp_path, 20), model)
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
    loading.init_from_checkpoint(save(tmp_path, 20), model)
  assert model["output_bias"].numpy().tolist() == [9.0, 9.0], "something was assigned"


@pytest.mark.parametrize("own", ["bert/other", "electra/kernel"])
def test_a_checkpoint_of_another_model_is_refused(tmp_path, own):
  # `output_bias` is in common, and must not be enough where the model has a body.
  model = {own: tf.Variable([1.0])}
  if own.startswith("bert/"):
    model["output_bias"] = tf.Variable([1.0, 2.0])
  with pytest.raises(CheckpointError, match=rf"asks for: {own}\n.*has: bert/embeddings/word_emb"):
    loading.init_from_checkpoint(save(tmp_path, 20), model)


@pytest.mark.parametrize("ours", ["electra", "bert"])
def test_a_checkpoint_of_another_family_is_refused_in_one_line(tmp_path, ours):
  own = families.FAMILIES[ours]
  asked = f"{own.scope}/encoder/layer_0/attention/self/query/kernel"
  held = "bert/encoder/transformer/group_0/inner_group_0/attention_1/self/query/kernel"
  assert families.family_of_variables([held]) is families.ALBERT
  prefix = saving.save(str(tmp_path), 1, {KERNEL: tf.ones([3, 4]), held: tf.ones([2])}, {})
  model = {KERNEL: tf.Variable(tf.zeros([3, 4])), asked: tf.Variable([1.0])}
  message = f"model.ckpt-1 is of ALBERT, but the model is of {own.title} by its configuration"
  with pytest.raises(CheckpointError, match=message) as error:
    loading.init_from_checkpoint(prefix, model)
  assert "\n" not in str(error.value)
  assert not np.any(model[KERNEL].numpy())


SIZES = {
  "bert/embeddings/word_embeddings": (50, 4),
  "bert/encoder/layer_0/attention/self/query/kernel": (4, 4),
  "bert/encoder/layer_1/attention/self/query/kernel": (4, 4),
  "bert/encoder/layer_0/intermediate/dense/kernel": (4, 16),
  "output_bias": (2,),
}


@pytest.mark.parametrize(
  ("changes", "cause"),
  [
    ({"query": (8, 8)}, "the file has hidden size 4, the model 8: "),
    ({"word_embeddings": (60, 4)}, "the file has vocabulary size 50, the model 60: "),
    ({"word_embeddings": (50, 2)}, "the file has embedding size 4, the model 2: "),
    (
      {"word_embeddings": (60, 8), "query": (8, 8), "layer_1": None},
      "the file has hidden size 4, the model 8; the file has vocabulary size 50, the model 60; "
      "the file has 2 layers, the model 1: ",
    ),
    ({"output_bias": (3,)}, "the file has 2 labels, the model 3: "),
  ],
)
def test_errors_begin_with_the_sizes_that_differ(tmp_path, changes, cause):
  prefix = saving.save(tmp_path, 1, {name: np.zeros(s, "f4") for name, s in SIZES.items()}, {})
  wanted = dict(SIZES)
  for part, shape in changes.items():
    wanted |= dict.fromkeys((name for name in SIZES if part in name), shape)
  variables = {name: tf.Variable(tf.ones(shape)) for name, shape in wanted.items() if shape}
  for load in (
    lambda: loading.restore(prefix, variables),
    lambda: loading.init_from_checkpoint(prefix, variables, required_scope=""),
    lambda: loading.load(variables, prefix, skip_mismatch=False),
  ):
    with pytest.raises(CheckpointError) as error:
      load()
    assert str(error.value).startswith(f"{cause}{prefix} does not fit. Give the configuration")
  assert all(variable.numpy().all() for variable in variables.values()), "something was assigned"


def test_half_precision_weights_are_cast(tmp_path):
  prefix = saving.save(str(tmp_path), 1, {KERNEL: tf.ones([3, 4], tf.float16)}, {})
  model = {KERNEL: tf.Variable(tf.zeros([3, 4]))}
  loading.init_from_checkpoint(prefix, model)
  assert model[KERNEL].numpy().tolist() == np.ones([3, 4]).tolist()
