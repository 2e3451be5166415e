"""JSON Schemas of what routes answer, for `/openapi.json`; `item_schemas.py` has what they take."""

from bert.serving.documentation import Schema

_NUMBER: Schema = {"type": "number"}
_WHOLE: Schema = {"type": "integer"}
_TEXT: Schema = {"type": "string"}
_TRUTH: Schema = {"type": "boolean"}
_OBJECT: Schema = {"type": "object"}


def _list(items: Schema) -> Schema:
  return {"type": "array", "items": items}


def _object(*optional: str, **properties: Schema) -> Schema:
  """Returns the schema of an object that has all of its properties but the optional ones."""
  required = [name for name in properties if name not in optional]
  return {"type": "object", "properties": properties, "required": required}


def _any(*forms: Schema) -> Schema:
  return {"anyOf": list(forms)}


_NUMBERS = _list(_NUMBER)
VECTORS = _list(_NUMBERS)

# ---------------------------------------------------------------------------------------------
# OpenAI's.

_MODEL = _object(id=_TEXT, object={"const": "model"}, created=_WHOLE, owned_by=_TEXT)
MODELS = _object(object={"const": "list"}, data=_list(_MODEL))
EMBEDDINGS = _object(
  object={"const": "list"},
  data=_list(_object(object={"const": "embedding"}, index=_WHOLE, embedding=_any(_NUMBERS, _TEXT))),
  model=_TEXT,
  usage=_object(prompt_tokens=_WHOLE, total_tokens=_WHOLE),
)

# ---------------------------------------------------------------------------------------------
# Those of text-embeddings-inference, Cohere and transformers' pipelines.

# What else a prediction has, such as the place of an entity, depends on the task; an answer of a
# task of one's own is any object.
_PREDICTIONS = _list(_any(_object(label=_TEXT, score=_NUMBER), _OBJECT))
PREDICTIONS = _any(_PREDICTIONS, _list(_PREDICTIONS))
TOKEN_VECTORS = _list(VECTORS)
_PLACE_OR_NONE = _any(_WHOLE, {"type": "null"})
TOKENS = _list(
  _list(_object(id=_WHOLE, text=_TEXT, special=_TRUTH, start=_PLACE_OR_NONE, stop=_PLACE_OR_NONE))
)
RANKS = _any(
  _list(_object("text", index=_WHOLE, score=_NUMBER, text=_TEXT)),
  _object(
    model=_TEXT,
    results=_list(
      _object("document", index=_WHOLE, relevance_score=_NUMBER, document=_object(text=_TEXT))
    ),
  ),
)
_PLACE = _object(answer=_TEXT, score=_NUMBER, start=_WHOLE, end=_WHOLE)
PIPELINE = _any(VECTORS, _NUMBERS, *PREDICTIONS["anyOf"], _list(_list(_PREDICTIONS)), _PLACE)

# ---------------------------------------------------------------------------------------------
# Those of TensorFlow Serving.

PREDICTED = _any(_object(predictions=_list({})), _object(outputs={}))
_VERSION = _object(
  version=_TEXT, state=_TEXT, status=_object(error_code=_TEXT, error_message=_TEXT)
)
STATUS = _object(model_version_status=_list(_VERSION), **_MODEL["properties"])
METADATA = _object(
  model_spec=_object(name=_TEXT, signature_name=_TEXT, version=_TEXT), metadata=_OBJECT
)

# ---------------------------------------------------------------------------------------------
# Ours.

_GUESSES = _list(_object(token=_TEXT, probability=_NUMBER))
_OF_ITEMS = {
  "answers": _OBJECT,
  "vectors": _any(_NUMBERS, VECTORS),
  "masked_words": _object("text_b", text=_TEXT, text_b=_TEXT, masks=_list(_GUESSES)),
}
SIMILARITIES = _any(_object(similarities=VECTORS), _NUMBERS)
ATTENTION = _object(tokens=_list(_TEXT), map=VECTORS)
HEALTH = _object(status={"const": "ready"})
LIVE = _object(status={"const": "live"})
INFO = _object(
  version=_TEXT,
  models=_list(_object(name=_TEXT, version=_TEXT, is_ready=_TRUTH, abilities=_list(_TEXT))),
  limits=_OBJECT,
  needs_key=_TRUTH,
)


def of_items(ability: str) -> Schema:
  """Returns the schema of the results of items, which are named as the ability is."""
  return _object(**{ability: _list(_OF_ITEMS[ability]), "model": _TEXT, "time_ms": _NUMBER})
