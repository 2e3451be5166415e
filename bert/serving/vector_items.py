"""Checks of what all routes of vectors take: how many numbers are wanted, ids of tokens."""

from collections.abc import Sequence
from typing import Any

from bert.serving.errors import InvalidInput
from bert.serving.json_bodies import shown


def check_dimensions(dimensions: int | None, model: Any) -> None:
  """Raises an `InvalidInput` where vectors have fewer numbers than are asked for."""
  width = model.servable.config.hidden_size
  if dimensions is not None and not 1 <= dimensions <= width:
    raise InvalidInput(
      f"`dimensions` is {dimensions}, but vectors of {model.name} have {width}: ask for 1 to "
      f"{width}."
    )


def check_ids(items: Sequence[Any], model: Any) -> None:
  """Raises an `InvalidInput` for a token id beyond the vocabulary: it is another tokenizer's."""
  size = model.servable.config.vocab_size
  for item in items:
    for each in item if isinstance(item, list) else ():
      if not 0 <= each < size:
        raise InvalidInput(
          f"{shown(each)} is no token id of {model.name}, whose vocabulary has {size}. Ids "
          "of OpenAI's tokenizer are of no use here: send texts (in LangChain, "
          "OpenAIEmbeddings(check_embedding_ctx_length=False))."
        )
