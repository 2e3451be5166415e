"""How texts become a row: special tokens and texts at their places.

single, pair = places_of_ends(("[CLS]", 101), ("[SEP]", 102))
template(single, pair)["type"]       # "TemplateProcessing", as in a tokenizer.json
"""

from collections.abc import Sequence
from typing import Any, NamedTuple


class Special(NamedTuple):
  """Special tokens at one place of a row."""

  tokens: tuple[str, ...]
  ids: tuple[int, ...]
  type_id: int


class Text(NamedTuple):
  """The place of a text in a row."""

  sequence: int  # 0 or 1
  type_id: int


def places_of_ends(
  cls_token: Sequence, sep_token: Sequence
) -> tuple[tuple[Special | Text, ...], tuple[Special | Text, ...]]:
  """Makes BERT's rows of one text and of two; each token comes with its id."""
  first, end = (Special((token,), (index,), 0) for token, index in (cls_token, sep_token))
  single = (first, Text(0, 0), end)
  return single, (*single, Text(1, 1), end._replace(type_id=1))


def template(single: Sequence[Special | Text], pair: Sequence[Special | Text]) -> dict[str, Any]:
  """Makes the `post_processor` of rows of one text and of two."""
  special: dict[str, Any] = {}
  places: dict[str, list] = {}
  for name, row in (("single", single), ("pair", pair)):
    for place in row:
      if isinstance(place, Text):
        key, index = "Sequence", "AB"[place.sequence]
      else:
        key, index = "SpecialToken", place.tokens[0]
        special[index] = {"id": index, "ids": list(place.ids), "tokens": list(place.tokens)}
      places.setdefault(name, []).append({key: {"id": index, "type_id": place.type_id}})
  return {"type": "TemplateProcessing", **places, "special_tokens": special}
