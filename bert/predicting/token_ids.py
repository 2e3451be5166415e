"""Token ids that a caller made: whether they can be those of the model's own tokenizer.

  check_own(tokenizer, [7592, 2088])     # "hello world" of BERT
  check_own(tokenizer, [15339, 1917])    # that of OpenAI, here "denise 皇": a ValueError

Clients of OpenAI's API, LangChain by default, send ids of OpenAI's vocabulary. Most are ids of
other words in BERT's, whose vectors would be meaningless.
"""

import itertools
from collections.abc import Sequence
from typing import Any

from bert.text.sequence_layout import layout_of

REMEDY = (
  "Ids of another tokenizer, such as OpenAI's, have no meaning for this model: send texts (in "
  "LangChain: OpenAIEmbeddings(check_embedding_ctx_length=False))."
)


def without_padding(ids: Sequence[int], pad_id: int) -> list[int]:
  """Returns ids without the padding at their end; one is left.

  Example:
    >>> without_padding([7, 0, 8, 0, 0], 0)
    [7, 0, 8]
  """
  last = max((place for place, each in enumerate(ids) if each != pad_id), default=0)
  return list(ids[: last + 1])


def check_own(tokenizer: Any, ids: Sequence[int]) -> None:
  """Raises a ValueError for ids without special tokens at their ends that no text has.

  With WordPiece, the words of ids that a text has become the same ids again. This finds other ids,
  unless they are few, such as those of two words.
  """
  if not hasattr(tokenizer, "wordpiece_tokenizer"):
    return
  layout = layout_of(tokenizer)
  whole = {layout.unk, layout.mask, layout.sep}
  tokens = tokenizer.convert_ids_to_tokens(ids)
  for is_special, run in itertools.groupby(tokens, whole.__contains__):
    pieces = list(run)
    if not is_special and tokenizer.tokenize(" ".join(pieces).replace(" ##", "")) != pieces:
      raise ValueError(
        f"The token ids are {' '.join(pieces)!r:.60} in this model's vocabulary, and no text has "
        f"these tokens. {REMEDY} If they are the model's own, send them with its special tokens at "
        "both ends."
      )
