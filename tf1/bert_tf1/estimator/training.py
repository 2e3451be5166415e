"""`tf.estimator.train_and_evaluate`: training with an evaluation after each saved checkpoint."""

import collections
import os
from collections.abc import Iterable
from typing import Any

from bert_tf1.estimator.exporters import Exporter
from bert_tf1.estimator.specs import checked_hooks
from bert_tf1.real import tf


class TrainSpec(collections.namedtuple("TrainSpec", ["input_fn", "max_steps", "hooks"])):
  """What to train: an input_fn, up to step `max_steps` (None: until the input ends)."""

  def __new__(cls, input_fn, max_steps=None, hooks=None):
    """Raises ValueError or TypeError for a wrong argument."""
    _check_input_fn(input_fn)
    if max_steps is not None and max_steps <= 0:
      raise ValueError(f"Must specify max_steps > 0, given: {max_steps}")
    return super().__new__(cls, input_fn, max_steps, checked_hooks(hooks))


class EvalSpec(
  collections.namedtuple(
    "EvalSpec",
    ["input_fn", "steps", "name", "hooks", "exporters", "start_delay_secs", "throttle_secs"],
  )
):
  """What to evaluate: an input_fn, `steps` batches (None: all), at most every `throttle_secs`.

  `exporters` run after each evaluation. `start_delay_secs` belongs to clusters and is not used.
  """

  def __new__(
    cls,
    input_fn,
    steps=100,
    name=None,
    hooks=None,
    exporters=None,
    start_delay_secs=120,
    throttle_secs=600,
  ):
    """Raises ValueError or TypeError for a wrong argument."""
    _check_input_fn(input_fn)
    if steps is not None and steps <= 0:
      raise ValueError(f"Must specify steps > 0, given: {steps}")
    if name is not None and not isinstance(name, str):
      raise TypeError(f"`name` must be string, given: {name!r}")
    for setting, value in (
      ("start_delay_secs", start_delay_secs),
      ("throttle_secs", throttle_secs),
    ):
      if value < 0:
        raise ValueError(f"Must specify {setting} >= 0, given: {value}")
    return super().__new__(
      cls,
      input_fn,
      steps,
      name,
      checked_hooks(hooks),
      _checked_exporters(exporters),
      start_delay_secs,
      throttle_secs,
    )


def _check_input_fn(input_fn) -> None:
  if not callable(input_fn):
    raise TypeError(f"`input_fn` must be callable, given: {input_fn!r}")


def _checked_exporters(exporters) -> tuple:
  given = exporters or ()
  if isinstance(given, Exporter):
    given = (given,)
  if not isinstance(given, Iterable) or not all(isinstance(one, Exporter) for one in given):
    raise TypeError(
      f"`exporters` must be an Exporter, an iterable of Exporter, or `None`, found {exporters!r}."
    )
  names = [exporter.name for exporter in given]
  for name in names:
    if not name or names.count(name) > 1:
      raise ValueError(f"Exporters need names that differ, given: {names}")
  return tuple(given)


class _EvaluateCheckpoints(tf.train.CheckpointSaverListener):
  """Evaluates the first checkpoint, then one every `throttle_secs` at most, and the last one."""

  def __init__(self, estimator, spec: EvalSpec, max_steps):
    self._estimator, self._spec, self._max_steps = estimator, spec, max_steps
    self.results: Any = None
    self.exports: Any = None
    self.begin()

  def begin(self):
    self._has_trained = False
    self._timer = tf.train.SecondOrStepTimer(every_secs=self._spec.throttle_secs)

  def after_save(self, session, global_step_value):
    del session
    if not self._has_trained:  # The checkpoint that is saved before the first step.
      self._has_trained = True
    elif self._timer.should_trigger_for_step(global_step_value):
      self._evaluate(global_step_value)
    else:
      tf.logging.info(
        "Skip the current checkpoint eval due to throttle secs (%s secs).", self._spec.throttle_secs
      )

  def end(self, session, global_step_value):
    del session
    if self._timer.last_triggered_step() != global_step_value:
      self._evaluate(global_step_value)

  def _evaluate(self, step) -> None:
    spec = self._spec
    self._timer.update_last_triggered_step(step)
    is_last = self._max_steps is not None and step >= self._max_steps
    self.results = self._estimator.evaluate(
      spec.input_fn, steps=spec.steps, hooks=list(spec.hooks), name=spec.name
    )
    self.exports = [
      exporter.export(
        self._estimator,
        os.path.join(tf.compat.as_str(self._estimator.model_dir), "export", exporter.name),
        self._estimator.latest_checkpoint(),
        self.results,
        is_last,
      )
      for exporter in spec.exporters
    ]


def train_and_evaluate(estimator, train_spec: TrainSpec, eval_spec: EvalSpec):
  """Trains up to `train_spec.max_steps`, evaluating saved checkpoints on the way.

  Args:
    estimator: Estimator.
    train_spec: TrainSpec.
    eval_spec: EvalSpec.

  Returns:
    The last evaluation's metrics, and a list of what the exporters returned; None for both if
    the model was trained up to `max_steps` already.

  Raises:
    TypeError: an argument of another class.
  """
  if not isinstance(train_spec, TrainSpec):
    raise TypeError(f"`train_spec` must be a `tf.estimator.TrainSpec`, given: {train_spec!r}")
  if not isinstance(eval_spec, EvalSpec):
    raise TypeError(f"`eval_spec` must be a `tf.estimator.EvalSpec`, given: {eval_spec!r}")
  tf.logging.info("Running training and evaluation locally (non-distributed).")
  tf.logging.info(
    "Start train and evaluate loop. The evaluate will happen after every checkpoint. Checkpoint "
    "frequency is determined based on RunConfig arguments: save_checkpoints_steps %s or "
    "save_checkpoints_secs %s.",
    estimator.config.save_checkpoints_steps,
    estimator.config.save_checkpoints_secs,
  )
  evaluations = _EvaluateCheckpoints(estimator, eval_spec, train_spec.max_steps)
  estimator.train(
    train_spec.input_fn,
    hooks=list(train_spec.hooks),
    max_steps=train_spec.max_steps,
    saving_listeners=[evaluations],
  )
  return evaluations.results, evaluations.exports
