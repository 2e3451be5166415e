"""How near trained weights must be to recorded ones: both are float32, and rounding grows."""

from collections.abc import Mapping

import numpy as np

# A recorded value is off by its noise, ours by another draw of the same; the largest of thousands
# of weights differ between machines, too.
_DRAWS = 4
# A tensor's noise may happen to be less than the last digits of its values.
_FLOOR = 1e-6
# Of a whole tensor: here few weights with hardly a gradient, which rounding moves, do not count.
_ROOT_MEAN_SQUARE = 4e-7


def assert_within_noise(
  found: Mapping[str, np.ndarray],
  recorded: Mapping[str, np.ndarray],
  noise: Mapping[str, float],
  without_gradient: tuple[str, ...] = (),
) -> None:
  """Compares tensors, by name, with those of the original in float32.

  The noise is the largest distance of a recorded tensor from the same training in float64. Tensors
  whose names end with one of `without_gradient` have a true gradient of zero: they hold rounding
  alone, of which every weight has as much.
  """
  assert found.keys() == recorded.keys()
  for name, values in found.items():
    difference = np.asarray(values, np.float64) - recorded[name]
    largest, allowed = np.abs(difference).max(), max(_FLOOR, _DRAWS * noise[name])
    assert largest <= allowed, f"{name} differs by {largest:.1e}, more than {allowed:.1e}"
    mean = np.sqrt(np.mean(difference**2))
    if not name.endswith(without_gradient):
      assert mean <= _ROOT_MEAN_SQUARE, f"{name} differs by {mean:.1e} on the average"
