"""SWAG and other multiple choice: which ending continues a text?

  examples = read_swag_examples("train.csv")
  examples[0].context          # "She opens the hood of the car."
  examples[0].choices          # ["Then, she examines the engine.", "Then, she ...", ...]
  examples[0].label            # 0

The model reads each choice in a separate sequence, `[CLS] context [SEP] choice [SEP]`, and scores
it; a softmax over the scores of one question gives probabilities (Zellers et al. 2018,
arXiv:1808.05326; Devlin et al. 2018, arXiv:1810.04805, section 4.4). Pure Python, no TensorFlow.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from bert.io.table_columns import TableReader, names_of
from bert.io.tables import DataError, Row
from bert.tasks import classification
from bert.tasks.sequence_lengths import SequenceLengths
from bert.tasks.user_tables import read_rows

_SEQUENCES = ("input_ids", "input_mask", "segment_ids")
_ENDING = re.compile(r"ending([0-9]{1,9})")


class ChoiceExample:
  """One question.

  Attributes:
    guid: identifies the question.
    context: the text to continue.
    choices: at least two possible continuations.
    label: index of the right choice; None if unknown.
  """

  def __init__(self, guid, context, choices, label=None):
    self.guid = guid
    self.context = context
    self.choices = choices
    self.label = label

  def __repr__(self):
    return f"ChoiceExample({self.guid!r}, {self.context!r}, {self.choices!r}, {self.label!r})"


# ---------------------------------------------------------------------------------------------
# Reading.


def read_swag_examples(
  path: str | os.PathLike,
  set_type: str = "train",
  needs_labels: bool = True,
  skip_bad_rows: bool = False,
) -> list[ChoiceExample]:
  """Reads a table with a header, or JSON Lines with the same keys.

  The context is `sent1`, or `startphrase` if the file has no `sent1`. `ending0`, `ending1`, ... are
  the choices; each begins with `sent2` if the file has it. In a row with fewer choices than others
  the last ones are empty. `label` is the number of the right choice. Other columns are ignored.

  Args:
    path: `.csv` with quoted fields, `.tsv` where quotes are text, or `.jsonl`.
    set_type: the beginning of each question's guid.
    needs_labels: whether missing labels are an error.
    skip_bad_rows: whether malformed rows are skipped, with a warning, instead of raised.

  Raises:
    DataError: names file, line and reason.
  """
  path, reader = os.fsdecode(path), TableReader(skip_bad_rows)
  rows = read_rows(path, reader)
  columns = _Columns(rows[0], needs_labels)
  what = f"{set_type} questions"
  return reader.convert(rows, lambda row: columns.example(row, set_type), what, first_row="header")


class _Columns:
  """The columns of a file."""

  def __init__(self, header: Row, needs_labels: bool):
    self.needs_labels = needs_labels
    numbers = {name: number for number, name in enumerate(names_of(header, True))}
    self.context = numbers.get("sent1", numbers.get("startphrase"))
    self.start = numbers.get("sent2") if "sent1" in numbers else None
    self.label = numbers.get("label")
    self.endings = sorted(
      (int(match[1]), number)
      for name, number in numbers.items()
      if (match := _ENDING.fullmatch(name))
    )
    missing = []
    if self.context is None:
      missing.append("sent1 (or startphrase)")
    if [order for order, _ in self.endings[:2]] != [0, 1]:
      missing.append("ending0 and ending1")
    if needs_labels and self.label is None:
      missing.append("label")
    if missing:
      raise DataError(
        f"columns are missing: {', '.join(missing)}. The header has {', '.join(map(str, header))}.",
        header.file,
      )
    for wanted, (order, _) in enumerate(self.endings):
      if order != wanted:
        raise DataError(f"column ending{wanted} is missing before ending{order}.", header.file)

  def example(self, row: Row, set_type: str) -> ChoiceExample:
    """Makes the question of a row."""
    start = "" if self.start is None else _text(row, self.start, "sent2")
    endings = [_text(row, number, f"ending{order}") for order, number in self.endings]
    while endings and not endings[-1].strip():
      endings.pop()
    if len(endings) < 2 or not all(ending.strip() for ending in endings):
      raise row.error("an ending is empty; only the last ones may be, and two are required.")
    choices = [f"{start} {ending}".strip() for ending in endings]
    context = _text(row, self.context, "the context")
    return ChoiceExample(
      f"{set_type}-{row.number}", context, choices, self._label(row, len(endings))
    )

  def _label(self, row: Row, num_choices: int) -> int | None:
    label = None if self.label is None else row[self.label]
    if not self.needs_labels and label in (None, ""):
      return None
    text = str(label)  # in JSON it may be a number
    if not re.fullmatch("[0-9]{1,9}", text) or int(text) >= num_choices:
      raise row.error(
        f"the label is {label!r:.60}, but must be an integer from 0 to {num_choices - 1}."
      )
    return int(text)


def _text(row: Row, number: int, name: str) -> str:
  value = row[number]
  if value is None:
    return ""  # JSON without this key
  if not isinstance(value, str):
    raise row.error(f"{name} is {value!r}, not text.")
  return value


# ---------------------------------------------------------------------------------------------
# From questions to features.


def num_choices_of(questions: Sequence[ChoiceExample]) -> int:
  """Counts the choices of the question with the most: N."""
  return max(len(question.choices) for question in questions)


def convert_examples_to_features(
  questions: Sequence[ChoiceExample], num_choices: int, max_seq_length: int, tokenizer
) -> Iterator[dict[str, Any]]:
  """Yields the record of each question: N sequences, the last ones padding.

  In too long sequences the longer text is cut.

  There is room for at least `num_choices_of` them, N, in each; `max_seq_length` is of each
  sequence, [CLS] and both [SEP] included.

  Raises:
    ValueError: `max_seq_length` leaves no room.
  """
  lengths = SequenceLengths()
  for index, question in enumerate(questions):
    sequences = [
      classification.convert_single_example(
        # Only the first questions' sequences are logged.
        index * num_choices + number,
        classification.InputExample(f"{question.guid}-{number}", question.context, choice, "0"),
        ["0"],
        max_seq_length,
        tokenizer,
        lengths=lengths,
      )
      for number, choice in enumerate(question.choices)
    ]
    missing = num_choices - len(sequences)
    blank = [[0] * max_seq_length] * missing
    yield {
      **{name: [getattr(each, name) for each in sequences] + blank for name in _SEQUENCES},
      "choice_mask": [1] * len(sequences) + [0] * missing,
      "label_ids": question.label or 0,
      "is_real_example": 1,
    }
  lengths.log(max_seq_length)


def padded(answers: Sequence[Mapping[str, Any]]) -> np.ndarray:
  """Returns the probabilities of answers as `[questions, N]`, 0 for choices that a question lacks.

  Example:
    >>> padded([{"probabilities": [0.5, 0.5]}, {"probabilities": [1.0]}]).tolist()
    [[0.5, 0.5], [1.0, 0.0]]
  """
  found = np.zeros([len(answers), max(len(each["probabilities"]) for each in answers)])
  for row, each in zip(found, answers, strict=True):
    row[: len(each["probabilities"])] = each["probabilities"]
  return found
