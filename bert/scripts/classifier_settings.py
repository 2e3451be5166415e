"""The settings of `run_classifier.py`, and the processor of its task, which they choose."""

import contextlib

from bert.io.tables import DataError
from bert.model.configuration import BertConfig
from bert.scripts import model_labels, output_folder
from bert.scripts.model_labels import ModelLabels
from bert.scripts.run_settings import FineTuningSettings, LongTextSettings, TableSettings
from bert.scripts.settings import Path, Rule, Settings, at_least, setting
from bert.tasks import label_counts
from bert.tasks.glue import PROCESSORS, create_processor, find_processor
from bert.tasks.processors import DataProcessor
from bert.tasks.user_tables import CsvProcessor
from bert.tasks.windows import MIN_SEQ_LENGTH

_OPTIONS = (
  *("text_a_column", "text_b_column", "label_column", "id_column", "labels", "problem_type"),
  *("label_separator", "header", "skip_bad_rows"),
)


class XnliSettings(Settings, title="XNLI"):
  """The language of XNLI."""

  xnli_language: str | None = setting(None, "Language to train and evaluate in. [zh]")


class ClassifierSettings(
  TableSettings, XnliSettings, LongTextSettings, FineTuningSettings, title="Task and data"
):
  """A run of `run_classifier.py`."""

  task_name: str = setting(None, f"One of: {', '.join(PROCESSORS)}.")
  data_dir: str = setting(
    None,
    "Folder with the task's files, or `download` to fetch the public ones. With --task_name=csv "
    "also one table, which is divided by --seed into train, dev and test: OUTPUT_DIR/split.",
    path=Path(),
  )

  required = ("data_dir", "task_name", *FineTuningSettings.required)
  needed = ("data_dir", "task_name", "output_dir")

  def check(self):
    """See base class; also checks the task, its options, and how long texts are read.

    Options that mean nothing with the labels of the task are named in the log.
    """
    super().check()
    given = [name for name in _OPTIONS if getattr(self, name) is not None]
    processor = find_processor(self.task_name, given)
    problem_type = self.problem_type or getattr(processor, "problem_type", "classification")
    reasons = {}
    if problem_type == "regression":
      reasons["labels"] = "regression learns numbers, not classes"
    if problem_type != "multi_label":
      reasons["label_separator"] = "a text has one label without --problem_type=multi_label"
    if self.long_text == "truncate":
      names = ("max_windows", "window_pooling")
      reasons |= dict.fromkeys(names, "it is for --long_text=windows")
    else:
      self.check_value("max_windows", at_least(1))
      needed = f"at least {MIN_SEQ_LENGTH} with --long_text=windows"
      self.check_value("max_seq_length", Rule(lambda value: value >= MIN_SEQ_LENGTH, needed))
    self.explain_ignored(reasons)


def processor_of(
  settings: ClassifierSettings, model: ModelLabels | None = None
) -> tuple[DataProcessor, list[str]]:
  """Makes the processor of `--task_name`, and its labels in the order of the model's outputs.

  Args:
    settings: of the run.
    model: that the run evaluates, whose training data may have moved.

  Raises:
    ValueError: the task, or one of its options, is unknown; or the data have a fault.
  """
  options = {name: getattr(settings, name) for name in _OPTIONS}
  options["language"] = settings.xnli_language
  is_table = settings.task_name.lower() == "csv"
  if is_table:
    options["data_dir"] = settings.data_dir
    if model:
      options["problem_type"] = options["problem_type"] or model.facts.get("problem_type")
  processor = create_processor(settings.task_name, **options)
  if getattr(processor, "problem_type", "classification") == "regression":
    return processor, processor.get_labels()
  if isinstance(processor, CsvProcessor) and model and model.labels and not settings.labels:
    _take_labels(processor, settings, model)
  # Of tables without a model, those of the training file.
  are_given = bool(settings.labels)
  labels = model_labels.in_order(processor.get_labels(), model, are_given) or []
  if isinstance(processor, CsvProcessor):
    processor.labels = tuple(labels)
  return processor, labels


def _take_labels(processor: CsvProcessor, settings: ClassifierSettings, model: ModelLabels) -> None:
  """Gives a table the labels of the model, or as many other ones of the data."""
  splits = ["dev"] if settings.do_eval else []
  found = processor.labels_in(settings.data_dir, *splits)
  if model.labels[0] == "LABEL_0":  # nobody has named the outputs
    with contextlib.suppress(DataError):
      found = processor.labels_in(settings.data_dir, "train", *splits)
  labels = label_counts.in_order_of(found, model.labels)
  are_others = not any(label_counts.in_order_of([each], model.labels) for each in found)
  if labels is None and are_others and len(found) == len(model.labels):
    processor.labels = tuple(found)
    return
  processor.labels, processor.labels_of = tuple(labels or model.labels), model.folder


def processor_of_folder(
  settings: ClassifierSettings, config: BertConfig | None, tokenizer
) -> tuple[DataProcessor, list[str]]:
  """Returns what `processor_of` does of the model that the run evaluates.

  Raises:
    ResumeMismatchError: `--output_dir` holds a run of another task, which says more than a fault
      of this one's data.
    ValueError: see `processor_of`; or the model is of another kind of task.
  """
  try:
    return processor_of(settings, model_labels.of_settings(settings, "sentences"))
  except ValueError:
    if config is None or tokenizer is None:
      raise
    output_folder.check_same_task(settings, config, tokenizer)
    raise
