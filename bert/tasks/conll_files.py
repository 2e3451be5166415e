"""CoNLL files: a word and its label in each line, in columns; a blank line ends a sentence.

  train = read_conll("train.conll")
  train.examples[0].words                  # ["He", "lives", "in", "New", "York", "."]
  train.examples[0].labels                 # ["O", "O", "O", "B-LOC", "I-LOC", "O"]

A line that cannot be read (a missing column, a label of another scheme, bytes that are not UTF-8)
is a `DataError` with file and line, or skipped. Pure Python, no TensorFlow.
"""

import collections
import csv
import dataclasses
import functools
import itertools
import os
import re
from collections.abc import Iterator, Sequence

from absl import logging

from bert.io import other_formats
from bert.io.atomic_files import write_text
from bert.io.table_columns import TableReader
from bert.io.tables import (
  QUOTE_ADVICE,
  SKIP_ADVICE,
  DataError,
  Row,
  check_text,
  read_lines,
  with_others,
)
from bert.tasks import label_schemes
from bert.tasks.label_schemes import UNTYPED, convert_labels, split_label

_DOCUMENT_START = "-DOCSTART-"
_SENTENCE_START = "Sentence:"  # in the first column of Kaggle's "Annotated Corpus for NER"
# Lines of CoNLL-U: a word; and a range of words written as one, or a node without a word.
_CONLLU_WORD = re.compile(r"\d+\t[^\t]+(?:\t[^\t]*){8}$")
_NO_WORD = re.compile(r"\d+[-.]\d+(?:\t[^\t]*){9,}$")
_CONLLU_ADVICE = (
  "These are columns of CoNLL-U. For parts of speech give --separator=tab --token_column=1 "
  "--label_column=3 --label_scheme=plain --comment_prefix='#'."
)
_COMMENT_ADVICE = "If lines that begin with # are comments, give --comment_prefix='#'."
_CHECK_ADVICE = (
  "Check --separator, --token_column and --label_column, or skip such rows with --skip_bad_rows."
)
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

  @property
  def characters(self) -> str | None:
    """The characters between columns; None for any whitespace."""
    return _NAMED_SEPARATORS.get(self.separator, self.separator)

  def split(self, line: str, is_quoted: bool = False) -> list[str]:
    r"""Splits a line into its columns; a `csv.Error` if its quotes are not those of CSV.

    Example:
      >>> ConllFormat().split("New \t B-LOC "), ConllFormat(separator="tab").split("a b\tO")
      (['New', 'B-LOC'], ['a b', 'O'])
      >>> ConllFormat(separator="comma").split('"10,000",O', is_quoted=True)
      ['10,000', 'O']
    """
    separator = self.characters
    if is_quoted and '"' in line:
      return next(csv.reader([line], delimiter=separator or "\t", strict=True))
    # Not `str.split()`: a no-break space, for instance, may be part of a word.
    return re.split(r"[ \t]+", line.strip(" \t")) if separator is None else line.split(separator)

  def has_quotes(self, lines: Sequence[str]) -> bool:
    """Tells whether fields are quoted as in CSV.

    They are if commas or semicolons separate them. Otherwise a quote is a word of the text, unless
    a field has doubled quotes (pandas writes `"` as four) and every line can be read as CSV.
    """
    separator = self.characters or "\t"
    if separator in (",", ";") or len(separator) > 1:
      return len(separator) == 1
    mark = re.escape(separator)
    doubled = re.compile(f'(?:^|{mark})"[^"{mark}]*""[^{mark}]*"(?:{mark}|$)')
    if not any('""' in line and doubled.search(line) for line in lines):
      return False
    try:
      return all(self.split(line, is_quoted=True) for line in lines if line)
    except csv.Error:
      return False

  def append(self, line: str, column: str) -> str:
    """Returns the line with one more column."""
    separator = self.characters
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


_CONLLU = ConllFormat("tab", 1, 3, "plain", "#")
_MANY_WORDS = 200  # of one sentence
_LINES_TO_JUDGE = 200  # by which the usual number of columns is known


@dataclasses.dataclass
class ConllFile:
  """The content of a CoNLL file."""

  path: str  # of the file
  format: ConllFormat  # its format
  lines: list[str]  # all lines, without line ends
  others: dict[int, str]  # indexes of lines that hold no word -> what they have for a label
  examples: list[TaggedSentence]  # its sentences
  bad_rows: list[DataError]  # the errors of skipped lines

  @property
  def has_labels(self) -> bool:
    """Whether the labels are known."""
    return self.examples[0].labels is not None

  def types(self) -> set[str]:
    """Lists the types of entities (or the plain labels) that occur."""
    labels = {label for example in self.examples for label in example.labels}
    return {split_label(label, self.format.scheme)[1] for label in labels} - {""}

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
  skip_bad_rows: bool = False,
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
    skip_bad_rows: whether malformed lines are skipped, with a warning, instead of raised. Where
      most lines lack a label, or all labels fit another scheme, the file counts as without labels.

  Raises:
    DataError: the message names file, line and reason.
  """
  reader = _Reader(os.fsdecode(path), conll_format or ConllFormat(), skip_bad_rows)
  examples = reader.read(set_type, with_labels=True)
  if error := reader.fault_of_labels(_num_words(examples)):
    if needs_labels:
      raise reader.explained(error, _num_words(examples))
    logging.info("%s is read without labels: line %d: %s", reader.path, error.line, error.reason)
    examples = reader.read(set_type, with_labels=False)
  num_words = _num_words(examples)
  reader.rows.finish(reader.path, num_words)
  if not examples:
    raise DataError("the file contains no word.", reader.path)
  conll_file = ConllFile(
    *(reader.path, reader.format, reader.lines, reader.others, examples),
    list(reader.rows.bad_rows.values()),
  )
  if conll_file.has_labels:
    _check_types(conll_file)
    _warn_of_misspelt(conll_file)
  if len(examples) == 1 and num_words > _MANY_WORDS:
    logging.warning(
      "%s is one sentence of %d words: a blank line ends a sentence, and there is none.",
      *(conll_file.path, num_words),
    )
  return conll_file


def _num_words(examples: Sequence[TaggedSentence]) -> int:
  return sum(len(example.words) for example in examples)


_ALL_LABELS = "All labels of the file"


class _LabelError(DataError):
  """A line has no label, or one of another scheme."""


class _Reader:
  """Reads one file."""

  def __init__(self, path: str, conll_format: ConllFormat, skip_bad_rows: bool):
    self.path, self.format, self._skip = path, conll_format, skip_bad_rows
    self.rows = TableReader(skip_bad_rows)
    self.lines: list[str] = []
    self.others: dict[int, str] = {}
    self._is_quoted, self._width = False, 0

  def read(self, set_type: str, with_labels: bool) -> list[TaggedSentence]:
    """Reads the sentences, numbered from 1."""
    self.rows = TableReader(self._skip)
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

  def fault_of_labels(self, num_words: int) -> DataError | None:
    """Returns the error that keeps the file from being read with labels, if one does.

    Where malformed lines are skipped, that is an error of labels in most lines, or in all.
    """
    errors = self.rows.errors_of(self.path)
    of_labels = [each for each in errors if isinstance(each, _LabelError)]
    if not of_labels:
      return None
    first = of_labels[0]
    if not self._skip:
      return first if first is errors[0] else None
    is_whole = len(of_labels) > num_words or self._advice(first).startswith(_ALL_LABELS)
    return first if is_whole else None

  def explained(self, error: DataError, num_words: int) -> DataError:
    """Returns an error of labels with what to do, and with the other errors of the file."""
    advice = self._advice(error)
    found = DataError(error.reason, error.file, error.line, advice)
    if self._skip or advice.startswith(_ALL_LABELS):
      return found
    errors = self.rows.errors_of(self.path)
    return with_others(found, errors, num_words + len(errors))

  def _advice(self, error: DataError) -> str:
    """Names the flags that fit the labels of the file, else what the error advises."""
    plain = _Reader(self.path, dataclasses.replace(self.format, scheme="plain"), True)
    labels = [each.labels for each in plain.read("", with_labels=True)]
    if self.format != _CONLLU and any(map(_CONLLU_WORD.match, plain.lines)):
      return _CONLLU_ADVICE
    own = functools.partial(label_schemes.recognises, scheme=self.format.scheme)
    if error.advice.startswith(_COMMENT_ADVICE) or all(map(own, itertools.chain(*labels))):
      return error.advice
    if fitting := label_schemes.fitting(labels):
      return f"{_ALL_LABELS} fit --label_scheme={fitting}."
    if not any("-" in label for each in labels for label in each):
      return f"For tags, such as parts of speech, give --label_scheme=plain. {error.advice}"
    return error.advice

  def _sentences(self, with_labels) -> Iterator[list[tuple[str, str, int]]]:
    """Lists of (word, label, index of the line)."""
    self.lines, self.others = list(read_lines(self.path)), {}
    self._is_quoted = self.format.has_quotes(self.lines)
    self._width = self._usual_width()
    sentence, first_of_last = [], ""
    for index, line in enumerate(self.lines):
      is_end, found = not line.strip(" \t"), None
      try:
        check_text(Row([line], self.path, index + 1, index))
        if self.format.comment_prefix and line.startswith(self.format.comment_prefix):
          continue
        if line.startswith(_DOCUMENT_START):
          is_end, self.others[index] = True, "O"
        elif _NO_WORD.match(line) and self.format.token_column:
          self.others[index] = "_"
        elif not is_end:
          columns = self._columns(line, index)
          if columns[0].startswith(_SENTENCE_START) and self.format.token_column % len(columns):
            is_end, first_of_last = columns[0] != first_of_last, columns[0]
          found = self._word_and_label(columns, index, with_labels)
      except DataError as error:
        self.rows.on_bad_row(error)
        self.lines[index] = line.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        is_end = is_end or not line.strip()  # any Unicode space
      if is_end and sentence:
        yield sentence
        sentence = []
      if found:
        sentence.append((*found, index))
    if sentence:
      yield sentence

  def _usual_width(self) -> int:
    """Returns how many columns most of the first lines have."""
    first = itertools.islice(filter(str.strip, self.lines), _LINES_TO_JUDGE)
    widths = collections.Counter(len(self.format.split(line)) for line in first)
    return max(widths, key=lambda width: (widths[width], width), default=0)

  def _columns(self, line, index) -> list[str]:
    try:
      return self.format.split(line, self._is_quoted)
    except csv.Error as error:
      reason = f"the quoting is broken ({error}): {line:.60}"
      raise DataError(reason, self.path, index + 1, QUOTE_ADVICE) from None

  def _word_and_label(self, columns, index, with_labels) -> tuple[str, str]:
    is_short = self.format.characters is None and len(columns) < self._width
    is_blank = is_short and self.lines[index][0] in " \t"
    word = "" if is_blank else self._column(columns, self.format.token_column, "word", index)
    if not word.strip(" \t"):
      raise self._error("the word is empty or a blank", index)
    if not with_labels:
      return word, ""
    label = self._column(columns, self.format.label_column, "label", index, _LabelError)
    if self.format.label_column % len(columns) == self.format.token_column % len(columns):
      raise self._error("the line has a word, but no label", index, _LabelError)
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
      reason = f"the {what} should be in column {number}, but the line has {len(columns)} column(s)"
      raise self._error(reason, index, kind) from None

  def _error(self, reason, index, kind=DataError) -> DataError:
    """Makes the error of a line; flags are in question where it has as many columns as most."""
    shown = f"{self.lines[index]:.60}"
    is_usual = len(self.format.split(self.lines[index])) == self._width
    advice = _CHECK_ADVICE if is_usual else SKIP_ADVICE
    if shown.startswith("#") and not self.format.comment_prefix:
      advice = _COMMENT_ADVICE
    if other_formats.looks_like_json(shown):
      reason, advice = "this is JSON", "Write each word with its label on a line of its own."
    return kind(f"{reason}: {shown!r}.", self.path, index + 1, advice)


def _check_types(conll_file: ConllFile) -> None:
  """Refuses labels with a type beside others without."""
  scheme = conll_file.format.scheme
  types = conll_file.types()
  if scheme == "plain" or UNTYPED not in types or len(types) == 1:
    return
  label, line = next(
    (label, line)
    for example in conll_file.examples
    for label, line in zip(example.labels, example.lines, strict=True)
    if split_label(label, scheme)[1] == UNTYPED
  )
  reason = (
    f"the label {label!r} has no type, but others have one: {', '.join(sorted(types - {UNTYPED}))}."
  )
  raise DataError(reason, conll_file.path, line + 1, "Correct it.")


def _warn_of_misspelt(conll_file: ConllFile) -> None:
  """Counts the labels that violate the scheme."""
  scheme, count, first = conll_file.format.scheme, 0, None
  fitting = functools.partial(label_schemes.fitting, [each.labels for each in conll_file.examples])
  if scheme == "plain" and conll_file.types() != {"O"} and (other := fitting()):
    logging.warning(
      "%s: all labels fit --label_scheme=%s; with plain each word is scored, O included.",
      *(conll_file.path, other),
    )
  for example in conll_file.examples:
    for label, right, line in zip(
      example.labels, convert_labels(example.labels, scheme, scheme), example.lines, strict=True
    ):
      if label != right:
        count += 1
        first = first or (line + 1, label, right)
  if first:
    other = fitting()
    logging.warning(
      "%s: %d of %d labels violate the scheme %s. The first is in line %d: %s is read as %s. %s",
      conll_file.path,
      count,
      sum(len(example.labels) for example in conll_file.examples),
      scheme,
      *first,
      f"All of them fit --label_scheme={other}." if other else "Check --label_scheme.",
    )


def write_conll(
  path: str | os.PathLike, conll_file: ConllFile, labels: Sequence[Sequence[str]]
) -> None:
  """Writes the lines of a file with one more column for each word: its predicted label."""
  lines = list(conll_file.lines)
  # conlleval needs the same number of columns in every line that is not blank.
  added = dict(conll_file.others)
  for example, predicted in zip(conll_file.examples, labels, strict=True):
    added.update(zip(example.lines, predicted, strict=True))
  for index, label in added.items():
    lines[index] = conll_file.format.append(lines[index], label)
  write_text(path, "".join(line + "\n" for line in lines))
