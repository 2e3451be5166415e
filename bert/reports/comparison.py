"""The page that compares two runs of one task.

  html = comparison.render(first, second)

What is above the examples follows from the runs' folders; what compares answers needs both runs to
have answered the same examples.
"""

import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from bert.figures import training_curves
from bert.reports import charts, html_page, paired, several, statistics
from bert.reports.subject import Examples, Subject

# Flags that differ between any two runs, or follow from others.
_OF_EACH_RUN = ("output_dir", "num_train_steps", "num_warmup_steps")


class Row(NamedTuple):
  """A value of both runs; None, or "" of a flag, where one has none."""

  name: str
  first: Any
  second: Any
  difference: float | None = None  # second - first, of numbers
  size: int | None = None  # examples


def render(first: Subject, second: Subject) -> str:
  """Makes the page."""
  contents_of = functools.partial(contents, first, second)
  return html_page.page("comparison.html", contents_of, numbers)


def contents(first: Subject, second: Subject, most_cases: int) -> dict[str, Any]:
  """Returns what the page shows.

  Args:
    first: a run.
    second: another one of the same task.
    most_cases: examples in each of two lists.
  """
  runs = (first, second)
  results = [{name: float(value) for name, value in run.results.items()} for run in runs]
  curves = [run.curves for run in runs if run.curves]
  names = training_curves.run_names([run.folder for run in runs])
  return {
    "runs": runs,
    "task": first.task,
    "names": names,
    "headline": _row(
      first.headline, results[0].get(first.headline), results[1].get(first.headline)
    ),
    "results": _rows(*results),
    "spelled": [dict(run.results) for run in runs],
    "flags": _differing(first.flags, second.flags),
    "versions": _differing(first.versions, second.versions),
    "curves": charts.learning_curves(*curves),
    "missing": _missing(first, second),
    "examples": _of_examples(first.examples, second.examples, names, most_cases),
  }


def _rows(first: Mapping[str, float], second: Mapping[str, float]) -> list[Row]:
  """Pairs numbers by their names, those of the first first."""
  names = dict.fromkeys([*first, *second])
  return [_row(name, first.get(name), second.get(name)) for name in names]


def _row(name: str, first: float | None, second: float | None, size: int | None = None) -> Row:
  difference = None if first is None or second is None else second - first
  return Row(name, first, second, difference, size)


def _differing(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[Row]:
  """Lists what two runs have different values of, as words."""
  found = []
  for name in dict.fromkeys([*first, *second]):
    one, other = (html_page.flag_value(each.get(name)) for each in (first, second))
    if one != other and name not in _OF_EACH_RUN:
      found.append(Row(name, one, other))
  return found


def _missing(first: Subject, second: Subject) -> list[tuple[str, str]]:
  """Lists what the page lacks: the folder of a run, "" of both, and a sentence."""
  found = [(run.folder, each) for run in (first, second) for each in run.missing]
  if first.examples and second.examples and not _is_comparable(first.examples, second.examples):
    found.append(("", "The runs answered different examples, so their answers are not compared."))
  return found


def _is_comparable(first: Examples, second: Examples) -> bool:
  return bool(first.cases) and paired.is_same_set(first, second)


# ---------------------------------------------------------------------------------------------
# Examples.


def _of_examples(
  first: Examples | None, second: Examples | None, names: Sequence[str], most_cases: int
) -> dict[str, Any] | None:
  """Compares the answers; None where the runs did not answer the same examples."""
  if not (first and second and _is_comparable(first, second)):
    return None
  pairs = list(zip(first.cases, second.cases, strict=True))
  counts = paired.counts_of(pairs)
  ways = {way: paired.changed(pairs, way) for way in (True, False)}

  def card(n: int) -> dict[str, Any]:
    answers = [(name, [case]) for name, case in zip(names, pairs[n], strict=True)]
    return several.card(first.numbers[n], answers)

  return {
    "source": first.source,
    "count": len(pairs),
    "total": first.total,
    "scores": _rows(first.scores, second.scores),
    "counts": counts,
    "p_value": paired.mcnemar(counts) if counts else None,
    "differences": paired.differences(pairs, first.shown.loss_name),
    "loss_name": first.shown.loss_name,
    "group_name": first.shown.group_name,
    "part_name": first.shown.part_name,
    "became_wrong": [card(n) for n in ways[True][:most_cases]],
    "became_right": [card(n) for n in ways[False][:most_cases]],
    "num_became_wrong": len(ways[True]),
    "num_became_right": len(ways[False]),
    **_by_group(first, second),
  }


def _by_group(first: Examples, second: Examples) -> dict[str, list[Row]]:
  """Lists results of both by label, and the F1 of both by type."""
  tables = [{each.name: each for each in statistics.by_label(run)} for run in (first, second)]
  groups = [(each, tables[1][name]) for name, each in tables[0].items()]
  types = [statistics.scores_by_type(each.cases) for each in (first, second)]
  found = [{each.name: each for each in scores} for scores in types]
  names = sorted(name for name in found[0].keys() | found[1].keys() if name != "all")
  both = [(name, found[0].get(name), found[1].get(name)) for name in [*names, "all"]]
  return {
    "by_label": [_row(a.name, a.right, b.right, a.size) for a, b in groups],
    "by_type": [
      _row(name, a.f1 if a else 0.0, b.f1 if b else 0.0, (a or b).support)
      for name, a, b in both
      if a or b
    ],
  }


# ---------------------------------------------------------------------------------------------
# The numbers of the page, for programs.


def numbers(shown: dict[str, Any]) -> dict[str, Any]:
  """Returns the numbers of `contents` as JSON."""
  examples = shown["examples"]
  found: dict[str, Any] = {
    "task": shown["task"],
    "runs": [run.folder for run in shown["runs"]],
    "headline": shown["headline"].name,
    **{name: _json_of(shown[name]) for name in ("results", "flags", "versions")},
  }
  if examples:
    tables = ("scores", "differences", "by_label", "by_type")
    found["examples"] = {
      **{name: examples[name] for name in ("source", "count", "total", "p_value")},
      "counts": examples["counts"] and examples["counts"]._asdict(),
      **{name: _json_of(examples[name]) for name in tables},
      **{
        name: [_numbers_of(each) for each in examples[name]]
        for name in ("became_wrong", "became_right")
      },
    }
  return found


def _json_of(rows: Iterable[Any]) -> list[dict[str, Any]]:
  return [each._asdict() for each in rows]


def _numbers_of(card: dict[str, Any]) -> dict[str, Any]:
  answers = card["answers"]
  return {
    **{name: card[name] for name in ("number", "gold")},
    **{name: [getattr(each, name) for each in answers] for name in ("predicted", "loss")},
  }
