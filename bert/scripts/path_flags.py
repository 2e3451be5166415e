"""Flags that are paths, of scripts without typed settings; what they may be says `settings.Path`.

path_flags.define("vocab_file", None, "The vocabulary.")  # also gs://bucket/vocab.txt
path_flags.define("output_dir", None, "Folder for results.", local=True)
"""

from absl import flags

from bert.scripts.settings import Path


class PathParser(flags.ArgumentParser):
  """Reads the path of a flag."""

  def __init__(self, name: str, path: Path):
    self.name = name
    self.path = path

  def parse(self, argument: str) -> str:
    """Returns the path as it is opened; a ValueError for one of no use."""
    return self.path.read(self.name, argument)


def define(name: str, default: str | None, help: str, **options: bool) -> None:
  """Defines a flag whose value is a path; `options` are those of `settings.Path`."""
  parser = PathParser(name, Path(**options))
  flags.DEFINE(parser, name, default, help, serializer=flags.ArgumentSerializer())


def is_path(flag: flags.Flag) -> bool:
  """Tells whether a flag is a path."""
  return isinstance(flag.parser, PathParser)
