"""The command `bert`, also as `python -m bert_alive`: `bert run_classifier --task_name=MRPC`.

A word is the name of a script; the rest of the line is the script's own command line. Importing
this module and listing the words imports no script, so the answer comes at once.
"""

import os
import runpy
import sys
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import bert
from bert.io import installation

_USAGE = """\
usage: bert COMMAND [--flag=value ...]
       bert COMMAND --help
       bert --version"""


class Word(NamedTuple):
  """What a word of the command runs."""

  module: str
  summary: str


# Words of the command that are not scripts at the root: word -> module.
_OTHER_WORDS = {
  "download": "bert.scripts.download",
  "tf1": "bert.tf1.__main__",
}


def main(argv: Sequence[str] | None = None) -> int:
  """Runs the script that the first word names.

  Args:
    argv: the program's name and its arguments, by default `sys.argv`.

  Returns:
    The exit code: 0 after help or version, 1 after an unknown word. A script exits by itself.
  """
  arguments = list(sys.argv if argv is None else argv)[1:]
  if not arguments or arguments[0] in ("--help", "-h", "-?", "help"):
    print(format_help())
    return 0
  if arguments[0] == "--version":
    print(installation.version_line())
    return 0
  known = words()
  word = arguments[0].removesuffix(".py")
  if word not in known:
    print(_unknown(arguments[0], known), file=sys.stderr)
    return 1
  sys.argv = [f"bert {word}", *arguments[1:]]
  if word != "tf1":  # Whose scripts may import another `bert`.
    _let_workers_find_this_project()
  try:
    runpy.run_module(
      known[word].module,
      init_globals={installation.PROGRAM_NAME: f"bert {word}"},
      run_name="__main__",
      alter_sys=True,
    )
  except KeyboardInterrupt:  # while the script is imported; later it says so itself
    print("\nInterrupted.", file=sys.stderr)
    return 130
  return 0


def _let_workers_find_this_project() -> None:
  """Puts folders with another package `bert` behind all others: the current one, PYTHONPATH's.

  A worker process starts with this one's `sys.path` or PYTHONPATH, and imports `bert` by its name.
  """
  sys.path.sort(key=_has_another_bert)
  if "PYTHONPATH" in os.environ:
    paths = os.environ["PYTHONPATH"].split(os.pathsep)
    os.environ["PYTHONPATH"] = os.pathsep.join(p for p in paths if not _has_another_bert(p))


def _has_another_bert(folder: str) -> bool:
  package = os.path.join(folder, "bert")
  if os.path.isdir(package):
    return not os.path.samefile(package, installation.PACKAGE)
  return os.path.isfile(package + ".py")


def words() -> dict[str, Word]:
  """Returns the words of the command, sorted, with the first lines of the modules' docstrings.

  A script is a module at the root with an `if __name__ == "__main__":`. Nothing is imported.
  """
  found = {}
  for path in installation.ROOT.glob("[a-z]*.py"):
    source = path.read_text(encoding="utf-8")
    if '\nif __name__ == "__main__":' in source:
      found[path.stem] = Word(f"bert.{path.stem}", _summary(source))
  for word, module in _OTHER_WORDS.items():
    path = installation.PACKAGE.joinpath(*module.split(".")[1:]).with_suffix(".py")
    found[word] = Word(module, _summary(path.read_text(encoding="utf-8")))
  return dict(sorted(found.items()))


def _summary(source: str) -> str:
  """Returns the first line of a module's docstring."""
  return source.partition('"""')[2].partition("\n")[0].rstrip('"')


def format_help() -> str:
  """Usage, and each word with a line."""
  known = words()
  width = max(map(len, known))
  lines = [f"  {word:{width}}  {each.summary}" for word, each in known.items()]
  return "\n".join(
    [
      _USAGE,
      "",
      f"BERT on today's TensorFlow, version {bert.__version__}. Commands:",
      "",
      *lines,
      "",
      "A first try, with a small sample: bert run_classifier --task_name=MRPC",
    ]
  )


def _unknown(word: str, known: Iterable[str]) -> str:
  import difflib  # Rarely needed, and not free to import.

  nearest = difflib.get_close_matches(word, known, n=1)
  question = f" Did you mean `bert {nearest[0]}`?" if nearest else ""
  return f'ERROR: bert has no command "{word}".{question}\n`bert --help` lists all commands.'


if __name__ == "__main__":
  sys.exit(main())
