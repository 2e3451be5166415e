"""Lines of text to lines of JSON: what `predict.py` does, on one machine or on many.

  for line in json_lines(predictor, read_lines("texts.txt"), "texts.txt"):
    writer.write(line)

A line is a text, two texts with ` ||| ` between them, or a JSON object with the inputs by name.
"""

import json
from collections.abc import Iterable, Iterator

from bert.io import text_lines
from bert.predicting.predictor import Predictor

Item = str | tuple[str, ...] | dict


def json_lines(
  predictor: Predictor,
  lines: Iterable[str],
  source: text_lines.Source,
  result_name: str | None = None,
) -> Iterator[bytes]:
  """Yields the result of each line, as a line of JSON.

  Args:
    predictor: takes the items.
    lines: the input.
    source: where it is from, for errors.
    result_name: the name that results which are no objects have in JSON, such as vectors.

  Raises:
    ValueError: a line is invalid, or the model does not take its item; names the line.
  """
  for result in predictor.stream(parse_lines(lines, source), source):
    yield text_lines.to_json({result_name: result} if result_name else result)


def write_answers(
  predictor: Predictor,
  path: str,
  lines: Iterable[str],
  first_index: int = 0,
  *,
  source: text_lines.Source,
  result_name: str | None = None,
) -> int:
  """Writes and counts the results of lines, see `text_shards.Work`; they have no index."""
  del first_index
  count = 0
  with text_lines.written_output(path) as writer:
    for line in json_lines(predictor, lines, source, result_name):
      writer.write(line)
      count += 1
  return count


# ---------------------------------------------------------------------------------------------
# Lines of input.


def parse_lines(lines: Iterable[str], source: text_lines.Source) -> Iterator[Item]:
  """Yields the items on lines; the ValueError of an invalid one names `source` and the line."""
  for number, line in enumerate(lines, start=1):
    try:
      item = _parse_line(line)
    except ValueError as error:
      raise ValueError(f"{text_lines.place(source, number)}: {error}") from None
    yield item


def _parse_line(line: str) -> Item:
  """Returns the item on a line: a text, a pair, or a JSON object of inputs."""
  item = _json_object(line)
  if item is not None:
    return item
  text_a, text_b = text_lines.split_pair(line)
  return text_a if text_b is None else (text_a, text_b)


def _json_object(line: str) -> dict | None:
  """Returns the JSON object on a line; None for a text, even one that begins with a brace.

  Raises:
    ValueError: it contains half of a surrogate pair, which is possible in JSON but not in UTF-8.
  """
  if not line.startswith("{"):
    return None
  try:
    item = json.loads(line)
    json.dumps(item, ensure_ascii=False).encode()
  except UnicodeEncodeError:
    raise ValueError(f"{line!r:.80} holds half of a surrogate pair.") from None
  except (ValueError, RecursionError):
    return None
  return item
