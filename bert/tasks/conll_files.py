"""CoNLL files: a word and its label in each line, in columns; a blank line ends a sentence.

  train = read_conll("train.conll")
  train.examples[0].words                  # ["He", "lives", "in", "New", "York", "."]
  train.examples[0].labels                 # ["O", "O", "O", "B-LOC", "I-LOC", "O"]

A line that cannot be read (a missing column, a label of another scheme, bytes that are not UTF-8)
is a `DataError` with file and line. Pure Python, no TensorFlow.
"""

import dataclasses
import os
import re
from collections.abc import Iterator, Sequence

from absl import logging

from bert.io import other_formats
from bert.io.atomic_files import write_text
from bert.io.tables import DataError, Row, check_text, read_lines
from bert.tasks import label_schemes
from bert.tasks.label_schemes import convert_labels, split_label

_DOCUMENT_START = "-DOCSTART-"
# A shell passes '\\t' as two characters.
_NAMED_SEPARATORS = {"whitespace": None, "tab": "\t", "\\t": "\t", "space": " ", "comma": ","}


@dataclasses.dataclass(frozen=True)
class ConllFormat:
  """The format of a CoNLL file."""

  # Whitespace (any number of spaces and tabs), tab, space, comma, or the characters themselves.
  separator: str = "whitespace"
  token_column: int = 0  # column of the word, from 0; negative numbers count from the end
  label_column: int = -1  # column of the label
  scheme: str = "bio"  # one of `label_schemes.SCHEMES`
  comment_prefix: str = ""  # lines with this prefix are comments; "" if there are no comments

  def split(self, line: str) -> list[str]:
    r"""Splits a line into its columns.

    Example:
      >>> ConllFormat().split("New \t B-LOC "), ConllFormat(separator="tab").split("a b\tO")
      (['New', 'B-LOC'], ['a b', 'O'])
    """
    separator = _NAMED_SEPARATORS.get(self.separator, self.separator)
    # Not `str.split()`: a no-break space, for instance, may be part of a word.
    return re.split(r"[ \t]+", line.strip(" \t")) if separator is None else line.split(separator)

  def append(self, line: str, column: str) -> str:
    """Returns the line with one more column."""
    separator = _NAMED_SEPARATORS.get(self.separator, self.separator)
    if separator is None:
      line = line.rstrip(" \t")
      separator = "\t" if "\t" in line else " "
    return f"{line}{separator}{column}"


class TaggedSentence:
  """A sentence.

  Attributes:
    guid: identifies the sentence.
    words: its words, as they are in the file.
    labels: one for each word, in the file's scheme; None if unknown.
    lines: for each word, the index of its line in the file.
  """

  def __init__(self, guid, words, labels=None, lines=None):
    self.guid = guid
    self.words = words
    self.labels = labels
    self.lines = lines

  def __repr__(self):
    return f"TaggedSentence({self.guid!r}, {self.words!r}, {self.labels!r})"


_MANY_WORDS = 200  # of one sentence


@dataclasses.dataclass
class ConllFile:
  """The content of a CoNLL file."""

  path: str  # of the file
  format: ConllFormat  # its format
  lines: list[str]  # all lines, without line ends
  document_starts: list[int]  # indexes of the `-DOCSTART-` lines
  examples: list[TaggedSentence]  # its sentences

  @property
  def has_labels(self) -> bool:
    """Whether the labels are known."""
    return self.examples[0].labels is not None

  def types(self) -> set[str]:
    """Lists the types of entities (or the plain labels) that occur."""
    scheme = self.format.scheme
    return {split_label(label, scheme)[1] for label in self.labels(scheme)} - {""}

  def labels(self, scheme: str) -> set[str]:
    """Lists the labels that occur, converted to `scheme`."""
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

  Labels that violate their scheme (an `I-PER` that continues no entity) are counted in a warning
  and interpreted as by `label_schemes.entities_of`.

  Args:
    path: UTF-8, with line ends LF or CRLF.
    conll_format: the format.
    set_type: `train`, `dev` or `test`; the beginning of each sentence's guid.
    needs_labels: whether missing labels are an error. If not, and a line has no label, all
      `TaggedSentence.labels` are None.

  Raises:
    DataError: the message names file, line and reason.
  """
  conll_format = conll_format or ConllFormat()
  reader = _Reader(os.fsdecode(path), conll_format)
  try:
    examples = reader.read(set_type, with_labels=True)
  except _LabelError as error:
    if needs_labels:
      raise _with_fitting_scheme(error, reader) from None
    logging.info("%s is read without labels: line %d: %s", path, error.line, error.reason)
    examples = reader.read(set_type, with_labels=False)
  if not examples:
    raise DataError("the file contains no word.", reader.path)
  conll_file = ConllFile(reader.path, conll_format, reader.lines, reader.document_starts, examples)
  if conll_file.has_labels:
    _warn_of_misspelt(conll_file)
  if len(examples) == 1 and len(examples[0].words) > _MANY_WORDS:
    logging.warning(
      "%s is one sentence of %d words: a blank line ends a sentence, and there is none.",
      *(conll_file.path, len(examples[0].words)),
    )
  return conll_file


class _LabelError(DataError):
  """A line has no label, or one of another scheme."""


def _with_fitting_scheme(error: _LabelError, reader: "_Reader") -> DataError:
  """Returns the error; with the scheme of the file, if all of its labels fit another one."""
  plain = _Reader(reader.path, dataclasses.replace(reader.format, scheme="plain"))
  try:
    fitting = label_schemes.fitting(each.labels for each in plain.read("", with_labels=True))
  except DataError:
    return error
  if not fitting or fitting == reader.format.scheme:
    return error
  advice = f"All labels of the file fit --label_scheme={fitting}."
  return DataError(error.reason, error.file, error.line, advice)


class _Reader:
  """Reads one file."""

  def __init__(self, path: str, conll_format: ConllFormat):
    self.path, self.format = path, conll_format
    self.lines: list[str] = []
    self.document_starts: list[int] = []

  def read(self, set_type: str, with_labels: bool) -> list[TaggedSentence]:
    """Reads the sentences, numbered from 1."""
    sentences = self._sentences(with_labels)
    return [
      TaggedSentence(
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
      raise self._error("the line has a word, but no label", index, _LabelError)
    try:
      split_label(label, self.format.scheme)
    except ValueError as error:
      meant = label_schemes.meant(label, self.format.scheme)
      hint = f"Did you mean {meant!r}? " if meant else ""
      raise self._error(str(error), index, _LabelError, hint) from None
    if not label:
      raise self._error("the label is empty", index, _LabelError)
    return word, label

  def _column(self, columns, number, what, index, kind=DataError) -> str:
    try:
      return columns[number]
    except IndexError:
      reason = f"the {what} should be in column {number}, but the line has {len(columns)} column(s)"
      raise self._error(reason, index, kind) from None

  def _check_text(self, line, index) -> None:
    try:
      check_text(Row([line], self.path, index + 1, index))
    except DataError as error:
      raise DataError(error.reason, self.path, index + 1) from None

  def _error(self, reason, index, kind=DataError, hint="") -> DataError:
    shown = f"{self.lines[index]:.60}"
    advice = f"{hint}Check --separator, --token_column, --label_column and --label_scheme."
    if other_formats.looks_like_json(shown):
      reason, advice = "this is JSON", "Write each word with its label on a line of its own."
    return kind(f"{reason}: {shown!r}.", self.path, index + 1, advice)


def _warn_of_misspelt(conll_file: ConllFile) -> None:
  """Counts the labels that violate the scheme."""
  scheme, count, first = conll_file.format.scheme, 0, None
  for example in conll_file.examples:
    for label, right, line in zip(
      example.labels, convert_labels(example.labels, scheme, scheme), example.lines, strict=True
    ):
      if label != right:
        count += 1
        first = first or (line + 1, label, right)
  if first:
    fitting = label_schemes.fitting(example.labels for example in conll_file.examples)
    logging.warning(
      "%s: %d of %d labels violate the scheme %s. The first is in line %d: %s is read as %s. %s",
      conll_file.path,
      count,
      sum(len(example.labels) for example in conll_file.examples),
      scheme,
      *first,
      f"All of them fit --label_scheme={fitting}." if fitting else "Check --label_scheme.",
    )


def write_conll(
  path: str | os.PathLike, conll_file: ConllFile, labels: Sequence[Sequence[str]]
) -> None:
  """Writes the lines of a file with one more column for each word: its predicted label."""
  lines = list(conll_file.lines)
  # conlleval needs the same number of columns in every line that is not blank.
  added = dict.fromkeys(conll_file.document_starts, "O")
  for example, predicted in zip(conll_file.examples, labels, strict=True):
    added.update(zip(example.lines, predicted, strict=True))
  for index, label in added.items():
    lines[index] = conll_file.format.append(lines[index], label)
  write_text(path, "".join(line + "\n" for line in lines))
