"""Writes a checkpoint as two SavedModels for TensorFlow Hub: `preprocess/` and `encoder/`.

  python export_hub.py --init_checkpoint=uncased_L-12_H-768_A-12 --export_dir=/tmp/bert

  preprocess = hub.KerasLayer("/tmp/bert/preprocess")
  encoder = hub.KerasLayer("/tmp/bert/encoder", trainable=True)
  encoder(preprocess(["Hello!"]))["pooled_output"]

--init_checkpoint may be a released model's name, any checkpoint of this project or the original, a
folder of transformers, a .keras file, or an encoder exported before. Optimizer state and task heads
are not exported; the head for masked words, if the checkpoint has it, becomes `encoder.mlm`. To
load the encoder, only `tensorflow` is needed; the preprocess model also needs `import
tensorflow_text`.
"""

import bert  # isort: skip  # noqa: F401  from here on Ctrl-C is one line, also while importing

import json
import os

from absl import flags, logging

from bert.io import installation
from bert.scripts import (
  command_line,
  exports,
  flag_groups,
  model_flags,
  path_flags,
  run_settings,
  shared_flags,
)

FLAGS = flags.FLAGS


def define_flags() -> None:
  """Defines this script's flags."""
  with flag_groups.flag_group("Output"):
    path_flags.define("export_dir", None, "Folder for preprocess/ and encoder/.", local=True)
    flags.DEFINE_bool(
      "tf_text_tokenizer",
      False,
      "Tokenize as the published preprocess models do, which differs from BERT's own tokenizer in "
      "rare characters, and not exactly as in training.",
    )
    flags.DEFINE_string(
      "task_model",
      None,
      "JSON that describes the model of a fine-tuned task, to write task/ as well. The run_*.py "
      "scripts give it with --do_export.",
    )
  shared_flags.define_model_flags(runs_model=False)
  flag_groups.mark_required(["init_checkpoint", "export_dir", "vocab_file", "bert_config_file"])


def main(_) -> None:
  """Writes the exports."""
  settings = run_settings.from_flags()
  _check_export_dir(settings)
  installation.check_text_operations("An export that reads text")
  if not settings.init_checkpoint or not settings.export_dir:
    command_line.check_required()  # before a large download
  settings.check_at_least(3, "max_seq_length")
  settings = model_flags.with_readable_length(run_settings.resolve(settings), as_trained=True)
  config, _ = run_settings.load_config_and_tokenizer(settings)
  model = (settings.init_checkpoint, settings.vocab_file, settings.do_lower_case)
  if settings.task_model:
    exports.export_task_model(settings.export_dir, config, *model, json.loads(settings.task_model))
  exports.export_hub_models(
    settings.export_dir, config, *model, settings.max_seq_length, settings.tf_text_tokenizer
  )
  logging.info("Use them with hub.KerasLayer; %s serves as --init_checkpoint.", settings.export_dir)


def _check_export_dir(settings) -> None:
  """Refuses to renew two of an export's three models: `task/` would stay that of another one."""
  task = os.path.join(settings.export_dir or "", "task")
  if settings.export_dir and not settings.task_model and os.path.exists(task):
    raise command_line.UsageError(
      f"--export_dir={settings.export_dir} holds task/, the model of a fine-tuned task, which this "
      "export would not renew. Give another --export_dir, or remove that folder."
    )


if __name__ == "__main__":
  command_line.run(main, define_flags)
