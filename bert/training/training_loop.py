"""The training loop: steps, progress, evaluation, checkpoints, and a clean stop.

`Estimator.train` builds the graph and fills the variables; `Training` runs it. It stops only at
steps with work to do, always in this order: report, evaluate, save, end.
"""

import contextlib
import math
import os
import signal
import time

import tensorflow as tf
from absl import logging

from bert.io.wording import counted
from bert.training import distribution
from bert.training.best_checkpoint import BestCheckpointTracker
from bert.training.graphs import TrainingGraph
from bert.training.model_variables import ModelVariables
from bert.training.progress import EventLog, Progress, Totals
from bert.training.resumption import RunState
from bert.training.run_config import RunConfig
from bert.training.stop_signals import StopSignals
from bert.training.training_data import TrainingData

# Exit code after SIGTERM and a saved checkpoint, as if the signal had ended the process.
EXIT_CODE_SIGTERM = 128 + signal.SIGTERM


class TrainingDivergedError(ValueError):
  """Loss or gradients of a training step are not finite: bad data or settings, not a bug."""


class Training:
  """One call of `Estimator.train` from its first step, including all work between steps."""

  def __init__(
    self,
    config: RunConfig,
    graph: TrainingGraph,
    data: TrainingData,
    variables: ModelVariables,
    tracker: BestCheckpointTracker | None = None,
  ):
    self._config = config
    self._graph = graph
    self._data = data
    self._variables = variables
    self._tracker = tracker
    # Of the last step.
    self._scalars: dict[str, float] = {}
    self._batch_examples = 0
    self._skipped_steps = variables.skipped_steps()
    # Consumed by this process, up to now and up to the last summaries.
    self._seconds = 0.0
    self._rate_amounts: dict[str, float] = {}

  def run(self, step: int, max_steps: int, state: RunState, is_saved: bool = True) -> None:
    """Trains to the end; between steps in this order: report, evaluate, save, stop.

    Args:
      step: steps finished.
      max_steps: the last step.
      state: of the run at `step`; it is updated.
      is_saved: whether `step` is saved; if not, it is while the next one is computed.
    """
    self._step = step
    self._saved_step = step if is_saved else None
    self._max_steps = max_steps
    self._state = state
    self._finished = False
    self._written = self._totals()
    stop_signals = StopSignals(
      (signal.SIGTERM, signal.SIGINT), "saving after this step; a second signal ends at once"
    )
    with (
      contextlib.closing(EventLog(self._config.model_dir)) as events,
      stop_signals as stop,
      Progress(self._config, step, self._max_steps) as progress,
    ):
      if self._tracker and self._tracker.is_due(step):
        self._evaluate()  # The run before may have skipped it, because of a signal.
      while not self._finished:
        self._advance()
        self._report(events, progress)
        # All workers stop after the same step, even if only one received the signal.
        is_stopped = distribution.any_worker(bool(stop.received))
        self._finished |= is_stopped
        if self._tracker and not is_stopped and self._is_due(self._tracker.spec.every_steps):
          self._evaluate()
        # The checkpoint includes the state of the evaluation, so it is saved afterwards.
        if self._is_due(self._config.save_checkpoints_steps):
          self._save()
    for name, total in self._state.totals.items():
      logging.info("%s: %.4g in %s.", name, total, counted(self._step, "step"))
    if distribution.any_worker(bool(stop.received)):
      self._leave(stop)

  def _leave(self, stop: StopSignals) -> None:
    """Ends the program with the exit code of the signal."""
    logging.warning(
      "Stopped after step %d. The same command resumes from %s.", self._step, self._config.model_dir
    )
    if stop.received[:1] == [signal.SIGINT]:
      raise KeyboardInterrupt
    raise SystemExit(EXIT_CODE_SIGTERM)

  def _advance(self) -> None:
    """Runs steps up to the next one that needs a report, an evaluation or a checkpoint."""
    end = self._next_stop()
    count, is_shown = end - self._step, self._is_shown(end)
    begin = time.perf_counter()
    try:
      with self._saving_first():
        outputs = self._graph.run(
          self._data.iterator, tf.constant(count, tf.int64), tf.constant(is_shown)
        )
    except tf.errors.OutOfRangeError:
      self._end_of_data()
      return
    scalars, examples, amounts, bad_step = (output.numpy() for output in outputs)
    self._seconds += time.perf_counter() - begin
    self._note(scalars, amounts)
    if bad_step >= 0:
      self._diverge(int(bad_step))
    self._log_skipped_steps(end)
    self._step += count
    self._state.examples += int(examples)
    self._batch_examples = int(examples) // count
    self._finished = self._step >= self._max_steps

  def _diverge(self, bad_step: int) -> None:
    """Saves the batch of a step that was not finite, and raises `TrainingDivergedError`."""
    about_batch = distribution.on_chief(self._save_batch, bad_step)
    loss = self._scalars["loss"]
    what = f"The loss of step {bad_step} is {loss}."
    if math.isfinite(loss):
      what = f"The gradients of step {bad_step} are not finite, though its loss is {loss}."
    raise TrainingDivergedError(
      f"{what} Nothing was saved after step {self._saved_step}, whose checkpoint in "
      f"{self._config.model_dir} is intact. {about_batch} A lower learning rate or a longer "
      f"warm-up usually helps; ids outside the vocabulary do this too."
    )

  def _save_batch(self, bad_step: int) -> str:
    """Saves the batch of a step; returns a sentence with its path, or the reason of a failure."""
    path = os.path.join(self._config.model_dir, f"diverged_batch-{bad_step}.npz")
    try:
      self._data.save_batch(path, self._state.examples, bad_step - self._step - 1)
    except Exception as error:  # Any error here is less important than the divergence.
      return f"Its batch could not be saved ({error})."
    return f"Its batch is in {path}; numpy.load(path, allow_pickle=False) reads it."

  def _log_skipped_steps(self, end: int) -> None:
    """Logs steps of float16 that changed no weight, up to step `end`; see `loss_scaling`."""
    skipped = int(self._scalars.get("skipped_steps", 0))
    new, self._skipped_steps = skipped - self._skipped_steps, skipped
    if new:
      logging.info(
        "%d step(s) up to %d skipped: gradients too large for float16. %d of this run so far. The "
        "loss scale is %g now.",
        new,
        end,
        skipped,
        self._scalars["loss_scale"],
      )

  def _note(self, scalars, amounts) -> None:
    """Stores the scalars that were computed in the last step."""
    reported = self._graph.reported
    named = dict(zip(reported.scalars, scalars.tolist(), strict=True))
    self._scalars = {n: v for n, v in named.items() if n == "loss" or not math.isnan(v)}
    for name, amount in zip(reported.rates, amounts, strict=True):
      self._rate_amounts[name] = self._rate_amounts.get(name, 0.0) + float(amount)
      total = f"total_{name.removesuffix('/sec')}"
      self._state.totals[total] = self._state.totals.get(total, 0.0) + float(amount)

  def _is_shown(self, step: int) -> bool:
    """Checks whether the scalars of a step are written or shown."""
    periods = self._config.save_summary_steps, self._config.log_every_steps
    return step >= self._max_steps or any(step % period == 0 for period in periods)

  def _next_stop(self) -> int:
    config = self._config
    periods = [config.save_checkpoints_steps, config.save_summary_steps, config.log_every_steps]
    if self._tracker:
      periods.append(self._tracker.spec.every_steps)
    return _next_stop(self._step, self._max_steps, self._graph.steps_per_loop, periods)

  def _end_of_data(self) -> None:
    step = int(self._variables.global_step.numpy())
    if step == 0:
      raise ValueError("There is nothing to train on: the input_fn gave no batch.")
    self._state.examples += (step - self._step) * self._batch_examples
    self._step, self._finished = step, True
    logging.warning("The training data ended at step %d of %d.", step, self._max_steps)

  def _is_due(self, period: int) -> bool:
    return self._finished or self._step % period == 0

  def _totals(self) -> Totals:
    steps = {"global_step/sec": self._step, "examples/sec": self._state.examples}
    return Totals(self._seconds, {**steps, **self._rate_amounts})

  def _report(self, events: EventLog, progress: Progress) -> None:
    totals = self._totals()
    progress.update(
      self._step, totals, self._scalars, self._graph.reported.progress, self._is_at_end()
    )
    has_run = totals.seconds > self._written.seconds
    if self._is_due(self._config.save_summary_steps) and self._scalars and has_run:
      speeds = totals.speeds_since(self._written)
      events.write(self._step, {**self._scalars, **speeds, **self._state.totals})
      self._written = totals

  def _is_at_end(self) -> bool:
    return self._step >= self._max_steps

  def _evaluate(self) -> None:
    self._finished |= self._tracker.evaluate(self._step, self._state)

  def _saving_first(self) -> contextlib.AbstractContextManager[None]:
    """Saves the step that the run begins with, if it is new, while the first one is computed.

    That one compiles, mostly on one core, which takes longer than writing a file.
    """
    if self._saved_step is not None:
      return contextlib.nullcontext()
    self._saved_step = self._step
    return self._variables.saving_meanwhile(self._step, self._state)

  def _save(self) -> None:
    if self._step == self._saved_step:
      return
    self._variables.save(self._step, self._state)
    self._saved_step = self._step


def _next_stop(step: int, max_steps: int, steps_per_loop: int, periods: list[int]) -> int:
  """Computes the next step at which to return to Python.

  Example:
    >>> _next_stop(0, max_steps=100, steps_per_loop=8, periods=[10, 25])
    8
    >>> _next_stop(8, max_steps=100, steps_per_loop=8, periods=[10, 25])
    10
  """
  return min([step + steps_per_loop, max_steps, *((step // p + 1) * p for p in periods)])
