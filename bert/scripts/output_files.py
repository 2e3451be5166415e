"""Output files of scripts: checked before hours of work, never one of the inputs."""

import os
from collections.abc import Sequence

from bert.io import filesystem
from bert.io.atomic_files import hidden_beside


class OutputError(ValueError):
  """An output file cannot be written at the given place."""


def prepare(
  output_files: Sequence[str], input_files: Sequence[str] = (), may_be_remote: bool = False
) -> None:
  """Creates the folders of the output files, and tries to write there.

  Input files must not be overwritten; names such as `gs://bucket/file` may be allowed, unchecked.

  Raises:
    OutputError: two names are equal, or one cannot be a file.
  """
  inputs = {os.path.realpath(path) for path in input_files}
  real = [os.path.realpath(path) for path in output_files]
  if not output_files:
    raise OutputError("--output_file does not name a file.")
  for path, real_path in zip(output_files, real, strict=True):
    is_remote = filesystem.is_remote(path)
    if is_remote and not may_be_remote:
      raise OutputError(f"--output_file: {path} is remote. Write to a local disk, then copy it.")
    if real.count(real_path) > 1:
      raise OutputError(f"--output_file: {path} is given twice.")
    if real_path in inputs:
      raise OutputError(f"--output_file: {path} is also an input file, which would be lost.")
    if is_remote:
      continue
    if os.path.isdir(path):
      raise OutputError(f"--output_file: {path} is a folder. Give the name of a file in it.")
    _try_to_write(path)


def _try_to_write(path: str) -> None:
  temporary = hidden_beside(path, "tmp")
  try:
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(temporary, "wb"):
      pass
    os.remove(temporary)
  except OSError as error:
    raise OutputError(f"--output_file: cannot write {path}: {error.strerror}.") from error
