"""Tests of bert/model/similarity.py: pooling, cosines and losses against NumPy."""

import numpy as np
import pytest
import tensorflow as tf

from bert.checkpoints.sentence_pooling import POOLINGS
from bert.model import similarity


def vectors(*shape, seed=1):
  return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def cosines_of(a, b):
  a, b = a.astype(np.float64), b.astype(np.float64)
  return a @ b.T / np.linalg.norm(a, axis=-1)[:, None] / np.linalg.norm(b, axis=-1)


IN_NUMPY = {
  "cls": lambda pieces: pieces[0],
  "mean": lambda pieces: pieces.mean(axis=0),
  "max": lambda pieces: pieces.max(axis=0),
}


@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize("rest", [(5,), (2, 5)])
def test_pooling_reads_pieces_and_no_padding(pooling, rest):
  values, lengths = vectors(3, 4, *rest), [4, 1, 3]
  mask = np.array([[int(i < n) for i in range(4)] for n in lengths])
  expected = [IN_NUMPY[pooling](v[:n]) for v, n in zip(values, lengths, strict=True)]
  values[mask == 0] = 1e9
  found = similarity.pool(tf.constant(values), tf.constant(mask), pooling)
  np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)


def test_the_cosine_loss():
  a, b, target = vectors(6, 4), vectors(6, 4, seed=2), np.linspace(0, 1, 6, dtype=np.float32)
  cosines = similarity.cosines(tf.constant(a), tf.constant(b))
  expected = np.diag(cosines_of(a, b))
  np.testing.assert_allclose(cosines, expected, rtol=0, atol=1e-6)
  swapped = similarity.cosines(tf.constant(b), tf.constant(a))
  np.testing.assert_array_equal(cosines, swapped)
  loss, losses = similarity.get_cosine_loss(cosines, tf.constant(target))
  np.testing.assert_allclose(losses, (expected - target) ** 2, rtol=1e-5, atol=1e-6)
  assert float(loss) == pytest.approx(np.mean((expected - target) ** 2), rel=1e-5)


def ranking_in_numpy(values, ids):
  """Row by row: the candidates that count, and the logarithm of the right one's share."""
  losses = []
  for i in range(len(values)):
    chosen = [values[i, 1]]
    for column in range(1, values.shape[1]):
      for row in range(len(values)):
        is_own = (row, column) == (i, 1)
        if not is_own and ids[row, column].any() and (ids[row, column] != ids[i, 1]).any():
          chosen.append(values[row, column])
    logits = 20.0 * cosines_of(values[i, :1], np.stack(chosen))[0]
    losses.append(np.log(np.exp(logits).sum()) - logits[0])
  return np.array(losses)


def text_ids(rows, texts):
  return np.arange(1, rows * texts * 2 + 1, dtype=np.int32).reshape(rows, texts, 2)


@pytest.mark.parametrize("num_texts", [2, 3])
def test_the_ranking_loss(num_texts):
  values, ids = vectors(5, num_texts, 4), text_ids(5, num_texts)
  loss, losses = similarity.get_ranking_loss(tf.constant(values), tf.constant(ids))
  expected = ranking_in_numpy(values, ids)
  np.testing.assert_allclose(losses, expected, rtol=1e-4, atol=1e-6)
  assert float(loss) == pytest.approx(expected.mean(), rel=1e-5)


def test_equal_texts_and_missing_ones_are_no_candidates():
  values, ids = vectors(4, 3, 4), text_ids(4, 3)
  ids[2, 1] = ids[0, 1]  # two rows have the same partner
  ids[1, 2] = ids[3, 1]  # a hard negative is the partner of another row
  ids[3, 2] = 0  # a row without one
  _, losses = similarity.get_ranking_loss(tf.constant(values), tf.constant(ids))
  np.testing.assert_allclose(losses, ranking_in_numpy(values, ids), rtol=1e-4, atol=1e-6)
  other = values.copy()
  other[3, 2] = 7
  _, same = similarity.get_ranking_loss(tf.constant(other), tf.constant(ids))
  np.testing.assert_array_equal(losses, same)
