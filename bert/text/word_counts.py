"""Counts the words of a text of any size, in several processes and bounded memory.

  counts = count_words(["books.txt", "wiki.txt.gz"], num_workers=4)
  counts.words["the"]

Words are those of `tokenization.BasicTokenizer`, which are what a model is trained on.
"""

import collections
import concurrent.futures
import dataclasses
import functools
import multiprocessing
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from bert.text import corpus, text_files
from bert.text.corpus_statistics import Progress
from bert.tokenization import BasicTokenizer

# Longer words are [UNK] with every vocabulary: the default of `WordpieceTokenizer`.
MAX_WORD_CHARS = 200

_RANGE_BYTES = 1 << 22
_WORDS_AT_ONCE = 1 << 17


@dataclasses.dataclass
class WordCounts:
  """How often each word and each character occurs in a text."""

  # If there are more, rare words are forgotten until half as many are left.
  max_words: int = 2_000_000
  # Word -> occurrences, without words longer than `MAX_WORD_CHARS`.
  words: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
  # Character -> occurrences in words, forgotten words included.
  characters: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
  long_words: int = 0  # occurrences of words longer than `MAX_WORD_CHARS`
  forgotten: int = 0  # occurrences of forgotten words
  read_bytes: int = 0  # size of the text
  invalid_lines: int = 0  # lines that are not UTF-8
  first_invalid: text_files.LinePlace | None = None  # the first of them

  def add(self, found: Mapping[str, int]) -> None:
    """Adds word -> occurrences."""
    words_of = collections.defaultdict(list)
    for word, count in found.items():
      if len(word) > MAX_WORD_CHARS:
        self.long_words += count
      else:
        self.words[word] += count
        words_of[count].append(word)
    # Most counts are shared by many words, whose characters are counted together.
    for count, words in words_of.items():
      for character, times in collections.Counter("".join(words)).items():
        self.characters[character] += times * count
    self.forget_rare_words()

  def merge(self, other: "WordCounts") -> None:
    """Adds the counts of the text that follows."""
    self.words.update(other.words)
    self.characters.update(other.characters)
    self.long_words += other.long_words
    self.forgotten += other.forgotten
    self.read_bytes += other.read_bytes
    self.invalid_lines += other.invalid_lines
    self.first_invalid = self.first_invalid or other.first_invalid
    self.forget_rare_words()

  def forget_rare_words(self) -> None:
    """Drops the words that occur least, all of the same count together, if there are too many."""
    if len(self.words) <= self.max_words:
      return
    words_with_count = collections.Counter(self.words.values())
    left, floor = len(self.words), 0
    while left > self.max_words // 2:
      floor += 1
      left -= words_with_count[floor]
      self.forgotten += words_with_count[floor] * floor
    self.words = collections.Counter({w: count for w, count in self.words.items() if count > floor})


def count_words(
  input_files: Sequence[str],
  do_lower_case: bool = True,
  strict_utf8: bool = False,
  num_workers: int = 1,
  max_words: int = WordCounts.max_words,
  range_bytes: int = _RANGE_BYTES,
  splitting: Mapping[str, Any] | None = None,
) -> WordCounts:
  """Counts the words of text files.

  Files are cut into the same ranges for any number of workers, and counts are added in the order of
  the text, so the result does not depend on that number, even if words are forgotten.

  Args:
    input_files: see `text_files.find_input_files`.
    do_lower_case: see `tokenization.BasicTokenizer`.
    strict_utf8: refuse bytes that are not UTF-8, instead of dropping and counting them.
    num_workers: processes.
    max_words: see `WordCounts`; a million takes about 150 MB.
    range_bytes: how much text a worker counts before it returns its counts.
    splitting: other arguments of `tokenization.BasicTokenizer`.

  Raises:
    CorpusError: invalid UTF-8, with `strict_utf8`; or a worker died.
  """
  count = functools.partial(
    count_range,
    tokenizer=BasicTokenizer(do_lower_case, **(splitting or {})),
    strict_utf8=strict_utf8,
    max_words=max_words,
  )
  total_bytes = text_files.total_bytes(input_files)
  progress = Progress("Counting", total_bytes / 1e6, "MB")
  total = WordCounts(max_words)
  for counts in _map_in_order(count, text_files.text_ranges(input_files, range_bytes), num_workers):
    total.merge(counts)
    progress.update(total.read_bytes / 1e6)
  return total


def count_range(
  part: text_files.TextRange, tokenizer: BasicTokenizer, strict_utf8: bool, max_words: int
) -> WordCounts:
  """Counts the words of a part of a file; see `count_words`.

  Most words of a text are repetitions, and no step of the tokenizer looks beyond a space. So what
  stands between spaces is counted first and tokenized once.
  """
  counts = WordCounts(max_words)
  spaced: collections.Counter[str] = collections.Counter()
  for line in _decoded_lines(part, strict_utf8, counts):
    for text in corpus.parts(line):  # a line may have a hundred megabytes
      spaced.update(text.split(" "))
      if len(spaced) > _WORDS_AT_ONCE:
        _add_tokenized(spaced, tokenizer, counts)
  _add_tokenized(spaced, tokenizer, counts)
  return counts


def _decoded_lines(
  part: text_files.TextRange, strict_utf8: bool, counts: WordCounts
) -> Iterator[str]:
  for position, data in text_files.read_lines(part):
    counts.read_bytes += len(data)
    line = corpus.decode_line(data, strict_utf8, part.path, position, counts)
    yield line.replace("\r", "").strip()


def _add_tokenized(
  spaced: collections.Counter[str], tokenizer: BasicTokenizer, counts: WordCounts
) -> None:
  """Replaces the counts of what stands between spaces by counts of words."""
  found: collections.Counter[str] = collections.Counter()
  for text, count in spaced.items():
    for word in tokenizer.tokenize(text):
      found[word] += count
  spaced.clear()
  counts.add(found)


def _map_in_order(function: Callable, items: Sequence, num_workers: int) -> Iterator:
  """Maps in several processes; results keep the order, and only a few are held in memory."""
  num_workers = min(num_workers, len(items))
  if num_workers <= 1:
    yield from map(function, items)
    return
  # Spawned, not forked: the caller may have threads, for instance those of TensorFlow. Ctrl-C is
  # handled by the main process alone.
  executor = concurrent.futures.ProcessPoolExecutor(
    num_workers,
    multiprocessing.get_context("spawn"),
    signal.signal,
    (signal.SIGINT, signal.SIG_IGN),
  )
  waiting: collections.deque[concurrent.futures.Future] = collections.deque()
  try:
    with executor:
      for item in items:
        waiting.append(executor.submit(function, item))
        if len(waiting) > 2 * num_workers:
          yield waiting.popleft().result()
      while waiting:
        yield waiting.popleft().result()
  except concurrent.futures.process.BrokenProcessPool:
    raise text_files.CorpusError(
      "A worker process died. If no message above gives the reason, memory ran out: use fewer "
      "--num_workers."
    ) from None
