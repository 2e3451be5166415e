"""Examples to evaluate that the model has seen in training: scores of them are too high.

  warn_of_shared({key(["It rains."])}, [["It  rains."], ["It snows."]], "dev")
  # WARNING  1 of 2 examples of dev are in the training set, too, ...

Labels do not count, nor do the numbers of spaces. Pure Python.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from absl import logging

# Above this share it is a warning: a few texts of any language are short, and occur twice.
MANY_SHARED = 0.02
# Sentences of fewer words are often equal by chance: datelines, and scores of matches.
_FEWEST_WORDS = 5


def texts_of(item: Mapping[str, Any]) -> list[str]:
  """Returns the texts of an item; none of a sentence of few words.

  Example:
    >>> texts_of({"context": "She", "choices": ["runs.", "eats."], "text_b": None})
    ['She', 'runs.', 'eats.']
    >>> texts_of({"words": ["London", "1996"]})
    []
  """
  if "words" in item:
    return [" ".join(item["words"])] if len(item["words"]) >= _FEWEST_WORDS else []
  values = (each if isinstance(each, list | tuple) else [each] for each in item.values())
  return [str(text) for texts in values for text in texts if text]


def key(texts: Iterable[str]) -> int:
  """Returns a hash of texts, the same within one process.

  Example:
    >>> key(["It  rains. "]) == key(["It rains."])
    True
  """
  return hash(tuple(" ".join(text.split()) for text in texts))


def warn_of_shared(
  seen: Collection[int], others: Sequence[Sequence[str] | None], split: str
) -> None:
  """Logs how many examples of another set are in the training set, too.

  Args:
    seen: the keys of the training set.
    others: the texts of each example of the other set; None where they are unknown.
    split: the name of that set.
  """
  shared = [texts for texts in others if texts and "".join(texts).strip() and key(texts) in seen]
  if not shared:
    return
  text = " ".join(shared[0])
  many = len(shared) > MANY_SHARED * len(others)
  logging.log(
    logging.WARNING if many else logging.INFO,
    "%d of %d examples of %s are in the training set, too, such as %r: scores are too high. "
    "Remove them from the training set.",
    *(len(shared), len(others), split, text if len(text) <= 60 else f"{text[:57]}..."),
  )
