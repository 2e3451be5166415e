"""Routes of text-embeddings-inference: `/embed`, `/predict`, `/rerank` and others.

`/rerank` also takes Cohere's form. What these routes make of requests and of answers, those of
`pipelines.py` make, too.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from fastapi import FastAPI, Request, Response

from bert.predicting.processors import named_texts
from bert.serving import documentation, fields
from bert.serving.errors import EmptyInput, InvalidInput
from bert.serving.json_bodies import TEXTS, Body
from bert.serving.service import Service, json_answer, normalized, to_json, vectors_json

_TAG = "text-embeddings-inference"


class TruncatingBody(Body):
  """What requests have in common whose texts may be too long, and are truncated by default."""

  truncate: bool | None = True
  truncation_direction: Literal["right", "Right"] | None = (
    None  # texts end there, not at their start
  )
  model: str | None = None


class EmbedAllRequest(TruncatingBody, json_schema_extra={"examples": [{"inputs": TEXTS}]}):
  """Texts, or token ids, for whose tokens vectors are wanted."""

  inputs: fields.texts_or_ids("inputs")  # type: ignore[valid-type]
  prompt_name: None = None


class EmbedRequest(EmbedAllRequest):
  """Texts, or token ids, whose vectors are wanted."""

  normalize: bool | None = True
  dimensions: fields.WholeNumber | None = None


class PredictRequest(TruncatingBody, json_schema_extra={"examples": [{"inputs": TEXTS}]}):
  """Items of the task that a model was fine-tuned for."""

  inputs: fields.items("inputs")  # type: ignore[valid-type]
  raw_scores: bool = False


class RerankRequest(
  TruncatingBody,
  json_schema_extra={
    "examples": [{"query": TEXTS[0], name: TEXTS[1:]} for name in ("texts", "documents")]
  },
):
  """A query, and texts to rank: `texts` in TEI's form, `documents` in Cohere's."""

  query: fields.text("query")  # type: ignore[valid-type]
  texts: fields.texts("texts") | None = None  # type: ignore[valid-type]
  documents: fields.documents("documents") | None = None  # type: ignore[valid-type]
  raw_scores: bool = False
  return_text: bool = False
  return_documents: bool = False
  top_n: fields.WholeNumber | None = None
  rank_fields: list[Literal["text"]] | None = None
  max_chunks_per_doc: None = None
  max_tokens_per_doc: None = None


def add_to(app: FastAPI, service: Service) -> None:
  """Adds the routes to an application."""
  routes = documentation.Routes(app, _TAG)

  @routes.post("/embed", EmbedRequest, answer=[[0.25, -0.5], [0.75, 0.5]], name="embed")
  async def vectors(request: Request) -> Response:
    """Returns a vector for each text."""
    return await embed(service, request, await service.body(request, EmbedRequest))

  @routes.post("/embed_all", EmbedAllRequest, answer=[[[0.25, -0.5], [0.75, 0.5]]])
  async def embed_all(request: Request) -> Response:
    """Returns a vector for each token of each text, special ones included."""
    body = await service.body(request, EmbedAllRequest)
    model = service.model(body.model, "token_vectors")
    items = as_asked(body, model, "token_vectors", body.inputs)
    computed = await service.compute(request, model, "token_vectors", items)
    written = [b"[%b]" % b",".join(await vectors_json(list(each))) for each in computed.results]
    return json_answer(request, b"[%b]" % b",".join(written), computed)

  @routes.post("/predict", PredictRequest, answer=[{"label": "1", "score": 0.93}])
  async def predict(request: Request) -> Response:
    """Returns labels with scores, the highest first; of several items a list of such lists."""
    body = await service.body(request, PredictRequest)
    model = service.model(body.model, "answers")
    _check_raw_scores(model, body.raw_scores)
    items = as_asked(body, model, "answers", body.inputs)
    computed = await service.compute(request, model, "answers", items)
    found = predictions_of(model, computed, body.raw_scores)
    return json_answer(request, to_json(found[0] if body.inputs.is_single else found), computed)

  for path in ("/rerank", "/v1/rerank", "/v2/rerank"):

    @routes.post(path, RerankRequest, answer=[{"index": 1, "score": 0.93}], name=path)
    async def rerank(request: Request) -> Response:
      """Ranks texts by how well they answer a query: by a model of pairs, else by vectors."""
      return await _rerank(service, request)


# ---------------------------------------------------------------------------------------------
# What the routes of pipelines share.


async def embed(service: Service, request: Request, body: EmbedRequest) -> Response:
  """Answers a request for vectors."""
  model = service.model(body.model, "vectors")
  service.check_dimensions(body.dimensions, model)
  items = as_asked(body, model, "vectors", body.inputs)
  computed = await service.compute(request, model, "vectors", items)
  vectors = [each[: body.dimensions] for each in computed.results]
  if body.normalize is not False:
    vectors = [normalized(each) for each in vectors]
  return json_answer(request, b"[%b]" % b",".join(await vectors_json(vectors)), computed)


def as_asked(asked: TruncatingBody, model: Any, ability: str, items: Sequence[Any]) -> Sequence:
  """Returns items that are refused where they are too long, if a request has `truncate: false`."""
  if asked.truncate is not False:
    return items
  processor = model.servable.abilities[ability].processor
  try:
    return [{**_named(ability, processor, each), "truncate": False} for each in items]
  except ValueError as error:
    raise InvalidInput(str(error)) from None


def _named(ability: str, processor: Any, item: Any) -> Mapping[str, Any]:
  if ability == "answers":
    return named_texts(processor, item)
  if not ability.endswith("vectors"):
    raise ValueError(f"Texts with {ability.replace('_', ' ')} are truncated: leave out `truncate`.")
  return {"text" if isinstance(item, str) else "token_ids": item}


def predictions_of(model: Any, computed: Any, raw_scores: bool = False) -> list[list[dict]]:
  """Lists the labels of each item with their scores; see `Decoder.predictions`."""
  decoder = model.servable.abilities["answers"].processor.decoder
  if decoder is None:
    return [[dict(answer)] for answer in computed.results]
  return [
    decoder.predictions(answer, raw[1], raw_scores)
    for answer, raw in zip(computed.results, computed.raw, strict=True)
  ]


def similarities(vectors: list[np.ndarray]) -> list[float]:
  """Returns the cosine of the first vector with each of the others."""
  first, *others = map(normalized, vectors)
  return [float(np.dot(first, each)) for each in others]


def _check_raw_scores(model: Any, raw_scores: bool) -> None:
  processor = model.servable.abilities["answers"].processor
  if raw_scores and not processor.has_scores:
    raise InvalidInput(
      f"{model.name} is a SavedModel, which keeps its scores to itself: leave out `raw_scores`."
    )
  if raw_scores and not processor.decoder.has_raw_scores:
    raise InvalidInput(f"The scores of {model.name} have no raw form: leave out `raw_scores`.")


# ---------------------------------------------------------------------------------------------
# Ranking.


async def _rerank(service: Service, request: Request) -> Response:
  body = await service.body(request, RerankRequest)
  if (body.texts is None) == (body.documents is None):
    raise InvalidInput("Either `texts` or `documents` is needed, a list of texts.")
  if body.top_n is not None and body.top_n < 1:
    raise InvalidInput(f"`top_n` is {body.top_n}, but must be at least 1.")
  is_of_cohere = body.documents is not None
  texts = body.documents if is_of_cohere else body.texts
  if not texts:
    raise EmptyInput("There is no text to rank.")
  model = service.any_model(body.model, _can_rank)
  scores, computed = await _scores(service, request, model, body, texts)
  order = sorted(range(len(scores)), key=lambda index: -scores[index])[: body.top_n]
  name = "relevance_score" if is_of_cohere else "score"
  found: list[dict[str, Any]] = [{"index": index, name: scores[index]} for index in order]
  for each in found if body.return_text or body.return_documents else ():
    text = texts[each["index"]]
    each |= {"document": {"text": text}} if is_of_cohere else {"text": text}
  answer = {"model": body.model or model.name, "results": found} if is_of_cohere else found
  return json_answer(request, to_json(answer), computed)


def _can_rank(abilities: Mapping[str, Any]) -> bool:
  return "vectors" in abilities or (
    "answers" in abilities and _ranks(abilities["answers"].processor)
  )


def _ranks(processor: Any) -> bool:
  """Tells whether a fine-tuned model may say how well one text answers another."""
  decoder = processor.decoder
  if decoder is None or "text_b" not in decoder.inputs:
    return False
  least = 1 if processor.has_scores else 2  # of a class alone the probability is 1
  return decoder.display != "classes" or least <= len(decoder.label_names) <= 2


async def _scores(
  service: Service, request: Request, model: Any, body: RerankRequest, texts: Sequence[str]
) -> tuple[list[float], Any]:
  """Computes how well each text answers the query, by vectors where the model gives them."""
  if "vectors" in model.servable.abilities:
    if body.raw_scores:
      raise InvalidInput(
        f"{model.name} ranks by the cosine of vectors, which has no raw form: leave out "
        "`raw_scores`."
      )
    items = as_asked(body, model, "vectors", [body.query, *texts])
    computed = await service.compute(request, model, "vectors", items)
    return similarities(computed.results), computed
  model = service.model(model.name, "answers")
  processor, decoder = model.servable.abilities["answers"].processor, None
  if _ranks(processor):
    decoder = processor.decoder
    _check_raw_scores(model, body.raw_scores)
    pairs = as_asked(body, model, "answers", [(body.query, text) for text in texts])
    computed = await service.compute(request, model, "answers", pairs)
    scores = [
      decoder.raw_relevance(raw[1]) if body.raw_scores else decoder.relevance(answer, raw[1])
      for answer, raw in zip(computed.results, computed.raw, strict=True)
    ]
  if decoder is None or None in scores:
    raise InvalidInput(f"{model.name} does not compare two texts, so it cannot rank.")
  return scores, computed
