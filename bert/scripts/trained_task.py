"""The task of a run that has trained, made once more to read its data."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from absl import logging

from bert import tokenization
from bert.scripts import command_line, flag_groups, run_settings, table_split
from bert.tasks import kinds


def make(
  kind: kinds.Kind,
  config: Any,
  vocab_file: str,
  do_lower_case: bool,
  folder: str,
  flags: Mapping[str, Any],
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
    **changed: values that replace them.

  Raises:
    ValueError: a flag has a value that it cannot have, or the labels are unknown.
  """
  task_class = kind.task_class()
  with flag_groups.defined_flags(task_class.define_flags):
    command_line.parse(["task.py"])
    settings = run_settings.from_flags()
  settings = settings.replace(
    **{name: value for name, value in flags.items() if name in settings},
  )
  places = {"init_folder": folder, "output_dir": folder, "do_lower_case": do_lower_case}
  settings = settings.replace(**places, do_train=False, do_eval=True).replace(**changed)
  tokenizer = tokenization.load_tokenizer(vocab_file, do_lower_case)
  settings = table_split.with_split(task_class, settings, config, tokenizer)
  task = task_class(settings, config, tokenizer)
  task.prepare(None)
  return task


class NoItemError(command_line.UsageError):
  """A task does not say what a `Predictor` takes of its examples."""


def item_of(task: Any, example: Any) -> dict[str, Any]:
  """Returns what the model takes of an example.

  Raises:
    NoItemError: the task does not say it.
    UsageError: what it says is not a dict.
  """
  name = type(task).__name__
  try:
    item = task.item(example)
  except AttributeError as error:
    raise NoItemError(
      f"the task {task.name} does not say what a Predictor takes of its examples ({error}). "
      f"Write the method `item` of {name}: it returns a dict with "
      f"{' and '.join(task.inputs)} of an example"
    ) from None
  if not isinstance(item, Mapping):
    raise command_line.UsageError(
      f"{name}.item returns a value of type {type(item).__name__}: return a dict with "
      f"{' and '.join(task.inputs)}."
    )
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
    raise command_line.UsageError(f"{where}{error}{otherwise}.") from None


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
    found = task.score_answers(data, answers)
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
