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
}


def added_folders(call: ast.Call, path: str) -> list[str]:
  """Finds the folder that a call in the file `path` adds to `sys.path`: `sys.path.append("..")`.

  Returns:
    The folder, from the current one if it is not absolute; none if the call does something else or
    the text does not tell.
  """
  at = {"sys.path.append": 0, "sys.path.insert": 1}.get(ast.unparse(call.func))
  if at is None or len(call.args) <= at:
    return []
  folder = _text(call.args[at], path)
  return [os.path.abspath(folder)] if folder is not None else []


def _text(node: ast.expr, path: str) -> str | None:
  """Returns the value of an expression of paths; None where it is not known."""
  if isinstance(node, ast.Constant):
    return node.value if isinstance(node.value, str) else None
  if isinstance(node, ast.Name):
    return os.path.abspath(path) if node.id == "__file__" else None
  if isinstance(node, ast.Attribute):
    return {"os.pardir": os.pardir, "os.curdir": os.curdir, "os.sep": os.sep}.get(ast.unparse(node))
  if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
    parts = [_text(node.left, path), _text(node.right, path)]
    return "".join(part for part in parts if part) if None not in parts else None
  if isinstance(node, ast.Call) and not node.keywords:
    function = _FUNCTIONS.get(ast.unparse(node.func))
    values = [_text(argument, path) for argument in node.args]
    if function and None not in values:
      return function(*values)
  return None
