"""Flags that are paths: `~` is the user's own folder; a remote path only where it can be used.

  path_flags.define("vocab_file", None, "The vocabulary.")  # also gs://bucket/vocab.txt
  path_flags.define("output_dir", None, "Folder for results.", local=True)

A flag of a model's file, such as --vocab_file, takes the folder of the model, too.

Which file systems a remote path can be on is decided where it is opened (`bert/io/filesystem.py`).
"""

import os

from absl import flags

from bert.io import filesystem

# Flags of a model's files: which of `model_files.ModelFiles` a folder stands for.
_OF_MODEL = {
  "bert_config_file": "config",
  **dict.fromkeys(("vocab_file", "old_vocab_file", "spm_model_file"), "vocabulary"),
}


class PathParser(flags.ArgumentParser):
  """The parser of a flag that is a path.

  Attributes:
    local: whether the path must be local.
    several: whether there may be several, separated by commas.
    is_model: whether it may be the name or the address of a model instead.
    of_model: which file of a model the path is, "config" or "vocabulary"; None for another.
  """

  def __init__(self, local: bool, several: bool, is_model: bool, of_model: str | None = None):
    self.local = local
    self.several = several
    self.is_model = is_model
    self.of_model = of_model

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
    # A remote folder is found when it is opened: parsing waits for no network.
    return self._file_in(path) if self.of_model and os.path.isdir(path) else path

  def _file_in(self, folder: str) -> str:
    """Returns the file of the model in its folder; a ValueError where it has none."""
    from bert.checkpoints import model_files

    need = {"config": model_files.need_config, "vocabulary": model_files.need_vocabulary}
    try:
      return need[self.of_model or ""](folder)
    except ValueError as error:
      raise ValueError(str(error).rstrip(".")) from None


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
  parser = PathParser(local, several, is_model, _OF_MODEL.get(name))
  flags.DEFINE(parser, name, default, help, serializer=flags.ArgumentSerializer())


def is_path(flag: flags.Flag) -> bool:
  """Tells whether `define` defined the flag."""
  return isinstance(flag.parser, PathParser)
