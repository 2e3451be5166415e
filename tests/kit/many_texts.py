"""A text of many short lines, and the files that its shards become."""

import pathlib
import random

from tests.kit.exports import WORDS

COUNT = 150


def write(path: pathlib.Path, count: int = COUNT) -> pathlib.Path:
  """Writes lines of none to twelve words, some of them pairs; returns the path."""
  rng = random.Random(1)
  lines = [" ".join(rng.choices(WORDS, k=rng.randrange(12))) for _ in range(count)]
  lines[3::7] = [f"{line} ||| good film" for line in lines[3::7]]
  path.write_text("\n".join(lines) + "\n", encoding="utf-8")
  return path


def joined(output_file: pathlib.Path) -> bytes:
  """The content of all shards, one after the other."""
  paths = sorted(output_file.parent.glob(f"{output_file.name}-*-of-*"))
  return b"".join(path.read_bytes() for path in paths)
