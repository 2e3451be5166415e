"""A batch in equal parts, one after another: the gradients of the whole for the memory of a part.

  train_op, gradients, scalars = accumulate(lambda batch, part: ..., batch, parts=4)
  train_op.apply(gradients)

Sparse gradients stay sparse, the rows of all parts side by side and unmerged: the original's clip
norm counts a word once for each time it occurs, and so it does here.
"""

from collections.abc import Callable

import tensorflow as tf


def accumulate(step_fn: Callable, batch, parts: int):
  """Averages gradients over micro-batches of a batch. Call it inside a `tf.function`.

  They equal the gradients of the undivided batch where its loss is a plain mean over examples; a
  loss that divides by a number of masked tokens weighs each part equally instead.

  Args:
    step_fn: `step_fn(part_of_batch, part)` -> `(train_op, scalars [n])`, `part` an int32 `[]`.
      Traced twice: for the first part, and for the loop over all others.
    batch: nested tensors `[B, ...]`.
    parts: number of parts, a divisor of B.

  Returns:
    The train_op of the first part, the mean gradients (a list as `train_op.gradients`), and the
    mean of the scalars.

  Raises:
    ValueError: B is known and not a multiple of `parts`.
    tf.errors.InvalidArgumentError: the same for a B known only at run time.
  """
  if parts == 1:
    train_op, scalars = step_fn(batch, 0)
    return train_op, train_op.gradients, scalars
  batch = tf.nest.map_structure(lambda tensor: _split(tensor, parts), batch)
  train_op, scalars = step_fn(_part(batch, 0), 0)
  first = _flatten(train_op.gradients)

  def body(i, scalars, *sums):
    more, more_scalars = step_fn(_part(batch, i), i)
    return i + 1, scalars + more_scalars, *_add(more.gradients, sums)

  # The loop waits for the first part and runs one part at a time, or all would lie in memory.
  with tf.control_dependencies(first):
    start = tf.identity(1)
  _, scalars, *sums = tf.while_loop(
    lambda i, *_: i < parts,
    body,
    [start, scalars, *first],
    shape_invariants=[start.shape, scalars.shape, *_growing_shapes(train_op.gradients)],
    parallel_iterations=1,
  )
  parts = tf.cast(parts, tf.float32)
  return train_op, _mean(train_op.gradients, sums, parts), scalars / parts


def _split(tensor, parts: int):
  """Splits `[B, ...]` into `[parts, B / parts, ...]`."""
  size = tensor.shape[0]
  message = f"A batch of {size} examples does not divide into {parts} parts."
  if size is not None and size % parts:
    raise ValueError(message)
  remainder = tf.debugging.assert_equal(tf.shape(tensor)[0] % parts, 0, message)
  with tf.control_dependencies([remainder]):
    split = tf.reshape(tensor, tf.concat([[parts, -1], tf.shape(tensor)[1:]], 0))
  split.set_shape([parts, None if size is None else size // parts, *tensor.shape[1:]])
  return split


def _part(batch, i):
  return tf.nest.map_structure(lambda tensor: tensor[i], batch)


def _flatten(gradients) -> list[tf.Tensor]:
  """Lists the tensors of gradients: one if dense, values and indices if sparse."""
  flat = []
  for gradient in gradients:
    if isinstance(gradient, tf.IndexedSlices):
      flat += [gradient.values, gradient.indices]
    elif gradient is not None:
      flat.append(gradient)
  return flat


def _growing_shapes(gradients) -> list[tf.TensorShape]:
  """Returns the shapes of `_flatten`, with unknown sizes where sparse gradients grow."""
  shapes = []
  for gradient in gradients:
    if isinstance(gradient, tf.IndexedSlices):
      shapes += [tf.TensorShape([None, *gradient.values.shape[1:]]), tf.TensorShape([None])]
    elif gradient is not None:
      shapes.append(gradient.shape)
  return shapes


def _add(gradients, sums) -> list[tf.Tensor]:
  """Adds dense gradients to flat sums, and appends the rows of sparse ones."""
  sums, result = iter(sums), []
  for gradient in gradients:
    if isinstance(gradient, tf.IndexedSlices):
      result.append(tf.concat([next(sums), gradient.values], 0))
      result.append(tf.concat([next(sums), gradient.indices], 0))
    elif gradient is not None:
      result.append(next(sums) + gradient)
  return result


def _mean(gradients, sums, parts: int) -> list:
  """Divides flat sums over all micro-batches; returns means in the form of gradients."""
  sums, result = iter(sums), []
  for gradient in gradients:
    if isinstance(gradient, tf.IndexedSlices):
      values = next(sums) / parts
      result.append(tf.IndexedSlices(values, next(sums), gradient.dense_shape))
    else:
      result.append(None if gradient is None else next(sums) / parts)
  return result
