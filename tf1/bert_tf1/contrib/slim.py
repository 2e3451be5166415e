"""`tf.contrib.slim`: what the layers, framework, losses and metrics have, lists of files, sizes.

Of its own training loops, networks and data sets nothing is here.
"""

import types
from typing import Any

from bert_tf1.contrib import framework, layers, losses, metrics  # noqa: F401 (slim's names, too)
from bert_tf1.errors import unknown_name
from bert_tf1.real import tf


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


def tensor_description(var) -> str:
  """Returns the type and shape of a tensor or variable: `(float32 2x3)`, `(float32_ref 2x3)`."""
  shape = "x".join("?" if size is None else str(size) for size in var.shape.as_list())
  return f"({var.dtype.name} {shape})"


def analyze_ops(graph, print_info=False) -> int:
  """Returns how many numbers all outputs of a graph's operations have, and prints them if asked to.

  Outputs whose size is not known count as 0.
  """
  lines, total = [], 0
  for op in graph.get_operations():
    size = sum(output.shape.num_elements() or 0 for output in op.outputs)
    known = [output for output in op.outputs if output.shape.rank is not None]
    shapes = ", ".join(map(tensor_description, known))
    lines.append(f"{op.name} \t-> {shapes} [{size}]")
    total += size
  if print_info:
    print(*_heading("Operations: name -> (type shapes) [size]"), *lines, sep="\n")
  return total


def analyze_vars(variables, print_info=False) -> tuple[int, int]:
  """Returns how many numbers and bytes variables have together, and prints each if asked to."""
  lines, total, total_bytes = [], 0, 0
  for variable in variables:
    size = variable.shape.num_elements() or 0
    bytes_ = size * variable.dtype.size
    lines.append(f"{variable.name} {tensor_description(variable)} [{size}, bytes: {bytes_}]")
    total += size
    total_bytes += bytes_
  if print_info:
    print(*_heading("Variables: name (type shape) [size]"), *lines, sep="\n")
    print(f"Total size of variables: {total}\nTotal bytes of variables: {total_bytes}")
  return total, total_bytes


def _heading(text: str) -> tuple[str, str, str]:
  return "-" * 9, text, "-" * 9


model_analyzer = types.SimpleNamespace(
  analyze_ops=analyze_ops, analyze_vars=analyze_vars, tensor_description=tensor_description
)
parallel_reader = types.SimpleNamespace(get_data_files=get_data_files)

_unknown = unknown_name(__name__)


def __getattr__(name: str) -> Any:
  for part in (layers, framework):
    if not name.startswith("_") and hasattr(part, name):
      return getattr(part, name)
  return _unknown(name)
