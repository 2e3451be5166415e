"""Pictures of a report as SVG within the page: equal values give equal bytes.

They are those of `bert/figures`, in whose style. Texts stay texts, which can be searched and are
read aloud, and colours are changed by the page where it is dark.
"""

import io
import re
from collections.abc import Sequence

import numpy as np

from bert.figures import drawing, training_curves
from bert.figures.event_files import Run
from bert.reports.statistics import Bin

_MOST_POINTS = 1000
_WIDTH = 4.7  # inches: letters can be read on a phone


def learning_curves(*runs: Run) -> list[tuple[str, str]]:
  """Draws losses, scores and the learning rate of one or several runs.

  Returns:
    A picture for each: its name, and SVG. None where no run has curves, or points alone.
  """
  shown = [run for run in runs if run.training or run.evaluation]
  tags = training_curves.tags_to_show(shown) if shown else []
  pictures = []
  for n, tag in enumerate(tag for tag in tags if any(run.lengths()[tag] > 1 for run in shown)):
    figure, _ = training_curves.figure_of_runs(shown, [tag], width=_WIDTH)
    pictures.append((tag.replace("_", " "), svg_of(figure, f"curve{n}")))
  return pictures


def reliability(bins: Sequence[Bin]) -> str:
  """Draws the share of right answers over their probability."""
  figure = drawing.new_figure(_WIDTH, 3.6)
  panel = figure.subplots()
  style = {"color": drawing.NOTE_COLOR, "linestyle": "--", "linewidth": 1.2}
  panel.plot([0, 100], [0, 100], label="perfect calibration", **style)
  middles = [50 * (each.low + each.high) for each in bins]
  panel.bar(middles, [100 * b.right for b in bins], 8.5, color=drawing.MAIN_COLOR, label="right")
  drawing.plain_axes(panel, "Reliability diagram", "probability in %", "right answers in %")
  panel.set_xlim(0, 100)
  panel.set_ylim(0, 105)
  figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=9)
  return svg_of(figure, "calibration")


def scatter(pairs: Sequence[tuple[float, float]], name: str) -> str:
  """Draws predicted numbers over gold ones, at most a thousand."""
  points = np.asarray(pairs, np.float64)
  points = points[np.isfinite(points).all(axis=1)]
  if not len(points):
    return ""
  points = points[:: -(-len(points) // _MOST_POINTS)]
  figure = drawing.new_figure(_WIDTH, 4.2)
  panel = figure.subplots()
  ends = [points.min(), points.max()]
  style = {"color": drawing.NOTE_COLOR, "linestyle": "--", "linewidth": 1.2}
  panel.plot(ends, ends, label="equal", **style)
  style = {"color": drawing.MAIN_COLOR, "alpha": 0.5, "markersize": 5, "linestyle": ""}
  panel.plot(points[:, 0], points[:, 1], marker="o", markeredgewidth=0, label="example", **style)
  drawing.plain_axes(panel, f"Predicted {name} over the gold one", "gold", "predicted")
  figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=9)
  return svg_of(figure, "scatter")


def svg_of(figure, name: str) -> str:
  """Writes a figure as an element of a page; its ids begin with a name, to be unique there."""
  import matplotlib

  # Ids are hashes of the salt instead of random; a date would change with each report.
  with matplotlib.rc_context({"svg.hashsalt": name, "svg.fonttype": "none"}):
    writer = io.StringIO()
    options = {"metadata": {"Date": None, "Creator": None, "Format": None, "Type": None}}
    figure.savefig(writer, format="svg", transparent=True, **options)
  text = re.sub(r"<style.*?</style>|<metadata>.*?</metadata>", "", writer.getvalue(), flags=re.S)
  text = text[text.index("<svg") :]
  text = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", text)
  size = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', text)
  assert size is not None
  head = f'<svg class="chart" {size[0]} style="max-width: {float(size[1]) * 4 / 3:.0f}px"'
  head += ' aria-hidden="true" focusable="false" xmlns:xlink="http://www.w3.org/1999/xlink">'
  return head + text[text.index(">") + 1 :].strip()
