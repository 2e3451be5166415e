"""A toy model to train: its model_fn, its data, and an Estimator made of them.

model = toy_training.make(tmp_path, {"dropout": True}, save_checkpoints_steps=5)
model.train(toy_training.train_input_fn, max_steps=10)
"""

import numpy as np
import tensorflow as tf

from bert.model import variables as vs
from bert.optimization import TrainOp
from bert.training.estimator import Estimator, EstimatorSpec, ModeKeys, RunConfig

# The modes for which `model_fn` was called since `make`.
TRACES = []


def toy_train_op(loss):
  """Momentum under Adam's slot names, written out, with a rate that depends on the step."""
  store, step = vs.current_store(), vs.get_global_step()
  names = list(store.trainable_variables)
  trained = list(store.trainable_variables.values())
  rate = 0.1 / (1.0 + 0.1 * tf.cast(step, tf.float32))

  def apply(gradients):
    for name, variable, gradient in zip(names, trained, gradients, strict=True):
      slots = [
        store.get_variable(
          f"{name}/{slot}", variable.shape.as_list(), vs.zeros_initializer, tf.float32, False
        )
        for slot in ("adam_m", "adam_v")
      ]
      gradient = tf.convert_to_tensor(gradient)
      slots[0].assign(0.9 * slots[0] + gradient)
      slots[1].assign(0.9 * slots[1] + gradient**2)
      variable.assign_sub(rate * slots[0])
    step.assign_add(1)

  return TrainOp(tf.gradients(loss, trained), trained, rate, apply)


def model_fn(features, labels, mode, params):
  """Mean embedding of some ids, and a linear layer; dropout where `params["dropout"]` asks."""
  assert labels is None
  TRACES.append(mode)
  ids, target = features["input_ids"], tf.cast(features["label_ids"], tf.float32)
  normal = vs.truncated_normal_initializer(0.5)
  with vs.variable_scope("toy"):
    table = vs.get_variable("embeddings", [20, 4], normal)
    kernel = vs.get_variable("kernel", [4, 1], normal)
    bias = vs.get_variable("bias", [1])
  mask = tf.cast(ids > 0, tf.float32)[..., None]
  pooled = tf.reduce_sum(tf.gather(table, ids) * mask, 1) / tf.reduce_sum(mask, 1)
  if mode == ModeKeys.TRAIN and params.get("dropout"):
    kept = tf.random.stateless_uniform(tf.shape(pooled), vs.next_random_seed()) > 0.5
    pooled = pooled * tf.cast(kept, tf.float32)
  score = (pooled @ kernel + bias)[:, 0]
  if mode == ModeKeys.PREDICT:
    return EstimatorSpec(
      mode, predictions={"score": score, "ids": ids}, init_checkpoint=params.get("init")
    )
  errors = tf.square(score - target) * params.get("scale", 1.0)
  loss = tf.reduce_mean(errors)
  if mode == ModeKeys.EVAL:

    def metric_fn(error, ids):
      return {"eval_loss": np.mean(error), "eval_ids": float(ids.sum()), "table": [1, 2]}

    return EstimatorSpec(
      mode,
      loss=loss,
      eval_metrics=(metric_fn, {"error": errors, "ids": ids}),
      init_checkpoint=params.get("init"),
    )
  return EstimatorSpec(
    mode,
    loss=loss,
    train_op=toy_train_op(loss),
    init_checkpoint=params.get("init"),
    summaries={"mean_score": tf.reduce_mean(score)},
  )


def examples(count=40):
  rng = np.random.default_rng(0)
  rows = [rng.integers(1, 20, rng.integers(1, 9)) for _ in range(count)]
  return [{"input_ids": ids, "label_ids": int(ids.mean() > 10)} for ids in rows]


def dataset(rows, batch_size, drop_remainder):
  signature = {
    "input_ids": tf.TensorSpec([None], tf.int32),
    "label_ids": tf.TensorSpec([], tf.int32),
  }
  return tf.data.Dataset.from_generator(rows.__iter__, output_signature=signature).padded_batch(
    batch_size, drop_remainder=drop_remainder
  )


def train_input_fn(params):
  rows = examples()
  order = np.random.default_rng(params["seed"]).integers(0, len(rows), 1000)
  rows = [rows[i] for i in order[params["skip_examples"] :]]
  return dataset(rows, params["batch_size"], True)


def eval_input_fn(params):
  return dataset(examples(10), params["batch_size"], False)


PARAMS = {"train_batch_size": 4, "eval_batch_size": 4, "predict_batch_size": 4}


def make(model_dir, params=None, **config):
  TRACES.clear()
  config = {"save_checkpoints_steps": 1000, "show_progress": False, **config}
  return Estimator(
    model_fn, RunConfig(model_dir=str(model_dir), **config), {**PARAMS, **(params or {})}
  )
