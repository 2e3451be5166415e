"""Tests of bert/text/piece_learner.py."""

import collections
import random

import pytest

from bert.text import piece_learner
from tests.kit.paths import SAMPLE_TEXT


def _reference(word_counts, threshold):
  """The pieces of two or more characters that tensorflow_text's own learner finds."""
  package = "tensorflow_text.tools.wordpiece_vocab.wordpiece_tokenizer_learner_lib"
  learner = pytest.importorskip(package, reason="tensorflow_text is the reference")
  names = ("upper_thresh", "lower_thresh", "max_input_tokens", "max_unique_chars", "vocab_size")
  params = learner.Params(
    **dict.fromkeys([*names, "slack_ratio"]),
    num_iterations=4,
    max_token_length=50,
    include_joiner_token=True,
    joiner="##",
    reserved_tokens=[],
  )
  pieces = learner.learn_with_thresh(word_counts, threshold, params)
  return [piece for piece in pieces if len(piece.removeprefix("##")) > 1]


@pytest.mark.parametrize("threshold", [1, 2, 5, 20])
def test_pieces_are_those_of_tensorflow_text(threshold):
  words = collections.Counter(SAMPLE_TEXT.read_text(encoding="utf-8").lower().split())
  words = {word: count for word, count in words.items() if word.isalpha()}
  assert len(words) > 200
  pieces = piece_learner.learn_pieces(list(words.items()), threshold)
  assert pieces == _reference(list(words.items()), threshold)


def test_pieces_of_random_words_are_those_of_tensorflow_text():
  rng = random.Random(7)
  for _ in range(100):
    words = ["".join(rng.choices("abc", k=rng.randint(1, 9))) for _ in range(20)]
    counts = [(word, rng.randint(1, 9)) for word in dict.fromkeys(words)]
    threshold = rng.randint(1, 20)
    assert piece_learner.learn_pieces(counts, threshold) == _reference(counts, threshold)
