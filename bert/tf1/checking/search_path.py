"""The folders that a script adds to `sys.path`, as far as its text alone tells them."""

import ast
import os
from collections.abc import Callable

# What is computed of paths; all else is not known before a run.
_FUNCTIONS: dict[str, Callable[..., str]] = {
  "os.getcwd": os.getcwd,
  "os.path.abspath": os.path.abspath,
  "os.path.dirname": os.path.dirname,
  "os.path.join": os.path.join,
  "os.path.normpath": os.path.normpath,
  "os.path.realpath": os.path.realpath,
  "os.path.split": os.path.dirname,  # the first of its two
}


def add_folders(call: ast.Call, path: str, texts: dict[str, str], search: list[str]) -> None:
  """Adds what a call in the file `path` adds to `sys.path`, such as `sys.path.insert(0, "..")`.

  Args:
    call: one that does something else, or whose folder the text does not tell, adds none.
    path: the file with the call.
    texts: the file's variables so far.
    search: the folders, changed in place; a new one is from the current folder if not absolute.
  """
  at = {"sys.path.append": 0, "sys.path.insert": 1}.get(ast.unparse(call.func))
  if at is None or len(call.args) <= at:
    return
  folder = text_of(call.args[at], path, texts)
  place = call.args[0].value if at and isinstance(call.args[0], ast.Constant) else len(search)
  if folder is not None and isinstance(place, int):
    search.insert(place, os.path.abspath(folder))


def note_texts(statement: ast.Assign, path: str, texts: dict[str, str]) -> None:
  """Notes in `texts` what a statement of the file `path` makes of its variables."""
  value = text_of(statement.value, path, texts)
  for target in statement.targets:
    if isinstance(target, ast.Name):
      texts.pop(target.id, None)
      if value is not None:
        texts[target.id] = value


def text_of(node: ast.expr, path: str, texts: dict[str, str]) -> str | None:
  """Returns the value of an expression of paths; None where it is not known."""
  if isinstance(node, ast.Constant):
    return node.value if isinstance(node.value, str) else None
  if isinstance(node, ast.Name):
    return os.path.abspath(path) if node.id == "__file__" else texts.get(node.id)
  if isinstance(node, ast.Attribute):
    return {"os.pardir": os.pardir, "os.curdir": os.curdir, "os.sep": os.sep}.get(ast.unparse(node))
  if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
    parts = [text_of(node.left, path, texts), text_of(node.right, path, texts)]
    return "".join(part for part in parts if part) if None not in parts else None
  if isinstance(node, ast.Subscript) and ast.unparse(node).endswith("[0]"):  # os.path.split(...)[0]
    node = node.value
    if not isinstance(node, ast.Call) or ast.unparse(node.func) != "os.path.split":
      return None
  if isinstance(node, ast.Call) and not node.keywords:
    function = _FUNCTIONS.get(ast.unparse(node.func))
    values = [text_of(argument, path, texts) for argument in node.args]
    if function and None not in values:
      return function(*values)
  return None
