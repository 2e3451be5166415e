"""Where a function, class or constant of this project is defined, found by its name.

  find("atomic_files.written_whole", definitions(ROOT, PROGRAM))

A name is as many of the last parts of `bert.io.atomic_files.written_whole` as only one definition
has, so code may move from module to module and keep its name here. Methods and nested functions
are named by what they are in: `Estimator.train`.
"""

import ast
import pathlib
from collections.abc import Iterable, Iterator
from typing import NamedTuple

PROGRAM = ("*.py", "bert/**/*.py")
TESTS = ("tests/**/*_test.py",)


class Definition(NamedTuple):
  """Some lines of a file."""

  name: str  # the dotted name, that of its module included
  file: str  # relative to the project
  first_line: int  # counted from 1; decorators belong to a function
  last_line: int  # included


def definitions(root: pathlib.Path, patterns: Iterable[str]) -> list[Definition]:
  """All modules, classes, functions and module-level constants of the files that match."""
  found = []
  for path in sorted({path for pattern in patterns for path in root.glob(pattern)}):
    file = path.relative_to(root)
    module = ".".join(file.with_suffix("").parts).removesuffix(".__init__")
    source = path.read_text(encoding="utf-8")
    found.append(Definition(module, str(file), 1, len(source.splitlines())))
    found += _below(ast.parse(source), module, str(file))
  return found


def _below(parent: ast.AST, prefix: str, file: str) -> Iterator[Definition]:
  for node in ast.iter_child_nodes(parent):
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
      name = f"{prefix}.{node.name}"
      first_line = min([node.lineno, *(each.lineno for each in node.decorator_list)])
      yield Definition(name, file, first_line, node.end_lineno)
      yield from _below(node, name, file)
    elif isinstance(node, ast.Assign) and isinstance(parent, ast.Module):
      name = f"{prefix}.{ast.unparse(node.targets[0])}"
      yield Definition(name, file, node.lineno, node.end_lineno)
    elif not isinstance(node, ast.expr):
      yield from _below(node, prefix, file)  # a function within an `if` or a `with`


def find(name: str, among: Iterable[Definition]) -> Definition:
  """Returns the only definition of that name; a ValueError lists those that there are."""
  found = [each for each in among if f".{each.name}".endswith(f".{name}")]
  if len(found) != 1:
    several = ": " + ", ".join(each.name for each in found) if found else ""
    raise ValueError(f"{len(found)} definitions are named {name}, not one{several}")
  return found[0]
