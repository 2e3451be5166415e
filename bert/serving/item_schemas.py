"""JSON Schemas of what the processors of models take as an item, in all forms that routes offer."""

import itertools
import re
from typing import Any

from bert.serving.documentation import Schema, list_of

# For examples.
TEXTS = ["The storm closed both runways.", "No aircraft could land."]

TEXT: Schema = {"type": "string", "minLength": 1}
_ANY_TEXT: Schema = {"type": "string"}
_NOT_BLANK: Schema = {"type": "string", "pattern": r"\S"}
_NAMES_OF_TEXTS = ({"text", "text_a"}, {"text_b", "text_pair"})


def ids_of(model: Any) -> Schema:
  """Returns the schema of a list of token ids of a model."""
  most = model.servable.config.vocab_size - 1
  return list_of({"type": "integer", "minimum": 0, "maximum": most})


def forms_of(processor: Any) -> dict[str, list[Schema]]:
  """Returns schemas of an item: `text`, `list` (of texts) and `object`, each none or several."""
  names = list(processor.inputs)
  if set(names) <= {"text", "text_a", "text_b"}:
    forms = _one_or_two("text_b" in names, getattr(processor, "needs_pairs", False))
    return {**forms, "object": [*forms["object"], *map(dict, processor.other_schemas)]}
  properties: Schema = {
    name: list_of(TEXT) if name in processor.list_inputs else _ANY_TEXT for name in names
  }
  own = {
    "type": "object",
    "properties": properties,
    "required": names,
    "additionalProperties": False,
  }
  has_pairs = len(names) == 2 and not processor.list_inputs
  return {"text": [], "list": [pair_of(TEXT)] if has_pairs else [], "object": [own]}


def example_of(processor: Any) -> Any:
  """Returns an item to try; None where nothing is known of the model's task."""
  return processor.decoder.example if processor.decoder else None


def examples_of(ability: str, processor: Any) -> list[Any]:
  """Returns items to try, of an ability; none where nothing is known of them."""
  if ability == "masked_words":
    return [f"The capital of France is {processor.mask_token}."]
  if ability == "vectors":
    return TEXTS
  example = example_of(processor)
  return [example] if example else []


def pair_of(text: Schema) -> Schema:
  """Returns the schema of two texts in a list."""
  return {**list_of(text, 2), "minItems": 2}


def _one_or_two(takes_two: bool, needs_two: bool) -> dict[str, list[Schema]]:
  second: Schema = _NOT_BLANK if needs_two else {"type": ["string", "null"]}
  objects = []
  for first, other in itertools.product(*map(sorted, _NAMES_OF_TEXTS)):
    properties = {first: _ANY_TEXT, other: second if takes_two else {"type": "null"}}
    required = [first, other] if needs_two else [first]
    objects.append(
      {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
      }
    )
  if needs_two:
    return {"text": [], "list": [pair_of(_NOT_BLANK)], "object": objects}
  return {"text": [TEXT], "list": [list_of(TEXT, 2 if takes_two else 1)], "object": objects}


def item_of(processor: Any) -> Schema:
  """Returns the schema of an item, in any form."""
  forms = forms_of(processor)
  return {"anyOf": [*forms["text"], *forms["list"], *forms["object"]]}


def one_or_several(processor: Any) -> Schema:
  """Returns the schema of an item, or of a list of items; see `fields.items`."""
  forms = forms_of(processor)
  several = list_of({"anyOf": [*forms["list"], *forms["object"]]})
  return {"anyOf": [*forms["text"], *forms["list"], *forms["object"], several]}


def one_or_list(processor: Any) -> Schema:
  """Returns the schema of an item that is no list, or of a list of items in any form."""
  forms = forms_of(processor)
  return {"anyOf": [*forms["text"], *forms["object"], list_of(item_of(processor))]}


def masked_text(mask_token: str) -> Schema:
  """Returns the schema of a text with a masked word."""
  return {"type": "string", "pattern": re.escape(mask_token)}
