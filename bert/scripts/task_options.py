"""The processor of `run_classifier.py`'s task, with the options that flags give it."""

from typing import Any

from absl import logging

from bert.model.configuration import BertConfig
from bert.scripts import command_line, output_folder, run_files
from bert.scripts.run_settings import RunSettings
from bert.tasks.glue import create_processor, find_processor
from bert.tasks.processors import DataProcessor
from bert.tasks.windows import MIN_SEQ_LENGTH

_OPTIONS = (
  *("text_a_column", "text_b_column", "label_column", "id_column", "labels", "problem_type"),
  *("label_separator", "header", "skip_bad_rows", "merge_labels"),
)


def check_task(settings: RunSettings) -> None:
  """Checks task and options, see `glue.create_processor`, before files are fetched.

  Options that mean nothing with the labels of the task are named in the log.
  """
  given = [name for name in _OPTIONS if settings.values[name] is not None]
  processor = find_processor(settings.task_name, given)
  problem_type = settings.problem_type or getattr(processor, "problem_type", "classification")
  reasons = {}
  if problem_type == "regression":
    reasons["labels"] = "regression learns numbers, not classes"
  if problem_type != "multi_label":
    reasons["label_separator"] = "a text has one label without --problem_type=multi_label"
  command_line.explain_ignored_flags(reasons)


def processor_of(settings: RunSettings) -> DataProcessor:
  """Makes the processor of `--task_name`; a ValueError if it, or one of its options, is unknown."""
  options = {name: settings.values[name] for name in _OPTIONS}
  options["language"] = settings.xnli_language
  if settings.task_name.lower() != "csv":
    return create_processor(settings.task_name, **options)
  options["data_dir"] = settings.data_dir
  if settings.do_train or settings.labels:
    return create_processor(settings.task_name, **options)
  # The labels of the run that trained, whose data may have moved.
  folder, options["labels"] = _labels_of_model(settings)
  processor: Any = create_processor(settings.task_name, **options)
  processor.labels_of = folder
  return processor


def processor_of_folder(
  settings: RunSettings, config: BertConfig | None, tokenizer
) -> DataProcessor:
  """Returns the processor of `--task_name`, whose labels are known.

  Raises:
    ResumeMismatchError: `--output_dir` holds a run of another task, which says more than a fault
      of this one's data.
    ValueError: see `processor_of`; or the data have a fault.
  """
  try:
    processor = processor_of(settings)
    processor.get_labels()  # of own tables, those of the training file
  except ValueError:
    if config is None:
      raise
    output_folder.check_same_task(settings, config, tokenizer)
    raise
  return processor


def check_windows(settings: RunSettings) -> None:
  """Checks the flags of `--long_text=windows` (UsageError)."""
  if settings.long_text == "truncate":
    names = ("max_windows", "window_pooling")
    command_line.explain_ignored_flags(dict.fromkeys(names, "it is for --long_text=windows"))
    return
  settings.check_at_least(1, "max_windows")
  least = MIN_SEQ_LENGTH
  needed = f"at least {least} with --long_text=windows"
  settings.check("max_seq_length", lambda value: value >= least, needed)


def _labels_of_model(settings: RunSettings) -> tuple[str, list[str] | None]:
  """Returns the folder of the trained model, and its labels; "" and None where none is known."""
  for folder in (settings.output_dir, settings.init_folder):
    if labels := run_files.read_label_map(folder):
      logging.info("Labels of the trained model: %s.", ", ".join(labels))
      return folder, labels
  return "", None
