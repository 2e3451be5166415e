"""OpenAI's routes: `/v1/embeddings`, and the models in `/v1/models`."""

import base64
from typing import Any, Literal

import numpy as np
from fastapi import FastAPI, Request, Response

from bert.serving import documentation, fields
from bert.serving.json_bodies import TEXTS, Body
from bert.serving.service import Service, json_answer, normalized, to_json, vectors_json

_TAG = "OpenAI"


class EmbeddingsRequest(Body, json_schema_extra={"examples": [{"input": TEXTS}]}):
  """Texts, or token ids, whose vectors are wanted."""

  input: fields.texts_or_ids("input")  # type: ignore[valid-type]
  model: str | None = None
  encoding_format: Literal["float", "base64"] | None = None
  dimensions: fields.WholeNumber | None = None
  user: str | None = None


def add_to(app: FastAPI, service: Service) -> None:
  """Adds the routes to an application."""
  routes = documentation.Routes(app, _TAG)
  answer = {
    "object": "list",
    "data": [{"object": "embedding", "index": 0, "embedding": [0.25, -0.5]}],
    "model": "mrpc",
    "usage": {"prompt_tokens": 7, "total_tokens": 7},
  }

  @routes.post("/v1/embeddings", EmbeddingsRequest, answer=answer)
  async def embeddings(request: Request) -> Response:
    """Returns a vector of length 1 for each text."""
    body = await service.body(request, EmbeddingsRequest)
    model = service.model(body.model, "vectors")
    service.check_dimensions(body.dimensions, model)
    computed = await service.compute(request, model, "vectors", body.input)
    vectors = [normalized(each[: body.dimensions]) for each in computed.results]
    data = await _data(vectors, body.encoding_format)
    count = sum(computed.tokens)
    tail = to_json(
      {"model": body.model or model.name, "usage": {"prompt_tokens": count, "total_tokens": count}}
    )
    return json_answer(request, b'{"object":"list","data":[%b],%b' % (data, tail[1:]), computed)

  @routes.get("/v1/models", answer={"object": "list", "data": [model_entry("mrpc")]})
  async def models(request: Request) -> Response:
    """Lists the models."""
    data = [model_entry(name) for name in service.models.names]
    return json_answer(request, to_json({"object": "list", "data": data}))


def model_entry(name: str) -> dict[str, Any]:
  """Returns what a list of models has of one."""
  return {"id": name, "object": "model", "created": 0, "owned_by": "bert"}


async def _data(vectors: list[np.ndarray], encoding_format: str | None) -> bytes:
  """Writes the vectors, numbered."""
  if encoding_format == "base64":
    written = [b'"%b"' % base64.b64encode(each.astype("<f4").tobytes()) for each in vectors]
  else:
    written = await vectors_json(vectors)
  form = b'{"object":"embedding","index":%d,"embedding":%b}'
  return b",".join(form % pair for pair in enumerate(written))
