"""Names of NumPy 1.16 and of old Python that scripts still use."""

import numpy as np

from bert.tf1 import python2018


def test_sum_of_a_generator():
  """NumPy 2.4 refuses it; before, it was Python's sum. BERT-NER's metrics rely on it."""
  rows = np.arange(6).reshape(3, 2)
  assert python2018._sum(rows[i][1] for i in range(3)) == 9
  assert python2018._sum(rows, axis=0).tolist() == [6, 9]
  assert python2018._sum(rows, 1).tolist() == [1, 5, 9]
