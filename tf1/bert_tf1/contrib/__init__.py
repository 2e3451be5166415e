"""`tf.contrib`: the parts that scripts around BERT use, one module each.

TensorFlow 2 dropped `tf.contrib`. What is here computes what 1.15 computed, under the same names.
"""

from typing import Any

from bert_tf1.contrib import (
  cluster_resolver,
  compiler,
  crf,
  cudnn_rnn,
  data,
  distribute,
  distribution_strategy_context,
  estimator,
  framework,
  graph_editor,
  layers,
  lookup,
  losses,
  memory_stats,
  metrics,
  mixed_precision,
  model_pruning,
  opt,
  predictor,
  rnn,
  seq2seq,
  slim,
  summary,
  tensorboard,
  tpu,
  training,
  util,
)
from bert_tf1.errors import unknown_name
from bert_tf1.real import tf

__all__ = [
  "cluster_resolver",
  "compiler",
  "crf",
  "cudnn_rnn",
  "data",
  "distribute",
  "distribution_strategy_context",
  "estimator",
  "framework",
  "graph_editor",
  "layers",
  "lookup",
  "losses",
  "memory_stats",
  "metrics",
  "mixed_precision",
  "model_pruning",
  "opt",
  "predictor",
  "rnn",
  "seq2seq",
  "slim",
  "summary",
  "tensorboard",
  "tpu",
  "training",
  "util",
]

_SAME = ("distributions", "keras")  # Names of tf itself, loaded when a script asks for them.
_unknown = unknown_name(
  __name__,
  {
    "cloud": "copy gs:// files to a local folder (gsutil cp) and leave it out.",
    "eager": "scripts of 1.x run here in graphs and sessions.",
    "learn": "use tf.estimator.",
    "nn": "use tf.nn.",
    "saved_model": "use tf.saved_model.",
    "staging": "use StagingArea of tensorflow.python.ops.data_flow_ops.",
    "tensorrt": "use tensorflow.python.compiler.tensorrt.trt_convert.",
    **dict.fromkeys(  # Names that would be taken for misspelled ones.
      ("legacy_seq2seq", "libsvm", "solvers", "tensor_forest"), "no other part has its names."
    ),
  },
)


def __getattr__(name: str) -> Any:
  return getattr(tf, name) if name in _SAME else _unknown(name)
