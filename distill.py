"""Trains a small model to do the work of a large one: a student learns from a teacher.

  python distill.py --teacher=output/mrpc --num_hidden_layers=3 --do_train --do_eval \\
    --data_dir=$GLUE_DIR/MRPC --learning_rate=5e-5 --num_train_epochs=4 --output_dir=output/small

The teacher is the folder of any run of run_classifier.py, run_ner.py, run_squad.py or run_swag.py.
It says what the task is; all flags of that script are flags here, and --help with --teacher lists
them. The student is cut from the teacher (--num_hidden_layers), or another model
(--init_checkpoint), or starts from random weights (--bert_config_file). It learns the teacher's
outputs, softened by --temperature, and the labels, as --label_weight says.

--method=tinybert teaches attention and hidden states first. --method=distilbert, and tinybert's
--stage=general, teach a pre-trained model's work on records of create_pretraining_data.py, with the
flags of run_pretraining.py.

--output_dir is then the folder of a run of that script: predict.py, export_hub.py and all others
take it as such.
"""

import bert  # isort: skip  # noqa: F401  from here on Ctrl-C is one line, also while importing

import sys

from bert import run_pretraining
from bert.fine_tuning import distillation, engine, tinybert
from bert.scripts import (
  command_line,
  corpus_distillation,
  distillation_settings,
  flag_groups,
)


def define_flags() -> None:
  """Defines the flags of distillation, and those of the script that the command line is about."""
  script = distillation_settings.script_of(sys.argv)
  flag_groups.define(distillation_settings.settings_class(script))


def main(_) -> int | None:
  """Trains, evaluates, predicts and exports as the flags say."""
  values = flag_groups.read(distillation_settings.DistillationSettings)
  if distillation_settings.is_on_records(values.method, values.stage):
    teacher = corpus_distillation.find_teacher(values.teacher)
    settings = corpus_distillation.settings_of(teacher)
    run_pretraining.start(settings, corpus_distillation.CorpusDistillation(teacher))
    return None
  teacher = distillation.find_teacher(values.teacher)
  settings = distillation.settings_of(teacher)
  is_tinybert = settings.method == "tinybert"
  teaching = tinybert.TinyBertDistillation if is_tinybert else distillation.TaskDistillation
  code = None
  for stage in tinybert.stages_of(settings):
    code = engine.start(teacher.kind.task_class(), stage, teaching(teacher))
  return code


if __name__ == "__main__":
  command_line.run(main, define_flags)
