"""The page of several runs: scores, what differs, curves, and what two of them answer differently.

  html = render(Runs("MRPC", "/tmp/mrpc", [Entry("seed 1", "/tmp/mrpc/seed_1", {"eval_f1": 0.8})]))

It serves runs that differ in their seed, a grid over several tasks, and runs that a user names.
"""

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from bert.figures.event_files import Run
from bert.io.wording import counted
from bert.reports import charts, html_page, paired
from bert.reports.contents import pieces_of
from bert.reports.subject import Examples
from bert.tasks import run_statistics
from bert.tasks.run_statistics import Summary, title
from bert.tasks.shown import Case, Passage

_MOST_CURVES = 24  # as many styles of lines there are
# Flags that differ between any two runs, or follow from others.
_OF_EACH_RUN = ("output_dir", "num_train_steps", "num_warmup_steps")


@dataclasses.dataclass
class Entry:
  """A run.

  Attributes:
    name: among the runs of the page.
    folder: its directory.
    results: metric -> number, the one by which runs are compared first; empty without results.
    group: the task, where the page has several.
    setting: what it shares with runs that differ only in their seed; "" where all runs do.
    failure: why it did not finish, or None.
    collapsed: why its model is no better than a constant answer, or None.
    seconds: that it took, or None.
    is_best: whether it is the best of its group.
    link: address of its own report or directory; "" without one.
    flags: name -> value of what may differ, versions of libraries included.
    curves: its curves, or None.
  """

  name: str
  folder: str
  results: Mapping[str, float]
  group: str = ""
  setting: str = ""
  failure: str | None = None
  collapsed: str | None = None
  seconds: float | None = None
  is_best: bool = False
  link: str = ""
  flags: Mapping[str, Any] = dataclasses.field(default_factory=dict)
  curves: Run | None = None

  @property
  def score(self) -> float:
    """The number by which runs are compared, of a run with results."""
    return next(iter(self.results.values()))


@dataclasses.dataclass
class Runs:
  """What the page is about.

  Attributes:
    title: the task.
    folder: of all runs; "" where they have none in common.
    entries: the runs.
    averages: name -> mean over groups, the one that counts first; empty without several groups.
    problems: failures, sentences.
    notes: what a reader must know, sentences.
    command: the command line of the best run; "" where it is unknown.
    is_comparison: whether the runs are compared with each other, instead of summarized.
    examples: what two runs answered, or None.
  """

  title: str
  folder: str
  entries: Sequence[Entry]
  averages: Mapping[str, float] = dataclasses.field(default_factory=dict)
  problems: Sequence[str] = ()
  notes: Sequence[str] = ()
  command: str = ""
  is_comparison: bool = False
  examples: tuple[Examples, Examples] | None = None


class Summaries(NamedTuple):
  """Statistics of the runs of a setting that have finished, those that failed among them or not."""

  setting: str
  with_failed: bool
  of_metrics: Sequence[Summary | None]


class Row(NamedTuple):
  """A line of numbers below those of the runs."""

  name: str
  cells: Sequence[str]  # of each metric


class Group(NamedTuple):
  """The runs of a task, as a table."""

  name: str
  entries: Sequence[Entry]
  metrics: Sequence[str]
  decimals: Sequence[int]  # of the numbers of each metric
  summaries: Sequence[Summaries]
  rows: Sequence[Row]
  best: Entry | None
  best_summary: Summary | None  # of the scores of the runs that share the best one's setting

  @property
  def finished(self) -> int:
    """Number of runs that have results."""
    return sum(bool(each.results) for each in self.entries)

  @property
  def has_faults(self) -> bool:
    """Whether a run did not finish, or its model has learned nothing."""
    return any(each.failure or each.collapsed for each in self.entries)


def render(runs: Runs) -> str:
  """Makes the page."""
  return html_page.page("runs.html", functools.partial(contents, runs), numbers)


def contents(runs: Runs, most_cases: int) -> dict[str, Any]:
  """Returns what the page shows.

  Args:
    runs: the runs.
    most_cases: examples in each of two lists.
  """
  names = list(dict.fromkeys(each.group for each in runs.entries))
  groups = [_group(runs, name) for name in names]
  curves = [each.curves for each in runs.entries if each.curves] if len(groups) == 1 else []
  examples = _compared(runs, most_cases)
  notes = list(runs.notes)
  if runs.examples and not examples:
    notes.append("The runs answered different examples, so their answers are not compared.")
  value, value_name, sentences = _verdict(runs, groups, examples)
  return {
    "runs": runs,
    "groups": groups,
    "num_finished": sum(group.finished for group in groups),
    "total_minutes": sum(each.seconds or 0.0 for each in runs.entries) / 60,
    "value": value,
    "value_name": value_name,
    "sentences": sentences,
    "notes": notes,
    "hint": "" if runs.is_comparison and len(runs.entries) == 2 else _hint(groups),
    "differing": differing(runs.entries) if runs.is_comparison else {},
    "curves": charts.learning_curves(*curves[:_MOST_CURVES]),
    "num_curves": min(len(curves), _MOST_CURVES),
    "examples": examples,
    "figure": figure,
    "spread": spread,
    "best": groups[0].best if len(groups) == 1 else None,
  }


def _hint(groups: Sequence[Group]) -> str:
  return _HINT if any(group.rows for group in groups) else ""


_HINT = (
  "SD is the standard deviation of a sample. The 95 % interval is that of the mean by Student’s t: "
  "it is about runs with other seeds on these data, not about other examples. The best run was "
  "chosen by this set, so its score is too high to expect elsewhere; the mean is not."
)


def figure(value: float | None, decimals: int) -> str:
  """Writes a number of a table.

  Example:
    >>> figure(0.79657, 4), figure(None, 4)
    ('0.7966', '–')
  """
  return "–" if value is None else f"{value:.{decimals}f}"


def decimals_of(metric: str, values: Iterable[float]) -> int:
  """Returns how many digits after the point the numbers of a metric need.

  Example:
    >>> decimals_of("eval_f1", [0.8, 1.0]), decimals_of("f1", [46.2, 9.0])
    (4, 2)
    >>> decimals_of("global_step", [6.0])
    0
  """
  if metric in ("global_step", "steps"):
    return 0
  return 4 if all(abs(value) < 10 for value in values) else 2


def differing(entries: Sequence[Entry]) -> dict[str, list[str]]:
  """Returns name -> values, in words, of the flags that differ between runs."""
  found = {}
  for name in dict.fromkeys(itertools.chain.from_iterable(each.flags for each in entries)):
    values = [html_page.flag_value(each.flags.get(name)) for each in entries]
    if len(set(values)) > 1 and name not in _OF_EACH_RUN:
      found[name] = values
  return found


# ---------------------------------------------------------------------------------------------
# The table.


def _group(runs: Runs, name: str) -> Group:
  entries = [each for each in runs.entries if each.group == name]
  metrics = list(dict.fromkeys(itertools.chain.from_iterable(each.results for each in entries)))
  decimals = [
    decimals_of(metric, [each.results[metric] for each in entries if metric in each.results])
    for metric in metrics
  ]
  summaries = list(_summaries(entries, metrics))
  if runs.is_comparison and len(entries) == 2:
    rows = [_difference(entries, metrics)]
  else:
    has_settings = len({each.setting for each in entries}) > 1
    rows = [row for each in summaries for row in _rows(each, decimals, has_settings)]
  best = next((each for each in entries if each.is_best), None)
  alike = [each for each in entries if best and each.setting == best.setting]
  scores = [each.score for each in alike if each.results]
  summary = run_statistics.summarize(scores) if scores else None
  return Group(name, entries, metrics, decimals, summaries, rows, best, summary)


def _difference(entries: Sequence[Entry], metrics: Iterable[str]) -> Row:
  """Returns the numbers of the second run less those of the first."""
  cells = []
  for name in metrics:
    first, second = (each.results.get(name) for each in entries)
    is_known = first is not None and second is not None
    cells.append(html_page.signed(second - first) if is_known else "–")
  return Row("difference", cells)


def _summaries(entries: Sequence[Entry], metrics: Sequence[str]) -> Iterable[Summaries]:
  """Yields the statistics of the runs of each setting that has several."""
  for setting in dict.fromkeys(each.setting for each in entries):
    finished = [each for each in entries if each.setting == setting and each.results]
    others = [each for each in finished if not each.collapsed]
    if len(finished) > 1:
      yield Summaries(setting, True, [_summary(finished, name) for name in metrics])
      if 0 < len(others) < len(finished):
        yield Summaries(setting, False, [_summary(others, name) for name in metrics])


def _summary(entries: Sequence[Entry], metric: str) -> Summary | None:
  values = [each.results[metric] for each in entries if metric in each.results]
  return run_statistics.summarize(values) if values else None


def _rows(found: Summaries, decimals: Sequence[int], has_settings: bool) -> Iterable[Row]:
  """Yields mean and spread: a row for each statistic, or one row for each of several settings."""
  columns = list(zip(found.of_metrics, decimals, strict=True))
  words = "" if found.with_failed else ", without failed runs"
  if has_settings:
    yield Row(f"mean ± SD, {found.setting}{words}", [spread(*each) for each in columns])
    return
  for name in _STATISTICS if found.with_failed else ("mean", "SD"):
    value_of = _STATISTICS[name]
    cells = [figure(value_of(each) if each else None, digits) for each, digits in columns]
    yield Row(f"{name}{words}", cells)


_STATISTICS: dict[str, Callable[[Summary], float | None]] = {
  "mean": lambda each: each.mean,
  "SD": lambda each: each.deviation,
  "95 % from": lambda each: each.interval and each.interval[0],
  "95 % to": lambda each: each.interval and each.interval[1],
  "lowest": lambda each: each.minimum,
  "highest": lambda each: each.maximum,
}


def spread(summary: Summary | None, decimals: int) -> str:
  """Writes a mean and, of several runs, the standard deviation."""
  if summary is None or summary.deviation is None:
    return figure(summary.mean if summary else None, decimals)
  return f"{figure(summary.mean, decimals)} ± {figure(summary.deviation, decimals)}"


# ---------------------------------------------------------------------------------------------
# The verdict.


def _verdict(
  runs: Runs, groups: Sequence[Group], examples: Mapping[str, Any] | None
) -> tuple[str | None, str, list[str]]:
  """Returns the number that counts, its name, and sentences about it."""
  if len(groups) != 1:
    return _verdict_of_groups(runs, groups)
  [group] = groups
  metric = title(group.metrics[0]) if group.metrics else ""
  if runs.is_comparison and len(runs.entries) == 2:
    return _verdict_of_two(group, metric, examples)
  finished = [each for each in group.entries if each.results]
  if not finished:
    return None, "No run has finished.", []
  summary, digits = run_statistics.summarize([each.score for each in finished]), group.decimals[0]
  extremes = f"from {figure(summary.minimum, digits)} to {figure(summary.maximum, digits)}"
  if len({each.setting for each in group.entries}) == 1:
    sentences = []
    if summary.deviation is not None:
      sentences.append(
        f"{summary.count} runs that differ in their seed have finished: {extremes}, with a "
        f"standard deviation of {figure(summary.deviation, digits)}."
      )
    return figure(summary.mean, digits), f"mean {metric}", sentences
  best = group.best or max(finished, key=lambda each: each.score)
  words = f"best {metric}, of {best.name}"
  return figure(best.score, digits), words, [f"The runs have {extremes}."]


def _verdict_of_groups(runs, groups):
  if not runs.averages:
    return None, "No task has a score.", []
  (_, value), *others = runs.averages.items()
  sentences = [f"{name} it is {figure(other, 2)}." for name, other in others]
  count = counted(sum(bool(each.best) for each in groups), "task")
  return figure(value, 2), f"mean over {count}", sentences


def _verdict_of_two(group: Group, metric: str, examples):
  first, second = group.entries
  if not (group.metrics and all(group.metrics[0] in each.results for each in group.entries)):
    return None, f"One of the runs has no {metric or 'result'} of an evaluation.", []
  scores, digits = [each.results[group.metrics[0]] for each in group.entries], group.decimals[0]
  difference = scores[1] - scores[0]
  how = f"{html_page.signed(abs(difference))[1:]} {'higher' if difference > 0 else 'lower'} than"
  sentences = [
    f"The {metric} of {second.name}, {figure(scores[1], digits)}, is "
    f"{how if difference else 'equal to'} that of {first.name}, {figure(scores[0], digits)}."
  ]
  if examples and examples["counts"]:
    counts = examples["counts"]
    if counts.only_first + counts.only_second:
      sentences.append(
        f"Of {examples['count']} examples {counts.only_second} are right only in {second.name}, "
        f"{counts.only_first} only in {first.name}. If both were equally good, a difference at "
        f"least as large would have a probability of {html_page.p_value(examples['p_value'])}."
      )
    else:
      sentences.append(f"Both runs are right for the same ones of {examples['count']} examples.")
  return html_page.signed(difference), f"difference in {metric}", sentences


# ---------------------------------------------------------------------------------------------
# Examples that two runs answered.


class Text(NamedTuple):
  """A passage. Its `run` is "" where it is the same for both."""

  name: str
  run: str
  pieces: Sequence[Any]
  left_out: int  # letters


def _compared(runs: Runs, most_cases: int) -> dict[str, Any] | None:
  """Compares the answers; None where the runs did not answer the same examples."""
  if not runs.examples:
    return None
  first, second = runs.examples
  if not (first.cases and paired.is_same_set(first, second)):
    return None
  names = [each.name for each in runs.entries]
  pairs = list(zip(first.cases, second.cases, strict=True))
  counts = paired.counts_of(pairs)
  changes = []
  for from_right in (True, False):
    found = paired.changed(pairs, from_right)
    cards = [_card(first.numbers[n], names, pairs[n]) for n in found[:most_cases]]
    words = _words_of_change(counts is not None, from_right, first.shown.loss_name, names)
    changes.append({"title": words[0], "what": words[1], "count": len(found), "cards": cards})
  return {
    "source": first.source,
    "count": len(pairs),
    "total": first.total,
    "counts": counts,
    "p_value": paired.mcnemar(counts) if counts else None,
    "differences": paired.differences(pairs, first.shown.loss_name),
    "loss_name": first.shown.loss_name,
    "changes": changes,
  }


def _words_of_change(
  is_counted: bool, from_right: bool, loss_name: str, names: Sequence[str]
) -> tuple[str, str]:
  """Returns the title of a list of changed examples, and what has changed in them."""
  if is_counted:
    right, wrong = names if from_right else reversed(names)
    words = "From right to wrong" if from_right else "From wrong to right"
    return words, f"are right in {right} and wrong in {wrong}."
  words = "Further from what is right" if from_right else "Nearer to what is right"
  more = "higher" if from_right else "lower"
  return words, f"have a {more} {loss_name} in {names[1]} than in {names[0]}."


def _card(number: int, names: Sequence[str], pair: Sequence[Case]) -> dict[str, Any]:
  """Returns what is shown of an example; its number is its place in the file, from 1."""
  texts = [Text(each.name, run, *pieces_of(each)) for run, each in _passages(names, pair)]
  answers = [
    (name, case.predicted or ", ".join(f"{n} {v}" for n, v in case.values.items()), case)
    for name, case in zip(names, pair, strict=True)
  ]
  return {"number": number, "texts": texts, "gold": pair[0].gold, "answers": answers}


def _passages(names: Sequence[str], pair: Sequence[Case]) -> Iterable[tuple[str, Passage]]:
  """Yields passages with the name of the run that they are of, "" of both."""
  for group in itertools.zip_longest(*(case.passages for case in pair)):
    if group[0] == group[1]:
      yield "", group[0]
    else:
      yield from ((name, each) for name, each in zip(names, group, strict=True) if each)


# ---------------------------------------------------------------------------------------------
# The numbers of the page, for programs.


def numbers(shown: dict[str, Any]) -> dict[str, Any]:
  """Returns the numbers of `contents` as JSON."""
  runs, examples = shown["runs"], shown["examples"]
  names = ("name", "folder", "group", "setting", "failure", "collapsed", "seconds", "is_best")
  found: dict[str, Any] = {
    "title": runs.title,
    "runs": [
      {**{name: getattr(each, name) for name in names}, "results": dict(each.results)}
      for each in runs.entries
    ],
    "groups": [_numbers_of_group(each) for each in shown["groups"]],
    "averages": dict(runs.averages),
    "problems": list(runs.problems),
    "notes": list(runs.notes),
    "differing": shown["differing"],
  }
  if examples:
    found["examples"] = {
      **{name: examples[name] for name in ("source", "count", "total", "p_value")},
      "counts": examples["counts"] and examples["counts"]._asdict(),
      "differences": [each._asdict() for each in examples["differences"]],
      "became_wrong": [_numbers_of(each) for each in examples["changes"][0]["cards"]],
      "became_right": [_numbers_of(each) for each in examples["changes"][1]["cards"]],
    }
  return found


def _numbers_of_group(group: Group) -> dict[str, Any]:
  summaries = []
  for each in group.summaries:
    pairs = zip(group.metrics, each.of_metrics, strict=True)
    of_metrics = {name: dataclasses.asdict(summary) for name, summary in pairs if summary}
    summaries.append({**each._asdict(), "of_metrics": of_metrics})
  best = group.best and group.best.folder
  return {"name": group.name, "best": best, "summaries": summaries}


def _numbers_of(card: Mapping[str, Any]) -> dict[str, Any]:
  return {
    **{name: card[name] for name in ("number", "gold")},
    "predicted": [predicted for _, predicted, _ in card["answers"]],
    "loss": [case.loss for *_, case in card["answers"]],
  }
