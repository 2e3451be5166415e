"""Words and their labels: CoNLL files, and the schemes in which labels spell entities.

  train = read_conll("train.conll")
  train.examples[0].words                  # ["He", "lives", "in", "New", "York", "."]
  train.examples[0].labels                 # ["O", "O", "O", "B-LOC", "I-LOC", "O"]
  entities_of(train.examples[0].labels, "bio")                       # [Entity("LOC", 3, 5)]

What a file cannot mean (a column that is missing, a label of another scheme, bytes that are not
UTF-8) is a `DataError` with file and line. Pure Python, no TensorFlow.
"""

import dataclasses
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from absl import logging

from bert.io.atomic_files import write_text
from bert.io.tables import DataError, Row, check_text, read_lines

# ---------------------------------------------------------------------------------------------
# Label schemes: ways to spell which words make an entity. Entities are what the schemes share, so
# a conversion reads entities in one scheme and spells them in another.

# Letters of an entity's first, inner and last word, and of an entity that is a single word.
_LETTERS = {"bio": "BIIB", "iob1": "IIII", "bioes": "BIES", "bilou": "BILU"}
# In `iob1` B appears only where an entity follows another one of its type. `plain` labels are types
# themselves, each word on its own: parts of speech, for instance.
SCHEMES = (*_LETTERS, "plain")
_SAME_LETTER = {"L": "E", "U": "S"}


class Entity(NamedTuple):
  """Words `start` to `end` (exclusive) of a sentence."""

  type: str
  start: int
  end: int


def split_label(label: str, scheme: str) -> tuple[str, str]:
  """The letter of a label, as in BIOES, and its type.

  Example:
    >>> split_label("B-creative-work", "bio"), split_label("U-PER", "bilou")
    (('B', 'creative-work'), ('S', 'PER'))

  Raises:
    ValueError: it is none of the scheme.
  """
  if scheme == "plain":
    return "S", label
  if label == "O":
    return "O", ""
  letters = "".join(sorted({*_LETTERS[scheme], "B"}))
  letter, _, entity_type = label.partition("-")
  if len(letter) != 1 or letter not in letters or not entity_type:
    forms = ", ".join(f"{letter}-TYPE" for letter in letters)
    raise ValueError(f"the label {label!r} is none of the scheme {scheme}, which has O, {forms}")
  return _SAME_LETTER.get(letter, letter), entity_type


def entities_of(labels: Iterable[str], scheme: str) -> list[Entity]:
  """The entities that labels spell; a label that continues nothing begins an entity.

  So conlleval, the script of the CoNLL tasks, and seqeval read sequences that are not well formed.

  Example:
    >>> entities_of(["B-PER", "I-PER", "O", "I-LOC"], "bio")
    [Entity(type='PER', start=0, end=2), Entity(type='LOC', start=3, end=4)]
  """
  entities = []
  open_type, start = None, 0  # of the entity that the next word may continue
  for i, label in enumerate([*labels, None]):
    letter, entity_type = ("O", "") if label is None else split_label(label, scheme)
    if not (letter in "IE" and entity_type == open_type):
      if open_type is not None:
        entities.append(Entity(open_type, start, i))
      open_type, start = (None if letter == "O" else entity_type), i
    if letter in "ES":
      entities.append(Entity(open_type, start, i + 1))
      open_type = None
  return entities


def labels_of(entities: Iterable[Entity], length: int, scheme: str) -> list[str]:
  """Spells the entities of a sentence of `length` words.

  Args:
    entities: in order, none overlapping another.
    length: words of the sentence.
    scheme: one of `SCHEMES`.

  Example:
    >>> labels_of([Entity("PER", 0, 3), Entity("LOC", 4, 5)], 5, "bioes")
    ['B-PER', 'I-PER', 'E-PER', 'O', 'S-LOC']
  """
  labels = ["O"] * length
  before = Entity("", 0, 0)
  for entity in entities:
    entity_type, start, end = entity
    if scheme == "plain":
      labels[start:end] = [entity_type] * (end - start)
      continue
    first, inner, last, single = _LETTERS[scheme]
    letters = single if end == start + 1 else first + inner * (end - start - 2) + last
    if scheme == "iob1" and (before.type, before.end) == (entity_type, start):
      letters = "B" + letters[1:]
    labels[start:end] = [f"{letter}-{entity_type}" for letter in letters]
    before = entity
  return labels


def convert_labels(labels: Sequence[str], scheme: str, new_scheme: str) -> list[str]:
  """The same entities in another scheme.

  Example:
    >>> convert_labels(["B-PER", "I-PER", "B-PER", "O"], "bio", "bioes")
    ['B-PER', 'E-PER', 'S-PER', 'O']
  """
  return labels_of(entities_of(labels, scheme), len(labels), new_scheme)


def model_labels(types: Iterable[str], scheme: str) -> list[str]:
  """All labels that a scheme has for some types, in the order of the model's outputs.

  All of them, for an entity of three words of a type may be met that training showed with one only.

  Example:
    >>> model_labels({"PER", "LOC"}, "bio")
    ['O', 'B-LOC', 'I-LOC', 'B-PER', 'I-PER']
  """
  types = sorted(types)
  if scheme == "plain":
    return types
  letters = dict.fromkeys("B" + _LETTERS[scheme])
  return ["O", *(f"{letter}-{entity_type}" for entity_type in types for letter in letters)]


# ---------------------------------------------------------------------------------------------
# CoNLL files: a word and its label in each line, in columns; a blank line ends a sentence.

_DOCUMENT_START = "-DOCSTART-"
# A shell passes '\\t' on as two characters.
_NAMED_SEPARATORS = {"whitespace": None, "tab": "\t", "\\t": "\t", "space": " ", "comma": ","}


@dataclasses.dataclass(frozen=True)
class ConllFormat:
  """How a CoNLL file is written.

  Attributes:
    separator: whitespace (spaces and tabs in any number), tab, space, comma, or the characters
      themselves.
    token_column: column of the word, from 0; negative numbers count from the end.
    label_column: column of the label.
    scheme: one of `SCHEMES`.
    comment_prefix: lines that begin so are no words; "" for none.
  """

  separator: str = "whitespace"
  token_column: int = 0
  label_column: int = -1
  scheme: str = "bio"
  comment_prefix: str = ""

  def split(self, line: str) -> list[str]:
    r"""The columns of a line.

    Example:
      >>> ConllFormat().split("New \t B-LOC "), ConllFormat(separator="tab").split("a b\tO")
      (['New', 'B-LOC'], ['a b', 'O'])
    """
    separator = _NAMED_SEPARATORS.get(self.separator, self.separator)
    # Not `str.split()`: a no-break space, for instance, may be part of a word.
    return re.split(r"[ \t]+", line.strip(" \t")) if separator is None else line.split(separator)

  def append(self, line: str, column: str) -> str:
    """The line with one more column."""
    separator = _NAMED_SEPARATORS.get(self.separator, self.separator)
    if separator is None:
      line = line.rstrip(" \t")
      separator = "\t" if "\t" in line else " "
    return f"{line}{separator}{column}"


class InputExample:
  """A sentence.

  Attributes:
    guid: identifies the sentence.
    words: its words, as they are in the file.
    labels: one for each word, in the file's scheme; None where they are not known.
    lines: for each word, the index of its line in the file.
  """

  def __init__(self, guid, words, labels=None, lines=None):
    self.guid = guid
    self.words = words
    self.labels = labels
    self.lines = lines

  def __repr__(self):
    return f"InputExample({self.guid!r}, {self.words!r}, {self.labels!r})"


@dataclasses.dataclass
class ConllFile:
  """What a CoNLL file holds.

  Attributes:
    path: of the file.
    format: how it is written.
    lines: all of its lines, without line ends.
    document_starts: indexes of the `-DOCSTART-` lines.
    examples: its sentences.
  """

  path: str
  format: ConllFormat
  lines: list[str]
  document_starts: list[int]
  examples: list[InputExample]

  @property
  def has_labels(self) -> bool:
    """Whether the labels are known."""
    return self.examples[0].labels is not None

  def types(self) -> set[str]:
    """The types of entities (or the plain labels) that occur."""
    scheme = self.format.scheme
    return {split_label(label, scheme)[1] for label in self.labels(scheme)} - {""}

  def labels(self, scheme: str) -> set[str]:
    """The labels that occur, once they are spelt in `scheme`."""
    return {
      label
      for example in self.examples
      for label in convert_labels(example.labels, self.format.scheme, scheme)
    }


def read_conll(
  path: str | os.PathLike,
  conll_format: ConllFormat | None = None,
  set_type: str = "train",
  needs_labels: bool = True,
) -> ConllFile:
  """Reads a file of words and labels.

  Labels that do not follow their scheme (an `I-PER` that continues nothing) are counted in a
  warning and read as `entities_of` does.

  Args:
    path: UTF-8, lines ending in LF or CRLF.
    conll_format: how it is written.
    set_type: `train`, `dev` or `test`; begins each sentence's guid.
    needs_labels: otherwise labels are taken if every line has one, and `InputExample.labels` is
      None if not.

  Raises:
    DataError: names file, line and reason.
  """
  conll_format = conll_format or ConllFormat()
  reader = _Reader(os.fspath(path), conll_format)
  try:
    examples = reader.read(set_type, with_labels=True)
  except _LabelError as error:
    if needs_labels:
      raise
    logging.info("%s is read without labels: line %d, %s", path, error.line, error.reason)
    examples = reader.read(set_type, with_labels=False)
  if not examples:
    raise DataError("there is no word in the file.", reader.path)
  conll_file = ConllFile(reader.path, conll_format, reader.lines, reader.document_starts, examples)
  if conll_file.has_labels:
    _warn_of_misspelt(conll_file)
  return conll_file


class _LabelError(DataError):
  """A line has no label, or none of the scheme."""


class _Reader:
  """Reads one file."""

  def __init__(self, path: str, conll_format: ConllFormat):
    self.path, self.format = path, conll_format
    self.lines: list[str] = []
    self.document_starts: list[int] = []

  def read(self, set_type: str, with_labels: bool) -> list[InputExample]:
    """The sentences, numbered from 1."""
    sentences = self._sentences(with_labels)
    return [
      InputExample(
        f"{set_type}-{number}",
        [word for word, _, _ in sentence],
        [label for _, label, _ in sentence] if with_labels else None,
        [line for _, _, line in sentence],
      )
      for number, sentence in enumerate(sentences, 1)
    ]

  def _sentences(self, with_labels) -> Iterator[list[tuple[str, str, int]]]:
    """Lists of (word, label, index of the line)."""
    self.lines, self.document_starts = [], []
    sentence = []
    for index, line in enumerate(read_lines(self.path)):
      self.lines.append(line)
      self._check_text(line, index)
      if self.format.comment_prefix and line.startswith(self.format.comment_prefix):
        continue
      is_start = line.startswith(_DOCUMENT_START)
      if is_start:
        self.document_starts.append(index)
      if is_start or not line.strip(" \t"):
        if sentence:
          yield sentence
        sentence = []
      else:
        sentence.append((*self._word_and_label(line, index, with_labels), index))
    if sentence:
      yield sentence

  def _word_and_label(self, line, index, with_labels) -> tuple[str, str]:
    columns = self.format.split(line)
    word = self._column(columns, self.format.token_column, "word", index)
    if not word.strip(" \t"):
      raise self._error("the word is empty", index)
    if not with_labels:
      return word, ""
    label = self._column(columns, self.format.label_column, "label", index, _LabelError)
    if self.format.label_column % len(columns) == self.format.token_column % len(columns):
      raise self._error("there is a word and no label", index, _LabelError)
    try:
      split_label(label, self.format.scheme)
    except ValueError as error:
      raise self._error(str(error), index, _LabelError) from None
    if not label:
      raise self._error("the label is empty", index, _LabelError)
    return word, label

  def _column(self, columns, number, what, index, kind=DataError) -> str:
    try:
      return columns[number]
    except IndexError:
      reason = f"the {what} should be in column {number}, but there are {len(columns)} column(s)"
      raise self._error(reason, index, kind) from None

  def _check_text(self, line, index) -> None:
    try:
      check_text(Row([line], self.path, index + 1, index))
    except DataError as error:
      raise DataError(error.reason, self.path, index + 1) from None

  def _error(self, reason, index, kind=DataError) -> DataError:
    shown = f"{self.lines[index]:.60}"
    advice = "Check --separator, --token_column, --label_column and --label_scheme."
    return kind(f"{reason}: {shown!r}.", self.path, index + 1, advice)


def _warn_of_misspelt(conll_file: ConllFile) -> None:
  """Counts labels that are not how the scheme spells the entities they are read as."""
  scheme, count, first = conll_file.format.scheme, 0, None
  for example in conll_file.examples:
    for label, right, line in zip(
      example.labels, convert_labels(example.labels, scheme, scheme), example.lines, strict=True
    ):
      if label != right:
        count += 1
        first = first or (line + 1, label, right)
  if first:
    logging.warning(
      "%s: %d of %d labels do not follow the scheme %s. The first is in line %d: %s is read as %s. "
      "Is --label_scheme right?",
      conll_file.path,
      count,
      sum(len(example.labels) for example in conll_file.examples),
      scheme,
      *first,
    )


def write_conll(
  path: str | os.PathLike, conll_file: ConllFile, labels: Sequence[Sequence[str]]
) -> None:
  """Writes a file's lines as they are, each word's with one more column: its predicted label.

  Args:
    path: the new file; its lines are those of the old one, one by one.
    conll_file: the old one.
    labels: for each sentence, a label for each word.
  """
  lines = list(conll_file.lines)
  # conlleval wants as many columns in every line that is not blank.
  added = dict.fromkeys(conll_file.document_starts, "O")
  for example, predicted in zip(conll_file.examples, labels, strict=True):
    added.update(zip(example.lines, predicted, strict=True))
  for index, label in added.items():
    lines[index] = conll_file.format.append(lines[index], label)
  write_text(path, "".join(line + "\n" for line in lines))
