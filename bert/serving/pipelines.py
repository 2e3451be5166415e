"""`POST /` in the form of transformers' pipelines, as `huggingface_hub.InferenceClient` asks."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import numpy as np
import pydantic

from bert.predicting.processors import named_texts
from bert.serving import documentation, fields, item_schemas, vector_items
from bert.serving.documentation import Schema
from bert.serving.errors import InvalidInput
from bert.serving.json_bodies import Body, StrictBody
from bert.serving.service import Service, normalized

# What a model is asked for, the first that it can do.
_ABILITIES = ("answers", "masked_words", "vectors")


FromTheEnd = Literal["right", "Right"] | None  # where long texts are truncated; not at their start


class TruncatingBody(Body):
  """What requests have in common whose texts may be too long, and are truncated by default."""

  truncate: bool | None = True
  truncation_direction: FromTheEnd = None
  model: str | None = None


class Parameters(StrictBody):
  """Of what pipelines can be asked for, what the server does; it refuses the rest."""

  top_k: Annotated[fields.WholeNumber, pydantic.Field(ge=1)] | None = None
  # A word has the tag of its first piece, and entities are made of words.
  aggregation_strategy: Literal["simple", "first"] | None = None


def model_and_ability(service: Service, body: Any) -> tuple[Any, str]:
  """Finds the model of a request, and what it is asked for."""
  wanted = ("vectors",) if is_comparison(body.inputs) else _ABILITIES
  model = service.any_model(body.model, wanted)
  able = model.servable.abilities
  ability = next((each for each in wanted if each in able), wanted[-1])
  if ability == "masked_words" and not _has_mask(able, body.inputs):
    ability = "vectors"
  return service.model(model.name, ability), ability


def ranks(processor: Any) -> bool:
  """Tells whether a fine-tuned model may say how well one text answers another."""
  decoder = processor.decoder
  if decoder is None or "text_b" not in decoder.inputs:
    return False
  least = 1 if processor.has_scores else 2  # of a class alone the probability is 1
  return decoder.display != "classes" or least <= len(decoder.label_names) <= 2


def refined(schema: Schema, model: Any) -> Schema | None:
  """Returns the schema of a request for a model; None where it is none of pipelines."""
  able = model.servable.abilities
  schema.pop("$defs")
  schema["properties"]["parameters"] = {"anyOf": [Parameters.model_json_schema(), {"type": "null"}]}
  if "answers" in able:
    processor = able["answers"].processor
    schema["properties"]["inputs"] = item_schemas.one_or_list(processor)
    example = item_schemas.example_of(processor)
    return documentation.with_examples(schema, *([{"inputs": example}] if example else []))
  if "vectors" in able:
    schema = vector_items.refined("inputs", schema, model)
    schema["properties"]["inputs"]["anyOf"].append(comparison_schema())
    return schema
  if "masked_words" not in able:
    return None
  processor = able["masked_words"].processor
  schema["properties"]["inputs"] = item_schemas.masked_text(processor.mask_token)
  [example] = item_schemas.examples_of("masked_words", processor)
  return documentation.with_examples(schema, {"inputs": example})


def comparison_schema() -> Schema:
  """Returns the schema of the inputs of sentence similarity."""
  texts = documentation.list_of(item_schemas.TEXT)
  return {
    "type": "object",
    "properties": {"source_sentence": item_schemas.TEXT, "sentences": texts},
    "required": ["source_sentence", "sentences"],
  }


def comparison_example() -> dict[str, Any]:
  """Returns such inputs."""
  source, *others = item_schemas.TEXTS
  return {"source_sentence": source, "sentences": others}


def is_comparison(inputs: Any) -> bool:
  """Tells whether a request is one of sentence similarity."""
  return isinstance(inputs, Mapping) and "source_sentence" in inputs


def _has_mask(abilities: Mapping[str, Any], inputs: Any) -> bool:
  """Tells whether a text has a mask; a model that guesses words also gives vectors."""
  if "vectors" not in abilities:
    return True
  return isinstance(inputs, str) and mask_token(abilities["masked_words"]) in inputs


def mask_token(ability: Any) -> str:
  """Returns what stands for a masked word."""
  return getattr(ability.processor, "mask_token", "[MASK]")


def items_of(ability: str, inputs: Any) -> list[Any]:
  """Returns the items in a request's inputs; an `InvalidInput` says what does not fit."""
  try:
    if is_comparison(inputs):
      return _compared(inputs)
    if ability == "answers":
      return [fields.item(inputs, "`inputs`")] if not isinstance(inputs, list) else _items(inputs)
    return [fields.given_text(each, "`inputs`") for each in fields.listed(inputs)]
  except ValueError as error:
    raise InvalidInput(str(error)) from None


def _items(inputs: list[Any]) -> list[Any]:
  return [fields.item(each, f"`inputs`[{index}]") for index, each in enumerate(inputs)]


def _compared(inputs: Mapping[str, Any]) -> list[str]:
  source = fields.given_text(inputs["source_sentence"], "`inputs.source_sentence`")
  sentences = fields.check_texts(inputs.get("sentences"), "`inputs.sentences`")
  if not sentences:
    raise ValueError("`inputs.sentences` is empty, so there is nothing to compare.")
  return [source, *sentences]


def answer(model: Any, ability: str, body: Any, computed: Any) -> Any:
  """Makes the answer of a pipeline."""
  count = body.parameters.top_k if body.parameters else None
  if is_comparison(body.inputs):
    return similarities(computed.results)
  if ability == "masked_words":
    pairs = zip(computed.results, computed.raw, strict=True)
    guesses = [_guesses(result, raw, model, count) for result, raw in pairs]
    return guesses if isinstance(body.inputs, list) else guesses[0]
  found = [each[:count] for each in predictions_of(model, computed)]
  processor = model.servable.abilities[ability].processor
  display = getattr(processor.decoder, "display", "values")
  if display == "answer":  # a pipeline of questions has an object
    spans = [{"answer": best["label"], **_without_label(best)} for best, *_ in found]
    return spans if isinstance(body.inputs, list) else spans[0]
  is_of_parts = display == "entities" and not isinstance(body.inputs, list)
  return found[0] if is_of_parts else found


def as_asked(asked: Any, model: Any, ability: str, items: Sequence[Any]) -> Sequence[Any]:
  """Returns items that are refused where they are too long, if a request has `truncate: false`."""
  if getattr(asked, "truncate", None) is not False:
    return items
  processor = model.servable.abilities[ability].processor
  try:
    return [{**_named(ability, processor, each), "truncate": False} for each in items]
  except ValueError as error:
    raise InvalidInput(str(error)) from None


def _named(ability: str, processor: Any, item: Any) -> Mapping[str, Any]:
  if ability == "answers":
    return named_texts(processor, item)
  if not ability.endswith("vectors"):
    raise ValueError(f"Texts with {ability.replace('_', ' ')} are truncated: leave out `truncate`.")
  return {"text" if isinstance(item, str) else "token_ids": item}


def check_raw_scores(model: Any, raw_scores: bool) -> None:
  """Raises an `InvalidInput` for `raw_scores` that a fine-tuned model does not have."""
  processor = model.servable.abilities["answers"].processor
  if raw_scores and not processor.has_scores:
    raise InvalidInput(
      f"{model.name} is a SavedModel, which keeps its scores to itself: leave out `raw_scores`."
    )
  if raw_scores and not processor.decoder.has_raw_scores:
    raise InvalidInput(f"The scores of {model.name} have no raw form: leave out `raw_scores`.")


def predictions_of(model: Any, computed: Any, raw_scores: bool = False) -> list[list[dict]]:
  """Lists the labels of each item with their scores; see `Decoder.predictions`."""
  processor = model.servable.abilities["answers"].processor
  if processor.decoder is None:
    return [[dict(answer)] for answer in computed.results]
  return [
    processor.decoder.predictions(answer, raw[1], raw_scores)
    for answer, raw in zip(computed.results, computed.raw, strict=True)
  ]


def _without_label(found: Mapping[str, Any]) -> dict[str, Any]:
  return {name: value for name, value in found.items() if name != "label"}


def similarities(vectors: list[np.ndarray]) -> list[float]:
  """Returns the cosine of the first vector with each of the others."""
  first, *others = map(normalized, vectors)
  return [float(np.dot(first, each)) for each in others]


def _guesses(result: Mapping[str, Any], raw: Any, model: Any, count: int | None) -> list[Any]:
  """Returns the words at the only mask, as pipelines have them; of several a list for each."""
  mask = mask_token(model.servable.abilities["masked_words"])
  _, [outputs] = raw
  before, *after = result["text"].split(mask)
  found = []
  for place, (guesses, ids) in enumerate(zip(result["masks"], outputs["ids"], strict=False)):
    left, right = mask.join([before, *after[:place]]), mask.join(after[place:])
    words = [
      {
        "score": float(each["probability"]),
        "token": int(number),
        "token_str": each["token"],
        "sequence": f"{left}{each['token'].strip()}{right}",
      }
      for each, number in zip(guesses, ids, strict=False)
    ]
    found.append(words[:count])
  return found[0] if len(found) == 1 else found
