"""SQuAD for pieces that know their place in the paragraph: those of ALBERT and RoBERTa.

ALBERT's pieces of a paragraph are those of its prepared text: normalized, without accents, with
single spaces. Its characters are aligned with those of the paragraph by a longest common
subsequence near the diagonal (`squad_utils.convert_examples_to_features`, google-research/albert).
RoBERTa's tokenizer says itself where its tokens stand. Answers are then cut out of the paragraph by
characters, where BERT's are mapped to words.

Pure Python and NumPy, no TensorFlow.
"""

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from absl import logging

from bert.text.byte_pairs import BytePairTokenizer
from bert.text.sentence_pieces import SPACE, SentencePieceTokenizer, preprocess_text

# An alignment has to cover that share of a paragraph; else its questions are left out.
_LEAST_ALIGNED = 0.8
# How far from the diagonal characters may lie, beyond the difference of both lengths.
_SLACK = 5


class PlacedPieces(NamedTuple):
  """The pieces of a paragraph."""

  pieces: list[str]  # in order
  # int32 `[P, 2]`: the first and the last character of each in the paragraph. The last may lie
  # before the first, where a piece has no character of its own.
  spans: np.ndarray
  # For each character of the paragraph, the pieces of an answer that begins and of one that ends
  # there.
  piece_of_char: Callable[[int], tuple[int, int]]


def placed_pieces(tokenizer) -> Callable[[str], PlacedPieces | None] | None:
  """Makes a function from paragraphs to their tokens; it remembers some, as questions share them.

  It returns None for a paragraph that cannot be aligned with its pieces, with a warning. Of a
  tokenizer whose answers are mapped to words there is no such function.
  """
  place: Callable[..., PlacedPieces | None]
  if isinstance(tokenizer, SentencePieceTokenizer):
    place = _place
  elif isinstance(tokenizer, BytePairTokenizer):
    place = _place_byte_pairs
  else:
    return None
  return functools.lru_cache(maxsize=16)(functools.partial(place, tokenizer))


def pair(span: np.ndarray) -> tuple[int, int]:
  """Returns a row of `PlacedPieces.spans`."""
  return int(span[0]), int(span[1])


def _place_byte_pairs(tokenizer, context: str) -> PlacedPieces:
  """As transformers' recipe: an answer begins at the last piece that begins at its first character
  or before, and ends at the first piece that ends at its last character or after."""
  found = tokenizer.tokenize_with_offsets(context)
  starts = np.array([piece.start for piece in found], np.int32)
  ends = np.array([piece.end for piece in found], np.int32)

  def piece_of_char(char: int) -> tuple[int, int]:
    last = len(found) - 1
    first = np.searchsorted(starts, char, side="right") - 1
    return max(int(first), 0), min(int(np.searchsorted(ends, char + 1)), last)

  spans = np.stack([starts, ends - 1], axis=1)
  return PlacedPieces([piece.token for piece in found], spans, piece_of_char)


def _place(tokenizer, context) -> PlacedPieces | None:
  pieces = tokenizer.tokenize(context)
  # The characters of the pieces, of which each knows its own.
  text = "".join(pieces).replace(SPACE, " ")
  lengths = [len(piece) for piece in pieces]
  firsts = np.cumsum([0, *lengths]).tolist()
  piece_of = np.repeat(np.arange(len(pieces)), lengths).tolist()
  prepare = functools.partial(preprocess_text, remove_space=False, lower=tokenizer.do_lower_case)
  pairs = _aligned([prepare(char) for char in context], text)
  if pairs is None:
    logging.warning(
      "The pieces of a paragraph do not fit its text, so its questions are left out: %.60s...",
      context,
    )
    return None
  in_text: list[int | None] = [None] * len(context)
  in_context: list[int | None] = [None] * len(text)
  for i, j in pairs:
    in_text[i], in_context[j] = j, i
  count = len(context)
  spans = [
    (
      _nearest(in_context, first, count, is_start=True),
      _nearest(in_context, end - 1, count, is_start=False),
    )
    for first, end in itertools.pairwise(firsts)
  ]
  return PlacedPieces(
    pieces,
    np.array(spans, np.int32),
    lambda char: (
      piece_of[_nearest(in_text, char, None, is_start=True)],
      piece_of[_nearest(in_text, char, None, is_start=False)],
    ),
  )


def _aligned(chars: Sequence[str], text: str) -> list[tuple[int, int]] | None:
  """Finds pairs of equal characters, both indexes rising; None if they are too few.

  `chars` are the paragraph's, each prepared alone (one of several letters has no pair), `text` the
  tokens'.

  Example:
    >>> _aligned("a bcd", " a cd")
    [(0, 1), (1, 2), (3, 3), (4, 4)]
  """
  # The usual case: the pieces spell the paragraph, after a space.
  if text[:1] == " " != chars[0] and list(text[1:]) == list(chars):
    return [(i, i + 1) for i in range(len(chars))]
  distance = abs(len(chars) - len(text)) + _SLACK
  for _ in range(2):
    length, moves = _common_subsequence(chars, text, distance)
    if length > _LEAST_ALIGNED * len(chars):
      break
    distance *= 2
  pairs = _traced_back(moves, distance, len(text))
  return pairs if pairs and length >= _LEAST_ALIGNED * len(chars) else None


# How an entry of the table was reached; the original goes back in this order of preference.
_NOWHERE, _FROM_ABOVE, _FROM_LEFT, _PAIR = range(4)


def _common_subsequence(chars, text, distance) -> tuple[int, list[np.ndarray]]:
  """Computes the subsequence's length at the end of the table, and the moves of each row's band.

  Entry (i, j) of the table is for the first i + 1 characters and the first j + 1 of the text. Only
  entries with `i - distance <= j < i + distance` are filled; the others count 0.
  """
  letters = np.array([ord(char) for char in text])
  above = np.zeros(len(text) + 1, np.int32)  # the row above; entry j is at j + 1
  moves = []
  for i, char in enumerate(chars):
    low, high = max(0, i - distance), min(len(text), i + distance)
    row = np.zeros_like(above)
    if low >= high:
      moves.append(np.zeros(0, np.int8))
      above = row
      continue
    from_above = above[low + 1 : high + 1]
    letter = ord(char) if len(char) == 1 else -1
    paired = np.where(letters[low:high] == letter, above[low:high] + 1, 0)
    values = np.maximum.accumulate(np.maximum(from_above, paired))
    from_left = np.concatenate([[0], values[:-1]])
    move = np.full(high - low, _FROM_ABOVE if i else _NOWHERE, np.int8)
    move[from_left > from_above] = _FROM_LEFT
    move[paired > np.maximum(from_above, from_left)] = _PAIR
    moves.append(move)
    row[low + 1 : high + 1] = values
    above = row
  return int(above[len(text)]), moves


def _traced_back(moves, distance, num_letters) -> list[tuple[int, int]]:
  """Collects the pairs on the way back from the end of the table."""
  pairs = []
  i, j = len(moves) - 1, num_letters - 1
  while i >= 0 and j >= 0:
    low = max(0, i - distance)
    move = moves[i][j - low] if low <= j < low + len(moves[i]) else _NOWHERE
    if move == _NOWHERE:
      break
    if move == _PAIR:
      pairs.append((i, j))
    i, j = i - int(move != _FROM_LEFT), j - int(move != _FROM_ABOVE)
  return pairs[::-1]


def _nearest(places: Sequence[int | None], index: int, limit: int | None, is_start: bool) -> int:
  """Returns the place of a character; of one without, that beside its nearest neighbours'.

  Args:
    places: of all characters, at least one.
    index: of the character.
    limit: number of characters on the other side, or None to go no further than the last place.
    is_start: whether a span begins here, and takes the place after the left neighbour's; one that
      ends here takes the place before the right neighbour's.

  Example:
    >>> places = [None, 1, None, None, 5, None]
    >>> [_nearest(places, i, 9, True) for i in range(6)]
    [0, 1, 2, 2, 5, 6]
    >>> [_nearest(places, i, 9, False) for i in range(6)]
    [0, 1, 4, 4, 5, 8]
  """
  if (place := places[index]) is not None:
    return place
  left = next((p for p in reversed(places[:index]) if p is not None), None)
  right = next((p for p in places[index + 1 :] if p is not None), None)
  if left is None:
    assert right is not None, "an alignment has at least one pair"
    return right if right < 1 else 0 if is_start else right - 1
  if right is None:
    if limit is None or left >= limit - 1:
      return left
    return left + 1 if is_start else limit - 1
  if right <= left + 1:
    return right if is_start else left
  return left + 1 if is_start else right - 1
