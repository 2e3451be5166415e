"""Names in pictures: fonts that draw them, and how long ones fit.

panel.set_xticks([0, 1], cut_in_the_middle(names, 24), family=families())
"""

import functools
from collections.abc import Iterable

# The default, which comes with matplotlib, lacks most scripts of Asia.
_DEFAULT_FAMILY = "DejaVu Sans"
_OTHER_FAMILIES = (
  *("Noto Sans CJK SC", "Noto Sans CJK JP", "WenQuanYi Zen Hei", "Microsoft YaHei", "PingFang SC"),
  *("Noto Sans Arabic", "Noto Sans Hebrew", "Noto Sans Devanagari", "Noto Sans Thai"),
  "Arial Unicode MS",
)


@functools.cache
def families() -> list[str]:
  """Lists the families of fonts to try, in order; matplotlib warns of a letter that none has."""
  from matplotlib import font_manager

  installed = {entry.name for entry in font_manager.fontManager.ttflist}
  return [_DEFAULT_FAMILY, *(name for name in _OTHER_FAMILIES if name in installed)]


def cut_in_the_middle(names: Iterable[str], length: int) -> list[str]:
  """Shortens names; endings stay, since names often differ in them.

  Example:
    >>> cut_in_the_middle(["complaint about the delivery, 12", "praise"], 16)
    ['complaint…ry, 12', 'praise']
  """
  tail = (length - 1) * 2 // 5
  head = length - 1 - tail
  return [name if len(name) <= length else f"{name[:head]}…{name[-tail:]}" for name in names]
