"""Names in pictures: fonts that are installed, and shortened names that keep both ends."""

import pytest
from matplotlib import font_manager

from bert.figures import names


def test_families_are_those_that_are_installed():
  installed = {entry.name for entry in font_manager.fontManager.ttflist}
  assert names.families()[0] == "DejaVu Sans"
  assert installed.issuperset(names.families())


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
