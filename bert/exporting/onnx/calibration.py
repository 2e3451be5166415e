"""Ranges of a model's tensors, measured on texts."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import onnx

from bert.exporting.onnx.names import INPUTS

_SAMPLES = 20_000  # values of a batch that are kept for each tensor

Range = tuple[float, float]  # the lowest value and the highest


def measure(
  model: onnx.ModelProto, names: list[str], batches: Iterable[Mapping[str, np.ndarray]]
) -> dict[str, Range]:
  """Finds the ranges with the least squared error of rounding; rare values beyond are cut off.

  Args:
    model: a float model.
    names: of its tensors.
    batches: int `[R, S]` by the names of `task_head.SEQUENCES`.

  Raises:
    ValueError: there are no batches.
  """
  session = _session(model, names)
  samples: dict[str, list[np.ndarray]] = {name: [] for name in names}
  random = np.random.default_rng(0)
  for batch in batches:
    for name, values in _values(session, names, batch):
      samples[name].append(_sample(values, random))
  if not all(samples.values()):
    raise ValueError(
      "Static quantization needs texts to measure ranges on, and there are none. Name a file "
      "of them (--calibration_file), or quantize without (--int8)."
    )
  return {name: _range_of(np.concatenate(parts)) for name, parts in samples.items()}


def scale_and_zero(lowest: float, highest: float) -> tuple[np.float32, np.uint8]:
  """Returns scale and zero point with which uint8 reaches from the lowest value to the highest.

  Example:
    >>> scale, zero = scale_and_zero(-1.0, 4.1)
    >>> round(float(scale), 4), int(zero)
    (0.02, 50)
  """
  lowest, highest = min(lowest, 0.0), max(highest, 0.0)
  scale = np.float32((highest - lowest) / 255 or 1.0)
  return scale, np.uint8(np.clip(np.rint(-lowest / scale), 0, 255))


def _session(model, names) -> Any:
  import onnxruntime

  observed = onnx.ModelProto()
  observed.CopyFrom(model)
  known = {info.name for info in model.graph.output}
  observed.graph.output.extend(
    onnx.ValueInfoProto(name=name) for name in names if name not in known
  )
  return onnxruntime.InferenceSession(
    observed.SerializeToString(), providers=["CPUExecutionProvider"]
  )


def _values(session, names, batch) -> Iterator[tuple[str, np.ndarray]]:
  """Yields the values of each tensor at tokens; those at padding do not matter."""
  asked = {each.name for each in session.get_inputs()}
  given = {outside: batch[name] for name, outside in INPUTS.items() if outside in asked}
  given = {name: np.asarray(values, np.int64) for name, values in given.items()}
  is_token = np.asarray(batch["input_mask"]).reshape(-1) != 0
  for name, values in zip(names, session.run(names, given), strict=True):
    rows = values.reshape(-1, values.shape[-1])
    yield name, rows[is_token] if len(rows) == len(is_token) else rows


def _sample(values: np.ndarray, random: Any) -> np.ndarray:
  """Some of the values, the smallest and the largest among them."""
  values = values.reshape(-1)
  if values.size <= _SAMPLES:
    return values
  ends = [values.min(), values.max()]
  return np.concatenate([values[random.integers(0, values.size, _SAMPLES)], ends])


def _range_of(values: np.ndarray) -> Range:
  lowest, highest = float(values.min()), float(values.max())
  best, least = (lowest, highest), np.inf
  for share in np.linspace(1.0, 0.3, 36):
    scale, zero = scale_and_zero(lowest * share, highest * share)
    rounded = np.clip(np.rint(values / scale) + zero, 0, 255) - zero
    error = float(np.square(rounded * scale - values, dtype=np.float64).mean())
    if error < least:
      best, least = (lowest * share, highest * share), error
  return best
