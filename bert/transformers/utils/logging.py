"""The log's level and form, by the names of `transformers.utils.logging`.

  logging.set_verbosity_info()
  logger = logging.get_logger(__name__)

This project logs through absl, and its tokenizers by the name of transformers; both are meant.
"""

import logging
from logging import CRITICAL, DEBUG, ERROR, FATAL, INFO, NOTSET, WARN, WARNING, captureWarnings

from absl import logging as absl_logging
from absl.logging import converter

LEVELS = {
  "detail": DEBUG,
  "debug": DEBUG,
  "info": INFO,
  "warning": WARNING,
  "error": ERROR,
  "critical": CRITICAL,
}
"""Name -> number of Python's `logging`."""

__all__ = [
  "CRITICAL",
  "DEBUG",
  "ERROR",
  "FATAL",
  "INFO",
  "NOTSET",
  "WARN",
  "WARNING",
  "add_handler",
  "captureWarnings",
  "disable_default_handler",
  "disable_progress_bar",
  "disable_propagation",
  "enable_default_handler",
  "enable_explicit_format",
  "enable_progress_bar",
  "enable_propagation",
  "get_log_levels_dict",
  "get_logger",
  "get_verbosity",
  "is_progress_bar_enabled",
  "remove_handler",
  "reset_format",
  "set_verbosity",
  "set_verbosity_debug",
  "set_verbosity_error",
  "set_verbosity_info",
  "set_verbosity_warning",
]

_NAME = "transformers"
_DEFAULT = logging.StreamHandler()
_EXPLICIT = logging.Formatter("[%(levelname)s|%(filename)s:%(lineno)s] %(asctime)s >> %(message)s")
_progress = {"is_shown": True}


def get_log_levels_dict() -> dict[str, int]:
  """Returns the numbers of the levels by name."""
  return dict(LEVELS)


def get_logger(name: str | None = None) -> logging.Logger:
  """Returns Python's logger of a name; by default that of transformers, which tokenizers use."""
  return logging.getLogger(name or _NAME)


def get_verbosity() -> int:
  """Returns the level, a number of Python's `logging`."""
  return get_logger().getEffectiveLevel()


def set_verbosity(verbosity: int) -> None:
  """Sets the level, a number of Python's `logging`."""
  get_logger().setLevel(verbosity)
  absl_logging.set_verbosity(converter.standard_to_absl(verbosity))


def set_verbosity_debug() -> None:
  """Logs everything."""
  set_verbosity(DEBUG)


def set_verbosity_info() -> None:
  """Logs what is done, warnings and errors."""
  set_verbosity(INFO)


def set_verbosity_warning() -> None:
  """Logs warnings and errors."""
  set_verbosity(WARNING)


def set_verbosity_error() -> None:
  """Logs errors alone."""
  set_verbosity(ERROR)


# ---------------------------------------------------------------------------------------------
# Where messages go, and their form. Until one of these is called, the program's handlers decide;
# then, as in transformers, messages go to a handler of their own and not to the program's.


def add_handler(handler: logging.Handler) -> None:
  """Sends messages to a handler, too."""
  for logger in _configured():
    logger.addHandler(handler)


def remove_handler(handler: logging.Handler) -> None:
  """Takes a handler away."""
  for logger in _configured():
    logger.removeHandler(handler)


def enable_default_handler() -> None:
  """Writes messages to the error stream."""
  _configured()
  _DEFAULT.setLevel(NOTSET)


def disable_default_handler() -> None:
  """Writes no messages to the error stream."""
  _configured()
  _DEFAULT.setLevel(CRITICAL + 1)


def enable_propagation() -> None:
  """Sends messages to the program's handlers, too."""
  for logger in _configured():
    logger.propagate = True


def disable_propagation() -> None:
  """Sends no messages to the program's handlers."""
  for logger in _configured():
    logger.propagate = False


def enable_explicit_format() -> None:
  """Writes level, file, line and time before each message."""
  _configured()
  _DEFAULT.setFormatter(_EXPLICIT)


def reset_format() -> None:
  """Writes messages without that."""
  _configured()
  _DEFAULT.setFormatter(None)


def _configured() -> list[logging.Logger]:
  """Returns the loggers, which have the handler of their own."""
  loggers = [get_logger(), absl_logging.get_absl_logger()]
  for logger in loggers:
    if _DEFAULT not in logger.handlers:
      logger.addHandler(_DEFAULT)
      logger.propagate = False
  return loggers


def enable_progress_bar() -> None:
  """Is remembered: nothing in this package shows a bar but Keras, which has its own `verbose`."""
  _progress["is_shown"] = True


def disable_progress_bar() -> None:
  """Is remembered; see `enable_progress_bar`."""
  _progress["is_shown"] = False


def is_progress_bar_enabled() -> bool:
  """Tells which of the two was called last."""
  return _progress["is_shown"]
