"""Running a script as Python would, with 1.x below it, and saying what ended it."""

import os
import runpy
import sys
import traceback
from collections.abc import Sequence

import bert.tf1
from bert.tf1 import importing, seeds
from bert.tf1.errors import NotAvailable


def run(
  target: str, is_module: bool, flags: Sequence[str], folder: str, seed: int | None = None
) -> int:
  """Runs a script to its end.

  Args:
    target: path of the script, or name of the module.
    is_module: as `python -m` would.
    flags: the script's own.
    folder: what Python would put first on its path.
    seed: makes the run repeatable, see `seeds.py`.

  Returns:
    The exit status: 1 if an error ended it, 130 after Ctrl-C.
  """
  if seed is not None:
    seeds.make_repeatable(seed)
  bert.tf1.install(folder)
  sys.path[0] = folder
  sys.argv = [target, *flags]
  try:
    if is_module:
      runpy.run_module(target, run_name="__main__", alter_sys=True)
    else:
      runpy.run_path(target, run_name="__main__")
  except (Exception, KeyboardInterrupt) as error:
    return _explain(error)
  return 0


def _explain(error: BaseException) -> int:
  """Says in one line what ended the script, or shows its traceback; returns the exit status."""
  from_here = error.__traceback__
  while from_here and not importing.is_script_file(from_here.tb_frame.f_code.co_filename):
    from_here = from_here.tb_next
  frames = traceback.extract_tb(from_here) if from_here else []
  own = [frame for frame in frames if importing.is_script_file(frame.filename)]
  place = f"{own[-1].filename}:{own[-1].lineno}: " if own else ""
  if isinstance(error, KeyboardInterrupt):
    print("\nInterrupted.", file=sys.stderr)
    return 130
  if isinstance(error, (NotAvailable, importing.NotImportable)):
    print(f"{place}{error}", file=sys.stderr)
  elif isinstance(error, SyntaxError):
    print(
      f"{error.filename}:{error.lineno}: {error.msg}. If it is Python 2, convert a copy first, "
      "for example with `2to3` of a Python before 3.13.",
      file=sys.stderr,
    )
  else:
    traceback.print_exception(type(error), error, from_here or error.__traceback__)
  return 1
