"""`tf.contrib.seq2seq`: the numbers that TensorFlow 1.15.5 gave for the same graphs."""

import numpy as np
import pytest

from bert_tf1.contrib import seq2seq
from bert_tf1.real import tf
from tests.kit.graphs import describe, waves

pytestmark = pytest.mark.usefixtures("graph")

WEIGHTS = np.array([[0, 0, 0], [1, 0, 0], [1, 0.5, 2], [1, 1, 0]], "float32")


def loss(**settings) -> tuple:
  """The loss of four sequences of three steps and its gradient's number."""
  logits = tf.placeholder("float32", [None, None, 4])
  targets = tf.constant([[0, 1, 2], [3, 0, 1], [2, 3, 0], [1, 2, 3]])
  losses = seq2seq.sequence_loss(logits, targets, tf.constant(WEIGHTS), **settings)
  _, outputs, gradients = describe({"loss": losses}, [logits], {logits: waves(4, 3, 4)})
  return outputs["loss"], gradients[0]


# The flags, the loss's number of 1.15.5 and its gradient's, by `describe`.
EXPECTED_LOSSES = [
  ("1100", 1.57285, -1.17451),
  ("0011", 1.70392, -1.37842),
  ("1000", -2.072, -0.90909),
  ("0100", 2.00885, -4.4196),
  ("0010", -2.16105, -1.6638),
  ("0001", 1.17219, -11.07476),
  ("0000", -4.01305, -11.62348),
  ("1001", -2.072, -0.90909),
  ("0110", 2.00885, -4.4196),
]


@pytest.mark.parametrize(("flags", "value", "gradient"), EXPECTED_LOSSES)
def test_the_mean_or_sum_over_either_axis(flags, value, gradient):
  names = ("average_across_timesteps", "average_across_batch", "sum_over_timesteps")
  settings = dict(zip((*names, "sum_over_batch"), (c == "1" for c in flags), strict=True))

  assert loss(**settings) == pytest.approx((value, gradient), abs=2e-5)


def test_no_weight_at_all_is_a_loss_of_0():
  logits, targets = tf.constant(waves(2, 3, 4)), tf.constant([[0, 1, 2], [3, 0, 1]])
  with tf.Session() as session:
    assert session.run(seq2seq.sequence_loss(logits, targets, tf.zeros([2, 3]))) == 0


def test_a_loss_function_gets_flat_labels_and_logits():
  def ones(labels, logits):
    assert (labels.shape.ndims, logits.shape.ndims) == (1, 2)
    return 1 + 0 * tf.reduce_sum(logits, 1)

  assert loss(softmax_loss_function=ones, sum_over_batch=False)[0] == 1


@pytest.mark.parametrize("axis", ["batch", "timesteps"])
def test_both_a_mean_and_a_sum_is_an_error(axis):
  with pytest.raises(ValueError, match=f"average_across_{axis} and sum_over_{axis} cannot be set"):
    loss(**{f"sum_over_{axis}": True})


def test_examples_repeated_for_a_beam():
  state = tf.nn.rnn_cell.LSTMStateTuple(tf.constant([[1], [2]]), tf.constant([3, 4]))
  tiled = seq2seq.tile_batch(state, 2)
  with tf.Session() as session:
    cell, output = session.run(tiled)

  assert isinstance(tiled, tf.nn.rnn_cell.LSTMStateTuple)
  assert (cell[:, 0].tolist(), output.tolist()) == ([1, 1, 2, 2], [3, 3, 4, 4])
  with pytest.raises(ValueError, match="statically known rank"):
    seq2seq.tile_batch(tf.placeholder("float32"), 2)


def test_the_largest_logit():
  with tf.Session() as session:
    assert session.run(seq2seq.hardmax([[1.0, 3.0, 2.0]])).tolist() == [[0, 1, 0]]


def test_a_decoder_is_named_with_a_remedy():
  with pytest.raises(
    AttributeError, match=r"tf\.contrib\.seq2seq\.BasicDecoder .* on TensorFlow 1\.15"
  ):
    _ = seq2seq.BasicDecoder
