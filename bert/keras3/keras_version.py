"""Refuses a Keras that is too old, before it fails for reasons that do not tell its age."""

OLDEST = (3, 10)  # as in pyproject.toml


def check(version: str) -> None:
  """Checks the version of the installed Keras.

  Raises:
    ImportError: it is too old.

  Example:
    >>> check("3.15.1")
  """
  numbers = tuple(int(part) for part in version.split(".")[:2])
  if numbers < OLDEST:
    raise ImportError(
      f"bert.keras3 needs Keras {'.'.join(map(str, OLDEST))} or later, but {version} is installed: "
      "pip install --upgrade keras"
    )
