"""`POST /` in the form of transformers' pipelines, as `huggingface_hub.InferenceClient` asks."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from bert.serving import documentation, fields, item_schemas, vector_items
from bert.serving.documentation import Schema
from bert.serving.errors import InvalidInput
from bert.serving.service import Service, normalized

# What a model is asked for, the first that it can do.
_ABILITIES = ("answers", "masked_words", "vectors")


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
  answering = getattr(processor, "answering", None)
  is_of_pairs = answering is not None and "text_b" in answering.inputs
  return is_of_pairs and (answering.display != "classes" or len(answering.label_names) <= 2)


def refined(schema: Schema, model: Any) -> Schema:
  """Returns the schema of a request for a model."""
  able = model.servable.abilities
  if "answers" in able:
    schema["properties"]["inputs"] = item_schemas.one_or_list(able["answers"].processor)
    return schema
  schema = vector_items.refined("inputs", schema, model) or schema
  schema["properties"]["inputs"]["anyOf"].append(comparison_schema())
  return schema


def comparison_schema() -> Schema:
  """Returns the schema of the inputs of sentence similarity."""
  texts = documentation.list_of(item_schemas.TEXT)
  return {
    "type": "object",
    "properties": {"source_sentence": item_schemas.TEXT, "sentences": texts},
    "required": ["source_sentence", "sentences"],
  }


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
    return [fields.check_text(each, "`inputs`") for each in fields.listed(inputs)]
  except ValueError as error:
    raise InvalidInput(str(error)) from None


def _items(inputs: list[Any]) -> list[Any]:
  return [fields.item(each, f"`inputs`[{index}]") for index, each in enumerate(inputs)]


def _compared(inputs: Mapping[str, Any]) -> list[str]:
  source = fields.check_text(inputs["source_sentence"], "`inputs.source_sentence`")
  sentences = fields.check_texts(inputs.get("sentences"), "`inputs.sentences`")
  if not sentences:
    raise ValueError("`inputs.sentences` is empty, so there is nothing to compare.")
  return [source, *sentences]


def answer(model: Any, ability: str, body: Any, computed: Any) -> Any:
  """Makes the answer of a pipeline."""
  top_k = (body.parameters or {}).get("top_k")
  count = top_k if type(top_k) is int and top_k > 0 else None
  if is_comparison(body.inputs):
    return similarities(computed.results)
  if ability == "masked_words":
    found = [_guesses(each, model)[:count] for each in computed.results]
    return found if isinstance(body.inputs, list) else found[0]
  found = [each[:count] for each in predictions_of(model, computed)]
  processor = model.servable.abilities[ability].processor
  display = getattr(getattr(processor, "answering", None), "display", "values")
  if display == "answer":  # a pipeline of questions has an object
    spans = [{"answer": best["label"], **_without_label(best)} for best, *_ in found]
    return spans if isinstance(body.inputs, list) else spans[0]
  is_of_parts = display == "entities" and not isinstance(body.inputs, list)
  return found[0] if is_of_parts else found


def predictions_of(model: Any, computed: Any, raw_scores: bool = False) -> list[list[dict]]:
  """Lists the labels of each item with their scores; see `Answering.predictions`."""
  processor = model.servable.abilities["answers"].processor
  if not hasattr(processor, "answering"):  # a SavedModel of texts, whose scores stay inside
    return [[dict(answer)] for answer in computed.results]
  return [
    processor.answering.predictions(answer, processor.own_outputs(*raw), raw_scores)
    for answer, raw in zip(computed.results, computed.raw, strict=True)
  ]


def _without_label(found: Mapping[str, Any]) -> dict[str, Any]:
  return {name: value for name, value in found.items() if name != "label"}


def similarities(vectors: list[np.ndarray]) -> list[float]:
  """Returns the cosine of the first vector with each of the others."""
  first, *others = map(normalized, vectors)
  return [float(np.dot(first, each)) for each in others]


def _guesses(result: Mapping[str, Any], model: Any) -> list[dict[str, Any]]:
  """Returns the words at the first mask, as pipelines have them."""
  if not result["masks"]:
    return []
  mask = mask_token(model.servable.abilities["masked_words"])
  return [
    {
      "score": float(each["probability"]),
      "token_str": each["token"],
      "sequence": result["text"].replace(mask, each["token"].strip(), 1),
    }
    for each in result["masks"][0]
  ]
