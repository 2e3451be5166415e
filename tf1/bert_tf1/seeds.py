"""`--seed=N`: a run of 1.x that gives the same numbers each time, which 1.x never did."""

import random

import numpy as np

from bert_tf1.real import tf


def make_repeatable(seed: int) -> None:
  """Seeds Python, NumPy and every graph, and lets no result depend on the order of threads.

  A script that sets seeds of its own keeps them. It costs some speed: sums that threads would add
  up in any order are added in one.
  """
  random.seed(seed)
  np.random.seed(seed % 2**32)
  begin = tf.Graph.__init__

  def begin_seeded(self, *args, **kwargs):
    begin(self, *args, **kwargs)
    self.seed = seed % 2**31

  tf.Graph.__init__ = begin_seeded
  tf.set_random_seed(seed % 2**31)
  tf.compat.v2.config.experimental.enable_op_determinism()
