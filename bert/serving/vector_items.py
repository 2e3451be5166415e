"""What all routes of vectors take: texts or token ids, and how many numbers are wanted."""

from typing import Any

from bert.serving import documentation, item_schemas
from bert.serving.documentation import Schema
from bert.serving.errors import InvalidInput


def refined(name: str, schema: Schema, model: Any, ability: str = "vectors") -> Schema | None:
  """Returns the schema of a request whose texts or token ids have a name, for a model."""
  if ability not in model.servable.abilities:
    return None
  ids = item_schemas.ids_of(model)
  either = documentation.list_of({"anyOf": [item_schemas.TEXT, ids]})
  schema["properties"][name] = {"anyOf": [item_schemas.TEXT, ids, either]}
  width = model.servable.config.hidden_size
  number = {"type": "integer", "minimum": 1, "maximum": width}
  if "dimensions" in schema["properties"]:
    schema["properties"]["dimensions"] = {"anyOf": [number, {"type": "null"}]}
  return documentation.with_examples(schema, {name: item_schemas.TEXTS})


def check_dimensions(dimensions: int | None, model: Any) -> None:
  """Raises an `InvalidInput` where vectors have fewer numbers than are asked for."""
  width = model.servable.config.hidden_size
  if dimensions is not None and not 1 <= dimensions <= width:
    raise InvalidInput(
      f"`dimensions` is {dimensions}, but vectors of {model.name} have {width}: ask for 1 to "
      f"{width}."
    )
