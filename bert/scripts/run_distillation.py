"""What a teacher adds to a run of `distill.py`, whatever it teaches.

`fine_tuning/distillation.py` teaches a task, `corpus_distillation.py` the work of a pre-trained
model.
"""

import functools
import os
from typing import Any

from absl import logging

from bert.checkpoints import model_files
from bert.io.wording import counted
from bert.predicting import load_run
from bert.scripts import run_states, student_files
from bert.scripts.run_settings import RunSettings
from bert.scripts.settings import UsageError
from bert.scripts.steps import Run, Teaching


class RunDistillation(Teaching):
  """A teacher's part in a run.

  Attributes:
    teacher: the model that teaches.
  """

  script = "distill"
  informative = ("temperature", "label_weight")
  # A run that only evaluates needs no teacher.
  ignored_in_eval = ("teacher", "distillation")

  def __init__(self, teacher: load_run.Run):
    self.teacher = teacher

  def resolve(self, settings):
    """Writes a student that is cut from a model, into OUTPUT_DIR/student."""
    if settings.num_hidden_layers is None and settings.student_layers is None:
      return settings
    return student_files.write_student(settings)

  def check(self, run: Run) -> None:
    """Logs the sizes of both models."""
    sizes = [config.count_parameters() for config in (run.bert_config, self.teacher.config)]
    logging.info(
      "Student: %s, %s parameters. Teacher: %s, %s.",
      counted(run.bert_config.num_hidden_layers, "layer"),
      f"{sizes[0]:,}",
      counted(self.teacher.config.num_hidden_layers, "layer"),
      f"{sizes[1]:,}",
    )

  @functools.cached_property
  def identity(self) -> str | None:
    """That of the teacher's weights, wherever they lie."""
    return run_states.identity_of_weights(self.teacher.prefix)

  def facts(self, settings: Any) -> dict[str, Any]:
    """Returns the method and the teacher's weights."""
    return {"distillation": settings.method, "teacher": self.identity}


def run_folder(teacher: load_run.Run) -> str:
  """Returns the folder of the run, also where its best weights are meant."""
  return model_files.run_folder_of(teacher.prefix)


def check_folder(settings: RunSettings, teacher: load_run.Run) -> None:
  """Refuses the teacher's own folder as `--output_dir`.

  Raises:
    UsageError: it is.
  """
  folders = [run_folder(teacher), settings.output_dir or ""]
  if len({os.path.realpath(folder) for folder in folders}) == 1:
    raise UsageError(
      f"--output_dir={settings.output_dir} is the teacher's folder. Give the student another one."
    )
