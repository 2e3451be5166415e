"""TensorFlow as an engine: checkpoints, and SavedModels of token ids or of texts.

engine = load_checkpoint("out/model.ckpt-343", config, head)           # the scores of a task
engine = load_graph(build, ["input_ids", ...], "out/model.ckpt-343")   # what `build` gives
engine = load("out/export/task/saved_model.pb")                        # of token ids
engine = load_texts("out/export/task")                                 # of strings
"""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from absl import logging

from bert.exporting import saved_models, token_graph
from bert.io import installation, start_lines
from bert.model.task_head import Head
from bert.model.variables import FilledStore, traced_once, use_store
from bert.modeling import BertConfig
from bert.predicting.engines.engine import Arrays
from bert.predicting.engines.model_inputs import ModelInputs, need_file, shapes

_TYPES = {"int32": np.int32, "int64": np.int64}


class TensorFlowEngine:
  """A traced function as an `engine.Engine`."""

  name = "tensorflow"

  def __init__(self, function: Callable[..., Mapping[str, Any]], inputs: Sequence[str], owner: Any):
    """Also keeps `owner`, which has the variables: a traced function refers to them weakly."""
    self.inputs = tuple(inputs)
    self._function = function
    self._owner = owner

  def __call__(self, batch: Arrays):
    """See `engine.Engine`."""
    outputs = self._function(**{name: tf.constant(batch[name]) for name in self.inputs})
    return {name: value.numpy() for name, value in outputs.items()}


# ---------------------------------------------------------------------------------------------
# Checkpoints.


def load_checkpoint(
  path: str, config: BertConfig, head: Head, dtype: str = "float32"
) -> TensorFlowEngine:
  """Loads a task's model.

  Args:
    path: prefix of its checkpoint.
    config: of the model.
    head: of the task.
    dtype: of matrix products.

  Raises:
    CheckpointError: the checkpoint lacks a variable, or has it in another shape.
  """
  graph = token_graph.of_task(config, head, dtype, skip_padding=True, for_engine=True)
  graph.load(path)
  return TensorFlowEngine(lambda **batch: graph(batch), graph.inputs, owner=graph)


def load_graph(
  build: Callable[[Arrays], Arrays],
  inputs: Sequence[str],
  prefix: str,
  optional: tuple[str, ...] = (),
) -> TensorFlowEngine:
  """Traces a graph function once, and loads its variables from a checkpoint.

  Args:
    build: int32 inputs `[R, S]` of unknown sizes -> outputs `[R, ...]`.
    inputs: names of the inputs.
    prefix: the checkpoint's, see `finding.find_checkpoint`.
    optional: prefixes of variables that may be missing, because no output depends on them.

  Raises:
    CheckpointError: a variable is missing, or has another shape.
  """
  store = FilledStore()

  def build_in_store(**batch):
    with use_store(store):
      return build(batch)

  specs = {name: tf.TensorSpec([None, None], tf.int32, name) for name in inputs}
  # `tf.function` traces a call twice if it lifts the variables that the call creates.
  with traced_once():
    graph = tf.function(build_in_store, autograph=False).get_concrete_function(**specs)
  saved_models.load_all(prefix, store.variables.values(), optional)
  store.finish()
  return TensorFlowEngine(graph, inputs, owner=store)


# ---------------------------------------------------------------------------------------------
# SavedModels.


def load_texts(folder: str, inputs: Sequence[str]) -> TensorFlowEngine:
  """Loads a SavedModel whose signature `serving_default` takes strings `[R]` by these names.

  Raises:
    ValueError: it is damaged.
  """
  installation.text_operations("An exported task model")  # registers the ops of tokenizers
  model = saved_models.load(folder)
  return TensorFlowEngine(model.signatures["serving_default"], inputs, owner=model)


class SavedModelEngine:
  """A SavedModel of token ids as an `engine.Engine`."""

  name = "tensorflow"

  def __init__(self, model: Any, path: str, max_length: int | None = None):
    """Takes a loaded SavedModel, its name for messages, and the longest sequences.

    Raises:
      ValueError: the model reads other inputs than token ids.
    """
    self._model, self._path = model, path  # the model owns the function's variables
    self._function = model.signatures["serving_default"]
    specs = self._function.structured_input_signature[1]
    types = {name: spec.dtype.name for name, spec in specs.items()}
    self._inputs = ModelInputs(types, _TYPES, path, max_length)
    self.inputs = self._inputs.names

  def __call__(self, batch: Arrays):
    """See `engine.Engine`.

    Raises:
      ValueError: an input is missing, or the model cannot compute the batch.
    """
    given = self._inputs.arrays(batch)
    try:
      outputs = self._function(**{name: tf.constant(each) for name, each in given.items()})
    except tf.errors.InvalidArgumentError as error:
      reason = (error.message or "").partition("\n")[0]
      raise ValueError(f"{self._path} cannot compute {shapes(given)}: {reason:.200}") from None
    return {name: value.numpy() for name, value in outputs.items()}


def load(
  path: str | os.PathLike,
  threads: int | None = None,
  shares_cores: bool = False,
  precision: str = "float32",
  max_length: int | None = None,
) -> SavedModelEngine:
  """Loads a SavedModel that `TokenGraph.save` wrote.

  Args:
    path: of its `saved_model.pb`.
    threads: that compute; by default TensorFlow's own choice. Without effect where TensorFlow has
      computed something already.
    shares_cores: without effect; see `onnxruntime.py`.
    precision: without effect; SavedModels are float32.
    max_length: the longest sequences that the model reads; None if that is not known.

  Raises:
    ValueError: it is damaged, or reads other inputs.
    OSError: there is no such file.
  """
  del shares_cores, precision
  path = need_file(path)
  try:
    start_lines.start_tensorflow(threads=threads)
  except RuntimeError:
    logging.warning("TensorFlow runs already: threads=%d has no effect.", threads)
  return SavedModelEngine(saved_models.load(os.path.dirname(path)), path, max_length)
