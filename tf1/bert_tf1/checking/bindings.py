"""What the names in a script's files stand for: modules beside it, or names of other packages.

Nothing is imported and nothing runs: files are parsed, and imports and assignments of dotted names
are followed. Where the text does not tell, a name stands for something unknown.
"""

import ast
import importlib.machinery
import importlib.util
import itertools
import os
import warnings
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeGuard

from bert_tf1 import whose
from bert_tf1.checking.search_path import add_folders, note_texts

# A branch whose condition names one of these is taken on some versions only.
_ABOUT_VERSIONS = frozenset(("__version__", "VERSION", "PY2", "PY3", "version_info", "hasattr"))
_CAUGHT = frozenset(("ImportError", "ModuleNotFoundError", "AttributeError", "Exception"))
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class Unparsed(NamedTuple):
  """A file that is not Python 3."""

  path: str
  line: int
  message: str


class Bound(NamedTuple):
  """What a name stands for: a dotted name of another package, or None for anything else."""

  dotted: str | None
  guarded: bool = False
  imported: bool = False


OTHER = Bound(None)
Names = dict[str, Bound]


class Module:
  """A parsed file and the names that its top level binds."""

  def __init__(self, path: str, package: str, tree: ast.Module):
    self.path, self.package, self.tree = path, package, tree
    self.names: Names = {}
    self.texts: dict[str, str] = {}  # values of its variables, as far as they are known paths
    self.imported: list[str] = []  # files that it imports as soon as it is imported
    self.evaluates_annotations = not any(
      isinstance(node, ast.ImportFrom)
      and node.module == "__future__"
      and any(alias.name == "annotations" for alias in node.names)
      for node in tree.body
    )

  def may_have(self, name: str) -> bool:
    """Tells whether the module may have a name: it binds it, or more than its text tells."""
    return (
      name in self.names
      or name.startswith("__")
      or any(_hides_names(node) for node in ast.walk(self.tree))
    )


def _hides_names(node: ast.AST) -> bool:
  """Tells whether a statement may bind names at the top level that the text does not show."""
  if isinstance(node, ast.ImportFrom):
    return any(alias.name == "*" for alias in node.names)
  name = getattr(node, "id", getattr(node, "name", getattr(node, "attr", "")))
  hiding = ("__getattr__", "__path__", "exec", "globals", "modules")
  return isinstance(node, ast.Global) or name in hiding


def _compiled(base: str) -> list[str]:
  """Returns the paths of a module's file in other forms than its source."""
  return [base + suffix for suffix in importlib.machinery.all_suffixes()]


class Modules:
  """The local modules, each read once.

  Attributes:
    search: the folders searched, with those that the modules add to `sys.path`.
    paths: the files read, in the order in which imports lead to them.
    unparsed: those that could not be read as Python 3.
  """

  def __init__(self, search: Sequence[str]):
    self.search = list(search)
    self.paths: list[str] = []
    self.unparsed: list[Unparsed] = []
    self._by_path: dict[str, Module | None] = {}

  @property
  def loaded(self) -> list[Module]:
    """The modules that parse."""
    return [module for module in self._by_path.values() if module]

  def at(self, path: str, package: str) -> Module | None:
    """Returns the module in this file; None where it does not parse."""
    key = os.path.realpath(path)
    if key in self._by_path:
      return self._by_path[key]
    self._by_path[key] = None
    self.paths.append(path)
    try:
      with open(path, "rb") as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Invalid escapes such as "\d", which are no errors.
        tree = ast.parse(file.read(), path)
    except (SyntaxError, ValueError) as error:
      line = getattr(error, "lineno", None) or 1
      self.unparsed.append(Unparsed(path, line, getattr(error, "msg", str(error))))
      return None
    module = self._by_path[key] = Module(path, package, tree)
    bind(tree.body, module.names, Context(self, module, [module.names]))
    return module

  def named(self, name: str) -> Module | None:
    """The local module of this dotted name, after the packages above it; None for others."""
    module = None
    parts = name.split(".") if name else []
    for end in range(1, len(parts) + 1):
      part = ".".join(parts[:end])
      path = self.find(part)
      above = part if os.path.basename(path) == "__init__.py" else part.rpartition(".")[0]
      module = self.at(path, above) if path else None
    return module

  def find(self, name: str) -> str:
    """Returns the file of the module with this dotted name; empty where no folder has it."""
    parts = name.split(".")
    for folder in self.search:
      if whose.is_ours(folder, parts[0]):
        continue
      base = os.path.join(folder, *parts)
      for path in (os.path.join(base, "__init__.py"), base + ".py"):
        if os.path.isfile(path):
          return path
    return ""

  def files(self, name: str) -> list[str]:
    """Returns the files that Python runs to import the module with this dotted name."""
    parts = itertools.accumulate(name.split(".") if name else (), "{}.{}".format)
    return [path for part in parts if (path := self.find(part))]

  def started(self, paths: Iterable[str]) -> set[str]:
    """Returns the real paths of these files and of all that they import at once."""
    found: set[str] = set()
    todo = list(paths)
    while todo:
      path = os.path.realpath(todo.pop())
      module = self._by_path.get(path)
      if path not in found and module:
        todo += module.imported
      found.add(path)
    return found

  def gap(self, name: str) -> tuple[str, str]:
    """Finds the first part of a dotted name that its local module or package lacks.

    Returns:
      The name up to this part, and the file or folder that lacks it; both empty where all parts are
      there, or where the text does not tell.
    """
    parts = name.split(".")
    if self._may_be_installed(parts[0]):
      return "", ""
    for end in range(2, len(parts) + 1):
      above, part = ".".join(parts[: end - 1]), ".".join(parts[:end])
      module = self.named(above)
      if self.find(part) or self._folders(part):
        continue
      if not module:  # A folder without an `__init__.py`, or a file that does not parse.
        folders = [] if self.find(above) else self._folders(above)
        told = folders and all(map(os.path.isdir, folders))  # Not so of a compiled module.
        return (part, folders[0]) if told else ("", "")
      return ("", "") if module.may_have(parts[end - 1]) else (part, module.path)
    return "", ""

  def _folders(self, name: str) -> list[str]:
    """Returns the folders, and files of other kinds, that Python may take for this module."""
    found = []
    for folder in self.search:
      base = os.path.join(folder, *name.split("."))
      found += [path for path in (base, *_compiled(base)) if os.path.exists(path)]
    return found

  def _may_be_installed(self, root: str) -> bool:
    """Tells whether Python takes an installed package and not the searched folders' parts of it."""
    if self.find(root) or root == "bert":
      return False
    try:
      found = importlib.util.find_spec(root)
    except ValueError:  # A module without a spec.
      return True
    return bool(found and found.origin)

  def is_local(self, name: str) -> bool:
    """Tells whether the first part of a dotted name is a module or a folder that is searched."""
    root = name.partition(".")[0]
    if root == "tensorflow":
      return False
    return bool(self.find(root)) or any(
      whose.has_modules(os.path.join(folder, root))
      for folder in self.search
      if not whose.is_ours(folder, root)
    )


class Context(NamedTuple):
  """Where names are looked up: the module, and the names of the scopes, the innermost last."""

  modules: Modules
  module: Module
  scopes: list[Names]

  def dotted(self, node: ast.expr) -> Bound:
    """Returns what `a.b.c`, or `a.b()` as an object, stands for."""
    if isinstance(node, ast.Name):
      return next((names[node.id] for names in reversed(self.scopes) if node.id in names), OTHER)
    inner, suffix = OTHER, ""
    if isinstance(node, ast.Attribute):
      inner, suffix = self.dotted(node.value), f".{node.attr}"
    elif isinstance(node, ast.Call):
      inner, suffix = self.dotted(node.func), "()"
    if not inner.dotted or (inner.dotted + suffix).endswith("()()"):
      return OTHER
    return inner._replace(dotted=inner.dotted + suffix)

  def absolute(self, statement: ast.ImportFrom) -> str:
    """Returns the dotted name of the module that a `from` import names."""
    if not statement.level:
      return statement.module or ""
    parts = self.module.package.split(".")
    parts = parts[: len(parts) - statement.level + 1]
    return ".".join([*parts, *([statement.module] if statement.module else [])])


def bind(nodes: Iterable[ast.AST], names: Names, context: Context, guarded: bool = False):
  """Adds to `names` what these statements bind in their own scope, and loads local modules."""
  for node in nodes:
    if isinstance(node, _SCOPES):
      _bind_name(names, node.name, OTHER)
    elif isinstance(node, ast.Import):
      for alias in node.names:
        _bind_import(alias, names, context, guarded)
    elif isinstance(node, ast.ImportFrom):
      for alias in node.names:
        _bind_import_from(node, alias, names, context, guarded)
    elif (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)) or (
      isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Attribute)
    ):
      add_folders(node, context.module.path, context.module.texts, context.modules.search)
    elif isinstance(node, ast.Assign):
      note_texts(node, context.module.path, context.module.texts)
      value = context.dotted(node.value)._replace(imported=False)
      for target in node.targets:
        if isinstance(target, ast.Name):
          _bind_name(names, target.id, value)
        else:
          names.update({**stored([target]), **names})
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
      _bind_name(names, node.id, OTHER)
    elif isinstance(node, ast.ExceptHandler) and node.name:
      _bind_name(names, node.name, OTHER)
      bind(node.body, names, context, guarded)
    elif is_for_type_checkers(node):
      bind(node.orelse, names, context, guarded)
    elif not isinstance(node, (ast.Lambda, *COMPREHENSIONS)):
      inner = guarded or is_guard(node)
      bind(ast.iter_child_nodes(node), names, context, inner)


def _bind_name(names: Names, name: str, bound: Bound) -> None:
  """An import outlives other bindings of its name; two different assignments leave it unknown."""
  before = names.get(name)
  if before is None or (bound.imported and not before.dotted):
    names[name] = bound
  elif not before.imported and before.dotted != bound.dotted:
    names[name] = OTHER


def _bind_import(alias: ast.alias, names: Names, context: Context, guarded: bool) -> None:
  """`import a.b` binds a, `import a.b as c` binds a.b."""
  bound = alias.asname or alias.name.partition(".")[0]
  if context.modules.is_local(alias.name):
    context.modules.named(alias.name)
    _bind_name(names, bound, OTHER)
  else:
    dotted = alias.name if alias.asname else bound
    _bind_name(names, bound, Bound(dotted, guarded, imported=True))


def _bind_import_from(
  statement: ast.ImportFrom, alias: ast.alias, names: Names, context: Context, guarded: bool
) -> None:
  """`from a import b`, also where a is local and itself has b from elsewhere."""
  module = context.absolute(statement)
  bound = Bound(f"{module}.{alias.name}", guarded, imported=True)
  if statement.level or context.modules.is_local(module):
    local = context.modules.named(module)
    theirs = local.names if local else {}
    if alias.name == "*":
      for name, value in theirs.items():
        _bind_name(names, name, value)
      return
    bound = theirs.get(alias.name, OTHER)
    if context.modules.named(f"{module}.{alias.name}"):
      bound = OTHER
  if alias.name != "*":
    _bind_name(names, alias.asname or alias.name, bound)


def is_guard(node: ast.AST) -> bool:
  """Tells whether a script goes on another way where a name in this statement is missing."""
  if isinstance(node, ast.Try):
    caught = [n for handler in node.handlers for n in mentioned(handler.type)]
    return any(handler.type is None for handler in node.handlers) or bool(_CAUGHT & set(caught))
  if isinstance(node, ast.BoolOp):
    return bool(_ABOUT_VERSIONS & set(mentioned(node.values[0])))
  return isinstance(node, (ast.If, ast.IfExp)) and bool(_ABOUT_VERSIONS & set(mentioned(node.test)))


def is_for_type_checkers(node: ast.AST) -> TypeGuard[ast.If]:
  """Tells whether a statement is `if TYPE_CHECKING:`, whose first branch never runs."""
  return isinstance(node, ast.If) and mentioned(node.test)[:1] == ["TYPE_CHECKING"]


def mentioned(node: ast.AST | None) -> list[str]:
  """Returns all names and attributes in an expression."""
  inside = ast.walk(node) if node else ()
  return [getattr(n, "id", getattr(n, "attr", "")) for n in inside]


def stored(nodes: Iterable[ast.AST]) -> Names:
  """Returns the names that are written within these nodes."""
  return {n.id: OTHER for node in nodes for n in ast.walk(node) if isinstance(n, ast.Name)}
