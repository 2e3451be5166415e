"""tf.minimum and tf.maximum where a value is not a number. Literals: TensorFlow 1.15.5, CPU."""

import numpy as np
import pytest

import bert_tf1 as tf

NAN = float("nan")


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("name", ["minimum", "maximum"])
def test_the_first_is_given_if_either_is_nan(name, dtype):
  for function in (getattr(tf, name), getattr(tf.math, name)):
    with tf.Graph().as_default(), tf.Session() as session:
      numbers = tf.placeholder(dtype, [None])
      nan = tf.placeholder(dtype, [])
      fed = {numbers: [1.0, NAN, -2.0], nan: NAN}
      second, first, fixed, known = session.run(
        [
          *(function(numbers, nan), function(nan, numbers), function(1.0, numbers)),
          function(numbers, tf.constant(NAN, dtype)),
        ],
        fed,
      )
    np.testing.assert_array_equal(second, [1.0, NAN, -2.0])
    np.testing.assert_array_equal(first, [NAN] * 3)
    np.testing.assert_array_equal(fixed, [1.0, 1.0, -2.0 if name == "minimum" else 1.0])
    np.testing.assert_array_equal(known, [1.0, NAN, -2.0])


def test_the_rate_of_a_run_without_warm_up():
  """As ELECTRA writes it; 1.15.5's value and gradient."""
  with tf.Graph().as_default(), tf.Session() as session:
    step, steps = tf.placeholder(tf.float32, []), tf.placeholder(tf.float32, [])
    part = tf.minimum(1.0, step / steps, name="part")
    gradient = tf.gradients(part, [step])[0]
    assert part.op.type == "Minimum"
    assert part.name == "part:0"
    assert session.run(part, {step: 0.0, steps: 0.0}) == 1.0
    assert session.run([part, gradient], {step: 1.0, steps: 4.0}) == [0.25, 0.25]
    assert session.run([part, gradient], {step: 9.0, steps: 4.0}) == [1.0, 0.0]


def test_whole_numbers_and_known_values_need_no_other_op():
  with tf.Graph().as_default() as graph, tf.Session() as session:
    assert session.run(tf.minimum([3, 1], tf.range(2))).tolist() == [0, 1]
    assert session.run(tf.maximum(tf.constant([0.5, 2.0]), 1.0)).tolist() == [1.0, 2.0]
    assert not [op for op in graph.get_operations() if op.type == "IsNan"]
