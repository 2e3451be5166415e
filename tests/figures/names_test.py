"""Names in pictures: boxes are never drawn, and shortened names stay different."""

import pytest
from matplotlib import font_manager, ft2font

from bert.figures import names


@pytest.fixture
def only_the_default_font(monkeypatch):
  """As on a machine without further fonts."""
  default = font_manager.findfont("DejaVu Sans")
  monkeypatch.setattr(names, "_fonts", lambda: iter([("DejaVu Sans", default)]))


def test_names_that_no_font_has_are_numbered_and_said(only_the_default_font, warnings):
  shown = names.drawable(["food", "好评", "été", "差评\n"])
  assert shown == (["food", "#1", "été", "#3"], ["DejaVu Sans"])
  [warning] = warnings
  assert "No installed font can draw 2 of 4 labels" in warning
  assert "#1 = 好评, #3 = 差评. Install a font" in warning


def test_names_that_can_be_drawn_are_left_alone(only_the_default_font, warnings):
  shown = ["a", "Ж", "→", "$x$", "", "two  words\tand more"]
  assert names.drawable(shown).texts == [*shown[:-1], "two words and more"]
  assert not warnings


def test_a_font_is_looked_for_among_all_that_are_installed(monkeypatch, warnings):
  glyphs = {"default": set("ab"), "broken": set(), "wide": set("a中"), "later": set("中文")}
  monkeypatch.setattr(names, "_fonts", lambda: iter((f"Font {path}", path) for path in glyphs))
  monkeypatch.setattr(names, "_glyphs", lambda path: lambda c: chr(c) in glyphs[path])
  assert names.drawable(["ab", "中文"]).family == ["Font default", "Font wide", "Font later"]
  assert not warnings
  assert names.drawable(["a"]).family == ["Font default"]


def test_a_file_that_is_no_font_has_no_glyphs(tmp_path):
  (tmp_path / "a.ttf").write_bytes(b"no font")
  assert names._glyphs(str(tmp_path / "a.ttf"))(ord("a")) == 0


def test_letters_that_matplotlib_would_put_in_the_wrong_order_are_numbered(monkeypatch, warnings):
  """Before version 3.11 it draws from left to right and does not join Arabic letters."""
  monkeypatch.setattr(ft2font, "__libraqm_version__", "1", raising=False)
  assert names.drawable(["سلام", "שלום"]).texts == ["سلام", "שלום"]
  monkeypatch.delattr(ft2font, "__libraqm_version__")
  assert names.drawable(["سلام", "שלום", "a"]).texts == ["#0", "#1", "a"]


def test_a_log_of_many_names_ends(only_the_default_font, warnings):
  names.drawable(["字"] * 500, "word piece")
  assert "500 of 500 word pieces" in warnings[0]
  assert "#19 = 字, and 480 more" in warnings[0]


@pytest.mark.parametrize("length", [6, 24, 60])
def test_cut_names_have_the_length_and_both_ends(length):
  name = "complaint about the delivery of the product, number 12, in the shop of the town"
  [cut] = names.cut_in_the_middle([name], length)
  assert len(cut) == length
  begin, _, end = cut.partition("…")
  assert name.startswith(begin)
  assert name.endswith(end)
  assert end
  assert names.cut_in_the_middle([name], 100) == [name]
