"""How long sequences would be if none were cut, and the advice that follows.

lengths = SequenceLengths()
lengths.add(171)                 # for each sequence
lengths.log(max_seq_length=128)
"""

import collections

from absl import logging

_MOST = 0.5  # a warning where a larger part is cut
_ENOUGH = 0.95  # of the sequences, for the length that is advised


class SequenceLengths:
  """Lengths of the sequences of a data set, in tokens, [CLS] and [SEP] included."""

  def __init__(self):
    self._counts: collections.Counter[int] = collections.Counter()

  def add(self, length: int) -> None:
    """Counts a sequence, by its length before it is cut."""
    self._counts[length] += 1

  def fitting(self, part: float) -> int:
    """Finds the smallest length that holds this part of the sequences whole.

    Example:
      >>> lengths = SequenceLengths()
      >>> for length in (10, 20, 30, 400): lengths.add(length)
      >>> lengths.fitting(0.5), lengths.fitting(1.0)
      (20, 400)
    """
    wanted, found = part * self._counts.total(), 0
    for length in sorted(self._counts):
      found += self._counts[length]
      if found >= wanted:
        return length
    return 0

  def log(self, max_seq_length: int, advice: str = "") -> None:
    """Says how many sequences are cut: as a warning if most are, as information if some are."""
    total = self._counts.total()
    cut = sum(count for length, count in self._counts.items() if length > max_seq_length)
    if not cut:
      return
    enough = self.fitting(_ENOUGH)
    raised = enough > max_seq_length
    logging.log(
      logging.WARNING if cut > _MOST * total else logging.INFO,
      "%d of %d texts are longer than --max_seq_length=%d and are cut; the longest has %d tokens."
      "%s%s",
      cut,
      total,
      max_seq_length,
      self.fitting(1.0),
      f" --max_seq_length={enough} would hold {_ENOUGH:.0%} of them whole." if raised else "",
      f" {advice}" if advice else "",
    )
