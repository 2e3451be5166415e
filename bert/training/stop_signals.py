"""Signals that end a program, delayed until it can stop without losing data.

with StopSignals((signal.SIGTERM, signal.SIGINT), "saving after this step; again: ends at once"):
"""

import signal
import threading
from collections.abc import Collection
from typing import Any

from absl import logging


class StopSignals:
  """Delays some signals: within the block they are only recorded.

  Attributes:
    received: the numbers of the signals so far.
  """

  def __init__(self, numbers: Collection[int], notice: str, *, once: bool = True):
    """Stores the settings; signals are caught from the beginning of the block.

    The first one logs `notice`; with `once` the second ends the program, and is not recorded.
    """
    self.received: list[int] = []
    self._numbers = numbers
    self._notice = notice
    self._once = once
    self._previous: dict[int, Any] = {}

  def __enter__(self):
    # Python delivers signals to the main thread only, and only that thread can set handlers.
    if threading.current_thread() is threading.main_thread():
      for number in self._numbers:
        self._previous[number] = signal.signal(number, self._receive)
    return self

  def __exit__(self, *exc_info):
    self._restore()

  def _restore(self) -> None:
    for number, handler in self._previous.items():
      signal.signal(number, handler)
    self._previous = {}

  def _receive(self, number, frame) -> None:
    del frame
    self.received.append(number)
    if self._once:
      self._restore()
    if len(self.received) == 1:
      logging.warning("%s: %s.", signal.Signals(number).name, self._notice)

  @property
  def exit_code(self) -> int:
    """Returns the exit code that a shell reports for a program ended by the first signal."""
    return 128 + self.received[0]
