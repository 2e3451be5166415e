"""Leaves padding out of the layers, where nobody can see the difference.

A transformer computes each position by itself, except in attention. In the steps of `fit`,
`evaluate` and `predict` a model whose heads do not read padding computes only the positions that
hold tokens: what it learns and answers is the same, but for the last bits. That is TensorFlow's
alone, and without XLA, because the number of tokens is not known before the step.

Letters in shapes: B = batch size, S = sequence length, W = width, M = rows: positions with tokens.
"""

import contextlib
import contextvars
from collections.abc import Iterator

import keras

_left_out = contextvars.ContextVar("padding is left out", default=False)


@contextlib.contextmanager
def left_out_in_step(model: keras.Model) -> Iterator[None]:
  """Leaves padding out within a step of the model's `fit`, `evaluate` or `predict`."""
  token = _left_out.set(keras.backend.backend() == "tensorflow" and not model.jit_compile)
  try:
    yield
  finally:
    _left_out.reset(token)


def is_left_out() -> bool:
  """Checks whether a step is being computed in which padding may be left out."""
  return _left_out.get()


class AllRows:
  """All positions of a batch, padding included."""

  def remove(self, x):
    """Returns `[B, S, W]` unchanged."""
    return x

  def restore(self, x):
    """Returns `[B, S, W]` unchanged."""
    return x


class TokenRows(AllRows):
  """The positions of a batch on which what is not padding depends."""

  def __init__(self, attention_mask):
    """Finds them: the tokens and the first positions, and texts without any token as they are.

    Args:
      attention_mask: int `[B, S]`, 0 for padding.
    """
    import tensorflow as tf

    from bert.model.token_rows import Unpadding

    is_token = attention_mask != 0
    is_empty = ~tf.reduce_any(is_token, axis=1, keepdims=True)
    is_first = tf.range(tf.shape(attention_mask)[1]) == 0
    is_row = tf.cast(is_token | is_empty | is_first, tf.int32)
    self._unpadding = Unpadding(is_row, multiple=32)

  def remove(self, x):
    """Gathers `[1, M, W]` of `[B, S, W]`."""
    return self._unpadding.remove(x)[None]

  def restore(self, x):
    """Scatters `[1, M, W]` to `[B, S, W]`: zeros at padding."""
    return self._unpadding.restore(x[0])
