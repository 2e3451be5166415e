"""Values of requests that can have several forms: what is taken, what others are told, the schema.

Each is a type for a field of a `json_bodies.Body`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

import pydantic

from bert.serving.json_bodies import shown

Schema = Mapping[str, Any]

TEXT: Schema = {"type": "string", "minLength": 1}
IDS: Schema = {"type": "array", "items": {"type": "integer", "minimum": 0}, "minItems": 1}


def _list(items: Schema) -> Schema:
  return {"type": "array", "items": items, "minItems": 1}


def field(take: Callable[[Any], Any], schema: Schema) -> Any:
  """Returns the type of a field: `take` returns its value, or raises a ValueError that says why."""
  return Annotated[
    Any, pydantic.PlainValidator(take), pydantic.WithJsonSchema(dict(schema), mode="validation")
  ]


def given_text(value: Any, place: str) -> str:
  """Returns a text that is not empty; else a ValueError names the place."""
  if not isinstance(value, str):
    raise ValueError(f"{place} is {shown(value)}, but a text is needed.")
  if not value:
    raise ValueError(f"{place} is an empty text.")
  return value


def check_texts(value: Any, place: str) -> list[str]:
  """Returns a list of texts; else a ValueError says what it is."""
  if not isinstance(value, list):
    raise ValueError(f"{place} is {shown(value)}, but a list of texts is needed.")
  return [given_text(each, f"{place}[{index}]") for index, each in enumerate(value)]


def ids(value: list[Any]) -> list[int] | None:
  """Returns a list of whole numbers, which may be token ids; None for another list, or none."""
  if all(type(each) is int for each in value):
    return value or None
  whole = [whole_or_same(each) for each in value]
  return whole if all(type(each) is int for each in whole) else None


def whole_or_same(value: Any) -> Any:
  """Returns a number such as 2.0 as a whole one: JSON knows no difference; others as they are."""
  return int(value) if type(value) is float and value.is_integer() else value


WholeNumber = Annotated[int, pydantic.BeforeValidator(whole_or_same)]
"""The type of a field of whole numbers."""


# ---------------------------------------------------------------------------------------------
# Texts or token ids: `input` of OpenAI, `inputs` of TEI.


class Inputs(list):
  """Items; `is_single` where the request had one alone, and not a list of one."""

  def __init__(self, items: Sequence[Any], is_single: bool = False):
    super().__init__(items)
    self.is_single = is_single


def texts_or_ids(name: str) -> Any:
  """Returns the type of a text, a list of texts, token ids, or a list of lists of token ids."""

  def take(value):
    if isinstance(value, str):
      return Inputs([given_text(value, f"`{name}`")], is_single=True)
    if not isinstance(value, list):
      raise ValueError(
        f"`{name}` is {shown(value)}, but a text, a list of texts, or token ids are needed."
      )
    if found := ids(value):
      return Inputs([found], is_single=True)
    return Inputs([_text_or_ids(each, f"`{name}`[{index}]") for index, each in enumerate(value)])

  return field(take, {"anyOf": [TEXT, IDS, _list({"anyOf": [TEXT, IDS]})]})


def _text_or_ids(value: Any, place: str) -> Any:
  if not isinstance(value, list):
    return given_text(value, place)
  if not value:
    raise ValueError(f"{place} is an empty list.")
  if found := ids(value):
    return found
  wrong = next(each for each in value if type(whole_or_same(each)) is not int)
  raise ValueError(f"{place} has {shown(wrong)}, but whole numbers, token ids, are needed.")


# ---------------------------------------------------------------------------------------------
# Texts.


def text(name: str) -> Any:
  """Returns the type of a text that is not empty."""
  return field(lambda value: given_text(value, f"`{name}`"), TEXT)


def texts(name: str) -> Any:
  """Returns the type of a list of texts."""
  return field(lambda value: check_texts(value, f"`{name}`"), _list(TEXT))


def documents(name: str) -> Any:
  """Returns the type of a list of texts, or of objects with a `text`, as Cohere has them."""

  def take(value):
    if isinstance(value, list):
      value = [each.get("text", each) if isinstance(each, dict) else each for each in value]
    return check_texts(value, f"`{name}`")

  with_text = {"type": "object", "properties": {"text": TEXT}, "required": ["text"]}
  return field(take, _list({"anyOf": [TEXT, with_text]}))


# ---------------------------------------------------------------------------------------------
# Items of a fine-tuned model.


def items(name: str) -> Any:
  """Returns the type of `/predict`'s inputs: a text, a pair, an object of texts, or lists of them.

  A list of one text or two is one item, as in TEI; several items are a list of lists or of objects.
  """

  def take(value):
    place = f"`{name}`"
    if not isinstance(value, list):
      return Inputs([item(value, place)], is_single=True)
    if not any(isinstance(each, str) for each in value):
      return Inputs([item(each, f"{place}[{index}]") for index, each in enumerate(value)])
    if len(value) > 2:
      raise ValueError(
        f"{place} has {len(value)} texts. One text or a pair is one item; several items are lists "
        'in a list: [["a"], ["b"]].'
      )
    return Inputs([item(value, place)], is_single=True)

  pair = {**_list(TEXT), "maxItems": 2}
  named = {"type": "object"}
  return field(take, {"anyOf": [TEXT, pair, named, _list({"anyOf": [pair, named]})]})


def item(value: Any, place: str) -> Any:
  """Returns an item as a `Predictor` takes it: a text, a pair, or an object of texts.

  Raises:
    ValueError: it is something else.
  """
  if isinstance(value, dict):
    return value
  if not isinstance(value, list):
    return given_text(value, place)
  if len(value) not in (1, 2):
    raise ValueError(f"{place} has {len(value)} values, but one text or two are needed.")
  if len(value) == 2 and isinstance(value[1], list):  # a text with a list of choices
    return given_text(value[0], f"{place}[0]"), check_texts(value[1], f"{place}[1]")
  found = check_texts(value, place)
  return found[0] if len(found) == 1 else tuple(found)
