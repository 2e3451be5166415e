"""Sentence classification data: from a task's files to `InputExample`s, from those to features.

A processor knows where one task keeps its texts and labels, and how the task is scored:

  processor = create_processor("mrpc")
  examples = processor.get_train_examples("glue_data/MRPC")
  features = convert_examples_to_features(examples, processor.get_labels(), 128, tokenizer)

Processors written for google-research/bert work unchanged: derive from `DataProcessor`, read with
`_read_tsv`, add the class to `PROCESSORS`. A row that cannot be what its writer meant (too short,
too long, not UTF-8, a label nobody knows) is a `DataError` with file, line and remedy;
`skip_bad_rows=True` leaves such rows out, counts them and says so.

Pure Python, no TensorFlow.
"""

import dataclasses
import difflib
import inspect
import json
import math
import os
from collections.abc import Iterable, Sequence

from absl import logging

from bert.io.tables import (
  SKIP_ADVICE,
  DataError,
  Row,
  check_text,
  read_jsonl,
  read_lines,
  read_table,
)
from bert.tasks.classification import (  # re-exported: this is where the original's users look for them
  InputExample,
  InputFeatures,
  PaddingInputExample,
  convert_examples_to_features,
  convert_single_example,
  unknown_label,
)

__all__ = [
  "PROCESSORS",
  "Columns",
  "CsvProcessor",
  "DataError",
  "DataProcessor",
  "InputExample",
  "InputFeatures",
  "PaddingInputExample",
  "TableProcessor",
  "convert_examples_to_features",
  "convert_single_example",
  "create_processor",
]

Column = str | int  # a name in the header, or a 0-based number


class DataProcessor:
  """What a task provides. Derive from it for your own data, as with the original.

  Attributes:
    problem_type: "classification" (one class an example), "multi_label" or "regression".
    metrics: names of the task's official metrics, see `metrics.METRICS`.
    headline_metric: the one that chooses the best checkpoint; larger is better.
  """

  problem_type = "classification"
  metrics: tuple[str, ...] = ("accuracy",)
  headline_metric = "accuracy"

  def get_train_examples(self, data_dir: str) -> list[InputExample]:
    """Examples to train on."""
    raise NotImplementedError(f"{type(self).__name__} has no training set.")

  def get_dev_examples(self, data_dir: str) -> list[InputExample]:
    """Examples to evaluate on."""
    raise NotImplementedError(f"{type(self).__name__} has no dev set.")

  def get_test_examples(self, data_dir: str) -> list[InputExample]:
    """Examples to predict; their labels are placeholders."""
    raise NotImplementedError(f"{type(self).__name__} has no test set.")

  def get_labels(self) -> list[str]:
    """One name per output of the model: the classes, or `["score"]` for regression."""
    raise NotImplementedError(f"{type(self).__name__} has no labels.")

  @classmethod
  def _read_tsv(cls, input_file: str, quotechar: str | None = None) -> list[Row]:
    """Rows of a tab separated file, quotes read as text unless `quotechar` is given."""
    return read_table(input_file, quotechar=quotechar)


@dataclasses.dataclass(frozen=True)
class Columns:
  """Where a table keeps an example.

  Attributes:
    text_a: column of the first text.
    text_b: column of the second, or None.
    label: column of the label, or None.
    guid: column of the example's identity; None takes the number of the row.
    header: whether the first row names the columns.
  """

  text_a: Column
  text_b: Column | None = None
  label: Column | None = None
  guid: Column | None = None
  header: bool = True

  def resolve(self, first_row: Row) -> "Columns":
    """Turns names, and numbers counted from the end, into numbers counted from 0."""
    names = ("text_a", "text_b", "label", "guid")
    found = {name: self._number(getattr(self, name), first_row) for name in names}
    return dataclasses.replace(self, **found)

  def _number(self, column: Column | None, first_row: Row) -> int | None:
    if isinstance(column, str):
      if self.header and column in first_row:
        return first_row.index(column)
      if not column.isdecimal():
        raise self._unknown(column, first_row)
      column = int(column)
    return column + len(first_row) if column is not None and column < 0 else column

  def _unknown(self, column: str, first_row: Row) -> DataError:
    if not self.header:
      return first_row.error(f"there is no header to name {column!r}.", "Give columns by number.")
    return first_row.error(
      f"there is no column {column!r}; the header has {', '.join(map(str, first_row))}.",
      "Name one of these columns, or give its number counted from 0.",
    )


class TableProcessor(DataProcessor):
  """A task kept in `train.tsv`, `dev.tsv` and `test.tsv`, quotes read as text.

  Attributes:
    labels: names of the classes, in the order of the model's outputs.
    columns: where the training and dev files keep their examples.
    test_columns: the same for the test file, which has no labels.
    skip_bad_rows: whether malformed rows are left out instead of raised.
    bad_rows: (file, line) -> error, of the rows left out.
  """

  labels: tuple[str, ...] = ("0", "1")
  columns: Columns
  test_columns: Columns

  def __init__(self, skip_bad_rows: bool = False):
    self.skip_bad_rows = skip_bad_rows
    self.bad_rows: dict[tuple, DataError] = {}

  def get_train_examples(self, data_dir):
    """See base class."""
    return self._read_examples(data_dir, "train.tsv", "train")

  def get_dev_examples(self, data_dir):
    """See base class."""
    return self._read_examples(data_dir, "dev.tsv", "dev")

  def get_test_examples(self, data_dir):
    """See base class."""
    return self._read_examples(data_dir, "test.tsv", "test")

  def get_labels(self):
    """See base class."""
    return list(self.labels)

  def _read_examples(self, data_dir, file_name, set_type):
    path = os.path.join(data_dir, file_name)
    return self._create_examples(self._read_rows(path), set_type, path)

  def _read_rows(self, path) -> list[Row]:
    return read_table(path, on_bad_row=self._on_bad_row)

  def _on_bad_row(self, error: DataError) -> None:
    if not self.skip_bad_rows:
      raise error
    self.bad_rows[error.file, error.line] = error

  def _columns_of(self, set_type) -> Columns:
    return self.test_columns if set_type.startswith("test") else self.columns

  def _columns_in(self, set_type, lines) -> Columns:
    return self._columns_of(set_type).resolve(lines[0])

  def _create_examples(self, lines, set_type, path=None):
    """One example per row of `lines`, whose first row is the header if the file has one."""
    if not lines:
      raise DataError("the file is empty.", path)
    columns = self._columns_in(set_type, lines)
    if columns.header:
      self._check_header_was_read(lines[0])
    examples = []
    for row in lines[1:] if columns.header else lines:
      try:
        examples.append(self._create_example(row, set_type, columns, width=len(lines[0])))
      except DataError as e:
        self._on_bad_row(e)
    self._report_bad_rows(lines[0].file)
    if not examples:
      raise DataError(f"there are no {set_type} examples in the file.", lines[0].file)
    return examples

  def _check_header_was_read(self, first_row):
    # Were a bad header skipped like any row, the first example would be taken for the header.
    for error in self._bad_rows_of(first_row.file):
      if error.line < first_row.line:
        raise error

  def _report_bad_rows(self, file):
    if errors := self._bad_rows_of(file):
      logging.warning("Left out %d malformed row(s). The first: %s", len(errors), errors[0])

  def _bad_rows_of(self, file) -> list[DataError]:
    return [error for error in self.bad_rows.values() if error.file == file]

  def _create_example(self, row: Row, set_type: str, columns: Columns, width: int):
    if any(row[width:]):
      raise row.error(
        f"the row has {len(row)} columns where the first row has {width}.",
        "Is there a delimiter inside a text? " + SKIP_ADVICE,
      )
    text_a = _text(row, columns.text_a)
    text_b = None if columns.text_b is None else _text(row, columns.text_b, optional=True)
    label = self._placeholder_label()
    if columns.label is not None:
      label = self._parse_label(row[columns.label], row)
      self._check_label(label, row)
    guid = self._guid(row, set_type, columns)
    return InputExample(guid, text_a, text_b, label, source=f"{row.file}, line {row.line}")

  def _guid(self, row, set_type, columns):
    return f"{set_type}-{row.number if columns.guid is None else row[columns.guid]}"

  def _placeholder_label(self):
    # A test file has no labels to read. The first class is what the original writes in their place.
    if self.problem_type == "regression":
      return 0.0
    if self.problem_type == "multi_label":
      return ()
    labels = self.get_labels()
    if not labels:
      raise DataError("There are no labels: the training file has no rows. Give --labels.")
    return labels[0]

  def _parse_label(self, value, row: Row):
    """A class name, a finite float or a tuple of class names, by problem type."""
    if self.problem_type == "regression":
      return _parse_score(value, row)
    if value is None or value == "":
      raise row.error("the label is empty.")
    return value

  def _check_label(self, label, row: Row):
    if self.problem_type != "regression":
      known = self.get_labels()
      for name in label if isinstance(label, tuple) else [label]:
        if name not in known:
          raise row.error(unknown_label(name, known))


def _text(row: Row, column: int, optional: bool = False) -> str | None:
  value = row[column]
  if not isinstance(value, str) and not (optional and value is None):
    raise row.error(f"column {column} holds {value!r} where a text should be.")
  return value


def _parse_score(value, row: Row) -> float:
  try:
    score = float(value)
  except (TypeError, ValueError, OverflowError):
    score = math.nan
  if not math.isfinite(score):
    raise row.error(f"the label {value!r:.80} is not a finite number.")
  return score


# ---------------------------------------------------------------------------------------------
# The tasks. Columns, labels and guids of the first four are the original's.


class MrpcProcessor(TableProcessor):
  """MRPC: do two sentences say the same?"""

  metrics = ("accuracy", "f1")
  columns = Columns(text_a=3, text_b=4, label=0)
  test_columns = Columns(text_a=3, text_b=4)


class ColaProcessor(TableProcessor):
  """CoLA: is the sentence acceptable English? Only the test file has a header."""

  metrics = ("matthews_corrcoef", "accuracy")
  headline_metric = "matthews_corrcoef"
  columns = Columns(text_a=3, label=1, header=False)
  test_columns = Columns(text_a=1)


class MnliProcessor(TableProcessor):
  """MultiNLI: does the first sentence entail the second? Dev and test genres match training's."""

  labels = ("contradiction", "entailment", "neutral")
  columns = Columns(text_a=8, text_b=9, label=-1, guid=0)
  test_columns = Columns(text_a=8, text_b=9, guid=0)

  def get_dev_examples(self, data_dir):
    """See base class."""
    return self._read_examples(data_dir, "dev_matched.tsv", "dev_matched")

  def get_test_examples(self, data_dir):
    """See base class."""
    return self._read_examples(data_dir, "test_matched.tsv", "test")

  def get_dev_mismatched_examples(self, data_dir):
    """Examples of genres that training has not seen."""
    return self._read_examples(data_dir, "dev_mismatched.tsv", "dev_mismatched")

  def get_test_mismatched_examples(self, data_dir):
    """Examples of genres that training has not seen, to predict."""
    return self._read_examples(data_dir, "test_mismatched.tsv", "test_mismatched")


class MnliMismatchedProcessor(MnliProcessor):
  """MultiNLI, evaluated and predicted on genres that training has not seen."""

  def get_dev_examples(self, data_dir):
    """See base class."""
    return self.get_dev_mismatched_examples(data_dir)

  def get_test_examples(self, data_dir):
    """See base class."""
    return self.get_test_mismatched_examples(data_dir)


class XnliProcessor(TableProcessor):
  """XNLI: MultiNLI's question in 15 languages, `multinli/` translated for training."""

  labels = ("contradiction", "entailment", "neutral")
  columns = Columns(text_a=6, text_b=7, label=1)
  test_columns = Columns(text_a=6, text_b=7)
  train_columns = Columns(text_a=0, text_b=1, label=2)

  def __init__(self, language="zh", train_language=None, skip_bad_rows=False):
    super().__init__(skip_bad_rows)
    self.language = language
    self.train_language = train_language

  def get_train_examples(self, data_dir):
    """See base class."""
    name = f"multinli.train.{self.train_language or self.language}.tsv"
    return self._read_examples(data_dir, os.path.join("multinli", name), "train")

  def get_dev_examples(self, data_dir):
    """See base class."""
    return self._read_examples(data_dir, "xnli.dev.tsv", "dev")

  def get_test_examples(self, data_dir):
    """See base class."""
    return self._read_examples(data_dir, "xnli.test.tsv", "test")

  def _create_examples(self, lines, set_type, path=None):
    # The dev and test files hold all languages, named in their first column.
    if set_type != "train" and lines:
      languages = sorted({row[0] for row in lines[1:]})
      if self.language not in languages:
        reason = f"no row is in language {self.language!r}; there are {', '.join(languages)}."
        raise DataError(reason, path)
      lines = [lines[0], *(row for row in lines[1:] if row[0] == self.language)]
    return super()._create_examples(lines, set_type, path)

  def _columns_of(self, set_type):
    return self.train_columns if set_type == "train" else super()._columns_of(set_type)

  def _parse_label(self, value, row):
    # The translated training files say "contradictory".
    return super()._parse_label("contradiction" if value == "contradictory" else value, row)


class Sst2Processor(TableProcessor):
  """SST-2: is the sentence positive?"""

  columns = Columns("sentence", label="label")
  test_columns = Columns("sentence")


class StsbProcessor(TableProcessor):
  """STS-B: how alike are two sentences, from 0 to 5? A regression."""

  problem_type = "regression"
  labels = ("score",)
  metrics = ("pearson", "spearman")
  headline_metric = "pearson"
  columns = Columns("sentence1", "sentence2", label="score")
  test_columns = Columns("sentence1", "sentence2")


class QqpProcessor(TableProcessor):
  """QQP: do two questions ask the same?"""

  metrics = ("accuracy", "f1")
  columns = Columns("question1", "question2", label="is_duplicate")
  test_columns = Columns("question1", "question2")


class QnliProcessor(TableProcessor):
  """QNLI: does the sentence answer the question?"""

  labels = ("entailment", "not_entailment")
  columns = Columns("question", "sentence", label="label")
  test_columns = Columns("question", "sentence")


class RteProcessor(TableProcessor):
  """RTE: does the first text entail the second?"""

  labels = ("entailment", "not_entailment")
  columns = Columns("sentence1", "sentence2", label="label")
  test_columns = Columns("sentence1", "sentence2")


class WnliProcessor(RteProcessor):
  """WNLI: does the first text entail the second, a sentence with its pronoun replaced?"""

  labels = ("0", "1")


class AxProcessor(TableProcessor):
  """AX, GLUE's diagnostic set: predict it with a model trained on MNLI. It has a test set only."""

  labels = MnliProcessor.labels
  metrics = ("matthews_corrcoef",)
  headline_metric = "matthews_corrcoef"
  test_columns = Columns("sentence1", "sentence2")

  def get_train_examples(self, data_dir):
    """There are none."""
    raise DataError("AX has a test set only.", advice="Train with --task_name=mnli.")

  get_dev_examples = get_train_examples

  def get_test_examples(self, data_dir):
    """See base class. The file has had two names."""
    older = os.path.exists(os.path.join(data_dir, "diagnostic.tsv"))
    return self._read_examples(data_dir, "diagnostic.tsv" if older else "AX.tsv", "test")


class ImdbProcessor(DataProcessor):
  """IMDB film reviews as unpacked from `aclImdb_v1.tar.gz`; the test set is the dev set too."""

  def get_train_examples(self, data_dir):
    """See base class."""
    return self._read_folders(data_dir, "train")

  def get_dev_examples(self, data_dir):
    """See base class."""
    return self._read_folders(data_dir, "test")

  get_test_examples = get_dev_examples

  def get_labels(self):
    """See base class."""
    return ["neg", "pos"]

  def _read_folders(self, data_dir, split):
    inner = os.path.join(data_dir, "aclImdb")
    root = os.path.join(inner if os.path.isdir(inner) else data_dir, split)
    # Sorted by file name first, so the classes alternate: a small shuffle buffer suffices then.
    found = sorted((name, label) for label in self.get_labels() for name in _texts(root, label))
    return [self._read_review(root, split, label, name) for name, label in found]

  def _read_review(self, root, split, label, name):
    path = os.path.join(root, label, name)
    row = Row(["\n".join(read_lines(path))], path, 1, 0)
    check_text(row)
    return InputExample(f"{split}-{label}/{name[:-4]}", row[0], None, label, source=path)


def _texts(root: str, label: str) -> list[str]:
  folder = os.path.join(root, label)
  names = os.listdir(folder) if os.path.isdir(folder) else []
  if texts := [name for name in names if name.endswith(".txt")]:
    return texts
  raise DataError("there is no review (.txt) in this folder.", folder, advice="Check --data_dir.")


class CsvProcessor(TableProcessor):
  """Your own data: `train`, `dev` and `test` files ending in .tsv, .csv or .jsonl.

  TSV is read with quotes as text, CSV with quoted fields, JSON Lines one object a line. Columns are
  given by name, or by 0-based number. The test file needs no labels, and any there are not read.
  """

  def __init__(
    self,
    data_dir: str | None = None,
    text_a_column: Column = "text_a",
    text_b_column: Column | None = None,
    label_column: Column = "label",
    id_column: Column | None = None,
    labels: Sequence[str] | None = None,
    problem_type: str = "classification",
    label_separator: str = ",",
    header: bool = True,
    skip_bad_rows: bool = False,
  ):
    """Says where the data is and what it means.

    Args:
      data_dir: where to find the training file when labels have to be inferred.
      text_a_column: the text.
      text_b_column: the second text of a pair; by default `text_b` if there is such a column.
      label_column: the label: a class, a number, or classes joined by `label_separator`.
      id_column: what identifies an example in predictions; by default `id` if there is one.
      labels: all classes, in the order of the model's outputs; by default those of the training
        file, sorted (as numbers if all are integers).
      problem_type: "classification", "multi_label" or "regression".
      label_separator: what joins the classes of a multi-label example.
      header: whether the first row of a TSV or CSV file names the columns.
      skip_bad_rows: whether malformed rows are left out instead of raised.
    """
    super().__init__(skip_bad_rows)
    if problem_type not in _CSV_METRICS:
      raise ValueError(f"problem_type is {problem_type!r}, but must be in {list(_CSV_METRICS)}.")
    self.problem_type = problem_type
    self.metrics = _CSV_METRICS[problem_type]
    self.headline_metric = self.metrics[0]
    self.data_dir = data_dir
    self.label_separator = label_separator
    self.columns = Columns(text_a_column, text_b_column, label_column, id_column, header)
    self.labels = tuple(labels or ())

  def get_train_examples(self, data_dir):
    """See base class."""
    return self._read_split(data_dir, "train")

  def get_dev_examples(self, data_dir):
    """See base class."""
    return self._read_split(data_dir, "dev")

  def get_test_examples(self, data_dir):
    """See base class."""
    return self._read_split(data_dir, "test")

  def get_labels(self):
    """See base class."""
    if self.problem_type == "regression":
      return ["score"]
    if not self.labels:
      self.labels = tuple(self._infer_labels())
    return list(self.labels)

  def _infer_labels(self) -> list[str]:
    if self.data_dir is None:
      raise DataError("the labels are not known.", advice="Give labels, or data_dir to infer them.")
    path = _find_table(self.data_dir, "train")
    rows = self._read_rows(path)
    if not rows:
      raise DataError("the file is empty.", path)
    columns = self._columns_in("train", rows)
    found: set[str] = set()
    for row in rows[1:] if columns.header else rows:
      try:
        label = self._parse_label(row[columns.label], row)
      except DataError as e:
        self._on_bad_row(e)
      else:
        found.update(label if isinstance(label, tuple) else [label])
    return _sorted_labels(found)

  def _read_split(self, data_dir, split):
    path = _find_table(data_dir, split)
    return self._create_examples(self._read_rows(path), split, path)

  def _read_rows(self, path):
    if path.endswith(".jsonl"):
      return read_jsonl(path, self._on_bad_row)
    if path.endswith(".csv"):
      return read_table(path, ",", '"', strict=True, on_bad_row=self._on_bad_row)
    return super()._read_rows(path)

  def _columns_in(self, set_type, lines):
    header = self.columns.header or lines[0].file.endswith(".jsonl")
    named = lines[0] if header else ()
    return dataclasses.replace(
      self.columns,
      header=header,
      text_b=_default(self.columns.text_b, "text_b", named),
      guid=_default(self.columns.guid, "id", named),
      label=None if set_type == "test" else self.columns.label,
    ).resolve(lines[0])

  def _guid(self, row, set_type, columns):
    given = None if columns.guid is None else row[columns.guid]
    return f"{set_type}-{row.number}" if given in (None, "") else str(given)

  def _parse_label(self, value, row):
    if self.problem_type == "multi_label":
      parts = value.split(self.label_separator) if isinstance(value, str) else value
      if not isinstance(parts, list | None):
        raise row.error(f"the labels {value!r:.80} are neither a text nor a list.")
      names = (_class_name(part, row).strip() for part in parts or ())
      return tuple(name for name in names if name)
    label = super()._parse_label(value, row)
    return label if self.problem_type == "regression" else _class_name(label, row)


_CSV_METRICS = {
  "classification": ("accuracy", "f1_macro"),
  "multi_label": ("f1_micro", "f1_macro", "accuracy"),
  "regression": ("pearson", "spearman", "mse"),
}


def _class_name(value, row: Row) -> str:
  """A class as text. JSON may hold it as a number or boolean: 1 is "1", true is "true"."""
  if isinstance(value, str):
    return value
  if not isinstance(value, int) and not (isinstance(value, float) and math.isfinite(value)):
    raise row.error(f"the label {value!r:.80} is no class's name.")
  return json.dumps(value)


def _find_table(data_dir: str, split: str) -> str:
  names = [f"{split}.{ending}" for ending in ("tsv", "csv", "jsonl")]
  for name in names:
    if os.path.exists(path := os.path.join(data_dir, name)):
      return path
  raise DataError(f"there is no {' or '.join(names)}.", data_dir, advice="Check --data_dir.")


def _default(column: Column | None, name: str, header: Sequence) -> Column | None:
  return name if column is None and name in header else column


def _sorted_labels(labels: Iterable[str]) -> list[str]:
  """Sorted as numbers if all are integers.

  Example:
    >>> _sorted_labels({"10", "9", "-1"}), _sorted_labels({"b", "a", "10"})
    (['-1', '9', '10'], ['10', 'a', 'b'])
  """
  try:
    return sorted(labels, key=lambda label: (int(label), label))
  except ValueError:
    return sorted(labels)


# Task name in lower case -> processor. Add your own class here, as with the original.
PROCESSORS: dict[str, type[DataProcessor]] = {
  "cola": ColaProcessor,
  "mnli": MnliProcessor,
  "mrpc": MrpcProcessor,
  "xnli": XnliProcessor,
  "mnli-mm": MnliMismatchedProcessor,
  "sst-2": Sst2Processor,
  "sts-b": StsbProcessor,
  "qqp": QqpProcessor,
  "qnli": QnliProcessor,
  "rte": RteProcessor,
  "wnli": WnliProcessor,
  "ax": AxProcessor,
  "imdb": ImdbProcessor,
  "csv": CsvProcessor,
}


def create_processor(task_name: str, **options) -> DataProcessor:
  """Makes the processor of a task.

  Args:
    task_name: a key of `PROCESSORS`; case, "-" and "_" do not matter.
    **options: arguments of the processor, such as `skip_bad_rows` or XNLI's `language`. None means
      not given, so unset flags can be passed along.

  Returns:
    The processor.

  Raises:
    ValueError: there is no such task, or it has no such option.

  Example:
    >>> create_processor("STS_B").get_labels()
    ['score']
  """
  names = {_plain(name): name for name in PROCESSORS}
  if _plain(task_name) not in names:
    near = difflib.get_close_matches(task_name.lower(), PROCESSORS, n=1)
    hint = f"Did you mean {near[0]}?" if near else f"Known tasks: {', '.join(PROCESSORS)}."
    raise ValueError(f"Task not found: {task_name}. {hint}")
  processor = PROCESSORS[names[_plain(task_name)]]
  given = {name: value for name, value in options.items() if value is not None}
  accepted = inspect.signature(processor).parameters
  for name in given:
    if name not in accepted:
      takes = ", ".join(accepted) or "no options"
      raise ValueError(f"The task {task_name} has no option {name}; it takes {takes}.")
  return processor(**given)


def _plain(task_name: str) -> str:
  return task_name.lower().replace("-", "").replace("_", "")
