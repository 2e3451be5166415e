"""Counts of texts, warnings about them, samples of lines."""

import pytest

from bert.text import corpus, text_files
from bert.text.corpus_statistics import COUNTS, LineSample, TextStatistics
from tests.kit.paths import SAMPLE_TEXT


def statistics_of(path, tokenizer):
  statistics = TextStatistics()
  list(corpus.read_sentences([str(path)], tokenizer, statistics))
  return statistics


def test_counts_of_ranges_add_up(tokenizer, tmp_path):
  text = SAMPLE_TEXT.read_bytes()
  path = tmp_path / "text"
  path.write_bytes((text + b"\n\xff broken\n\0the\n\n") * 3)
  whole = statistics_of(path, tokenizer)
  total = TextStatistics()
  for part in text_files.text_ranges([str(path)], 500):
    statistics = TextStatistics(logs_progress=False)
    for sentence in corpus.read_range(part, corpus.PLAIN_TEXT, statistics):
      if sentence is not None:
        tokens = tokenizer.tokenize(sentence)
        statistics.add_sentence(len(tokens), tokens.count("[UNK]"))
    total.add(statistics)
  # Empty lines at the seams are read by both ranges, and nothing else.
  assert {name: getattr(total, name) for name in COUNTS if name != "read_bytes"} == {
    name: getattr(whole, name) for name in COUNTS if name != "read_bytes"
  }
  assert whole.read_bytes == path.stat().st_size
  assert list(total.warnings()) == list(whole.warnings())
  assert len(list(total.warnings())) == 3  # duplicates, invalid UTF-8, NUL


# ---------------------------------------------------------------------------------------------
# Repeated lines.


def test_duplicates_are_estimated_in_fixed_memory():
  sample = LineSample(capacity=500)
  for number in range(20_000):
    sample.add(b"line %d" % (number % 10_000))
  assert len(sample._count_of) <= 500
  assert sample.duplicate_share() == pytest.approx(0.5, abs=0.01)


# ---------------------------------------------------------------------------------------------
# Warnings.


@pytest.mark.parametrize(
  ("text", "warning"),
  [
    ("the\nof\n", "one document"),
    ("the\n\nof\n\nand one\n\nto\nin\n", "have one sentence"),
    ("the\nof\n\n" + "and one to\nin\n\n" * 9, "repeat an earlier line"),
    ("☃\nthe\n\n☃ ☃\nof\n", "[UNK]"),
    ("the\nof\n\n" + "the " * 570 + "\nin\n", "10% of the tokens are lost"),
    ("the\0\nof\n\nto\nin\n", "NUL"),
  ],
)
def test_warnings(text, warning, tokenizer, tmp_path):
  path = tmp_path / "text"
  path.write_text(text)
  warnings = list(statistics_of(path, tokenizer).warnings())
  assert len(warnings) == 1
  assert warning in warnings[0]


def test_no_warning_about_a_sound_text(tokenizer):
  assert not list(statistics_of(SAMPLE_TEXT, tokenizer).warnings())
