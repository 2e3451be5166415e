"""TensorFlow Serving's REST interface: `:predict` by rows or by columns, and status.

A fine-tuned model answers; another gives vectors. Each path may also name the version that is
served, as in `/v1/models/NAME/versions/1:predict`.
"""

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import FastAPI, Request, Response

from bert.serving import documentation, fields, openai_routes
from bert.serving.errors import EmptyInput, InvalidInput, UnknownModel
from bert.serving.json_bodies import TEXTS, Body, shown
from bert.serving.service import Service, json_answer, to_json

_TAG = "TensorFlow Serving"
_SIGNATURE = "serving_default"
_PREDICTED = {"predictions": [{"label": "1", "probabilities": [0.07, 0.93]}]}
_STATUS = {"model_version_status": [{"version": "1", "state": "AVAILABLE"}]}


class PredictBody(Body, json_schema_extra={"examples": [{"instances": TEXTS}]}):
  """`instances`, a list of items, or `inputs`, lists of their texts by name."""

  instances: list[Any] | None = None
  inputs: Any = None
  signature_name: str | None = None


def add_to(app: FastAPI, service: Service) -> None:
  """Adds the routes to an application."""
  routes = documentation.Routes(app, _TAG)
  for version in ("", "/versions/{version:model}"):
    path = f"/v1/models/{{name:model}}{version}"

    @routes.post(f"{path}:predict", PredictBody, answer=_PREDICTED, name=f"predict {path}")
    async def predict(request: Request) -> Response:
      """Answers each item of a batch."""
      return await _predict(service, request)

    @routes.get(path, answer=_STATUS, name=f"status {path}")
    async def status(request: Request) -> Response:
      """Says what is served."""
      return json_answer(request, to_json(_status(model_of(service, request))))


def model_of(service: Service, request: Request) -> Any:
  """Finds the model of a path; an `UnknownModel` where it, or its version, is not served."""
  asked = request.path_params
  model = service.models.find(asked["name"])
  if asked.get("version", str(model.version)) != str(model.version):
    raise UnknownModel(
      f"{model.name} has no version {shown(asked['version'])}: version {model.version} is served."
    )
  return model


async def _predict(service: Service, request: Request) -> Response:
  body = await service.body(request, PredictBody)
  model = model_of(service, request)
  if body.signature_name not in (None, "", _SIGNATURE):
    raise InvalidInput(f"There is no signature {shown(body.signature_name)}, but {_SIGNATURE}.")
  ability = _ability(model)
  items, is_by_rows = items_of(body, model.servable.abilities[ability].processor)
  computed = await service.compute(request, model, ability, items)
  outputs = [_named(each) for each in computed.results]
  answer = {"predictions": _rows(outputs)} if is_by_rows else {"outputs": _columns(outputs)}
  return json_answer(request, to_json(answer), computed)


def _ability(model: Any) -> str:
  able = model.servable.abilities
  return next(each for each in ("answers", "vectors", *able) if each in able)


# ---------------------------------------------------------------------------------------------
# Inputs.


def items_of(body: PredictBody, processor: Any) -> tuple[list[Any], bool]:
  """Returns the items of a request, and whether they came by rows.

  Raises:
    InvalidInput: there are neither rows nor columns, or columns of different lengths.
  """
  if (body.instances is None) == (body.inputs is None):
    raise InvalidInput("Either `instances` or `inputs` is needed.")
  if body.instances is not None:
    return [_item(each, f"`instances`[{i}]") for i, each in enumerate(body.instances)], True
  columns = body.inputs
  if not isinstance(columns, Mapping):
    if not isinstance(columns, list):
      raise InvalidInput(f"`inputs` is {shown(columns)}, but lists are needed.")
    return [_item(each, f"`inputs`[{i}]") for i, each in enumerate(columns)], False
  lists = {name: _column(value, name) for name, value in columns.items()}
  lengths = {len(value) for value in lists.values()}
  if len(lengths) > 1:
    raise InvalidInput("The lists in `inputs` have different lengths.")
  if not lists:
    raise EmptyInput(f"`inputs` is empty, but {', '.join(processor.inputs)} is needed.")
  rows = zip(*lists.values(), strict=True)
  return [dict(zip(lists, each, strict=True)) for each in rows], False


def _column(value: Any, name: str) -> list[Any]:
  if not isinstance(value, list):
    raise InvalidInput(f"`inputs.{name}` is {shown(value)}, but a list is needed.")
  return [_text(each) for each in value]


def _item(value: Any, place: str) -> Any:
  """Returns an item as a `Predictor` takes it."""
  value = _text(value)
  if isinstance(value, Mapping):
    return {name: _text(each) for name, each in value.items()}
  if not isinstance(value, str | list) or value == []:
    raise InvalidInput(f"{place} is {shown(value)}, but a text or an object is needed.")
  try:
    if isinstance(value, list):
      return fields.ids(value) or fields.item([_text(each) for each in value], place)
    return fields.given_text(value, place)
  except ValueError as error:
    raise InvalidInput(str(error)) from None


def _text(value: Any) -> Any:
  """Decodes `{"b64": ...}`, which texts may be written as."""
  if not isinstance(value, Mapping) or set(value) != {"b64"}:
    return value
  try:
    return base64.b64decode(value["b64"], validate=True).decode()
  except (TypeError, ValueError, binascii.Error):
    raise InvalidInput(f"{shown(value['b64'])} is no text of UTF-8 in base64.") from None


# ---------------------------------------------------------------------------------------------
# Outputs.


def _named(result: Any) -> Mapping[str, Any]:
  return result if isinstance(result, Mapping) else {"vectors": result}


def _rows(outputs: Sequence[Mapping[str, Any]]) -> list[Any]:
  """Returns an object for each item; where a model has one output, its values alone."""
  return [next(iter(each.values())) if len(each) == 1 else each for each in outputs]


def _columns(outputs: Sequence[Mapping[str, Any]]) -> Any:
  columns = {name: [each[name] for each in outputs] for name in outputs[0]}
  return next(iter(columns.values())) if len(columns) == 1 else columns


# ---------------------------------------------------------------------------------------------
# What is served.


def _status(model: Any) -> dict[str, Any]:
  """The states of a model's versions; with what OpenAI's clients ask at the same path."""
  state = "AVAILABLE" if model.is_ready else "LOADING"
  version = {
    "version": str(model.version),
    "state": state,
    "status": {"error_code": "OK", "error_message": ""},
  }
  return {"model_version_status": [version], **openai_routes.model_entry(model.name)}
