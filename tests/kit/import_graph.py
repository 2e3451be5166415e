"""The project's imports, read from the source: who needs whom, and how much a reader faces.

  python -m tests.kit.import_graph                  # modules and lines behind each root module
  python -m tests.kit.import_graph run_classifier   # the modules themselves, largest first

Imports inside functions count like those at the top; imports for type checkers do not. A module
is named as it is imported: `bert.io.tables`, and `bert.modeling` for `modeling.py` at the root.

`importlib.import_module("bert.x.y")`, for what few runs need, is counted apart: it is not behind a
module, but is listed with it as imported by name.
"""

import ast
import pathlib
import sys
from collections.abc import Iterator, Mapping

from tests.kit.paths import ROOT

Graph = dict[str, set[str]]


def modules(root: pathlib.Path = ROOT) -> dict[str, pathlib.Path]:
  """Every module of the project, without tests, benchmarks and examples: name -> file."""
  found = {f"bert.{path.stem}": path for path in root.glob("*.py")}
  for path in (root / "bert").rglob("*.py"):
    parts = path.relative_to(root).with_suffix("").parts
    found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
  return found


def import_graph(root: pathlib.Path = ROOT) -> Graph:
  """Module -> the modules of the project that it imports, anywhere in its source."""
  known = modules(root)
  return {
    name: set(_imports(path.read_text(encoding="utf-8"), known)) - {name}
    for name, path in known.items()
  }


def imports_by_name(root: pathlib.Path = ROOT) -> Graph:
  """Module -> the modules of the project whose names are strings in its source.

  Its own packages do not count: they are loaded.
  """
  known = modules(root)
  return {
    name: {
      node.value
      for node in _walk(ast.parse(path.read_text(encoding="utf-8")))
      if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in known
    }
    - {name, "bert", *_packages(name)}
    for name, path in known.items()
  }


def _packages(name: str) -> list[str]:
  parts = name.split(".")
  return [".".join(parts[:length]) for length in range(1, len(parts))]


def _imports(source: str, known: Mapping[str, pathlib.Path]) -> Iterator[str]:
  for node in _walk(ast.parse(source)):
    if isinstance(node, ast.Import):
      yield from (alias.name for alias in node.names if alias.name in known)
    elif isinstance(node, ast.ImportFrom) and node.module:
      members = {f"{node.module}.{alias.name}" for alias in node.names}
      yield from members & set(known)
      if node.module in known and node.module != "bert" and not members <= set(known):
        yield node.module


def _walk(node: ast.AST) -> Iterator[ast.AST]:
  """All nodes but those under `if TYPE_CHECKING:`."""
  yield node
  for child in ast.iter_child_nodes(node):
    if not (isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING"):
      yield from _walk(child)


def behind(module: str, graph: Graph) -> set[str]:
  """The module itself and all that it imports, directly or through others."""
  seen, waiting = {module}, [module]
  while waiting:
    new = graph[waiting.pop()] - seen
    seen |= new
    waiting += new
  return seen


def circles(graph: Graph) -> list[list[str]]:
  """Groups of modules that import each other in a circle, each sorted by name."""
  reach = {name: behind(name, graph) for name in graph}
  groups = {tuple(sorted(other for other in reach[name] if name in reach[other])) for name in graph}
  return sorted(list(group) for group in groups if len(group) > 1)


def _lines(names: set[str], files: Mapping[str, pathlib.Path]) -> dict[str, int]:
  return {name: len(files[name].read_text(encoding="utf-8").splitlines()) for name in names}


def main(arguments: list[str]) -> None:
  """Prints what the docstring of this file says."""
  files, graph, by_name = modules(), import_graph(), imports_by_name()
  whole = {name: graph[name] | by_name[name] for name in graph}
  for name in arguments:
    counts = _lines(behind(f"bert.{name}", graph), files)
    for module, count in sorted(counts.items(), key=lambda item: -item[1]):
      print(f"{count:6,} {module}")
  roots = [f"bert.{path.stem}" for path in sorted(ROOT.glob("*.py"))]
  for name in [f"bert.{name}" for name in arguments] or roots:
    counts = _lines(behind(name, graph), files)
    further = _lines(behind(name, whole) - set(counts), files)
    print(
      f"{name}: {len(counts)} modules, {sum(counts.values()):,} lines"
      f" (by name, when needed: {len(further)} more, {sum(further.values()):,} lines)"
    )


if __name__ == "__main__":
  main(sys.argv[1:])
