"""The task of a run that has trained, made once more to read its data."""

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from absl import logging

from bert import tokenization
from bert.io import filesystem
from bert.model.configuration import BertConfig
from bert.scripts import table_split
from bert.scripts.settings import UsageError, kind_of
from bert.tasks import kinds


def make(
  kind: kinds.Kind,
  config: Any,
  vocab_file: str,
  do_lower_case: bool,
  folder: str,
  flags: Mapping[str, Any],
  eval_file: str | None = None,
  **changed: Any,
) -> Any:
  """Makes the task of a model, ready to read a labelled set: of a table that it divided its part.

  Args:
    kind: of the model.
    config: its `BertConfig`.
    vocab_file: its vocabulary.
    do_lower_case: as it was trained.
    folder: of the model; its labels are there.
    flags: values of flags; those that the task's script lacks are left out.
    eval_file: the labelled set; by default that of the flags.
    **changed: values that replace them.

  Raises:
    ValueError: a flag has a value that it cannot have, or the labels are unknown.
  """
  task_class = kind.task_class()
  settings = _settings(task_class, flags)
  places = {"init_folder": folder, "output_dir": folder, "do_lower_case": do_lower_case}
  settings = settings.replace(**places, do_train=False, do_eval=True).replace(**changed)
  if eval_file:
    settings = settings.replace(**_reading(settings, eval_file))
  tokenizer = tokenization.load_tokenizer(vocab_file, do_lower_case)
  settings = table_split.with_split(task_class, settings, config, tokenizer)
  task = task_class(settings, config, tokenizer)
  task.prepare(None)
  return task


def reader_of(values: Mapping[str, Any]) -> Callable[..., Any]:
  """Returns `make_task(kind, config, **changed)`: a task that reads data as a run would.

  Of the flags' `values`, perhaps of another script, those that are None have the task's default.
  """
  known = {name: value for name, value in values.items() if value is not None}
  is_used = known.get("do_eval") or known.get("do_predict") or known.get("do_export")

  def make_task(kind: kinds.Kind, config: BertConfig | None, **changed: Any) -> Any:
    task_class = kind.task_class()
    settings = _settings(task_class, {"max_seq_length": 128, **known, **changed})
    trains = known.get("do_train") or not is_used
    return task_class(settings.replace(do_train=trains), config or BertConfig(30522))

  return make_task


def _settings(task_class: Any, values: Mapping[str, Any]) -> Any:
  """Returns the settings of a task's script; numbers may be given as text."""
  settings = task_class.settings_class()
  own = settings.values
  found = {name: value for name, value in values.items() if name in own}
  for name, value in found.items():
    if kind_of(type(settings), name) is int and isinstance(value, str):
      found[name] = int(value) if value.lstrip("-").isdecimal() else own[name]
  return settings.replace(**found)


def _reading(settings: Any, eval_file: str) -> dict[str, Any]:
  """Returns the settings of a run whose labelled set is a file."""
  if "predict_file" in settings.values:
    return {"predict_file": eval_file, "do_predict": True, "do_eval": False}
  if "dev_file" in settings.values:
    return {"dev_file": eval_file}
  folder, name = os.path.split(os.path.abspath(eval_file))
  if not name.startswith("dev") or not filesystem.is_file(eval_file):
    raise ValueError(f"{eval_file}: this task finds its file by its name, such as dev.tsv.")
  return {"data_dir": folder}


def labelled_set(task: Any) -> Any:
  """Reads the main labelled set; questions to evaluate are those to predict."""
  return task.data_sets("test" if "predict_file" in task.settings.values else "dev")[0]


class NoItemError(UsageError):
  """A task does not say what a `Predictor` takes of its examples."""


def item_of(task: Any, example: Any) -> dict[str, Any]:
  """Returns the texts of an example by the names of the model's inputs.

  Raises:
    NoItemError: the task does not tell them.
    UsageError: `view` returns something else.
  """
  name = type(task).__name__
  try:
    item, _ = task.view(example)
  except AttributeError as error:
    raise NoItemError(
      f"the task {task.name} does not say what a Predictor takes of its examples ({error}). "
      f"Write the method `view` of {name}: it returns a dict with text_a and text_b of an example, "
      "and its gold label"
    ) from None
  except (TypeError, ValueError) as error:
    raise UsageError(
      f"{name}.view returns {error}: return two values, a dict with text_a and text_b, and the "
      "gold label."
    ) from None
  return dict(item)


def items_of(
  task: Any, examples: Iterable[Any], where: str = "", otherwise: str = ""
) -> list[dict[str, Any]]:
  """Returns what the model takes of examples.

  Args:
    task: of the model.
    examples: that it has read.
    where: begins the message of an error.
    otherwise: ends it, as another remedy.

  Raises:
    UsageError: the task does not say it.
  """
  try:
    return [item_of(task, example) for example in examples]
  except NoItemError as error:
    raise UsageError(f"{where}{error}{otherwise}.") from None


def scores_of(
  task: Any, data: Any, answers: Iterable[Mapping[str, Any]], otherwise: str
) -> dict[str, float]:
  """Scores answers; nothing, and a warning, where the task cannot score them.

  Args:
    task: of the model.
    data: the labelled set.
    answers: to all of its examples.
    otherwise: what the warning says of a report without scores.
  """
  try:
    found = task.score(data, answers)
  except (KeyError, NotImplementedError, AttributeError, TypeError, ValueError) as error:
    # A task of a user's own may fail in any of these ways, and must not cost the finished work.
    logging.warning(
      "The task %s does not score answers (%s: %s): %s.",
      *(task.name, type(error).__name__, error, otherwise),
    )
    return {}
  return {
    name: float(value)
    for name, value in found.items()
    if isinstance(value, (int, float, np.number)) and np.ndim(value) == 0
  }
