"""Hand-written gradients against automatic ones. Run: pytest tests/kernels_test.py"""

import math

import numpy as np
import pytest
import tensorflow as tf

import kernels


def value_and_gradients(function, *args):
  with tf.GradientTape() as tape:
    for arg in args:
      tape.watch(arg)
    value = function(*args)
    loss = tf.reduce_sum(value * tf.cos(3.0 * value))  # another gradient for every entry
  return [value, *tape.gradient(loss, args)]


def plain_gelu(x):
  return 0.5 * x * (1.0 + tf.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x**3)))


def plain_layer_norm(x, gamma, beta):
  mean, variance = tf.nn.moments(x, axes=[-1], keepdims=True)
  return tf.nn.batch_normalization(x, mean, variance, beta, gamma, 1e-12)


def assert_same(ours, plain):
  for one, other in zip(ours, plain, strict=True):
    np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


@pytest.fixture(params=[False, True], ids=["plain", "compiled"])
def compiled(request):
  with kernels.compile_blocks(request.param):
    yield request.param


def normal(shape, seed):
  return tf.random.stateless_normal(shape, [seed, seed])


@pytest.mark.usefixtures("compiled")
def test_gelu():
  x, bias = normal([7, 50], 1) * 3.0, normal([50], 2)
  assert_same(value_and_gradients(kernels.gelu, x), value_and_gradients(plain_gelu, x))
  assert_same(
    value_and_gradients(kernels.bias_gelu, x, bias),
    value_and_gradients(lambda x, bias: plain_gelu(x + bias), x, bias),
  )
  assert_same(kernels.gelu(tf.constant([0.0, 30.0, -30.0])), [0.0, 30.0, 0.0])


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("shape", [[5, 16], [2, 3, 16]])
def test_layer_norm(shape):
  x, gamma, beta = normal(shape, 1) * 3.0 + 1.0, normal([16], 2) + 1.0, normal([16], 3)
  ours = value_and_gradients(lambda *args: kernels.layer_norm(*args, epsilon=1e-12), x, gamma, beta)
  assert_same(ours, value_and_gradients(plain_layer_norm, x, gamma, beta))


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("rate", [0.0, 0.3])
def test_dropout_add_layer_norm(rate):
  seed = tf.constant([5, 6], tf.int64)
  x, residual = normal([9, 16], 1), normal([9, 16], 2)
  bias, gamma, beta = normal([16], 3), normal([16], 4) + 1.0, normal([16], 5)

  def plain(x, bias, residual, gamma, beta):
    return plain_layer_norm(kernels.dropout(x + bias, rate, seed) + residual, gamma, beta)

  def ours(*args):
    return kernels.dropout_add_layer_norm(*args, 1e-12, rate, seed)

  args = (x, bias, residual, gamma, beta)
  assert_same(value_and_gradients(ours, *args), value_and_gradients(plain, *args))


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("rate", [0.0, 0.3])
def test_softmax_dropout(rate):
  seed = tf.constant([5, 6], tf.int64)
  scores, adder = normal([2, 3, 4, 5], 1), normal([2, 1, 1, 5], 2)

  def ours(scores):
    return kernels.softmax_dropout(scores, adder, rate, seed)

  def plain(scores):
    return kernels.dropout(tf.nn.softmax(scores + adder), rate, seed)

  assert_same(value_and_gradients(ours, scores), value_and_gradients(plain, scores))


@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_dropout_rate_scale_and_seed(rate):
  x = tf.ones([301, 333])  # not a multiple of four
  dropped = kernels.dropout(x, rate, tf.constant([1, 2], tf.int64)).numpy()
  kept = dropped[dropped != 0]
  np.testing.assert_allclose(kept, 1.0 / (1.0 - rate), rtol=1e-6)
  assert abs(kept.size / dropped.size - (1.0 - rate)) < 0.006  # about six standard deviations
  again = kernels.dropout(x, rate, tf.constant([1, 2], tf.int64)).numpy()
  other = kernels.dropout(x, rate, tf.constant([1, 3], tf.int64)).numpy()
  np.testing.assert_array_equal(dropped, again)
  assert (dropped != other).mean() > 0.1


def test_dropout_gradient_is_its_mask():
  x = tf.random.stateless_normal([64, 65], [1, 2])
  seed = tf.constant([1, 2], tf.int64)
  with tf.GradientTape() as tape:
    tape.watch(x)
    y = kernels.dropout(x, 0.3, seed)
  np.testing.assert_allclose(tape.gradient(y, x) * x, y, rtol=1e-6)
