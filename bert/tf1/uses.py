"""What a script and the modules beside it use of other packages, read from their text alone.

Nothing is imported and nothing runs: `read` parses the script, follows its imports as far as they
lead to files in the folders searched, and lists the dotted names that come from elsewhere:

  import tensorflow as tf                        tensorflow
  flags = tf.flags                               tensorflow.flags
  from tensorflow.contrib import crf as c        tensorflow.contrib.crf
  c.crf_decode(x, t, n)                          tensorflow.contrib.crf.crf_decode
  estimator = tf.estimator.Estimator(f)          tensorflow.estimator.Estimator
  estimator.train(g)                             tensorflow.estimator.Estimator().train
"""

import ast
import os
import warnings
from collections.abc import Iterable, Sequence
from typing import NamedTuple

# Functions that only Python 2 had.
_PYTHON_2 = frozenset(
  "basestring cmp execfile long raw_input reduce reload unichr unicode xrange".split()  # noqa: SIM905
)
# A branch whose condition names one of these is taken on some versions only.
_ABOUT_VERSIONS = frozenset(("__version__", "VERSION", "PY2", "PY3", "version_info", "hasattr"))
_CAUGHT = frozenset(("ImportError", "ModuleNotFoundError", "AttributeError", "Exception"))
_OUR_PACKAGE = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class Use(NamedTuple):
  """One use of a name of another package.

  Attributes:
    name: the dotted name; `a.B().c` is the attribute c of an object that calling a.B made.
    path: the file.
    line: the line in it, from 1.
    guarded: a `try` or a condition on versions leaves the script another way.
    call: the call, where the name is called.
  """

  name: str
  path: str
  line: int
  guarded: bool
  call: ast.Call | None = None


class Unparsed(NamedTuple):
  """A file that is not Python 3."""

  path: str
  line: int
  message: str


class Program(NamedTuple):
  """A script with its local modules.

  Attributes:
    modules: the paths of all files read, the script first.
    uses: in the order of the files and lines.
    imports: the first import of each package that is not local, by its name.
    unparsed: the files that could not be read as Python 3.
  """

  modules: list[str]
  uses: list[Use]
  imports: dict[str, Use]
  unparsed: list[Unparsed]


def read(script: str, is_module: bool, search: Sequence[str]) -> Program:
  """Reads a script and the modules beside it.

  Args:
    script: a path, or with `is_module` a dotted name as `python -m` takes it.
    is_module: which of both.
    search: the folders in which its modules are looked for, in this order.

  Raises:
    FileNotFoundError: there is no such script.
    ValueError: the file is a notebook.
  """
  path, package = script, ""
  if is_module:
    package = script.rpartition(".")[0]
    path = _find(script, search)
    if os.path.basename(path) == "__init__.py":
      path, package = os.path.join(os.path.dirname(path), "__main__.py"), script
  if not os.path.isfile(path):
    where = f"No module {script} in {' or '.join(search)}" if is_module else f"No script {path}"
    raise FileNotFoundError(where)
  if path.endswith(".ipynb"):
    raise ValueError(
      f"{path} is a notebook. Write it as a script first: jupyter nbconvert --to script {path}"
    )
  program = Program([], [], {}, [])
  reader = _Modules(program, search)
  reader.at(path, package)
  reader.named(package)
  read_already: set[int] = set()
  while len(read_already) < len(reader.loaded):  # An import within a function adds modules.
    for module in list(reader.loaded):
      if module and id(module) not in read_already:
        _Visitor(reader, module).visit(module.tree)
      read_already.add(id(module))
  return program


class _Bound(NamedTuple):
  """What a name stands for: a dotted name of another package, or None for anything else."""

  dotted: str | None
  guarded: bool = False
  imported: bool = False


_OTHER = _Bound(None)
_Names = dict[str, _Bound]


class _Module:
  """A parsed file and the names that its top level binds."""

  def __init__(self, path: str, package: str, tree: ast.Module):
    self.path, self.package, self.tree = path, package, tree
    self.names: _Names = {}


class _Modules:
  """The local modules, each read once."""

  def __init__(self, program: Program, search: Sequence[str]):
    self.program, self.search = program, search
    self._by_path: dict[str, _Module | None] = {}

  @property
  def loaded(self) -> list[_Module]:
    """The modules that parse."""
    return [module for module in self._by_path.values() if module]

  def at(self, path: str, package: str) -> _Module | None:
    """The module in this file; None where it does not parse."""
    key = os.path.realpath(path)
    if key in self._by_path:
      return self._by_path[key]
    self._by_path[key] = None
    self.program.modules.append(path)
    try:
      with open(path, "rb") as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Invalid escapes such as "\d", which are no errors.
        tree = ast.parse(file.read(), path)
    except (SyntaxError, ValueError) as error:
      line = getattr(error, "lineno", None) or 1
      self.program.unparsed.append(Unparsed(path, line, getattr(error, "msg", str(error))))
      return None
    module = self._by_path[key] = _Module(path, package, tree)
    _bind(tree.body, module.names, _Context(self, module, [module.names]))
    return module

  def named(self, name: str) -> _Module | None:
    """The local module of this dotted name, after the packages above it; None for others."""
    module = None
    parts = name.split(".") if name else []
    for end in range(1, len(parts) + 1):
      part = ".".join(parts[:end])
      path = _find(part, self.search)
      above = part if os.path.basename(path) == "__init__.py" else part.rpartition(".")[0]
      module = self.at(path, above) if path else None
    return module

  def is_local(self, name: str) -> bool:
    """Whether the first part of a dotted name is a module or a folder that is searched."""
    root = name.partition(".")[0]
    if root == "tensorflow":
      return False
    folders = (os.path.join(folder, root) for folder in self.search)
    return bool(_find(root, self.search)) or any(
      os.path.isdir(folder) and not _is_ours(folder) for folder in folders
    )


def _find(name: str, search: Iterable[str]) -> str:
  """The file of the module with this dotted name; empty where no folder has it."""
  for folder in search:
    base = os.path.join(folder, *name.split("."))
    for path in (os.path.join(base, "__init__.py"), base + ".py"):
      if os.path.isfile(path) and not _is_ours(path):
        return path
  return ""


def _is_ours(path: str) -> bool:
  """Whether a path lies in this package, which is no fork's."""
  return os.path.realpath(path).startswith(os.path.join(_OUR_PACKAGE, ""))


class _Context(NamedTuple):
  """Where names are looked up: the module, and the names of the scopes, the innermost last."""

  modules: _Modules
  module: _Module
  scopes: list[_Names]

  def dotted(self, node: ast.expr) -> _Bound:
    """What `a.b.c`, or `a.b()` as an object, stands for."""
    if isinstance(node, ast.Name):
      return next((names[node.id] for names in reversed(self.scopes) if node.id in names), _OTHER)
    inner, suffix = _OTHER, ""
    if isinstance(node, ast.Attribute):
      inner, suffix = self.dotted(node.value), f".{node.attr}"
    elif isinstance(node, ast.Call):
      inner, suffix = self.dotted(node.func), "()"
    if not inner.dotted or (inner.dotted + suffix).endswith("()()"):
      return _OTHER
    return inner._replace(dotted=inner.dotted + suffix)

  def absolute(self, statement: ast.ImportFrom) -> str:
    """The dotted name of the module that a `from` import names."""
    if not statement.level:
      return statement.module or ""
    parts = self.module.package.split(".")
    parts = parts[: len(parts) - statement.level + 1]
    return ".".join([*parts, *([statement.module] if statement.module else [])])


def _bind(nodes: Iterable[ast.AST], names: _Names, context: _Context, guarded: bool = False):
  """Adds to `names` what these statements bind in their own scope, and loads local modules."""
  for node in nodes:
    if isinstance(node, _SCOPES):
      _bind_name(names, node.name, _OTHER)
    elif isinstance(node, ast.Import):
      for alias in node.names:
        _bind_import(alias, names, context, guarded)
    elif isinstance(node, ast.ImportFrom):
      for alias in node.names:
        _bind_import_from(node, alias, names, context, guarded)
    elif isinstance(node, ast.Assign):
      value = context.dotted(node.value)._replace(imported=False)
      for target in node.targets:
        if isinstance(target, ast.Name):
          _bind_name(names, target.id, value)
        else:
          names.update({**_stored([target]), **names})
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
      _bind_name(names, node.id, _OTHER)
    elif isinstance(node, ast.ExceptHandler) and node.name:
      _bind_name(names, node.name, _OTHER)
      _bind(node.body, names, context, guarded)
    elif not isinstance(node, (ast.Lambda, *_COMPREHENSIONS)):
      inner = guarded or _is_guard(node)
      _bind(ast.iter_child_nodes(node), names, context, inner)


def _bind_name(names: _Names, name: str, bound: _Bound) -> None:
  """An import outlives other bindings of its name; two different assignments leave it unknown."""
  before = names.get(name)
  if before is None or (bound.imported and not before.dotted):
    names[name] = bound
  elif not before.imported and before.dotted != bound.dotted:
    names[name] = _OTHER


def _bind_import(alias: ast.alias, names: _Names, context: _Context, guarded: bool) -> None:
  """`import a.b` binds a, `import a.b as c` binds a.b."""
  bound = alias.asname or alias.name.partition(".")[0]
  if context.modules.is_local(alias.name):
    context.modules.named(alias.name)
    _bind_name(names, bound, _OTHER)
  else:
    dotted = alias.name if alias.asname else bound
    _bind_name(names, bound, _Bound(dotted, guarded, imported=True))


def _bind_import_from(
  statement: ast.ImportFrom, alias: ast.alias, names: _Names, context: _Context, guarded: bool
) -> None:
  """`from a import b`, also where a is local and itself has b from elsewhere."""
  module = context.absolute(statement)
  bound = _Bound(f"{module}.{alias.name}", guarded, imported=True)
  if statement.level or context.modules.is_local(module):
    local = context.modules.named(module)
    theirs = local.names if local else {}
    if alias.name == "*":
      for name, value in theirs.items():
        _bind_name(names, name, value)
      return
    bound = theirs.get(alias.name, _OTHER)
    if context.modules.named(f"{module}.{alias.name}"):
      bound = _OTHER
  if alias.name != "*":
    _bind_name(names, alias.asname or alias.name, bound)


def _is_guard(node: ast.AST) -> bool:
  """Whether a script goes on another way where a name in this statement is missing."""
  if isinstance(node, ast.Try):
    caught = [n for handler in node.handlers for n in _mentioned(handler.type)]
    return any(handler.type is None for handler in node.handlers) or bool(_CAUGHT & set(caught))
  return isinstance(node, (ast.If, ast.IfExp)) and bool(
    _ABOUT_VERSIONS & set(_mentioned(node.test))
  )


def _mentioned(node: ast.AST | None) -> list[str]:
  """All names and attributes in an expression."""
  inside = ast.walk(node) if node else ()
  return [getattr(n, "id", getattr(n, "attr", "")) for n in inside]


class _Visitor(ast.NodeVisitor):
  """Notes each use in a module."""

  def __init__(self, modules: _Modules, module: _Module):
    self._context = _Context(modules, module, [module.names])
    self._program = modules.program
    self._guards = 0
    self._in_class = False

  def visit_Name(self, node: ast.Name) -> None:
    if not isinstance(node.ctx, ast.Load) or self._visit_use(node):
      return
    known = self._guards or any(node.id in names for names in self._context.scopes)
    if node.id in _PYTHON_2 and not known:
      self._note(f"builtins.{node.id}", node)

  def visit_Attribute(self, node: ast.Attribute) -> None:
    if self._visit_use(node):
      self._visit_call_below(node)
    else:
      self.generic_visit(node)

  def visit_Call(self, node: ast.Call) -> None:
    if self._visit_use(node.func, node):
      self._visit_call_below(node.func)
    else:
      self.visit(node.func)
    for child in (*node.args, *node.keywords):
      self.visit(child)

  def visit_Import(self, node: ast.Import) -> None:
    for alias in node.names:
      self._visit_import(alias.name, node)

  def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
    module = self._context.absolute(node)
    for alias in node.names:
      if not node.level and module != "__future__":
        self._visit_import(module if alias.name == "*" else f"{module}.{alias.name}", node)

  def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    for outside in (*node.decorator_list, node.returns):
      if outside:
        self.visit(outside)
    self._visit_function(node.args, node.body)

  visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815

  def visit_Lambda(self, node: ast.Lambda) -> None:
    self._visit_function(node.args, [node.body])

  def visit_ClassDef(self, node: ast.ClassDef) -> None:
    for outside in (*node.decorator_list, *node.bases, *node.keywords):
      self.visit(outside)
    self._visit_scope({}, node.body, is_class=True)

  def generic_visit(self, node: ast.AST) -> None:
    guards = _is_guard(node)
    self._guards += guards
    if isinstance(node, _COMPREHENSIONS):
      names = _stored(generator.target for generator in node.generators)
      self._visit_scope(names, ast.iter_child_nodes(node))
    else:
      super().generic_visit(node)
    self._guards -= guards

  def _visit_function(self, arguments: ast.arguments, body: list) -> None:
    for default in (*arguments.defaults, *arguments.kw_defaults):
      if default:
        self.visit(default)
    names = {n.arg: _OTHER for n in ast.walk(arguments) if isinstance(n, ast.arg)}
    self._visit_scope(names, body)

  def _visit_scope(self, names: _Names, body: Iterable[ast.AST], is_class: bool = False) -> None:
    """Visits statements with the names that they bind; a method does not see its class's names."""
    before = self._context, self._in_class
    visible = self._context.scopes[: -1 if self._in_class else None]
    self._context = self._context._replace(scopes=[*visible, names])
    self._in_class = is_class
    body = list(body)
    _bind(body, names, self._context)
    for node in body:
      self.visit(node)
    self._context, self._in_class = before

  def _visit_use(self, node: ast.expr, call: ast.Call | None = None) -> bool:
    """Notes a name of another package; False where it is none."""
    bound = self._context.dotted(node)
    if bound.dotted and not bound.dotted.endswith("()"):
      self._note(bound.dotted, node, bound.guarded, call)
    return bool(bound.dotted)

  def _visit_call_below(self, node: ast.expr) -> None:
    """Visits the call that an attribute is of: `a.B(x)` in `a.B(x).c`."""
    while isinstance(node, ast.Attribute):
      node = node.value
    if isinstance(node, ast.Call):
      self.visit(node)

  def _visit_import(self, name: str, node: ast.AST) -> None:
    if self._context.modules.is_local(name):
      return
    root = name.partition(".")[0]
    use = self._note(name, node)
    if root not in self._program.imports or self._program.imports[root].guarded:
      self._program.imports[root] = use

  def _note(
    self, name: str, node: ast.AST, guarded: bool = False, call: ast.Call | None = None
  ) -> Use:
    path, line = self._context.module.path, getattr(node, "lineno", 1)
    use = Use(name, path, line, guarded or self._guards > 0, call)
    self._program.uses.append(use)
    return use


def _stored(nodes: Iterable[ast.AST]) -> _Names:
  """The names that are written within these nodes."""
  return {n.id: _OTHER for node in nodes for n in ast.walk(node) if isinstance(n, ast.Name)}
