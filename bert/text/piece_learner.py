"""Word pieces that are frequent in counted words: the learner of WordPiece vocabularies.

  learn_pieces([("walking", 7), ("talking", 5)], threshold=5)     # ["##alking", "walking", ...]

The results are those of `tensorflow_text.tools.wordpiece_vocab`, which is a part of a package that
has no wheels for Windows. Its algorithm: every part of a word is a candidate; what is frequent
becomes a piece, longer ones first, and takes its occurrences from the parts that it begins with.
Further rounds let parts begin only where the pieces of the round before do.
"""

from collections.abc import Collection, Iterator, Sequence

JOINER = "##"
_ROUNDS = 4


def learn_pieces(word_counts: Sequence[tuple[str, int]], threshold: int) -> list[str]:
  """Returns pieces of two or more characters that reach a threshold, the most frequent first.

  Args:
    word_counts: words and how often they occur; no word is empty.
    threshold: how often a piece has to occur, not counting its occurrences in longer pieces.
  """
  characters = {character for word, _ in word_counts for character in word}
  single = characters | {JOINER + character for character in characters}
  pieces: dict[str, int] = {}
  for round_number in range(_ROUNDS):
    known = pieces.keys() | single if round_number else None
    pieces = _frequent(_counts_by_length(word_counts, known), threshold)
  return sorted(
    (piece for piece in pieces if piece not in single), key=lambda piece: (-pieces[piece], piece)
  )


def _counts_by_length(
  word_counts: Sequence[tuple[str, int]], known: Collection[str] | None
) -> list[dict[str, int]]:
  """Counts all parts of words that begin where a known piece does: length -> part -> count."""
  longest = max((len(word) for word, _ in word_counts), default=0)
  by_length: list[dict[str, int]] = [{} for _ in range(longest + 1)]
  for word, count in word_counts:
    for start in range(len(word)) if known is None else _starts(word, known):
      joiner = JOINER if start else ""
      for end in range(start + 1, len(word) + 1):
        counts = by_length[end - start]
        part = joiner + word[start:end]
        counts[part] = counts.get(part, 0) + count
  return by_length


def _starts(word: str, known: Collection[str]) -> Iterator[int]:
  """Yields where the longest known pieces of a word begin; every single character is known."""
  start = 0
  while start < len(word):
    yield start
    joiner = JOINER if start else ""
    end = len(word)
    while joiner + word[start:end] not in known:
      end -= 1
    start = end


def _frequent(by_length: Sequence[dict[str, int]], threshold: int) -> dict[str, int]:
  """Returns parts that reach the threshold, without what longer parts have taken from them."""
  pieces = {}
  for length in reversed(range(1, len(by_length))):
    for part, count in by_length[length].items():
      if count >= threshold:
        pieces[part] = count
      before = len(part) - length  # the joiner
      for shorter in range(1, length):
        by_length[shorter][part[: before + shorter]] -= count
  return pieces
