"""Pictures of numbers: axes and steps of curves, attention maps.

  plot_attention(probabilities, tokens, "attention.png")

Each function takes numbers and a path, whose ending (.png, .svg, .pdf) decides the format.
matplotlib is imported with the first picture.

Letters in shapes: N = number of maps, S = sequence length.
"""

import math
import os
from collections.abc import Sequence

import numpy as np

from bert.figures.names import cut_in_the_middle, families
from bert.io import atomic_files

# Distinguishable for colour-blind readers and in grey.
MAIN_COLOR, SECOND_COLOR, NOTE_COLOR = "#2a6fbb", "#d95f02", "#555555"
COLORS = (MAIN_COLOR, SECOND_COLOR, "#009e73", "#cc79a7", "#e6b800", "#222222")
LINE_STYLES = ("-", "--", "-.", ":")


def new_figure(width: float, height: float):
  """Makes an empty matplotlib `Figure`, in inches; an ImportError if that is not installed."""
  try:
    # Without pyplot, no window system is needed and no global state is used.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
  except ImportError as error:
    raise ImportError(
      f"Pictures need matplotlib, which cannot be imported ({error}): pip install matplotlib"
    ) from error
  figure = Figure(figsize=(width, height), dpi=150, layout="constrained")
  FigureCanvasAgg(figure)
  return figure


def check_format(path: str | os.PathLike) -> None:
  """Checks that a picture of this name can be written, before the work that leads to it.

  Raises:
    ImportError: matplotlib is not installed.
    ValueError: the path's ending names no format.
  """
  kind = _format_of(path)
  if kind not in new_figure(1, 1).canvas.get_supported_filetypes():
    raise ValueError(f"{path}: a picture cannot be written as .{kind}. Use .png, .svg or .pdf.")


def _format_of(path: str | os.PathLike) -> str:
  return os.path.splitext(path)[1].lstrip(".").lower() or "png"


def save(figure, path: str | os.PathLike, **options) -> None:
  """Writes a figure in the format that the path's ending names, PNG without one."""
  kind = _format_of(path)
  with atomic_files.written_whole(path) as writer:
    figure.savefig(writer, format=kind, **options)


def plain_axes(panel, title: str, xlabel: str, ylabel: str) -> None:
  """Sets a title, names of axes and a faint grid."""
  panel.set_title(title, fontsize=11, loc="left", pad=9, parse_math=False)
  panel.set_xlabel(xlabel)
  panel.set_ylabel(ylabel)
  panel.grid(color="#dddddd", linewidth=0.6)
  panel.set_axisbelow(True)
  panel.spines[["top", "right"]].set_visible(False)


def count_steps(panel) -> None:
  """Marks whole steps on the horizontal axis, each once."""
  from matplotlib.ticker import MaxNLocator

  boxes = [each.dataLim for each in panel.get_shared_x_axes().get_siblings(panel)]
  first, last = min(box.x0 for box in boxes), max(box.x1 for box in boxes)
  if first == last:  # A single step: leave some room on both sides.
    panel.set_xlim(first - 1, last + 1)
  most = 6 if last < 100_000 else 4  # Long numbers need room.
  steps = [1, 2, 2.5, 5, 10]
  panel.xaxis.set_major_locator(MaxNLocator(most, steps=steps, integer=True, min_n_ticks=1))
  panel.xaxis.set_major_formatter(lambda step, _: f"{step:,.0f}")


def scale_rates(panel) -> None:
  """Starts the vertical axis at 0 and writes rates as flags have them: `2e-5`."""
  panel.set_ylim(bottom=0)
  panel.yaxis.set_major_formatter(lambda rate, _: _rate_text(rate))


def _rate_text(rate: float) -> str:
  """Writes a learning rate, short.

  Example:
    >>> _rate_text(2e-5), _rate_text(1.25e-4), _rate_text(0.01), _rate_text(0.0)
    ('2e-5', '1.25e-4', '0.01', '0')
  """
  if abs(rate) >= 0.01 or rate == 0:
    return f"{rate:.3g}"
  digits, exponent = f"{rate:.2e}".split("e")
  return f"{float(digits):g}e{int(exponent)}"


# ---------------------------------------------------------------------------------------------
# Attention.

_LARGEST_PIECE, _SMALLEST_PIECE = 0.17, 0.1  # inches; a name needs the smaller
_WIDEST_MAPS = 42  # inches, of all maps side by side
_NAME_LENGTH = 24  # characters
_MOST_SHARED_NAMES = 24  # tokens; with more, the eye loses the way to names at another map


def plot_attention(
  probabilities: np.ndarray,
  tokens: Sequence[str],
  output_png: str | os.PathLike,
  titles: Sequence[str] | None = None,
  title: str = "Attention",
  hidden: Sequence[str] = (),
) -> None:
  """Draws attention maps: rows are the attending tokens, columns the attended ones.

  Most heads look at `[CLS]` or `[SEP]` with nearly all their attention. So that the rest is seen
  beside them, colours follow the square root of the probability.

  Args:
    probabilities: float `[N, S, S]`, each row's sum is 1; N maps, for instance the heads of a
      layer, are drawn side by side.
    tokens: S sub-word tokens.
    output_png: the picture.
    titles: of each map; `head 0`, `head 1`, ... by default.
    title: of all.
    hidden: tokens whose rows and columns are left out.

  Raises:
    ValueError: shapes do not fit, or no token is left.
  """
  maps = np.asarray(probabilities)
  if maps.ndim != 3 or maps.shape[1:] != (len(tokens), len(tokens)):
    raise ValueError(f"Maps of shape {list(maps.shape)} do not match {len(tokens)} tokens.")
  titles = titles or [f"head {number}" for number in range(len(maps))]
  shown = [number for number, token in enumerate(tokens) if token not in hidden]
  if not shown:
    raise ValueError(f"All of the {len(tokens)} pieces are hidden: {' '.join(tokens)}.")
  maps, tokens = maps[:, shown][:, :, shown], [tokens[number] for number in shown]
  columns = 3 if len(maps) % 3 == 0 and len(maps) % 4 else min(len(maps), 4)
  rows = -(-len(maps) // columns)
  piece = min(_LARGEST_PIECE, max(2.4, _WIDEST_MAPS / columns) / len(tokens))
  side = max(2.4, piece * len(tokens) + 0.9)
  figure = new_figure(side * columns + 1.2, side * rows + 0.5)
  panels = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
  _draw_maps(panels, maps, titles)
  _name_pieces(panels, len(maps), tokens, piece)
  figure.suptitle(title, fontsize=11 * _enlarged(side), parse_math=False)
  figure.supxlabel("looked at", fontsize=9 * _enlarged(side))
  figure.supylabel("looking", fontsize=9 * _enlarged(side))
  _add_scale(figure, panels, rows, side)
  save(figure, output_png)


def _enlarged(side: float) -> float:
  """Scales headings in a picture with maps of `side` inches."""
  return max(1.0, side / 8)


def _draw_maps(panels, maps: np.ndarray, titles: Sequence[str]) -> None:
  from matplotlib.colors import PowerNorm

  width = panels.flat[0].get_window_extent().width / panels.flat[0].figure.dpi  # inches
  for panel, each, name in zip(panels.flat, maps, titles, strict=False):
    panel.imshow(each, cmap="Blues", norm=PowerNorm(0.5, vmin=0, vmax=maps.max()))
    panel.set_title(name, fontsize=9 * _enlarged(width), parse_math=False)
  for panel in panels.flat[len(maps) :]:
    panel.set_visible(False)


def _name_pieces(panels, count: int, tokens: Sequence[str], piece: float) -> None:
  """Names every token, or as many as there is room for, `piece` inches each."""
  every = math.ceil(_SMALLEST_PIECE / piece)
  places = range(0, len(tokens), every)
  short = cut_in_the_middle([tokens[place] for place in places], _NAME_LENGTH)
  points = min(8.0, 72 * 0.8 * every * piece)  # as high as four fifths of its place
  style = {"fontsize": points, "parse_math": False, "family": families()}
  columns = panels.shape[1]
  is_named = len(tokens) > _MOST_SHARED_NAMES
  for number, panel in enumerate(panels.flat):
    panel.set_xticks(places, short, **style)
    panel.set_yticks(places, short, **style)
    # The last map of each column names the tokens, also above an empty place.
    panel.tick_params(axis="x", labelrotation=90, labelbottom=is_named or number + columns >= count)
    panel.tick_params(axis="y", labelleft=is_named or number % columns == 0)


def _add_scale(figure, panels, rows: int, side: float) -> None:
  """Draws the colours of all maps; equal steps are those of the root of the probability."""
  image = panels.flat[0].get_images()[0]
  highest = image.norm.vmax
  marks = [mark for mark in (0, 0.01, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1) if mark <= highest]
  size = {"aspect": 30 * rows, "pad": 0.01}  # keeps the width of the bar for any number of rows
  bar = figure.colorbar(image, ax=panels, ticks=marks, format="%g", **size)
  bar.set_label("probability", fontsize=9 * _enlarged(side))
  bar.ax.tick_params(labelsize=8 * _enlarged(side))
