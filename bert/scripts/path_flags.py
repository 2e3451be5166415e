"""Flags that are paths: `~` is the user's own folder; a remote path only where it can be used.

  path_flags.define("vocab_file", None, "The vocabulary.")  # also gs://bucket/vocab.txt
  path_flags.define("output_dir", None, "Folder for results.", local=True)

Which file systems a remote path can be on is decided where it is opened (`bert/io/filesystem.py`).
"""

import os

from absl import flags

from bert.io import filesystem


class PathParser(flags.ArgumentParser):
  """The parser of a flag that is a path.

  Attributes:
    local: whether the path must be local.
    several: whether there may be several, separated by commas.
    is_model: whether it may be the name or the address of a model instead.
  """

  def __init__(self, local: bool, several: bool, is_model: bool):
    self.local = local
    self.several = several
    self.is_model = is_model

  def parse(self, argument: str) -> str:
    """Returns the path, or the paths, as they are opened; a ValueError for one of no use."""
    if not self.several:
      return self._parse_one(argument)
    return ",".join(map(self._parse_one, argument.split(",")))

  def _parse_one(self, path: str) -> str:
    path = os.path.expanduser(path)
    if meant := filesystem.meant_as_remote(path):
      raise ValueError(f"did you mean {meant}? If it is a local folder, write ./{path}")
    if self.local:
      path = path.removeprefix("file://")
      if filesystem.is_remote(path):
        raise ValueError("this path is remote, but must be local. Copy to or from a local disk")
    elif filesystem.is_web_address(path) and not self.is_model:
      raise ValueError("this is an address on the web. Download the file, and give its path")
    return path


def define(
  name: str,
  default: str | None,
  help: str,
  *,
  local: bool = False,
  several: bool = False,
  is_model: bool = False,
) -> None:
  """Defines a flag whose value is a path; otherwise as `flags.DEFINE_string`.

  Args:
    name: of the flag.
    default: its default.
    help: for `--help`.
    local: whether the path must be local, because locks, renames and the like are needed.
    several: whether there may be several, separated by commas.
    is_model: whether the flag takes what `model_source.identify` takes.
  """
  parser = PathParser(local, several, is_model)
  flags.DEFINE(parser, name, default, help, serializer=flags.ArgumentSerializer())


def is_path(flag: flags.Flag) -> bool:
  """Tells whether `define` defined the flag."""
  return isinstance(flag.parser, PathParser)
