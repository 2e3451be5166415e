"""A checkpoint as a table of its tensors, for people.

print(table_of("uncased_L-12_H-768_A-12/bert_model.ckpt"))
"""

import math
import re

from bert.checkpoints import reading
from bert.checkpoints.load_report import is_training_state
from bert.io.wording import aligned

_SLOT = re.compile(r"(.+)/(adam_[mv])")


def table_of(prefix: str) -> str:
  """Makes a table of the tensors in a checkpoint, and totals, from its prefix.

  The slots of the optimizer are in the line of their variable.
  """
  contents = reading.names_and_shapes(prefix)
  slots_of: dict[str, list[str]] = {}
  for match in filter(None, map(_SLOT.fullmatch, contents)):
    slots_of.setdefault(match[1], []).append(match[2])
  model = [name for name in contents if not is_training_state(name)]
  alone = [name for name in slots_of if name not in contents]
  rows = [("name", "shape", "type", "parameters", "slots")]
  for name in sorted(model + alone, key=_natural_order):
    shape, dtype = contents.get(name) or contents[f"{name}/{slots_of[name][0]}"]
    count = f"{math.prod(shape):,}" if name in contents else "none"
    slots = ", ".join(slots_of.get(name, []))
    rows.append((name, str(list(shape)), dtype.name, count, slots))
  totals = [f"Model: {_total(contents, model)}", f"In all: {_total(contents, contents)}"]
  if "global_step" in contents:
    step = reading.read_tensors(prefix, ["global_step"])["global_step"]
    totals.append(f"global_step: {int(step)}")
  return "\n".join([prefix, "", *aligned(rows), "", *totals])


def _natural_order(name: str) -> list:
  """Sorts layer 10 behind layer 9.

  Example:
    >>> sorted(["layer_10", "layer_9"], key=_natural_order)
    ['layer_9', 'layer_10']
  """
  return [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", name)]


def _total(contents, names) -> str:
  sizes = [(math.prod(contents[name][0]), contents[name][1].itemsize) for name in names]
  size_mb = sum(count * width for count, width in sizes) / 1e6
  count = sum(count for count, _ in sizes)
  return f"{len(sizes)} tensors, {count:,} parameters, {size_mb:,.1f} MB"
