"""Routes of text-embeddings-inference: `/embed`, `/predict`, `/rerank`, also in Cohere's form.

`POST /` is what `huggingface_hub.InferenceClient` asks: the route that fits the model, in the form
of transformers' pipelines.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from fastapi import FastAPI, Request, Response

from bert.serving import documentation, fields, pipelines, vector_items
from bert.serving.errors import EmptyInput, InvalidInput
from bert.serving.json_bodies import Body
from bert.serving.service import Service, json_answer, normalized, to_json, vectors_json

_TAG = "text-embeddings-inference"


class EmbedRequest(Body):
  """Texts, or token ids, whose vectors are wanted; `truncate`: whether longer texts are cut."""

  inputs: fields.texts_or_ids("inputs")  # type: ignore[valid-type]
  normalize: bool | None = True
  truncate: bool | None = True
  dimensions: int | None = None
  model: str | None = None


class PredictRequest(Body):
  """Items of the task that a model was fine-tuned for."""

  inputs: fields.items("inputs")  # type: ignore[valid-type]
  raw_scores: bool = False
  model: str | None = None


class RerankRequest(Body):
  """A query, and texts to rank: `texts` in TEI's form, `documents` in Cohere's."""

  query: fields.text("query")  # type: ignore[valid-type]
  texts: fields.texts("texts") = None  # type: ignore[valid-type]
  documents: fields.documents("documents") = None  # type: ignore[valid-type]
  raw_scores: bool = False
  return_text: bool = False
  return_documents: bool = False
  top_n: int | None = None
  model: str | None = None


class PipelineRequest(Body):
  """What transformers' pipelines take."""

  inputs: Any
  parameters: dict[str, Any] | None = None
  normalize: bool | None = True
  truncate: bool | None = True
  dimensions: int | None = None
  model: str | None = None


def add_to(app: FastAPI, service: Service) -> None:
  """Adds the routes to an application."""
  routes = documentation.Routes(app, _TAG)

  @routes.post("/embed", EmbedRequest)
  async def embed(request: Request) -> Response:
    """Returns a vector for each text."""
    return await _embed(service, request, await service.body(request, EmbedRequest))

  @routes.post("/predict", PredictRequest)
  async def predict(request: Request) -> Response:
    """Returns labels with scores, the highest first; of several items a list of such lists."""
    body = await service.body(request, PredictRequest)
    model = service.model(body.model, "answers")
    computed = await service.compute(request, model, "answers", body.inputs)
    found = pipelines.predictions_of(model, computed, body.raw_scores)
    return json_answer(request, to_json(found[0] if body.inputs.is_single else found), computed)

  @routes.post("/rerank", RerankRequest)
  async def rerank(request: Request) -> Response:
    """Ranks texts by how well they answer a query: by a model of pairs, else by vectors."""
    return await _rerank(service, request)

  routes.post("/v1/rerank", RerankRequest)(rerank)
  routes.post("/v2/rerank", RerankRequest, name="rerank_2")(rerank)

  @routes.post("/", PipelineRequest)
  async def pipeline(request: Request) -> Response:
    """Answers as the pipeline of transformers that fits the model."""
    body = await service.body(request, PipelineRequest)
    model, ability = pipelines.model_and_ability(service, body)
    items = pipelines.items_of(ability, body.inputs)
    if ability == "vectors" and not pipelines.is_comparison(body.inputs):
      return await _embed(service, request, EmbedRequest.model_validate(body.model_dump()))
    computed = await service.compute(request, model, ability, items)
    answer = pipelines.answer(model, ability, body, computed)
    return json_answer(request, to_json(answer), computed)


async def _embed(service: Service, request: Request, body: EmbedRequest) -> Response:
  model = service.model(body.model, "vectors")
  vector_items.check_dimensions(body.dimensions, model)
  items = [_uncut(each) for each in body.inputs] if body.truncate is False else body.inputs
  vector_items.check_ids(body.inputs, model)
  computed = await service.compute(request, model, "vectors", items)
  vectors = [each[: body.dimensions] for each in computed.results]
  if body.normalize is not False:
    vectors = [normalized(each) for each in vectors]
  return json_answer(request, b"[%b]" % b",".join(await vectors_json(vectors)), computed)


def _uncut(item: Any) -> dict[str, Any]:
  """Returns an item that is refused where it is too long."""
  return {"text" if isinstance(item, str) else "token_ids": item, "truncate": False}


# ---------------------------------------------------------------------------------------------
# Ranking.


async def _rerank(service: Service, request: Request) -> Response:
  body = await service.body(request, RerankRequest)
  texts = _texts_of(body)
  scores, computed = await ranked(service, request, body, texts)
  order = sorted(range(len(scores)), key=lambda index: -scores[index])[: body.top_n]
  if body.documents is None:
    found = [{"index": index, "score": scores[index]} for index in order]
    for each in found if body.return_text else ():
      each["text"] = texts[each["index"]]
    return json_answer(request, to_json(found), computed)
  results: list[dict[str, Any]] = [
    {"index": index, "relevance_score": scores[index]} for index in order
  ]
  for each in results if body.return_documents else ():
    each["document"] = {"text": texts[each["index"]]}
  name = body.model or service.model(None, ability_of(service, body)).name
  return json_answer(request, to_json({"model": name, "results": results}), computed)


def _texts_of(body: RerankRequest) -> list[str]:
  if (body.texts is None) == (body.documents is None):
    raise InvalidInput("Either `texts` or `documents` is needed, a list of texts.")
  if body.top_n is not None and body.top_n < 1:
    raise InvalidInput(f"`top_n` is {body.top_n}, but must be at least 1.")
  texts = body.documents if body.texts is None else body.texts
  if not texts:
    raise EmptyInput("There is no text to rank.")
  return texts


def ability_of(service: Service, body: Any) -> str:
  """Returns what ranks: `vectors` where a model gives them, else `answers` to pairs."""
  names = service.models.names if body.model is None else [service.models.find(body.model).name]
  return "vectors" if any("vectors" in service.abilities(name) for name in names) else "answers"


async def ranked(service: Service, request: Request, body: Any, texts: Sequence[str]):
  """Computes how well texts answer a query.

  Returns:
    A score for each text, and the `Computed`.
  """
  ability = ability_of(service, body)
  model = service.model(body.model, ability)
  if ability == "vectors":
    computed = await service.compute(request, model, ability, [body.query, *texts])
    query, *others = (normalized(each) for each in computed.results)
    return [float(np.dot(query, each)) for each in others], computed
  pairs = [(body.query, text) for text in texts]
  computed = await service.compute(request, model, ability, pairs)
  processor = model.servable.abilities[ability].processor
  answering = getattr(processor, "answering", None)
  scores = [
    answering.relevance(answer, processor.own_outputs(*raw)) if answering else None
    for answer, raw in zip(computed.results, computed.raw, strict=True)
  ]
  if any(score is None for score in scores):
    raise InvalidInput(f"{model.name} does not compare two texts, so it cannot rank.")
  return scores, computed
