"""Batches of fixed shapes: a text's vector has the same bits, whatever texts are around it.

The order in which a processor adds up, and the formula of a root, depend on the shape of an
operation. Found on x86-64, in float32:

* The sum of mean pooling is a tree whose branches depend on the length, padding included.
* LayerNorm's `1 / sqrt(variance)` is computed for 16 rows at once, by another formula than for the
  rows that remain at the end of the batch.
* A product of one row and a matrix of 768 rows and more adds up in another order than that of
  several rows.

In ordinary batches the other texts decide these shapes. Here a text's own length does:

* Texts of like length go together, padded to a length that is a multiple of 8, with one number of
  texts for each such length. So attention and pooling always see the same shape.
* The tokens without padding, which all other operations compute, are always
  `FixedBatchShapes.tokens` rows.
* What is missing is filled up with padding.

So other texts decide no more than the place of a text's rows in these shapes. That a row is
computed alike at every place is what `tests/predicting/batch_invariance_test.py` checks.

  batch_shapes = FixedBatchShapes(max_seq_length=128, max_position_embeddings=512)
  for chosen, shape in batch_shapes.batches([2, 7, 19]):
    ...                              # the texts `chosen`, in arrays of this shape
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

# Tokens of a batch. Larger ones have more padding in the last batch of each length, smaller ones
# more operations.
_TOKENS = 1024
_STEP = 8  # lengths are multiples of this


class Shape(NamedTuple):
  """The shape of a batch."""

  texts: int  # number of rows, those included that only fill up
  length: int  # number of places in a row


class FixedBatchShapes:
  """The shapes of a model's batches.

  Attributes:
    tokens: number of rows of the matrices without padding, in every batch.
  """

  def __init__(self, max_seq_length: int, max_position_embeddings: int):
    """Chooses the shapes for texts of at most `max_seq_length` tokens."""
    self._longest = max_position_embeddings
    self.tokens = max(_TOKENS, _rounded_up(max_seq_length, _STEP))

  def shape(self, length: int) -> Shape:
    """Returns the shape of the batches of texts of this length.

    Example:
      >>> batch_shapes = FixedBatchShapes(128, 512)
      >>> batch_shapes.shape(3), batch_shapes.shape(27), batch_shapes.shape(128)
      (Shape(texts=256, length=8), Shape(texts=37, length=32), Shape(texts=9, length=128))
    """
    padded = min(_rounded_up(length, _STEP), self._longest)
    # Enough texts of middling length to fill the batch. More would only be padding in attention.
    texts = -(-self.tokens // max(1, padded - _STEP // 2))
    # Vector instructions take 16 numbers at once, and another loop takes what remains at the end.
    return Shape(texts if padded % _STEP == 0 else _rounded_up(texts, 16), padded)

  def batches(self, lengths: Sequence[int]) -> Iterator[tuple[list[int], Shape]]:
    """Divides texts into batches by their lengths in tokens.

    Yields:
      The indices of the texts of a batch, and its shape. There are no more texts than rows, and no
      more tokens than `tokens`.

    Example:
      >>> [chosen for chosen, _ in FixedBatchShapes(512, 512).batches([500, 3, 400, 2, 509])]
      [[1, 3], [2], [0], [4]]
    """
    by_shape: dict[Shape, list[int]] = {}
    for index, length in enumerate(lengths):
      by_shape.setdefault(self.shape(length), []).append(index)
    for shape in sorted(by_shape, key=lambda shape: shape.length):
      chosen, tokens = [], 0
      for index in by_shape[shape]:
        if len(chosen) == shape.texts or tokens + lengths[index] > self.tokens:
          yield chosen, shape
          chosen, tokens = [], 0
        chosen.append(index)
        tokens += lengths[index]
      yield chosen, shape


def _rounded_up(number: int, multiple: int) -> int:
  return -(-number // multiple) * multiple
