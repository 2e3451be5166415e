"""A checkpoint of another model is named before anything is restored."""

import pytest

from bert_tf1 import estimator as tfe
from bert_tf1.real import tf


def estimator_of(folder, shape, extra=0, saver=False) -> tfe.Estimator:
  """A model with a variable of `shape`, and `extra` others."""

  def model_fn(features, mode):
    weight = tf.get_variable("weight", shape)
    for index in range(extra):
      tf.get_variable(f"extra_{index}", [])
    scaffold = tf.train.Scaffold(saver=tf.train.Saver([tf.train.get_global_step()]))
    count = tf.assign_add(tf.train.get_global_step(), 1)
    loss = tf.reduce_sum(weight) * tf.reduce_sum(features)
    return tfe.EstimatorSpec(
      mode, {"loss": loss}, loss, count, scaffold=scaffold if saver else None
    )

  return tfe.Estimator(model_fn, str(folder))


def input_fn():
  return tf.constant([1.0])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
  folder = tmp_path_factory.mktemp("model")
  estimator_of(folder, [2, 3]).train(input_fn, steps=1)
  return folder


CALLS = [
  lambda estimator: estimator.train(input_fn, steps=1),
  lambda estimator: estimator.evaluate(input_fn, steps=1),
  lambda estimator: next(estimator.predict(input_fn)),
]


@pytest.mark.parametrize("call", CALLS)
def test_another_shape_is_named(folder, call):
  with pytest.raises(tf.errors.InvalidArgumentError) as error:
    call(estimator_of(folder, [2, 4]))
  assert error.value.message == (
    f"Restoring from checkpoint failed: {folder}/model.ckpt-1 does not fit the model. "
    "weight is [2, 3] there and [2, 4] in the model. Give another model_dir (scripts call it "
    "--output_dir), or the model of the checkpoint."
  )


def test_variables_that_are_missing_are_named(folder):
  with pytest.raises(tf.errors.NotFoundError) as error:
    estimator_of(folder, [2, 3], extra=7).train(input_fn, steps=1)
  assert "extra_0 is not in it; extra_1 is not in it;" in error.value.message
  assert "extra_4 is not in it; and 2 more. Give another" in error.value.message


def test_a_saver_of_the_models_own_restores_what_it_likes(folder, tmp_path):
  for name in tf.gfile.ListDirectory(str(folder)):
    tf.gfile.Copy(f"{folder}/{name}", f"{tmp_path}/{name}")
  estimator = estimator_of(tmp_path, [2, 4], saver=True)
  with pytest.raises(RuntimeError, match="Variables not initialized: weight"):
    estimator.evaluate(input_fn, steps=1)
