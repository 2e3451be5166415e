"""Routes with the schema of their bodies, for `/openapi.json`.

Bodies are read by `Service.body` and not by FastAPI: it would take only some content types, and its
messages are lists. So each route says here what it takes.
"""

from collections.abc import Callable, Mapping
from typing import Any

import pydantic
from fastapi import FastAPI

_ERROR = {"type": "object", "properties": {"error": {}}, "required": ["error"]}
_MEANINGS = {
  400: "The body is no JSON, or there is nothing to compute.",
  401: "The key is missing or wrong.",
  403: "A page of another site asks.",
  404: "The model is unknown.",
  408: "The body did not come in time.",
  413: "The body is too large, or has too many texts.",
  422: "The model does not take the input.",
  424: "The model failed.",
  429: "Too much is queued; Retry-After says when to ask again.",
  503: "The model is not ready, or its process was lost.",
}
_OF_GET = (401, 404, 503)


class Routes:
  """Adds the routes of a dialect to an application, listed under a tag."""

  def __init__(self, app: FastAPI, tag: str):
    self._app = app
    self._tag = tag

  def get(self, path: str, **options) -> Callable:
    """Decorates the function of a route without a body."""
    return self._route(path, "GET", _OF_GET, {}, options)

  def post(self, path: str, body_class: type[pydantic.BaseModel], **options) -> Callable:
    """Decorates the function of a route, which reads a body of the class itself."""
    schema = body_class.model_json_schema()
    content = {"application/json": {"schema": schema}}
    return self._route(
      path, "POST", _MEANINGS, {"requestBody": {"required": True, "content": content}}, options
    )

  def _route(self, path, method, statuses, extra: Mapping[str, Any], options) -> Callable:
    error = {"application/json": {"schema": _ERROR}}
    return self._app.api_route(
      path,
      tags=[self._tag],
      methods=[method],
      response_model=None,
      openapi_extra=dict(extra) or None,
      responses={each: {"description": _MEANINGS[each], "content": error} for each in statuses},
      **options,
    )
