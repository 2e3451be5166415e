"""Steps of distillation by hand, and weights of PyTorch under our names."""

from collections.abc import Callable, Mapping

import numpy as np
import tensorflow as tf

from bert.checkpoints import transformers_names
from bert.model.variables import VariableStore, traced_once, use_store
from bert.optimization import create_optimizer


def our_tensors(tensors: Mapping[str, np.ndarray], family: str = "bert") -> dict[str, np.ndarray]:
  """Recorded tensors of PyTorch, or numbers of each, by our names and in our layout."""
  places = transformers_names.variables_of(list(tensors), family)
  return {
    name: np.transpose(tensors[place.name]) if place.is_transposed else tensors[place.name]
    for name, place in places.items()
  }


def noise_of(facts: Mapping, family: str = "bert") -> dict[str, np.ndarray]:
  """Name of each tensor -> how far float32 took the original from float64, of a recorded run."""
  return our_tensors(facts["max_abs_difference_of_float32_from_float64"]["weights"], family)


class Steps:
  """Training steps of a loss, without an `Estimator`.

  Attributes:
    store: the student's variables.
  """

  def __init__(self, forward: Callable, parts: int = 1, **optimizer):
    """Takes `forward(batch) -> methods.DistillationLoss` and keywords of `create_optimizer`.

    Args:
      forward: see above.
      parts: batches of one update, whose gradients are averaged.
      optimizer: see above.
    """
    self.store = VariableStore()

    def train_op(batch):
      learned = forward(batch)
      return learned, create_optimizer(learned.loss, **optimizer)

    def step(*batches):
      with use_store(self.store):
        ops = [train_op(batch) for batch in batches]
        gradients = [
          None if each[0] is None else tf.add_n([tf.convert_to_tensor(g) for g in each]) / parts
          for each in zip(*(op.gradients for _, op in ops), strict=True)
        ]
        ops[0][1].apply(gradients)
      named = [{"loss": learned.loss, **learned.parts} for learned, _ in ops]
      return named, ops[0][1].learning_rate

    self._parts = parts
    self._step = tf.function(step, autograph=False)

  def load(self, batch, tensors: Mapping[str, np.ndarray]) -> None:
    """Creates the variables and sets the model's; each must be in `tensors`."""
    with traced_once():
      self._step = self._step.get_concrete_function(*[batch] * self._parts)
    for name, variable in self.store.trainable_variables.items():
      variable.assign(tensors[name])

  def run(self, batches) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Trains on all batches: each part of the loss by name, and the rate of each update."""
    scalars, rates = [], []
    for first in range(0, len(batches), self._parts):
      named, rate = self._step(*batches[first : first + self._parts])
      scalars += [{name: float(value) for name, value in each.items()} for each in named]
      rates.append(float(rate))
    return {name: np.array([each[name] for each in scalars]) for name in scalars[0]}, rates

  def weights(self) -> dict[str, np.ndarray]:
    """The model's variables by name."""
    return {name: value.numpy() for name, value in self.store.trainable_variables.items()}
