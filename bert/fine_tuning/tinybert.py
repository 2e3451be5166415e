"""`distill.py --method=tinybert`: a student learns a fine-tuned teacher layer by layer.

The original makes two runs of the task, and so does `--stage=task`: the first, in
OUTPUT_DIR/layers, learns attention and hidden states, the second, in OUTPUT_DIR, starts from it and
learns predictions. The original knows classes and numbers alone: predictions of other tasks are
learned as with `--method=logits`, without labels.
"""

import os
from typing import Any

from bert.fine_tuning.distillation import TaskDistillation

LAYERS = "layers"  # folder in OUTPUT_DIR
_NOT_OF_LAYERS = ("do_eval", "do_predict", "do_export", "report")


def stages_of(settings: Any) -> list[Any]:
  """Returns the settings of each run, in their order; one for all but `--stage=task`."""
  if settings.method != "tinybert" or settings.is_many_runs:
    return [settings]  # each of them comes here again
  if settings.stage == "task" and not settings.do_train:
    return [_of_predictions(settings)]
  if settings.stage != "task":
    one_of = {"layers": _of_layers, "predictions": _of_predictions}
    return [one_of[settings.stage](settings)]
  folder = os.path.join(settings.output_dir, LAYERS)
  layers: dict[str, Any] = {"stage": "layers", "output_dir": folder}
  layers |= dict.fromkeys(_NOT_OF_LAYERS, False)
  layers |= {"eval_every_steps": None}
  for name in ("num_train_epochs", "learning_rate"):
    own = settings.get({"num_train_epochs": "layer_epochs"}.get(name, "layer_learning_rate"))
    layers[name] = own or settings.get(name)
  # It starts from the student of the first run, which is not cut again.
  predictions = {"init_checkpoint": folder, "num_hidden_layers": None, "student_layers": None}
  predictions |= {"bert_config_file": None, "stage": "predictions"}
  return [_of_layers(settings.replace(**layers)), _of_predictions(settings.replace(**predictions))]


def _of_layers(settings: Any) -> Any:
  if "lr_schedule" in settings.given:
    return settings
  return settings.replace(lr_schedule="constant", warmup_proportion=0.0)


def _of_predictions(settings: Any) -> Any:
  schedule = settings.lr_schedule if "lr_schedule" in settings.given else "continuous"
  temperature = settings.temperature if "temperature" in settings.given else 1.0
  return settings.replace(stage="predictions", lr_schedule=schedule, temperature=temperature)


class TinyBertDistillation(TaskDistillation):
  """A teacher's part in a run of `--stage=layers` or `--stage=predictions`."""

  def facts(self, settings):
    """Says the stage, too."""
    return {**super().facts(settings), "distillation": f"tinybert, {settings.stage}"}

  def model_options(self, run):
    """Clips gradients as the original; its schedule is a flag, set by `stages_of`."""
    from bert.distillation import tinybert

    options = super().model_options(run)
    clipping = {"clipping": tinybert.OPTIMIZER["clipping"]}
    return {**options, "optimizer_options": {**options["optimizer_options"], **clipping}}

  def method(self, run):
    """Returns the method of the stage."""
    import tensorflow as tf

    from bert.distillation import tinybert
    from bert.distillation.teachers import Teacher
    from bert.training.pretraining_objectives import Setting

    settings = run.settings
    if settings.stage == "predictions":
      problem_type = run.task.problem_type
      if problem_type not in tinybert.PROBLEM_TYPES:
        return self.logits_method(run, label_weight=0.0)
      return tinybert.PredictionMethod(self.answers(run), settings.temperature, problem_type)
    teacher = Teacher(self.teacher.config, self.teacher.prefix)
    layers = tinybert.Layers(teacher)
    setting = Setting(True, settings.use_tpu, tf.as_dtype(settings.dtype))
    return tinybert.LayersMethod(layers, run.bert_config, setting)
