"""Training for a time instead of a number of steps.

  config = RunConfig(model_dir="out", clock=Clock(seconds=300))
  Estimator(model_fn, config, params).train(input_fn)      # no max_steps

What counts is the time of training: tracing, compiling, reading, steps and checkpoints, in all
starts of the run, but not its evaluations. What earlier starts have spent lies in the state beside
each checkpoint, so a run that is resumed has the rest; what a killed one spent after its last
checkpoint is not known, and is trained anew. A model_fn gets the share of the time that has passed
as `params["progress"]`, from which `optimization.create_optimizer` takes the rate. The order of the
data and dropout depend on the step alone, as always.

How far a step is depends on the machine: two runs differ, as two seeds do.
"""

import collections
import contextlib
import time
from collections.abc import Callable, Iterator

import tensorflow as tf

# So many of the last steps say how long the next one takes.
_STEPS_REMEMBERED = 10


class Clock:
  """The time of one run.

  A step or a checkpoint that would end after the time is not begun: the end is early by less than
  a step, or late by what the last step and the last checkpoint took longer than those before.

  Attributes:
    seconds: of training.
    save_seconds: how long the last checkpoint took.
  """

  def __init__(self, seconds: float, now: Callable[[], float] = time.monotonic):
    """Makes the clock of a run that has not begun, which may train for N `seconds`."""
    if not seconds > 0:
      raise ValueError(f"Clock: seconds must be above 0, but is {seconds}.")
    self.seconds = float(seconds)
    self.save_seconds = 0.0
    self._now = now
    self._began = 0.0
    self._steps: collections.deque[float] = collections.deque(maxlen=_STEPS_REMEMBERED)
    self._has_compiled = False
    self._progress: tf.Variable | None = None

  def start(self, spent: float, save_seconds: float) -> None:
    """Begins to count: earlier starts `spent` seconds, and saved last within `save_seconds`."""
    self._began = self._now() - spent
    self.save_seconds = save_seconds
    self._steps.clear()
    self._has_compiled = False

  def spent(self) -> float:
    """Computes the seconds of training so far, at most all of them."""
    return min(self._now() - self._began, self.seconds)

  def left(self) -> float:
    """Seconds of training that remain."""
    return self.seconds - self.spent()

  def is_last(self) -> bool:
    """Checks whether the step after the next, and its checkpoint, would end too late."""
    return self._is_too_late(2)

  def is_over(self) -> bool:
    """Checks whether another step, and the checkpoint after it, would end too late."""
    return self._is_too_late(1)

  def _is_too_late(self, steps: int) -> bool:
    left = self.left()
    return left <= 0 or left < steps * min(self._steps, default=0.0) + self.save_seconds

  @property
  def progress(self) -> tf.Tensor:
    """Returns float32 `[]` for a step's graph: the share of the time at its begin."""
    if self._progress is None:
      # In no VariableStore: a checkpoint has the original's variables alone.
      with tf.init_scope():
        self._progress = tf.Variable(0.0, trainable=False)
    return self._progress.read_value()

  @contextlib.contextmanager
  def step(self) -> Iterator[None]:
    """Wraps each step: sets `progress`, and measures how long it took."""
    if self._progress is not None:
      # The last checkpoint is saved with a rate of 0, not at some rate before.
      time_of_steps = max(self.seconds - self.save_seconds, 1e-3)
      self._progress.assign(min(1.0, self.spent() / time_of_steps))
    begin = self._now()
    yield
    if self._has_compiled:
      self._steps.append(self._now() - begin)
    self._has_compiled = True

  @contextlib.contextmanager
  def saving(self) -> Iterator[None]:
    """Wraps each checkpoint: measures how long it took."""
    begin = self._now()
    yield
    self.save_seconds = self._now() - begin

  @contextlib.contextmanager
  def stopped(self) -> Iterator[None]:
    """Excludes the time in this block."""
    begin = self._now()
    try:
      yield
    finally:
      self._began += self._now() - begin
