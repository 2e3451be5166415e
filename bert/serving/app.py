"""The application: the routes of all dialects around the served models.

  app = create(models, Settings(), Metrics())       # models: `served_models.ServedModels`
  uvicorn.run(app)

Models are started with it and stopped with it.
"""

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from typing import Any

import fastapi
from absl import logging
from fastapi import FastAPI, Request, Response
from starlette.convertors import StringConvertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import Match

import bert
from bert.serving import (
  errors,
  general_routes,
  native_routes,
  openai_routes,
  pipelines,
  tei_routes,
  tensorflow_serving_routes,
)
from bert.serving.errors import InternalError, NoRoute, ServingError, WrongMethod
from bert.serving.limits import Limits
from bert.serving.metrics import Metrics
from bert.serving.request_log import RequestLog
from bert.serving.service import Service, Settings

_DIALECTS = (
  general_routes,
  native_routes,
  openai_routes,
  pipelines,
  tei_routes,
  tensorflow_serving_routes,
)
_DESCRIPTION = "BERT's answers, vectors and masked words, in the forms that clients already speak."
_TIMES = ("x-total-time", "x-queue-time", "x-tokenization-time", "x-inference-time")


class _ModelName(StringConvertor):
  """A name in a path; what comes after a colon is a method of the model."""

  regex = "[^/:]+"


register_url_convertor("model", _ModelName())


def create(
  models: Any,
  settings: Settings,
  metrics: Metrics,
  log: RequestLog | None = None,
  started: Callable[[BaseException | None], None] | None = None,
) -> Any:
  """Makes the ASGI application.

  Args:
    models: a `ServedModels`, which is started with the application.
    settings: limits.
    metrics: counts; the models have been given it, too.
    log: of requests.
    started: is called once the models can compute, with None, or with why they cannot.
  """
  service = Service(models, settings, metrics)
  app = FastAPI(
    title="BERT",
    version=bert.__version__,
    description=_DESCRIPTION,
    docs_url=None,
    redoc_url=None,
    redirect_slashes=False,
    lifespan=lambda _: _lifespan(service, started or _log_failure),
  )
  for dialect in _DIALECTS:
    dialect.add_to(app, service)
  general_routes.add_page(app)
  app.add_exception_handler(ServingError, _refuse)
  app.add_exception_handler(HTTPException, _refuse_path)
  app.add_exception_handler(Exception, _excuse)
  limited: Any = Limits(app, settings, metrics, log)
  if settings.cors_origins:
    limited = CORSMiddleware(
      limited,
      allow_origins=settings.cors_origins,
      allow_methods=["GET", "POST"],
      allow_headers=["*"],
      expose_headers=[*_TIMES, "x-compute-tokens", "x-request-id", "retry-after"],
    )
  return limited


@contextlib.asynccontextmanager
async def _lifespan(service: Service, started: Callable[[BaseException | None], None]):
  """Starts the models beside the routes, which say meanwhile that they are not ready."""
  start = asyncio.ensure_future(service.models.start())
  start.add_done_callback(lambda done: None if done.cancelled() else started(done.exception()))
  yield
  if not start.done():
    start.cancel()
    await asyncio.wait([start])
  await service.models.stop()


def _log_failure(error: BaseException | None) -> None:
  if error is not None:
    logging.error("The models cannot be started: %s", error)


# ---------------------------------------------------------------------------------------------
# Refusals.


async def _refuse(request: Request, error: Exception) -> Response:
  assert isinstance(error, ServingError)
  status, headers, content = errors.answer_of(request.scope["path"], error)
  return Response(content, status, headers)


async def _refuse_path(request: Request, error: Exception) -> Response:
  assert isinstance(error, HTTPException)
  method, path = request.method, request.scope["path"]
  allowed = methods_of(request.app, request.scope)
  if method == "OPTIONS" and allowed:
    return Response(status_code=204, headers={"allow": ", ".join(allowed)})
  if allowed:
    refusal: ServingError = WrongMethod(f"{path[:80]} takes {', '.join(allowed)}, not {method}.")
    refusal.headers = {"allow": ", ".join(allowed)}  # type: ignore[attr-defined]
  elif error.status_code == 404:
    refusal = NoRoute(f"There is no route {method} {path[:80]}: /docs lists all.")
  else:
    refusal = InternalError(f"{error.detail}")
  return await _refuse(request, refusal)


def methods_of(app: fastapi.FastAPI, scope: Mapping[str, Any]) -> list[str]:
  """Lists the methods that a path takes; none where it leads nowhere."""
  found = set()
  for route in app.routes:
    match, _ = route.matches(dict(scope))
    if match != Match.NONE:
      found |= route.methods or set()  # type: ignore[attr-defined]
  if "GET" in found:
    found.add("HEAD")
  return [*sorted(found), "OPTIONS"] if found else []


async def _excuse(request: Request, error: Exception) -> Response:
  """Says only that there was a mistake; Starlette raises it once more, and `Limits` logs it."""
  del error
  return await _refuse(request, InternalError("The server made a mistake; its log says which."))
