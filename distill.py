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

import sys

from absl import flags

from bert import run_classifier, run_ner, run_pretraining, run_squad, run_swag
from bert.scripts import (
  command_line,
  distill_flags,
  distill_tinybert,
  distilling,
  distilling_records,
)

# Script -> its module, and the class of its runs.
_SCRIPTS = {
  "run_classifier": (run_classifier, run_classifier.Classification),
  "run_ner": (run_ner, run_ner.Tagging),
  "run_squad": (run_squad, run_squad.QuestionAnswering),
  "run_swag": (run_swag, run_swag.MultipleChoice),
  "run_pretraining": (run_pretraining, run_pretraining.PreTraining),
}


def define_flags() -> None:
  """Defines the flags of distillation, and those of the script that the command line is about."""
  script = distill_flags.script_of(sys.argv)
  _SCRIPTS[script][0].define_flags()
  distill_flags.define_flags(script)
  distill_tinybert.define_flags()


def main(_) -> int | None:
  """Trains, evaluates, predicts and exports as the flags say."""
  values = flags.FLAGS
  kind: type[distilling.Taught]
  if distill_flags.is_on_records(values.method, values.stage):
    module, run_class = _SCRIPTS[distill_flags.ON_RECORDS]
    teacher = distilling_records.find_teacher(values.teacher)
    settings = distilling_records.settings_of(teacher)
    kind = distilling_records.OnRecords
  else:
    teacher = distilling.find_teacher(values.teacher)
    module, run_class = _SCRIPTS[distill_flags.SCRIPTS[teacher.task]]
    settings = distilling.settings_of(teacher)
    is_tinybert = settings.method == "tinybert"
    kind = distill_tinybert.TinyBert if is_tinybert else distilling.Distilled
  distill_tinybert.check(settings)
  code = None
  for stage in distill_tinybert.stages_of(settings):
    code = module.start(stage, distilling.class_of(run_class, teacher, kind))
  return code


if __name__ == "__main__":
  command_line.run(main, define_flags)
