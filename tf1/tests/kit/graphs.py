"""Small graphs of TensorFlow 1.x as a few numbers, which TensorFlow 1.15.5 was asked for too."""

import numpy as np

from bert_tf1.real import tf


def waves(*shape, start=0, dtype="float32"):
  """Numbers between -1 and 1 that need no random generator."""
  return np.sin(np.arange(start, start + int(np.prod(shape)))).reshape(shape).astype(dtype)


def number(array) -> float:
  """An array's dot product with waves: another value or another place is another number."""
  array = np.asarray(array, dtype="float64")
  return round(float((array * np.cos(np.arange(array.size)).reshape(array.shape)).sum()), 5)


def fill_variables(session) -> None:
  """Gives each variable waves, by its place in the names' order; variances are positive."""
  for place, variable in enumerate(sorted(tf.global_variables(), key=lambda v: v.name)):
    if variable.dtype.is_floating:
      values = waves(*variable.shape.as_list(), start=place) / 2
      variable.load(values + 1 if "variance" in variable.name else values, session)


def describe(outputs, inputs=(), feed=None) -> tuple:
  """Returns what a graph computes with filled variables and placeholders.

  That is the variables' shapes by name; the numbers of the outputs, which are given by name; and
  those of the gradients of the outputs' sum of squares, for `inputs` beside the variables.
  """
  wanted = tf.trainable_variables() + list(inputs)
  floats = [output for output in outputs.values() if output.dtype.is_floating]
  total = tf.add_n([tf.reduce_sum(tf.to_float(output) ** 2) for output in floats])
  gradients = [tf.convert_to_tensor(g) for g in tf.gradients(total, wanted) if g is not None]
  with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    fill_variables(session)
    values, slopes = session.run([outputs, gradients], feed)
  return (
    {v.name[:-2]: v.shape.as_list() for v in tf.global_variables()},
    {name: number(value) for name, value in values.items()},
    [number(slope) for slope in slopes],
  )
