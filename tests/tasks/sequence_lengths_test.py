"""Tests of bert/tasks/sequence_lengths.py."""

import pytest

from bert.tasks.classification import InputExample, convert_single_example
from bert.tasks.sequence_lengths import SequenceLengths


class _Words:
  def tokenize(self, text):
    return text.split()

  def convert_tokens_to_ids(self, tokens):
    return [len(token) for token in tokens]


def counted(*texts, length=8):
  lengths = SequenceLengths()
  for index, text in enumerate(texts):
    example = InputExample(str(index), text, None, "0")
    convert_single_example(9, example, ["0"], length, _Words(), lengths=lengths)
  return lengths


@pytest.mark.parametrize(("num_long", "level"), [(0, None), (1, "INFO"), (3, "WARNING")])
def test_texts_that_are_cut_are_counted(caplog, num_long, level):
  caplog.set_level("INFO", logger="absl")
  counted(*["w " * 18] * num_long, *["w"] * 2).log(8, "More.")
  if level is None:
    assert not caplog.records
    return
  (record,) = caplog.records
  assert record.levelname == level
  assert record.getMessage() == (
    f"{num_long} of {num_long + 2} texts are longer than --max_seq_length=8 and are cut; the "
    "longest has 20 tokens. --max_seq_length=20 would hold 95% of them whole. More."
  )


def test_no_shorter_length_is_advised(caplog):
  caplog.set_level("INFO", logger="absl")
  counted("w " * 18, *["w"] * 40).log(8)
  assert caplog.messages[0].endswith("are cut; the longest has 20 tokens.")


def test_both_texts_of_a_pair_count():
  lengths = SequenceLengths()
  example = InputExample("x", "a b c", "d e", "0")
  convert_single_example(9, example, ["0"], 6, _Words(), lengths=lengths)
  assert lengths.fitting(1.0) == 8
