"""How a model is tried: an item of its run's own data, and the lines that use it.

  item = usage.choose([{"text_a": "It rains.", "text_b": None}])      # {"text_a": "It rains."}
  usage.in_python("output/weather", item)
  usage.as_line(item)                                                 # for predict.py

A run keeps the item in `example.json`. Report, model card, and the server's start line and page
show that one. Pure Python.
"""

import json
import os
from collections.abc import Iterable, Mapping
from typing import Any

from bert.io import json_files, text_lines

FILE = "example.json"
_MOST_LETTERS = 300  # of the texts together; the first item that is not longer is chosen


def choose(items: Iterable[Mapping[str, Any]]) -> dict[str, Any] | None:
  """Chooses an item that is neither blank nor long, and has all texts if any item has them.

  Example:
    >>> choose([{"text_a": " "}, {"text_a": "It rains.", "text_b": ""}, {"text_a": "It snows."}])
    {'text_a': 'It rains.'}
    >>> choose([{"text_a": "It rains."}, {"text_a": "It snows.", "text_b": "It is cold."}])
    {'text_a': 'It snows.', 'text_b': 'It is cold.'}
  """
  known = [{name: value for name, value in item.items() if value} for item in items]
  known = [item for item in known if item and all(text.strip() for text in _texts(item))]
  most = max(map(len, known), default=0)
  known = [item for item in known if len(item) == most]
  short = (item for item in known if _size(item) <= _MOST_LETTERS)
  return next(short, None) or min(known, key=_size, default=None)


def _texts(item: Mapping[str, Any]) -> list[str]:
  return [
    str(text)
    for value in item.values()
    for text in (value if isinstance(value, list | tuple) else [value])
  ]


def _size(item: Mapping[str, Any]) -> int:
  return sum(map(len, _texts(item)))


def read(folder: str) -> dict[str, Any] | None:
  """Reads the item of a run, or of that around `best`; None of an earlier version's."""
  if os.path.basename(os.path.normpath(folder)) == "best":
    folder = os.path.join(folder, os.pardir)
  return json_files.read_if_there(os.path.join(folder, FILE), "Remove it.") or None


def first_text(item: Mapping[str, Any]) -> str:
  """Returns the first of an item's texts."""
  return _texts(item)[0]


def in_python(folder: str, item: Mapping[str, Any] | str) -> str:
  """Writes a program that asks the model of a folder.

  Example:
    >>> print(in_python("out", {"text_a": "It rains."}))
    from bert.predicting.predictor import Predictor
    <BLANKLINE>
    predictor = Predictor.load('out')
    predictor([{'text_a': 'It rains.'}])
  """
  return (
    "from bert.predicting.predictor import Predictor\n\n"
    f"predictor = Predictor.load({folder!r})\npredictor([{item!r}])"
  )


def as_line(item: Mapping[str, Any]) -> str:
  """Writes an item as a line for `predict.py`: a text, a pair, or JSON.

  Example:
    >>> as_line({"text_a": "It rains.", "text_b": "It is wet."})
    'It rains. ||| It is wet.'
    >>> as_line({"question": "Who?", "context": "It was me."})
    '{"question": "Who?", "context": "It was me."}'
  """
  texts = list(item.values())
  is_plain = set(item) <= {"text", "text_a", "text_b"} and all(isinstance(t, str) for t in texts)
  line = " ||| ".join(texts) if is_plain else ""
  read = [text for text in text_lines.split_pair(line) if text is not None]
  if read == texts and line == line.strip() and len(line.splitlines()) == 1 and line[0] != "{":
    return line
  return json.dumps(dict(item), ensure_ascii=False)
