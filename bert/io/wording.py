"""Words of messages that depend on numbers, and tables of words."""

from collections.abc import Sequence


def counted(count: int, noun: str) -> str:
  """Writes a number and its noun, in the plural where needed.

  Example:
    >>> counted(1, "variable"), counted(2, "variable"), counted(0, "layer")
    ('1 variable', '2 variables', '0 layers')
  """
  return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
  """Writes rows as lines with columns of equal width.

  Example:
    >>> aligned([("Task", "Score"), ("MRPC", "86.7")])
    ['Task  Score', 'MRPC  86.7']
  """
  widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
  return [
    "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
    for row in rows
  ]
