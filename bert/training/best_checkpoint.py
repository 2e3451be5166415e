"""Evaluation during training, which keeps the best weights and may stop training early."""

import math
from collections.abc import Callable
from typing import Any

from absl import logging

from bert.io.wording import counted
from bert.training.resumption import RunState
from bert.training.run_config import EvalSpec


class BestCheckpointTracker:
  """Evaluates every N steps, and stores the results in the run's state.

  Attributes:
    spec: what to evaluate, and when.
  """

  def __init__(
    self,
    spec: EvalSpec,
    evaluate: Callable[[EvalSpec], dict[str, Any]],
    save_best: Callable[[int, RunState], None],
  ):
    """Stores what to evaluate and when, how to, and what saves the best step's variables."""
    self.spec = spec
    self._evaluate = evaluate
    self._save_best = save_best

  def is_due(self, step: int) -> bool:
    """Checks whether to evaluate after this step of a run."""
    return step > 0 and step % self.spec.every_steps == 0

  def evaluate(self, step: int, state: RunState) -> bool:
    """Evaluates after a step, if not done yet; returns whether to stop training."""
    if state.evaluated_step == step:
      return False
    results = self._evaluate(self.spec)
    logging.info("Evaluation at step %d: %s", step, _one_line(results))
    metric = self.spec.metric
    if not isinstance(results.get(metric), float):
      raise ValueError(
        f"EvalSpec.metric={metric!r} is not a numeric result; results are {', '.join(results)}."
      )
    self._forget_another_metric(state)
    state.best_metric, state.evaluated_step = metric, step
    self._compare_with_best(results[metric], state)
    if not self.has_lost_patience(state):
      return False
    logging.info(
      "Stopping early at step %d: %s without improvement on %s = %g of step %d.",
      step,
      counted(self.spec.patience, "evaluation"),
      metric,
      state.best_value,
      state.best_step,
    )
    return True

  def _forget_another_metric(self, state: RunState) -> None:
    """Starts the comparison anew where the run before watched another result."""
    if state.best_metric in (None, self.spec.metric):  # None: written by an earlier version
      return
    logging.info("The best was that by %s, now by %s.", state.best_metric, self.spec.metric)
    state.best_value, state.evaluations_without_improvement = None, 0

  def _compare_with_best(self, value: float, state: RunState) -> None:
    # An equal value is no improvement: the weights that were trained least stay, and patience ends.
    if not self._is_better(value, state.best_value):
      state.evaluations_without_improvement += 1
      return
    state.best_value, state.best_step = value, state.evaluated_step
    state.evaluations_without_improvement = 0
    if self.spec.keep_best:
      self._save_best(state.best_step, state)

  def _is_better(self, value: float, best: float | None) -> bool:
    if math.isnan(value) or best is None:
      return not math.isnan(value)
    return value > best if self.spec.higher_is_better else value < best

  def has_lost_patience(self, state: RunState) -> bool:
    """Checks whether the last `patience` evaluations brought no improvement."""
    patience = self.spec.patience
    if state.best_metric not in (None, self.spec.metric):
      return False
    return patience is not None and state.evaluations_without_improvement >= patience


def _one_line(results: dict[str, Any]) -> str:
  return ", ".join(f"{k} = {v:g}" for k, v in results.items() if isinstance(v, (int, float)))
