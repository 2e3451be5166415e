"""Masked words as examples of a report.

Alone: python -m pytest tests/reports/masked_words_test.py (seconds)
"""

import types

import numpy as np
import pytest

from bert.io import record_files
from bert.reports import masked_words
from bert.tasks.shown import Mark, Passage


def record(positions, weights):
  number = len(weights)
  return {
    **{"input_ids": [0, 1, 2, 3], "input_mask": [1, 1, 1, 0], "segment_ids": [0, 0, 0, 0]},
    **{"masked_lm_positions": positions, "masked_lm_ids": [1] * number},
    "masked_lm_weights": np.array(weights, np.float32),
  }


def test_a_word_is_shown_with_its_guesses():
  item = {"passage": Passage("text", "a b"), "in_its_place": "[MASK]"}
  answer = {"ranked": [("x", 0.6), ("y", 0.3)], "probability": 0.01}
  case = masked_words.MaskedWords().case(item, "b", answer)
  assert (case.predicted, case.is_right, case.group) == ("x", False, "[MASK]")
  assert case.loss == pytest.approx(-np.log(0.01))
  assert [each.name for each in case.options] == ["x", "y", "b"]  # the right one, too
  assert [each.is_gold for each in case.options] == [False, False, True]


def test_the_baseline_is_the_most_frequent_word():
  found = masked_words.MaskedWords().baseline(["b", "a", "b", "c"])
  assert "“b”" in found.what
  assert found.value == 0.5
  assert masked_words.MaskedWords().baseline([]) is None


def test_records_are_read_until_one_has_no_masks(tmp_path):
  path = str(tmp_path / "a.tfrecord")
  record_files.write_records(path, [record([1, 2], [1.0, 0.0]), record([], [])])
  (found,) = masked_words._records([path])
  assert found["masked_lm_positions"].tolist() == [1, 2]
  assert found["weights"].tolist() == [1.0, 0.0]


def test_words_of_a_record():
  vocab = {token: n for n, token in enumerate(["[CLS]", "cat", "[MASK]", "dog", "##s", "[UNK]"])}
  words = {n: token for token, n in vocab.items()}
  tokenizer = types.SimpleNamespace(vocab=vocab, inv_vocab=words)
  outputs = {
    "ids": np.array([[[3, 1], [1, 3]]]),
    "probabilities": np.array([[[0.7, 0.2], [0.9, 0.1]]]),
    "label_probabilities": np.array([[0.2, 0.9]]),
  }
  read = {name: np.array(value) for name, value in record([2, 0], [1.0, 0.0]).items()}
  read["weights"] = read.pop("masked_lm_weights")
  ((item, right, answer),) = masked_words._words(read, outputs, 0, tokenizer)
  assert (right, item["in_its_place"]) == ("cat", "[MASK]")
  assert item["passage"].text == "[CLS] cat cat"  # padding is left out, the mask is filled
  assert answer["ranked"][0] == ("dog", 0.7)
  assert answer["probability"] == 0.2


def test_a_word_is_marked_within_its_sentence():
  tokenizer = types.SimpleNamespace(vocab={"[UNK]": 0, "##er": 1})
  found = masked_words.passage_of(tokenizer, ["[CLS]", "the", "play", "##er", "wins"], 3)
  assert found == Passage("text", "[CLS] the player wins", (Mark(14, 16),))
