"""The command `bert`, also as `python -m bert`: `bert run_classifier --task_name=MRPC`.

A word is the name of a script; the rest of the line is the script's own command line. Other
distributions add words by the entry-point group `bert.commands`: a function that takes the
arguments after the word and returns the exit code. Importing this module and listing the words
imports no script, so the answer comes at once.
"""

import contextlib
import importlib.metadata
import importlib.util
import pathlib
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
  entry: importlib.metadata.EntryPoint | None = None  # of another distribution's word


# Words of the command that are not scripts at the root: word -> module.
_OTHER_WORDS = {
  "augment_data": "bert.scripts.augment_data",
  "download": "bert.scripts.download",
}
_ENTRY_POINTS = "bert.commands"
# Words of other distributions -> what to install where the word is missing.
_OTHER_DISTRIBUTIONS = {"tf1": "bert-alive-tf1"}


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
  word = arguments[0].removesuffix(".py")
  known = own_words()
  if word not in known:  # Else nothing of other distributions is looked at.
    known = words()
  if word not in known:
    print(_unknown(arguments[0], known), file=sys.stderr)
    return 1
  sys.argv = [f"bert {word}", *arguments[1:]]
  module, _, entry = known[word]
  try:
    if entry:
      return entry.load()(arguments[1:])
    runpy.run_module(
      module,
      init_globals={installation.PROGRAM_NAME: f"bert {word}"},
      run_name="__main__",
      alter_sys=True,
    )
  except KeyboardInterrupt:  # while the script is imported; later it says so itself
    print("\nInterrupted.", file=sys.stderr)
    return 130
  return 0


def words() -> dict[str, Word]:
  """Returns the words of the command, sorted, with the first lines of the modules' docstrings.

  No script is imported.
  """
  return dict(sorted((_words_of_other_distributions() | own_words()).items()))


def own_words() -> dict[str, Word]:
  """Returns the scripts: modules at the root with an `if __name__ == "__main__":`, and two more."""
  found = {}
  for path in installation.ROOT.glob("[a-z]*.py"):
    source = path.read_text(encoding="utf-8")
    if '\nif __name__ == "__main__":' in source:
      found[path.stem] = Word(f"bert.{path.stem}", _summary(source))
  for word, module in _OTHER_WORDS.items():
    path = installation.PACKAGE.joinpath(*module.split(".")[1:]).with_suffix(".py")
    found[word] = Word(module, _summary(path.read_text(encoding="utf-8")))
  return found


def _words_of_other_distributions() -> dict[str, Word]:
  found = {}
  for entry in importlib.metadata.entry_points(group=_ENTRY_POINTS):
    with contextlib.suppress(ModuleNotFoundError):  # An installation that is gone.
      if spec := importlib.util.find_spec(entry.module):
        source = pathlib.Path(spec.origin).read_text(encoding="utf-8")
        found[entry.name] = Word(entry.module, _summary(source), entry)
  return found


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
  if word in _OTHER_DISTRIBUTIONS:
    return f"ERROR: `bert {word}` needs another package: pip install {_OTHER_DISTRIBUTIONS[word]}"
  import difflib  # Rarely needed, and not free to import.

  nearest = difflib.get_close_matches(word, known, n=1)
  question = f" Did you mean `bert {nearest[0]}`?" if nearest else ""
  return f'ERROR: bert has no command "{word}".{question}\n`bert --help` lists all commands.'


if __name__ == "__main__":
  sys.exit(main())
