"""Programs with one protection left out, found in the syntax tree and not by a line's text.

  mutants(source, definition_lines, "call fsync")

What is left out is one of these phrases. Formatting, comments and the names of variables may
change; only what a phrase names has to be there.

  guard             an `if` that ends in raise, return, yield, break or continue never holds
  never, always     a condition never holds, or always does
  operand OPERATOR  one side of `and`, `or`, `&`, `|`, `+` or `*` is left out
  except NAME       this error is no longer caught
  call NAME         a call is left out: as a statement, of a `with`, or its value is what it was
                    called on, or else its first argument
  keyword NAME      an argument that is True or False is the other one
  set NAME          an assignment to it is left out
  NAME -> CODE      a name, an attribute or a constant is other code (not within f-strings)
  NAME() -> CODE    so is a call, whose arguments are {0}, {1}, ... of the code
"""

import ast
from collections.abc import Iterator

_LEAVES = (ast.Raise, ast.Return, ast.Break, ast.Continue)
_OPERATORS = {
  "and": ast.And,
  "or": ast.Or,
  "&": ast.BitAnd,
  "|": ast.BitOr,
  "+": ast.Add,
  "*": ast.Mult,
}


def mutants(source: str, lines: range, without: str) -> list[str]:
  """Returns the file once for each place within `lines` (from 1) where the phrase applies."""
  tree = ast.parse(source)
  data = source.encode("utf-8")
  starts = [0]
  for line in data.splitlines(keepends=True):
    starts.append(starts[-1] + len(line))

  def span(node) -> tuple[int, int]:
    first = starts[node.lineno - 1] + node.col_offset
    return first, starts[node.end_lineno - 1] + node.end_col_offset

  imported = {
    (alias.asname or alias.name).partition(".")[0]
    for node in tree.body
    if isinstance(node, (ast.Import, ast.ImportFrom))
    for alias in node.names
  }
  found = {}
  for parent in _walk(tree, lines):
    for node, code in _edits(parent, without, imported):
      first, last = span(node)
      found[first, last, code] = data[:first] + code.encode("utf-8") + data[last:]
  return [found[place].decode("utf-8") for place in sorted(found)]


def _walk(node: ast.AST, lines: range) -> Iterator[ast.AST]:
  """Yields the nodes within these lines, and what they are in.

  Those of f-strings are left out: their places are not known before Python 3.12.
  """
  for child in ast.iter_child_nodes(node):
    first = getattr(child, "lineno", lines.start)
    is_outside = first >= lines.stop or getattr(child, "end_lineno", first) < lines.start
    if not is_outside and not isinstance(child, ast.JoinedStr):
      if first in lines:
        yield child
      yield from _walk(child, lines)


def _edits(node: ast.AST, without: str, imported: set[str]) -> Iterator[tuple[ast.AST, str]]:
  """Yields parts of `node` and the code that replaces them."""
  if " -> " in without:
    return _replaced(node, *without.split(" -> "))
  kind, _, name = without.partition(" ")
  if kind == "guard":
    if isinstance(node, ast.If) and _leaves(node.body[-1]):
      return iter([(node.test, f"(({ast.unparse(node.test)}) and False)")])
    return iter(())
  if kind in ("never", "always"):
    end = "and False" if kind == "never" else "or True"
    return ((test, f"(({ast.unparse(test)}) {end})") for test in _conditions(node))
  if kind == "call":
    return _without_call(node, name, imported)
  kinds = {
    "operand": _without_operand,
    "except": _uncaught,
    "keyword": _other_keyword,
    "set": _unset,
  }
  return kinds[kind](node, name)


def _leaves(node: ast.stmt) -> bool:
  return isinstance(node, _LEAVES) or (
    isinstance(node, ast.Expr) and isinstance(node.value, (ast.Yield, ast.YieldFrom))
  )


def _conditions(node: ast.AST) -> list[ast.expr]:
  if isinstance(node, (ast.If, ast.IfExp, ast.While)):
    return [node.test]
  return node.ifs if isinstance(node, ast.comprehension) else []


def _last_name(node: ast.AST) -> str:
  """`fsync` of `os.fsync`."""
  return node.id if isinstance(node, ast.Name) else getattr(node, "attr", "")


def _is_call(node: ast.AST, name: str) -> bool:
  return isinstance(node, ast.Call) and _last_name(node.func) == name


def _replaced(node, name, code):
  if name.endswith("()"):
    if _is_call(node, name.removesuffix("()")):
      yield node, f"({code.format(*map(ast.unparse, node.args))})"
  elif isinstance(node, ast.Constant):
    if repr(node.value) == repr(_constant(name)):
      yield node, f"({code})"
  elif _last_name(node) == name and isinstance(node.ctx, ast.Load):
    yield node, f"({code})"


def _constant(text: str):
  """`0xFF` as a number, `None` as None; of a name, what no constant is."""
  try:
    return ast.literal_eval(text)
  except ValueError:
    return _constant


def _without_call(node, name, imported):
  if isinstance(node, (ast.With, ast.AsyncWith)):
    for item in node.items:
      if _is_call(item.context_expr, name):
        content = _value_without(item.context_expr, imported) if item.optional_vars else ""
        yield item.context_expr, f'__import__("contextlib").nullcontext({content})'
    return
  if isinstance(node, ast.Expr) and _is_call(node.value, name):
    yield node, "pass"
    return
  for child in ast.iter_child_nodes(node):
    if _is_call(child, name) and not isinstance(node, ast.withitem):
      yield child, f"({_value_without(child, imported)})"


def _value_without(call: ast.Call, imported: set[str]) -> str:
  """`records` of `records.skip(2)`, but `x` of `tf.abs(x)`."""
  on = getattr(call.func, "value", None)
  root = on
  while isinstance(root, ast.Attribute):
    root = root.value
  is_method = on is not None and getattr(root, "id", None) not in {"self", *imported}
  return ast.unparse(on if is_method else call.args[0]) if is_method or call.args else "None"


def _without_operand(node, operator):
  if not isinstance(getattr(node, "op", None), _OPERATORS[operator]):
    return
  if isinstance(node, ast.BoolOp):
    for left_out in node.values:
      kept = [f"({ast.unparse(value)})" for value in node.values if value is not left_out]
      yield node, f"({f' {operator} '.join(kept)})"
  elif isinstance(node, ast.BinOp):
    yield from ((node, f"({ast.unparse(side)})") for side in (node.left, node.right))


def _uncaught(node, name):
  if not isinstance(node, ast.ExceptHandler) or node.type is None:
    return
  caught = getattr(node.type, "elts", [node.type])
  if name in map(_last_name, caught):
    kept = "".join(f"{ast.unparse(each)}, " for each in caught if _last_name(each) != name)
    yield node.type, f"({kept})"


def _other_keyword(node, name):
  if isinstance(node, ast.keyword) and node.arg == name:
    yield node.value, str(not node.value.value)


def _unset(node, name):
  targets = getattr(node, "targets", None) or [getattr(node, "target", None)]
  if isinstance(node, (ast.Assign, ast.AugAssign)) and name in map(_last_name, targets):
    yield node, "pass"
