"""Token ids that a caller made: whether they can be those of the model's own tokenizer.

  check_own(tokenizer, [7592, 2088])     # "hello world" of BERT
  check_own(tokenizer, [15339, 1917])    # that of OpenAI, here "denise 皇": a ValueError

Clients of OpenAI's API, LangChain by default, send ids of OpenAI's vocabulary. Most are ids of
other words in BERT's, whose vectors would be meaningless.
"""

import collections
import functools
import itertools
import unicodedata
from collections.abc import Sequence
from typing import Any

from bert.text.sequence_layout import layout_of

REMEDY = (
  "Ids of another tokenizer, such as OpenAI's, have no meaning for this model: send texts (in "
  "LangChain: OpenAIEmbeddings(check_embedding_ctx_length=False))."
)
# Shares of the tokens of a vocabulary: those of its only script, and those of a rare one.
_MAIN, _RARE = 0.8, 0.03
_FEW = 4  # ids
_EAST_ASIAN = ("BOPOMOFO", "HANGUL", "HIRAGANA", "KATAKANA")  # which texts mix with CJK
# No letters, and letters that stand beside those of any script, as in formulas.
_ANYWHERE = ("", "GREEK", "MICRO", "FEMININE", "MASCULINE", "MODIFIER", "SUPERSCRIPT")


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
  unless they are few, such as those of two words. Of so few, where nearly all of a vocabulary is of
  one script, a rare letter of another one beside it is possible, but far more often a mistake.
  """
  if not hasattr(tokenizer, "wordpiece_tokenizer"):
    return
  layout = layout_of(tokenizer)
  whole = {layout.unk, layout.mask, layout.sep}
  tokens = tokenizer.convert_ids_to_tokens(ids)
  for is_special, run in itertools.groupby(tokens, whole.__contains__):
    pieces = list(run)
    if not is_special and tokenizer.tokenize(" ".join(pieces).replace(" ##", "")) != pieces:
      raise _refusal(pieces, "and no text has these tokens")
  if len(tokens) > _FEW or not whole.isdisjoint(tokens):
    return
  scripts = {script: each for each in tokens if (script := _script(each)) not in _ANYWHERE}
  if len(scripts) > 1 and max((shares := _shares(tokenizer)).values()) >= _MAIN:
    for script, token in scripts.items():
      if shares[script] < _RARE:
        raise _refusal(tokens, f"with {token!r} of a script that is rare there")


def _refusal(tokens: Sequence[str], why: str) -> ValueError:
  return ValueError(
    f"The token ids are {' '.join(tokens)!r:.60} in this model's vocabulary, {why}. {REMEDY} If "
    "they are the model's own, send them with its special tokens at both ends."
  )


@functools.lru_cache(maxsize=8)
def _shares(tokenizer: Any) -> collections.Counter:
  """Returns script -> its share of the tokens."""
  counts = collections.Counter(map(_script, tokenizer.vocab))
  return collections.Counter({name: count / counts.total() for name, count in counts.items()})


def _script(token: str) -> str:
  """Returns the script of a token's first letter; "" without one.

  Example:
    >>> _script("##ing"), _script("皇"), _script("か"), _script("[CLS]"), _script("7")
    ('LATIN', 'CJK', 'CJK', 'LATIN', '')
  """
  letter = next(filter(str.isalpha, token), "")
  name = unicodedata.name(letter, "").partition(" ")[0] if letter else ""
  return "CJK" if name in _EAST_ASIAN else name
