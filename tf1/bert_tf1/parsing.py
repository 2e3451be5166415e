"""`tf.parse_example` with the ops of 1.x: TensorFlow 1 and its Serving know no `ParseExampleV2`.

A graph that is exported with today's op loads in TensorFlow 2 alone. Values are the same. Functions
of a Dataset are never exported, and keep today's op, which is faster there.
"""

from collections.abc import Mapping
from typing import Any

from tensorflow.python.ops import gen_parsing_ops, parsing_config, parsing_ops

from bert_tf1.real import tf

_KINDS = [tf.VarLenFeature, tf.SparseFeature, tf.FixedLenFeature, tf.FixedLenSequenceFeature]


def _params(features: Mapping[str, Any]) -> Any:
  """Lists the keys, dtypes, shapes and defaults of `features` as the op takes them."""
  if not features:
    raise ValueError("Missing features: give a dict such as {'x': tf.VarLenFeature(tf.int64)}.")
  with_rows = parsing_ops._prepend_none_dimension(features)
  return parsing_config._ParseOpParams.from_features(with_rows, _KINDS)


def _tensors(features: Mapping[str, Any], params: Any, outputs: Any) -> dict[str, Any]:
  """Gives the op's outputs their names."""
  indices, values, shapes, dense = outputs
  sparse = [tf.SparseTensor(*parts) for parts in zip(indices, values, shapes, strict=True)]
  named = dict(zip(params.sparse_keys + params.dense_keys, sparse + list(dense), strict=True))
  return parsing_config._construct_tensors_for_composite_features(features, named)


def parse_example(
  serialized: Any, features: Mapping[str, Any], name: str | None = None, example_names: Any = None
) -> dict[str, Any]:
  """Parses a batch of serialized `tf.Example`s.

  Args:
    serialized: string `[B]`.
    features: name to `tf.FixedLenFeature`, `tf.VarLenFeature`, `tf.FixedLenSequenceFeature` or
      `tf.SparseFeature`.
    name: of the op.
    example_names: string `[B]`, for messages.

  Returns:
    Name to a tensor `[B, ...]` or a sparse tensor.

  Raises:
    ValueError: for a feature that cannot be parsed.
  """
  if tf.get_default_graph().building_function:
    return tf.parse_example(serialized, features, name, example_names)
  params = _params(features)
  with tf.name_scope(name, "ParseExample", [serialized, example_names]):
    outputs = gen_parsing_ops.parse_example(
      serialized=serialized,
      names=[] if example_names is None else example_names,
      dense_defaults=params.dense_defaults_vec,
      sparse_keys=params.sparse_keys,
      sparse_types=params.sparse_types,
      dense_keys=params.dense_keys,
      dense_shapes=params.dense_shapes_as_proto,
      name=name,
    )
  return _tensors(features, params, outputs)


def parse_single_example(
  serialized: Any, features: Mapping[str, Any], name: str | None = None, example_names: Any = None
) -> dict[str, Any]:
  """Parses one serialized `tf.Example`; see `parse_example`.

  Args:
    serialized: string scalar.
    features: as above.
    name: of the op.
    example_names: accepted; this op has no place for it in its messages.
  """
  if tf.get_default_graph().building_function:
    return tf.parse_single_example(serialized, features, name, example_names)
  params = _params(features)
  with tf.name_scope(name, "ParseSingleExample", [serialized]):
    serialized = tf.convert_to_tensor(serialized, name="serialized")
    outputs = gen_parsing_ops.parse_single_example(
      serialized=serialized,
      dense_defaults=params.dense_defaults_vec,
      num_sparse=len(params.sparse_keys),
      sparse_keys=params.sparse_keys,
      sparse_types=params.sparse_types,
      dense_keys=params.dense_keys,
      dense_shapes=params.dense_shapes_as_proto,
      name=name,
    )
  return _tensors(features, params, outputs)


# What the face gives for these names of `tf`.
NAMES = {
  "parse_example": parse_example,
  "parse_single_example": parse_single_example,
  "io.parse_example": parse_example,
  "io.parse_single_example": parse_single_example,
}
