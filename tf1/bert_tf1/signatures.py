"""Names of TensorFlow 1.15 that 2.21 lacks outside `tf.contrib` and `tf.estimator`.

`compat.v1` of 2.21 has all but some twenty of 1.15's public names, and no function of it lost an
argument that scripts name: `tests/signatures_test.py` holds the call forms of 1.x against
1.15.5's results. What is here is the rest: `NAMES` for the face, and names in TensorFlow's own
files, which scripts import from. The latter are added to TensorFlow's modules, each only where it
is missing: code that knows today's module sees nothing else.
"""

import sys
import types
from collections.abc import Iterable
from typing import Any

import numpy as np
from tensorflow import python as _python
from tensorflow.python import pywrap_tensorflow
from tensorflow.python.distribute import distribute_lib
from tensorflow.python.framework import graph_util as _graph_util
from tensorflow.python.framework import graph_util_impl, indexed_slices, ops, tensor_shape
from tensorflow.python.layers import normalization
from tensorflow.python.ops import (
  array_ops,
  control_flow_ops,
  gen_training_ops,
  random_ops,
  ref_variable,
  standard_ops,
  variable_scope,
  variables,
)
from tensorflow.python.training import checkpoint_management
from tensorflow.python.util import nest

from bert_tf1 import estimator
from bert_tf1.real import tf


class _Int64List:
  """`tf.train.Int64List`, also of bools, as protobuf and NumPy of 2018 had it."""

  FromString = tf.train.Int64List.FromString

  def __new__(cls, value: Iterable[Any] = ()) -> Any:
    value = list(value)
    try:
      return tf.train.Int64List(value=value)
    except TypeError:
      bools = (bool, np.bool_)
      return tf.train.Int64List(value=[int(v) if isinstance(v, bools) else v for v in value])


# What the face gives in place of, or beside, compat.v1's; dots lead into namespaces.
NAMES: dict[str, Any] = {"train.Int64List": _Int64List, "pywrap_tensorflow": pywrap_tensorflow}

_CONVERT_TO_CONSTANTS = {
  "convert_variables_to_constants": tf.graph_util.convert_variables_to_constants
}
# What each module had in 1.15.
_IN_MODULES: list[tuple[types.ModuleType, dict[str, Any]]] = [
  (array_ops, {"stack": tf.stack, "unstack": tf.unstack}),
  (
    checkpoint_management,
    {
      "CheckpointManager": tf.train.CheckpointManager,
      "checkpoint_exists": tf.train.checkpoint_exists,
      "get_checkpoint_mtimes": tf.train.get_checkpoint_mtimes,
      "get_checkpoint_state": tf.train.get_checkpoint_state,
      "latest_checkpoint": tf.train.latest_checkpoint,
      "remove_checkpoint": tf.train.remove_checkpoint,
      "update_checkpoint_state": tf.train.update_checkpoint_state,
    },
  ),
  (
    control_flow_ops,
    {"Assert": tf.Assert, "case": tf.case, "cond": tf.cond, "while_loop": tf.while_loop},
  ),
  (_graph_util, _CONVERT_TO_CONSTANTS),
  (graph_util_impl, _CONVERT_TO_CONSTANTS),
  (nest, {"is_sequence": nest.is_nested}),
  (
    normalization,
    {
      "BatchNorm": tf.layers.BatchNormalization,
      "BatchNormalization": tf.layers.BatchNormalization,
      "batch_norm": tf.layers.batch_normalization,
      "batch_normalization": tf.layers.batch_normalization,
    },
  ),
  (
    ops,
    {
      "IndexedSlices": tf.IndexedSlices,
      "Tensor": tf.Tensor,
      "convert_to_tensor_or_indexed_slices": indexed_slices.convert_to_tensor_or_indexed_slices,
      "register_tensor_conversion_function": tf.register_tensor_conversion_function,
    },
  ),
  (pywrap_tensorflow, {"NewCheckpointReader": tf.train.NewCheckpointReader}),
  (random_ops, {"random_crop": tf.random_crop}),
  (standard_ops, {"random_crop": tf.random_crop, "stack": tf.stack, "unstack": tf.unstack}),
  (
    tensor_shape,
    {
      "matrix": lambda rows, columns: tf.TensorShape([rows, columns]),
      "scalar": lambda: tf.TensorShape([]),
      "vector": lambda length: tf.TensorShape([length]),
    },
  ),
  (variable_scope, {"variable": tf.Variable}),
  (variables, {"RefVariable": ref_variable.RefVariable, "VariableV1": tf.Variable}),
]
# Files of 1.15 that have moved.
_MOVED = {
  "tensorflow.python.distribute.distribution_strategy_context": distribute_lib,
  "tensorflow.python.training.distribute": distribute_lib,
  "tensorflow.python.training.distribution_strategy_context": distribute_lib,
  "tensorflow.python.training.training_ops": gen_training_ops,
}
# Files of 1.15's `tensorflow.python.estimator`, and whose names each has.
_ESTIMATOR_FILES = {
  "export": estimator.export,
  "inputs": estimator.inputs,
  **dict.fromkeys(
    ("estimator", "estimator_lib", "exporter", "model_fn", "run_config", "training"), estimator
  ),
  **dict.fromkeys(("export.export", "export.export_lib", "export.export_output"), estimator.export),
  **dict.fromkeys(("inputs.inputs", "inputs.numpy_io"), estimator.inputs),
}


def _restore() -> None:
  """Adds the names to TensorFlow's modules; what a module has stays as it is."""
  for module, names in _IN_MODULES:
    for name, value in names.items():
      vars(module).setdefault(name, value)
  for path, module in _MOVED.items():
    sys.modules.setdefault(path, module)
  _place("tensorflow.python", _python, "estimator", estimator)
  for path, part in _ESTIMATOR_FILES.items():
    owner, _, name = f"tensorflow.python.estimator.{path}".rpartition(".")
    _place(owner, sys.modules[owner], name, part)


def _place(owner: str, package: types.ModuleType, name: str, names: types.ModuleType) -> None:
  """Makes the module `OWNER.NAME`, with the public names of `names`."""
  module = types.ModuleType(f"{owner}.{name}", names.__doc__)
  module.__dict__.update({k: value for k, value in vars(names).items() if not k.startswith("_")})
  module.__path__ = []  # There may be files below it.
  sys.modules.setdefault(module.__name__, module)
  setattr(package, name, module)


_restore()
