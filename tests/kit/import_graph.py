"""The project's imports, read from the source: who needs whom, and how much a reader faces.

  python -m tests.kit.import_graph                  # modules and lines behind each root module
  python -m tests.kit.import_graph run_classifier   # the modules themselves, largest first

Imports inside functions count like those at the top; imports for type checkers do not. A module
is named as it is imported: `bert.io.tables`, and `bert.modeling` for `modeling.py` at the root.

There are three counts, each of which contains the one before:

1. what is imported by statements;
2. and what is imported by a constant name, `importlib.import_module("bert.x.y")`, also where the
   name stands in a string as `bert.x.y:Class`;
3. and all entries of registries. A registry is a module that imports a name which it computes: of
   what the user gave, one of many. Its entries are the modules that its strings name, and, if it is
   a package, the modules inside. A run loads the entries that its files and flags ask for.
"""

import ast
import functools
import pathlib
import sys
from collections.abc import Iterator, Mapping
from typing import NamedTuple

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
  return {name: set(_imports(_facts_of(path), known)) - {name} for name, path in known.items()}


def imports_by_name(root: pathlib.Path = ROOT) -> Graph:
  """Module -> the modules of the project whose names are strings in its source.

  Its own packages do not count: they are loaded. Those of a registry are its entries.
  """
  named, registries = _named(root), computed_imports(root)
  return {name: set() if name in registries else found for name, found in named.items()}


def entries(root: pathlib.Path = ROOT) -> Graph:
  """Registry -> its entries: see the top of this file."""
  known, named = modules(root), _named(root)
  return {
    registry: named[registry]
    | {
      name
      for name in known
      if known[registry].stem == "__init__" and name.rpartition(".")[0] == registry
    }
    for registry in computed_imports(root)
  }


def computed_imports(root: pathlib.Path = ROOT) -> set[str]:
  """The modules that import a name which they compute.

  `bert` itself, which finds the modules at the root, does not count.
  """
  return {
    name for name, path in modules(root).items() if name != "bert" and _facts_of(path).computes
  }


def _is_computed_import(node: ast.AST) -> bool:
  if not isinstance(node, ast.Call) or not node.args:
    return False
  is_import = ast.unparse(node.func).split(".")[-1] in ("import_module", "__import__")
  return is_import and not isinstance(node.args[0], ast.Constant)


def _named(root: pathlib.Path) -> Graph:
  known = modules(root)
  return {
    name: _facts_of(path).strings & set(known) - {name, "bert", *_packages(name)}
    for name, path in known.items()
  }


class _Facts(NamedTuple):
  """What the source of a module says of imports."""

  imported: list[tuple[str, list[str]]]  # (module, names from it); no names for `import module`
  strings: set[str]  # all strings, as far as the first colon
  computes: bool  # whether it imports a name which it computes


def _facts_of(path: pathlib.Path) -> _Facts:
  return _facts(path.read_text(encoding="utf-8"))


@functools.lru_cache(maxsize=1000)
def _facts(source: str) -> _Facts:
  tree = ast.parse(source)
  imported, strings = [], set()
  for node in _walk(tree):
    if isinstance(node, ast.Import):
      imported += [(alias.name, []) for alias in node.names]
    elif isinstance(node, ast.ImportFrom) and node.module:
      imported.append((node.module, [alias.name for alias in node.names]))
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
      strings.add(node.value.partition(":")[0])
  return _Facts(imported, strings, any(map(_is_computed_import, ast.walk(tree))))


def _packages(name: str) -> list[str]:
  parts = name.split(".")
  return [".".join(parts[:length]) for length in range(1, len(parts))]


def _imports(facts: _Facts, known: Mapping[str, pathlib.Path]) -> Iterator[str]:
  for module, names in facts.imported:
    members = {f"{module}.{name}" for name in names}
    yield from members & set(known)
    if module in known and (not names or (module != "bert" and not members <= set(known))):
      yield module


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
  files, graph, by_name, of_registry = modules(), import_graph(), imports_by_name(), entries()
  named = {name: graph[name] | by_name[name] for name in graph}
  whole = {name: named[name] | of_registry.get(name, set()) for name in graph}
  for name in arguments:
    counts = _lines(behind(f"bert.{name}", graph), files)
    for module, count in sorted(counts.items(), key=lambda item: -item[1]):
      print(f"{count:6,} {module}")
  roots = [f"bert.{path.stem}" for path in sorted(ROOT.glob("*.py"))]
  for name in [f"bert.{name}" for name in arguments] or roots:
    counted = [_lines(behind(name, each), files) for each in (graph, named, whole)]
    sizes = [f"{len(counts)} modules and {sum(counts.values()):,} lines" for counts in counted]
    print(f"{name}: {sizes[0]}; with constant names {sizes[1]}; with all entries {sizes[2]}")


if __name__ == "__main__":
  main(sys.argv[1:])
