"""Pictures of numbers: confusion matrices, attention, vectors, schedules.

  plot_confusion_matrix([[90, 10], [5, 895]], ["no", "yes"], "confusion.png")
  plot_attention(probabilities, tokens, "attention.png")

Each function takes numbers and a path, whose ending (.png, .svg, .pdf) decides the format.
matplotlib is imported with the first picture.

Letters in shapes: C = number of classes, M = number of texts, N = number of maps, S = sequence
length, W = width.
"""

import math
import os
import textwrap
from collections.abc import Sequence
from typing import Literal

import numpy as np

from bert.figures.names import cut_apart, cut_in_the_middle, drawable
from bert.io import atomic_files

# Distinguishable for colour-blind readers and in grey.
MAIN_COLOR, SECOND_COLOR, NOTE_COLOR = "#2a6fbb", "#d95f02", "#555555"
COLORS = (MAIN_COLOR, SECOND_COLOR, "#009e73", "#cc79a7", "#e6b800", "#222222")
LINE_STYLES = ("-", "--", "-.", ":")
_MARKERS = "osD^vP"


def new_figure(
  width: float, height: float, layout: Literal["constrained", "tight"] | None = "constrained"
):
  """Makes an empty matplotlib `Figure`, in inches; an ImportError if that is not installed."""
  try:
    # Without pyplot, no window system is needed and no global state is used.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
  except ImportError as error:
    raise ImportError(
      f"Pictures need matplotlib, which cannot be imported ({error}): pip install matplotlib"
    ) from error
  figure = Figure(figsize=(width, height), dpi=150, layout=layout)
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


def plain_axes(panel, title: str, xlabel: str, ylabel: str, grid_axis: str = "both") -> None:
  """Sets a title, names of axes and a faint grid."""
  panel.set_title(title, fontsize=11, loc="left", pad=9, parse_math=False)
  panel.set_xlabel(xlabel)
  panel.set_ylabel(ylabel)
  panel.grid(color="#dddddd", linewidth=0.6, axis=grid_axis)
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
# Scores.

_MOST_COUNTS = 20  # classes; with more, the numbers do not fit into their cells
_MOST_NAMES = 60  # classes
_NAME_LENGTH, _LONG_NAME_LENGTH = 24, 60  # characters


def plot_confusion_matrix(
  matrix: np.ndarray,
  labels: Sequence[str],
  output_png: str | os.PathLike,
  title: str = "Confusion matrix",
) -> None:
  """Draws a confusion matrix: how often the row's class was predicted as the column's.

  Colours are shares of a row, so that a rare class is as easy to read as a frequent one.

  Args:
    matrix: int `[C, C]`, true classes down, predicted ones across; see `metrics.confusion_matrix`.
    labels: C names.
    output_png: the picture.
    title: above it; the number of examples and the accuracy are added.
  """
  matrix = np.asarray(matrix)
  count, shares = len(labels), matrix / np.maximum(matrix.sum(axis=1, keepdims=True), 1)
  columns, rows, family = _class_names(labels)
  side = min(1.8 + 0.75 * count, 12) if count <= _MOST_COUNTS else 10
  width, height = (0.08 * max(map(len, names), default=0) for names in (rows, columns))
  figure = new_figure(side + 1.2 + width, side + height / 2)
  panel = figure.subplots()
  image = panel.imshow(100 * shares, cmap="Blues", vmin=0, vmax=100)
  if count <= _MOST_COUNTS:
    _write_counts(panel, matrix, shares)
    edges = np.arange(count - 1) + 0.5
    panel.set_xticks(edges, minor=True)
    panel.set_yticks(edges, minor=True)
    panel.grid(which="minor", color="#cccccc", linewidth=0.8)
    panel.tick_params(which="minor", length=0)
  if rows:
    _name_ticks(panel, columns, rows, family=family)
  else:
    for axis in (panel.xaxis, panel.yaxis):
      axis.get_major_locator().set_params(integer=True)
  numbered = "" if rows else " (number in the order of the labels, from 0)"
  panel.set_xlabel(f"predicted class{numbered}")
  panel.set_ylabel(f"true class{numbered}")
  accuracy = np.trace(matrix) / max(matrix.sum(), 1)
  text = f"{title}\n{matrix.sum():,} examples, accuracy {accuracy:.1%}"
  panel.set_title(text, fontsize=11, loc="left", parse_math=False)
  figure.colorbar(image, ax=panel, label="% of the true class", shrink=0.8)
  save(figure, output_png, bbox_inches="tight")


def _class_names(labels: Sequence[str]) -> tuple[list[str], list[str], list[str]]:
  """Returns names of columns and rows, and their fonts; none of more classes than can be read.

  Where names differ in the middle alone, or cannot be drawn, columns have numbers, and rows have
  both.
  """
  if len(labels) > _MOST_NAMES:
    return [], [], []
  names = drawable(labels)
  short = cut_in_the_middle(names.texts, _NAME_LENGTH)
  numbers = [f"#{number}" for number in range(len(labels))]
  if len(set(short)) == len(labels) and set(short).isdisjoint(numbers):
    return short, short, names.family
  long = cut_apart(names.texts, _LONG_NAME_LENGTH)
  rows = [n if n == name else f"{n} {name}" for n, name in zip(numbers, long, strict=True)]
  return numbers, rows, names.family


def _write_counts(panel, matrix: np.ndarray, shares: np.ndarray) -> None:
  size = 9 if len(matrix) <= 10 else 7
  for row, column in np.argwhere(matrix):  # empty cells stay empty
    color = "white" if shares[row, column] > 0.55 else "black"
    percent = f"{shares[row, column]:.0%}" if shares[row, column] >= 0.005 else "<1%"
    text = f"{matrix[row, column]:,}\n{percent}"
    style = {"ha": "center", "va": "center", "fontsize": size, "color": color}
    panel.text(column, row, text, **style)


def _name_ticks(panel, x_names: Sequence[str], y_names: Sequence[str], **style) -> None:
  """Names the columns and rows of an image; long names of columns are turned."""
  is_long = max(map(len, x_names), default=0) > 6 or len(x_names) > 8
  turned = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"} if is_long else {}
  style = {"fontsize": 9, "parse_math": False, **style}
  panel.set_xticks(range(len(x_names)), x_names, **style, **turned)
  panel.set_yticks(range(len(y_names)), y_names, **style)


# ---------------------------------------------------------------------------------------------
# Attention.

_LARGEST_PIECE, _SMALLEST_PIECE = 0.17, 0.1  # inches; a name needs the smaller
_WIDEST_MAPS = 42  # inches, of all maps side by side
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
  names = drawable(tokens, "word piece")
  places = range(0, len(tokens), every)
  short = cut_in_the_middle([names.texts[place] for place in places], _NAME_LENGTH)
  points = min(8.0, 72 * 0.8 * every * piece)  # as high as four fifths of its place
  style = {"fontsize": points, "parse_math": False, "family": names.family}
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


# ---------------------------------------------------------------------------------------------
# Vectors as points in a plane.

_MOST_LABELS = 60  # More are not readable.
_LABEL_LENGTH = 40  # characters

# Possible positions of a label: offsets right of and above its point, and its alignment.
_PLACES = [
  *((dx, dy, side) for dy in (3, -8) for dx, side in ((5, "left"), (-5, "right"))),
  *((dx, dy, side) for dy in (-2.5, 10, -15) for dx, side in ((6, "left"), (-6, "right"))),
]


def project_vectors(vectors: np.ndarray, method: str = "pca") -> np.ndarray:
  """Projects vectors to a plane.

  Args:
    vectors: float `[M, W]`.
    method: `pca` keeps the two directions of largest variance, so that distances are meaningful;
      `tsne` keeps neighbours together, but distances between groups are meaningless.

  Returns:
    float `[M, 2]`, the same for the same vectors.

  Raises:
    ValueError: there are less than three vectors, one of them is not finite, or `method` is
      unknown.
  """
  from sklearn.decomposition import PCA
  from sklearn.manifold import TSNE

  if len(vectors) < 3:
    raise ValueError(f"At least three vectors are needed for a picture, not {len(vectors)}.")
  if method == "pca":
    return PCA(2, svd_solver="full").fit_transform(vectors)
  if method == "tsne":
    # About 30 neighbours for each point, or fewer for few points.
    perplexity = min(30.0, (len(vectors) - 1) / 3)
    return TSNE(2, perplexity=perplexity, init="pca", random_state=0).fit_transform(vectors)
  raise ValueError(f"method is {method!r}, but must be pca or tsne.")


def plot_vectors(
  vectors: np.ndarray,
  labels: Sequence[str],
  output_png: str | os.PathLike,
  method: str = "pca",
  groups: Sequence[str] | None = None,
) -> None:
  """Draws vectors as points, with their labels if there are at most 60.

  Arguments not described here, and errors, are those of `project_vectors`.

  Args:
    labels: M texts; long ones are cut.
    output_png: the picture; the ending decides the format.
    groups: M names, such as classes: points of a group share a colour and a shape.

  Raises:
    ValueError: see `project_vectors`.
  """
  points = project_vectors(vectors, method)
  figure = new_figure(9, 7)
  panel = figure.subplots()
  _draw_points(panel, points, groups)
  name = {"pca": "Principal component", "tsne": "t-SNE axis"}[method]
  plain_axes(panel, f"{len(points):,} texts", f"{name} 1", f"{name} 2")
  if len(labels) <= _MOST_LABELS:
    _write_labels(figure, panel, points, labels)
  save(figure, output_png)


def _write_labels(figure, panel, points: np.ndarray, labels: Sequence[str]) -> None:
  """Writes each label beside its point; labels without enough space are omitted."""
  from matplotlib.transforms import Bbox

  panel.margins(x=0.18)
  figure.draw_without_rendering()  # Computes the positions of the points.
  figure.set_layout_engine("none")
  at = panel.transData.transform(points)  # pixels
  inside = panel.get_window_extent()
  taken = [Bbox.from_bounds(x - 4, y - 4, 8, 8) for x, y in at]
  names = drawable([textwrap.shorten(label, _LABEL_LENGTH, placeholder=" …") for label in labels])
  style = {"fontsize": 7, "family": names.family, "parse_math": False}
  for number, (point, text) in enumerate(zip(points, names.texts, strict=True)):
    note = panel.annotate(text, point, xytext=(0, 0), textcoords="offset points", **style)
    others = taken[:number] + taken[number + 1 :]
    for dx, dy, side in _PLACES:
      note.set(position=(dx, dy), horizontalalignment=side)
      box = note.get_window_extent()
      fits = inside.x0 <= box.x0 and box.x1 <= inside.x1 and inside.y0 <= box.y0
      if fits and not box.count_overlaps(others):
        taken.append(box)
        break
    else:
      note.set_visible(False)


def _draw_points(panel, points: np.ndarray, groups: Sequence[str] | None) -> None:
  if groups is None:
    panel.scatter(points[:, 0], points[:, 1], s=14, color=MAIN_COLOR, alpha=0.7, linewidths=0)
    return
  kinds = list(dict.fromkeys(groups))
  names = drawable(kinds, "group")
  for number, (kind, name) in enumerate(zip(kinds, names.texts, strict=True)):
    of_group = points[[group == kind for group in groups]]
    # Every pair of a colour and a shape comes before the first is used again.
    marker = _MARKERS[(number + number // len(COLORS)) % len(_MARKERS)]
    style = {"s": 20, "color": COLORS[number % len(COLORS)], "marker": marker}
    panel.scatter(*of_group.T, label=name, alpha=0.75, linewidths=0, **style)
  is_long = len(kinds) > 8
  where = {"loc": "center left", "bbox_to_anchor": (1, 0.5)} if is_long else {}
  legend = panel.legend(frameon=False, fontsize=9, ncols=1 + len(kinds) // 30, **where)
  for text in legend.get_texts():
    text.set(parse_math=False, family=names.family)
