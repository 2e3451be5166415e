"""Statistics of a corpus, and warnings about what spoils a model before it trains for days.

statistics = TextStatistics(total_bytes=corpus.total_bytes(files))
...  # readers of the text call its `add_` methods
statistics.log()
"""

import dataclasses
import hashlib
import time
from collections.abc import Iterator

from absl import logging

from bert.text.text_files import LinePlace, describe_place

_SAMPLED_LINES = 1 << 17  # about 20 MB of hashes

COUNTS = (
  "read_bytes",
  "documents",
  "sentences",
  "one_sentence_documents",
  "documents_alone",
  "tokens",
  "unknown_tokens",
  "cut_tokens",
  "invalid_lines",
  "nul_lines",
)


@dataclasses.dataclass
class TextStatistics:
  """Counts of documents, sentences, tokens and unusual lines."""

  total_bytes: int = 0  # size of all input, for progress messages; 0 if unknown
  logs_progress: bool = True  # whether to log progress
  max_tokens: int = 512  # the most tokens of a line that one instance can hold
  random_pairs: bool = True  # whether random next sentences are needed, from other documents
  read_bytes: int = 0
  documents: int = 0
  sentences: int = 0
  one_sentence_documents: int = 0
  documents_alone: int = 0  # documents whose random next sentences come from the same document
  tokens: int = 0
  unknown_tokens: int = 0
  cut_tokens: int = 0  # beyond `max_tokens` of their line
  invalid_lines: int = 0
  first_invalid: LinePlace | None = None  # the first known line that is not UTF-8
  nul_lines: int = 0

  def __post_init__(self):
    self._sentences_of_document = 0
    self._lines = LineSample()
    self._progress = Progress("Reading", self.total_bytes / 1e6, "MB")

  def add_line(self, data: bytes, is_empty: bool) -> None:
    """Counts one line of a file."""
    self.read_bytes += len(data)
    if self.logs_progress:
      self._progress.update(self.read_bytes / 1e6)
    if not is_empty:
      self._lines.add(data)
      self.nul_lines += b"\0" in data

  def add_sentence(self, tokens: int, unknown_tokens: int) -> None:
    """Counts one sentence, unless it has no tokens."""
    if tokens:
      self.sentences += 1
      self._sentences_of_document += 1
      self.tokens += tokens
      self.unknown_tokens += unknown_tokens
      self.cut_tokens += max(0, tokens - self.max_tokens)

  def add(self, other: "TextStatistics") -> None:
    """Adds the counts of other text."""
    for name in COUNTS:
      setattr(self, name, getattr(self, name) + getattr(other, name))
    self.first_invalid = self.first_invalid or other.first_invalid
    self._lines.merge(other._lines)

  def end_document(self) -> None:
    """Counts the document that ends here, at an empty line or at the end of the text."""
    self.documents += self._sentences_of_document > 0
    self.one_sentence_documents += self._sentences_of_document == 1
    self._sentences_of_document = 0

  def log(self) -> None:
    """Logs the counts in one line, and the warnings."""
    logging.info(
      "Read %d documents, %d sentences, %d tokens (%.1f MB, %.2f MB/s).",
      self.documents,
      self.sentences,
      self.tokens,
      self.read_bytes / 1e6,
      self._progress.rate(self.read_bytes / 1e6),
    )
    for warning in self.warnings():
      logging.warning("%s", warning)

  def warnings(self) -> Iterator[str]:
    """Yields likely mistakes, each with its consequence and its remedy."""
    if self.random_pairs:
      yield from self._warnings_about_pairs()
    if self._lines.duplicate_share() > 0.1:
      yield (
        f"About {self._lines.duplicate_share():.0%} of the lines repeat an earlier line. A model "
        "learns those by heart: remove the duplicates."
      )
    if self.cut_tokens > 0.1 * self.tokens:
      yield (
        f"{self.cut_tokens / self.tokens:.0%} of the tokens are lost: they are in lines of more "
        f"than {self.max_tokens} tokens. A line is a sentence, and an instance holds no more of "
        "it. Put each sentence on a line of its own; --split_sentences does."
      )
    if self.unknown_tokens > 0.05 * self.tokens:
      yield (
        f"{self.unknown_tokens / self.tokens:.0%} of the tokens are [UNK]: do the vocabulary and "
        "--do_lower_case fit this text?"
      )
    if self.invalid_lines:
      first = f", the first is {describe_place(self.first_invalid)}" if self.first_invalid else ""
      yield (
        f"{self.invalid_lines} lines are not valid UTF-8{first}; their invalid bytes were dropped. "
        "Words such as Händler become Hndler: convert the file to UTF-8 (older programs write "
        "Windows-1252). To refuse such lines, use --strict_utf8."
      )
    if self.nul_lines:
      yield f"{self.nul_lines} lines contain NUL bytes, which were dropped: is the text UTF-8?"

  def _warnings_about_pairs(self) -> Iterator[str]:
    if self.documents == 1:
      yield (
        "The corpus is one document: random next sentences come from that document too, so little "
        "can be learned from them. Put an empty line between documents."
      )
    if self.documents > 1 and self.one_sentence_documents > 0.1 * self.documents:
      share = self.one_sentence_documents / self.documents
      yield (
        f"{share:.0%} of the documents have one sentence: their next sentence is always random. "
        "Put empty lines only between documents, and each sentence on a line of its own."
      )
    if self.documents > 1 and self.documents_alone > 0.1 * self.documents:
      yield (
        f"{self.documents_alone / self.documents:.0%} of the documents are so long that no other "
        "document is in the same block of text: their random next sentences come from themselves. "
        "Split them, or use --no_next_sentence."
      )


class LineSample:
  """The share of repeated lines, estimated in fixed memory.

  A line is in the sample if its hash ends in enough zero bits, so either all repetitions of a line
  are in it or none. When the sample is full, one more zero bit is required.
  """

  def __init__(self, capacity: int = _SAMPLED_LINES):
    self._capacity = capacity
    self._mask = 0
    self._count_of: dict[int, int] = {}

  def add(self, line: bytes) -> None:
    """Counts a line."""
    digest = hashlib.blake2b(line.strip(), digest_size=8).digest()
    key = int.from_bytes(digest, "little")
    if key & self._mask:
      return
    self._count_of[key] = self._count_of.get(key, 0) + 1
    if len(self._count_of) > self._capacity:
      self._keep(self._mask << 1 | 1)

  def merge(self, other: "LineSample") -> None:
    """Adds the lines of another sample."""
    for key, count in other._count_of.items():
      self._count_of[key] = self._count_of.get(key, 0) + count
    self._keep(max(self._mask, other._mask))
    while len(self._count_of) > self._capacity:
      self._keep(self._mask << 1 | 1)

  def _keep(self, mask: int) -> None:
    self._mask = mask
    self._count_of = {key: count for key, count in self._count_of.items() if not key & mask}

  def duplicate_share(self) -> float:
    """Computes the share of lines that repeat an earlier one."""
    total = sum(self._count_of.values())
    return 1 - len(self._count_of) / total if total else 0.0


class Progress:
  """Logs progress, speed and remaining time every ten seconds."""

  def __init__(self, what: str, total: float, unit: str, interval_s: float = 10.0):
    self._what, self._total, self._unit, self._interval_s = what, total, unit, interval_s
    self._begin = self._last = time.monotonic()

  def rate(self, done: float) -> float:
    """Units per second since the start."""
    return done / max(time.monotonic() - self._begin, 1e-9)

  def update(self, done: float) -> None:
    """Logs if the interval is over; `done` counts from the start."""
    now = time.monotonic()
    if now - self._last < self._interval_s:
      return
    self._last = now
    rate = self.rate(done)
    left = f", {(self._total - done) / rate:.0f} s left" if self._total and rate else ""
    total = f" of {self._total:.0f}" if self._total else ""
    logging.info("%s: %.0f%s %s, %.1f/s%s", self._what, done, total, self._unit, rate, left)
