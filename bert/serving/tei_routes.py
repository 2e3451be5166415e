"""Routes of text-embeddings-inference: `/embed`, `/predict`, `/rerank` and others.

`/rerank` also takes Cohere's form.

`POST /` is what `huggingface_hub.InferenceClient` asks: the route that fits the model, in the form
of transformers' pipelines.
"""

import asyncio
import functools
import itertools
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from fastapi import FastAPI, Request, Response

from bert.serving import (
  answer_schemas,
  documentation,
  fields,
  item_schemas,
  json_bodies,
  pipelines,
  vector_items,
)
from bert.serving.documentation import Schema
from bert.serving.errors import EmptyInput, InvalidInput, UnknownModel
from bert.serving.json_bodies import Body
from bert.serving.service import Service, json_answer, normalized, to_json, vectors_json
from bert.text.sequence_layout import layout_of

_TAG = "text-embeddings-inference"


class EmbedRequest(pipelines.TruncatingBody):
  """Texts, or token ids, whose vectors are wanted."""

  inputs: fields.texts_or_ids("inputs")  # type: ignore[valid-type]
  normalize: bool | None = True
  prompt_name: None = None
  dimensions: fields.WholeNumber | None = None


class EmbedAllRequest(pipelines.TruncatingBody):
  """Texts, or token ids, for whose tokens vectors are wanted."""

  inputs: fields.texts_or_ids("inputs")  # type: ignore[valid-type]
  prompt_name: None = None


class TokenizeRequest(Body):
  """Texts whose tokens are wanted."""

  inputs: fields.text_or_texts("inputs")  # type: ignore[valid-type]
  add_special_tokens: bool = True
  prompt_name: None = None
  model: str | None = None


class PredictRequest(pipelines.TruncatingBody):
  """Items of the task that a model was fine-tuned for."""

  inputs: fields.items("inputs")  # type: ignore[valid-type]
  raw_scores: bool = False


class RerankRequest(pipelines.TruncatingBody):
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


class PipelineRequest(pipelines.TruncatingBody):
  """What transformers' pipelines take."""

  inputs: Any
  parameters: pipelines.Parameters | None = None
  normalize: bool | None = True
  prompt_name: None = None
  dimensions: fields.WholeNumber | None = None


def add_to(app: FastAPI, service: Service) -> None:
  """Adds the routes to an application."""
  routes = documentation.Routes(app, _TAG)

  @routes.post(
    "/embed",
    EmbedRequest,
    functools.partial(vector_items.refined, "inputs"),
    answer=answer_schemas.VECTORS,
  )
  async def embed(request: Request) -> Response:
    """Returns a vector for each text."""
    return await _embed(service, request, await service.body(request, EmbedRequest))

  @routes.post(
    "/embed_all",
    EmbedAllRequest,
    functools.partial(vector_items.refined, "inputs", ability="token_vectors"),
    answer=answer_schemas.TOKEN_VECTORS,
  )
  async def embed_all(request: Request) -> Response:
    """Returns a vector for each token of each text, special ones included."""
    body = await service.body(request, EmbedAllRequest)
    model = service.model(body.model, "token_vectors")
    items = pipelines.as_asked(body, model, "token_vectors", body.inputs)
    computed = await service.compute(request, model, "token_vectors", items)
    written = [b"[%b]" % b",".join(await vectors_json(list(each))) for each in computed.results]
    return json_answer(request, b"[%b]" % b",".join(written), computed)

  @routes.post("/tokenize", TokenizeRequest, _refined_tokenize, answer=answer_schemas.TOKENS)
  async def tokenize(request: Request) -> Response:
    """Returns the tokens of each text, with their places in it, counted in bytes as in TEI."""
    body = await service.body(request, TokenizeRequest)
    model = service.any_model(body.model, _TOKENIZED)
    tokenizer = _tokenizer_of(model)
    if tokenizer is None:
      raise InvalidInput(f"{model.name} is a SavedModel, which keeps its tokens to itself.")
    service.check_count(len(body.inputs))
    found = await asyncio.to_thread(
      lambda: [_tokens(tokenizer, text, body.add_special_tokens) for text in body.inputs]
    )
    return json_answer(request, to_json(found))

  @routes.post("/predict", PredictRequest, _refined_predict, answer=answer_schemas.PREDICTIONS)
  async def predict(request: Request) -> Response:
    """Returns labels with scores, the highest first; of several items a list of such lists."""
    body = await service.body(request, PredictRequest)
    model = service.model(body.model, "answers")
    pipelines.check_raw_scores(model, body.raw_scores)
    items = pipelines.as_asked(body, model, "answers", body.inputs)
    computed = await service.compute(request, model, "answers", items)
    found = pipelines.predictions_of(model, computed, body.raw_scores)
    return json_answer(request, to_json(found[0] if body.inputs.is_single else found), computed)

  def rerank_at(path):
    @routes.post(path, RerankRequest, _refined_rerank, answer=answer_schemas.RANKS, name=path)
    async def rerank(request: Request) -> Response:
      """Ranks texts by how well they answer a query: by a model of pairs, else by vectors."""
      return await _rerank(service, request)

  for path in ("/rerank", "/v1/rerank", "/v2/rerank"):
    rerank_at(path)

  @routes.post("/", PipelineRequest, pipelines.refined, answer=answer_schemas.PIPELINE)
  async def pipeline(request: Request) -> Response:
    """Answers as the pipeline of transformers that fits the model."""
    return await _pipeline(service, request, await service.body(request, PipelineRequest))

  @routes.post(
    "/models/{name:model}", PipelineRequest, pipelines.refined, answer=answer_schemas.PIPELINE
  )
  async def pipeline_of_model(request: Request) -> Response:
    """Answers as the pipeline of transformers that fits a model: one of several."""
    body = await service.body(request, PipelineRequest)
    named = body.model_copy(update={"model": request.path_params["name"]})
    return await _pipeline(service, request, named)


def _refined_predict(schema: Schema, model: Any) -> Schema | None:
  if "answers" not in model.servable.abilities:
    return None
  processor = model.servable.abilities["answers"].processor
  schema["properties"]["inputs"] = item_schemas.one_or_several(processor)
  example = item_schemas.example_of(processor)
  return documentation.with_examples(schema, *([{"inputs": example}] if example else []))


def _refined_tokenize(schema: Schema, model: Any) -> Schema | None:
  if _tokenizer_of(model) is None:
    return None
  return documentation.with_examples(schema, {"inputs": item_schemas.TEXTS[0]})


def _refined_rerank(schema: Schema, model: Any) -> Schema | None:
  if not _can_rank(model.servable.abilities):
    return None
  number = {"type": "integer", "minimum": 1}
  schema["properties"]["top_n"] = {"anyOf": [number, {"type": "null"}]}
  query, *texts = item_schemas.TEXTS
  schema["examples"] = [{"query": query, name: texts} for name in ("texts", "documents")]
  return documentation.with_one_of(schema, "texts", "documents")


async def _pipeline(service: Service, request: Request, body: PipelineRequest) -> Response:
  model, ability = pipelines.model_and_ability(service, body)
  if ability == "vectors" and not pipelines.is_comparison(body.inputs):
    of_vectors = {**body.model_dump(), "model": model.name}
    return await _embed(service, request, json_bodies.checked(EmbedRequest, of_vectors))
  items = pipelines.as_asked(body, model, ability, pipelines.items_of(ability, body.inputs))
  computed = await service.compute(request, model, ability, items)
  answer = pipelines.answer(model, ability, body, computed)
  return json_answer(request, to_json(answer), computed)


async def _embed(service: Service, request: Request, body: EmbedRequest) -> Response:
  model = service.model(body.model, "vectors")
  vector_items.check_dimensions(body.dimensions, model)
  items = pipelines.as_asked(body, model, "vectors", body.inputs)
  computed = await service.compute(request, model, "vectors", items)
  vectors = [each[: body.dimensions] for each in computed.results]
  if body.normalize is not False:
    vectors = [normalized(each) for each in vectors]
  return json_answer(request, b"[%b]" % b",".join(await vectors_json(vectors)), computed)


# ---------------------------------------------------------------------------------------------
# Tokens.

_TOKENIZED = ("answers", "vectors")


def _tokenizer_of(model: Any) -> Any:
  able = model.servable.abilities
  found = (able[name].processor.tokenizer for name in _TOKENIZED if name in able)
  return next(filter(None, found), None)


def _tokens(tokenizer: Any, text: str, with_ends: bool) -> list[dict[str, Any]]:
  """Lists the tokens of a text as TEI does: with the part of the text that each stands for."""
  found = tokenizer.tokenize_with_offsets(text)
  places = list(itertools.accumulate((len(each.encode()) for each in text), initial=0))
  ids = tokenizer.convert_tokens_to_ids([each.token for each in found])
  tokens = [
    {
      "id": index,
      "text": text[each.start : each.end],
      "special": False,
      "start": places[each.start],
      "stop": places[each.end],
    }
    for index, each in zip(ids, found, strict=True)
  ]
  if not with_ends:
    return tokens
  layout = layout_of(tokenizer)
  first, last = (
    {"id": tokenizer.vocab[name], "text": name, "special": True, "start": None, "stop": None}
    for name in (layout.cls, layout.sep)
  )
  return [first, *tokens, last]


# ---------------------------------------------------------------------------------------------
# Ranking.


async def _rerank(service: Service, request: Request) -> Response:
  body = await service.body(request, RerankRequest)
  texts = _texts_of(body)
  model, scores, computed = await _scores(service, request, body, texts)
  order = sorted(range(len(scores)), key=lambda index: -scores[index])[: body.top_n]
  returns_texts = body.return_text or body.return_documents
  if body.documents is None:
    found = [{"index": index, "score": scores[index]} for index in order]
    for each in found if returns_texts else ():
      each["text"] = texts[each["index"]]
    return json_answer(request, to_json(found), computed)
  results: list[dict[str, Any]] = [
    {"index": index, "relevance_score": scores[index]} for index in order
  ]
  for each in results if returns_texts else ():
    each["document"] = {"text": texts[each["index"]]}
  return json_answer(
    request, to_json({"model": body.model or model.name, "results": results}), computed
  )


def _texts_of(body: RerankRequest) -> list[str]:
  if (body.texts is None) == (body.documents is None):
    raise InvalidInput("Either `texts` or `documents` is needed, a list of texts.")
  if body.top_n is not None and body.top_n < 1:
    raise InvalidInput(f"`top_n` is {body.top_n}, but must be at least 1.")
  texts = body.documents if body.texts is None else body.texts
  if not texts:
    raise EmptyInput("There is no text to rank.")
  return texts


def _ranking_model(service: Service, name: str | None) -> tuple[Any, str]:
  """Finds the model that ranks, and by what: `vectors` where it gives them, else `answers`."""
  if name is None and len(service.models.names) > 1:
    able = [each for each in service.models.names if _can_rank(service.abilities(each))]
    if len(able) != 1:
      raise UnknownModel(f"Say which `model` ranks: {', '.join(able or service.models.names)}.")
    name = able[0]
  model = service.models.find(name)
  return model, "vectors" if "vectors" in model.servable.abilities else "answers"


def _can_rank(abilities: Mapping[str, Any]) -> bool:
  is_of_pairs = "answers" in abilities and pipelines.ranks(abilities["answers"].processor)
  return "vectors" in abilities or is_of_pairs


async def _scores(service: Service, request: Request, body: RerankRequest, texts: Sequence[str]):
  """Computes how well texts answer a query.

  Returns:
    The model, a score for each text, and the `Computed`.
  """
  model, ability = _ranking_model(service, body.model)
  model = service.model(model.name, ability)
  if ability == "vectors":
    if body.raw_scores:
      raise InvalidInput(
        f"{model.name} ranks by the cosine of vectors, which has no raw form: leave out "
        "`raw_scores`."
      )
    items = pipelines.as_asked(body, model, ability, [body.query, *texts])
    computed = await service.compute(request, model, ability, items)
    return model, pipelines.similarities(computed.results), computed
  pipelines.check_raw_scores(model, body.raw_scores)
  pairs = pipelines.as_asked(body, model, ability, [(body.query, text) for text in texts])
  computed = await service.compute(request, model, ability, pairs)
  scores = _relevances(model.servable.abilities[ability].processor, computed, body.raw_scores)
  if any(score is None for score in scores):
    raise InvalidInput(f"{model.name} does not compare two texts, so it cannot rank.")
  return model, scores, computed


def _relevances(processor: Any, computed: Any, raw_scores: bool) -> list[float | None]:
  if not pipelines.ranks(processor):
    return [None]
  if raw_scores:
    return [processor.decoder.raw_relevance(raw[1]) for raw in computed.raw]
  pairs = zip(computed.results, computed.raw, strict=True)
  return [processor.decoder.relevance(answer, raw[1]) for answer, raw in pairs]
