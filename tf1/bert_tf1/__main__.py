"""Run a script of TensorFlow 1.x, such as a fork of google-research/bert, without changing it.

  bert-tf1 [--cwd=DIR] [--seed=N] [--check] SCRIPT [flags of the script]
  python -m bert_tf1 ...     the same
  bert tf1 ...               the same, where bert-alive is installed too

What stands before the script's name is for this command; what follows is the script's own.
"""

import importlib.machinery
import os
import sys
from collections.abc import Sequence
from typing import NamedTuple

from bert_tf1 import whose

USAGE = """\
Run a script of TensorFlow 1.x (a fork of google-research/bert of 2018 to 2021) unedited.

  bert-tf1 [OPTIONS] SCRIPT [flags of the script]
  bert-tf1 [OPTIONS] -m MODULE [flags of the module]
  python -m bert_tf1 ...    the same, where the command is not on the path

  --cwd=DIR   Change to this folder first, as `cd DIR` would.
  --seed=N    Make the run repeatable: seeds and the order of all sums are fixed.
  --check     Do not run: list each name of TensorFlow 1.x that the script and its
              modules use, and whether it is there. Exit status 0 unless one is not.
  --help      This text.
"""


class _UsageError(Exception):
  pass


class _Command(NamedTuple):
  target: str
  is_module: bool
  flags: list[str]
  cwd: str | None
  seed: int | None
  check: bool


def _parse(arguments: Sequence[str]) -> _Command:
  """Returns the command line; stops at the script's name."""
  settings: dict = {"cwd": None, "seed": None, "check": False}
  rest = list(arguments)
  while rest and rest[0].startswith("-") and rest[0] != "-m":
    option, has_value, value = rest.pop(0).partition("=")
    name = option.lstrip("-")
    if name == "check" and not has_value:
      settings["check"] = True
      continue
    if name not in ("cwd", "seed"):
      raise _UsageError(
        f"{option} is no option of `bert-tf1`. It knows --cwd, --seed and --check; "
        "flags of the script follow its name."
      )
    if not has_value:
      if not rest:
        raise _UsageError(f"--{name} needs a value: --{name}=...")
      value = rest.pop(0)
    settings[name] = value
  if settings["seed"] is not None:
    try:
      settings["seed"] = int(settings["seed"])
    except ValueError:
      raise _UsageError(f"--seed={settings['seed']}: a whole number, such as --seed=1") from None
  is_module = rest[:1] == ["-m"]
  rest = rest[1:] if is_module else rest
  if not rest or not rest[0]:
    raise _UsageError("which script? bert-tf1 [OPTIONS] SCRIPT [flags of the script]")
  return _Command(rest[0], is_module, rest[1:], **settings)


def _folder_of(command: _Command) -> str:
  """Returns the folder that Python would put first on its path; the script's path is checked."""
  if command.is_module:
    top = command.target.partition(".")[0]
    if not importlib.machinery.PathFinder.find_spec(top, [os.getcwd(), *sys.path[1:]]):
      raise _UsageError(f"-m {command.target}: no module {top} in {os.getcwd()} or installed")
    return os.getcwd()
  if os.path.isdir(command.target):
    raise _UsageError(f"{command.target} is a folder: give a script in it, or -m MODULE")
  if not os.path.isfile(command.target):
    raise _UsageError(f"{command.target}: no such script in {os.getcwd()}")
  if command.target.endswith(".ipynb"):
    raise _UsageError(
      f"{command.target} is a notebook. Run it where notebooks run, with a first cell of "
      "`import bert_tf1; bert_tf1.install()`, or write it as a script first: "
      f"jupyter nbconvert --to script {command.target}"
    )
  folder = os.path.dirname(os.path.realpath(command.target))
  if whose.is_ours(folder, "modeling"):
    raise _UsageError(
      f"{command.target} is a script of bert-alive and needs no 1.x: python {command.target} ..."
    )
  return folder


def _python_path() -> list[str]:
  return [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]


def _with_fixed_hashes(seed: int, started_in: str, arguments: Sequence[str]) -> None:
  """Starts Python anew if the order of sets of strings is not fixed, which only a start can do."""
  hash_seed = str(seed % 2**32)
  if os.environ.get("PYTHONHASHSEED") != hash_seed:
    os.environ["PYTHONHASHSEED"] = hash_seed
    os.chdir(started_in)
    above = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
    # Not `-m bert_tf1`, which would put the current folder's modules before the standard library's.
    start = (
      f"import sys; sys.path[0] = {above!r}; "
      "from bert_tf1.__main__ import main; sys.exit(main(sys.argv[1:]))"
    )
    os.execv(sys.executable, [sys.executable, "-c", start, *arguments])


def main(arguments: Sequence[str] | None = None) -> int:
  """Runs the command.

  Args:
    arguments: what follows the command's name, by default that of `sys.argv`.

  Returns:
    The exit status.
  """
  try:
    return _run(sys.argv[1:] if arguments is None else arguments)
  except KeyboardInterrupt:  # While TensorFlow is imported; a script has its own.
    print("\nInterrupted.", file=sys.stderr)
    return 130


def _run(arguments: Sequence[str]) -> int:
  if not arguments or arguments[0] in ("--help", "-h", "--helpfull"):
    print(USAGE, end="")
    return 0 if arguments else 2
  started_in = os.getcwd()
  try:
    command = _parse(arguments)
    if command.cwd:
      if not os.path.isdir(command.cwd):
        raise _UsageError(f"--cwd={command.cwd}: no such folder")
      os.chdir(command.cwd)
    folder = _folder_of(command)
  except _UsageError as error:
    print(f"bert-tf1: {error}", file=sys.stderr)
    return 2
  if command.seed is not None and not command.check:
    _with_fixed_hashes(command.seed, started_in, arguments)
  if command.check:
    from bert_tf1 import check

    try:
      text, failures = check.report(command.target, command.is_module, [folder, *_python_path()])
    except (FileNotFoundError, ValueError) as error:
      print(f"bert-tf1: {error}", file=sys.stderr)
      return 2
    print(text)
    return 1 if failures else 0
  from bert_tf1 import running  # It imports TensorFlow: after all that can be refused at once.

  return running.run(command.target, command.is_module, command.flags, folder, command.seed)


if __name__ == "__main__":
  sys.exit(main())
