"""Bodies of requests: bytes to JSON to a checked request, with one plain sentence where it fails.

  class EmbedRequest(Body):
    inputs: ...

  request = parse(EmbedRequest, b'{"inputs": "A cat."}')

What JSON has in several readings is refused and not guessed: names that come twice, NaN, halves of
surrogate pairs.
"""

import json
from collections.abc import Mapping
from typing import Any, NoReturn, TypeVar

import pydantic

from bert.serving.errors import BadJson, InvalidInput

TEXTS = ["The storm closed both runways.", "No aircraft could land."]
"""For examples of bodies in `/docs`."""
_MAX_SHOWN = 60  # characters of a value in a message
_HALF_PAIRS = (b"\\ud", b"\\uD")  # how JSON writes them


class Body(pydantic.BaseModel):
  """A request of a dialect; what it has beside our names is for others, and ignored."""

  model_config = pydantic.ConfigDict(strict=True, extra="ignore", frozen=True)


class StrictBody(pydantic.BaseModel):
  """A request of ours, in which an unknown name is a mistake."""

  model_config = pydantic.ConfigDict(strict=True, extra="forbid", frozen=True)


AnyBody = TypeVar("AnyBody", bound=pydantic.BaseModel)


def parse(body_class: type[AnyBody], content: bytes) -> AnyBody:
  """Reads the body of a request.

  Raises:
    BadJson: it is not JSON in UTF-8.
    InvalidInput: a value is missing, or has a type or a size that it cannot have.
  """
  value = read_json(content)
  if not isinstance(value, dict):
    raise InvalidInput(f"The body is {shown(value)}, but a JSON object is needed.")
  return checked(body_class, value)


def checked(body_class: type[AnyBody], value: Mapping[str, Any]) -> AnyBody:
  """Makes a request of a JSON object; an `InvalidInput` says what is wrong with it."""
  try:
    return body_class.model_validate(value)
  except pydantic.ValidationError as error:
    raise InvalidInput(sentence_of(error)) from None


# ---------------------------------------------------------------------------------------------
# JSON.


def read_json(content: bytes) -> Any:
  """Parses JSON in UTF-8; a `BadJson` says what is wrong, and where.

  Example:
    >>> read_json(b'{"inputs": ["a", "b"]}')
    {'inputs': ['a', 'b']}
  """
  if not content.strip():
    raise BadJson("The body is empty, but a JSON object is needed.")
  try:
    text = content.decode("utf-8-sig")
    value = json.loads(text, object_pairs_hook=_object, parse_constant=_no_constant)
  except UnicodeDecodeError as error:
    raise BadJson(
      f"The body is not UTF-8: byte 0x{content[error.start]:02x} at {error.start}."
    ) from None
  except RecursionError:
    raise BadJson("The body has too many lists or objects inside each other.") from None
  except json.JSONDecodeError as error:
    raise BadJson(
      f"The body is not JSON: {error.msg} (line {error.lineno}, column {error.colno})."
    ) from None
  except ValueError as error:  # of `_object`, or of an integer of thousands of digits
    raise BadJson(f"The body is not JSON: {str(error).partition(';')[0].rstrip('.')}.") from None
  if any(mark in content for mark in _HALF_PAIRS):
    _check_pairs(value)
  return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
  found = dict(pairs)
  if len(found) < len(pairs):
    names = [name for name, _ in pairs]
    twice = next(name for name in names if names.count(name) > 1)
    raise ValueError(f"the name {shown(twice)} is there twice")
  return found


def _no_constant(name: str) -> NoReturn:
  raise ValueError(f"{name} is not a number that JSON has")


def _check_pairs(value: Any) -> None:
  """Raises a `BadJson` for half of a surrogate pair, which no text in UTF-8 can have."""
  try:
    json.dumps(value, ensure_ascii=False).encode()
  except UnicodeEncodeError as error:
    half = f"\\u{ord(error.object[error.start]):04x}"
    raise BadJson(
      f"A text holds half of a surrogate pair, {half}, which is no character."
    ) from None


# ---------------------------------------------------------------------------------------------
# Messages.

# Types of pydantic's errors -> what is needed.
_NEEDED = {
  "string_type": "a text",
  "bool_type": "true or false",
  "int_type": "a whole number",
  "float_type": "a number",
  "list_type": "a list",
  "dict_type": "an object",
  "model_type": "an object",
  "int_from_float": "a whole number",
  "none_required": "null",
}


def sentence_of(error: pydantic.ValidationError) -> str:
  """Says what is wrong first: the field, what was found, what is needed.

  Example:
    >>> class Sized(Body):
    ...   size: int
    >>> try:
    ...   Sized.model_validate({"size": "3"})
    ... except pydantic.ValidationError as error:
    ...   sentence_of(error)
    '`size` is "3", but a whole number is needed.'
  """
  first = error.errors(include_url=False)[0]
  place = "".join(f"[{each}]" if isinstance(each, int) else f".{each}" for each in first["loc"])
  place = f"`{shown_name(place.removeprefix('.'))}`"
  kind, context = first["type"], first.get("ctx", {})
  if kind == "missing":
    return f"{place} is missing."
  if kind == "extra_forbidden":
    return f"{place} is no name that this route knows: see /docs."
  if kind == "value_error":
    return str(context["error"])
  found = f"{place} is {shown(first['input'])}, but"
  return f"{found} {_NEEDED.get(kind) or _needed(kind, first['msg'], context)} is needed."


def _needed(kind: str, message: str, context: Mapping[str, Any]) -> str:
  bounds = {
    "greater_than_equal": "a number of at least {ge}",
    "less_than_equal": "a number of at most {le}",
    "greater_than": "a number above {gt}",
    "literal_error": "{expected}",
    "string_too_long": "a text of at most {max_length} characters",
    "string_too_short": "a text of at least {min_length} character(s)",
    "too_short": "a list of at least {min_length} item(s)",
  }
  if kind in bounds:
    return bounds[kind].format(**context)
  return f"another value ({message})"


def shown(value: Any) -> str:
  """Writes a value of JSON for a message, shortened.

  Example:
    >>> shown("x" * 100)[-6:], shown([1, 2]), shown(None), shown({})
    ('xx..."', 'a list', 'null', 'an object')
  """
  if isinstance(value, list):
    return "a list" if value else "an empty list"
  if isinstance(value, Mapping):
    return "an object"
  if isinstance(value, str) and len(value) > _MAX_SHOWN:
    value = f"{value[:_MAX_SHOWN]}..."
  written = json.dumps(value, ensure_ascii=False)
  return written if len(written) <= 4 * _MAX_SHOWN else f"{written[:_MAX_SHOWN]}..."


def shown_name(name: str) -> str:
  """Shortens a name that a client has made up."""
  return name if len(name) <= _MAX_SHOWN else f"{name[:_MAX_SHOWN]}..."
