"""What a table of bad inputs is made of, and what every row of it has to fulfil.

  Family("configuration", "bert_config.json", loading(lambda folder: read(folder / "...")), [
    Case("cut short", b'{"vocab_size": 1', "not valid JSON"),
  ])

A case is a file that is not as it should be. Whoever reads it, as a script or from Python, has to
leave with code 1 and one message that names the file and has the words of the case; to write
nothing; and to change none of the files that were there.
"""

import contextlib
import io
import pathlib
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import pytest

from bert.scripts import command_line

FOLDER = object()  # as a content: there is a folder of that name
LONGEST_MESSAGE = 1500  # characters; a message is for people, whatever the file holds

# Signs that a message comes from inside TensorFlow, or from a program that did not expect it.
_FOREIGN = ("Traceback", "function_node", "IteratorGetNext", "{{node", "Op:", "OpKernel")

Run = Callable[[pathlib.Path], None]


class Case(NamedTuple):
  """A bad file."""

  name: str  # what is wrong with it
  # What it holds; None if it does not exist; `FOLDER`; or a function of the good content.
  content: bytes | object | None
  words: tuple[str, ...]  # what the message says about it, beside its name


def case(name: str, content, *words: str) -> Case:
  """A `Case`; text is written as UTF-8."""
  return Case(name, content.encode() if isinstance(content, str) else content, words)


class Family(NamedTuple):
  """Cases that are read in the same way."""

  title: str  # goes before each case's name
  file: str  # the name of the bad file, in the folder that `run` is given
  run: Run  # reads it as a script, `loading(...)` or `starting(...)`
  cases: Iterable[Case]  # the bad files
  # Name -> content of good files beside it; the good content of `file` may be among them.
  others: Mapping[str, bytes] = {}
  named: str | None = None  # what of the file the message names, by default its name


def loading(loader: Callable[[pathlib.Path], object]) -> Run:
  """Calls a function as if it were the main function of a script."""

  def run(folder: pathlib.Path) -> None:
    command_line.run(lambda _: loader(folder) and None, lambda: None, ["script.py"], doc="")

  return run


def starting(module, *words: str, **values) -> Run:
  """Runs a script; `{}` in a word or value stands for the folder, and `out` in it is its output."""

  def run(folder: pathlib.Path) -> None:
    flags = [f"--{name}={value}" for name, value in values.items()]
    arguments = [word.replace("{}", str(folder)) for word in (*words, *flags)]
    command_line.run(module.main, module.define_flags, [f"{module.__name__}.py", *arguments])

  return run


def rows_of(families: Iterable[Family]) -> list:
  """All cases as parameters of a test `(family, row)`."""
  return [
    pytest.param(family, row, id=f"{family.title}: {row.name}")
    for family in families
    for row in family.cases
  ]


def message_of(run: Run, folder: pathlib.Path) -> str:
  """The one message with which a run has to fail."""
  out, err = io.StringIO(), io.StringIO()
  with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
    with pytest.raises(SystemExit) as left:
      run(folder)
  log = err.getvalue()
  assert left.value.code == 1, log
  assert out.getvalue() == ""
  assert log.count("ERROR: ") == 1, log
  message = log[log.index("ERROR: ") :]
  assert not [sign for sign in _FOREIGN if sign in log], log
  assert len(message) < LONGEST_MESSAGE, message
  return message


def check(family: Family, row: Case, folder: pathlib.Path) -> None:
  """Writes the files of a case, reads them, and checks what this module's docstring says."""
  good = family.others.get(family.file, b"")
  content = row.content(good) if callable(row.content) else row.content
  for name, data in {**family.others, family.file: content}.items():
    _write(folder / name, data)
  _write(folder / "out" / "earlier.txt", b"of another run")
  before = _contents(folder)
  message = message_of(family.run, folder)
  for words in (family.file if family.named is None else family.named, *row.words):
    assert words in message, message
  assert _contents(folder) == before


def _write(path: pathlib.Path, data) -> None:
  path.parent.mkdir(parents=True, exist_ok=True)
  if data is FOLDER:
    path.mkdir()
  elif data is not None:
    path.write_bytes(data)


def _contents(folder: pathlib.Path) -> dict[str, bytes]:
  """All files below a folder, hidden ones too."""
  return {
    str(path.relative_to(folder)): path.read_bytes()
    for path in sorted(folder.rglob("*"))
    if path.is_file()
  }
