"""What is said when a script asks for a name of TensorFlow 1.x that is not there."""

import difflib
import sys
from collections.abc import Callable
from typing import NoReturn


class NotAvailable(AttributeError):
  """A name of TensorFlow 1.x that cannot be had; the message says what to do instead.

  An AttributeError, so that `hasattr(tf, ...)` answers False. (Python lets no class be an
  ImportError as well.)
  """


def unknown_name(module_name: str, remedies: dict[str, str] | None = None) -> Callable:
  """Returns a module's `__getattr__` that names what is missing and what is there.

  Args:
    module_name: the module's `__name__`, such as `bert.tf1.contrib.crf`.
    remedies: what to do instead, by name, for the names that are known to be missing.
  """

  def __getattr__(name: str) -> NoReturn:  # noqa: N807 (the name that Python looks for)
    shown = module_name.replace("bert.tf1", "tf")
    if name.startswith("__"):
      raise AttributeError(f"module {shown!r} has no attribute {name!r}")
    known = sorted(n for n in vars(sys.modules[module_name]) if not n.startswith("_"))
    close = difflib.get_close_matches(name, known, n=1)
    remedy = (remedies or {}).get(name) or (
      f"did you mean {shown}.{close[0]}?" if close else f"known names: {', '.join(known)}."
    )
    raise NotAvailable(f"{shown}.{name} is not available on this TensorFlow: {remedy}")

  return __getattr__
