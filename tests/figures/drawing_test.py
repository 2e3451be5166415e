"""Pictures of numbers: what is in them, that it can be read, and that nothing overlaps."""

import numpy as np
import pytest
from matplotlib import image

from bert.figures import drawing
from tests.kit.figures import assert_apart, boxes_of, saved_figures, ticks_of


@pytest.fixture
def drawn():
  """Every figure that is saved, in order."""
  with saved_figures() as figures:
    yield figures


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
  assert names == ["contradiction", "$x$ and more t…e written", "neutral"]
  assert_apart([*panel.texts, *panel.get_yticklabels()], drawn[0])


def test_a_class_that_never_occurs_is_no_division_by_zero(drawn, tmp_path):
  with np.errstate(all="raise"):
    drawing.plot_confusion_matrix([[0, 0], [1, 3]], ["a", "b"], tmp_path / "a.png")
    drawing.plot_confusion_matrix([[0]], ["a"], tmp_path / "b.png")
  assert np.isfinite(drawn[0].axes[0].get_images()[0].get_array()).all()


def names_of(panel) -> tuple[list[str], list[str]]:
  """The names of columns and rows."""
  return tuple(
    [label.get_text() for label in ticks_of(axis)] for axis in (panel.xaxis, panel.yaxis)
  )


def test_long_labels_that_would_look_alike_are_numbered_and_spelt_out(drawn, tmp_path):
  """25 labels that differ in the middle alone."""
  begin, end = "complaint about the delivery of product", "in the shop of the town"
  labels = [f"{begin} {i:02} {end}" for i in range(25)]
  drawing.plot_confusion_matrix(np.eye(25, dtype=int), labels, tmp_path / "a.png")
  columns, rows = names_of(drawn[0].axes[0])
  assert columns == [f"#{i}" for i in range(25)]
  assert len(set(rows)) == 25
  for i, row in enumerate(rows):
    assert row.startswith(f"#{i} …")
    assert row.endswith(f"delivery of product {i:02} {end}")
  assert_apart(drawn[0].axes[0].get_yticklabels(), drawn[0])


def attention(pieces: int, maps: int) -> np.ndarray:
  """Random maps; the first piece draws most attention, as `[CLS]` does."""
  favour = np.ones(pieces)
  favour[0] = 20
  return np.random.default_rng(0).dirichlet(favour, [maps, pieces])


def test_attention_maps_share_one_scale_and_name_their_pieces(drawn, tmp_path):
  tokens = ["[CLS]", "$5", "##s", "[SEP]"]
  maps = attention(4, 5)
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


def test_special_pieces_can_be_left_out(drawn):
  maps, tokens = attention(4, 2), ["[CLS]", "a", "b", "[SEP]"]
  drawing.plot_attention(maps, tokens, "a.png", hidden=("[CLS]", "[SEP]"))
  *panels, _ = drawn[0].axes
  for panel, each in zip(panels, maps[:, 1:3, 1:3], strict=True):
    np.testing.assert_array_equal(panel.get_images()[0].get_array(), each)
    assert [label.get_text() for label in ticks_of(panel.xaxis)] == ["a", "b"]
  with pytest.raises(ValueError, match=r"All of the 4 pieces are hidden: \[CLS\] a b \[SEP\]"):
    drawing.plot_attention(maps, tokens, "a.png", hidden=tokens)


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


@pytest.mark.parametrize("ending", ["png", "SVG", ""])
def test_the_ending_of_a_name_decides_the_format(tmp_path, ending):
  path = tmp_path / f"matrix.{ending}".rstrip(".")
  drawing.check_format(path)
  drawing.plot_confusion_matrix([[1, 0], [0, 1]], ["a", "b"], path)
  if ending == "SVG":
    assert "<svg" in path.read_text()
  else:
    assert image.imread(path, format="png").std() > 0.05
  with pytest.raises(ValueError, match=r"a\.xlsx: a picture cannot be written as \.xlsx\. Use"):
    drawing.check_format(tmp_path / "a.xlsx")
