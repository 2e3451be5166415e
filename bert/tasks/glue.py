"""The tasks of GLUE, and XNLI and IMDB: files, columns, labels and metrics of each.

  processor = create_processor("mrpc")
  examples = processor.get_train_examples("glue_data/MRPC")
  features = convert_examples_to_features(examples, processor.get_labels(), 128, tokenizer)

Columns, labels and guids of MRPC, CoLA, MultiNLI and XNLI are the original's. Pure Python, no
TensorFlow.
"""

import dataclasses
import difflib
import inspect
import os
from collections.abc import Collection, Iterable, Mapping
from typing import ClassVar

from bert.io import filesystem
from bert.io.table_columns import names_of
from bert.io.tables import DataError, Row, check_text, read_lines
from bert.tasks import user_tables
from bert.tasks.classification import InputExample
from bert.tasks.processors import Columns, DataProcessor, TableProcessor


class GlueProcessor(TableProcessor):
  """A task of GLUE, in its own files, or as the hub's `glue` is saved: CSV or JSON Lines.

  Attributes:
    hub_columns: the texts there; the label is `label`. None if the names are those of `columns`.
    hub_labels: the names of the labels' numbers there.
    other_files: name of a file -> its name elsewhere.
  """

  hub_columns: Columns | None = None
  hub_labels: tuple[str, ...] = ()
  other_files: ClassVar[Mapping[str, str]] = {}

  def _read_examples(self, data_dir, file_name, set_type):
    stem = file_name.removesuffix(".tsv")
    hub = [stem + end for stem in (stem, stem.replace("dev", "validation")) for end in _HUB_ENDINGS]
    names = [file_name, *filter(None, [self.other_files.get(file_name)]), *hub]
    paths = [os.path.join(data_dir, name) for name in names]
    path = next(filter(filesystem.exists, paths), paths[0])
    return super()._read_examples(data_dir, os.path.basename(path), set_type)

  def _read_rows(self, path):
    is_hubs = path.endswith(_HUB_ENDINGS)
    return user_tables.read_rows(path, self._reader) if is_hubs else super()._read_rows(path)

  def _columns_in(self, set_type, lines):
    names = names_of(lines[0], True)
    path = lines[0].file
    if len(names) == 1 and self._is_of_hub(set_type, path, names[0].split(",")):
      csv = os.path.splitext(path)[0] + ".csv"
      raise lines[0].error("commas separate the columns, not tabs.", f"Name it {csv}.")
    if self.hub_columns is None or not self._is_of_hub(set_type, path, names):
      return super()._columns_in(set_type, lines)
    label = None if set_type.startswith("test") else "label"
    return dataclasses.replace(self.hub_columns, label=label).resolve(lines[0])

  def _create_example(self, row, set_type, columns):
    if columns.label is not None and self._is_of_hub(set_type, row.file, columns.names):
      number = str(row[columns.label])
      names = {str(number): name for number, name in enumerate(self.hub_labels)}
      row[columns.label] = names.get(number, number)
    return super()._create_example(row, set_type, columns)

  def _is_of_hub(self, set_type: str, file: str, names: Collection[str]) -> bool:
    """Returns whether a table is an export of the hub: there, each row has an `idx`.

    Some leave it out: then the other columns have the hub's names.
    """
    if file.endswith(_HUB_ENDINGS) or "idx" in names:
      return True
    if self.hub_columns is None:
      return False
    label = None if set_type.startswith("test") else "label"
    wanted = {self.hub_columns.text_a, self.hub_columns.text_b, label} - {None}
    return wanted <= set(names)


_HUB_ENDINGS = (".csv", ".jsonl", ".json")


class MrpcProcessor(GlueProcessor):
  """MRPC: do two sentences say the same?"""

  metrics = ("accuracy", "f1")
  columns = Columns(text_a=3, text_b=4, label=0)
  test_columns = Columns(text_a=3, text_b=4)
  hub_columns = Columns("sentence1", "sentence2")
  # As Microsoft has them, who have no dev set: GLUE's is a part of train.
  other_files: ClassVar = {
    f"{split}.tsv": f"msr_paraphrase_{split}.txt" for split in ("train", "test")
  }

  def get_dev_examples(self, data_dir):
    """See base class."""
    try:
      return super().get_dev_examples(data_dir)
    except DataError as error:
      test = os.path.join(data_dir, self.other_files["test.tsv"])
      if error.line is not None or not filesystem.exists(test):
        raise
      advice = f"To evaluate on the test set: cp {test} {os.path.join(data_dir, 'dev.tsv')}"
      raise DataError(error.reason, error.file, advice=advice) from None


class ColaProcessor(GlueProcessor):
  """CoLA: is the sentence acceptable English? Only the test file has a header."""

  metrics = ("matthews_corrcoef", "accuracy")
  headline_metric = "matthews_corrcoef"
  columns = Columns(text_a=3, label=1, header=False)
  test_columns = Columns(text_a=1)
  hub_columns = Columns("sentence")


class MnliProcessor(GlueProcessor):
  """MultiNLI: does the first sentence entail the second? Dev and test have training's genres."""

  labels = ("contradiction", "entailment", "neutral")
  columns = Columns(text_a=8, text_b=9, label=-1, guid=0)
  test_columns = Columns(text_a=8, text_b=9, guid=0)
  hub_columns = Columns("premise", "hypothesis")
  hub_labels = ("entailment", "neutral", "contradiction")

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

  def __init__(self, language="zh", skip_bad_rows=False):
    super().__init__(skip_bad_rows)
    self.language = language

  def get_train_examples(self, data_dir):
    """See base class."""
    name = f"multinli.train.{self.language}.tsv"
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
        reason = (
          f"no row is in language {self.language!r}; the languages are {', '.join(languages)}."
        )
        raise DataError(reason, path)
      lines = [lines[0], *(row for row in lines[1:] if row[0] == self.language)]
    return super()._create_examples(lines, set_type, path)

  def _columns_of(self, set_type):
    return self.train_columns if set_type == "train" else super()._columns_of(set_type)

  def _parse_label(self, value, row):
    # The translated training files say "contradictory".
    return super()._parse_label("contradiction" if value == "contradictory" else value, row)


class Sst2Processor(GlueProcessor):
  """SST-2: is the sentence positive?"""

  columns = Columns("sentence", label="label")
  test_columns = Columns("sentence")


class StsbProcessor(GlueProcessor):
  """STS-B: how alike are two sentences, from 0 to 5? A regression."""

  problem_type = "regression"
  labels = ("score",)
  metrics = ("pearson", "spearman")
  headline_metric = "pearson"
  columns = Columns("sentence1", "sentence2", label="score")
  hub_columns = Columns("sentence1", "sentence2")
  test_columns = Columns("sentence1", "sentence2")


class QqpProcessor(GlueProcessor):
  """QQP: do two questions ask the same?"""

  metrics = ("accuracy", "f1")
  columns = Columns("question1", "question2", label="is_duplicate")
  hub_columns = Columns("question1", "question2")
  test_columns = Columns("question1", "question2")


class QnliProcessor(GlueProcessor):
  """QNLI: does the sentence answer the question?"""

  labels = hub_labels = ("entailment", "not_entailment")
  columns = Columns("question", "sentence", label="label")
  test_columns = Columns("question", "sentence")


class RteProcessor(GlueProcessor):
  """RTE: does the first text entail the second?"""

  labels = hub_labels = ("entailment", "not_entailment")
  columns = Columns("sentence1", "sentence2", label="label")
  test_columns = Columns("sentence1", "sentence2")


class WnliProcessor(RteProcessor):
  """WNLI: does the first text entail the second, a sentence with its pronoun replaced?"""

  labels = hub_labels = ("0", "1")


class AxProcessor(GlueProcessor):
  """AX, GLUE's diagnostic set: predict it with a model trained on MNLI. It has a test set only."""

  labels = MnliProcessor.labels
  metrics = ("matthews_corrcoef",)
  headline_metric = "matthews_corrcoef"
  test_columns = Columns("sentence1", "sentence2")
  hub_columns = Columns("premise", "hypothesis")

  def get_train_examples(self, data_dir):
    """Raises an error: there is no training set."""
    raise DataError("AX has a test set only.", advice="Train with --task_name=mnli.")

  get_dev_examples = get_train_examples

  def get_test_examples(self, data_dir):
    """See base class. The file was renamed at some time."""
    older = filesystem.exists(os.path.join(data_dir, "diagnostic.tsv"))
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
    root = os.path.join(inner if filesystem.is_folder(inner) else data_dir, split)
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
  if texts := [name for name in filesystem.list_folder(folder) if name.endswith(".txt")]:
    return texts
  raise DataError("the folder contains no review (.txt).", folder, advice="Check --data_dir.")


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
  "csv": user_tables.CsvProcessor,
}


def create_processor(task_name: str, **options) -> DataProcessor:
  """Creates the processor of a task.

  Args:
    task_name: a key of `PROCESSORS`; case, "-" and "_" are ignored.
    **options: arguments of the processor, such as `skip_bad_rows` or XNLI's `language`. None counts
      as not given, so that unset flags can be passed.

  Raises:
    ValueError: the task does not exist, or does not have the option.

  Example:
    >>> create_processor("STS_B").get_labels()
    ['score']
  """
  given = {name: value for name, value in options.items() if value is not None}
  return find_processor(task_name, given)(**given)


def find_processor(task_name: str, options: Iterable[str] = ()) -> type[DataProcessor]:
  """Finds the class of a task's processor, if it takes these options; see `create_processor`."""
  names = {_plain(name): name for name in PROCESSORS}
  if _plain(task_name) not in names:
    near = difflib.get_close_matches(task_name.lower(), PROCESSORS, n=1)
    hint = f"Did you mean {near[0]}?" if near else f"Known tasks: {', '.join(PROCESSORS)}."
    raise ValueError(f"Task not found: {task_name}. {hint}")
  processor = PROCESSORS[names[_plain(task_name)]]
  accepted = inspect.signature(processor).parameters
  for name in options:
    if name not in accepted:
      takes = ", ".join(accepted) or "no options"
      raise ValueError(f"The task {task_name} has no option {name}; it takes {takes}.")
  return processor


def _plain(task_name: str) -> str:
  return task_name.lower().replace("-", "").replace("_", "")
