"""The processor of `run_classifier.py`'s task, with the options that flags give it."""

from absl import logging

from bert.scripts import run_files
from bert.scripts.run_settings import RunSettings
from bert.tasks.glue import create_processor, find_processor
from bert.tasks.processors import DataProcessor

_OPTIONS = (
  *("text_a_column", "text_b_column", "label_column", "id_column", "labels", "problem_type"),
  *("label_separator", "header", "skip_bad_rows"),
)


def check_task(settings: RunSettings) -> None:
  """Checks that the task exists and has the options that were given, before files are fetched.

  Raises:
    ValueError: see `glue.create_processor`.
  """
  given = [name for name in _OPTIONS if settings.values[name] is not None]
  find_processor(settings.task_name, given)


def processor_of(settings: RunSettings) -> DataProcessor:
  """The processor of `--task_name`.

  Raises:
    ValueError: there is no such task, or it does not have an option that was given.
  """
  options = {name: settings.values[name] for name in _OPTIONS}
  options["language"] = settings.xnli_language
  options["train_language"] = settings.xnli_train_language
  if settings.task_name.lower() == "csv":
    options["data_dir"] = settings.data_dir
    if not settings.do_train:  # the labels of the run that trained, whose data may have moved
      options["labels"] = settings.labels or _labels_of_model(settings)
  return create_processor(settings.task_name, **options)


def _labels_of_model(settings: RunSettings) -> list[str] | None:
  labels = run_files.labels_of_earlier_run(settings.output_dir, settings.init_folder)
  if labels:
    logging.info("Labels of the trained model: %s.", ", ".join(labels))
  return labels
