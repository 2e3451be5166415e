"""The project's imports, read from the source.

Imports inside functions count like those at the top; imports for type checkers do not. A module
is named as it is imported: `bert.io.tables`, and `bert.modeling` for `modeling.py` at the root.
"""

import ast
import pathlib
from collections.abc import Iterator, Mapping

from tests.kit.paths import ROOT

Graph = dict[str, set[str]]


def modules() -> dict[str, pathlib.Path]:
  """Every module of the project, without tests, benchmarks and examples: name -> file."""
  found = {f"bert.{path.stem}": path for path in ROOT.glob("*.py")}
  for path in (ROOT / "bert").rglob("*.py"):
    parts = path.relative_to(ROOT).with_suffix("").parts
    found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
  return found


def import_graph() -> Graph:
  """Module -> the modules of the project that it imports, anywhere in its source."""
  known = modules()
  graph = {}
  for name, path in known.items():
    tree = ast.parse(path.read_text(encoding="utf-8"))
    graph[name] = {each for node in _walk(tree) for each in _imports(node, known)} - {name}
  return graph


def _imports(node: ast.AST, known: Mapping[str, pathlib.Path]) -> set[str]:
  if isinstance(node, ast.Import):
    return {alias.name for alias in node.names} & set(known)
  if not isinstance(node, ast.ImportFrom) or not node.module:
    return set()
  members = {f"{node.module}.{alias.name}" for alias in node.names}
  found = members & set(known)
  if node.module in known and node.module != "bert" and found != members:
    found.add(node.module)
  return found


def _walk(node: ast.AST) -> Iterator[ast.AST]:
  """Yields all nodes but those under `if TYPE_CHECKING:`."""
  yield node
  for child in ast.iter_child_nodes(node):
    if not (isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING"):
      yield from _walk(child)


def circles(graph: Graph) -> list[list[str]]:
  """Groups of modules that import each other in a circle, each sorted by name."""
  reach = {name: _behind(name, graph) for name in graph}
  groups = {tuple(sorted(other for other in reach[name] if name in reach[other])) for name in graph}
  return sorted(list(group) for group in groups if len(group) > 1)


def _behind(module: str, graph: Graph) -> set[str]:
  """The module itself and all that it imports, directly or through others."""
  seen, waiting = {module}, [module]
  while waiting:
    new = graph[waiting.pop()] - seen
    seen |= new
    waiting += new
  return seen
