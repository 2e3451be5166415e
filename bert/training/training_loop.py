"""The training loop between two steps: progress, evaluation, checkpoints, and a clean stop.

`Estimator.train` builds the graph and fills the variables; `Training` runs it. It stops only where
there is something to do, and there always in this order: report, evaluate, save, leave.
"""

import contextlib
import dataclasses
import math
import signal
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
import tqdm
from absl import logging

from bert.training import distribution, loss_scaling
from bert.training.resumption import RunState

# What a process that stopped on SIGTERM after saving exits with, as if the signal had ended it.
EXIT_CODE_SIGTERM = 128 + signal.SIGTERM


class TrainingDivergedError(ValueError):
  """Loss or gradients of a training step are not finite: bad data or settings, not a bug."""


@dataclasses.dataclass(frozen=True)
class Reported:
  """What is told of a training step.

  Attributes:
    scalars: names, in the order in which a step returns them.
    progress: names of those that lines of progress show, beside the loss.
    rates: name of a speed -> name of the scalar that says how much of it an example has.

  Raises:
    ValueError: a name is not among the scalars.
  """

  scalars: list[str] = dataclasses.field(default_factory=list)
  progress: list[str] = dataclasses.field(default_factory=list)
  rates: dict[str, str] = dataclasses.field(default_factory=dict)

  def __post_init__(self):
    unknown = [n for n in [*self.progress, *self.rates.values()] if n not in self.scalars]
    if unknown:
      raise ValueError(
        f"EstimatorSpec.progress and rates name {', '.join(map(repr, unknown))}, but the scalars "
        f"of a step are {', '.join(self.scalars)}."
      )

  def rate_indices(self) -> np.ndarray:
    """int32 `[rates]`: where the scalars of the rates stand."""
    return np.array([self.scalars.index(name) for name in self.rates.values()], np.int32)


class Training:
  """One call of `Estimator.train` from the first step on, and all that happens between steps."""

  def __init__(self, estimator, run_steps, iterator, step, state, max_steps, eval_spec, input_fn):
    self._estimator = estimator
    self._config = estimator.config
    self._run_steps = run_steps
    self._iterator = iterator
    self._step = self._saved_step = step
    self._state = state
    self._max_steps = max_steps
    self._eval_spec = eval_spec
    self._input_fn = input_fn
    self._finished = False
    self._scalars: dict[str, float] = {}
    self._batch_examples = 0
    self._seconds = 0.0
    self._amounts: dict[str, float] = {}  # Of what has a rate: consumed by this process.
    self._told = step, state.examples, 0.0, {}
    skipped = estimator.store.variables.get(loss_scaling.SKIPPED_STEPS)
    self._skipped_steps = 0 if skipped is None else int(skipped.numpy())

  def run(self) -> None:
    """Trains to the end; between steps in this order: report, evaluate, save, stop."""
    with (
      contextlib.closing(EventLog(self._config.model_dir)) as events,
      StopSignals() as stop,
      Progress(self._config, self._step, self._max_steps) as progress,
    ):
      if self._eval_spec and self._step and self._step % self._eval_spec.every_steps == 0:
        self._evaluate()  # Unless done before this checkpoint was saved: a signal skips it.
      while not self._finished:
        self._advance()
        self._report(events, progress)
        # Workers stop after the same step, whichever of them the signal reached.
        is_stopped = distribution.any_worker(stop.received is not None)
        self._finished |= is_stopped
        if self._eval_spec and not is_stopped and self._is_due(self._eval_spec.every_steps):
          self._evaluate()
        # The state of the evaluation is part of what is saved, so saving comes after it.
        if self._is_due(self._config.save_checkpoints_steps):
          self._save()
    if distribution.any_worker(stop.received is not None):
      stop.leave(self._step, self._config.model_dir)

  def _advance(self) -> None:
    """Runs steps up to the next one after which there is something to do."""
    end = self._next_stop()
    count, is_told = end - self._step, self._is_told(end)
    begin = time.perf_counter()
    try:
      outputs = self._run_steps(self._iterator, tf.constant(count, tf.int64), tf.constant(is_told))
    except tf.errors.OutOfRangeError:
      self._end_of_data()
      return
    scalars, examples, amounts, bad_step = (output.numpy() for output in outputs)
    self._seconds += time.perf_counter() - begin
    self._note(scalars, amounts)
    if bad_step >= 0:
      self._diverge(int(bad_step))
    self._tell_of_skipped_steps(end)
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
    """Saves the batch of a step for replay, and says where it is, or why it is not there."""
    estimator, batches = self._estimator, bad_step - self._step - 1
    try:
      # Made anew from its position: to keep every batch in case of need would cost each step.
      batch = estimator.batch_after(self._input_fn, self._state.examples, batches)
      path = estimator.save_batch(bad_step, batch)
    except Exception as error:  # Whatever it is, that the loss diverged is the greater news.
      return f"Its batch could not be saved ({error})."
    return f"Its batch is in {path}; numpy.load(path, allow_pickle=False) reads it."

  def _tell_of_skipped_steps(self, end: int) -> None:
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
    """Keeps the scalars of the last step; what was not computed there is left out."""
    reported = self._estimator.reported
    named = dict(zip(reported.scalars, scalars.tolist(), strict=True))
    self._scalars = {n: v for n, v in named.items() if n == "loss" or not math.isnan(v)}
    for name, amount in zip(reported.rates, amounts, strict=True):
      self._amounts[name] = self._amounts.get(name, 0.0) + float(amount)

  def _is_told(self, step: int) -> bool:
    """Whether the scalars of a step are written or shown."""
    periods = self._config.save_summary_steps, self._config.log_every_steps
    return step >= self._max_steps or any(step % period == 0 for period in periods)

  def _next_stop(self) -> int:
    config = self._config
    periods = [config.save_checkpoints_steps, config.save_summary_steps, config.log_every_steps]
    if self._eval_spec:
      periods.append(self._eval_spec.every_steps)
    return _next_stop(self._step, self._max_steps, self._estimator.steps_per_loop, periods)

  def _end_of_data(self) -> None:
    step = int(self._estimator.store.variables["global_step"].numpy())
    if step == 0:
      raise ValueError("There is nothing to train on: the input_fn gave no batch.")
    self._state.examples += (step - self._step) * self._batch_examples
    self._step, self._finished = step, True
    logging.warning("The training data ended at step %d of %d.", step, self._max_steps)

  def _is_due(self, period: int) -> bool:
    return self._finished or self._step % period == 0

  def _report(self, events, progress) -> None:
    progress.update(
      self._step,
      self._seconds,
      {"examples/sec": self._state.examples, **self._amounts},
      self._scalars,
      self._estimator.reported.progress,
    )
    seconds = self._seconds - self._told[2]
    if not (self._is_due(self._config.save_summary_steps) and self._scalars and seconds):
      return
    events.write(self._step, {**self._scalars, **self._speeds(seconds)})
    self._told = self._step, self._state.examples, self._seconds, dict(self._amounts)

  def _speeds(self, seconds: float) -> dict[str, float]:
    """Speeds since the last summaries."""
    step, examples, _, amounts = self._told
    speeds = {
      "global_step/sec": (self._step - step) / seconds,
      "examples/sec": (self._state.examples - examples) / seconds,
    }
    for name, amount in self._amounts.items():
      speeds[name] = (amount - amounts.get(name, 0.0)) / seconds
    return speeds

  def _evaluate(self) -> None:
    spec = self._eval_spec
    if self._state.evaluated_step == self._step:
      return
    results = self._estimator.evaluate_now(spec.input_fn, spec.steps)
    logging.info("Evaluation at step %d: %s", self._step, _one_line(results))
    if not isinstance(results.get(spec.metric), float):
      raise ValueError(
        f"EvalSpec.metric={spec.metric!r} is no number among the results: {', '.join(results)}."
      )
    self._state.evaluated_step = self._step
    self._compare_with_best(results[spec.metric])
    if has_lost_patience(self._state, spec):
      self._finished = True
      logging.info(
        "Stopping early at step %d: %d evaluations without improvement on %s = %g of step %d.",
        self._step,
        spec.patience,
        spec.metric,
        self._state.best_value,
        self._state.best_step,
      )

  def _compare_with_best(self, value: float) -> None:
    state, spec = self._state, self._eval_spec
    sign = 1 if spec.higher_is_better else -1
    if math.isnan(value) or (
      state.best_value is not None and sign * value <= sign * state.best_value
    ):
      state.evaluations_without_improvement += 1
      return
    state.best_value, state.best_step = value, self._step
    state.evaluations_without_improvement = 0
    if spec.keep_best:
      self._estimator.save_best(self._step, state)

  def _save(self) -> None:
    if self._step != self._saved_step:
      self._estimator.save(self._step, self._state)
      self._saved_step = self._step


class StopSignals:
  """SIGTERM and Ctrl-C wait until the running step is finished and saved; a second one does not.

  Attributes:
    received: the signal's number, or None.
  """

  def __init__(self):
    self.received: int | None = None
    self._previous: dict[int, Any] = {}

  def __enter__(self):
    # Python delivers signals to the main thread only, and lets no other thread ask for them.
    if threading.current_thread() is threading.main_thread():
      for number in (signal.SIGTERM, signal.SIGINT):
        self._previous[number] = signal.signal(number, self._receive)
    return self

  def __exit__(self, *exc_info):
    self._restore()

  def _restore(self):
    for number, handler in self._previous.items():
      signal.signal(number, handler)
    self._previous = {}

  def _receive(self, number, frame):
    del frame
    self.received = number
    self._restore()
    logging.warning(
      "%s: saving after this step; once more ends at once.", signal.Signals(number).name
    )

  def leave(self, step: int, model_dir: str) -> None:
    """Ends the program as the signal asked for."""
    logging.warning("Stopped after step %d. The same command resumes from %s.", step, model_dir)
    if self.received == signal.SIGINT:
      raise KeyboardInterrupt
    raise SystemExit(EXIT_CODE_SIGTERM)


class EventLog:
  """Scalars for TensorBoard, which the chief of a job writes.

  A disk that does not take them costs the curves, not the run: a warning tells of it, and the next
  checkpoint shows whether the disk takes anything at all.
  """

  def __init__(self, folder: str):
    self._writer = None
    if distribution.is_chief():
      with self._may_fail():
        self._writer = tf.summary.create_file_writer(folder)

  def write(self, step: int, values: Mapping[str, float]) -> None:
    """Writes what is told of a step."""
    if self._writer is None:
      return
    with self._may_fail(), self._writer.as_default(step):  # whose end flushes
      for name, value in values.items():
        tf.summary.scalar(name, value)

  def close(self) -> None:
    """Completes the file."""
    if self._writer is not None:
      with self._may_fail():
        self._writer.close()

  @contextlib.contextmanager
  def _may_fail(self):
    try:
      yield
    except tf.errors.OpError as error:
      reason = error.message.splitlines()[0].rpartition("}} ")[2]
      logging.warning("Events for TensorBoard are lost, the run goes on: %s", reason)


class Progress:
  """A bar on a terminal, lines in a log: step, loss, examples per second, time left."""

  def __init__(self, config, step: int, max_steps: int):
    self._every = config.log_every_steps
    self._first_step, self._max_steps = step, max_steps
    self._first_amounts: dict[str, float] | None = None
    self._first_seconds = 0.0
    self._shown: dict[str, float] = {}
    self._begin = time.perf_counter()
    self._bar = None
    self._is_quiet = not distribution.is_chief()
    if self._is_quiet:
      return
    if sys.stderr.isatty() if config.show_progress is None else config.show_progress:
      self._bar = tqdm.tqdm(total=max_steps, initial=step, unit="step", dynamic_ncols=True)

  def __enter__(self):
    return self

  def __exit__(self, *exc_info):
    if self._bar is not None:
      self._bar.close()

  def update(
    self,
    step: int,
    seconds: float,
    amounts: dict[str, float],
    scalars: dict[str, float],
    names: Sequence[str] = (),
  ) -> None:
    """Tells of progress.

    Args:
      step: steps finished.
      seconds: spent in training steps by this process.
      amounts: name of a speed -> what was consumed up to now, such as examples.
      scalars: of the last step.
      names: of the scalars to show beside the loss; one that is not there keeps its last value.
    """
    if "loss" not in scalars:
      return
    if self._first_amounts is None:
      # The first call compiles: speed is counted from its end.
      self._first_amounts, self._first_seconds = dict(amounts), seconds
    passed = seconds - self._first_seconds
    speeds = {
      name.replace("/sec", "/s"): _ratio(amount - self._first_amounts.get(name, 0.0), passed)
      for name, amount in amounts.items()
    }
    values = {**self._shown, **scalars}
    self._shown = {name: values[name] for name in names if name in values}
    if self._bar is not None:
      self._update_bar(step, scalars["loss"], speeds)
    elif not self._is_quiet and (step % self._every == 0 or step >= self._max_steps):
      self._log(step, scalars["loss"], speeds)

  def _update_bar(self, step: int, loss: float, speeds: dict[str, float]) -> None:
    shown = {name: f"{value:.4g}" for name, value in self._shown.items()}
    shown |= {name.replace("/", "_per_"): f"{value:.1f}" for name, value in speeds.items()}
    self._bar.set_postfix({"loss": f"{loss:.4f}", **shown}, refresh=False)
    self._bar.update(step - self._bar.n)

  def _log(self, step: int, loss: float, speeds: dict[str, float]) -> None:
    passed = time.perf_counter() - self._begin
    left = passed / (step - self._first_step) * (self._max_steps - step)
    parts = [f"loss {loss:.4f}"]
    parts += [f"{name} {value:.4g}" for name, value in self._shown.items()]
    parts += [f"{value:.1f} {name}" for name, value in speeds.items()]
    parts.append(f"{tqdm.tqdm.format_interval(left)} left")
    logging.info("step %d/%d, %s", step, self._max_steps, ", ".join(parts))


# ---------------------------------------------------------------------------------------------
# Helpers without state.


def _next_stop(step: int, max_steps: int, steps_per_loop: int, periods: list[int]) -> int:
  """The step up to which to run without looking up.

  Example:
    >>> _next_stop(0, max_steps=100, steps_per_loop=8, periods=[10, 25])
    8
    >>> _next_stop(8, max_steps=100, steps_per_loop=8, periods=[10, 25])
    10
  """
  return min([step + steps_per_loop, max_steps, *((step // p + 1) * p for p in periods)])


def has_lost_patience(state: RunState, eval_spec) -> bool:
  """Whether evaluations went without improvement for as long as `eval_spec` bears it."""
  return (
    eval_spec is not None
    and eval_spec.patience is not None
    and state.evaluations_without_improvement >= eval_spec.patience
  )


def _one_line(results: dict[str, Any]) -> str:
  return ", ".join(f"{k} = {v:g}" for k, v in results.items() if isinstance(v, (int, float)))


def _ratio(amount: float, seconds: float) -> float:
  return amount / seconds if seconds > 0 else 0.0
