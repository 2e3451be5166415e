"""Missing memory, as one line that says what to lower.

  with explained("Lower batch_size=1000."):
    outputs = model(batch)

Each library reports missing memory in its own way: Python and NumPy by a `MemoryError`, TensorFlow
by a `ResourceExhaustedError` with the source lines of the model, XLA by an `InternalError`. This
module imports none of them. It cannot help where Linux kills the process without any error.
"""

import contextlib
import math
import re
from collections.abc import Iterator

# TensorFlow uses ResourceExhaustedError for a full disk, too, so the text decides.
_ABOUT_MEMORY = re.compile(
  r"\bOOM\b|out of memory|OUT_OF_MEMORY|ran out of memory|bad_alloc|"
  r"(failed|unable) to allocate|could not create a memory",
  re.IGNORECASE,
)
# `OOM when allocating tensor with shape[8,128] and type float on /job:localhost/...`
_TENSOR = re.compile(r"tensor with shape ?(\[[\d,]*\]) and type (\w+)")
_DEVICE = re.compile(r"device:((?:GPU|CPU|TPU):\d+)")
_ITEM_BYTES = {"float": 4, "int32": 4, "half": 2, "bfloat16": 2, "double": 8, "int64": 8}
_LIBRARIES = ("tensorflow", "jaxlib", "jax", "torch")


class OutOfMemoryError(MemoryError):
  """The memory does not suffice; the message says what to lower."""


def is_out_of_memory(error: BaseException) -> bool:
  """Tells whether an error of any library is about missing memory.

  Example:
    >>> is_out_of_memory(MemoryError()), is_out_of_memory(RuntimeError("out of memory"))
    (True, False)
  """
  if isinstance(error, MemoryError):
    return True
  is_of_library = type(error).__module__.split(".")[0] in _LIBRARIES
  return is_of_library and bool(_ABOUT_MEMORY.search(str(error)))


def what_was_asked(error: BaseException) -> str:
  """Names what did not fit, on one line, as far as the error says.

  Example:
    >>> what_was_asked(MemoryError("OOM when allocating tensor with shape[3,4] and type float on "
    ...                            "/job:localhost/replica:0/task:0/device:CPU:0"))
    'Out of memory for a tensor [3,4] of float (0.0 GiB) on CPU:0.'
    >>> what_was_asked(MemoryError())
    'Out of memory.'
  """
  text = str(error)
  tensor, device = _TENSOR.search(text), _DEVICE.search(text)
  if tensor:
    place = f" on {device[1]}" if device else ""
    count = math.prod(int(size) for size in re.findall(r"\d+", tensor[1]))
    gibibytes = count * _ITEM_BYTES.get(tensor[2], 1) / 2**30
    return f"Out of memory for a tensor {tensor[1]} of {tensor[2]} ({gibibytes:.1f} GiB){place}."
  line = next((line.strip() for line in text.splitlines() if _ABOUT_MEMORY.search(line)), "")
  line = re.sub("^out of memory:? *", "", line[:200].rstrip("."), flags=re.IGNORECASE)
  return f"Out of memory: {line}." if line else "Out of memory."


@contextlib.contextmanager
def explained(advice: str) -> Iterator[None]:
  """Turns errors of missing memory into an `OutOfMemoryError` with `advice`, unless it has one."""
  try:
    yield
  except OutOfMemoryError:
    raise
  except Exception as error:
    if not is_out_of_memory(error):
      raise
    raise OutOfMemoryError(f"{what_was_asked(error)} {advice}") from None
