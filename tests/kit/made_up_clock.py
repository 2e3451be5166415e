"""A clock whose time passes in steps and checkpoints alone, so that no test depends on a machine.

clock = MadeUpClock(seconds=60, time=MadeUpTime(first=10.0, step=2.0, save=3.0))
"""

import contextlib

from bert.training.clock import Clock


class MadeUpTime:
  """Seconds that pass only when something is said to take them."""

  def __init__(self, first=10.0, step=2.0, save=3.0):
    self.seconds = 1000.0
    self.first, self.step, self.save = first, step, save

  def __call__(self):
    return self.seconds


class MadeUpClock(Clock):
  """A clock whose steps and checkpoints take the seconds of a `MadeUpTime`."""

  def __init__(self, seconds, time):
    super().__init__(seconds, time)
    self.time = time
    self.steps = 0

  @contextlib.contextmanager
  def step(self):
    with super().step():
      yield
      self.time.seconds += self.time.step if self.steps else self.time.first
      self.steps += 1

  @contextlib.contextmanager
  def saving(self):
    with super().saving():
      yield
      self.time.seconds += self.time.save
