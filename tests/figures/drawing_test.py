"""Pictures of numbers: what is in them, that it can be read, and that nothing overlaps."""

import numpy as np
import pytest
from matplotlib import image

from bert.figures import drawing
from tests.kit.figures import saved_figures, ticks_of


@pytest.fixture
def drawn():
  """Every figure that is saved, in order."""
  with saved_figures() as figures:
    yield figures


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


@pytest.mark.parametrize("ending", ["SVG", ""])
def test_the_ending_of_a_name_decides_the_format(tmp_path, ending):
  path = tmp_path / f"maps.{ending}".rstrip(".")
  drawing.check_format(path)
  drawing.plot_attention(attention(2, 1), ["a", "b"], path)
  if ending == "SVG":
    assert "<svg" in path.read_text()
  else:
    assert image.imread(path, format="png").std() > 0.05
  with pytest.raises(ValueError, match=r"a\.xlsx: a picture cannot be written as \.xlsx\. Use"):
    drawing.check_format(tmp_path / "a.xlsx")
