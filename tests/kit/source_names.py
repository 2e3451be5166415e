"""What the code of a file names: identifiers and strings, read from its source."""

import ast
import functools
from typing import NamedTuple


class Names(NamedTuple):
  """What a file names, docstrings and comments aside."""

  identifiers: frozenset[str]  # of variables, functions, attributes, arguments, modules
  strings: frozenset[str]  # constants; of f-strings what they say without their values
  compared: frozenset[str]  # constants inside comparisons


@functools.lru_cache(maxsize=1000)
def names_in(source: str) -> Names:
  """Finds what a file names."""
  identifiers, strings, compared, said = set(), set(), set(), set()
  for node in ast.walk(ast.parse(source)):  # parents come before their children
    if isinstance(node, ast.Constant):
      strings |= set() if node in said else {str(node.value)}
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
      said.add(node.value)  # a docstring
    elif isinstance(node, ast.JoinedStr):
      said.update(node.values)
      strings.add("".join(part.value for part in node.values if isinstance(part, ast.Constant)))
    elif isinstance(node, ast.Compare):
      compared |= {str(part.value) for part in ast.walk(node) if isinstance(part, ast.Constant)}
    else:
      fields = [field for _, field in ast.iter_fields(node)]
      fields += [each for field in fields if isinstance(field, list) for each in field]
      identifiers |= {field for field in fields if isinstance(field, str)}
  return Names(frozenset(identifiers), frozenset(strings), frozenset(compared))
