"""How well a vocabulary suits texts: the share of unknown tokens.

unknown = UnknownTokens(tokenizer)
for record in unknown.counted(records): ...
unknown.warning("train", texts)      # "75% of the tokens of train are [UNK]. Words such as ..."
"""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from bert.text.sequence_layout import layout_of
from bert.text.tokenizer import Tokenizer

MANY = 0.05  # of the tokens: a model hardly learns from such texts
UNSUITED = "this vocabulary does not suit these texts."
REMEDY = "Check --do_lower_case, or take the vocabulary of a model for this language."
_TEXTS_SEARCHED = 100


class UnknownTokens:
  """Counts tokens of records, those around and behind the texts left out."""

  def __init__(self, tokenizer: Tokenizer):
    layout = layout_of(tokenizer)
    self._tokenizer, self._token = tokenizer, layout.unk
    self._id = tokenizer.vocab.get(layout.unk, -1)
    ends = (tokenizer.vocab.get(token) for token in (layout.cls, layout.sep))
    self._left_out = {layout.pad_id, *ends}
    self._unknown = self._total = 0

  def counted(self, records: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Yields records, whose `input_ids` are counted."""
    for record in records:
      for name, value in record.items():
        if name.startswith("input_ids"):
          is_flat = isinstance(value, list) and value and isinstance(value[0], int)
          ids = value if is_flat else np.ravel(value).tolist()
          self._unknown += ids.count(self._id)
          self._total += len(ids) - sum(map(ids.count, self._left_out))
      yield record

  def warning(self, split: str, texts: Iterable[Sequence[str] | None]) -> str | None:
    """Returns what to say where many tokens are unknown, with words of the first texts."""
    if self._unknown <= MANY * self._total:
      return None
    searched = (text for each in itertools.islice(texts, _TEXTS_SEARCHED) for text in each or ())
    words = unknown_words(self._tokenizer, " ".join(searched))
    named = f" Words such as {', '.join(words)} are unknown." if words else ""
    share = self._unknown / self._total
    return f"{share:.0%} of the tokens of {split} are {self._token}: {UNSUITED}{named} {REMEDY}"


def unknown_words(tokenizer: Tokenizer, text: str) -> list[str]:
  """Finds the first three words that have an unknown token."""
  unknown = tokenizer.vocab.get(layout_of(tokenizer).unk, -1)
  words = dict.fromkeys(text.split())
  found = (word for word in words if unknown in tokenizer.text_to_ids(word))
  return list(itertools.islice(found, 3))
