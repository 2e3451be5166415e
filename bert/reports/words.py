"""Tokens as the words of a text, for people."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from bert.io import vocabulary_kind
from bert.text.sequence_layout import layout_of
from bert.text.vocabulary import without_joiner


class Piece(NamedTuple):
  """A token as text."""

  text: str
  starts_word: bool


class Word(NamedTuple):
  """A word and its share of a number."""

  text: str
  share: float
  is_special: bool = False  # a token such as [SEP]


class Contribution(NamedTuple):
  """What the words of an example contributed to its answer.

  Attributes:
    what: the number that they add up to, in words.
    rows: the words of each sequence, in their order.
  """

  what: str
  rows: Sequence[Sequence[Word]]

  @property
  def largest(self) -> float:
    """The largest share of a word that is no special token, with neither sign."""
    shares = [abs(word.share) for row in self.rows for word in row if not word.is_special]
    return max(shares, default=0.0)

  def strongest(self, sign: int, count: int = 4) -> list[Word]:
    """Lists the words that speak most for the answer (`sign` 1) or against it (-1)."""
    words = [word for row in self.rows for word in row if not word.is_special]
    least = self.largest / 20
    strong = [word for word in words if sign * word.share > least]
    ranked = sorted(strong, key=lambda word: -sign * word.share)
    first = {word.text: word for word in reversed(ranked)}  # a word at its strongest place
    return [word for word in ranked if first[word.text] is word][:count]


def pieces_of(tokenizer: Any, tokens: Iterable[str]) -> list[Piece]:
  """Writes tokens as text: without the marks of vocabularies, but with the places of blanks."""
  layout, vocab = layout_of(tokenizer), tokenizer.vocab
  special = {layout.cls, layout.sep, layout.pad, layout.mask, layout.unk}
  found: list[Piece] = []
  is_first = True
  for token in tokens:
    is_plain = token not in special
    if is_plain and vocabulary_kind.is_of_byte_pairs(vocab):
      text = tokenizer.shown(token)
      piece = Piece(text.strip() or text, text.startswith(" ") or is_first)
    elif is_plain and vocabulary_kind.is_of_model(vocab):
      piece = Piece(token.lstrip("▁") or token, token.startswith("▁") or is_first)
    else:
      text = without_joiner(token)
      piece = Piece(text, is_first or text == token)
    found.append(piece)
    is_first = not is_plain
  return found


def words_of(tokenizer: Any, tokens: Sequence[str], shares: np.ndarray) -> list[Word]:
  """Joins tokens to words, and adds up their shares."""
  layout = layout_of(tokenizer)
  found: list[Word] = []
  pieces = pieces_of(tokenizer, tokens)
  for token, piece, share in zip(tokens, pieces, shares.tolist(), strict=True):
    if piece.starts_word or not found:
      found.append(Word(piece.text, share, token in (layout.cls, layout.sep, layout.pad)))
    else:
      last = found[-1]
      found[-1] = Word(last.text + piece.text, last.share + share)
  return found
