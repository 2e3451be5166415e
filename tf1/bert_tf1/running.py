"""Running a script as Python would, with 1.x below it, and saying what ended it."""

import errno
import os
import re
import runpy
import sys
import traceback
from collections.abc import Sequence

from absl import flags

import bert_tf1
from bert_tf1 import importing, quiet_stderr, seeds
from bert_tf1.errors import NotAvailableError
from bert_tf1.real import tf

# Files whose lines in a traceback say nothing about the script.
_STARTERS = (__file__, importing.__file__, runpy.__file__, "<frozen runpy>")
# How TensorFlow's message about a file ends.
_FILE_ERRORS = (
  "is not a directory",
  *(
    os.strerror(number)
    for number in (
      *(errno.EACCES, errno.EFBIG, errno.EISDIR, errno.ENOENT, errno.ENOSPC, errno.ENOTDIR),
      *(errno.EPERM, errno.EROFS),
    )
  ),
)
# Lines of a graph error's message around its cause, and what precedes that in a list of causes.
_SAYS_NO_CAUSE = re.compile(
  r"\s*$|Graph execution error:|Detected at node |\s+\[\[|\d+ root error|\s+File "
)
_ROOT_ERROR = re.compile(r"\(\d+\) (?:[A-Z_]+: )?")
_PYTHON_2 = (
  "If it is Python 2, convert a copy first, for example with `2to3` of a Python before 3.13."
)


def run(
  target: str, is_module: bool, arguments: Sequence[str], folder: str, seed: int | None = None
) -> int:
  """Runs a script to its end.

  Args:
    target: path of the script, or name of the module.
    is_module: as `python -m` would.
    arguments: the script's own.
    folder: what Python would put first on its path.
    seed: makes the run repeatable, see `seeds.py`.

  Returns:
    The exit status: 1 if an error ended it, 130 after Ctrl-C.
  """
  quiet_stderr.start()
  if seed is not None:
    seeds.make_repeatable(seed)
  bert_tf1.install(folder)
  sys.path[0] = folder
  sys.argv = [target, *arguments]
  try:
    if is_module:
      runpy.run_module(target, run_name="__main__", alter_sys=True)
    else:
      runpy.run_path(target, run_name="__main__")
  except (Exception, KeyboardInterrupt) as error:
    return _explain(error, target)
  return 0


def _explain(error: BaseException, target: str) -> int:
  """Says in one line what ended the script, or shows its traceback; returns the exit status."""
  if isinstance(error, KeyboardInterrupt):
    print("\nInterrupted.", file=sys.stderr)
    return 130
  frames = traceback.extract_tb(error.__traceback__)
  own = [frame for frame in frames if importing.is_script_file(frame.filename)]
  place = f"{own[-1].filename}:{own[-1].lineno}: " if own else ""
  if isinstance(error, (NotAvailableError, importing.NotImportableError)):
    print(f"{place}{error}", file=sys.stderr)
  elif isinstance(error, SyntaxError):
    where = f"{error.filename or target}:{error.lineno or 1}"
    print(f"{where}: {error.msg}. {_PYTHON_2}", file=sys.stderr)
  elif isinstance(error, (ImportError, ValueError)) and not own:
    # What `-m` names is not there; or a file with null bytes, before Python 3.12.
    print(f"{target}: {error}", file=sys.stderr)
  elif isinstance(error, flags.Error):
    print(f"{target}: {error}", file=sys.stderr)
  elif _is_about_a_file(error):
    message = error.message if isinstance(error, tf.errors.OpError) else str(error)
    print(f"{place}{type(error).__name__}: {message.splitlines()[0]}", file=sys.stderr)
  else:
    _show(error)
    if isinstance(error, tf.errors.OpError):
      print(_cause(error, place), file=sys.stderr)
  return 1


def _cause(error: tf.errors.OpError, place: str) -> str:
  """Returns the last line of a graph error, whose cause stands amid a hundred lines of stacks.

  Args:
    error: raised by a session.
    place: where the script ran the session, as `FILE:LINE: `; the line that made the operation is
      said instead where it is known.
  """
  message = error.message.partition("\nOriginal stack trace for ")[0]
  lines = re.split(r"\nNode: '.*'\n", message)[-1].splitlines()
  cause = next((line.strip() for line in lines if not _SAYS_NO_CAUSE.match(line)), "")
  operation = f"{error.op.name}: " if error.op is not None else ""
  made_at = [
    frame
    for frame in (error.op.traceback if error.op is not None else ())
    if importing.is_script_file(frame.filename)
  ]
  if made_at:
    place = f"{made_at[-1].filename}:{made_at[-1].lineno}: "
  return f"{place}{operation}{_ROOT_ERROR.sub('', cause) or type(error).__name__}"


def _is_about_a_file(error: BaseException) -> bool:
  """Tells whether a path was wrong or a disk full: the message says it all."""
  if isinstance(error, tf.errors.OpError):
    return error.message.partition("\n")[0].endswith(_FILE_ERRORS)
  return isinstance(error, OSError) and error.errno is not None


def _show(error: BaseException) -> None:
  """Prints the traceback without the files that started the script."""
  shown = traceback.TracebackException.from_exception(error)
  parts = [shown]
  while parts:
    part = parts.pop()
    part.stack[:] = [frame for frame in part.stack if frame.filename not in _STARTERS]
    parts += [inner for inner in (part.__cause__, part.__context__) if inner]
  print("".join(shown.format()), end="", file=sys.stderr)
