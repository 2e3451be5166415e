"""Rows with and without padding. Alone: pytest tests/model/token_rows_test.py (seconds)"""

import numpy as np
import pytest
import tensorflow as tf

from bert.model import token_rows
from tests.kit.gradients import assert_same, normal, value_and_gradients


@pytest.fixture(
  params=[
    [[1, 1, 1, 0], [1, 0, 0, 0], [1, 1, 0, 0]],
    [[1, 1, 1, 1], [1, 1, 1, 1]],
    [[0, 1, 0], [0, 0, 0]],
    [[0, 0]],
    [[1] * 5 + [0] * 4] * 3,
    [[1] * 5 + [0], [1] * 3 + [0] * 3],  # Nothing fills up: padding reads a token's row.
  ],
  ids=["ragged", "full", "holes", "empty", "many", "exact"],
)
def mask(request):
  return np.array(request.param)


def test_removing_and_restoring_padding(mask):
  batch_size, length = mask.shape
  x = normal([batch_size * length, 6], 1)
  is_token = mask.reshape(-1, 1).astype(np.float32)

  def there_and_back(x):
    unpadding = token_rows.Unpadding(tf.constant(mask), multiple=4)
    rows = unpadding.remove(x)
    assert len(rows) == max(1, min(-(-mask.sum() // 4) * 4, mask.size))
    return tf.reshape(unpadding.restore(tf.sin(rows)), [-1, 6])

  assert_same(
    value_and_gradients(there_and_back, x), value_and_gradients(lambda x: tf.sin(x) * is_token, x)
  )


def test_gathering_heads_without_padding(mask):
  """Attention over what `to_heads` gives equals attention over padded rows, with its gradient."""
  (batch_size, length), heads, size = mask.shape, 2, 3
  x = normal([batch_size * length, 3 * heads * size], 1)
  adder = (1.0 - mask[:, np.newaxis, np.newaxis, :].astype(np.float32)) * -10000.0

  def attend(q, k, v):
    probs = tf.nn.softmax(tf.matmul(q, k, transpose_b=True) + adder)
    return tf.matmul(probs, v)

  def plain(x):
    shape = [batch_size, length, 3, heads, size]
    context = attend(*tf.unstack(tf.transpose(tf.reshape(x, shape), [2, 0, 3, 1, 4])))
    rows = tf.reshape(tf.transpose(context, [0, 2, 1, 3]), [-1, heads * size])
    return rows * mask.reshape(-1, 1).astype(np.float32)

  def without_padding(x):
    unpadding = token_rows.Unpadding(tf.constant(mask), multiple=4)
    context = attend(*tf.unstack(unpadding.to_heads(unpadding.remove(x), 3, heads)))
    return tf.reshape(unpadding.restore(unpadding.from_heads(context)), [-1, heads * size])

  assert_same(value_and_gradients(without_padding, x), value_and_gradients(plain, x))
