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


def missing_of_original(owner: str, name: str, known: Iterable[str]) -> NotAvailableError:
  """Returns the error for a name of a module that a script may have, too.

  Args:
    owner: the original's module, such as `modeling`, that a script without one gets.
    name: what it does not have.
    known: what it has.
  """
  remedy = (
    f"this is the original's {owner}, as no other was found beside the script or on its path. "
    "If the script has its own, set PYTHONPATH to the directory that it is in."
  )
  close = difflib.get_close_matches(name, known := sorted(known), n=1)
  if close:
    remedy += f" Or did you mean {owner}.{close[0]}?"
  elif len(known) <= 10:
    remedy += f" {owner} has: {', '.join(known)}."
  return missing(owner, name, known, remedy)


def public_names(module: types.ModuleType | type) -> list[str]:
  """Returns the names of a module or class, without what this project's modules import."""
  if not module.__name__.startswith("bert_tf1."):
    return [name for name in dir(module) if not name.startswith("_")]
  names = vars(module)
  return names.get("__all__") or [name for name, value in names.items() if _is_public(name, value)]


def _is_public(name: str, value: object) -> bool:
  """Tells whether a name of a module is more than one of its imports."""
  origin = str(getattr(value, "__module__", ""))
  of_python = origin == "typing" or (
    isinstance(value, (type, types.FunctionType, types.BuiltinFunctionType))
    and origin.partition(".")[0] in sys.stdlib_module_names
  )
  is_import = isinstance(value, types.ModuleType) or origin == __name__ or of_python
  return not name.startswith("_") and not is_import


def unknown_name(module_name: str, remedies: dict[str, str] | None = None) -> Callable:
  """Returns a module's `__getattr__` that names what is missing and what is there.

  Remedies, what to do instead, are by the names that are known to be missing.
  """
  module = sys.modules[module_name]
  shown = module_name.replace("bert_tf1", "tf")

  def __getattr__(name: str) -> NoReturn:  # noqa: N807 (the name that Python looks for)
    if name.startswith("__"):
      raise AttributeError(f"module {shown!r} has no attribute {name!r}")
    raise missing(shown, name, public_names(module), (remedies or {}).get(name))

  return __getattr__


def unknown_name_of_original(owner: str, module: types.ModuleType) -> Callable:
  """Returns the `__getattr__` of a module of the original; see `missing_of_original`."""

  def __getattr__(name: str) -> NoReturn:  # noqa: N807
    if name.startswith("__"):
      raise AttributeError(f"module {owner!r} has no attribute {name!r}")
    raise missing_of_original(owner, name, public_names(module))

  return __getattr__
