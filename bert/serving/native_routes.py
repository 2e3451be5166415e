"""Routes of our own: whatever a model can do, in the form in which `predict.py` writes it."""

from typing import Any

import numpy as np
from fastapi import FastAPI, Request, Response

from bert.serving import documentation, fields
from bert.serving.errors import InvalidInput
from bert.serving.json_bodies import TEXTS, StrictBody
from bert.serving.service import (
  Service,
  json_answer,
  normalized,
  seconds_since_start,
  to_json,
  vectors_json,
)

_TAG = "Own routes"


class ItemsRequest(StrictBody):
  """Items as `predict.py` takes them: texts, pairs, objects with the model's inputs by name."""

  items: list[Any]
  model: str | None = None


class SimilarityRequest(StrictBody, json_schema_extra={"examples": [{"texts": TEXTS}]}):
  """Texts to compare with each other."""

  texts: fields.texts("texts")  # type: ignore[valid-type]
  model: str | None = None


class AttentionRequest(StrictBody, json_schema_extra={"examples": [{"text": TEXTS[0]}]}):
  """A text, or two, and the head whose map is wanted, counted from 0."""

  text: fields.text("text")  # type: ignore[valid-type]
  text_pair: str | None = None
  layer: fields.WholeNumber = 0
  head: fields.WholeNumber = 0
  model: str | None = None


# Ability, whose results are named as it is -> what its route does, an example of an item, and of a
# result.
_ITEM_ROUTES = {
  "answers": (
    "Answers as predict.py writes them.",
    {"text_a": TEXTS[0], "text_b": TEXTS[1]},
    {"label": "1", "probabilities": [0.07, 0.93]},
  ),
  "vectors": ("Vectors as the model has them.", TEXTS[0], [0.25, -0.5]),
  "masked_words": (
    "Words for each mask.",
    "The capital of France is [MASK].",
    {
      "text": "The capital of France is [MASK].",
      "masks": [[{"token": "paris", "probability": 0.62}]],
    },
  ),
}


def add_to(app: FastAPI, service: Service) -> None:
  """Adds the routes to an application."""
  routes = documentation.Routes(app, _TAG)
  for ability in _ITEM_ROUTES:
    _add_items_route(routes, service, ability)

  @routes.post("/similarity", SimilarityRequest, answer={"similarities": [[1.0, 0.4], [0.4, 1.0]]})
  async def similarity(request: Request) -> Response:
    """Compares texts by the cosine of their vectors."""
    body = await service.body(request, SimilarityRequest)
    model = service.model(body.model, "vectors")
    computed = await service.compute(request, model, "vectors", body.texts)
    vectors = np.stack([normalized(each) for each in computed.results])
    rows = b",".join(await vectors_json(list(vectors @ vectors.T)))
    return json_answer(request, b'{"similarities":[%b]}' % rows, computed)

  example = {"tokens": ["[CLS]", "[SEP]"], "map": [[0.5, 0.5], [0.75, 0.25]]}

  @routes.post("/attention", AttentionRequest, answer=example)
  async def attention(request: Request) -> Response:
    """Returns the word pieces, and how much each looks at each other, in one head."""
    body = await service.body(request, AttentionRequest)
    model = service.model(body.model, "attention")
    item = {"text": body.text, "layer": body.layer, "head": body.head}
    if body.text_pair:
      item["text_pair"] = body.text_pair
    computed = await service.compute(request, model, "attention", [item])
    return json_answer(request, to_json(computed.results[0]), computed)


def _add_items_route(routes: documentation.Routes, service: Service, ability: str) -> None:
  summary, item, result = _ITEM_ROUTES[ability]

  class Body(ItemsRequest, json_schema_extra={"examples": [{"items": [item]}]}):
    __doc__ = ItemsRequest.__doc__

  path = "/answer" if ability == "answers" else f"/{ability}"
  example = {ability: [result], "model": "mrpc", "time_ms": 8.5}

  @routes.post(path, Body, answer=example, name=ability, summary=summary)
  async def answer(request: Request) -> Response:
    body = await service.body(request, ItemsRequest)
    model = service.model(body.model, ability)
    computed = await service.compute(request, model, ability, _items(body.items))
    if all(isinstance(each, np.ndarray) for each in computed.results):
      written = await vectors_json(computed.results)
    else:
      written = [to_json(each) for each in computed.results]
    content = b'{"%b":[%b],"model":%b,"time_ms":%b}' % (
      *(ability.encode(), b",".join(written), to_json(model.name)),
      to_json(round(1000 * seconds_since_start(request), 3)),
    )
    return json_answer(request, content, computed)


def _items(items: list[Any]) -> list[Any]:
  try:
    return [fields.item(each, f"`items`[{index}]") for index, each in enumerate(items)]
  except ValueError as error:
    raise InvalidInput(str(error)) from None
