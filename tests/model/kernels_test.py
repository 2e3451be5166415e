"""Hand-written gradients against automatic ones. Run: pytest tests/model/kernels_test.py"""

import math

import numpy as np
import pytest
import tensorflow as tf

from bert.model import kernels
from bert.model.variables import next_random_seed, random_stream
from tests.kit.gradients import assert_same, normal, value_and_gradients


def plain_gelu(x):
  return 0.5 * x * (1.0 + tf.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x**3)))


def plain_layer_norm(x, gamma, beta):
  mean, variance = tf.nn.moments(x, axes=[-1], keepdims=True)
  return tf.nn.batch_normalization(x, mean, variance, beta, gamma, 1e-12)


@pytest.fixture(params=[False, True], ids=["plain", "compiled"])
def compiled(request):
  with kernels.compile_blocks(request.param):
    yield request.param


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
@pytest.mark.parametrize("rate", [0.0, 0.3])
@pytest.mark.parametrize("shape", [[5, 16], [2, 3, 16]])
def test_layer_norm(shape, rate):
  x, gamma, beta = normal(shape, 1) * 3.0 + 1.0, normal([16], 2) + 1.0, normal([16], 3)
  seed = tf.constant([5, 6], tf.int64)

  def ours(*args):
    return kernels.layer_norm(*args, epsilon=1e-12, rate=rate, seed=seed)

  def plain(*args):
    return kernels.dropout(plain_layer_norm(*args), rate, seed)

  assert_same(value_and_gradients(ours, x, gamma, beta), value_and_gradients(plain, x, gamma, beta))


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("rate", [0.0, 0.3])
def test_dropout_add_layer_norm(rate):
  seed = tf.constant([5, 6], tf.int64)
  x, residual = normal([9, 16], 1), normal([9, 16], 2)
  bias, gamma, beta = normal([16], 3), normal([16], 4) + 1.0, normal([16], 5)

  def plain(x, bias, residual, gamma, beta):
    return plain_layer_norm(kernels.dropout(x + bias, rate, seed) + residual, gamma, beta)

  def ours(*args):
    one, same = kernels.dropout_add_layer_norm(*args, 1e-12, rate, seed)
    return 0.25 * one + 0.75 * same  # both have a gradient

  args = (x, bias, residual, gamma, beta)
  assert_same(value_and_gradients(ours, *args), value_and_gradients(plain, *args))


@pytest.mark.usefixtures("compiled")
def test_a_sparse_gradient_of_add_layer_norm_is_made_dense(monkeypatch):
  """As of the last layer where it is computed for first tokens alone."""
  x, residual, gamma = normal([9, 16], 1), normal([9, 16], 2), normal([16], 4)
  backward, given = kernels._layer_norm_backward, []

  def noting(*args, **options):
    given.extend(args[-2:])
    return backward(*args, **options)

  monkeypatch.setattr(kernels, "_layer_norm_backward", noting)

  @tf.function(autograph=False)
  def gradient(x):
    y, y_low = kernels.dropout_add_layer_norm(x, tf.zeros([16]), residual, gamma, gamma, 1e-12)
    return tf.gradients(tf.reduce_sum(tf.gather(y, [0, 3]) ** 3) + tf.reduce_sum(y_low), x)[0]

  with tf.GradientTape() as tape:
    tape.watch(x)
    y = plain_layer_norm(x + residual, gamma, gamma)
    loss = tf.reduce_sum(tf.gather(y, [0, 3]) ** 3) + tf.reduce_sum(y)
  np.testing.assert_allclose(gradient(x), tape.gradient(loss, x), atol=1e-4)
  assert [type(each).__name__ for each in given] == ["SymbolicTensor"] * 2


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


@pytest.mark.usefixtures("compiled")
def test_bias_scale():
  x, bias, scale = normal([7, 50], 1), normal([50], 2), normal([50], 3)
  assert_same(
    value_and_gradients(lambda x, bias: kernels.bias_scale(x, bias, scale), x, bias),
    value_and_gradients(lambda x, bias: (x + bias) * scale, x, bias),
  )


@pytest.mark.usefixtures("compiled")
def test_cross_entropy():
  x, bias = normal([9, 50], 1) * 3.0, normal([50], 2)
  labels = tf.constant([0, 49, 7, 7, 3, 20, 48, 1, 30])
  assert_same(
    value_and_gradients(lambda x, bias: kernels.cross_entropy(x, bias, labels), x, bias),
    value_and_gradients(
      lambda x, bias: tf.nn.sparse_softmax_cross_entropy_with_logits(labels, x + bias), x, bias
    ),
  )
  losses = kernels.cross_entropy(x[:3], bias, tf.constant([-1, 50, 49])).numpy()
  np.testing.assert_array_equal(np.isnan(losses), [True, True, False])
  assert np.isfinite(kernels.cross_entropy(x * 1e4, bias, labels)).all()


@pytest.mark.usefixtures("compiled")
def test_blocks_read_and_write_bfloat16_and_compute_in_float32():
  """Values and gradients are those of the rounded input; only they themselves are rounded."""
  seed = tf.constant([5, 6], tf.int64)
  scores, residual = normal([4, 16], 1), normal([4, 16], 2)
  low = tf.cast(scores, tf.bfloat16)
  bias, gamma, beta = normal([16], 3), normal([16], 4) + 1.0, normal([16], 5)

  def blocks(x, dtype):
    normed = kernels.dropout_add_layer_norm(x, bias, residual, gamma, beta, 1e-12, 0.3, seed, dtype)
    return [
      kernels.bias_gelu(x, bias, dtype),
      kernels.bias_scale(x, bias, gamma, dtype),
      kernels.softmax_dropout(x, residual, 0.3, seed, dtype),
      normed[1],
    ], normed[0]

  def run(x, dtype):
    with tf.GradientTape(persistent=True) as tape:
      tape.watch(x)
      outputs, exact = blocks(x, dtype)
    assert all(output.dtype == dtype for output in outputs)
    assert exact.dtype == tf.float32
    # A gradient of ones would vanish behind LayerNorm and softmax.
    ramp = tf.range(16, dtype=tf.float32)
    gradients = [tape.gradient(y, x, tf.cast(ramp + 0.0 * exact, y.dtype)) for y in outputs]
    assert all(gradient.dtype == x.dtype for gradient in gradients)
    return [tf.cast(t, tf.float32) for t in (*outputs, *gradients)], exact

  rounded, exact = run(low, tf.bfloat16)
  plain, same = run(tf.cast(low, tf.float32), tf.float32)
  np.testing.assert_array_equal(exact, same)
  for one, other in zip(rounded, plain, strict=True):
    np.testing.assert_array_equal(one, tf.cast(tf.cast(other, tf.bfloat16), tf.float32))


@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_dropout_rate_scale_and_seed(rate):
  x = tf.ones([301, 333])
  dropped = kernels.dropout(x, rate, tf.constant([1, 2], tf.int64)).numpy()
  kept = dropped[dropped != 0]
  np.testing.assert_allclose(kept, 1.0 / (1.0 - rate), rtol=1e-6)
  assert abs(kept.size / dropped.size - (1.0 - rate)) < 0.006  # about six standard deviations
  again = kernels.dropout(x, rate, tf.constant([1, 2], tf.int64)).numpy()
  other = kernels.dropout(x, rate, tf.constant([1, 3], tf.int64)).numpy()
  np.testing.assert_array_equal(dropped, again)
  assert (dropped != other).mean() > 0.1


RATE = 0.1
CALLS = 5  # of one step: as many dropouts follow one another


def dropped(seed, step):
  """Which of 2^18 entries each of the first calls of a step drops: bool `[CALLS, 2^18]`."""
  with random_stream(seed, step):
    keys = [kernels.dropout_keys(next_random_seed()) for _ in range(CALLS)]
  bits = np.stack([kernels.random_bits([2**18], key).numpy() for key in keys])
  return bits < round(RATE * 2**32)


# Seed and step that follow those of `dropped(1, 7)`, or come close to them in the training loop.
NEIGHBOURS = {
  "the next step": (1, 8),
  "the next seed": (2, 7),
  "the next micro-batch": (1 + 1_000_003, 7),
  "the default seed": (12345, 7),
  "step and seed exchanged": (7, 1),
}


def correlations(masks, others):
  """Of masks at the same places, in standard deviations of independent ones."""
  product = (masks - RATE) * (others - RATE)
  return product.sum(-1) / (RATE * (1 - RATE) * math.sqrt(product.shape[-1]))


@pytest.mark.parametrize("place", NEIGHBOURS.values(), ids=NEIGHBOURS)
def test_masks_of_neighbouring_streams_are_unrelated(place):
  """Fifteen values in standard deviations: one beyond 4.5 is a chance of 1 in 10,000."""
  one, other = dropped(1, 7), dropped(*place)
  assert np.abs(correlations(one, other)).max() < 4.5
  for shift in (1, 384):  # of the next entry, of the next token in a model of that width
    assert np.abs(correlations(one[:, shift:], other[:, :-shift])).max() < 4.5
