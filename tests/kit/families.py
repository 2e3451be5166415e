"""Tiny models of other families, and the names of a model's variables."""

import zlib

import numpy as np
import tensorflow as tf

from bert.model.variables import VariableStore, use_store
from bert.modeling import BertConfig, BertModel


def load_variables(store: VariableStore, prefix) -> None:
  """Sets every variable of a store to its value in a checkpoint."""
  reader = tf.train.load_checkpoint(str(prefix))
  for name, variable in store.variables.items():
    variable.assign(reader.get_tensor(name))


class _ShapesOnly(VariableStore):
  """Gives zeros for variables, which take no memory while a graph is traced."""

  def get_variable(self, name, shape, initializer, dtype, trainable):
    del initializer, trainable
    self.variables.setdefault(name, list(shape))
    return tf.zeros(shape, dtype)


def shapes_of(config: BertConfig) -> dict[str, list[int]]:
  """Name -> shape of a model's variables, in order of creation; none of them is made."""
  store = _ShapesOnly()

  @tf.function(autograph=False)
  def build():
    with use_store(store):
      BertModel(config, False, tf.zeros([1, 2], tf.int32))

  build.get_concrete_function()
  return store.variables


def recorded_weight(name: str, shape) -> np.ndarray:
  """The value of a head's variable where the golden files of ELECTRA have a rule, not a record."""
  value = np.random.RandomState(zlib.crc32(name.encode()) & 0x7FFFFFFF).randn(*shape)
  if name.endswith("bias"):
    return (0.1 * value).astype(np.float32)
  return (1.2 * value / np.sqrt(shape[0])).astype(np.float32)


def load_recorded(store: VariableStore, checkpoint, head, prefix: str) -> None:
  """Sets the trainable variables: the encoder's to a checkpoint's, a head's to recorded values.

  `head` maps `prefix` + name to those that the checkpoint lacks.
  """
  reader = tf.train.load_checkpoint(str(checkpoint))
  for name, variable in store.trainable_variables.items():
    in_file = reader.has_tensor(name)
    variable.assign(reader.get_tensor(name) if in_file else head[prefix + name])
