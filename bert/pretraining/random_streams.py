"""Random numbers that depend only on where they are used, not on earlier ones.

  stream = Stream(stream_key(seed, pass_number, document_number))
  stream.random(), stream.below(6)

  keys = np.array([...], np.uint64)  # one for each row
  draw_uniform(keys[:, None], np.arange(128))  # [n, 128]

Work that is split among processes cannot share one generator. Here each document has its own
stream, which is determined by its key. The generator is SplitMix64 (Steele, Lea and Flood, "Fast
splittable pseudorandom number generators", OOPSLA 2014): number i of a stream is a hash of
`key + i * constant`. So a stream takes 8 bytes and no initialization (`random.Random`: 2.5 KB and
5 us), many streams are evaluated at once as arrays, and the numbers are the same on every platform
and with every version of NumPy.
"""

import numpy as np

# Constants of SplitMix64.
STEP = 0x9E3779B97F4A7C15  # 2**64 / golden ratio, made odd
FACTORS = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
_MASK = (1 << 64) - 1


def stream_key(*numbers: int) -> int:
  """Returns a 64-bit key from integers; their order matters."""
  key = 0
  for number in numbers:
    key = _mix((key ^ (number & _MASK)) + STEP)
  return key


def _mix(number: int) -> int:
  number &= _MASK
  number = (number ^ number >> 30) * FACTORS[0] & _MASK
  number = (number ^ number >> 27) * FACTORS[1] & _MASK
  return number ^ number >> 31


class Stream:
  """Random numbers one after another.

  Example:
    >>> dice = Stream(stream_key(12345, 0))
    >>> [1 + dice.below(6) for _ in range(8)]
    [4, 3, 6, 5, 6, 3, 4, 1]
  """

  def __init__(self, key: int):
    self._state = key

  def bits(self) -> int:
    """64 random bits."""
    self._state += STEP
    return _mix(self._state)

  def random(self) -> float:
    """Uniform from 0 up to 1, 1 excluded."""
    return (self.bits() >> 11) * 2**-53

  def below(self, count: int) -> int:
    """An integer from 0 to `count` - 1; their probabilities differ by less than `count` / 2**64."""
    return self.bits() * count >> 64

  def heads(self, throws: int) -> int:
    """Returns the number of heads in `throws` throws of a coin."""
    count = 0
    while throws > 64:
      count += self.bits().bit_count()
      throws -= 64
    return count + (self.bits() & ((1 << throws) - 1)).bit_count()


def draw(keys: np.ndarray, indices: np.ndarray | int) -> np.ndarray:
  """Number `indices` (from 0) of the streams of `keys`, both uint64, broadcast: 64 bits each.

  Example:
    >>> stream = Stream(7)
    >>> [stream.bits() for _ in range(3)] == draw(np.uint64([7]), np.arange(3)).tolist()
    True
  """
  numbers = keys + (np.asarray(indices).astype(np.uint64) + np.uint64(1)) * np.uint64(STEP)
  numbers ^= numbers >> np.uint64(30)
  numbers *= np.uint64(FACTORS[0])
  numbers ^= numbers >> np.uint64(27)
  numbers *= np.uint64(FACTORS[1])
  numbers ^= numbers >> np.uint64(31)
  return numbers


def draw_uniform(keys: np.ndarray, indices: np.ndarray | int) -> np.ndarray:
  """As `draw`, but float64 from 0 up to 1, 1 excluded."""
  return (draw(keys, indices) >> np.uint64(11)) * 2.0**-53
