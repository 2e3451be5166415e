"""Files that hold one JSON object: configurations, vocabularies, what is known of a run.

read_object("bert_config.json")["hidden_size"]     # 768
"""

import json
import os
from typing import Any

from bert.io import filesystem, other_formats


def read_object(path: str | os.PathLike, advice: str = "") -> dict[str, Any]:
  """Reads a file's JSON object without a byte order mark; errors of `object_in`, and OSErrors."""
  return object_in(filesystem.read_bytes(path), path, advice)


def read_if_there(path: str | os.PathLike, advice: str) -> dict[str, Any]:
  """Returns the JSON object in a file, as `read_object`; {} without the file."""
  try:
    return read_object(path, advice)
  except FileNotFoundError:
    return {}


def object_in(content: bytes | str, source: str | os.PathLike, advice: str = "") -> dict[str, Any]:
  """Parses text, or bytes of UTF-8, as a JSON object; `source` and `advice` are for the message.

  Raises:
    ValueError: it is no JSON, or another value than an object; one line.

  Example:
    >>> object_in("[1]", "bert_config.json")
    Traceback (most recent call last):
    ValueError: bert_config.json: a JSON object is needed, not list.
  """
  advice = advice and f" {advice}"
  if isinstance(content, bytes) and (other := other_formats.find(content)):
    raise ValueError(f"{os.fsdecode(source)} is {other[0]}. {other[1]}")
  try:
    found = json.loads(content.decode("utf-8-sig") if isinstance(content, bytes) else content)
  except (ValueError, RecursionError) as error:  # not UTF-8, no JSON, 5000 digits, too deep
    end = f".{advice}" if advice else ""
    raise ValueError(f"{os.fsdecode(source)} is not valid JSON: {error}{end}") from None
  if not isinstance(found, dict):
    kind = type(found).__name__
    raise ValueError(f"{os.fsdecode(source)}: a JSON object is needed, not {kind}.{advice}")
  return found
