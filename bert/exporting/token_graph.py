"""What a model computes of tokens, as one traced function: the encoder, or a task with its head.

  graph = of_task(config, kind.head_class().of_run(facts, settings))
  graph.load("out/model.ckpt-343")
  graph({"input_ids": ids, "input_mask": mask, "segment_ids": segments})["logits"]

Exports convert or save this function, and the engine of TensorFlow calls it; what lies between
texts and tokens is Python (`tasks/decoding.py`).

Letters in shapes: R = rows, each one sequence, S = sequence length, W = hidden size.
"""

from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from bert.exporting import saved_models
from bert.exporting.onnx.names import INPUTS
from bert.model import block_notes, kernels, variables
from bert.model.task_head import SEQUENCES, Batch, Head, Tensors
from bert.modeling import BertConfig

ENCODER_OUTPUTS = ("last_hidden_state", "pooler_output")
"""What `of_encoder` gives, by the names that transformers' exports have: `[R, S, W]`, `[R, W]`."""


class TokenGraph:
  """A traced function of int32 `[R, S]`, both sizes unknown.

  Attributes:
    inputs: names of those of `SEQUENCES` that the model reads; families without segments do not
      read `segment_ids`.
    outputs: names of what it gives.
    function: the traced function, of all of `SEQUENCES`.
    variables: by the checkpoint's names, with random values until `load`.
    blocks: the blocks of a transformer in the function, for engines that have operators for them.
    title: what messages call the model.
  """

  def __init__(
    self,
    build: Callable[[Tensors], Tensors],
    optional: tuple[str, ...] = (),
    title: str = "the model",
    for_engine: bool = False,
  ):
    """Traces `build`: from the features of `SEQUENCES` to tensors `[R, ...]`.

    Checkpoints may lack the variables whose names begin with one of `optional`. With
    `for_engine` the model is faster after `load`, and nothing before it: see
    `variables.FilledStore`. Exports hold no such variables beside those of the checkpoint.
    """
    self.title = title
    self._optional = optional
    self._store = variables.FilledStore() if for_engine else variables.VariableStore()

    def build_in_store(**features):
      with variables.use_store(self._store), kernels.portable_blocks():
        return build(features)

    specs = {name: tf.TensorSpec([None, None], tf.int32, name) for name in SEQUENCES}
    # `tf.function` traces a call twice if it lifts the variables that the call creates.
    with variables.traced_once(), block_notes.taken() as self.blocks:
      self.function = tf.function(build_in_store, autograph=False).get_concrete_function(**specs)
    self.outputs = tuple(self.function.structured_outputs)
    self.variables = list(self._store.variables.values())
    read = _ops_behind(self.function.outputs)
    self.inputs = tuple(name for name in SEQUENCES if name in read)

  def load(self, checkpoint: str) -> None:
    """Assigns to the variables their values in a checkpoint.

    Raises:
      CheckpointError: the checkpoint lacks a variable, or has it in another shape.
    """
    saved_models.load_all(checkpoint, self.variables, self._optional)
    if isinstance(self._store, variables.FilledStore):
      self._store.finish()

  def signature(self) -> tf.types.experimental.ConcreteFunction:
    """Returns the function of the inputs that the model reads alone, by transformers' names."""

    def compute(**inputs):
      ids = inputs["input_ids"]
      return self.function(**{name: inputs.get(INPUTS[name], ids) for name in SEQUENCES})

    names = [INPUTS[name] for name in self.inputs]
    specs = {name: tf.TensorSpec([None, None], tf.int32, name) for name in names}
    return tf.function(compute, autograph=False).get_concrete_function(**specs)

  def save(self, folder: str) -> None:
    """Writes a SavedModel of token ids, whose signature `serving_default` is `signature()`."""
    owner = tf.train.Checkpoint(variables=self.variables)
    saved_models.save(owner, folder, {"serving_default": self.signature()}, {})

  def __call__(self, features: Mapping[str, Any]) -> Tensors:
    """Computes name -> tensor `[R, ...]` of arrays; those that are not in `inputs` may miss."""
    ids = tf.constant(features["input_ids"], tf.int32)
    given = {name: features[name] if name in self.inputs else ids for name in SEQUENCES}
    return self.function(**{name: tf.constant(each, tf.int32) for name, each in given.items()})


def of_task(
  config: BertConfig,
  head: Head,
  dtype: str = "float32",
  skip_padding: bool = False,
  for_engine: bool = False,
) -> TokenGraph:
  """Traces a task's model.

  Args:
    config: of the model.
    head: what is computed of the encoder's outputs, see `Head.scores`.
    dtype: of matrix products.
    skip_padding: whether to compute tokens alone: faster in TensorFlow.
    for_engine: see `TokenGraph`.
  """
  options = {"dtype": tf.as_dtype(dtype), "skip_padding": skip_padding}
  title = f"the head {type(head).__qualname__}"
  return TokenGraph(
    lambda features: head.scores(Batch(config, features, options=options)),
    title=title,
    for_engine=for_engine,
  )


def of_encoder(config: BertConfig, with_pooler: bool = True) -> TokenGraph:
  """Traces the encoder: `ENCODER_OUTPUTS`, the first alone in a family without a pooler.

  Args:
    config: of the model.
    with_pooler: False for a checkpoint that was saved without the pooler.
  """

  def build(features):
    model = Batch(config, features).bert()
    outputs = model.get_sequence_output(), model.get_pooled_output()
    count = 2 if with_pooler and config.family.has_pooler else 1
    return dict(zip(ENCODER_OUTPUTS[:count], outputs, strict=False))

  optional = () if with_pooler else (f"{config.family.scope}/pooler/",)
  return TokenGraph(build, optional, title="the encoder")


def _ops_behind(outputs) -> set[str]:
  """Names the operations that any of the tensors depends on."""
  found, waiting = set(), [tensor.op for tensor in outputs]
  while waiting:
    op = waiting.pop()
    if op.name not in found:
      found.add(op.name)
      waiting += [tensor.op for tensor in op.inputs]
  return found
