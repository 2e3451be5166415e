"""`tf.contrib`: the parts that scripts around BERT use, one module each.

TensorFlow 2 dropped `tf.contrib`. What is here computes what 1.15 computed, under the same names.
"""

from bert.tf1.contrib import (
  cluster_resolver,
  compiler,
  crf,
  cudnn_rnn,
  data,
  distribute,
  distribution_strategy_context,
  estimator,
  framework,
  layers,
  lookup,
  memory_stats,
  metrics,
  mixed_precision,
  opt,
  predictor,
  rnn,
  seq2seq,
  slim,
  summary,
  tpu,
  training,
  util,
)
from bert.tf1.errors import unknown_name

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
  "layers",
  "lookup",
  "memory_stats",
  "metrics",
  "mixed_precision",
  "opt",
  "predictor",
  "rnn",
  "seq2seq",
  "slim",
  "summary",
  "tpu",
  "training",
  "util",
]

__getattr__ = unknown_name(
  __name__,
  {
    "cloud": "copy gs:// files to a local folder (gsutil cp) and leave it out.",
    "distributions": "use tf.distributions.",
    "eager": "scripts of 1.x run here in graphs and sessions.",
    "keras": "use tf.keras.",
    "learn": "use tf.estimator.",
    "losses": "use tf.losses.",
    "saved_model": "use tf.saved_model.",
    "tensorrt": "use tensorflow.python.compiler.tensorrt.trt_convert.",
  },
)
