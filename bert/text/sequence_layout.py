"""How texts become a sequence: special tokens, segments, padding, and what is cut of long pairs.

  layout = layout_of(tokenizer)
  layout.join(["it", "rains"], ["it", "is"])      # [CLS] it rains [SEP] it is [SEP], 0000111

Each tokenizer has its `layout`; code that makes sequences asks it instead of knowing families.
"""

from typing import Any, NamedTuple


class Layout(NamedTuple):
  """BERT's by default."""

  cls: str = "[CLS]"  # the token before a text
  sep: str = "[SEP]"  # the token after a text
  pad: str = "[PAD]"  # the token of padding
  mask: str = "[MASK]"  # the token for a masked word
  unk: str = "[UNK]"  # the token of what a vocabulary does not have
  pad_id: int = 0  # the id of padding
  separators: int = 1  # how many `sep` stand between two texts
  has_segments: bool = True  # whether the second text of a pair has a number of its own
  # Of a pair whose texts are both cut to half: whether the first gets the smaller half unless it is
  # longer than the second, as in the library tokenizers.
  second_stays_longer: bool = False

  def num_special(self, is_pair: bool) -> int:
    """Counts the special tokens of a text or a pair.

    Example:
      >>> Layout().num_special(True), Layout(separators=2).num_special(True)
      (3, 4)
    """
    return 2 + self.separators if is_pair else 2

  def kept_lengths(self, length_a: int, length_b: int, max_length: int) -> tuple[int, int]:
    """Computes the lengths to which two texts are cut, together at most `max_length`.

    The longer one loses its last token, repeatedly; of two equally long ones, the second. The
    lengths that this leaves are computed directly.

    Example:
      >>> bert, roberta = Layout(), Layout(second_stays_longer=True)
      >>> bert.kept_lengths(6, 6, 5), bert.kept_lengths(6, 1, 5), bert.kept_lengths(1, 2, 5)
      ((3, 2), (4, 1), (1, 2))
      >>> roberta.kept_lengths(6, 6, 5), roberta.kept_lengths(7, 6, 5)
      ((2, 3), (3, 2))
    """
    if self.second_stays_longer and length_a <= length_b:
      keep_a = min(length_a, max(max_length // 2, max_length - length_b))
      return keep_a, min(length_b, max_length - keep_a)
    keep_b = min(length_b, max(max_length // 2, max_length - length_a))
    return min(length_a, max_length - keep_b), keep_b

  def join(self, first: list, second: list | None = None) -> tuple[list, list[int]]:
    """Returns tokens of a text or a pair with the special ones, and the segment of each.

    Example:
      >>> Layout(cls="<s>", sep="</s>", separators=2, has_segments=False).join(["a"], ["b"])
      (['<s>', 'a', '</s>', '</s>', 'b', '</s>'], [0, 0, 0, 0, 0, 0])
    """
    tokens = [self.cls, *first, self.sep]
    segments = [0] * len(tokens)
    if second is not None:
      rest = [self.sep] * (self.separators - 1) + [*second, self.sep]
      tokens += rest
      segments += [int(self.has_segments)] * len(rest)
    return tokens, segments

  def start_of_second(self, length_a: int) -> int:
    """Returns the position of the second text's first token, after a first of `length_a` tokens."""
    return 1 + length_a + self.separators

  def padding(self, tokens: list, length: int) -> tuple[list[int], list[int]]:
    """Returns the padding of the ids of `tokens` to `length`, and of their masks and segments."""
    missing = length - len(tokens)
    return [self.pad_id] * missing, [0] * missing


BERT = Layout()


def layout_of(tokenizer: Any) -> Layout:
  """Returns a tokenizer's layout; BERT's for a user's own that has only the original's methods."""
  return getattr(tokenizer, "layout", BERT)
