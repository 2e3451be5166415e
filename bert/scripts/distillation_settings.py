"""The settings of `distill.py`: of distillation, and of the script whose work is learned.

Which script that is, the teacher says: its run knows its task. Flags are defined before a command
line is read, so its words are searched for the teacher first.
"""

import contextlib
import os
import types
from collections.abc import Sequence
from typing import Any

from bert.scripts import command_line
from bert.scripts.pretraining_settings import PretrainingSettings
from bert.scripts.settings import (
  Path,
  Rule,
  Settings,
  UsageError,
  above_zero,
  at_least,
  loss_weight,
  setting,
  share,
)
from bert.tasks import kinds
from bert.training import hardware

METHODS = ("logits", "tinybert", "distilbert")
STAGES = ("general", "task", "layers", "predictions")  # of TinyBERT
ON_RECORDS = "run_pretraining"  # the script of students that learn from records

# What the losses of layers cannot be computed of: flag -> what it must be.
_NOT_FOR_LAYERS = {"long_text": "truncate"}


def scripts() -> dict[str, str]:
  """Kind of task -> the script that trains such models."""
  return {kind.name: kind.script for kind in kinds.registered().values()}


class TinyBertSettings(Settings, title="TinyBERT"):
  """What `--method=tinybert` does."""

  stage: str | None = setting(
    None,
    "What --method=tinybert does. general: layers of a pre-trained teacher, on records of "
    "create_pretraining_data.py. task: layers of a fine-tuned teacher in OUTPUT_DIR/layers, then "
    "its predictions. layers, predictions: one half of task.",
    choices=STAGES,
  )
  layer_epochs: float | None = setting(
    None, "Epochs that learn layers, with --stage=task. [--num_train_epochs]", above_zero()
  )
  layer_learning_rate: float | None = setting(
    None,
    "Learning rate of the layers, with --stage=task; it stays the same to the end. "
    "[--learning_rate]",
    above_zero(),
  )


class DistillationSettings(TinyBertSettings, title="Distillation"):
  """Who teaches whom, and what; beside the settings of the script whose work is learned."""

  teacher: str = setting(
    None,
    f"The fine-tuned model to learn from: --output_dir of {kinds.scripts_in_words()}, or a folder "
    "of transformers; with --method=distilbert and --stage=general a pre-trained model.",
    path=Path(is_model=True),
  )
  script: str | None = setting(
    None,
    "The script whose work the student does, and whose flags are below. [that of the teacher]",
  )
  method: str = setting(
    "logits",
    "What is learned. logits: the teacher's outputs. tinybert: its attention, hidden states and "
    "outputs, see --stage. distilbert: the words of a pre-trained model, on records.",
    choices=METHODS,
  )
  num_hidden_layers: int | None = setting(
    None,
    "Cut the student from --init_checkpoint, by default from the teacher: N of its layers, and "
    "all the rest.",
    at_least(1),
  )
  student_layers: list[str] | None = setting(
    None, "The layers to keep, from 0, such as 0,2,5. [first, last, and evenly in between]"
  )
  temperature: float = setting(
    2.0, "Divides the logits of both models where the student learns them.", above_zero()
  )
  label_weight: float = setting(
    0.5, "Weight of the labels, from 0 to 1; the teacher has the rest.", share()
  )


class WeightSettings(Settings, title="Distillation"):
  """Weights of DistilBERT's losses; the names are the original's."""

  alpha_ce: float = setting(
    5.0, "--method=distilbert: weight of the teacher's words, at --temperature.", loss_weight()
  )
  alpha_mlm: float = setting(2.0, "--method=distilbert: weight of masked words.", loss_weight())
  alpha_mse: float = setting(
    0.0, "--method=distilbert: weight of squared differences of the logits.", loss_weight()
  )
  alpha_cos: float = setting(
    1.0, "--method=distilbert: weight of the angle between the last hidden states.", loss_weight()
  )
  restrict_ce_to_mask: bool = setting(
    False, "--method=distilbert: learn the teacher's words at masks alone."
  )
  mlm_smoothing: float = setting(
    0.7,
    "--method=distilbert with --dynamic_masking: mask rare tokens more often, each in proportion "
    "to its count to the power of minus this; 0 masks all alike.",
    loss_weight(),
  )


class UnlabelledSettings(Settings, title="Distillation"):
  """Texts that only the teacher answers."""

  unlabelled_file: str | None = setting(
    None,
    "Texts to learn from without labels, beside the training set: a text in each line, or two "
    "separated by a tab; or a .csv, .tsv or .jsonl with the columns text_a and text_b.",
    path=Path(),
  )


class RecordDistillation(DistillationSettings, WeightSettings, PretrainingSettings):
  """A run of `distill.py` on records of a corpus."""


def settings_class(script: str) -> type[Any]:
  """Returns the class of the settings of a script's work, learned from a teacher."""
  if script == ON_RECORDS:
    return RecordDistillation
  task = kinds.of_script(script).task_class()
  parts = (UnlabelledSettings,) if task.reads_unlabelled else ()
  return types.new_class("Distillation", (DistillationSettings, *parts, task.settings_class))


def script_of(argv: Sequence[str]) -> str:
  """Finds the script that a command line is about; the first one where it does not say.

  Args:
    argv: the command line, not read yet.
  """
  method, stage, named, teacher = (
    command_line.value_in(argv, name) for name in ("method", "stage", "script", "teacher")
  )
  if is_on_records(method, stage):
    return ON_RECORDS
  if named in scripts().values():
    return named
  known = scripts()
  return known.get(_task_of(teacher) if teacher else "", next(iter(known.values())))


def is_on_records(method: str | None, stage: str | None) -> bool:
  """Whether a student learns from records of a corpus, and not from examples of a task."""
  return method == "distilbert" or (method == "tinybert" and stage == "general")


def _task_of(teacher: str) -> str:
  """The task of a run; empty where the folder is none, which is reported when flags are read."""
  hardware.start_tensorflow()
  from bert.checkpoints import finding, model_source, reading

  with contextlib.suppress(ValueError, OSError):
    path = model_source.local_path(os.path.expanduser(teacher))
    facts = reading.read_facts(finding.find_checkpoint(path))
    kind = kinds.of_facts(facts)
    return kind.name if kind else ""
  return ""


def check(settings: Any) -> None:
  """Checks which student is meant, before the settings of its script.

  Raises:
    UsageError: names the setting and what to do.
  """
  Settings.check(settings)
  known = [*scripts().values(), ON_RECORDS]
  settings.check_value("script", Rule(known.__contains__, f"one of {', '.join(known)}"))
  is_cut = settings.num_hidden_layers is not None or settings.student_layers is not None
  if is_cut and settings.bert_config_file:
    flag = "num_hidden_layers" if settings.student_layers is None else "student_layers"
    raise UsageError(
      f"--{flag} cuts the student from a checkpoint, and --bert_config_file describes another one: "
      "leave one of them out."
    )
  if not (is_cut or settings.init_checkpoint or settings.bert_config_file):
    raise UsageError(
      "Which student? --num_hidden_layers=3 takes three of the teacher's layers, --init_checkpoint "
      "another model, --bert_config_file one with random weights."
    )
  layers_of(settings)


def check_tinybert(settings: Any) -> None:
  """Checks what flags alone show of TinyBERT's stages.

  Raises:
    UsageError: names the flag and what to do.
  """
  if settings.method != "tinybert":
    for name in ("stage", "layer_epochs", "layer_learning_rate"):
      if name in settings.given:
        raise UsageError(f"--{name} has no effect without --method=tinybert.")
    return
  if settings.stage is None:
    raise UsageError(
      "--method=tinybert needs --stage=task, with the teacher of a task; or --stage=general, with "
      "a pre-trained one and --input_file."
    )
  if "label_weight" in settings.given and settings.label_weight:
    raise UsageError("--label_weight has no effect with --method=tinybert. Leave it out.")
  for name, needed in _NOT_FOR_LAYERS.items():
    if settings.get(name, needed) != needed and settings.stage != "predictions":
      raise UsageError(f"--{name} is not supported with --stage={settings.stage}. Leave it out.")
  for name in ("layer_epochs", "layer_learning_rate"):
    if name in settings.given and settings.stage != "task":
      raise UsageError(f"--{name} is for --stage=task. Leave it out.")


def layers_of(settings: Any) -> list[int] | None:
  """The numbers of `--student_layers`.

  Raises:
    UsageError: they are no numbers, or not as many as `--num_hidden_layers`.
  """
  words = settings.student_layers
  if words is None:
    return None
  try:
    layers = [int(word) for word in words]
  except ValueError:
    raise UsageError(
      f"--student_layers={','.join(words)}: give numbers of layers, such as 0,2,5."
    ) from None
  if settings.num_hidden_layers not in (None, len(layers)):
    raise UsageError(
      f"--student_layers={','.join(words)} names {len(layers)} layers, "
      f"--num_hidden_layers={settings.num_hidden_layers}: leave the latter out."
    )
  return layers
