"""Data in Python test files: literals, names of the module, lists of parameters. Nothing is run.

The files are read as syntax trees. A value is a literal, a sum of values, a name that the module
gives to one, or a call that is known to return its argument in another form (`dict(a=1)`,
`text.encode("utf-8")`, `np.array([1])`).
"""

import ast
import pathlib
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from conformance.cases import SuiteError, read_text

# Calls that give back their first argument, as far as a comparison of values can see.
_TRANSPARENT = {"array", "constant", "constant_value", "set", "list", "tuple", "fromkeys"}
# Helpers of these suites that encode a text.
_ENCODERS = {"_utf8", "_Utf8"}


class Symbol(str):
  """A name that is no value of the file, such as `dtypes.int64` or an imported class."""


class Test(NamedTuple):
  """A test function.

  Attributes:
    name: `Class.function`, or `function`.
    node: its syntax tree.
    parameters: the arguments of each of its runs; empty if it has none.
    defaults: the default values of its arguments.
  """

  name: str
  node: ast.FunctionDef
  parameters: list[dict[str, Any]]
  defaults: dict[str, Any]


class PythonFile:
  """A test file as a syntax tree.

  Attributes:
    path: of the file.
    names: name -> value, for the assignments of the module whose values can be read; a `Symbol`
      for what it imports.
  """

  def __init__(self, path: pathlib.Path):
    """Reads a file; a SuiteError if that is not Python."""
    self.path = path
    try:
      self.tree = ast.parse(read_text(path))
    except SyntaxError as error:
      raise SuiteError(f"{path}:{error.lineno}: not Python: {error.msg}") from None
    self.names: dict[str, Any] = {}
    for node in ast.walk(self.tree):
      if isinstance(node, ast.Import | ast.ImportFrom):
        for alias in node.names:
          name = alias.asname or alias.name.split(".")[0]
          self.names[name] = Symbol(alias.name)
    for node in self.tree.body:
      if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
        try:
          self.names[node.targets[0].id] = self.value(node.value)
        except SuiteError:
          continue  # not data; whoever needs it is told

  def error(self, node: ast.AST, message: str) -> SuiteError:
    """An error that names the file and the line."""
    return SuiteError(f"{self.path}:{getattr(node, 'lineno', 0)}: {message}")

  def value(self, node: ast.AST, names: Mapping[str, Any] | None = None) -> Any:
    """The value of an expression.

    Args:
      node: of the expression.
      names: further names, such as those of a function's local data.

    Raises:
      SuiteError: it is no data.
    """
    names = {**self.names, **(names or {})} if names else self.names
    read = _READERS.get(type(node))
    if read is None:
      raise self.error(node, f"a value was expected, not {ast.unparse(node)[:60]}")
    return read(self, node, names)

  def tests(self) -> Iterator[Test]:
    """All test functions, in order; those of a class with parameters have the class's."""
    for node in self.tree.body:
      if isinstance(node, ast.FunctionDef) and _is_test(node.name):
        yield self._test(node.name, node, [])
      if isinstance(node, ast.ClassDef):
        of_class = self._parameters(node)
        for inner in node.body:
          if isinstance(inner, ast.FunctionDef) and _is_test(inner.name):
            yield self._test(f"{node.name}.{inner.name}", inner, of_class)

  def _test(self, name: str, node: ast.FunctionDef, of_class: list) -> Test:
    arguments, given = node.args.args, node.args.defaults
    defaults = {}
    for argument, default in zip(arguments[len(arguments) - len(given) :], given, strict=True):
      try:
        defaults[argument.arg] = self.value(default)
      except SuiteError:
        continue
    return Test(name, node, self._parameters(node) or of_class, defaults)

  def _parameters(self, node) -> list[dict[str, Any]]:
    """The runs of a test or class: absl's `parameters`."""
    for decorator in node.decorator_list:
      called = ast.unparse(decorator.func) if isinstance(decorator, ast.Call) else ""
      if called == "parameterized.parameters":
        runs = decorator.args
        if len(runs) == 1 and isinstance(runs[0], ast.List):
          runs = runs[0].elts
        return [self._run(run) for run in runs]
    return []

  def _run(self, node) -> dict[str, Any]:
    found = self.value(node)
    if not isinstance(found, dict):
      raise self.error(node, "parameters were expected as dict(...)")
    return found


def _is_test(name: str) -> bool:
  return name.startswith("test") or "test" in name.lower().split("_")


def _constant(file, node, names):
  return node.value


def _sequence(file, node, names):
  return [file.value(each, names) for each in node.elts]


def _dictionary(file, node, names):
  if any(key is None for key in node.keys):
    raise file.error(node, "a dictionary without ** was expected")
  pairs = zip(node.keys, node.values, strict=True)
  return {file.value(key, names): file.value(item, names) for key, item in pairs}


def _name(file, node, names):
  if node.id not in names:
    raise file.error(node, f"the name {node.id} has no value that can be read")
  return names[node.id]


def _attribute(file, node, names):
  return Symbol(ast.unparse(node))


def _negative(file, node, names):
  if not isinstance(node.op, ast.USub):
    raise file.error(node, f"a value was expected, not {ast.unparse(node)[:60]}")
  return -file.value(node.operand, names)


def _sum(file, node, names):
  if not isinstance(node.op, ast.Add):
    raise file.error(node, f"a sum was expected, not {ast.unparse(node)[:60]}")
  left, right = file.value(node.left, names), file.value(node.right, names)
  try:
    return left + right
  except TypeError as error:
    raise file.error(node, str(error)) from None


def _call(file, node, names):
  called = ast.unparse(node.func)
  if called == "dict" and not node.args:
    return {each.arg: file.value(each.value, names) for each in node.keywords}
  if called in _ENCODERS and len(node.args) == 1:
    return file.value(node.args[0], names).encode()
  if isinstance(node.func, ast.Attribute) and node.func.attr == "encode":
    return file.value(node.func.value, names).encode()
  last = called.split(".")[-1]
  if last in _TRANSPARENT:
    return file.value(node.args[0], names) if node.args else []
  if last[:1].isupper():  # a small class of the suite: its arguments are its data
    return [file.value(each, names) for each in node.args]
  raise file.error(node, f"a value was expected, not {ast.unparse(node)[:60]}")


_READERS = {
  ast.Constant: _constant,
  ast.List: _sequence,
  ast.Tuple: _sequence,
  ast.Set: _sequence,
  ast.Dict: _dictionary,
  ast.Name: _name,
  ast.Attribute: _attribute,
  ast.UnaryOp: _negative,
  ast.BinOp: _sum,
  ast.Call: _call,
}
