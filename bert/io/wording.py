"""Words of messages that depend on numbers."""


def counted(count: int, noun: str) -> str:
  """A number and its noun, in the plural where needed.

  Example:
    >>> counted(1, "variable"), counted(2, "variable"), counted(0, "layer")
    ('1 variable', '2 variables', '0 layers')
  """
  return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
