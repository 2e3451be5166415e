"""`tf.contrib.slim`: what `tf.contrib.layers` and `tf.contrib.framework` have, and lists of files.

Of its own training loops, networks and data sets nothing is here.
"""

import types
from typing import Any

from bert.tf1.contrib import framework, layers
from bert.tf1.errors import unknown_name
from bert.tf1.real import tf


def get_data_files(data_sources) -> list[str]:
  """Returns the paths that a path, a pattern or a list of these names, in sorted order.

  A path without `*`, `?` or `[` is taken as it is.

  Raises:
    ValueError: there is no file of that pattern.
  """
  if isinstance(data_sources, list | tuple):
    files = [path for source in data_sources for path in get_data_files(source)]
  elif any(sign in data_sources for sign in "*?["):
    files = sorted(tf.gfile.Glob(data_sources))
  else:
    files = [data_sources]
  if not files:
    raise ValueError(f"No data files found in {data_sources}")
  return files


parallel_reader = types.SimpleNamespace(get_data_files=get_data_files)

_unknown = unknown_name(__name__)


def __getattr__(name: str) -> Any:
  for part in (layers, framework):
    if not name.startswith("_") and hasattr(part, name):
      return getattr(part, name)
  return _unknown(name)
