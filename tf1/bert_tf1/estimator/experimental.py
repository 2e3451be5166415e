"""`tf.estimator.experimental`: hooks that end training early, receivers of labels."""

from bert_tf1.errors import unknown_name
from bert_tf1.estimator.early_stopping import (
  make_early_stopping_hook,
  stop_if_higher_hook,
  stop_if_lower_hook,
  stop_if_no_decrease_hook,
  stop_if_no_increase_hook,
)
from bert_tf1.estimator.in_memory import InMemoryEvaluatorHook
from bert_tf1.estimator.receivers import build_raw_supervised_input_receiver_fn

__all__ = [
  "InMemoryEvaluatorHook",
  "build_raw_supervised_input_receiver_fn",
  "make_early_stopping_hook",
  "stop_if_higher_hook",
  "stop_if_lower_hook",
  "stop_if_no_decrease_hook",
  "stop_if_no_increase_hook",
]

__getattr__ = unknown_name(__name__)
