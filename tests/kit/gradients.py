"""Values and gradients of a function, to compare with those of another."""

import numpy as np
import tensorflow as tf


def normal(shape, seed):
  return tf.random.stateless_normal(shape, [seed, seed])


def value_and_gradients(function, *args):
  with tf.GradientTape() as tape:
    for arg in args:
      tape.watch(arg)
    value = function(*args)
    loss = tf.reduce_sum(value * tf.cos(3.0 * value))  # another gradient for every entry
  return [value, *tape.gradient(loss, args)]


def assert_same(ours, plain):
  for one, other in zip(ours, plain, strict=True):
    # A sum rounds as its largest parts do, and each processor adds in another order.
    atol = max(1e-5, 3e-6 * np.abs(other).max())
    np.testing.assert_allclose(one, other, rtol=1e-4, atol=atol)
