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
import itertools
import os
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from bert_tf1.checking.bindings import (
  COMPREHENSIONS,
  OTHER,
  Context,
  Module,
  Modules,
  Names,
  Unparsed,
  bind,
  is_for_type_checkers,
  is_guard,
  mentioned,
  stored,
)
from bert_tf1.checking.search_path import text_of

# Functions that only Python 2 had.
_PYTHON_2 = frozenset(
  "basestring cmp execfile long raw_input reduce reload unichr unicode xrange".split()  # noqa: SIM905
)


class Use(NamedTuple):
  """One use of a name of another package."""

  name: str  # the dotted name; `a.B().c` is the attribute c of an object that calling a.B made
  path: str  # the file
  line: int  # the line in it, from 1
  guarded: bool  # a `try` or a condition on versions leaves the script another way
  at_start: bool  # the line runs at the script's start: it is in no function and no branch
  call: ast.Call | None = None  # the call, where the name is called
  argument: str | None = None  # its first argument, where that is a path that the text tells


class Program(NamedTuple):
  """A script with its local modules."""

  modules: list[str]  # the paths of all files read, the script first
  uses: list[Use]  # in the order of the files and lines
  imports: dict[str, Use]  # the first import of each package that is not local, by its name
  unparsed: list[Unparsed]  # the files that could not be read as Python 3
  search: list[str]  # the folders searched, with those that the modules add to `sys.path`
  missing: list[tuple[Use, str]]  # what a local module lacks that is imported of it, and its path


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
  modules = Modules(search)
  path, package = script, ""
  if is_module:
    package = script.rpartition(".")[0]
    path = modules.find(script)
    if os.path.basename(path) == "__init__.py":
      path, package = os.path.join(os.path.dirname(path), "__main__.py"), script
  if not os.path.isfile(path):
    where = f"No module {script} in {' or '.join(search)}" if is_module else f"No script {path}"
    raise FileNotFoundError(where)
  if path.endswith(".ipynb"):
    raise ValueError(
      f"{path} is a notebook. Write it as a script first: jupyter nbconvert --to script {path}"
    )
  program = Program(modules.paths, [], {}, modules.unparsed, modules.search, [])
  assigned: set[str] = set()
  modules.at(path, package)
  modules.named(package)
  visited: set[int] = set()
  while len(visited) < len(modules.loaded):  # An import within a function adds modules.
    for module in modules.loaded:
      if id(module) not in visited:
        _Visitor(modules, module, program, assigned).visit(module.tree)
      visited.add(id(module))
  started = modules.started([path, *modules.files(package)])
  program.uses[:] = [
    _at_start(use, started) for use in program.uses if not assigned.intersection(_above(use.name))
  ]
  program.missing[:] = [(_at_start(use, started), gap) for use, gap in program.missing]
  return program


def _at_start(use: Use, started: set[str]) -> Use:
  return use._replace(at_start=use.at_start and os.path.realpath(use.path) in started)


def _above(name: str) -> Iterable[str]:
  """Returns a dotted name and those that it begins with."""
  return itertools.accumulate(name.split("."), "{}.{}".format)


class _Visitor(ast.NodeVisitor):
  """Notes each use in a module."""

  def __init__(self, modules: Modules, module: Module, program: Program, assigned: set[str]):
    self._context = Context(modules, module, [module.names])
    self._program, self._assigned = program, assigned
    self._guards = self._functions = self._branches = 0  # How many of them the present line is in.
    self._in_class = False

  def visit_Name(self, node: ast.Name) -> None:
    if not isinstance(node.ctx, ast.Load) or self._visit_use(node):
      return
    known = self._guards or any(node.id in names for names in self._context.scopes)
    if node.id in _PYTHON_2 and not known:
      self._note(f"builtins.{node.id}", node)

  def visit_Attribute(self, node: ast.Attribute) -> None:
    if isinstance(node.ctx, ast.Store):  # The script makes it: only its owner must be there.
      name = self._context.dotted(node).dotted
      if name:
        self._assigned.add(name)
      self.visit(node.value)
    elif self._visit_use(node):
      self._visit_call_below(node)
    else:
      self.generic_visit(node)

  def visit_AugAssign(self, node: ast.AugAssign) -> None:
    if not (isinstance(node.target, ast.Attribute) and self._visit_use(node.target)):
      self.visit(node.target)
    self.visit(node.value)

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
      name = module if alias.name == "*" else f"{module}.{alias.name}"
      if module != "__future__":
        self._visit_import(name, node)

  def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    for decorator in node.decorator_list:
      self.visit(decorator)
    arguments = [n for n in ast.walk(node.args) if isinstance(n, ast.arg)]
    for annotation in (*(argument.annotation for argument in arguments), node.returns):
      if annotation and self._context.module.evaluates_annotations:
        self.visit(annotation)
    self._visit_function(node.args, node.body)

  visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815

  def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
    is_evaluated = self._context.module.evaluates_annotations and not self._functions
    for child in (node.target, node.value, node.annotation if is_evaluated else None):
      if child:
        self.visit(child)

  def visit_If(self, node: ast.If) -> None:
    if is_for_type_checkers(node):
      for child in node.orelse:
        self.visit(child)
    else:
      self.generic_visit(node)

  def visit_Lambda(self, node: ast.Lambda) -> None:
    self._visit_function(node.args, [node.body])

  def visit_ClassDef(self, node: ast.ClassDef) -> None:
    for outside in (*node.decorator_list, *node.bases, *node.keywords):
      self.visit(outside)
    self._visit_scope({}, node.body, is_class=True)

  def generic_visit(self, node: ast.AST) -> None:
    guards = is_guard(node)
    self._guards += guards
    if isinstance(node, COMPREHENSIONS):
      names = stored(generator.target for generator in node.generators)
      self._visit_scope(names, ast.iter_child_nodes(node))
    else:
      for child in ast.iter_child_nodes(node):
        is_branch = self._is_branch(child, node)
        self._branches += is_branch
        self.visit(child)
        self._branches -= is_branch
    self._guards -= guards

  def _is_branch(self, node: ast.AST, parent: ast.AST) -> bool:
    """Tells whether a part of a statement or expression runs only under a condition."""
    if isinstance(parent, ast.BoolOp):
      return node in parent.values[1:]
    if not isinstance(parent, (ast.If, ast.IfExp)):
      return isinstance(node, (ast.ExceptHandler, ast.match_case))
    is_script = self._context.module.path == self._program.modules[0]
    return node is not parent.test and not (is_script and "__name__" in mentioned(parent.test))

  def _visit_function(self, arguments: ast.arguments, body: list) -> None:
    for default in (*arguments.defaults, *arguments.kw_defaults):
      if default:
        self.visit(default)
    names = {n.arg: OTHER for n in ast.walk(arguments) if isinstance(n, ast.arg)}
    self._functions += 1
    self._visit_scope(names, body)
    self._functions -= 1

  def _visit_scope(self, names: Names, body: Iterable[ast.AST], is_class: bool = False) -> None:
    """Visits statements with the names that they bind; a method does not see its class's names."""
    before = self._context, self._in_class
    visible = self._context.scopes[: -1 if self._in_class else None]
    self._context = self._context._replace(scopes=[*visible, names])
    self._in_class = is_class
    body = list(body)
    bind(body, names, self._context)
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
    root = name.partition(".")[0]
    if getattr(node, "level", 0) or self._context.modules.is_local(name):
      if self._runs_at_start():
        self._context.module.imported += self._context.modules.files(name)
      missing, path = self._context.modules.gap(name) if root else ("", "")
      if missing:
        self._program.missing.append((self._use(missing, node), path))
      return
    use = self._note(name, node)
    if root not in self._program.imports or self._program.imports[root].guarded:
      self._program.imports[root] = use

  def _note(
    self, name: str, node: ast.AST, guarded: bool = False, call: ast.Call | None = None
  ) -> Use:
    use = self._use(name, node, guarded, call)
    self._program.uses.append(use)
    return use

  def _use(
    self, name: str, node: ast.AST, guarded: bool = False, call: ast.Call | None = None
  ) -> Use:
    module, line = self._context.module, getattr(node, "lineno", 1)
    argument = text_of(call.args[0], module.path, module.texts) if call and call.args else None
    guarded = guarded or self._guards > 0
    return Use(name, module.path, line, guarded, self._runs_at_start(), call, argument)

  def _runs_at_start(self) -> bool:
    return not self._functions and not self._branches
