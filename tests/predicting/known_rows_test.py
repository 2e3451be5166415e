"""Scores of rows that were computed before.

Alone: python -m pytest tests/predicting/known_rows_test.py (a second; no TensorFlow)
"""

import numpy as np

from bert.predicting.known_rows import KnownRows


def row(*ids, padding=0):
  return {"input_ids": [*ids] + [0] * padding, "input_mask": [1] * len(ids) + [0] * padding}


def test_rows_are_found_by_their_tokens_whatever_the_padding():
  known = KnownRows()
  scores = {"logits": np.array([[1.0], [2.0], [3.0]])}
  known.add([[2, 7, 3, 0], [2, 0, 3, 0], [2, 8, 8, 3]], [[1, 1, 1, 0]] * 2 + [[1] * 4], scores)
  for padding in (0, 1, 9):
    assert known.scores_of(row(2, 7, 3, padding=padding))["logits"] == 1
    assert known.scores_of(row(2, 0, 3, padding=padding))["logits"] == 2
  assert known.scores_of(row(2, 8, 3)) is None
  assert known.scores_of(row(2, 7)) is None


def test_scores_of_something_else_than_rows_are_not_kept():
  known, ids = KnownRows(), np.ones([2, 2, 3])
  known.add(ids, ids, {"logits": np.zeros([2, 5])})
  known.add(ids, ids, {})
  assert known.scores_of(row(1, 1, 1)) is None


def test_memory_is_bounded():
  known = KnownRows(most_bytes=8)
  known.add([[5], [6], [7]], [[1]] * 3, {"logits": np.zeros([3, 1], np.float32)})
  assert [known.scores_of(row(n)) is None for n in (5, 6, 7)] == [False, False, True]
