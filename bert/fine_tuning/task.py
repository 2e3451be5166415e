"""The contract of a task: `read`, `encode`, `head`, `decode` and `metrics`.

  @register
  class Stars(Task):
    name, head_class, answer, headline = "stars", StarsHead, "stars", "eval_close"

    def read(self, split): ...                  # train, dev or test -> examples
    def encode(self, example): ...              # an example -> its record
    def head(self): ...                         # what is computed of a batch of records
    def decode(self, outputs, tokens): ...      # what the head predicts of an example -> an answer
    def metrics(self, outputs, labels): ...     # of all examples -> name -> number

  if __name__ == "__main__":
    main(Stars)

All other methods have defaults. The built-in tasks have a `tasks.decoding.Decoder` in the place of
`decode`, because their texts become several sequences. `engine.py` runs a task; what is computed is
its head (`bert/model/task_head.py`). Importing this module imports no TensorFlow, so that `--help`
is instant.

Letters in shapes: B = batch size, S = sequence length, N = examples of a set.
"""

import collections
import dataclasses
import itertools
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from absl import logging

from bert.io import atomic_files
from bert.io.table_columns import Column
from bert.model.task_head import SEQUENCES, Head
from bert.scripts import model_labels
from bert.scripts.run_settings import FineTuningSettings, SplitSettings
from bert.scripts.settings import UsageError
from bert.tasks import classification, label_counts, shown, user_tables
from bert.tasks.decoding import plain
from bert.tasks.metrics import mean_loss
from bert.tasks.user_tables import TableRow
from bert.text.sequence_layout import layout_of
from bert.training import distribution

LENGTH = "S"
"""In a shape: `--max_seq_length`. Batches are cut along this axis to their longest example."""

# Names of a split's file, without its ending; the first that exists is read.
_FILES: dict[str, Sequence[str]] = {
  "train": ("train",),
  "dev": ("dev", "val", "devel", "valid", "validation"),
  "test": ("test",),
}

# name -> shape and type of a value in a record: `([], "int64")`, or `([4, LENGTH], "float32")`.
Spec = Mapping[str, tuple[Sequence[Any], str]]


def shapes(spec: Spec, length: int) -> dict[str, tuple[list[int], str]]:
  """Puts numbers into a spec.

  Example:
    >>> shapes({"input_ids": ([4, LENGTH], "int64")}, 128)
    {'input_ids': ([4, 128], 'int64')}
  """
  return {
    name: ([length if size == LENGTH else size for size in shape], kind)
    for name, (shape, kind) in spec.items()
  }


@dataclasses.dataclass
class DataSet:
  """The examples of one file.

  Attributes:
    split: `train`, `dev` or `test`.
    examples: N of them, of any type.
    suffix: of the names of result files, of a second set of the split; "" of the main one.
    record_name: of the file of its records.
  """

  split: str
  examples: list
  suffix: str = ""
  record_name: str = ""

  def __post_init__(self):
    names = {"train": "train", "dev": "eval", "test": "predict"}  # those of 2018
    self.record_name = self.record_name or names[self.split] + self.suffix

  def __len__(self) -> int:
    return len(self.examples)

  @property
  def is_training(self) -> bool:
    """Whether it is the training set."""
    return self.split == "train"


class Task:
  """One task of a run: made once the settings, the configuration and the tokenizer are known.

  `docs/design/tasks.md` has a table of the class attributes.

  Attributes:
    settings: of the run, of the class `settings_class`; None where a task only decodes.
    config: the `modeling.BertConfig`.
    tokenizer: see `text/tokenizer.py`.
    labels: of the model's outputs, in their order; None where they have no names. Known at the
      latest when `prepare` returns.
    texts_in: name of a text -> its column in the tables that were read, by name or number, for
      `predict.py`; `header` is False where such a table does not name its columns.
  """

  settings_class: ClassVar[type[FineTuningSettings]] = SplitSettings
  name: ClassVar[str] = ""
  head_class: ClassVar[type[Head]] = Head
  answer: str = "probabilities"
  headline: str = "eval_accuracy"
  reported: Sequence[str] = ()
  has_labels: ClassVar[bool] = False
  problem_type: str = "classification"
  unit: ClassVar[str] = "examples"
  file_endings: ClassVar[Sequence[str]] = ("tsv", "csv", "jsonl")
  task_flags: ClassVar[Sequence[str]] = ("skip_bad_rows",)
  informative_flags: ClassVar[Sequence[str]] = ()
  ignored_in_eval: ClassVar[Sequence[str]] = ()
  reads_unlabelled: ClassVar[bool] = False
  shuffles: ClassVar[bool] = True
  plans_by_records: ClassVar[bool] = False
  keeps_records: ClassVar[bool] = False

  def __init__(self, settings: Any, config: Any = None, tokenizer: Any = None):
    self.settings = settings
    self.config = config
    self.tokenizer = tokenizer
    self.labels: list[str] | None = None
    self.texts_in: Mapping[str, Column] = {}

  # -------------------------------------------------------------------------------------------
  # Flags and settings.

  @classmethod
  def resolve(cls, settings: Any) -> Any:
    """Returns the settings with those that follow from files, such as the model's."""
    return settings

  # -------------------------------------------------------------------------------------------
  # Data.

  def file(self, split: str) -> str:
    """Returns the file of `train`, `dev` or `test`."""
    return self.settings.split_file(split, _FILES[split], self.file_endings)

  def splits(self) -> Iterator[str]:
    """Yields the names of the splits that the run needs."""
    settings = self.settings
    if settings.do_train:
      yield "train"
    if settings.reads_dev_set:
      yield "dev"
    if settings.do_predict:
      yield "test"

  def read(self, split: str) -> list | list[DataSet]:
    """Reads `train`, `dev` or `test`.

    Returns:
      The examples; or several data sets, the main one first.

    Raises:
      DataError: names the file, the line and the value.
    """
    raise NotImplementedError

  def read_table(
    self,
    split: str,
    columns: Mapping[str, Column] | Iterable[str],
    convert: Callable[[TableRow], Any],
    labels: Collection[str] = ("label",),
  ) -> list:
    """Reads a table: .csv, .tsv or .jsonl, by the names of its columns.

    Args:
      split: `train`, `dev` or `test`.
      columns: names of columns; or key -> the column with its values, by name or number from 0.
      convert: makes an example of a row, a dict with these keys; raises `row.error("...")` for a
        bad one, which then is named with file and line, or skipped by `--skip_bad_rows`.
      labels: keys whose column a test file may lack; their values are then None.

    Raises:
      DataError: names file, line, fault and remedy.
    """
    named = dict(columns if isinstance(columns, Mapping) else zip(columns, columns, strict=True))
    needed = named.keys() - set(labels if split == "test" else ())
    skip = bool(self.settings.skip_bad_rows)
    self.texts_in = {key: column for key, column in named.items() if key in ("text_a", "text_b")}
    return user_tables.read_table(self.file(split), named, convert, needed, skip_bad_rows=skip)

  def view(self, example: Any) -> tuple[Mapping[str, Any], Any]:
    """Returns an example as a `Predictor` takes it, and what is right for it.

    Reports, `doctor.py` and `export_hub.py --eval_file` ask for it.

    Returns:
      Its texts by the names of the model's inputs, by default `text_a` and `text_b`; and its gold
      label, by default `label`: a name, a number, a list of names, or None where it is unknown.
    """
    texts = {"text_a": example.text_a, "text_b": getattr(example, "text_b", None)}
    return texts, getattr(example, "label", None)

  def data_sets(self, split: str) -> list[DataSet]:
    """Reads a split as data sets, the main one first."""
    found = self.read(split)
    return found if found and isinstance(found[0], DataSet) else [DataSet(split, found)]

  def prepare(self, train: DataSet | None) -> None:
    """Finds the labels, once the training set is read and before the others are.

    By default none; with `has_labels` those of the training set, sorted, or else those of the run
    that trained.

    Raises:
      UsageError: there is none.
    """
    if not self.has_labels:
      return
    counts = collections.Counter(each.label for each in (train.examples if train else ()))
    for text in label_counts.about_nearly_equal(counts, "labels"):
      logging.warning("%s", text)
    self.labels = model_labels.in_order(sorted(counts) if train else None, self.labels_of_model())
    if not self.labels:
      raise UsageError(
        "The labels of the model are unknown: neither --output_dir nor --init_checkpoint has them. "
        "Train with --do_train."
      )

  def labels_of_model(self) -> model_labels.ModelLabels | None:
    """Reads the labels of the model that the run evaluates; None where it trains."""
    return model_labels.of_settings(self.settings, self.name)

  def check_data(self, sets: Mapping[str, list[DataSet]]) -> None:
    """Checks, or logs, what the data sets of all splits that were read show together."""

  def facts(self) -> dict[str, Any]:
    """Returns what must be equal to resume a run, beside the model and the vocabulary, as JSON.

    Called before `read`, too, with what is known then.
    """
    return {"task_name": self.name}

  def record_spec(self, data: DataSet) -> Spec:
    """Returns what a record holds; by default one sequence and the number of a label.

    `is_real_example` is 0 in padding of a batch.
    """
    number = ([], "int64")
    sequences = dict.fromkeys(SEQUENCES, ([LENGTH], "int64"))
    return {**sequences, "label_ids": number, "is_real_example": number}

  def records(self, data: DataSet, num_shown: int) -> Iterable[Mapping[str, Any]]:
    """Converts examples to records, name -> value as `record_spec` says, one by one.

    Args:
      data: the examples.
      num_shown: how many to log, to show whether the columns are the right ones.
    """
    spec = self.record_spec(data)
    real = {"is_real_example": 1} if "is_real_example" in spec else {}
    for index, example in enumerate(data.examples):
      record = {**real, **self.encode(example)}
      if index < num_shown:
        logging.info("*** Example ***\n%s", example)
        for name, value in record.items():
          logging.info("%s: %s", name, value)
      yield record

  def encode(self, example: Any) -> Mapping[str, Any]:
    """Converts one example to its record: name -> value, as `record_spec` says.

    Raises:
      DataError: names the file, the line and what is wrong.
    """
    raise NotImplementedError

  def label_id(self, example: Any) -> int:
    """Returns the number of an example's `label` among the labels; 0 where it is None.

    Raises:
      DataError: it is none of them; names the example's `source`.
    """
    if example.label is None:
      return 0
    assert self.labels is not None
    number = classification.label_id(example, self.labels)
    assert isinstance(number, int)
    return number

  def sequence(self, text_a: str, text_b: str | None = None) -> dict[str, list[int]]:
    """Tokenizes a text, or two.

    Returns:
      `[CLS] text_a [SEP]`, then `text_b [SEP]`, and padding: lists of S ints, `input_ids`,
      `input_mask` and `segment_ids`. The longer text is truncated.
    """
    example = classification.InputExample("", text_a, text_b)
    tokens, segment_ids = classification.join_texts(example, self.length, self.tokenizer)
    return classification.padded(tokens, segment_ids, self.length, self.tokenizer)

  def sequence_of_words(self, words: Sequence[str]) -> tuple[dict[str, list[int]], list[int]]:
    """Tokenizes words, each by itself.

    Returns:
      As of `sequence`, and the place of the first token of each word; words that are beyond
      `--max_seq_length` have none.
    """
    layout = layout_of(self.tokenizer)
    tokens, places = [layout.cls], []
    for word in words:
      pieces = self.tokenizer.tokenize(word) or [layout.unk]
      if len(tokens) + len(pieces) >= self.length:
        break
      places.append(len(tokens))
      tokens += pieces
    tokens.append(layout.sep)
    return classification.padded(tokens, [0] * len(tokens), self.length, self.tokenizer), places

  def padding_record(self, data: DataSet) -> Mapping[str, Any] | None:
    """Returns a record that fills a batch on a TPU and counts nowhere; by default zeros.

    None where batches need not be full.
    """
    import numpy as np

    spec = shapes(self.record_spec(data), self.length)
    return {name: np.zeros(shape, kind) for name, (shape, kind) in spec.items()}

  @property
  def length(self) -> int:
    """`--max_seq_length`."""
    return self.settings.max_seq_length

  def sizes(self, data: DataSet, num_records: int) -> dict[str, Any]:
    """Returns the numbers that are logged: name -> number."""
    return {f"Num {self.unit}": len(data)}

  def input_fn(self, path: str, data: DataSet):
    """Reads batches of a file of records.

    Args:
      path: the file.
      data: of which it was made; batches of the training set are shuffled and repeated.

    Returns:
      `input_fn(params)` -> `tf.data.Dataset` of name -> int32 or float32 `[B, ...]`.
    """
    import tensorflow as tf

    from bert.training import input_pipeline

    spec = self.record_spec(data)
    features = {
      name: tf.io.FixedLenFeature(shape, kind)
      for name, (shape, kind) in shapes(spec, self.length).items()
    }
    return input_pipeline.record_input_fn(
      path,
      features,
      data.is_training,
      drop_remainder=data.is_training or self.settings.use_tpu,
      length_features=[name for name, (shape, _) in spec.items() if LENGTH in shape],
      **self.settings.reading_options,
    )

  # -------------------------------------------------------------------------------------------
  # The head.

  def head(self) -> Head:
    """Returns what is computed of a batch, once the data are read; by default `head_class()`."""
    return self.head_class()

  def decode(self, outputs: Mapping[str, Any], tokens: Sequence[str]) -> dict[str, Any]:
    """Makes an answer of what the head predicts for one example.

    `Predictor`, the server, reports and `--do_predict` return it. The task may have no settings
    then; `labels` are those of the head, if it has a field of this name.

    Args:
      outputs: the head's `predictions` by name, NumPy arrays without the axis of the batch; of
        `per_token` one value for each of the tokens.
      tokens: of the sequence, special ones included.

    Returns:
      Values for JSON, and arrays. By default the outputs, and of `per_token` the `tokens`.
    """
    found = {**outputs, **({"tokens": list(tokens)} if self.head_class.per_token else {})}
    return {name: plain(value) for name, value in sorted(found.items())}

  def metrics(self, outputs: Any, labels: Any) -> dict[str, Any]:
    """Compares what the model predicts with what is correct.

    Args:
      outputs: NumPy array `[N, ...]`, the head's `answer` of each example.
      labels: NumPy array `[N, ...]`, `label_ids` of their records.

    Returns:
      Name -> number, such as `accuracy`; as results they begin with `eval_`. Texts are only logged.
    """
    raise NotImplementedError

  def evaluate(self, **tensors: Any) -> dict[str, Any]:
    """Computes the results of an evaluation, by default `metrics` and the mean loss.

    Args:
      **tensors: NumPy arrays `[N, ...]`, what the head's `eval_tensors` named, of all batches.

    Returns:
      `eval_` and a name -> number; texts and arrays are only logged. `constant_answers.FAILURE`
      explains why the model counts as failed.
    """
    is_real = tensors["is_real_example"] > 0 if "is_real_example" in tensors else slice(None)
    found = self.metrics(tensors[self.answer][is_real], tensors["label_ids"][is_real])
    return {**prefixed(found), "eval_loss": mean_loss(tensors["losses"][is_real])}

  def score(self, data: DataSet, answers: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Computes the results of the answers to a set, by default `metrics` of their `answer`.

    Raises:
      KeyError: answers do not hold what is measured.
    """
    import numpy as np

    outputs = np.asarray([each[self.answer] for each in answers])
    return prefixed(self.metrics(outputs, np.asarray(self.label_ids(data))))

  def label_ids(self, data: DataSet) -> Sequence[Any]:
    """Returns what `metrics` compares answers with, by default `label_ids` of the records."""
    return [record["label_ids"] for record in self.records(data, 0)]

  def metric_names(self) -> Iterable[str]:
    """Returns the results that `--best_metric` may name, once the data are read."""
    return [name for name in self.result_keys if name != "global_step"]

  # -------------------------------------------------------------------------------------------
  # Distillation.

  @classmethod
  def teacher_flags(cls, flags: Mapping[str, Any], facts: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the flags of a teacher's run that its student takes over: name -> value.

    Args:
      flags: all of that run.
      facts: of that run; these cannot have changed since.
    """
    known = {**flags, **{name: value for name, value in facts.items() if name != "task_name"}}
    return {name: known[name] for name in cls.task_flags if known.get(name) is not None}

  def check_teacher(self, teacher: Any) -> None:
    """Checks that a student may learn from a `load_run.Run` of the same labels and the same head.

    Raises:
      UsageError: it could not, for a reason of this task.
    """

  def distillation_loss(self, comparison: Any) -> Any:
    """Computes how far a student is from its teacher.

    By default as `problem_type` says, for a head with `per_token` over all tokens but padding.

    Args:
      comparison: a `distillation.logits.Comparison`: the features of a batch, and what both models
        say of it, as `Head.distilled` selects it.

    Returns:
      float32 `[]`, 0 where both agree.

    Raises:
      UsageError: `problem_type` is a word of the task's own.
    """
    from bert.model import heads

    if self.problem_type not in heads.PROBLEM_TYPES:
      raise UsageError(
        f"The task {self.name} has the problem_type {self.problem_type}, and no distillation_loss "
        "that says how far a student is from its teacher: write that method."
      )
    weights = comparison.step.features["input_mask"] if self.head_class.per_token else None
    return comparison.mean(self.problem_type, weights)

  # -------------------------------------------------------------------------------------------
  # Predictions.

  def use(self, run: Any, checkpoint_path: str | None) -> None:
    """Evaluates and predicts with the best weights, or with the newest where there is no path."""
    run.evaluate_and_predict(checkpoint_path)

  def write_predictions(
    self, data: DataSet, predictions: Iterable[Mapping[str, Any]]
  ) -> dict[str, Any] | None:
    """Writes the files of `--do_predict`.

    Args:
      data: the test set.
      predictions: of each record, what the head's `predictions` named, without the batch's axis.

    Returns:
      The results, for `test_results.txt`, where the correct ones are known. By default none:
      `predictions.jsonl` has the `id` of each example, or its number, and its decoded answer.
    """
    rows = []
    for number, (example, found) in enumerate(zip(data.examples, predictions, strict=False)):
      ids = list(itertools.compress(*map(self.encode(example).get, ("input_ids", "input_mask"))))
      if self.head_class.per_token:
        found = {name: value[: len(ids)] for name, value in found.items()}
      answer = self.decode(found, [self.tokenizer.inv_vocab[each] for each in ids])
      rows.append({"id": str(getattr(example, "id", number)), **answer})
    self.write_json_lines(f"predictions{data.suffix}.jsonl", rows)
    return None

  def shown(self) -> shown.Shown:
    """Returns how a report shows examples and answers; by default all values of an answer."""
    return shown.Shown()

  def write_json_lines(self, name: str, rows: Iterable[Any]) -> None:
    """Writes a file into `--output_dir`, one JSON value in a line, whole or not at all."""
    lines = [json.dumps(row, ensure_ascii=False, default=_as_list) + "\n" for row in rows]
    path = self.settings.path(name)
    distribution.on_chief(atomic_files.write_text, path, "".join(lines))
    logging.info("Wrote %d lines to %s.", len(lines), path)

  # -------------------------------------------------------------------------------------------
  # What engine and plug-ins ask.

  @property
  def report_keys(self) -> tuple[str, ...]:
    """The results in a report of many runs, the headline first."""
    return tuple(dict.fromkeys((self.headline, *self.reported, "eval_loss")))

  @property
  def result_keys(self) -> Sequence[str]:
    """The results that come first in `eval_results.txt`."""
    return (*self.report_keys, "global_step", "loss")


def prefixed(results: Mapping[str, Any]) -> dict[str, Any]:
  """Puts `eval_` before the names of numbers.

  Raises:
    UsageError: the results have no names.
  """
  if not isinstance(results, Mapping):
    raise UsageError(
      f"`metrics` returns a value of type {type(results).__name__}: return a dict, name -> number."
    )
  return {
    f"eval_{name}" if hasattr(value, "__float__") else name: value
    for name, value in results.items()
  }


def _as_list(value: Any) -> Any:
  return value.tolist()
