"""`import keras` of scripts of 2016 to 2020: Keras 2, where an import finds Keras 3 today.

It is `tf.keras`, the last Keras 2 in its 1.x mode, under the names of the package of its own. The
files that it had (`keras.layers.core`, `keras.engine.topology`) are gone or changed: each of them
stands for the part that it was in.
"""

import functools
import importlib
from collections.abc import Mapping, Sequence
from typing import Any

from bert_tf1.errors import missing
from bert_tf1.face import Namespace
from bert_tf1.real import tf

_REMEDIES = {
  "keras.legacy": "it renamed arguments of Keras 1. Leave its decorators out.",
  "keras.utils.multi_gpu_model": "one GPU, or all cores, is used. Take the model itself.",
  "keras.wrappers": "its classes for scikit-learn are in the package scikeras.",
}


class Part(Namespace):
  """A module of Keras 2.

  Args:
    name: such as `keras.layers`.
    base: the module of `tf.keras`.
    names: what it has beside.
    files: the files of the old package, which have all names of the part.
    inside: modules of tf_keras with further names; they are no public ones today.
  """

  def __init__(
    self,
    name: str,
    base: Any,
    names: Mapping[str, Any] | None = None,
    files: Sequence[str] = (),
    inside: Sequence[str] = (),
  ):
    super().__init__(name, base, {**(names or {}), "_files": files, "_inside": inside})

  def __getattr__(self, name: str) -> Any:
    if name == "__all__":  # `from keras.layers import *` asks for it, else it reads no base.
      return dir(self)
    own = self.__dict__
    if name in own["_files"]:
      return self
    if not name.startswith("__") and not hasattr(own["_base"], name):
      for inside in own["_inside"]:
        module = importlib.import_module(f"tf_keras.src.{inside}")
        if hasattr(module, name):
          return getattr(module, name)
      remedy = _REMEDIES.get(f"{self.__name__}.{name}")
      if remedy:
        raise missing(self.__name__, name, (), remedy)
    return super().__getattr__(name)


@functools.cache
def load() -> Part:
  """Returns what `import keras` gives a script."""
  tf_keras = importlib.import_module("tf_keras")
  functional = importlib.import_module("tf_keras.src.engine.functional").Functional
  backend = Part("keras.backend", tf.keras.backend, {}, ["tensorflow_backend"], ["backend"])
  models = Part("keras.models", tf.keras.models, {"Input": tf.keras.Input})
  engine = Part(
    "keras.engine",
    None,
    {
      "Container": functional,
      "Input": tf.keras.Input,
      "InputLayer": tf.keras.layers.InputLayer,
      "InputSpec": tf.keras.layers.InputSpec,
      "Layer": tf.keras.layers.Layer,
      "Model": tf.keras.Model,
      "Network": functional,
      "Sequential": tf.keras.Sequential,
      "get_source_inputs": tf.keras.utils.get_source_inputs,
      "saving": models,
    },
    ["base_layer", "input_layer", "network", "sequential", "topology", "training"],
    ["engine.node", "engine.training_utils_v1"],
  )
  layers = Part(
    "keras.layers",
    tf.keras.layers,
    {},
    [
      *("advanced_activations", "convolutional", "convolutional_recurrent", "core"),
      *("cudnn_recurrent", "embeddings", "local", "merge", "noise", "normalization", "pooling"),
      *("recurrent", "wrappers"),
    ],
    ["layers", "layers.merging.base_merge"],
  )
  losses = Part("keras.losses", tf.keras.losses)
  utils = Part(
    "keras.utils",
    tf.keras.utils,
    {},
    [
      *("conv_utils", "data_utils", "generic_utils", "io_utils", "layer_utils", "np_utils"),
      *("training_utils", "vis_utils"),
    ],
    ["utils.generic_utils", "utils.conv_utils", "utils.io_utils", "utils.layer_utils"],
  )
  names = {
    "__version__": tf_keras.__version__,
    "backend": backend,
    "engine": engine,
    "layers": layers,
    "losses": losses,
    "models": models,
    "objectives": losses,
    "utils": utils,
  }
  return Part("keras", tf.keras, names)
