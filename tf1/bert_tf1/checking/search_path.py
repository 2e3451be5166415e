"""The folders that a script adds to `sys.path`, as far as its text alone tells them."""

import ast
import os
from collections.abc import Callable, Sequence

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


def add_folders(
  statement: ast.Expr | ast.AugAssign, path: str, texts: dict[str, str], search: list[str]
) -> None:
  """Adds what a statement of the file `path` adds to `sys.path`: `sys.path.insert(0, "..")`.

  Args:
    statement: one that does something else, or whose folders the text does not tell, adds none.
    path: the file.
    texts: the file's variables so far.
    search: the folders, changed in place; a new one is from the current folder if not absolute.
  """
  place, nodes = _added(statement, len(search))
  folders = [text_of(node, path, texts) for node in nodes]
  search[place:place] = [os.path.abspath(folder) for folder in folders if folder is not None]


def _added(statement: ast.Expr | ast.AugAssign, end: int) -> tuple[int, Sequence[ast.expr]]:
  """Returns at which place a statement adds to `sys.path`, and the expressions of what it adds."""
  if isinstance(statement, ast.AugAssign):
    function, arguments = f"{ast.unparse(statement.target)}.extend", [statement.value]
  elif isinstance(statement.value, ast.Call):
    function, arguments = ast.unparse(statement.value.func), statement.value.args
  else:
    return end, ()
  match function, arguments:
    case "sys.path.append", [folder]:
      return end, (folder,)
    case "sys.path.insert", [ast.Constant(int(place)), folder]:
      return place, (folder,)
    case "sys.path.extend", [ast.List(folders) | ast.Tuple(folders)]:
      return end, folders
  return end, ()


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
