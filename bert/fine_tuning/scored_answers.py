"""How answers to a labelled file are scored: those of an export, whatever computes it.

  settings = settings.replace(**task_class.settings_of_eval_file("MRPC/dev.tsv"))
  [data, *_] = task.data_sets(task.scored_split)
  task.score_answers(data, predictor(map(task.item, data.examples)))    # name -> number

It is the part of a `Task` that knows how a `Predictor` takes its examples, what it answers, and how
both are shown.
"""

import os
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from bert.io import filesystem


class ScoredAnswers:
  """What `Task` has of it.

  Attributes:
    scored_split: which `read` reads a labelled file.
  """

  scored_split: ClassVar[str] = "dev"

  @classmethod
  def settings_of_eval_file(cls, path: str) -> dict[str, Any]:
    """Returns the settings of a run that reads a labelled file."""
    return {"dev_file": path}

  def item(self, example: Any) -> Mapping[str, Any]:
    """Returns the texts of an example, by the names of the model's inputs.

    By default `text_a` and `text_b`.
    """
    return {"text_a": example.text_a, "text_b": getattr(example, "text_b", None)}

  def gold(self, example: Any) -> Any:
    """Returns what is right for an example, as `shown` compares it; None where it is unknown.

    By default its `label`.
    """
    return getattr(example, "label", None)

  def shown(self: Any, decoder: Any) -> Any:
    """Returns how a report shows the task's examples: a `tasks.shown.Shown`.

    By default that of its `tasks.decoding.Decoder`.
    """
    return decoder.shown()

  def score_answers(self: Any, data: Any, answers: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Computes the results of what a `Predictor` answers to the examples of a set.

    By default those of the answer that the task names, see `Task.answer`.

    Raises:
      KeyError: answers do not hold what is measured.
    """
    import numpy as np

    return self.score(data, np.asarray([each[self.answer] for each in answers]))


def folder_of_dev_file(path: str) -> dict[str, Any]:
  """Returns the settings of a run that finds its dev file by its name in a folder.

  Raises:
    ValueError: the file has another name.
  """
  folder, name = os.path.split(os.path.abspath(path))
  if not name.startswith("dev") or not filesystem.is_file(path):
    raise ValueError(f"{path}: this task finds its file by its name, such as dev.tsv.")
  return {"data_dir": folder}
