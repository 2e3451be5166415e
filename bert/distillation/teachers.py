"""A fine-tuned model that teaches: its weights never change, and it never drops out.

teacher = Teacher(config, "output/mrpc/model.ckpt-343")
outputs = teacher.outputs(forward)             # inside a training step
"""

from collections.abc import Callable

import tensorflow as tf

from bert.checkpoints import loading, reading
from bert.distillation.methods import Tensors
from bert.model.configuration import BertConfig
from bert.model.variables import VariableStore, use_store


class Teacher:
  """A model with variables of its own, which no checkpoint of the student holds.

  Attributes:
    config: of the model.
    prefix: of its checkpoint.
  """

  def __init__(self, config: BertConfig, prefix: str):
    self.config = config
    self.prefix = prefix
    self._store = VariableStore()

  def outputs(self, forward: Callable[[BertConfig], Tensors]) -> dict[str, tf.Tensor]:
    """Computes the teacher's outputs for a batch without a gradient; `forward`: see `methods.Step`.

    Raises:
      CheckpointError: the checkpoint lacks a variable of the model, or has it in another shape.
    """
    known = set(self._store.variables)
    with use_store(self._store):
      outputs = forward(self.config)
    self._load_weights({n: v for n, v in self._store.variables.items() if n not in known})
    return {name: tf.stop_gradient(value) for name, value in outputs.items()}

  def _load_weights(self, variables: dict[str, tf.Variable]) -> None:
    """Fills new variables; a model may have been saved without a pooler, if its head reads none."""
    if not variables:
      return
    saved = reading.names_and_shapes(self.prefix)
    wanted = {n: v for n, v in variables.items() if n in saved or "/pooler/" not in n}
    loading.restore(self.prefix, wanted)
