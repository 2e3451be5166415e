"""The keys of a file, which an administrator may change while the server runs.

keys = KeyFile("/etc/bert/api_key")
list(keys)                             # as the file has them now
"""

import os
import re
from collections.abc import Iterator

from absl import logging

from bert.io import text_lines


class KeyFile:
  """An iterable of keys; the file is read again when it has changed.

  Where it can no longer be read, or has no key, the former keys stay valid, and the log says so.
  """

  def __init__(self, path: str):
    """Reads the file; see `read_keys` for the errors."""
    self._path = path
    self._state = self._state_now()
    self._keys = read_keys(path)

  def __iter__(self) -> Iterator[str]:
    """Yields the keys."""
    state = self._state_now()
    if state != self._state:
      self._state = state
      try:
        self._keys = read_keys(self._path)
        logging.info("%s has changed: it has %d keys now.", self._path, len(self._keys))
      except (OSError, ValueError) as error:
        logging.error("The keys have changed, but the former ones stay valid: %s", error)
    return iter(self._keys)

  def _state_now(self) -> tuple[int, int, int] | None:
    try:
      found = os.stat(self._path)
    except OSError:
      return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def read_keys(path: str) -> tuple[str, ...]:
  """Returns the keys in a file, one on each line; lines that begin with # are comments.

  Raises:
    OSError: it cannot be read.
    ValueError: it has no key, or one that no header can hold.
  """
  lines = list(text_lines.read_lines(path))
  keys = tuple(line for line in lines if line and not line.startswith("#"))
  for number, line in enumerate(lines, start=1):
    if line in keys and not re.fullmatch("[!-~]+", line):
      raise ValueError(f"{path}, line {number}: a key has letters of ASCII alone, and no blanks.")
  if not keys:
    raise ValueError(f"{path} has no key. Write one on each line.")
  return keys
