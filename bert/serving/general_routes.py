"""What probes, people and pages ask: health, models and limits, counts, the page and its files."""

import mimetypes
import os
import pathlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from fastapi import FastAPI, Request, Response
from fastapi.responses import FileResponse

import bert
from bert.serving import documentation
from bert.serving.errors import NoRoute, NotReady
from bert.serving.metrics import CONTENT_TYPE
from bert.serving.service import Service, json_answer, to_json

_PAGE = pathlib.Path(__file__).parent / "page"
mimetypes.add_type("text/javascript", ".js")  # whatever the registry of Windows says
_TAG = "General"


def add_to(app: FastAPI, service: Service) -> None:
  """Adds the routes to an application."""
  routes = documentation.Routes(app, _TAG)

  @routes.get("/health", answer={"status": "ready"})
  async def health(request: Request) -> Response:
    """Says yes once all models have computed something."""
    if not service.models.is_ready:
      raise NotReady("The models are being loaded.", retry_after_s=2)
    return json_answer(request, b'{"status":"ready"}')

  @routes.get("/live", answer={"status": "live"})
  async def live(request: Request) -> Response:
    """Says that the server runs, whether or not its models are ready: when not, restart it."""
    return json_answer(request, b'{"status":"live"}')

  @routes.get("/info", answer={"models": [{"name": "mrpc", "abilities": ["answers"]}]})
  async def info(request: Request) -> Response:
    """Lists the models with what they can do, and the limits of requests."""
    return json_answer(request, to_json(info_of(service)))

  @app.get("/metrics", tags=[_TAG], response_class=Response)
  async def metrics() -> Response:
    """Counts and times for Prometheus."""
    return Response(service.metrics.text(), headers={"content-type": CONTENT_TYPE})


# ---------------------------------------------------------------------------------------------
# Models.


def info_of(service: Service) -> dict[str, Any]:
  """Returns all that the page needs; TEI's names, of the first model, beside it."""
  settings = service.settings
  models = [model_info(service.models.find(name)) for name in service.models.names]
  first = models[0]
  return {
    "version": bert.__version__,
    "models": models,
    "limits": {
      "max_inputs": settings.max_inputs,
      "max_body_bytes": settings.max_body_bytes,
      "max_batch_tokens": settings.max_batch_tokens,
      "max_concurrent_requests": settings.max_concurrent_requests,
      "timeout_s": settings.timeout_s,
    },
    "needs_key": bool(settings.api_keys),
    "model_id": first["name"],
    "served_model_name": first["name"],
    "model_dtype": first["precision"],
    "model_type": _model_type(first),
    "max_input_length": first["max_seq_length"],
    "max_batch_tokens": settings.max_batch_tokens,
    "max_concurrent_requests": settings.max_concurrent_requests,
    "max_client_batch_size": settings.max_inputs,
    "auto_truncate": True,
  }


def _model_type(model: Mapping[str, Any]) -> dict[str, Any]:
  """What kind of model it is, as TEI says it: a reranker is a model with one score."""
  if "vectors" in model["abilities"] or "answers" not in model["abilities"]:
    return {"embedding": {"pooling": model["pooling"]}}
  has_one_score = model["display"] in ("score", "similarity") or len(model["labels"]) == 1
  labels = model["labels"] or ([model["display"]] if has_one_score else [])
  names = {str(index): name for index, name in enumerate(labels)}
  kind = "reranker" if has_one_score else "classifier"
  return {kind: {"id2label": names, "label2id": {n: int(i) for i, n in names.items()}}}


def model_info(model: Any) -> dict[str, Any]:
  """Returns what the page needs to know of a model."""
  servable = model.servable
  abilities, config = servable.abilities, servable.config
  found = {
    "name": model.name,
    "version": str(model.version),
    "is_ready": model.is_ready,
    "abilities": list(abilities),
    "kind": servable.kind.name if servable.kind else None,
    "engine": servable.engine,
    "precision": servable.precision,
    "max_seq_length": next(iter(abilities.values())).processor.max_seq_length,
    "dimensions": getattr(config, "hidden_size", None),
    "layers": getattr(config, "num_hidden_layers", None),
    "heads": getattr(config, "num_attention_heads", None),
    "vocab_size": getattr(config, "vocab_size", None),
    "pooling": getattr(abilities["vectors"].processor, "pooling", "mean")
    if "vectors" in abilities
    else None,
    "mask_token": abilities["masked_words"].processor.mask_token
    if "masked_words" in abilities
    else None,
  }
  return {**found, **_answers_info(abilities)}


def _answers_info(abilities: Mapping[str, Any]) -> dict[str, Any]:
  """Returns what a fine-tuned model takes and gives, as its task says it."""
  found: dict[str, Any] = {"inputs": [], "list_inputs": [], "labels": []}
  found |= {"display": None, "example": None}
  if "answers" not in abilities:
    return found
  processor = abilities["answers"].processor
  found |= {"inputs": list(processor.inputs), "list_inputs": list(processor.list_inputs)}
  decoder = processor.decoder
  if decoder is None:  # a SavedModel that is none of ours says no more
    return {**found, "display": "values"}
  return {
    **found,
    "needs_pairs": decoder.needs_pairs,
    "labels": [_text(each) for each in decoder.label_names],
    "display": decoder.display,
    "example": decoder.example,
  }


def _text(value: Any) -> str:
  return str(value.item() if isinstance(value, np.generic) else value)


# ---------------------------------------------------------------------------------------------
# The page.


def add_page(app: FastAPI) -> None:
  """Adds the routes of the page, which are no part of the document of routes."""
  headers, names = {"cache-control": "no-cache"}, os.listdir(_PAGE)
  page = {"content": {"text/html": {}}, "description": "The page."}

  @app.get("/", tags=[_TAG], response_class=FileResponse, responses={200: page})
  async def index() -> Response:
    """Returns the page."""
    return FileResponse(_PAGE / "index.html", headers=headers)

  @app.get("/docs", include_in_schema=False)
  async def docs() -> Response:
    return FileResponse(_PAGE / "docs.html", headers=headers)

  @app.get("/favicon.ico", include_in_schema=False)
  async def favicon() -> Response:
    return FileResponse(_PAGE / "icon.svg", headers=headers)

  @app.get("/page/{name}", include_in_schema=False)
  async def file(name: str) -> Response:
    if name not in names:
      raise NoRoute(f"There is no page {name[:60]} here.")
    return FileResponse(_PAGE / name, headers=headers)
