"""Notes of which tensors of a traced graph are the ends of a known block of a transformer.

  with taken() as blocks:
    concrete = tf.function(model).get_concrete_function(...)
  blocks[0].name, blocks[0].inputs["x"], blocks[0].output

An engine with an operator for a whole block, such as LayerNorm or attention, puts that operator
between the noted inputs and the output, whatever operations TensorFlow has there. A note changes
nothing of the graph. Only blocks of models that are not trained are noted: those have no dropout.

No TensorFlow is needed here.
"""

import contextlib
import threading
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple


class Block(NamedTuple):
  """A block: `output` is what `name` says of `inputs` and `settings`."""

  name: str
  output: Any  # a tensor
  inputs: Mapping[str, Any]  # tensors and variables; None where an optional one is missing
  settings: Mapping[str, Any]  # numbers


class _Notes(threading.local):
  blocks: list[Block] | None = None


_notes = _Notes()


@contextlib.contextmanager
def taken() -> Iterator[list[Block]]:
  """Yields a list to which the blocks that are traced within are added."""
  outer, _notes.blocks = _notes.blocks, []
  try:
    yield _notes.blocks
  finally:
    _notes.blocks = outer


def noted(name: str, output: Any, settings: Mapping[str, Any] | None = None, **inputs: Any) -> Any:
  """Returns `output`; notes it where notes are taken."""
  if _notes.blocks is not None:
    _notes.blocks.append(Block(name, output, inputs, settings or {}))
  return output
