"""`POST /` in the form of transformers' pipelines, as `huggingface_hub.InferenceClient` asks.

A model answers as the pipeline that fits it; of several models one is named by `/models/NAME`.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import pydantic
from fastapi import FastAPI, Request, Response

from bert.serving import documentation, fields, json_bodies, tei_routes
from bert.serving.errors import InvalidInput
from bert.serving.json_bodies import TEXTS, StrictBody
from bert.serving.service import Service, json_answer, to_json

_TAG = "Pipelines"
# What a model is asked for, the first that it can do.
_ABILITIES = ("answers", "masked_words", "vectors")


class Parameters(StrictBody):
  """Of what pipelines can be asked for, what the server does; it refuses the rest."""

  top_k: Annotated[fields.WholeNumber, pydantic.Field(ge=1)] | None = None
  # A word has the tag of its first piece, and entities are made of words.
  aggregation_strategy: Literal["simple", "first"] | None = None


class PipelineRequest(
  tei_routes.TruncatingBody, json_schema_extra={"examples": [{"inputs": TEXTS[0]}]}
):
  """What transformers' pipelines take."""

  inputs: Any
  # Without references, which lead nowhere from within the document of routes.
  parameters: Annotated[
    Parameters | None, pydantic.WithJsonSchema(Parameters.model_json_schema())
  ] = None
  normalize: bool | None = True
  prompt_name: None = None
  dimensions: fields.WholeNumber | None = None


def add_to(app: FastAPI, service: Service) -> None:
  """Adds the routes to an application."""
  routes = documentation.Routes(app, _TAG)
  answer = [[{"label": "1", "score": 0.93}]]

  @routes.post("/", PipelineRequest, answer=answer)
  async def pipeline(request: Request) -> Response:
    """Answers as the pipeline of transformers that fits the model."""
    return await _pipeline(service, request, await service.body(request, PipelineRequest))

  @routes.post("/models/{name:model}", PipelineRequest, answer=answer)
  async def pipeline_of_model(request: Request) -> Response:
    """Answers as the pipeline of transformers that fits a model: one of several."""
    body = await service.body(request, PipelineRequest)
    named = body.model_copy(update={"model": request.path_params["name"]})
    return await _pipeline(service, request, named)


async def _pipeline(service: Service, request: Request, body: PipelineRequest) -> Response:
  is_comparison = isinstance(body.inputs, Mapping) and "source_sentence" in body.inputs
  model, ability = _model_and_ability(service, body, is_comparison)
  if ability == "vectors" and not is_comparison:
    of_vectors = {**body.model_dump(), "model": model.name}
    asked = json_bodies.checked(tei_routes.EmbedRequest, of_vectors)
    return await tei_routes.embed(service, request, asked)
  try:
    items: Sequence[Any] = _compared(body.inputs) if is_comparison else _items(ability, body.inputs)
  except ValueError as error:
    raise InvalidInput(str(error)) from None
  items = tei_routes.as_asked(body, model, ability, items)
  computed = await service.compute(request, model, ability, items)
  if is_comparison:
    answer: Any = tei_routes.similarities(computed.results)
  else:
    make = _words if ability == "masked_words" else _predictions
    answer = make(model, body, computed)
  return json_answer(request, to_json(answer), computed)


def _model_and_ability(
  service: Service, body: PipelineRequest, is_comparison: bool
) -> tuple[Any, str]:
  """Finds the model of a request, and what it is asked for."""
  wanted = ("vectors",) if is_comparison else _ABILITIES
  model = service.any_model(body.model, lambda able: set(wanted) & set(able))
  able = model.servable.abilities
  ability = next((each for each in wanted if each in able), wanted[-1])
  if ability == "masked_words" and "vectors" in able:  # it gives vectors of texts without a mask
    mask = able[ability].processor.mask_token
    ability = ability if isinstance(body.inputs, str) and mask in body.inputs else "vectors"
  return service.model(model.name, ability), ability


def _items(ability: str, inputs: Any) -> list[Any]:
  """Returns the items in a request's inputs; a ValueError says what does not fit."""
  if ability == "answers" and isinstance(inputs, list):
    return [fields.item(each, f"`inputs`[{index}]") for index, each in enumerate(inputs)]
  if ability == "answers":
    return [fields.item(inputs, "`inputs`")]
  texts = inputs if isinstance(inputs, list) else [inputs]
  return [fields.given_text(each, "`inputs`") for each in texts]


def _compared(inputs: Mapping[str, Any]) -> list[str]:
  source = fields.given_text(inputs["source_sentence"], "`inputs.source_sentence`")
  sentences = fields.check_texts(inputs.get("sentences"), "`inputs.sentences`")
  if not sentences:
    raise ValueError("`inputs.sentences` is empty, so there is nothing to compare.")
  return [source, *sentences]


# ---------------------------------------------------------------------------------------------
# Answers.


def _predictions(model: Any, body: PipelineRequest, computed: Any) -> list[Any] | dict[str, Any]:
  count = body.parameters.top_k if body.parameters else None
  found: list[Any] = [each[:count] for each in tei_routes.predictions_of(model, computed)]
  display = getattr(model.servable.abilities["answers"].processor.decoder, "display", "values")
  if display == "answer":  # a pipeline of questions has an object
    found = [{"answer": best.pop("label"), **best} for best, *_ in found]
  is_alone = display in ("answer", "entities") and not isinstance(body.inputs, list)
  return found[0] if is_alone else found


def _words(model: Any, body: PipelineRequest, computed: Any) -> list[Any]:
  """Returns the words at the only mask of a text; of several masks a list for each."""
  count = body.parameters.top_k if body.parameters else None
  mask = model.servable.abilities["masked_words"].processor.mask_token
  found = [
    _guesses(result, outputs["ids"], mask, count)
    for result, (_, [outputs]) in zip(computed.results, computed.raw, strict=True)
  ]
  return found if isinstance(body.inputs, list) else found[0]


def _guesses(result: Mapping[str, Any], ids: Any, mask: str, count: int | None) -> list[Any]:
  before, *after = result["text"].split(mask)
  found = []
  for place, (guesses, numbers) in enumerate(zip(result["masks"], ids, strict=False)):
    left, right = mask.join([before, *after[:place]]), mask.join(after[place:])
    words = [
      {
        "score": float(each["probability"]),
        "token": int(number),
        "token_str": each["token"],
        "sequence": f"{left}{each['token'].strip()}{right}",
      }
      for each, number in zip(guesses, numbers, strict=False)
    ]
    found.append(words[:count])
  return found[0] if len(found) == 1 else found
