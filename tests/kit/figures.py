"""Figures instead of pixels: what was drawn, where its texts are, and that they can be read."""

import contextlib
from collections.abc import Iterator
from unittest import mock

from matplotlib.figure import Figure

from bert.figures import drawing


@contextlib.contextmanager
def saved_figures() -> Iterator[list[Figure]]:
  """Every figure that is saved in the block, in order, laid out; no file is written."""
  saved = []

  def keep(figure, path, **kwargs):
    figure.draw_without_rendering()
    saved.append(figure)

  with (
    mock.patch.object(Figure, "savefig", keep),
    mock.patch.object(drawing.atomic_files, "written_whole", contextlib.nullcontext),
  ):
    yield saved


def boxes_of(texts) -> list:
  """Where texts are, in pixels."""
  return [text.get_window_extent() for text in texts if text.get_visible() and text.get_text()]


def assert_apart(texts, figure) -> None:
  """No text overlaps another one or the edge."""
  boxes = boxes_of(texts)
  assert boxes
  for box in boxes:
    assert 0 <= box.x0 <= box.x1 <= figure.bbox.width
    assert 0 <= box.y0 <= box.y1 <= figure.bbox.height
  assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])


def ticks_of(axis) -> list:
  """The labels at an axis that are within its limits."""
  low, high = sorted(axis.get_view_interval())
  ticks = zip(axis.get_majorticklocs(), axis.get_majorticklabels(), strict=True)
  return [label for place, label in ticks if low <= place <= high]


def legend_of(figure) -> dict:
  """Name -> line of the legend of a figure, without its empty places."""
  [legend] = figure.legends
  entries = zip(legend.get_texts(), legend.legend_handles, strict=True)
  return {text.get_text(): line for text, line in entries if text.get_text()}
