"""What is said when a script asks for a name of TensorFlow 1.x that is not there."""

import difflib
import sys
import types
from collections.abc import Callable, Iterable
from typing import NoReturn

from absl import flags


class NotAvailableError(AttributeError):
  """A name of TensorFlow 1.x that cannot be had; the message says what to do instead.

  An AttributeError, so that `hasattr(tf, ...)` answers False. (Python lets no class be an
  ImportError as well.)
  """


def missing(
  owner: str, name: str, known: Iterable[str], remedy: str | None = None
) -> NotAvailableError:
  """Returns the error for `owner.name`, such as `tf.contrib.crf` and `crf_decod`.

  Args:
    owner: where the name was looked for.
    name: what is not there.
    known: the names that are; the closest is proposed, or all are listed if they are few.
    remedy: what to do instead, where that is known.
  """
  known = sorted(known)
  close = difflib.get_close_matches(name, known, n=1)
  if not remedy and close:
    remedy = f"did you mean {owner}.{close[0]}?"
  elif not remedy:
    remedy = (
      f"{owner} has: {', '.join(known)}."
      if len(known) <= 60
      else "see docs/forks.md for what is there."
    )
  return NotAvailableError(f"{owner}.{name} is not available on this TensorFlow: {remedy}")


def no_tpu() -> str:
  """Says that there is no TPU, and what to do: leave the flags out that the script has for it."""
  own = [f"--{name}" for name in ("use_tpu", "tpu_name") if name in flags.FLAGS]
  remedy = f"Leave {' and '.join(own)} out" if own else "Set use_tpu=False in the script"
  return f"there is no TPU support here. {remedy}: the CPU or a GPU is used."


def _is_public(name: str, value: object) -> bool:
  """Tells whether a name of a module is more than one of its imports."""
  origin = getattr(value, "__module__", "bert_tf1")
  is_import = isinstance(value, types.ModuleType) or origin == __name__
  return not name.startswith("_") and not is_import and origin not in ("typing", "collections.abc")


def unknown_name(module_name: str, remedies: dict[str, str] | None = None) -> Callable:
  """Returns a module's `__getattr__` that names what is missing and what is there.

  Remedies, what to do instead, are by the names that are known to be missing.
  """
  names = vars(sys.modules[module_name])
  shown = module_name.replace("bert_tf1", "tf")

  def __getattr__(name: str) -> NoReturn:  # noqa: N807 (the name that Python looks for)
    if name.startswith("__"):
      raise AttributeError(f"module {shown!r} has no attribute {name!r}")
    known = names.get("__all__") or [n for n, value in names.items() if _is_public(n, value)]
    raise missing(shown, name, known, (remedies or {}).get(name))

  return __getattr__
