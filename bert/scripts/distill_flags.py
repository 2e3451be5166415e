"""Flags of `distill.py`: those of distillation, beside those of the script whose work is learned.

Which script that is, the teacher says: its run knows its task. Flags are defined before a command
line is read, so its words are searched for the teacher first.
"""

import contextlib
import math
import os
from collections.abc import Sequence

from absl import flags

from bert.scripts import command_line, flag_groups, path_flags
from bert.scripts.run_settings import RunSettings
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


def define_flags(*, on_records: bool, takes_texts: bool) -> None:
  """Defines the flags of distillation; those of the script whose work is learned come first.

  Args:
    on_records: whether a student learns from records of a corpus; then the script has no
      `--temperature` of its own.
    takes_texts: whether it may learn from texts without labels.
  """
  with flag_groups.flag_group("Distillation"):
    path_flags.define(
      "teacher",
      None,
      f"The fine-tuned model to learn from: --output_dir of {kinds.scripts_in_words()}, or "
      "a folder of transformers; with --method=distilbert and --stage=general a pre-trained model.",
      is_model=True,
    )
    flags.DEFINE_enum(
      "script",
      None,
      [*scripts().values(), ON_RECORDS],
      "The script whose work the student does, and whose flags are below. [that of the teacher]",
    )
    flags.DEFINE_enum(
      "method",
      "logits",
      list(METHODS),
      "What is learned. logits: the teacher's outputs. tinybert: its attention, hidden states and "
      "outputs, see --stage. distilbert: the words of a pre-trained model, on records.",
    )
    flags.DEFINE_integer(
      "num_hidden_layers",
      None,
      "Cut the student from --init_checkpoint, by default from the teacher: N of its layers, and "
      "all the rest.",
    )
    flags.DEFINE_list(
      "student_layers",
      None,
      "The layers to keep, from 0, such as 0,2,5. [first, last, and evenly in between]",
    )
    flags.DEFINE_float(
      "temperature", 2.0, "Divides the logits of both models where the student learns them."
    )
    flags.DEFINE_float(
      "label_weight", 0.5, "Weight of the labels, from 0 to 1; the teacher has the rest."
    )
    if on_records:
      _define_weights()
    if takes_texts:
      path_flags.define(
        "unlabelled_file",
        None,
        "Texts to learn from without labels, beside the training set: a text in each line, or two "
        "separated by a tab; or a .csv, .tsv or .jsonl with the columns text_a and text_b.",
      )
  _define_tinybert()


def _define_weights() -> None:
  """Weights of DistilBERT's losses; the names are the original's."""
  for name, default, what in (
    ("alpha_ce", 5.0, "the teacher's words, at --temperature"),
    ("alpha_mlm", 2.0, "masked words"),
    ("alpha_mse", 0.0, "squared differences of the logits"),
    ("alpha_cos", 1.0, "the angle between the last hidden states"),
  ):
    flags.DEFINE_float(name, default, f"--method=distilbert: weight of {what}.")
  flags.DEFINE_bool(
    "restrict_ce_to_mask", False, "--method=distilbert: learn the teacher's words at masks alone."
  )
  flags.DEFINE_float(
    "mlm_smoothing",
    0.7,
    "--method=distilbert with --dynamic_masking: mask rare tokens more often, each in proportion "
    "to its count to the power of minus this; 0 masks all alike.",
  )


def _define_tinybert() -> None:
  """Defines the flags of that method."""
  with flag_groups.flag_group("TinyBERT"):
    flags.DEFINE_enum(
      "stage",
      None,
      list(STAGES),
      "What --method=tinybert does. general: layers of a pre-trained teacher, on records of "
      "create_pretraining_data.py. task: layers of a fine-tuned teacher in OUTPUT_DIR/layers, then "
      "its predictions. layers, predictions: one half of task.",
    )
    flags.DEFINE_float(
      "layer_epochs", None, "Epochs that learn layers, with --stage=task. [--num_train_epochs]"
    )
    flags.DEFINE_float(
      "layer_learning_rate",
      None,
      "Learning rate of the layers, with --stage=task; it stays the same to the end. "
      "[--learning_rate]",
    )


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


def check(settings: RunSettings) -> None:
  """Checks what flags alone show.

  Raises:
    UsageError: names the flag and what to do.
  """
  settings.check("temperature", lambda value: 0 < value < math.inf, "a positive number")
  settings.check("label_weight", lambda value: 0 <= value <= 1, "between 0 and 1")
  settings.check_at_least(1, "num_hidden_layers")
  for name in ("alpha_ce", "alpha_mlm", "alpha_mse", "alpha_cos", "mlm_smoothing"):
    settings.check(name, lambda value: 0 <= value < math.inf, "at least 0")
  is_cut = settings.num_hidden_layers is not None or settings.student_layers is not None
  if is_cut and settings.bert_config_file:
    flag = "num_hidden_layers" if settings.student_layers is None else "student_layers"
    raise command_line.UsageError(
      f"--{flag} cuts the student from a checkpoint, and --bert_config_file describes another one: "
      "leave one of them out."
    )
  if not (is_cut or settings.init_checkpoint or settings.bert_config_file):
    raise command_line.UsageError(
      "Which student? --num_hidden_layers=3 takes three of the teacher's layers, --init_checkpoint "
      "another model, --bert_config_file one with random weights."
    )
  layers_of(settings)


def check_tinybert(settings: RunSettings) -> None:
  """Checks what flags alone show of TinyBERT's stages.

  Raises:
    UsageError: names the flag and what to do.
  """
  if settings.method != "tinybert":
    for name in ("stage", "layer_epochs", "layer_learning_rate"):
      if name in settings.given:
        raise command_line.UsageError(f"--{name} has no effect without --method=tinybert.")
    return
  if settings.stage is None:
    raise command_line.UsageError(
      "--method=tinybert needs --stage=task, with the teacher of a task; or --stage=general, with "
      "a pre-trained one and --input_file."
    )
  if "label_weight" in settings.given and settings.label_weight:
    raise command_line.UsageError(
      "--label_weight has no effect with --method=tinybert. Leave it out."
    )
  for name, needed in _NOT_FOR_LAYERS.items():
    if settings.get(name, needed) != needed and settings.stage != "predictions":
      raise command_line.UsageError(
        f"--{name} is not supported with --stage={settings.stage}. Leave it out."
      )
  for name in ("layer_epochs", "layer_learning_rate"):
    if name in settings.given and settings.stage != "task":
      raise command_line.UsageError(f"--{name} is for --stage=task. Leave it out.")
    settings.check(name, lambda value: value is None or value > 0, "a positive number")


def layers_of(settings: RunSettings) -> list[int] | None:
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
    raise command_line.UsageError(
      f"--student_layers={','.join(words)}: give numbers of layers, such as 0,2,5."
    ) from None
  if settings.num_hidden_layers not in (None, len(layers)):
    raise command_line.UsageError(
      f"--student_layers={','.join(words)} names {len(layers)} layers, "
      f"--num_hidden_layers={settings.num_hidden_layers}: leave the latter out."
    )
  return layers
