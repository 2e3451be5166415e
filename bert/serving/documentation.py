"""Routes with what they take and give, for `/openapi.json`.

Bodies are read by `Service.body` and not by FastAPI: it would take only some content types, and its
messages are lists. So each route names the class of its body here, and an example of its answer.
"""

import re
from collections.abc import Callable
from typing import Any

import pydantic
from fastapi import FastAPI

_ERROR = {"type": "object", "properties": {"error": {}}, "required": ["error"]}
_MEANINGS = {
  400: "The body is no JSON, or there is nothing to compute.",
  401: "The key is missing or wrong.",
  403: "A page of another site asks, or the Host is not one of this server.",
  404: "The model is unknown.",
  408: "The body did not come in time.",
  413: "The body is too large, has too many texts, or takes too long to compute.",
  415: "The Content-Encoding is not gzip.",
  422: "The model does not take the input.",
  424: "The model failed.",
  429: "Too much is queued; Retry-After says when to ask again.",
  503: "The model is not ready, or its process was lost.",
}
_OF_GET = (401, 403, 404, 503)


class Routes:
  """Adds the routes of a dialect to an application, listed under a tag."""

  def __init__(self, app: FastAPI, tag: str):
    self._app = app
    self._tag = tag

  def get(self, path: str, answer: Any, **options) -> Callable:
    """Decorates the function of a route without a body; `answer` is an example of its answer."""
    return self._route(path, "GET", _OF_GET, answer, options)

  def post(self, path: str, body_class: type[pydantic.BaseModel], answer: Any, **options):
    """Decorates the function of a route, which reads a body of the class itself.

    The class has examples of bodies in its schema; `answer` is an example of the answer.
    """
    content = {"application/json": {"schema": body_class.model_json_schema()}}
    options["extra"] = {"requestBody": {"required": True, "content": content}}
    return self._route(path, "POST", tuple(_MEANINGS), answer, options)

  def _route(self, path: str, method: str, errors: tuple[int, ...], answer: Any, options):
    responses: dict[int | str, dict[str, Any]] = {
      status: {
        "description": _MEANINGS[status],
        "content": {"application/json": {"schema": _ERROR}},
      }
      for status in errors
    }
    content = {"application/json": {"example": answer}}
    parameters = [
      {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
      for name in re.findall(r"{(\w+)", path)
    ]
    extra = {**options.pop("extra", {}), "parameters": parameters}
    return self._app.api_route(
      path,
      tags=[self._tag],
      methods=[method],
      response_model=None,
      openapi_extra=extra,
      responses={200: {"description": "The answer.", "content": content}, **responses},
      **options,
    )
