"""`tf.contrib.estimator`: hooks that end training early, which 1.14 moved, and `add_metrics`."""

from bert_tf1.errors import unknown_name
from bert_tf1.estimator.early_stopping import (
  make_early_stopping_hook,
  read_eval_metrics,
  stop_if_higher_hook,
  stop_if_lower_hook,
  stop_if_no_decrease_hook,
  stop_if_no_increase_hook,
)
from bert_tf1.estimator.extenders import add_metrics
from bert_tf1.estimator.in_memory import InMemoryEvaluatorHook

__all__ = [
  "InMemoryEvaluatorHook",
  "add_metrics",
  "make_early_stopping_hook",
  "read_eval_metrics",
  "stop_if_higher_hook",
  "stop_if_lower_hook",
  "stop_if_no_decrease_hook",
  "stop_if_no_increase_hook",
]

_HEAD = "ready-made models are not here; write a model_fn for tf.estimator.Estimator."
__getattr__ = unknown_name(
  __name__,
  {
    "TowerOptimizer": "one device trains here: use the optimizer itself.",
    "replicate_model_fn": "one device trains here: use the model_fn itself.",
    **dict.fromkeys(("binary_classification_head", "multi_class_head", "regression_head"), _HEAD),
  },
)
