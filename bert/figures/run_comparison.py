"""One picture of runs that differ in their seed: all their curves, and their scores.

A failed run, no better than a constant answer, is drawn in another colour than the others.
"""

import dataclasses
import math
import os
from collections.abc import Mapping, Sequence

from bert.figures import event_files
from bert.figures.drawing import (
  COLORS,
  MAIN_COLOR,
  NOTE_COLOR,
  SECOND_COLOR,
  count_steps,
  new_figure,
  plain_axes,
  save,
)
from bert.figures.training_curves import smooth

_AVERAGES = {"ensemble": ("D", COLORS[2]), "soup": ("s", COLORS[3])}


@dataclasses.dataclass(frozen=True)
class Panel:
  """The scores of the runs by one metric."""

  title: str  # name of the metric
  scores: Sequence[float]  # of each run
  mean: float  # of the scores
  interval: tuple[float, float] | None  # of the mean; None for a single run
  averages: Mapping[str, float]  # `ensemble` or `soup` -> its score


def plot_runs(
  folders: Sequence[str],
  failed: Sequence[bool],
  panels: Sequence[Panel],
  output_png: str | os.PathLike,
  title: str,
) -> None:
  """Draws the training loss of each run on the left, and a panel of points for each metric.

  Args:
    folders: of the runs, with event files; a run without any has no curve.
    failed: whether a run is no better than a constant answer.
    panels: the metrics; `scores` are in the order of the runs.
    output_png: the picture.
    title: above it.
  """
  widths = [3.2, *[1.35] * len(panels)]
  figure = new_figure(1.7 * sum(widths) + 0.6, max(4.2, 1.6 + 0.26 * len(folders)))
  axes = figure.subplots(1, len(widths), width_ratios=widths, squeeze=False)[0]
  figure.suptitle(title, fontsize=12, x=0.01, ha="left", parse_math=False)
  _draw_curves(axes[0], folders, failed)
  for axis, panel in zip(axes[1:], panels, strict=True):
    _draw_scores(axis, panel, failed)
  _add_legend(figure, axes)
  save(figure, output_png)


def _draw_curves(axis, folders: Sequence[str], failed: Sequence[bool]) -> None:
  for folder, has_failed in zip(folders, failed, strict=True):
    label = "failed run" if has_failed else "run"
    style = {"color": SECOND_COLOR if has_failed else MAIN_COLOR, "linewidth": 1.3, "alpha": 0.8}
    steps, values = _points(event_files.read_curves(folder).get("loss", {}))
    if len(values) >= 10:
      values = smooth(values, radius=len(values) // 20 + 2)
    if steps:
      axis.plot(steps, values, label=label, **style)
    steps, values = _points(event_files.read_curves(os.path.join(folder, "eval")).get("loss", {}))
    if len(steps) > 1:  # With --eval_every_steps.
      axis.plot(steps, values, linestyle="--", label=f"{label}, dev set", **style)
  plain_axes(axis, "training loss, smoothed", "training step", "")
  if axis.lines:
    axis.set_ylim(bottom=min(0.0, axis.get_ylim()[0]))
    count_steps(axis)


def _points(curve: event_files.Curve) -> tuple[list[float], list[float]]:
  """Steps and values, as far as these can be drawn."""
  points = [(step, value) for step, value in curve.items() if math.isfinite(value)]
  return [step for step, _ in points], [value for _, value in points]


def _draw_scores(axis, panel: Panel, failed: Sequence[bool]) -> None:
  if panel.interval:
    low, high = panel.interval
    axis.axhspan(
      low, high, color=MAIN_COLOR, alpha=0.15, linewidth=0, label="95% interval of the mean"
    )
  axis.axhline(panel.mean, color=NOTE_COLOR, linewidth=1.2, label="mean")
  ranks = sorted(range(len(panel.scores)), key=lambda i: panel.scores[i])
  for place, number in enumerate(ranks):
    x = (place + 1) / (len(ranks) + 1)
    color = SECOND_COLOR if failed[number] else MAIN_COLOR
    label = "failed run" if failed[number] else "run"
    axis.plot(x, panel.scores[number], "o", color=color, markersize=5, label=label, alpha=0.85)
  for name, score in panel.averages.items():
    marker, color = _AVERAGES[name]
    style = {"linestyle": "", "markersize": 7, "markeredgecolor": "white"}
    axis.plot(1.0, score, marker=marker, color=color, label=name, clip_on=False, **style)
  plain_axes(axis, panel.title, "runs by score", "", grid_axis="y")
  # Of few runs the interval may be wider than the metric's range: the points decide.
  values = [*panel.scores, *panel.averages.values()]
  room = 0.6 * (max(values) - min(values)) or 0.05 * abs(values[0]) or 1.0
  axis.set_ylim(min(values) - room, max(values) + room)
  axis.set_xlim(0, 1.06)
  axis.set_xticks([])
  axis.ticklabel_format(axis="y", style="plain", useOffset=False)


def _add_legend(figure, axes) -> None:
  found = {}
  for axis in axes:
    for line, name in zip(*axis.get_legend_handles_labels(), strict=True):
      found.setdefault(name, line)
  figure.legend(
    list(found.values()),
    list(found),
    loc="outside lower center",
    ncols=len(found),
    frameon=False,
    fontsize=9,
  )
