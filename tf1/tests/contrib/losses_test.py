"""`tf.contrib.losses.metric_learning`: losses and gradients that TensorFlow 1.15.5 gave."""

import numpy as np
import pytest

from bert_tf1.contrib import losses
from bert_tf1.real import tf

EMBEDDINGS = np.random.RandomState(3).randn(6, 3).astype(np.float32)
PAIRS = np.int32([0, 0, 1, 1, 2, 2])
SAME = [1, 0, 1, 0, 1, 0]
triplet = losses.metric_learning.triplet_semihard_loss
contrastive = losses.metric_learning.contrastive_loss


def loss_and_gradient(make) -> np.ndarray:
  """The loss, then its gradient by the 6 x 3 embeddings."""
  with tf.Graph().as_default(), tf.Session() as session:
    embeddings = tf.constant(EMBEDDINGS)
    loss = make(embeddings)
    found, gradient = session.run([loss, tf.gradients(loss, embeddings)[0]])
  return np.append(found, gradient)


@pytest.mark.parametrize(
  ("make", "expected"),
  [
    (
      lambda e: triplet(PAIRS, e),
      [
        1.928684,
        0.948363,
        -0.434816,
        0.015888,
        -1.519811,
        0.186388,
        -0.165907,
        0.02418,
        0.256168,
        -0.810367,
        0.62379,
        0.354504,
        0.046772,
        -0.486272,
        0.089324,
        0.397239,
        0.409749,
        -0.451568,
        0.516374,
      ],
    ),
    (
      lambda e: triplet(labels=PAIRS, embeddings=e, margin=0.2),
      [
        1.5085,
        0.948363,
        -0.434816,
        0.015888,
        -1.519811,
        0.186388,
        -0.165907,
        0.0,
        0.0,
        0.0,
        0.755282,
        0.583458,
        -0.262708,
        -0.486272,
        0.089324,
        0.397239,
        0.302437,
        -0.424354,
        0.015488,
      ],
    ),
    (
      lambda e: triplet(np.int32([0, 0, 0, 1, 1, 2]), tf.nn.l2_normalize(e, 1)),
      [
        0.911857,
        0.029965,
        -0.182444,
        0.269869,
        -0.016431,
        0.080445,
        0.02341,
        -0.231591,
        0.032385,
        -0.026085,
        0.315703,
        -0.121837,
        -0.010646,
        -0.075963,
        0.044207,
        -0.17243,
        0.0,
        0.0,
        0.0,
      ],
    ),
    (
      lambda e: triplet(np.int32([0] * 6), e),
      [
        7.624234,
        1.451994,
        0.431545,
        0.199051,
        -1.469703,
        -0.139573,
        -0.161954,
        -0.045102,
        -0.419263,
        0.086799,
        -0.360683,
        -0.968754,
        0.829551,
        0.726146,
        1.449996,
        0.16188,
        -0.302651,
        -0.353951,
        -1.115328,
      ],
    ),
    (
      lambda e: contrastive(np.float32(SAME), e, tf.reverse(e, [0])),
      [
        3.601547,
        0.731102,
        0.32729,
        0.547658,
        -0.914937,
        -0.66232,
        -0.134931,
        0.131492,
        0.228955,
        -0.30948,
        -0.131492,
        -0.228955,
        0.30948,
        0.914937,
        0.66232,
        0.134931,
        -0.731102,
        -0.32729,
        -0.547658,
      ],
    ),
    (
      lambda e: contrastive(np.int32(SAME), e, tf.reverse(e, [0]), margin=3.0),
      [
        4.130691,
        0.708754,
        0.317286,
        0.530918,
        -0.914937,
        -0.66232,
        -0.134931,
        -0.060249,
        -0.104906,
        0.141802,
        0.060249,
        0.104906,
        -0.141802,
        0.914937,
        0.66232,
        0.134931,
        -0.708754,
        -0.317286,
        -0.530918,
      ],
    ),
  ],
)
def test_losses_of_embeddings(make, expected):
  np.testing.assert_allclose(loss_and_gradient(make), expected, rtol=1e-5, atol=2e-6)


def test_no_two_examples_of_one_label():
  assert np.isnan(loss_and_gradient(lambda e: triplet(np.int32(range(6)), e))).all()


def test_labels_in_a_column():
  with tf.Graph().as_default(), pytest.raises(ValueError, match=r"shape \(6, 1\), expected"):
    triplet(PAIRS[:, None], tf.constant(EMBEDDINGS))


def test_the_file_that_scripts_import_from():
  assert losses.metric_learning.metric_loss_ops.triplet_semihard_loss is triplet
