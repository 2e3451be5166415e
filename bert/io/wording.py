"""Words of messages that depend on numbers, tables of words, and what an error says."""

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


def in_one_message(error: BaseException) -> str:
  """Writes an error without its number, with its path first: OSErrors have both, path last.

  Example:
    >>> in_one_message(OSError(28, "No space left on device", "out.jsonl"))
    'out.jsonl: No space left on device'
    >>> in_one_message(ValueError())
    'ValueError'
  """
  if isinstance(error, OSError) and error.filename is not None and error.strerror:
    return f"{error.filename}: {error.strerror}"
  return str(error) or type(error).__name__
