"""Pictures of numbers: what is in them, that it can be read, and that nothing overlaps.

Alone: python -m pytest tests/figures/drawing_test.py
"""

import numpy as np
import pytest
from matplotlib import image
from matplotlib.figure import Figure

from bert.figures import drawing


@pytest.fixture
def drawn(monkeypatch):
  """Every figure that is saved, in order."""
  saved = []
  savefig = Figure.savefig

  def keep(figure, path, **kwargs):
    saved.append(figure)
    savefig(figure, path, dpi=50, **kwargs)  # small is fast

  monkeypatch.setattr(Figure, "savefig", keep)
  return saved


def boxes_of(texts):
  """Where texts are, in pixels."""
  return [text.get_window_extent() for text in texts if text.get_visible() and text.get_text()]


def assert_apart(texts, figure):
  """No text overlaps another one or the edge."""
  boxes = boxes_of(texts)
  assert boxes
  for box in boxes:
    assert 0 <= box.x0 <= box.x1 <= figure.bbox.width
    assert 0 <= box.y0 <= box.y1 <= figure.bbox.height
  assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])


def test_a_confusion_matrix_shows_counts_and_shares_of_each_row(drawn, tmp_path):
  matrix = [[2500, 300, 0], [1, 2999, 0], [400, 500, 2223]]
  labels = ["contradiction", "$x$ and more than can be written", "neutral"]
  drawing.plot_confusion_matrix(matrix, labels, tmp_path / "a.png", "MNLI")
  panel, bar = drawn[0].axes
  shares = np.array(matrix) / np.sum(matrix, axis=1, keepdims=True)
  np.testing.assert_allclose(panel.get_images()[0].get_array(), 100 * shares)
  cells = {text.get_position(): text.get_text() for text in panel.texts}
  assert cells[(1, 0)] == "300\n11%", "column 1, row 0"
  assert cells[(0, 1)] == "1\n<1%"
  assert (2, 0) not in cells, "an empty cell stays empty"
  dark = {text.get_position() for text in panel.texts if text.get_color() == "white"}
  assert dark == {(0, 0), (1, 1), (2, 2)}
  assert panel.get_title(loc="left") == "MNLI\n8,923 examples, accuracy 86.5%"
  assert (panel.get_xlabel(), panel.get_ylabel()) == ("predicted class", "true class")
  assert bar.get_ylabel() == "% of the true class"
  names = [label.get_text() for label in panel.get_yticklabels()]
  assert names == ["contradiction", "$x$ and more than can...", "neutral"]
  assert_apart([*panel.texts, *panel.get_yticklabels()], drawn[0])


def test_a_class_that_never_occurs_is_no_division_by_zero(drawn, tmp_path):
  with np.errstate(all="raise"):
    drawing.plot_confusion_matrix([[0, 0], [1, 3]], ["a", "b"], tmp_path / "a.png")
    drawing.plot_confusion_matrix([[0]], ["a"], tmp_path / "b.png")
  assert np.isfinite(drawn[0].axes[0].get_images()[0].get_array()).all()


@pytest.mark.parametrize(("count", "numbers", "names"), [(21, 0, 21), (61, 0, 0)])
def test_what_would_not_fit_is_left_out(drawn, tmp_path, count, numbers, names):
  labels = [f"intent {i}" for i in range(count)]
  drawing.plot_confusion_matrix(np.eye(count, dtype=int), labels, tmp_path / "a.png")
  panel = drawn[0].axes[0]
  assert len(panel.texts) == numbers
  assert len(panel.get_xticklabels()) == len(panel.get_yticklabels()) == names


def test_scores_are_bars_and_marks_in_percent(drawn, tmp_path):
  scores = {
    "LOC": {"precision": 0.93, "recall": 0.95, "f1": 0.94, "support": 1668.0},
    "PER": {"precision": 0.0, "recall": 0.0, "f1": 0.0, "support": 17.0},
  }
  drawing.plot_scores(scores, tmp_path / "a.png", "Entities")
  [panel] = drawn[0].axes
  assert [bar.get_width() for bar in panel.patches] == pytest.approx([94.0, 0.0])
  precision, recall = panel.get_lines()
  assert precision.get_xdata() == pytest.approx([93.0, 0.0])
  assert recall.get_xdata() == pytest.approx([95.0, 0.0])
  assert [text.get_text() for text in panel.get_yticklabels()] == ["LOC (1,668)", "PER (17)"]
  assert [text.get_text() for text in panel.texts] == ["94.0", "0.0"]
  assert panel.yaxis_inverted(), "the first type is on top"
  assert panel.get_xlim()[0] == 0


def test_schedules_are_told_apart_without_colour(drawn, tmp_path):
  rates = {"constant": [1e-5] * 5, "falling": np.linspace(2e-5, 0, 5)}
  drawing.plot_schedules(rates, tmp_path / "a.png")
  [panel] = drawn[0].axes
  lines = panel.get_lines()
  np.testing.assert_array_equal(lines[1].get_ydata(), rates["falling"])
  assert lines[0].get_linestyle() != lines[1].get_linestyle()
  assert [text.get_text() for text in panel.get_legend().get_texts()] == list(rates)
  assert panel.get_ylim()[0] == 0


def test_attention_maps_share_one_scale_and_name_their_pieces(drawn, tmp_path):
  tokens = ["[CLS]", "$5", "##s", "[SEP]"]
  maps = np.random.default_rng(0).dirichlet(np.ones(4), [5, 4])
  drawing.plot_attention(maps, tokens, tmp_path / "a.png", title="Layer 3")
  *panels, bar = drawn[0].axes
  shown = [panel for panel in panels if panel.get_visible()]
  assert [panel.get_title() for panel in shown] == [f"head {number}" for number in range(5)]
  for panel, each in zip(shown, maps, strict=True):
    picture = panel.get_images()[0]
    np.testing.assert_array_equal(picture.get_array(), each)
    assert picture.get_clim() == (0, maps.max())
  for index in (1, 2, 3, 4):  # nothing is below them
    names = [label.get_text() for label in shown[index].get_xticklabels()]
    assert names == tokens
    assert all(label.get_visible() for label in shown[index].get_xticklabels())
  assert bar.get_ylabel() == "probability"
  with pytest.raises(ValueError, match=r"\[5, 4, 4\] do not match 3 tokens"):
    drawing.plot_attention(maps, tokens[:3], tmp_path / "b.png")


def test_labels_of_points_never_overlap(drawn, tmp_path):
  vectors = np.random.default_rng(0).normal(size=[40, 8])
  labels = [f"a text of some length, number {number}" for number in range(40)]
  drawing.plot_vectors(vectors, labels, tmp_path / "a.png")
  [panel] = drawn[0].axes
  assert 25 <= len(boxes_of(panel.texts)) <= 40
  assert_apart(panel.texts, drawn[0])


def test_groups_have_colours_shapes_and_a_legend(drawn, tmp_path):
  vectors = np.random.default_rng(0).normal(size=[90, 8])
  groups = ["good", "bad", "so so"] * 30
  drawing.plot_vectors(vectors, [""] * 90, tmp_path / "a.png", groups=groups)
  [panel] = drawn[0].axes
  assert [len(points.get_offsets()) for points in panel.collections] == [30, 30, 30]
  assert len({tuple(points.get_facecolor()[0]) for points in panel.collections}) == 3
  assert len({points.get_paths()[0].vertices.tobytes() for points in panel.collections}) == 3
  assert [text.get_text() for text in panel.get_legend().get_texts()] == ["good", "bad", "so so"]


def test_a_table_shows_every_cell_and_nothing_runs_over_the_edge(drawn, tmp_path):
  rows = [("Task", "Score"), ("MRPC, whose name is long", "86.7 ± 0.4"), ("$x_1$", "-")]
  notes = ["A note that is longer than the table is wide, and has to go on in lines below."]
  drawing.plot_table(rows, tmp_path / "table.png", "GLUE", notes)
  [panel] = drawn[0].axes
  shown = [text.get_text() for text in panel.texts]
  assert shown[:7] == ["GLUE", *(cell for row in rows for cell in row)]
  assert " ".join(shown[7:]) == notes[0]
  assert_apart(panel.texts, drawn[0])
  assert image.imread(tmp_path / "table.png").std() > 0.05
