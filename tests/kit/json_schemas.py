"""Values held against JSON Schemas, as far as this project writes them: no keyword is passed over.

json_schemas.misfit({"type": "array", "items": {"type": "number"}}, [1, "a"])   # '[1] is "a"'
"""

import json
from collections.abc import Mapping
from typing import Any

_TYPES = {
  "object": dict,
  "array": list,
  "string": str,
  "boolean": bool,
  "integer": int,
  "number": (int, float),
  "null": type(None),
}
_OF_PEOPLE = {"title", "description", "examples", "default"}


def misfit(schema: Mapping[str, Any], value: Any, place: str = "") -> str | None:
  """Says which part of a value does not fit; None if all does."""
  for keyword, needed in schema.items():
    if keyword not in _OF_PEOPLE and (found := _CHECKS[keyword](needed, value, schema, place)):
      return found
  return None


def _said(is_wrong: bool, value: Any, place: str) -> str | None:
  return f"{place or 'it'} is {json.dumps(value)[:200]}" if is_wrong else None


def _type(names, value, schema, place):
  classes = [_TYPES[each] for each in ([names] if isinstance(names, str) else names)]
  fits = any(isinstance(value, each) for each in classes)
  return _said(not fits or (isinstance(value, bool) and bool not in classes), value, place)


def _properties(needed, value, schema, place):
  given = ((name, value[name]) for name in needed if isinstance(value, dict) and name in value)
  found = (misfit(needed[name], each, f"{place}.{name}") for name, each in given)
  return next(filter(None, found), None)


def _items(needed, value, schema, place):
  every = enumerate(value if isinstance(value, list) else ())
  return next(filter(None, (misfit(needed, each, f"{place}[{i}]") for i, each in every)), None)


def _any_of(forms, value, schema, place):
  found = [misfit(each, value, place) for each in forms]
  return None if None in found else " and ".join(found)


_CHECKS = {
  "type": _type,
  "properties": _properties,
  "items": _items,
  "anyOf": _any_of,
  "required": lambda names, value, schema, place: _said(
    isinstance(value, dict) and not set(names) <= set(value), value, place
  ),
  "const": lambda needed, value, schema, place: _said(value != needed, value, place),
  "enum": lambda needed, value, schema, place: _said(value not in needed, value, place),
}
