"""Reports of a training run: scalars for TensorBoard, and a progress bar or log lines."""

import contextlib
import dataclasses
import logging as std_logging
import os
import sys
import time
from collections.abc import Mapping, Sequence

import tensorflow as tf
import tqdm
import tqdm.contrib.logging
from absl import logging

from bert.training import distribution
from bert.training.run_config import RunConfig


class EventLog:
  """Scalars for TensorBoard, written by the chief of a job.

  A write error loses the curves but does not stop the run: a warning is logged, and the next
  checkpoint shows whether the disk can be written at all.
  """

  def __init__(self, folder: str):
    self._writer = None
    if distribution.is_chief():
      with self._may_fail():
        self._writer = tf.summary.create_file_writer(os.fsdecode(folder))

  def write(self, step: int, values: Mapping[str, float]) -> None:
    """Writes the scalars of a step."""
    if self._writer is None:
      return
    with self._may_fail(), self._writer.as_default(step):  # flushes at the end
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
      reason = error.message.splitlines()[0].rpartition("}} ")[2].partition(" [Op:")[0]
      logging.warning("Events for TensorBoard are lost, the run continues: %s", reason)


@dataclasses.dataclass(frozen=True)
class Totals:
  """The amounts that this process has consumed at some point of a run."""

  seconds: float = 0.0  # spent in training steps
  # Name of a speed -> its amount so far, such as `examples/sec` -> examples.
  amounts: Mapping[str, float] = dataclasses.field(default_factory=dict)

  def speeds_since(self, earlier: "Totals") -> dict[str, float]:
    """Computes amounts per second between two points; 0 where no time has passed.

    Example:
      >>> Totals(3.0, {"examples/sec": 48.0}).speeds_since(Totals(1.0, {"examples/sec": 16.0}))
      {'examples/sec': 16.0}
    """
    seconds = self.seconds - earlier.seconds
    return {
      name: (amount - earlier.amounts.get(name, 0.0)) / seconds if seconds > 0 else 0.0
      for name, amount in self.amounts.items()
    }


class Progress:
  """A bar on a terminal, lines in a log: step, loss, speeds, time left."""

  def __init__(self, config: RunConfig, step: int, max_steps: int):
    """Shows nothing yet."""
    self._every = config.log_every_steps
    self._max_steps = max_steps
    # At the first call of `update`: the step before it has compiled, so time is counted from there.
    self._first: Totals | None = None
    self._first_step, self._first_time = step, 0.0
    self._shown: dict[str, float] = {}
    self._bar = None
    self._above_bar = contextlib.ExitStack()
    self._is_quiet = not distribution.is_chief()
    if self._is_quiet:
      return
    if sys.stderr.isatty() if config.show_progress is None else config.show_progress:
      total = self._max_steps
      self._bar = tqdm.tqdm(total=total, initial=step, unit="step", dynamic_ncols=True)

  def __enter__(self):
    # Otherwise a message would continue the line of the bar.
    if self._bar is not None and _logs_to_stderr():
      self._above_bar.enter_context(tqdm.contrib.logging.logging_redirect_tqdm())
    return self

  def __exit__(self, *exc_info):
    if self._bar is not None:
      self._bar.close()
    self._above_bar.close()

  def update(
    self,
    step: int,
    totals: Totals,
    scalars: Mapping[str, float],
    names: Sequence[str] = (),
    is_last: bool = False,
  ) -> None:
    """Shows the state after a step.

    Args:
      step: steps finished.
      totals: consumed so far.
      scalars: of the last step.
      names: of the scalars to show beside the loss; one that is missing keeps its last value.
      is_last: whether the run ends here.
    """
    if "loss" not in scalars:
      return
    if self._first is None:
      self._first, self._first_step, self._first_time = totals, step, time.perf_counter()
    is_known = totals.seconds > self._first.seconds
    speeds = {
      name.replace("/sec", "/s"): speed
      for name, speed in totals.speeds_since(self._first).items()
      if is_known and name != "global_step/sec"  # Redundant beside the time left.
    }
    values = {**self._shown, **scalars}
    self._shown = {name: values[name] for name in names if name in values}
    if self._bar is not None:
      self._update_bar(step, scalars["loss"], speeds)
    elif not self._is_quiet and (step % self._every == 0 or is_last):
      self._log(step, scalars["loss"], speeds, is_last)

  def _update_bar(self, step: int, loss: float, speeds: dict[str, float]) -> None:
    shown = {name: f"{value:.4g}" for name, value in self._shown.items()}
    shown |= {name.replace("/", "_per_"): f"{value:.1f}" for name, value in speeds.items()}
    self._bar.set_postfix({"loss": f"{loss:.4f}", **shown}, refresh=False)
    self._bar.update(step - self._bar.n)

  def _log(self, step: int, loss: float, speeds: dict[str, float], is_last: bool) -> None:
    parts = [f"loss {loss:.4f}"]
    parts += [f"{name} {value:.4g}" for name, value in self._shown.items()]
    parts += [f"{value:.1f} {name}" for name, value in speeds.items()]
    if step > self._first_step or is_last:
      seconds_per_step = (time.perf_counter() - self._first_time) / max(1, step - self._first_step)
      left = seconds_per_step * (self._max_steps - step)
      parts.append(f"{tqdm.tqdm.format_interval(left)} left")
    logging.info("step %d/%d, %s", step, self._max_steps, ", ".join(parts))


def _logs_to_stderr() -> bool:
  """Checks whether the root logger writes where the bar is."""
  handlers = std_logging.getLogger().handlers
  return any(getattr(handler, "stream", None) is sys.stderr for handler in handlers)
