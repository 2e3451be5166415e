"""TensorFlow Serving's REST interface: `:predict` by rows or by columns, status and metadata.

A fine-tuned model answers; another gives vectors. Each path may also name the version that is
served, or its label, as in `/v1/models/NAME/versions/1:predict`; the document has the shortest.
"""

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import FastAPI, Request, Response

from bert.serving import answer_schemas, documentation, fields, item_schemas, openai_routes
from bert.serving.errors import EmptyInput, InvalidInput, UnknownModel
from bert.serving.json_bodies import Body, shown
from bert.serving.service import Service, json_answer, to_json

_TAG = "TensorFlow Serving"
_SIGNATURE = "serving_default"
_LABEL = "stable"  # of the version that is served


class PredictBody(Body):
  """`instances`, a list of items, or `inputs`, lists of their texts by name."""

  instances: list[Any] | None = None
  inputs: Any = None
  signature_name: str | None = None


def add_to(app: FastAPI, service: Service) -> None:
  """Adds the routes to an application."""
  routes = documentation.Routes(app, _TAG)

  def predict_at(path, **options):
    options |= {"answer": answer_schemas.PREDICTED, "name": f"predict {path}"}

    @routes.post(path, PredictBody, _refined, **options)
    async def predict(request: Request) -> Response:
      """Answers each item of a batch."""
      return await _predict(service, request)

  def get_at(path, said_of, name, **options):
    @routes.get(path, name=f"{name} {path}", **options)
    async def get(request: Request) -> Response:
      """Says what is served."""
      return json_answer(request, to_json(said_of(model_of(service, request))))

  for version in ("", "/versions/{version:model}", "/labels/{label:model}"):
    path = "/v1/models/{name:model}" + version
    shown_where = {"include_in_schema": not version}
    predict_at(f"{path}:predict", **shown_where)
    metadata, status = answer_schemas.METADATA, answer_schemas.STATUS
    get_at(f"{path}/metadata", _metadata, "metadata", answer=metadata, **shown_where)
    get_at(path, _status, "status", answer=status, **shown_where)


def _refined(schema: documentation.Schema, model: Any) -> documentation.Schema:
  """Returns what a model takes."""
  ability = _ability(model)
  processor = model.servable.abilities[ability].processor
  signature = {"enum": [None, "", _SIGNATURE]}
  items = documentation.list_of(item_schemas.item_of(processor))
  if ability == "vectors":
    pair = documentation.list_of(item_schemas.TEXT, 2)
    forms = [item_schemas.TEXT, pair, item_schemas.ids_of(model)]
    items = documentation.list_of({"anyOf": forms})
  if ability == "masked_words":
    items = documentation.list_of(item_schemas.masked_text(processor.mask_token))
  schema["properties"] |= {"instances": items, "inputs": items, "signature_name": signature}
  schema["properties"]["inputs"] = {
    **items,
    "description": "Items; or an object that has a list of texts for each of the model's inputs.",
  }
  names, examples = ("instances", "inputs"), item_schemas.examples_of(ability, processor)
  schema["examples"] = [{name: examples} for name in names if examples]
  return documentation.with_one_of(schema, *names)


def model_of(service: Service, request: Request) -> Any:
  """Finds the model of a path; an `UnknownModel` where it, or its version, is not served."""
  asked = request.path_params
  model = service.models.find(asked["name"])
  if asked.get("version", str(model.version)) != str(model.version):
    raise UnknownModel(
      f"{model.name} has no version {shown(asked['version'])}: version {model.version} is served."
    )
  if asked.get("label", _LABEL) != _LABEL:
    raise UnknownModel(f"{model.name} has no label {shown(asked['label'])}, but {_LABEL}.")
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
  return {"model_version_status": [version], **openai_routes.model_entry(model)}


def _metadata(model: Any) -> dict[str, Any]:
  processor = model.servable.abilities[_ability(model)].processor

  def tensor(name, kind):
    shape = [{"size": "-1", "name": ""}] * (2 if name in processor.list_inputs else 1)
    return {
      "dtype": kind,
      "name": name,
      "tensor_shape": {"dim": shape, "unknown_rank": False},
    }

  signature = {
    "inputs": {name: tensor(name, "DT_STRING") for name in processor.inputs},
    "outputs": {},
    "method_name": "tensorflow/serving/predict",
  }
  return {
    "model_spec": {"name": model.name, "signature_name": "", "version": str(model.version)},
    "metadata": {"signature_def": {"signature_def": {_SIGNATURE: signature}}},
  }
