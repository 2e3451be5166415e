"""`tf.contrib.crf`: the numbers that TensorFlow 1.15.5 gave for the same graphs."""

import itertools

import numpy as np
import pytest

from bert_tf1.contrib import crf
from bert_tf1.real import tf
from tests.kit.graphs import describe, waves

pytestmark = pytest.mark.usefixtures("graph")

LENGTHS = [0, 1, 3, 5]
TAGS = [[0, 1, 2, 0, 1], [2, 2, 1, 1, 0], [1, 0, 2, 2, 2], [0, 2, 1, 0, 1]]


def graph(steps: int, known: bool, integers: str) -> tuple:
  """The likelihood, its parts and the best tags of four sequences, with static shapes or not."""
  scores = tf.placeholder("float32", [4, steps, 3] if known else [None, None, 3])
  tags = tf.placeholder(integers, [4, steps] if known else [None, None])
  lengths = tf.constant(np.minimum(LENGTHS, steps), integers)
  with tf.variable_scope("loss"):
    likelihood, transitions = crf.crf_log_likelihood(scores, tags, lengths)
  best, score = crf.crf_decode(scores, transitions, lengths)
  allowed = tf.one_hot(tags, 3) + tf.one_hot((tags + 1) % 3, 3) > 0
  outputs = {
    "likelihood": likelihood,
    "score": score,
    "best": best,
    "two": crf.crf_multitag_sequence_score(scores, allowed, lengths, transitions),
  }
  feed = {scores: 2 * waves(4, steps, 3), tags: np.array(TAGS)[:, :steps]}
  return describe(outputs, [scores], feed)


# By the number of steps, of 1.15.5: the outputs' numbers and the gradients', by `describe`.
EXPECTED_GRAPHS = {
  1: (
    {"likelihood": -0.66388, "score": 0.33166, "best": 1.16771, "two": 0.11409},
    [0.0, -10.22366],
  ),
  2: (
    {"likelihood": 6.96242, "score": -1.74574, "best": 1.78076, "two": -2.60137},
    [29.64138, -13.465],
  ),
  5: (
    {"likelihood": 1.88063, "score": -4.38755, "best": 0.80779, "two": -7.83757},
    [18.10875, 15.53601],
  ),
}


@pytest.mark.parametrize(
  ("steps", "known", "integers"),
  [
    (1, True, "int64"),
    (5, True, "int32"),
    *(pytest.param(steps, False, "int32", marks=pytest.mark.ci) for steps in (1, 2, 5)),
    *(pytest.param(steps, True, "int64", marks=pytest.mark.ci) for steps in (2, 5)),
    pytest.param(5, False, "int64", marks=pytest.mark.ci),
  ],
)
def test_lengths_of_nothing_of_one_and_of_all(steps, known, integers):
  outputs, gradients = EXPECTED_GRAPHS[steps]
  variables, numbers, slopes = graph(steps, known, integers)

  assert variables == {"loss/transitions": [3, 3]}
  assert numbers == pytest.approx(outputs, abs=2e-5)
  # With one step and a known shape no transition is in the graph.
  assert slopes == pytest.approx(gradients[-len(slopes) :], abs=2e-4)


def test_the_likelihoods_of_all_sequences_add_up_to_1():
  scores, transitions = 3 * waves(1, 4, 3), waves(3, 3)
  everything = list(itertools.product(range(3), repeat=4))
  likelihoods, _ = crf.crf_log_likelihood(
    tf.constant(np.repeat(scores, len(everything), 0)),
    tf.constant(everything),
    tf.fill([len(everything)], 4),
    tf.constant(transitions),
  )
  best, score = crf.crf_decode(tf.constant(scores), tf.constant(transitions), tf.constant([4]))
  with tf.Session() as session:
    likelihoods, best, score = session.run([likelihoods, best, score])

  assert np.exp(likelihoods).sum() == pytest.approx(1, abs=1e-5)
  assert tuple(best[0]) == everything[likelihoods.argmax()]
  tags, of_numpy = crf.viterbi_decode(scores[0], transitions)
  assert tags == list(best[0])
  assert of_numpy == pytest.approx(score[0])


@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_other_float_types(dtype):
  scores, transitions = waves(2, 4, 3), waves(3, 3)
  tags, lengths = tf.constant([[0, 1, 2, 0]] * 2), tf.constant([4, 2])
  likelihoods = [
    crf.crf_log_likelihood(
      tf.constant(scores, kind), tags, lengths, tf.constant(transitions, kind)
    )[0]
    for kind in (dtype, "float32")
  ]
  with tf.Session() as session:
    other, usual = session.run(likelihoods)

  assert other.dtype == dtype
  assert other == pytest.approx(usual, rel=5e-3)


def test_a_second_call_reuses_the_transitions():
  scores, tags, lengths = tf.constant(waves(4, 5, 3)), tf.constant(TAGS), tf.constant(LENGTHS)
  with tf.variable_scope("loss", reuse=tf.AUTO_REUSE):
    crf.crf_log_likelihood(scores, tags, lengths)
    crf.crf_log_likelihood(scores, tags, lengths)

  assert [v.name for v in tf.global_variables()] == ["loss/transitions:0"]


def test_a_name_that_is_not_there():
  with pytest.raises(AttributeError, match=r"did you mean tf.contrib.crf.crf_decode\?"):
    _ = crf.crf_decoder
