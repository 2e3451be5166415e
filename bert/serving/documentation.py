"""Routes with the schemas of their bodies, for `/openapi.json`: what the served models really take.

Bodies are read by `Service.body` and not by FastAPI: it would take only some content types, and its
messages are lists. So each route says here what it takes. The document follows the served models:
their names, inputs, vocabularies and numbers of dimensions; a route that no model can answer is not
in it.
"""

import copy
from collections.abc import Callable, Mapping
from typing import Any

import pydantic
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from bert.serving.service import Service

Schema = dict[str, Any]
# Of a class's schema and a model, returns what that model takes; None where it takes nothing.
Refine = Callable[[Schema, Any], Schema | None]

_ERROR = {"type": "object", "properties": {"error": {}}, "required": ["error"]}
_MEANINGS = {
  200: "The answer.",
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
_OF_POST = tuple(each for each in _MEANINGS if each != 200)
_NAME = "{name}"  # of a model, in a path


class Routes:
  """Adds the routes of a dialect to an application, listed under a tag."""

  def __init__(self, app: FastAPI, tag: str):
    self._app = app
    self._tag = tag

  def get(self, path: str, **options) -> Callable:
    """Decorates the function of a route without a body; see `post` for `answer`."""
    return self._route(path, "GET", _OF_GET, options)

  def post(
    self, path: str, body_class: type[pydantic.BaseModel], refine: Refine, **options
  ) -> Callable:
    """Decorates the function of a route, which reads a body of the class itself.

    Args:
      path: of the route.
      body_class: of the body.
      refine: makes the schema of the class that of a model.
      **options: `answer`, the schema of the answer, and those of FastAPI.
    """
    bodies = self._app.state.bodies = getattr(self._app.state, "bodies", {})
    bodies[path.replace(":model}", "}")] = (body_class.model_json_schema(), refine)
    return self._route(path, "POST", _OF_POST, options)

  def _route(self, path: str, method: str, statuses: tuple[int, ...], options) -> Callable:
    schemas = dict.fromkeys(statuses, _ERROR)
    if answer := options.pop("answer", None):
      schemas = {200: answer, **schemas}
    return self._app.api_route(
      path,
      tags=[self._tag],
      methods=[method],
      response_model=None,
      responses={
        status: {
          "description": _MEANINGS[status],
          "content": {"application/json": {"schema": schema}},
        }
        for status, schema in schemas.items()
      },
      **options,
    )


# ---------------------------------------------------------------------------------------------
# The document.


def document_of(app: FastAPI, service: Service) -> Callable[[], Schema]:
  """Returns what makes the document; it is kept as long as the models stay the same."""
  kept: dict[tuple, Schema] = {}

  def make() -> Schema:
    models = [service.models.find(name) for name in service.models.names]
    for model in models:
      model.servable  # noqa: B018  a `NotReady` while it is being loaded
    state = tuple(model.version for model in models)
    if state not in kept:
      kept.clear()
      kept[state] = _document(app, models)
    return kept[state]

  return make


def _document(app: FastAPI, models: list[Any]) -> Schema:
  made = get_openapi(
    title=app.title, version=app.version, description=app.description, routes=app.routes
  )
  found: Schema = {}
  for path, operations in made["paths"].items():
    places = [(path, models)]
    if _NAME in path:
      places = [(_concrete(path, model), [model]) for model in models]
    for place, its_models in places:
      of_place = copy.deepcopy(operations)
      if "post" in of_place:
        of_class, refine = app.state.bodies[path]
        is_named = len(models) > 1 and _NAME not in path
        schema = _body(of_class, refine, its_models, is_named)
        if schema is None:
          del of_place["post"]
        else:
          content = {"application/json": {"schema": schema}}
          of_place["post"]["requestBody"] = {"required": True, "content": content}
      for method, operation in of_place.items():
        operation["operationId"] = f"{method} {place}"
      if of_place:
        found[place] = of_place
  return {**made, "paths": found}


def _concrete(path: str, model: Any) -> str:
  """Writes the path of a model: several have different inputs."""
  return path.replace(_NAME, model.name)


def _body(schema: Schema, refine: Refine, models: list[Any], is_named: bool) -> Schema | None:
  """Returns what the models take together; None where they take nothing."""
  taken = [(model, refine(copy.deepcopy(schema), model)) for model in models]
  able = [(model, its_schema) for model, its_schema in taken if its_schema is not None]
  if is_named:
    for model, its_schema in able:
      for form in its_schema.get("anyOf", [its_schema]):
        form["properties"]["model"] = {"enum": [model.name] + [None] * (len(able) == 1)}
        if len(able) > 1:
          form["required"] = [*form.get("required", ()), "model"]
          if "examples" in form:
            form["examples"] = [{**each, "model": model.name} for each in form["examples"]]
  found = [its_schema for _, its_schema in able]
  return {"anyOf": found} if len(found) > 1 else next(iter(found), None)


# ---------------------------------------------------------------------------------------------
# Parts of schemas.


def list_of(items: Mapping[str, Any], most: int | None = None) -> Schema:
  """Returns the schema of a list that is not empty."""
  limit = {"maxItems": most} if most else {}
  return {"type": "array", "items": dict(items), "minItems": 1, **limit}


def with_one_of(schema: Schema, *names: str) -> Schema:
  """Returns the schema of an object that has just one of some names; the others may be null.

  Each form keeps those examples of the object that have its name.
  """
  forms = []
  for name in names:
    properties = {**schema["properties"], **{other: {"type": "null"} for other in names}}
    properties[name] = without_null(schema["properties"][name])
    required = [*schema.get("required", ()), name]
    examples = [each for each in schema.get("examples", ()) if name in each]
    form = {**schema, "properties": properties, "required": required}
    forms.append(with_examples(form, *examples))
  return {"anyOf": forms}


def with_examples(schema: Schema, *examples: Mapping[str, Any]) -> Schema:
  """Returns the schema of an object with examples of it; without any where there are none."""
  plain = {name: value for name, value in schema.items() if name != "examples"}
  return {**plain, "examples": list(examples)} if examples else plain


def without_null(schema: Schema) -> Schema:
  """Returns the schema of a value that is there."""
  forms = [each for each in schema.get("anyOf", ()) if each != {"type": "null"}]
  return {**schema, "anyOf": forms} if forms else schema
