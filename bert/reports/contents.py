"""From a run to what its page shows: plain values by name, without HTML.

What follows from numbers alone is a table of `statistics.py`; what an example looks like says its
task (`tasks/shown.py`).
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from bert.reports import charts, intervals, statistics
from bert.reports.subject import Examples, Subject
from bert.tasks.shown import Case, Passage

MOST_CASES = 30  # with the highest loss
_MOST_OF_CELL, _MOST_FURTHER = 8, 160
_MOST_CLASSES = 12  # in a matrix; of more the most frequent confusions are listed
_MOST_CONFUSIONS = 20
_MOST_LETTERS = 1500  # of a text
_MOST_GROUPS = 40
_LONG_OPTION = 24  # letters: a longer name stands below the text, which leaves it the whole width
_MOST_NAMES = 8
_BEFORE_MARK = 300  # letters of a long text before the first that is marked


class Piece(NamedTuple):
  """A part of a text; `mark` is None where it is plain, else the label of the mark."""

  text: str
  mark: str | None = None


def contents(subject: Subject, most_cases: int = MOST_CASES) -> dict[str, Any]:
  """Returns what the page shows.

  Args:
    subject: the run.
    most_cases: examples that are shown at once; fewer make a smaller file.
  """
  found: dict[str, Any] = {
    "run": subject,
    "name": subject.folder.rstrip("/").rpartition("/")[2] or subject.folder,
    "results": subject.results,
    "headline": subject.headline,
    "value": subject.results.get(subject.headline),
    "curves": charts.learning_curves(subject.curves) if subject.curves else [],
    "examples": None,
    "interval": None,
    "cautions": cautions(subject),
  }
  examples = subject.examples if subject.examples and subject.examples.cases else None
  if examples:
    found["examples"] = of_examples(examples, most_cases)
  if found["value"] is not None:
    value = float(found["value"])
    found["interval"] = intervals.interval(subject.headline, value, examples, subject.evaluated)
  return found


def cautions(subject: Subject) -> list[str]:
  """Lists what makes the headline worth less than it seems: leakage, and tiny classes."""
  source = subject.examples.source if subject.examples else "dev"
  others = {"train", "dev", "test"} - {source}  # else a split is called as its file
  leaks = [each for each in subject.findings if each.leaks and each.leaks not in others]
  found = [f"{each.what} {each.remedy}" for each in leaks]
  rare = statistics.rare_classes(subject.examples) if subject.examples else {}
  if rare:
    names = [f"“{name}” ({count})" for name, count in rare.items()]
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    found.append(
      f"{source} has very few examples of {', '.join(names[:_MOST_NAMES])}{more}: figures for "
      "them are mostly chance."
    )
  return found


def of_examples(examples: Examples, most_cases: int) -> dict[str, Any]:
  """Returns the tables and the examples of a set that was answered."""
  shown, cases = examples.shown, examples.cases
  bins = statistics.calibration(cases)
  matrix = statistics.confusion(examples)
  numbers_of = cases if shown.number_name else []
  pairs = [(float(gold), float(said)) for case in numbers_of for gold, said in case.pairs]
  first, further = _chosen(examples, most_cases)
  labels = {label: n for n, label in enumerate(matrix.labels)} if matrix else {}
  verdict = _verdict(examples)
  # Of a model that has learned nothing, what it is sure of says nothing.
  doubtful = set() if verdict["is_constant"] else set(statistics.doubtful_labels(examples))
  typical = [n for n in examples.contributions if n not in first] if most_cases else []

  def cards(chosen: Iterable[int]) -> list[dict[str, Any]]:
    return [_card(examples, n, labels, n in doubtful) for n in chosen]

  is_scored = verdict["right"] is not None or any(case.loss is not None for case in cases)
  return {
    "source": examples.source,
    "count": len(cases),
    "total": examples.total,
    **verdict,
    "scores": dict(examples.scores),
    "num_wrong": _num_wrong(cases),
    "loss_name": shown.loss_name,
    "loss_help": shown.loss_help,
    "group_name": shown.group_name,
    "part_name": shown.part_name,
    "matrix": matrix if matrix and len(matrix.labels) <= _MOST_CLASSES else None,
    "confusions": _confusions(matrix) if matrix and len(matrix.labels) > _MOST_CLASSES else [],
    "num_classes": len(matrix.labels) if matrix else 0,
    "by_label": statistics.by_label(examples)[:_MOST_GROUPS],
    "by_length": statistics.by_length(examples) if is_scored else [],
    "by_unknown": statistics.by_unknown_words(examples) if is_scored else [],
    "by_type": statistics.scores_by_type(cases)[-_MOST_GROUPS:],
    "bins": bins,
    "calibration_error": statistics.calibration_error(bins),
    "reliability": charts.reliability(bins) if bins else "",
    "scatter": charts.scatter(pairs, shown.number_name) if pairs else "",
    "cases": cards(first),
    "typical": cards(typical),
    "further": cards(n for n in further if n not in typical),
    "doubtful": len(doubtful),
    "explained": len(examples.contributions),
  }


def _verdict(examples: Examples) -> dict[str, Any]:
  """Compares the model with the best answer that is always the same."""
  right = [case.is_right for case in examples.cases if case.is_right is not None]
  accuracy = sum(right) / len(right) if right else None
  baseline = examples.shown.baseline(examples.gold)
  share = baseline.value if baseline and baseline.is_of_examples else None
  is_constant = accuracy is not None and share is not None and accuracy <= share
  return {"right": accuracy, "baseline": baseline, "is_constant": is_constant}


def _num_wrong(cases: Sequence[Case]) -> int | None:
  """Counts wrong answers; None where some are right by degrees, or it is unknown."""
  rights = [case.is_right for case in cases]
  return None if not rights or None in rights else rights.count(False)


def _confusions(matrix: statistics.Matrix) -> list[tuple[str, str, int]]:
  """Lists the most frequent pairs of different classes."""
  found = [
    (gold, predicted, matrix.counts[row][column])
    for row, gold in enumerate(matrix.labels)
    for column, predicted in enumerate(matrix.labels)
    if row != column and matrix.counts[row][column]
  ]
  return sorted(found, key=lambda each: (-each[2], each[0], each[1]))[:_MOST_CONFUSIONS]


def _chosen(examples: Examples, most_cases: int) -> tuple[list[int], list[int]]:
  """Chooses the most wrong examples, and some more of each cell of the matrix."""
  cases = examples.cases
  first = statistics.most_wrong(cases)[:most_cases]
  rest = [n for n in statistics.worst_first(cases) if n not in first]
  counts: dict[Any, int] = {}
  further: list[int] = []
  for n in rest if most_cases and not examples.shown.number_name else []:
    cells = set(cases[n].pairs) or {None}
    if any(counts.get(cell, 0) < _MOST_OF_CELL for cell in cells) and len(further) < _MOST_FURTHER:
      further.append(n)
      counts.update({cell: counts.get(cell, 0) + 1 for cell in cells})
  return first, further


def _card(
  examples: Examples, n: int, labels: dict[str, int], is_doubtful: bool = False
) -> dict[str, Any]:
  """Returns what is shown of an example; cells are rows and columns of the matrix, `0-1`."""
  case = examples.cases[n]
  cells = dict.fromkeys(f"{labels[a]}-{labels[b]}" for a, b in case.pairs if a in labels)
  return {
    "number": examples.numbers[n],
    "case": case,
    "passages": [(each.name, *pieces_of(each)) for each in case.passages],
    "cells": " ".join(cells),
    "is_doubtful": is_doubtful,
    "contribution": examples.contributions.get(n),
    "has_long_options": any(len(each.name) > _LONG_OPTION for each in case.options),
  }


def pieces_of(passage: Passage) -> tuple[list[Piece], int]:
  """Cuts a text at its marks; of a long one the part around the first mark.

  Returns:
    The pieces, and the number of letters that are left out.

  Example:
    >>> from bert.tasks.shown import Mark
    >>> pieces_of(Passage("text", "Ada met Charles.", (Mark(0, 3, "PER"),)))
    ([Piece(text='Ada', mark='PER'), Piece(text=' met Charles.', mark=None)], 0)
  """
  text, place = passage.text, 0
  if len(text) > _MOST_LETTERS and passage.marks:
    place = max(0, min(passage.marks[0].start - _BEFORE_MARK, len(text) - _MOST_LETTERS))
  begin, end = place, min(len(text), place + _MOST_LETTERS)
  pieces: list[Piece] = []
  for mark in _inside(passage.marks, begin, end):
    pieces += [Piece(text[place : mark.start])] if place < mark.start else []
    pieces.append(Piece(text[mark.start : mark.end], mark.label))
    place = mark.end
  pieces += [Piece(text[place:end])] if place < end else []
  return pieces, len(text) - (end - begin)


def _inside(marks: Sequence, begin: int, end: int) -> Iterable:
  return (mark for mark in marks if begin <= mark.start < mark.end <= end)


# ---------------------------------------------------------------------------------------------
# The numbers of the page, for programs.


def numbers(shown: dict[str, Any]) -> dict[str, Any]:
  """Returns the numbers of `contents` as JSON."""
  run, examples = shown["run"], shown["examples"]
  found: dict[str, Any] = {
    "task": run.task,
    "headline": run.headline,
    "results": {name: float(value) for name, value in run.results.items()},
    "failure": run.failure,
    "flags": dict(run.flags),
    "versions": dict(run.versions),
    "findings": [each._asdict() for each in run.findings],
    "interval": shown["interval"] and shown["interval"]._asdict(),
    "cautions": shown["cautions"],
  }
  if examples:
    tables = ("by_label", "by_length", "by_unknown", "by_type", "bins")
    found["examples"] = {
      **{name: examples[name] for name in ("source", "count", "total", "right", "scores")},
      "baseline": examples["baseline"] and examples["baseline"].value,
      "matrix": examples["matrix"] and examples["matrix"]._asdict(),
      **{name: [each._asdict() for each in examples[name]] for name in tables},
      "calibration_error": examples["calibration_error"],
      "highest_loss": [_numbers_of(each) for each in examples["cases"]],
    }
  return found


def _numbers_of(card: dict[str, Any]) -> dict[str, Any]:
  case = card["case"]
  names = ("loss", "confidence", "is_right", "gold", "predicted")
  found = {"number": card["number"], **{name: getattr(case, name) for name in names}}
  if contribution := card["contribution"]:
    rows = [[(word.text, float(f"{word.share:.4g}")) for word in row] for row in contribution.rows]
    found["words"] = {"to": contribution.what, "rows": rows}
  return found
