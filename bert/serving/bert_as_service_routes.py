"""bert-as-service's route of HTTP, `/encode`: vectors as the model has them, not normalised."""

from typing import Any

from fastapi import FastAPI, Request, Response

from bert.io import text_lines
from bert.serving import answer_schemas, documentation, fields, item_schemas
from bert.serving.documentation import Schema
from bert.serving.errors import InvalidInput
from bert.serving.json_bodies import Body, shown
from bert.serving.service import Service, json_answer, to_json, vectors_json

_TAG = "bert-as-service"


class EncodeRequest(Body):
  """Texts, or with `is_tokenized` lists of words; `id` comes back with the answer."""

  texts: list[Any]
  id: Any = None
  is_tokenized: bool = False
  model: str | None = None


def add_to(app: FastAPI, service: Service) -> None:
  """Adds the route to an application."""
  routes = documentation.Routes(app, _TAG)

  @routes.post("/encode", EncodeRequest, _refined, answer=answer_schemas.ENCODED)
  async def encode(request: Request) -> Response:
    """Returns a vector for each text; of two texts with ` ||| ` between them one for both."""
    body = await service.body(request, EncodeRequest)
    model = service.model(body.model, "vectors")
    items = items_of(body.texts, body.is_tokenized)
    computed = await service.compute(request, model, "vectors", items)
    vectors = b",".join(await vectors_json(computed.results))
    content = b'{"id":%b,"result":[%b],"status":200}' % (to_json(body.id), vectors)
    return json_answer(request, content, computed)


def _refined(schema: Schema, model: Any) -> Schema | None:
  if "vectors" not in model.servable.abilities:
    return None
  texts = documentation.list_of(item_schemas.TEXT)
  words = documentation.list_of(texts)
  own, required = schema["properties"], schema["required"]
  of_texts = {**own, "texts": texts, "is_tokenized": {"const": False}}
  of_words = {**own, "texts": words, "is_tokenized": {"const": True}}
  tokenized = {**schema, "properties": of_words, "required": [*required, "is_tokenized"]}
  example = {"id": 1, "texts": item_schemas.TEXTS}
  plain = documentation.with_examples({**schema, "properties": of_texts}, example)
  return {"anyOf": [plain, tokenized]}


def items_of(texts: list[Any], is_tokenized: bool) -> list[Any]:
  """Returns the items of a request; an `InvalidInput` names the text that is none."""
  try:
    return [_item(each, f"`texts`[{i}]", is_tokenized) for i, each in enumerate(texts)]
  except ValueError as error:
    raise InvalidInput(str(error)) from None


def _item(value: Any, place: str, is_tokenized: bool) -> Any:
  if is_tokenized:
    words = fields.check_texts(value, place)
    if not words:
      raise ValueError(f"{place} is {shown(value)}, but words are needed in it.")
    return {"words": words}
  text_a, text_b = text_lines.split_pair(fields.given_text(value, place))
  return text_a if text_b is None else (text_a, text_b)
