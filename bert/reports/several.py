"""An example as several runs answered it: what is shown of it once, and what of each answer."""

import itertools
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from bert.reports.contents import Piece, pieces_of
from bert.tasks.shown import Case, Passage


class Answer(NamedTuple):
  """What one or several runs answered."""

  runs: str  # their names
  predicted: str
  is_right: bool | None
  confidence: float | None  # the mean of these runs, as that of the loss
  loss: float | None


class Text(NamedTuple):
  """A passage. Its `runs` are "" where it is the same for all of them."""

  name: str
  runs: str
  pieces: Sequence[Piece]
  left_out: int  # letters


def card(number: int, answers: Sequence[tuple[str, Sequence[Case]]]) -> dict[str, Any]:
  """Returns what is shown of an example.

  Args:
    number: its place in the file, from 1.
    answers: names of runs, and their cases, in which the same was answered.
  """
  named = [(runs, cases[0]) for runs, cases in answers]
  return {
    "number": number,
    "texts": [Text(each.name, runs, *pieces_of(each)) for runs, each in _passages(named)],
    "gold": named[0][1].gold,
    "answers": [_answer(runs, cases) for runs, cases in answers],
  }


def _answer(runs: str, cases: Sequence[Case]) -> Answer:
  one = cases[0]
  means = (mean([each.confidence for each in cases]), mean([each.loss for each in cases]))
  predicted = one.predicted or ", ".join(f"{name} {value}" for name, value in one.values.items())
  return Answer(runs, predicted, one.is_right, *means)


def mean(values: Sequence[float | None]) -> float | None:
  """Computes a mean; None where a value is unknown.

  Example:
    >>> mean([0.5, 1.0]), mean([0.5, None])
    (0.75, None)
  """
  known = [each for each in values if each is not None]
  return sum(known) / len(known) if len(known) == len(values) else None


def _passages(named: Sequence[tuple[str, Case]]) -> Iterable[tuple[str, Passage]]:
  """Yields passages with the names of the runs that they are of."""
  for group in itertools.zip_longest(*(case.passages for _, case in named)):
    if all(each == group[0] for each in group):
      yield "", group[0]
    else:
      yield from ((runs, each) for (runs, _), each in zip(named, group, strict=True) if each)
