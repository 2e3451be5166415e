"""Texts to pieces or ids word by word from a table, and batches of texts to arrays.

  table = WordTable({"want": 1, "##ed": 2}, plain=tokenizer_ids, do_lower_case=True, max_chars=200)
  table.look_up("Wanted")           # [1, 2]

No step of the tokenizer looks beyond a blank. So what stands between two blanks has the same pieces
in every text, and a table that remembers words answers for nearly all of a text: splitting it and
looking its words up is all that is left to do. A word that is new and ASCII is split here; anything
else is asked of the plain tokenizer, once.

`encode_batch` is the second half: rows of ids, cut and joined as the model reads them, in arrays.
Nothing here knows a tokenizer's class; `tokenization.FullTokenizer` offers all of it as methods.
"""

import concurrent.futures
import itertools
import multiprocessing
import re
import signal
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

MAX_WORDS = 1 << 16  # about 15 MB a table; English text of any length reuses most of these
MAX_WORD_CHARS = 64  # of a remembered word: what is longer hardly comes twice

# Where `str.split` splits, the tokenizer drops these like any control character.
_DROPPED_BLANKS = "\x0b\x0c\x1c\x1d\x1e\x1f\x85"
_ASCII_PARTS = re.compile("[0-9A-Za-z]+|[^0-9A-Za-z]")

CHINESE_RANGES = (
  (0x4E00, 0x9FFF),
  (0x3400, 0x4DBF),
  (0x20000, 0x2A6DF),
  (0x2A700, 0x2B73F),
  (0x2B740, 0x2B81F),
  (0x2B820, 0x2CEAF),
  (0xF900, 0xFAFF),
  (0x2F800, 0x2FA1F),
)
_CHINESE = "".join(f"{chr(first)}-{chr(last)}" for first, last in CHINESE_RANGES)
_CHINESE_PARTS = re.compile(f"[{_CHINESE}]|[^{_CHINESE}]+")

_TEXTS_PER_TASK = 4096  # about 20 ms of work, against which handing them over counts little

Inputs = dict[str, Any]  # "input_ids", "input_mask", "segment_ids": int32 arrays [B, S]


class WordTable(dict):
  """Word -> its values, such as ids; a word that is not there yet is split when asked for.

  A word is what stands between two blanks of a text, just as it stands there. Only short words are
  kept, and when there are `max_words` of them, all are forgotten: frequent ones are back at once,
  and a text in which no word comes twice takes no more than its number of words. Threads may share
  a table; at worst two of them split the same word.

  Example:
    >>> ids = {"un": 0, "##aff": 1, "##able": 2, "!": 3}
    >>> table = WordTable(ids, plain=lambda word: [9], do_lower_case=True, max_chars=200)
    >>> table.look_up("Unaffable! What? Unaffable!")
    [0, 1, 2, 3, 9, 9, 0, 1, 2, 3]
    >>> table["Unaffable!"]
    (0, 1, 2, 3)
  """

  def __init__(
    self,
    values: Mapping[str, Any],
    plain: Callable[[str], Sequence],
    do_lower_case: bool,
    max_chars: int,
    max_words: int = MAX_WORDS,
  ):
    """Makes an empty table.

    Args:
      values: piece -> what stands for it. Pieces after a word's first begin with "##".
      plain: word -> the values of its pieces, by definition. Asked about whatever is not printable
        ASCII, is unknown, or too long.
      do_lower_case: whether words are lower-cased before their pieces are looked for.
      max_chars: longer words, counted between punctuation, are left to `plain`.
      max_words: how many words are remembered.
    """
    super().__init__()
    self._first = values
    self._rest = {piece[2:]: value for piece, value in values.items() if piece.startswith("##")}
    self._longest_piece = max(map(len, values), default=0)
    self._plain = plain
    self._do_lower_case = do_lower_case
    self._max_chars = max_chars
    self._max_words = max_words

  def look_up(self, text: str) -> list:
    """The values of all pieces of `text`."""
    if not text.isprintable():  # quicker than seven searches, and true of most texts
      for blank in _DROPPED_BLANKS:
        text = text.replace(blank, "")
    return list(itertools.chain.from_iterable(map(self.__getitem__, text.split())))

  def __missing__(self, word: str) -> tuple:
    if word.isascii() and word.isprintable():
      values = self._of_ascii(word.lower() if self._do_lower_case else word)
    else:
      values = self._of_other(word)
    if len(word) <= MAX_WORD_CHARS:
      if len(self) >= self._max_words:
        self.clear()
      self[word] = values
    return values

  def _of_ascii(self, word: str) -> tuple:
    # All that is neither letter nor digit is punctuation here, each character a word of its own.
    parts = [word] if word.isalnum() else _ASCII_PARTS.findall(word)
    if len(parts) > 1:
      return self._of_parts(parts)
    return self._split(word) or tuple(self._plain(word))

  def _of_other(self, word: str) -> tuple:
    # Chinese has no blanks, and its sentences do not come twice: remember characters instead.
    parts = _CHINESE_PARTS.findall(word)
    return self._of_parts(parts) if len(parts) > 1 else tuple(self._plain(word))

  def _of_parts(self, parts: Sequence[str]) -> tuple:
    return tuple(itertools.chain.from_iterable(map(self.__getitem__, parts)))

  def _split(self, word: str) -> tuple:
    """Values of the longest pieces, one after the other; none if that leads nowhere."""
    length = len(word)
    if length > self._max_chars:
      return ()
    values = []
    known = self._first
    start = 0
    while start < length:
      for end in range(min(length, start + self._longest_piece), start, -1):
        value = known.get(word[start:end])
        if value is not None:
          break
      else:
        return ()
      values.append(value)
      known = self._rest
      start = end
    return tuple(values)


# ---------------------------------------------------------------------------------------------
# Batches.


class Rows(NamedTuple):
  """Sequences of different lengths, one after the other; arrays are int32.

  Attributes:
    ids: `[T]`, all ids.
    lengths: `[B]`, how many of these each row has.
    first_lengths: `[B]`, how many belong to the first text, [CLS] and its [SEP] included.
  """

  ids: Any
  lengths: Any
  first_lengths: Any


def kept_lengths(length_a: int, length_b: int, max_length: int) -> tuple[int, int]:
  """How much of two texts is kept if both together may have `max_length` tokens.

  The longer one loses its last token, again and again; of two equally long, the second. What that
  leaves follows from the lengths at once.

  Example:
    >>> kept_lengths(6, 6, 5), kept_lengths(6, 1, 5), kept_lengths(1, 2, 5)
    ((3, 2), (4, 1), (1, 2))
  """
  keep_b = min(length_b, max(max_length // 2, max_length - length_a))
  return min(length_a, max_length - keep_b), keep_b


def encode_batch(
  tokenizer,
  texts: Sequence[str | bytes],
  text_pairs: Sequence[str | bytes | None] | None = None,
  max_seq_length: int | None = None,
  pad_to_longest: bool = False,
  num_workers: int = 1,
) -> Inputs:
  """See `tokenization.FullTokenizer.encode_batch`."""
  texts = _checked(texts, "texts")
  pairs = [None] * len(texts) if text_pairs is None else _checked(text_pairs, "text_pairs")
  if len(pairs) != len(texts):
    raise ValueError(f"There are {len(texts)} texts, but {len(pairs)} text_pairs.")
  tasks = [
    (texts[i : i + _TEXTS_PER_TASK], pairs[i : i + _TEXTS_PER_TASK], max_seq_length)
    for i in range(0, len(texts), _TEXTS_PER_TASK)
  ]
  if min(num_workers, len(tasks)) > 1:
    parts = _rows_by_processes(tokenizer, tasks, min(num_workers, len(tasks)))
  else:
    parts = [_rows(tokenizer, *task) for task in tasks or [([], [], max_seq_length)]]
  return _padded(parts, None if pad_to_longest else max_seq_length)


def _checked(texts, name: str) -> list:
  if isinstance(texts, str | bytes):
    raise ValueError(f"{name} must be a sequence of texts, not one: {texts!r:.80}")
  return list(texts)


def _rows(tokenizer, texts: list, pairs: list, max_seq_length: int | None) -> Rows:
  import numpy as np  # here, so that tokens alone do not need it

  cls_id, sep_id = tokenizer.convert_tokens_to_ids(["[CLS]", "[SEP]"])
  firsts = tokenizer.texts_to_ids(texts)
  seconds = tokenizer.texts_to_ids([pair or "" for pair in pairs])
  rows, first_lengths = [], []
  for first, second in zip(firsts, seconds, strict=True):
    is_pair = bool(second)  # and stays one, [SEP] and all, if no room is left for its second text
    if max_seq_length is not None:
      first, second = _cut(first, second, max_seq_length)
    first_lengths.append(len(first) + 2)
    rows.append([cls_id, *first, sep_id, *second, sep_id] if is_pair else [cls_id, *first, sep_id])
  lengths = np.fromiter(map(len, rows), np.int32, len(rows))
  ids = np.fromiter(itertools.chain.from_iterable(rows), np.int32, lengths.sum(dtype=int))
  return Rows(ids, lengths, np.array(first_lengths, np.int32))


def _cut(first: list[int], second: list[int], max_seq_length: int) -> tuple[list, list]:
  special = 3 if second else 2
  if max_seq_length < special:
    raise ValueError(f"max_seq_length is {max_seq_length}, but must be at least {special}.")
  keep_first, keep_second = kept_lengths(len(first), len(second), max_seq_length - special)
  return first[:keep_first], second[:keep_second]


def _padded(parts: Sequence[Rows], length: int | None) -> Inputs:
  import numpy as np

  ids, lengths, first_lengths = map(np.concatenate, zip(*parts, strict=True))
  length = int(lengths.max(initial=0)) if length is None else length
  position = np.arange(length)
  is_token = position < lengths[:, None]  # [B, S]
  input_ids = np.zeros(is_token.shape, np.int32)
  input_ids[is_token] = ids
  segment_ids = is_token & (position >= first_lengths[:, None])
  return {
    "input_ids": input_ids,
    "input_mask": is_token.astype(np.int32),
    "segment_ids": segment_ids.astype(np.int32),
  }


# ---------------------------------------------------------------------------------------------
# Several processes. Each gets the tokenizer once, and returns arrays, which travel cheaply.

_worker_tokenizer = None


def _rows_by_processes(tokenizer, tasks: list[tuple], num_workers: int) -> list[Rows]:
  # Spawned, not forked: the caller may have threads, as TensorFlow starts them.
  context = multiprocessing.get_context("spawn")
  try:
    with concurrent.futures.ProcessPoolExecutor(
      num_workers, context, _start_worker, (tokenizer,)
    ) as executor:
      return list(executor.map(_rows_in_worker, tasks))
  except concurrent.futures.process.BrokenProcessPool:
    raise RuntimeError(
      "A worker process died. Call encode_batch with num_workers only below "
      '`if __name__ == "__main__":`, since workers import the main module; if you do, memory was '
      "short: take fewer."
    ) from None


def _start_worker(tokenizer) -> None:
  global _worker_tokenizer
  signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the main process alone
  _worker_tokenizer = tokenizer


def _rows_in_worker(task: tuple) -> Rows:
  return _rows(_worker_tokenizer, *task)
