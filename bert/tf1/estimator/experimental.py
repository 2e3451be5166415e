"""`tf.estimator.experimental`: hooks that end training early."""

from bert.tf1.errors import unknown_name
from bert.tf1.estimator.early_stopping import (
  make_early_stopping_hook,
  stop_if_higher_hook,
  stop_if_lower_hook,
  stop_if_no_decrease_hook,
  stop_if_no_increase_hook,
)

__all__ = [
  "make_early_stopping_hook",
  "stop_if_higher_hook",
  "stop_if_lower_hook",
  "stop_if_no_decrease_hook",
  "stop_if_no_increase_hook",
]

__getattr__ = unknown_name(
  __name__,
  {"InMemoryEvaluatorHook": "evaluate between checkpoints by tf.estimator.train_and_evaluate."},
)
