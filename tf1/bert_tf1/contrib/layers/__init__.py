"""`tf.contrib.layers`: layers, normalizations, initializers, regularizers, `optimize_loss`.

Variables have 1.15's names (`weights` and `biases`, not `kernel` and `bias`) and collections. What
1.15 has in `tf.contrib.layers.python.layers.utils` is here too.
"""

from bert_tf1.contrib.layers.batch_normalization import batch_norm
from bert_tf1.contrib.layers.collections import (
  append_tensor_alias,
  collect_named_outputs,
  constant_value,
  convert_collection_to_dict,
  gather_tensors_aliases,
  get_tensor_aliases,
  get_variable_collections,
  last_dimension,
  n_positive_integers,
  smart_cond,
)
from bert_tf1.contrib.layers.convolutions import (
  avg_pool2d,
  conv1d,
  conv2d,
  conv2d_transpose,
  conv3d,
  convolution,
  convolution1d,
  convolution2d,
  convolution2d_transpose,
  convolution3d,
  max_pool2d,
)
from bert_tf1.contrib.layers.dense import (
  bias_add,
  dropout,
  elu,
  flatten,
  fully_connected,
  linear,
  maxout,
  one_hot_encoding,
  relu,
  relu6,
  repeat,
  softmax,
  stack,
)
from bert_tf1.contrib.layers.embedding import embed_sequence, embedding_lookup_unique
from bert_tf1.contrib.layers.initializers import (
  variance_scaling_initializer,
  xavier_initializer,
  xavier_initializer_conv2d,
)
from bert_tf1.contrib.layers.normalization import group_norm, instance_norm, layer_norm
from bert_tf1.contrib.layers.optimizers import (
  OPTIMIZER_CLS_NAMES,
  OPTIMIZER_SUMMARIES,
  optimize_loss,
)
from bert_tf1.contrib.layers.recomputing import recompute_grad
from bert_tf1.contrib.layers.regularizers import (
  apply_regularization,
  l1_l2_regularizer,
  l1_regularizer,
  l2_regularizer,
  sum_regularizer,
)
from bert_tf1.contrib.layers.summaries import (
  summarize_activation,
  summarize_activations,
  summarize_biases,
  summarize_collection,
  summarize_tensor,
  summarize_tensors,
  summarize_variables,
  summarize_weights,
)
from bert_tf1.errors import unknown_name

__all__ = [
  "OPTIMIZER_CLS_NAMES",
  "OPTIMIZER_SUMMARIES",
  "append_tensor_alias",
  "apply_regularization",
  "avg_pool2d",
  "batch_norm",
  "bias_add",
  "collect_named_outputs",
  "constant_value",
  "conv1d",
  "conv2d",
  "conv2d_transpose",
  "conv3d",
  "convert_collection_to_dict",
  "convolution",
  "convolution1d",
  "convolution2d",
  "convolution2d_transpose",
  "convolution3d",
  "dropout",
  "elu",
  "embed_sequence",
  "embedding_lookup_unique",
  "flatten",
  "fully_connected",
  "gather_tensors_aliases",
  "get_tensor_aliases",
  "get_variable_collections",
  "group_norm",
  "instance_norm",
  "l1_l2_regularizer",
  "l1_regularizer",
  "l2_regularizer",
  "last_dimension",
  "layer_norm",
  "linear",
  "max_pool2d",
  "maxout",
  "n_positive_integers",
  "one_hot_encoding",
  "optimize_loss",
  "recompute_grad",
  "relu",
  "relu6",
  "repeat",
  "smart_cond",
  "softmax",
  "stack",
  "sum_regularizer",
  "summarize_activation",
  "summarize_activations",
  "summarize_biases",
  "summarize_collection",
  "summarize_tensor",
  "summarize_tensors",
  "summarize_variables",
  "summarize_weights",
  "variance_scaling_initializer",
  "xavier_initializer",
  "xavier_initializer_conv2d",
]

_COLUMNS = "use tf.feature_column."
_SEPARABLE = "use tf.layers.separable_conv2d; its variables have other names."
__getattr__ = unknown_name(
  __name__,
  {
    "avg_pool3d": "use tf.layers.average_pooling3d.",
    "bow_encoder": "use the mean of tf.contrib.layers.embed_sequence.",
    "legacy_fully_connected": "use tf.contrib.layers.fully_connected; its bias has another name.",
    "max_pool3d": "use tf.layers.max_pooling3d.",
    "pool": "use tf.nn.pool.",
    "rev_block": "write the blocks one after the other; they compute the same with more memory.",
    "safe_embedding_lookup_sparse": "use tf.nn.safe_embedding_lookup_sparse.",
    "separable_conv2d": _SEPARABLE,
    "separable_convolution2d": _SEPARABLE,
    "unit_norm": "use tf.nn.l2_normalize.",
    **dict.fromkeys(
      (
        "bucketized_column",
        "create_feature_spec_for_parsing",
        "crossed_column",
        "embedding_column",
        "input_from_feature_columns",
        "one_hot_column",
        "real_valued_column",
        "sparse_column_with_hash_bucket",
        "sparse_column_with_integerized_feature",
        "sparse_column_with_keys",
      ),
      _COLUMNS,
    ),
  },
)
