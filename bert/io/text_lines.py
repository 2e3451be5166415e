"""Lines of text in, files out, for scripts that answer line by line.

with written_output("answers.jsonl") as writer:  # appears when it is complete
  for line in read_lines("texts.txt"):           # or "-", standard input
    writer.write(to_json({"text": line}))
"""

import contextlib
import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

import numpy as np
from absl import logging

from bert.io import atomic_files, filesystem, other_formats
from bert.io.tables import DataError

STANDARD_STREAM = "-"

# Where items are from: the name of a file whose lines they are, or what says where the n-th is.
Source = str | Callable[[int], str]


def read_lines(input_file: str) -> Iterator[str]:
  r"""Yields the lines of a text file (`-`: standard input) without surrounding whitespace.

  Raises:
    DataError: a line is not UTF-8.
    OSError: the file cannot be read.
  """
  name = "standard input" if input_file == STANDARD_STREAM else input_file
  if input_file.endswith((".csv", ".tsv")):
    logging.warning(
      "%s is not read as a table here, as predict.py does: each line is a text, a header and "
      "delimiters too.",
      name,
    )
  with _open_to_read(input_file) as reader:
    for number, line in enumerate(reader, start=1):
      if number == 1 and (other := other_formats.find(line, pages=False)):
        raise DataError(f"the file is {other[0]}.", name, advice=other[1])
      try:
        yield decode(line, begins_file=number == 1)
      except UnicodeDecodeError as error:
        raise not_utf8(error, name, number) from None


def decode(line: bytes, begins_file: bool) -> str:
  r"""Decodes a line, without surrounding whitespace; may raise a UnicodeDecodeError.

  A byte order mark belongs to the file, not to the text.

  Example:
    >>> decode(b"\xef\xbb\xbf a\n", begins_file=True)
    'a'
  """
  return line.decode("utf-8-sig" if begins_file else "utf-8").strip()


def not_utf8(error: UnicodeDecodeError, name: str, number: int) -> DataError:
  """Returns the error that names the file and the line that `decode` could not read."""
  return DataError(
    f"byte 0x{error.object[error.start]:02x} is not UTF-8.", name, number, "Save the file as UTF-8."
  )


def place(source: Source, number: int) -> str:
  """Writes where an item is, for messages; items are counted from 1.

  Example:
    >>> place("texts.txt", 3)
    'texts.txt, line 3'
  """
  return f"{source}, line {number}" if isinstance(source, str) else source(number)


def _open_to_read(path: str) -> contextlib.AbstractContextManager[BinaryIO]:
  if path == STANDARD_STREAM:
    return contextlib.nullcontext(sys.stdin.buffer)
  return filesystem.open_to_read(path, once=True)


def split_pair(line: str) -> tuple[str, str | None]:
  """Splits a line into its two texts, or one and None.

  Example:
    >>> split_pair("Who was he ? ||| A puppeteer")
    ('Who was he ?', 'A puppeteer')
    >>> split_pair("Who was he ?")
    ('Who was he ?', None)
  """
  match = re.match(r"^(.*) \|\|\| (.*)$", line)
  return (match[1], match[2]) if match else (line, None)


@contextlib.contextmanager
def written_output(path: str) -> Iterator[BinaryIO]:
  """Opens the output file of a script, as a flag names it; see `atomic_files.written_whole`.

  `-` is standard output; that, and pipes and devices, cannot be replaced and are written to.

  Raises:
    OSError: it cannot be written; the error names `path`.
  """
  if path == STANDARD_STREAM:
    yield sys.stdout.buffer
    sys.stdout.buffer.flush()
    return
  is_special = os.path.exists(path) and not os.path.isfile(path)
  with open(path, "wb") if is_special else atomic_files.written_whole(path) as writer:
    yield writer


def check_output_file(path: str, input_file: str | None = None) -> None:
  """Raises an OSError if `--output_file` cannot be written or is `input_file`, before long work."""
  if path == STANDARD_STREAM:
    return
  if input_file and os.path.realpath(input_file) == os.path.realpath(path):
    raise FileExistsError(f"--output_file={path} is also the --input_file, which would be lost.")
  if filesystem.is_remote(path):
    return
  folder = os.path.dirname(path) or "."
  if not os.path.isdir(folder):
    raise FileNotFoundError(f"--output_file={path}: there is no folder {folder}.")
  if os.path.isdir(path):
    raise IsADirectoryError(f"--output_file={path} is a folder; name a file in it.")


def to_json(result: Any) -> bytes:
  """Writes a line of JSON in UTF-8, arrays as lists.

  Example:
    >>> to_json({"label": "ja", "probabilities": np.array([0.25, 0.75])})
    b'{"label": "ja", "probabilities": [0.25, 0.75]}\\n'
  """
  return (json.dumps(result, ensure_ascii=False, default=np.ndarray.tolist) + "\n").encode()
