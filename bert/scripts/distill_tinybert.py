"""`distill.py --method=tinybert`: a student learns a fine-tuned teacher layer by layer.

The original makes two runs of the task, and so does `--stage=task`: the first, in
OUTPUT_DIR/layers, learns attention and hidden states, the second, in OUTPUT_DIR, starts from it and
learns predictions. The original knows classes and numbers alone: predictions of other tasks are
learned as with `--method=logits`, without labels.
"""

import os
from typing import Any

from absl import flags

from bert.scripts import flag_groups
from bert.scripts.command_line import UsageError
from bert.scripts.distilling import Distilled
from bert.scripts.run_settings import RunSettings

STAGES = ("general", "task", "layers", "predictions")
LAYERS = "layers"  # folder in OUTPUT_DIR

# What the losses of layers cannot be computed of: flag -> what it must be.
_NOT_FOR_LAYERS = {"pack_sequences": False, "long_text": "truncate"}


def define_flags() -> None:
  """The flags of this method."""
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
    flags.DEFINE_bool(
      "teacher_dropout",
      False,
      "Leave the dropout of the teacher of --method=tinybert on, as the original did by mistake.",
    )


def check(settings: RunSettings) -> None:
  """Checks what flags alone show.

  Raises:
    UsageError: names the flag and what to do.
  """
  if settings.method != "tinybert":
    for name in ("stage", "layer_epochs", "layer_learning_rate", "teacher_dropout"):
      if name in settings.given:
        raise UsageError(f"--{name} has no effect without --method=tinybert.")
    return
  if settings.stage is None:
    raise UsageError(
      "--method=tinybert needs --stage=task, with the teacher of a task; or --stage=general, with "
      "a pre-trained one and --input_file."
    )
  unused = ["label_weight", *(["cache_teacher"] if settings.stage in ("general", "layers") else [])]
  for name in unused:
    if name in settings.given and settings.get(name):
      raise UsageError(f"--{name} has no effect with --method=tinybert. Leave it out.")
  for name, needed in _NOT_FOR_LAYERS.items():
    if settings.get(name, needed) != needed and settings.stage != "predictions":
      raise UsageError(f"--{name} is not supported with --stage={settings.stage}. Leave it out.")
  for name in ("layer_epochs", "layer_learning_rate"):
    if name in settings.given and settings.stage != "task":
      raise UsageError(f"--{name} is for --stage=task. Leave it out.")
    settings.check(name, lambda value: value is None or value > 0, "a positive number")


def stages_of(settings: RunSettings) -> list[RunSettings]:
  """The settings of each run, in their order; one for all methods and stages but `task`."""
  if settings.method != "tinybert" or settings.stage == "general":
    return [settings]
  if settings.is_many_runs:
    return [settings]  # each of them comes here again
  if settings.stage == "task" and not settings.do_train:
    return [_of_predictions(settings)]
  if settings.stage != "task":
    one_of = {"layers": _of_layers, "predictions": _of_predictions}
    return [one_of[settings.stage](settings)]
  folder = os.path.join(settings.output_dir, LAYERS)
  layers: dict[str, Any] = {"stage": "layers", "output_dir": folder}
  layers |= dict.fromkeys(("do_eval", "do_predict", "do_export", "plots", "cache_teacher"), False)
  layers |= {"eval_every_steps": None}
  if features := settings.get("features_dir"):  # of --num_runs, whose files know their run's stage
    layers["features_dir"] = os.path.join(features, LAYERS)
  for name in ("num_train_epochs", "learning_rate"):
    own = settings.get({"num_train_epochs": "layer_epochs"}.get(name, "layer_learning_rate"))
    layers[name] = own or settings.get(name)
  # It starts from the student of the first run, which is not cut again.
  predictions = {"init_checkpoint": folder, "num_hidden_layers": None, "student_layers": None}
  predictions |= {"bert_config_file": None, "stage": "predictions"}
  return [
    _of_layers(settings.replace(**layers)),
    _of_predictions(settings.replace(**predictions)),
  ]


def _of_layers(settings: RunSettings) -> RunSettings:
  if "lr_schedule" in settings.given:
    return settings
  return settings.replace(lr_schedule="constant", warmup_proportion=0.0)


def _of_predictions(settings: RunSettings) -> RunSettings:
  schedule = settings.lr_schedule if "lr_schedule" in settings.given else "continuous"
  temperature = settings.temperature if "temperature" in settings.given else 1.0
  return settings.replace(stage="predictions", lr_schedule=schedule, temperature=temperature)


class TinyBert(Distilled):
  """A run of `--stage=layers` or `--stage=predictions`; always with the class of a script."""

  def _facts(self):
    return {**super()._facts(), "distillation": f"tinybert, {self.settings.stage}"}

  def _model_options(self):
    from bert.distillation import tinybert

    options = super()._model_options()
    clipping = tinybert.OPTIMIZER["clipping"]  # the schedule is a flag, set by `stages_of`
    by_flags = options["optimizer_options"]
    return {**options, "optimizer_options": {**by_flags, "clipping": clipping}}

  def _method(self):
    import tensorflow as tf

    from bert.distillation import tinybert
    from bert.distillation.teachers import Teacher
    from bert.training.pretraining_objectives import Setting

    settings = self.settings
    if settings.stage == "predictions":
      problem_type = self.task.problem_type
      if problem_type not in tinybert.PROBLEM_TYPES:
        return self._logits_method(label_weight=0.0)
      return tinybert.PredictionMethod(self._answers(), settings.temperature, problem_type)
    teacher = Teacher(self.teacher.config, self.teacher.prefix)
    layers = tinybert.Layers(teacher, settings.teacher_dropout)
    setting = Setting(True, settings.use_tpu, tf.as_dtype(settings.dtype))
    return tinybert.LayersMethod(layers, self.bert_config, setting)
