"""The graph-mode optimizer: the original's schedule, updates, slots and clipping."""

import numpy as np
import pytest

from bert_tf1.library import optimization
from bert_tf1.real import tf


def variable(name, values):
  return tf.get_variable(name, initializer=tf.constant(values, tf.float32))


def rates(init_lr, num_train_steps, num_warmup_steps, steps):
  """The learning rate of each step."""
  step = tf.placeholder(tf.int64, [])
  rate = optimization._learning_rate(step, init_lr, num_train_steps, num_warmup_steps)
  with tf.Session() as session:
    return [session.run(rate, {step: number}) for number in steps]


@pytest.mark.parametrize("warmup", [2, 5])
def test_the_schedule_is_the_originals(golden_dir, warmup):
  name = {2: "tiny_classifier", 5: "tiny_pretrain"}[warmup]
  expected = np.load(golden_dir / f"{name}.npz")["learning_rate"]
  found = rates(1e-2, 20, warmup, range(len(expected)))
  np.testing.assert_allclose(found, expected, rtol=1e-6, atol=0)


@pytest.mark.parametrize("warmup", [0, None, 4])
def test_the_schedule(warmup):
  expected = [
    0.1 * step / warmup if step < (warmup or 0) else 0.1 * (1 - min(step, 10) / 10)
    for step in range(13)
  ]
  np.testing.assert_allclose(rates(0.1, 10, warmup, range(13)), expected, rtol=1e-5, atol=1e-8)


def test_each_step_takes_its_own_rate_and_is_counted_once():
  weights = variable("bias", [1.0])
  train = optimization.create_optimizer(tf.reduce_sum(weights), 0.1, 10, 4, False)
  step = tf.train.get_global_step()
  m = v = 0.0
  expected = 1.0
  with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for number in range(12):
      assert session.run(step) == number
      session.run(train)
      m, v = 0.9 * m + 0.1, 0.999 * v + 0.001
      rate = 0.1 * (number / 4 if number < 4 else 1 - min(number, 10) / 10)
      expected -= rate * m / (np.sqrt(v) + 1e-6)
      assert session.run(weights) == pytest.approx([expected], abs=1e-5)


def test_updates_are_adams_without_correction_and_with_decay():
  names = ["kernel", "bias", "LayerNorm/gamma", "layer_norm/beta", "bert/word"]
  gradient = np.array([0.3, -0.2], np.float32)
  weights = {name: variable(name, [0.5, -1.0]) for name in names}
  unused = variable("unused", [2.0])
  optimizer = optimization.AdamWeightDecayOptimizer(
    0.01, 0.1, exclude_from_weight_decay=["LayerNorm", "layer_norm", "bias"]
  )
  pairs = [*((tf.constant(gradient), w) for w in weights.values()), (None, unused)]
  train = optimizer.apply_gradients(pairs)
  with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for _ in range(2):
      session.run(train)
    found = session.run(weights)
  for name, value in found.items():
    expected, m, v = np.array([0.5, -1.0]), 0.0, 0.0
    for _ in range(2):
      m, v = 0.9 * m + 0.1 * gradient, 0.999 * v + 0.001 * gradient**2
      decay = 0.1 * expected if name in ("kernel", "bert/word") else 0.0
      expected = expected - 0.01 * (m / (np.sqrt(v) + 1e-6) + decay)
    np.testing.assert_allclose(value, expected, rtol=0, atol=1e-6, err_msg=name)
  slots = {v.op.name for v in tf.global_variables()} - {*names, "unused"}
  assert slots == {f"{name}/{slot}" for name in names for slot in ("adam_m", "adam_v")}
  assert len(tf.trainable_variables()) == 6


def test_clipping_counts_each_use_of_a_word():
  """Two uses of one row, of gradient 3 each: a norm of sqrt(18), and not of 6."""
  table = variable("table", [[1.0], [1.0]])
  loss = 3.0 * tf.reduce_sum(tf.gather(table, [0, 0]))
  optimization.create_optimizer(loss, 1.0, 10, 0, False)
  (train,) = [op for op in tf.get_default_graph().get_operations() if op.name == "group_deps"]
  (m,) = [v for v in tf.global_variables() if v.op.name == "table/adam_m"]
  with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    session.run(train)
    assert session.run(m)[:, 0] == pytest.approx([0.1 * 6 / np.sqrt(18), 0.0], abs=1e-6)


def test_minimize_of_the_base_class_works():
  """The case of the original's own test."""
  weights = variable("w", [0.1, -0.2, -0.1])
  target = tf.constant([0.4, 0.2, -0.5])
  loss = tf.reduce_mean(tf.square(target - weights))
  optimizer = optimization.AdamWeightDecayOptimizer(learning_rate=0.2)
  train = optimizer.minimize(loss)
  with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for _ in range(100):
      session.run(train)
    np.testing.assert_allclose(session.run(weights), [0.4, 0.2, -0.5], rtol=1e-2, atol=1e-2)
