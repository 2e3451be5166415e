"""Routes of our own: whatever a model can do, in the form in which `predict.py` writes it."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from fastapi import FastAPI, Request, Response

from bert.serving import answer_schemas, documentation, fields, item_schemas, pipelines
from bert.serving.documentation import Schema
from bert.serving.errors import InvalidInput
from bert.serving.json_bodies import StrictBody, shown
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


class SimilarityParameters(StrictBody):
  """Those of TEI."""

  truncate: bool | None = True
  truncation_direction: pipelines.FromTheEnd = None
  prompt_name: None = None


class SimilarityRequest(StrictBody):
  """Texts to compare with each other; or, as in TEI, `inputs`: one text with others."""

  texts: fields.texts("texts") | None = None  # type: ignore[valid-type]
  inputs: dict[str, Any] | None = None
  parameters: SimilarityParameters | None = None
  model: str | None = None


class AttentionRequest(StrictBody):
  """A text, or two, and the head whose map is wanted, counted from 0."""

  text: fields.text("text")  # type: ignore[valid-type]
  text_pair: str | None = None
  layer: fields.WholeNumber = 0
  head: fields.WholeNumber = 0
  model: str | None = None


def add_to(app: FastAPI, service: Service) -> None:
  """Adds the routes to an application."""
  routes = documentation.Routes(app, _TAG)

  def items_at(path: str, ability: str, name: str, summary: str) -> Callable:
    @routes.post(
      path,
      ItemsRequest,
      functools.partial(_refined, ability),
      answer=answer_schemas.of_items(ability),
      name=ability,
      summary=summary,
    )
    async def answer(request: Request) -> Response:
      body = await service.body(request, ItemsRequest)
      model = service.model(body.model, ability)
      computed = await service.compute(request, model, ability, _items(body.items))
      written = b",".join(await vectors_json_or_answers(computed.results))
      content = b'{"%b":[%b],"model":%b,"time_ms":%b}' % (
        *(name.encode(), written, to_json(model.name)),
        to_json(round(1000 * seconds_since_start(request), 3)),
      )
      return json_answer(request, content, computed)

    return answer

  items_at("/answer", "answers", "answers", "Answers as predict.py writes them.")
  items_at("/vectors", "vectors", "vectors", "Vectors as the model has them.")
  items_at("/masked_words", "masked_words", "masked_words", "Words for each mask.")

  @routes.post(
    "/similarity", SimilarityRequest, _refined_similarity, answer=answer_schemas.SIMILARITIES
  )
  async def similarity(request: Request) -> Response:
    """Compares texts by the cosine of their vectors."""
    body = await service.body(request, SimilarityRequest)
    model = service.model(body.model, "vectors")
    if (body.texts is None) == (body.inputs is None):
      raise InvalidInput("Either `texts` is needed, or `inputs` with `source_sentence`.")
    if body.inputs is not None and "source_sentence" not in body.inputs:
      raise InvalidInput(f"`inputs` is {shown(body.inputs)} without `source_sentence`.")
    asked = functools.partial(pipelines.as_asked, body.parameters, model, "vectors")
    if body.inputs is not None:
      items = asked(pipelines.items_of("vectors", body.inputs))
      computed = await service.compute(request, model, "vectors", items)
      return json_answer(request, to_json(pipelines.similarities(computed.results)), computed)
    computed = await service.compute(request, model, "vectors", asked(body.texts))
    vectors = np.stack([normalized(each) for each in computed.results])
    rows = b",".join(await vectors_json(list(vectors @ vectors.T)))
    return json_answer(request, b'{"similarities":[%b]}' % rows, computed)

  @routes.post("/attention", AttentionRequest, _refined_attention, answer=answer_schemas.ATTENTION)
  async def attention(request: Request) -> Response:
    """Returns the word pieces, and how much each looks at each other, in one head."""
    body = await service.body(request, AttentionRequest)
    model = service.model(body.model, "attention")
    item = {"text": body.text, "layer": body.layer, "head": body.head}
    if body.text_pair:
      item["text_pair"] = body.text_pair
    computed = await service.compute(request, model, "attention", [item])
    return json_answer(request, to_json(computed.results[0]), computed)


def _refined(ability: str, schema: Schema, model: Any) -> Schema | None:
  if ability not in model.servable.abilities:
    return None
  processor = model.servable.abilities[ability].processor
  if ability == "answers":
    item = item_schemas.item_of(processor)
  elif ability == "vectors":
    pair = documentation.list_of(item_schemas.TEXT, 2)
    item = {"anyOf": [item_schemas.TEXT, pair]}
  else:
    item = item_schemas.masked_text(processor.mask_token)
  schema["properties"]["items"] = documentation.list_of(item)
  items = item_schemas.examples_of(ability, processor)
  return documentation.with_examples(schema, *([{"items": items}] if items else []))


def _refined_similarity(schema: Schema, model: Any) -> Schema | None:
  if "vectors" not in model.servable.abilities:
    return None
  texts = documentation.list_of(item_schemas.TEXT)
  schema.pop("$defs")
  schema["properties"] |= {"texts": texts, "inputs": pipelines.comparison_schema()}
  parameters = SimilarityParameters.model_json_schema()
  schema["properties"]["parameters"] = {"anyOf": [parameters, {"type": "null"}]}
  inputs = pipelines.comparison_example()
  schema["examples"] = [{"texts": item_schemas.TEXTS}, {"inputs": inputs}]
  return documentation.with_one_of(schema, "texts", "inputs")


def _refined_attention(schema: Schema, model: Any) -> Schema | None:
  if "attention" not in model.servable.abilities:
    return None
  config = model.servable.config
  for name, count in (("layer", config.num_hidden_layers), ("head", config.num_attention_heads)):
    schema["properties"][name] = {"type": "integer", "minimum": 0, "maximum": count - 1}
  return documentation.with_examples(schema, {"text": item_schemas.TEXTS[0], "layer": 0, "head": 0})


async def vectors_json_or_answers(results: list[Any]) -> list[bytes]:
  """Writes each result as JSON."""
  if all(isinstance(each, np.ndarray) for each in results):
    return await vectors_json(results)
  return [to_json(each) for each in results]


def _items(items: list[Any]) -> list[Any]:
  try:
    return [fields.item(each, f"`items`[{index}]") for index, each in enumerate(items)]
  except ValueError as error:
    raise InvalidInput(str(error)) from None
