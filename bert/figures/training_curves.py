"""The curves of runs, read from the event files that they write for TensorBoard, and drawn.

  plot_curves("/tmp/pretraining_output", "curves.png")
  plot_curves(["/tmp/rate_2e-5", "/tmp/rate_5e-5"], "rates.png")

One panel for each scalar: training as a smoothed line over a thin raw one, evaluation as points.
"""

import itertools
import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

from absl import logging

from bert.figures.drawing import (
  COLORS,
  LINE_STYLES,
  MAIN_COLOR,
  NOTE_COLOR,
  SECOND_COLOR,
  count_steps,
  new_figure,
  plain_axes,
  save,
  scale_rates,
)
from bert.figures.event_files import Curve, NoScalarsError, Run, read_run
from bert.figures.names import cut_in_the_middle, families

_UNITS = {
  "loss": "nats",
  "accuracy": "share of right answers",
  "learning_rate": "rate",
  "pearson": "correlation",
  "spearman": "correlation",
  "corrcoef": "correlation",
}
_PERCENT = ("f1", "exact_match")  # as the official scripts of SQuAD count
# Styles of marks.
_EVALUATED = {"marker": "o", "markersize": 3.5}
_BEST = {"marker": "*", "markersize": 12, "linestyle": ""}
_FEWEST_TO_SMOOTH = 10  # points
_MOST_RAW_CURVES = 3  # in a panel
_RUN_LENGTH = 48  # characters of a run's name


def smooth(values: Sequence[float], radius: int) -> list[float]:
  """Averages each value and `radius` neighbours on both sides; the line thus has no lag.

  At the beginning, where curves are steep, as many as both sides have; at the end as many as each.

  Example:
    >>> smooth([1.0, 3.0, 8.0, 3.0], radius=1)
    [1.0, 4.0, 4.666666666666667, 5.5]
  """
  sums = list(itertools.accumulate(values, initial=0.0))
  smoothed = []
  for i in range(len(values)):
    before = min(radius, i)
    after = min(before, len(values) - 1 - i)
    smoothed.append((sums[i + after + 1] - sums[i - before]) / (before + 1 + after))
  return smoothed


# ---------------------------------------------------------------------------------------------
# Drawing.


def plot_curves(
  model_dirs: str | os.PathLike | Sequence[str | os.PathLike],
  output_png: str | os.PathLike,
  tags: Sequence[str] | None = None,
) -> list[str]:
  """Draws the curves of one or several runs, the latter with a colour for each run.

  Args:
    model_dirs: folder of a run, or of several; evaluation is looked for in `eval` below each.
    output_png: the picture; the ending decides the format.
    tags: scalars to show; by default losses, accuracies, the metric that chose the best weights,
      and the learning rate.

  Returns:
    The tags that are shown.

  Raises:
    ValueError: a folder has nothing to show.
  """
  folders = [model_dirs] if isinstance(model_dirs, str | os.PathLike) else model_dirs
  runs = _read_runs(list(dict.fromkeys(map(_without_slash, folders))))
  figure, tags = figure_of_runs(runs, tags)
  save(figure, output_png)
  return tags


def figure_of_runs(
  runs: Sequence[Run],
  tags: Sequence[str] | None = None,
  width: float | None = None,
) -> tuple[Any, list[str]]:
  """Draws the curves of runs that were read; see `plot_curves` for the other arguments.

  Args:
    runs: one or several.
    width: of a panel in inches; by default as there are many.

  Returns:
    The matplotlib figure, and the tags that are shown.
  """
  tags = tags_to_show(runs, tags)
  figure, panels = _panels(len(tags), width)
  for panel, tag in zip(panels, tags, strict=True):
    _draw_runs(panel, tag, runs)
    _finish_panel(panel, tag, runs)
  count_steps(panels[0])  # The others share its axis.
  kinds = _kinds_of_lines(panels)
  if len(runs) == 1:
    _add_legend(figure, [kinds])
  else:
    names = run_names([run.folder for run in runs])
    _add_legend(figure, [_runs_by_colour(names), _in_grey(kinds)])
  return figure, tags


def _without_slash(folder: str | os.PathLike) -> str:
  folder = os.fsdecode(folder)
  return folder.rstrip("/") or folder


def _read_runs(folders: Sequence[str]) -> list[Run]:
  """Reads runs. Among several, a path without scalars is left out: `output/*` may match others."""
  if len(folders) == 1:
    return [read_run(folders[0])]
  runs = []
  for folder in folders:
    try:
      runs.append(read_run(folder))
    except NoScalarsError as error:
      logging.warning("%s It is left out.", error)
  if not runs:
    raise ValueError(f"None of these holds event files with scalars: {', '.join(folders)}.")
  return runs


def run_names(folders: Sequence[str]) -> list[str]:
  """Names runs by what differs between their paths.

  Example:
    >>> run_names(["out/rate_2e-5/run", "out/rate_5e-5/run"])
    ['rate_2e-5', 'rate_5e-5']
    >>> run_names(["a", "a/b"]), run_names(["out/mrpc"])
    (['a', 'a/b'], ['mrpc'])
  """
  paths = [os.path.normpath(folder).split(os.sep) for folder in folders]
  if len(paths) == 1:
    return [paths[0][-1]]
  start, end = 0, 0
  shortest = min(map(len, paths))
  while start < shortest - 1 and len({path[start] for path in paths}) == 1:
    start += 1
  while end < shortest - start - 1 and len({path[-1 - end] for path in paths}) == 1:
    end += 1
  return ["/".join(path[start : len(path) - end]) for path in paths]


def _panels(count: int, width: float | None = None) -> tuple:
  """Makes a figure with panels in rows of two or three; those of a row fill its width."""
  most = min(count, 2 if count in (2, 4) else 3)
  rows = -(-count // most)
  figure = new_figure((width or (6.6, 5.6, 4.7)[most - 1]) * most, 3.5 * rows)
  # Rows of one, two or three panels have equal widths in sixths.
  grid = figure.add_gridspec(rows, 6)
  panels = []
  for row in range(rows):
    in_row = count // rows + (row < count % rows)
    sixths = 6 // in_row
    places = [grid[row, i * sixths : (i + 1) * sixths] for i in range(in_row)]
    panels += [figure.add_subplot(place) for place in places]
  for panel in panels[1:]:
    panel.sharex(panels[0])
  return figure, panels


def tags_to_show(runs: Sequence[Run], asked: Sequence[str] | None = None) -> list[str]:
  """Chooses the tags to show: those requested, or the usual ones of more than one point."""
  present: dict[str, int] = {}
  for run in runs:
    for tag, length in run.lengths().items():
      present[tag] = max(length, present.get(tag, 0))
  if asked:
    unknown = [tag for tag in asked if tag not in present]
    if unknown:
      raise ValueError(
        f"--tags: {', '.join(unknown)} is not among the scalars of "
        f"{', '.join(run.folder for run in runs)}: {', '.join(sorted(present))}."
      )
    return list(dict.fromkeys(asked))
  long = [tag for tag, length in present.items() if length > 1] or list(present)
  watched = [tag for run in runs for tag in run.best_tags()[:1]]
  shown = [tag for ending in ("loss", "accuracy") for tag in long if tag.endswith(ending)]
  shown += [tag for tag in watched if tag in long]
  shown += [tag for tag in long if tag.endswith("learning_rate")]
  shown = list(dict.fromkeys(shown))
  if "loss" in shown and "eval_loss" in shown:  # the same curve
    shown.remove("eval_loss")
  is_sum = sum(tag.endswith("_loss") for tag in shown) > 1
  if is_sum and "loss" in shown and "loss" not in watched:
    shown.remove("loss")
  return shown or long


def _draw_runs(panel, tag: str, runs: Sequence[Run]) -> None:
  """Draws a scalar: of one run training and evaluation, of several each run, in its own colour."""
  is_raw_shown = len(runs) <= _MOST_RAW_CURVES
  for number, run in enumerate(runs):
    of_training = of_evaluation = _style(number)
    if len(runs) == 1:
      of_training, of_evaluation = {"color": MAIN_COLOR}, {"color": SECOND_COLOR}
    _draw_training(panel, tag, _finite(run.training.get(tag, {})), of_training, is_raw_shown)
    evaluation = _finite(run.evaluation.get(tag, {}))
    if not evaluation:
      continue
    style = {**_EVALUATED, **of_evaluation, "clip_on": False, "label": "evaluation"}
    panel.plot(list(evaluation), list(evaluation.values()), linewidth=1.4, **style)
    if tag in run.best_tags():
      label = f"best {_title(tag)}: {run.best[1]:.4g}" if len(runs) == 1 else "best evaluation"
      style = {**_BEST, "color": of_evaluation["color"], "clip_on": False, "label": label}
      panel.plot(run.best[0], evaluation[run.best[0]], **style)
    if run.best and len(runs) == 1:
      label = f"best step: {run.best[0]:,}"
      panel.axvline(run.best[0], color=NOTE_COLOR, linestyle=":", linewidth=1.2, label=label)


def _style(number: int) -> dict[str, Any]:
  """Returns colour and line of a run."""
  line = LINE_STYLES[number // len(COLORS) % len(LINE_STYLES)]
  return {"color": COLORS[number % len(COLORS)], "linestyle": line}


def _draw_training(
  panel, tag: str, curve: Curve, style: Mapping[str, str], is_raw_shown: bool
) -> None:
  if not curve:
    return
  steps, values = list(curve), list(curve.values())
  label = "training"
  if tag == "learning_rate":  # It has no noise, and its corners are intended.
    label = ""
  elif len(values) >= _FEWEST_TO_SMOOTH:
    if is_raw_shown:
      panel.plot(steps, values, color=style["color"], alpha=0.25, linewidth=0.8)
    values = smooth(values, radius=len(values) // 40 + min(3, len(values) // 10))
    label = "training, smoothed"
  marker = "" if len(values) > 1 else "x"
  panel.plot(steps, values, linewidth=1.8, marker=marker, label=label or None, **style)


def _finite(curve: Curve) -> Curve:
  return {step: value for step, value in curve.items() if math.isfinite(value)}


def _title(tag: str) -> str:
  return tag.replace("_lm_", " LM ").replace("_", " ")


def _title_with_losses(tag: str, runs: Sequence[Run]) -> str:
  """Writes the name of a scalar, with the number of values that are not finite, and not drawn."""
  curves = [curves.get(tag, {}) for run in runs for curves in (run.training, run.evaluation)]
  lost = sum(len(curve) - len(_finite(curve)) for curve in curves)
  if not lost:
    return _title(tag)
  first = min(step for curve in curves for step in curve if step not in _finite(curve))
  note = f"{lost:,} not finite from step {first:,}"
  logging.warning("%s: %s; such values are not drawn.", tag, note)
  return f"{_title(tag)} ({note})"


def _finish_panel(panel, tag: str, runs: Sequence[Run]) -> None:
  """Names the axes and scales the vertical one."""
  units = [_unit_of(tag, run.problem_type) for run in runs if tag in run.lengths()]
  unit = ", ".join(dict.fromkeys(units))
  plain_axes(panel, _title_with_losses(tag, runs), "training step", unit)
  panel.ticklabel_format(axis="y", style="plain", useOffset=False)
  low, high = panel.dataLim.intervaly
  if tag == "learning_rate":
    scale_rates(panel)
  elif low >= 0:
    bottom, top = panel.get_ylim()
    limit = 1.0 if high <= 1 and _is_score(tag) else top
    panel.set_ylim(max(bottom, 0.0), min(top, limit))


# ---------------------------------------------------------------------------------------------
# The legend.

# A line and its name.
_Entry = tuple[Any, str]


def _kinds_of_lines(panels: Sequence) -> list[_Entry]:
  """Collects one line of each name in any panel."""
  found: dict[str, Any] = {}
  for panel in panels:
    for line, name in zip(*panel.get_legend_handles_labels(), strict=True):
      found.setdefault(name, line)
  return [(line, name) for name, line in found.items()]


def _in_grey(entries: Sequence[_Entry]) -> list[_Entry]:
  """Entries without the colour of a run."""
  from matplotlib.lines import Line2D

  grey = []
  for line, name in entries:
    copy = Line2D([], [])
    copy.update_from(line)
    copy.set_color(NOTE_COLOR)
    grey.append((copy, name))
  return grey


def _runs_by_colour(names: Sequence[str]) -> list[_Entry]:
  from matplotlib.lines import Line2D

  short = cut_in_the_middle(names, _RUN_LENGTH)
  return [(Line2D([], [], linewidth=1.8, **_style(i)), name) for i, name in enumerate(short)]


def _add_legend(figure, groups: Sequence[Sequence[_Entry]]) -> None:
  """Draws one legend for all panels, below them, where it hides nothing; groups start rows."""
  from matplotlib.lines import Line2D

  longest = max((len(name) for group in groups for _, name in group), default=0)
  fitting = int(figure.get_figwidth() / (0.075 * longest + 0.6))  # inches
  columns = max(1, min(fitting, max(map(len, groups))))
  blank = (Line2D([], [], linestyle=""), "")
  entries = [entry for group in groups for entry in [*group, *[blank] * (-len(group) % columns)]]
  if not entries:
    return
  rows = len(entries) // columns
  figure.set_figheight(figure.get_figheight() + 0.22 * rows + 0.1)
  # A legend fills its columns from top to bottom.
  down = [entries[row * columns + column] for column in range(columns) for row in range(rows)]
  style = {"loc": "outside lower center", "ncols": columns, "frameon": False, "fontsize": 9}
  legend = figure.legend(*zip(*down, strict=True), **style)
  for text in legend.get_texts():
    text.set(parse_math=False, family=families())


# ---------------------------------------------------------------------------------------------
# Details of a panel.


def _is_score(tag: str) -> bool:
  """Tells whether a scalar is a score of a task, whose highest value is 1 if none is above it."""
  return tag.endswith("accuracy") or (tag.startswith("eval_") and not tag.endswith(("loss", "mse")))


def _unit_of(tag: str, problem_type: str = "") -> str:
  """Returns the unit of the vertical axis.

  Example:
    >>> _unit_of("masked_lm_loss"), _unit_of("tokens/sec"), _unit_of("tokens_per_example")
    ('nats', 'tokens per second', 'tokens per example')
    >>> _unit_of("loss", problem_type="regression")
    'mean squared error'
  """
  if tag.endswith("loss") and problem_type in ("regression", "own"):
    return "mean squared error" if problem_type == "regression" else "loss"
  if tag.endswith("/sec"):
    return f"{tag.removesuffix('/sec')} per second"
  if tag in _PERCENT:
    return "percent"
  units = (unit for ending, unit in _UNITS.items() if tag.endswith(ending))
  return next(units, tag.replace("_", " "))
