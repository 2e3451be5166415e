"""Several short sequences in one row: a batch without most of its padding.

  packed = pack(features)  # [N, S] of N examples -> [R, T] of R rows
  model = BertModel(
    config, is_training, packed["input_ids"], packed["input_mask"], packed["segment_ids"],
    position_ids=packed["position_ids"], sequence_ids=packed["sequence_ids"],
    first_positions=packed["first_positions"])
  model.get_pooled_output()  # [N, W], one vector for each example

Tokens see only those of their own sequence, and positions restart at 0 in each, so that the model
computes what it would have computed row by row. A batch still has N examples: labels, losses and
the number of steps are those of unpacked data.

Sequences go into rows by first-fit decreasing (Johnson 1973), the longest first, each into the
first row that has room for it: at most 11/9 of the rows of the best packing.

Letters in shapes: N = examples, S = their padded length, R = rows, T = their length, P =
predictions of an example, M = tokens.
"""

from collections.abc import Mapping
from typing import NamedTuple

import tensorflow as tf

from bert.training.length_groups import sequence_lengths

# Features with a value for each token, and their value in padding.
TOKEN_FEATURES = {"input_ids": 0, "input_mask": 0, "segment_ids": 0}


class Placement(NamedTuple):
  """The positions of sequences in rows."""

  rows: tf.Tensor  # int32 `[N]`, the row of each sequence
  offsets: tf.Tensor  # int32 `[N]`, the position in the row where it begins
  numbers: tf.Tensor  # int32 `[N]`, number of the sequence in its row, from 1
  num_rows: tf.Tensor  # int32 `[]`, rows in use


def pack(
  features: Mapping[str, tf.Tensor],
  row_length: int | None = None,
  num_rows: int | None = None,
  token_features: Mapping[str, int] | None = None,
) -> dict[str, tf.Tensor]:
  """Puts the sequences of a batch into rows.

  Args:
    features: `input_mask` and others of `token_features`, int `[N, S]`. `masked_lm_positions`, int
      `[N, P]`, if there, become positions in the flat `[R * T]`. All others are unchanged.
    row_length: T, at least as long as any sequence; S by default.
    num_rows: R, for devices that compile for fixed shapes. By default the number needed.
    token_features: name -> value in padding, `TOKEN_FEATURES` by default. Names that are not among
      the features are ignored.

  Returns:
    The features, those of tokens as `[R, T]`, and in addition
      `position_ids`: int32 `[R, T]`, from 0 in each sequence.
      `sequence_ids`: int32 `[R, T]`, number of the sequence in its row from 1; 0 for padding.
      `first_positions`: int32 `[N]`, where in the flat `[R * T]` each example begins.

  Raises:
    tf.errors.InvalidArgumentError: there are more tokens than `num_rows` hold.

  Example:
    >>> packed = pack({"input_mask": tf.constant([[1, 0, 0, 0], [1, 1, 1, 0], [1, 1, 0, 0]])})
    >>> packed["sequence_ids"].numpy().tolist()
    [[1, 1, 1, 2], [1, 1, 0, 0]]
    >>> packed["position_ids"].numpy().tolist()
    [[0, 1, 2, 0], [0, 1, 0, 0]]
    >>> packed["first_positions"].numpy().tolist()
    [3, 0, 4]
  """
  mask = features["input_mask"]
  row_length = row_length or mask.shape[1] or tf.shape(mask)[1]
  lengths = sequence_lengths(mask)
  placement = place(lengths, row_length, num_rows)
  first_positions = placement.rows * row_length + placement.offsets  # [N]
  tokens = tf.where(tf.sequence_mask(lengths, tf.shape(mask)[1]))  # [M, 2] of example, position
  examples, positions = tf.unstack(tf.cast(tokens, tf.int32), axis=1)
  places = (tf.gather(first_positions, examples) + positions)[:, tf.newaxis]  # [M, 1]
  shape = tf.stack([placement.num_rows, row_length])

  def lay(values, padding=0):
    """Places `[M]` of tokens into rows `[R, T]`."""
    flat = tf.scatter_nd(places, values - padding, [tf.reduce_prod(shape)]) + padding
    return tf.ensure_shape(tf.reshape(flat, shape), [num_rows, _static(row_length)])

  packed = dict(features)
  for name, padding in (TOKEN_FEATURES if token_features is None else token_features).items():
    if name in features:
      packed[name] = lay(tf.gather_nd(features[name], tokens), padding)
  if "masked_lm_positions" in features:
    packed["masked_lm_positions"] = features["masked_lm_positions"] + first_positions[:, tf.newaxis]
  packed["position_ids"] = lay(positions)
  packed["sequence_ids"] = lay(tf.gather(placement.numbers, examples))
  packed["first_positions"] = first_positions
  return packed


# The arguments of `BertModel` for packed rows.
def _static(size) -> int | None:
  return None if tf.is_tensor(size) else size


def place(lengths: tf.Tensor, row_length: int, num_rows: int | None = None) -> Placement:
  """Finds a row for each sequence, by first-fit decreasing.

  Args:
    lengths: int32 `[N]`, none above `row_length`.
    row_length: tokens that a row holds.
    num_rows: exact number of rows; by default the number needed.

  Raises:
    tf.errors.InvalidArgumentError: a sequence finds no room.

  Example:
    >>> placement = place(tf.constant([3, 7, 5, 2]), row_length=10)
    >>> placement.rows.numpy().tolist(), placement.offsets.numpy().tolist()
    ([0, 0, 1, 1], [7, 0, 0, 5])
  """
  count = tf.size(lengths)
  longest_first = tf.argsort(lengths, direction="DESCENDING", stable=True)

  def put(i, free, held, placed):
    length = lengths[longest_first[i]]
    row = tf.argmax(free >= length, output_type=tf.int32)  # The first row with enough space.
    found = tf.stack([row, row_length - free[row], held[row] + 1])
    chosen = tf.one_hot(row, tf.size(free), dtype=tf.int32)
    return i + 1, free - length * chosen, held + chosen, placed.write(i, found)

  free = tf.fill([count if num_rows is None else num_rows], row_length)
  placed = tf.TensorArray(tf.int32, count, element_shape=[3])
  _, free, held, placed = tf.while_loop(
    lambda i, *_: i < count, put, [0, free, tf.zeros_like(free), placed]
  )
  # If no row has enough space, the first row is chosen, and overflows.
  fits = tf.debugging.assert_non_negative(free, _too_little(row_length, num_rows))
  with tf.control_dependencies([fits] if fits is not None else []):
    placed = tf.gather(placed.stack(), tf.math.invert_permutation(longest_first))  # [N, 3]
  used = tf.math.count_nonzero(held, dtype=tf.int32) if num_rows is None else num_rows
  rows, offsets, numbers = tf.unstack(placed, axis=1)
  return Placement(rows, offsets, numbers, used)


def _too_little(row_length, num_rows) -> str:
  size = f"rows of {_static(row_length) or 'such'} tokens"
  if num_rows is None:
    return f"A sequence is longer than {size}."
  return f"A batch does not fit into {num_rows} {size}: it needs more rows, or fewer examples."


def unpack(
  values: tf.Tensor, packed: Mapping[str, tf.Tensor], length: int | tf.Tensor, padding=0
) -> tf.Tensor:
  """Undoes `pack` for a feature or an output for each token: `[N, S, ...]`, in the old order.

  Args:
    values: `[R, T, ...]`.
    packed: the result of `pack`.
    length: S; longer examples are cut.
    padding: the value after the end of a sequence.

  Example:
    >>> mask = tf.constant([[1, 0, 0, 0], [1, 1, 1, 0], [1, 1, 0, 0]])
    >>> packed = pack({"input_mask": mask})
    >>> unpack(packed["input_mask"], packed, length=4).numpy().tolist()
    [[1, 0, 0, 0], [1, 1, 1, 0], [1, 1, 0, 0]]
  """

  def flat(x):
    return tf.reshape(x, tf.concat([[-1], tf.shape(x)[2:]], 0))

  numbers, positions = flat(packed["sequence_ids"]), flat(packed["position_ids"])
  steps = tf.range(length)
  places = packed["first_positions"][:, tf.newaxis] + steps  # [N, S]
  inside = tf.minimum(places, tf.size(numbers) - 1)
  # A sequence has ended where positions restart or padding begins.
  is_own = (tf.gather(positions, inside) == steps) & (tf.gather(numbers, inside) > 0)
  is_own &= places == inside
  result = tf.gather(flat(values), inside)
  is_own = tf.reshape(is_own, tf.concat([tf.shape(is_own), tf.ones_like(tf.shape(result)[2:])], 0))
  return tf.where(is_own, result, tf.cast(padding, result.dtype))
