"""The methods of a PyTorch optimizer, for an optimizer of Keras on the PyTorch backend.

optimizer = AdamW(model.parameters(), lr=2e-5, weight_decay=0.01)
loss.backward()
optimizer.step()
optimizer.zero_grad()
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import keras

from bert.keras3.torch_modules import on_torch


class LoopMethods(keras.optimizers.Optimizer if TYPE_CHECKING else object):  # type: ignore[misc]
  """Base before Keras's optimizer; without `watch` it changes nothing."""

  _groups: tuple[dict, ...] = ()

  def watch(self, parameters: Iterable) -> None:
    """Sets what `step` updates.

    Args:
      parameters: parameters of PyTorch, such as `model.parameters()`, or `named_parameters()`; or
        groups of them, dictionaries of `params` and optionally `weight_decay` and `lr`.

    Raises:
      ValueError: there is no parameter, or a group has no or an unknown key.
    """
    groups = list(parameters)
    if groups and not isinstance(groups[0], dict):
      groups = [{"params": groups}]
    for group in groups:
      unknown = sorted(set(group) - {"params", "weight_decay", "lr"})
      if "params" not in group or unknown:
        raise ValueError(
          "A group of parameters has params and optionally weight_decay and lr; got "
          f"{', '.join(map(str, group)) or 'nothing'}."
        )
    self._groups = tuple(self._group(dict(group), i) for i, group in enumerate(groups))
    if not self._variables_of_groups():
      raise ValueError("There is no parameter to train.")

  def _group(self, group: dict, number: int) -> dict:
    named = [x if isinstance(x, tuple) else (_path_of(x), x) for x in group["params"]]
    group["paths"] = [path for path, _ in named]
    group["params"] = [parameter for _, parameter in named]
    # A variable with a parameter as its value shares the parameter's storage.
    group["variables"] = [
      keras.Variable(parameter, trainable=True, name=f"group_{number}_{i}")
      for i, parameter in enumerate(group["params"])
    ]
    if "lr" in group:
      group["lr_factor"] = group["lr"] / float(self.learning_rate)
    return group

  def _variables_of_groups(self) -> list[keras.Variable]:
    return [variable for group in self._groups for variable in group["variables"]]

  def path_and_group(self, variable: keras.Variable) -> tuple[str, dict]:
    """Returns the path by which patterns find the variable, and its group's settings."""
    for group in self._groups:
      for path, member in zip(group["paths"], group["variables"], strict=True):
        if member is variable:
          return path, group
    return variable.path, {}

  @property
  def param_groups(self) -> list[dict]:
    """For each group its `params`, and its present `lr` and `weight_decay`; copies."""
    rate = float(self.learning_rate)
    return [
      {
        "params": list(group["params"]),
        "lr": rate * group.get("lr_factor", 1.0),
        "weight_decay": group.get("weight_decay", self.weight_decay_rate),
      }
      for group in self._groups
    ]

  def step(self) -> None:
    """Updates the parameters with their gradients; those without a gradient stay.

    Raises:
      ValueError: there are no parameters: `fit` calls `apply` instead.
    """
    self._need_groups("step")
    import torch

    variables = self._variables_of_groups()
    with torch.no_grad():
      self.build(variables)
      found = [variable for variable in variables if variable.value.grad is not None]
      self.apply([variable.value.grad for variable in found], found)

  def zero_grad(self, set_to_none: bool = True) -> None:
    """Forgets the gradients."""
    self._need_groups("zero_grad")
    for variable in self._variables_of_groups():
      if variable.value.grad is not None:
        variable.value.grad = None if set_to_none else variable.value.grad * 0

  def _need_groups(self, method: str) -> None:
    if not self._groups:
      raise ValueError(
        f"{method}() is for loops of PyTorch, with an optimizer that has parameters: "
        "AdamW(model.parameters(), ...). Elsewhere use model.fit, or optimizer.apply."
      )

  def state_dict(self) -> dict:
    """Returns the number of steps and the moments, as PyTorch's tensors."""
    self._need_groups("state_dict")
    self.build(self._variables_of_groups())
    return {str(i): variable.value.detach().clone() for i, variable in enumerate(self.variables)}

  def load_state_dict(self, state: dict) -> None:
    """Continues from the result of `state_dict`.

    Raises:
      ValueError: it is that of other parameters.
    """
    self._need_groups("load_state_dict")
    self.build(self._variables_of_groups())
    shapes = [tuple(variable.shape) for variable in self.variables]
    if [tuple(value.shape) for value in state.values()] != shapes:
      raise ValueError("This state belongs to an optimizer with other parameters.")
    for variable, value in zip(self.variables, state.values(), strict=True):
      variable.assign(value)


def _path_of(parameter) -> str:
  """Returns the path of one of the project's own; of others only `bias` or `kernel`."""
  return getattr(parameter, "keras_path", "bias" if parameter.ndim == 1 else "kernel")


def watchable(parameters) -> bool:
  """Checks whether an optimizer can update these itself, in a loop of PyTorch."""
  return on_torch() and parameters is not None
