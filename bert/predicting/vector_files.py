"""Vectors of texts in files: the original's lines of JSON, and NumPy's `.npz`.

  layout = Layout(layers=[-1], hidden_size=768, is_pooled=True, token_length=18)
  WRITERS["npz"]("vectors.npz", results, layout)      # an iterator of TextVectors

Each writer takes results one by one, so that memory does not grow with the file. The file appears
under its name when it is complete.

Letters in shapes: S = pieces of a text, L = layers, W = hidden size, M = texts.
"""

import contextlib
import json
import os
import shutil
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from bert.io import atomic_files, text_lines
from bert.io.text_lines import written_output
from bert.predicting.sentence_vectors import cosine_similarity


class TextVectors(NamedTuple):
  """A text and its vectors."""

  text: str  # the first text of the line
  tokens: list[str]  # its pieces, [CLS] and [SEP] included
  input_ids: list[int]  # the numbers of the pieces
  vectors: np.ndarray  # float32 `[S, L, W]`, or `[L, W]` for pooled ones


class Layout(NamedTuple):
  """The common properties of all vectors of a file."""

  layers: Sequence[int]  # L numbers, as requested
  hidden_size: int  # W
  # Whether there is one vector per text and layer, instead of one per piece and layer.
  is_pooled: bool
  token_length: int  # characters of the longest token
  first_index: int = 0  # the `linex_index` of the first text, in formats that have one


# ---------------------------------------------------------------------------------------------
# Lines of JSON.


def write_jsonl(path: str, results: Iterable[TextVectors], layout: Layout) -> int:
  """Writes and counts the original's lines; with pooling, `layers` takes the place of `features`.

  {"linex_index": 0, "features": [{"token": "[CLS]", "layers": [{"index": -1, "values": [...]}]}]}
  """
  count = 0
  with written_output(path) as writer:
    for count, result in enumerate(results, start=1):
      writer.write(_json_line(layout.first_index + count - 1, result, layout).encode())
  return count


def _json_line(index: int, result: TextVectors, layout: Layout) -> str:
  """Returns a line as `json.dumps` would write it, with the faster `format_rows`."""
  rows = iter(format_rows(result.vectors.reshape([-1, layout.hidden_size])))
  if layout.is_pooled:
    content = f'"layers": [{_json_layers(rows, layout)}]'
  else:
    pieces = (
      f'{{"token": {json.dumps(token)}, "layers": [{_json_layers(rows, layout)}]}}'
      for token in result.tokens
    )
    content = f'"features": [{", ".join(pieces)}]'
  # Not "line_index": the original writes this key, and other programs read it.
  return f'{{"linex_index": {index}, {content}}}\n'


def _json_layers(rows, layout):
  """Returns the next rows, one for each layer, as JSON objects."""
  layers = (f'{{"index": {index}, "values": [{next(rows)}]}}' for index in layout.layers)
  return ", ".join(layers)


def format_rows(vectors: np.ndarray) -> list[str]:
  """Writes each row of float32 `[M, W]` as comma-separated decimal numbers, rounded to 6 digits.

  The numbers are those of `round(float(x), 6)`, as in the original: a float32 times 10^6 has 44
  significant bits, so the product is exact in float64 and is rounded once. All digits of a place
  are computed at once, which takes about a tenth of the time of a loop over numbers.

  Example:
    >>> format_rows(np.array([[0.12345678, -2.5], [30, -1e-9]], np.float32))
    ['0.123457, -2.5', '30.0, -0.0']
  """
  if not np.abs(vectors).max() < 2000:  # times 10^6 it must fit into int32; also true for NaN
    rows = np.rint(vectors.astype(np.float64) * 1e6) / 1e6
    return [json.dumps(row)[1:-1] for row in rows.tolist()]
  places = list(_places(vectors))
  characters = np.empty([*vectors.shape, len(places)], np.uint8)
  shown = np.empty(characters.shape, bool)
  for place, (character, is_shown) in enumerate(places):
    characters[..., place], shown[..., place] = character, is_shown
  return characters[shown].tobytes().decode("ascii").splitlines()


def _places(vectors):
  """From left to right: the characters of each decimal place, and a mask of those to print."""
  millionths = np.rint(np.abs(vectors.astype(np.float64)) * 1e6).astype(np.int32)
  whole, fraction = np.divmod(millionths, 1_000_000)
  yield ord("-"), np.signbit(vectors)
  for power in reversed(range(len(str(whole.max())))):
    yield _digit(whole, power), whole >= 10**power if power else True
  yield ord("."), True
  for power in reversed(range(6)):  # Trailing zeros are dropped, except the first.
    yield _digit(fraction, power), fraction % 10 ** (power + 1) > 0 if power < 5 else True
  is_last = np.arange(vectors.shape[1]) == vectors.shape[1] - 1
  yield np.where(is_last, ord("\n"), ord(",")), True
  yield ord(" "), ~is_last


def _digit(numbers, power):
  """Returns the character of the digit of `10**power`."""
  return numbers // 10**power % 10 + ord("0")


# ---------------------------------------------------------------------------------------------
# Arrays.


def write_npz(path: str, results: Iterable[TextVectors], layout: Layout) -> int:
  """Writes arrays for `numpy.load`, and returns the number of texts.

  `layers` int32 `[L]`; `vectors` float32 `[M, L, W]`, or without pooling, over the pieces of all
  texts together, `vectors` `[pieces, L, W]`, `input_ids` int32 and `tokens` `[pieces]`, and
  `row_splits` int64 `[M + 1]`: text i has pieces `row_splits[i]` to `row_splits[i + 1]`.
  """
  count = 0
  with contextlib.ExitStack() as stack, written_output(path) as writer:

    def column(name, dtype, *row_shape):
      with atomic_files.errors_naming(path):
        aside = tempfile.TemporaryFile(dir=os.path.dirname(path) or ".")  # noqa: SIM115 (below)
      stack.callback(_close_quietly, aside)
      return _Column(name, np.dtype(dtype), row_shape, aside, path)

    vectors = column("vectors", np.float32, len(layout.layers), layout.hidden_size)
    columns = [vectors]
    if not layout.is_pooled:
      input_ids = column("input_ids", np.int32)
      tokens = column("tokens", f"<U{layout.token_length}")
      row_splits = column("row_splits", np.int64)
      row_splits.append([0])
      columns += [input_ids, tokens, row_splits]
    for result in results:
      count += 1
      if layout.is_pooled:
        vectors.append([result.vectors])
      else:
        vectors.append(result.vectors)
        input_ids.append(result.input_ids)
        tokens.append(result.tokens)
        row_splits.append([vectors.rows])
    columns.append(column("layers", np.int32))
    columns[-1].append(layout.layers)
    with zipfile.ZipFile(writer, "w") as archive:
      for each in columns:
        each.copy_into(archive)
  return count


def _close_quietly(file) -> None:
  with contextlib.suppress(OSError):  # on a full disk, closing tries to write again
    file.close()


class _Column:
  """An array that grows on disk; an .npy begins with its size, which is known only at the end.

  Attributes:
    rows: number of rows.
  """

  def __init__(self, name, dtype, row_shape, aside, path):
    self._name, self._dtype, self._row_shape, self._aside = name, dtype, row_shape, aside
    self._path = path  # errors of unnamed files name this one
    self.rows = 0

  def append(self, rows) -> None:
    array = np.asarray(rows, self._dtype)
    with atomic_files.errors_naming(self._path):
      self._aside.write(array.tobytes())
    self.rows += len(array)

  def copy_into(self, archive: zipfile.ZipFile) -> None:
    header = {
      "descr": np.lib.format.dtype_to_descr(self._dtype),
      "fortran_order": False,
      "shape": (self.rows, *self._row_shape),
    }
    with archive.open(f"{self._name}.npy", "w", force_zip64=True) as entry:
      np.lib.format.write_array_header_1_0(entry, header)
      with atomic_files.errors_naming(self._path):
        self._aside.seek(0)  # and writes what is buffered
      shutil.copyfileobj(self._aside, entry, 1 << 20)


WRITERS = {"jsonl": write_jsonl, "npz": write_npz}


# ---------------------------------------------------------------------------------------------
# Lines of text to a file: what `extract_features.py` does, on one machine or on many.


def write_vectors(
  predictor: Any,
  path: str,
  lines: Iterable[str],
  first_index: int = 0,
  *,
  source: text_lines.Source = "",
  output_format: str = "jsonl",
) -> int:
  """Writes and counts the vectors of lines with a predictor of features, see `text_shards.Work`."""
  del source  # any line is a text
  layout = predictor.processor.layout._replace(first_index=first_index)
  pairs = map(text_lines.split_pair, lines)
  return WRITERS[output_format](path, predictor.stream(pairs), layout)


def write_similarities(
  predictor: Any,
  path: str,
  lines: Iterable[str],
  first_index: int = 0,
  *,
  source: text_lines.Source,
) -> int:
  """Writes `{"linex_index": i, "similarity": cosine}` for the two texts of each line.

  Args:
    predictor: of the vectors of several layers, of which the first is compared.
    path: of the file.
    lines: each two texts.
    first_index: of the first line.
    source: of the lines, for errors.

  Returns:
    The number of lines.

  Raises:
    ValueError: a line is one text; names the line, by `source`.
  """
  vectors = (layers[0] for layers in predictor.stream(_single_texts(lines, source)))
  count = 0
  with text_lines.written_output(path) as writer:
    # The same iterator twice: the vectors of a line's two texts are consecutive.
    for count, (a, b) in enumerate(zip(vectors, vectors, strict=True), start=1):
      similarity = round(float(cosine_similarity(a, b)), 6)
      index = first_index + count - 1
      writer.write(text_lines.to_json({"linex_index": index, "similarity": similarity}))
  return count


def _single_texts(lines: Iterable[str], source: text_lines.Source) -> Iterator[str]:
  """Yields the first and the second text of each line, as two items."""
  for number, line in enumerate(lines, start=1):
    text_a, text_b = text_lines.split_pair(line)
    if text_b is None:
      raise ValueError(
        f"{text_lines.place(source, number)}: --similarity needs two texts, as in "
        f'"It rains. ||| It is wet.", not {text_a!r:.80}.'
      )
    yield text_a
    yield text_b
