"""Exports a checkpoint: as SavedModels for TensorFlow Hub, as ONNX, for LiteRT.

  python export_hub.py --init_checkpoint=uncased_L-12_H-768_A-12 --export_dir=/tmp/bert

writes two SavedModels, `preprocess/` and `encoder/`:

  preprocess = hub.KerasLayer("/tmp/bert/preprocess")
  encoder = hub.KerasLayer("/tmp/bert/encoder", trainable=True)
  encoder(preprocess(["Hello!"]))["pooled_output"]

--init_checkpoint may be a released model's name, any checkpoint of this project or the original, a
folder of transformers, or an encoder exported before. Optimizer state and task heads are not
exported; the head for masked words, if the checkpoint has it, becomes `encoder.mlm`. To load the
encoder, only `tensorflow` is needed; the preprocess model also needs `import tensorflow_text`.

  python export_hub.py --init_checkpoint=/tmp/mrpc_output --export_dir=/tmp/mrpc \\
    --format=onnx,litert --int8

writes one folder with the model of the run's task, its vocabulary and a model card, which
`Predictor.load`, transformers.js and sentence-transformers read (docs/exports.md). Of a checkpoint
without a task, and with --head=none, it is the encoder.
"""

import bert  # isort: skip  # noqa: F401  from here on Ctrl-C is one line, also while importing

import functools
import os

from absl import flags, logging

from bert.io import installation
from bert.scripts import (
  command_line,
  flag_groups,
  model_exports,
  model_flags,
  path_flags,
  run_settings,
  shared_flags,
)

FLAGS = flags.FLAGS


def define_flags() -> None:
  """Defines this script's flags."""
  with flag_groups.flag_group("Output"):
    path_flags.define("export_dir", None, "Folder to write.", local=True)
    flags.DEFINE_list(
      "format",
      [model_exports.SAVED_MODEL],
      f"What to write, one or several of {', '.join(model_exports.FORMATS)}. saved_model: "
      "preprocess/ and encoder/.",
    )
    flags.DEFINE_bool(
      "task_model",
      False,
      "Also write task/, the model of the task that the checkpoint was fine-tuned for, as the "
      "run_*.py scripts do with --do_export.",
    )
  with flag_groups.flag_group("onnx and litert"):
    flags.DEFINE_enum(
      "head",
      "task",
      ["task", "none"],
      "task: the model of the task that the checkpoint was fine-tuned for, if it was; none: the "
      "encoder.",
    )
    flags.DEFINE_bool("int8", False, "Also write a model with weights of 8 bits.")
    flags.DEFINE_bool("float16", False, "Also write a model with weights of 16 bits (litert).")
    path_flags.define(
      "eval_file",
      None,
      "A labelled file of the task, such as its dev.tsv: what int8 and float16 cost there is "
      "written to accuracy.json and to the model card.",
    )
  shared_flags.define_model_flags(runs_model=False)
  flag_groups.mark_required(["init_checkpoint", "export_dir", "vocab_file", "bert_config_file"])


def main(_) -> None:
  """Writes the exports."""
  settings = run_settings.from_flags()
  wanted = model_exports.Wanted.of_flags(settings)
  _check_export_dir(settings, wanted)
  writes_saved_models = model_exports.SAVED_MODEL in wanted.formats
  if writes_saved_models:
    installation.check_text_operations("An export that reads text")
  if not settings.init_checkpoint or not settings.export_dir:
    command_line.check_required()  # before a large download
  settings.check_at_least(3, "max_seq_length")
  settings = model_flags.with_readable_length(run_settings.resolve(settings), as_trained=True)
  config, _ = run_settings.load_config_and_tokenizer(settings)
  write_saved_models = functools.partial(_write_saved_models, settings, config)
  if not wanted.others:
    write_saved_models(settings.export_dir)
    return
  described = model_exports.describe(settings, config, with_head=settings.head != "none")
  checkpoint = settings.init_checkpoint
  model_exports.export(settings.export_dir, wanted, described, checkpoint, write_saved_models)


def _write_saved_models(settings, config, export_dir: str) -> None:
  """Writes TensorFlow's models into a folder."""
  if settings.task_model:
    described = model_exports.describe(settings, config)
    model_exports.export_task_model(export_dir, described, settings.init_checkpoint)
  model = (settings.init_checkpoint, settings.vocab_file, settings.do_lower_case)
  model_exports.export_hub_models(export_dir, config, *model, settings.max_seq_length)
  logging.info("Use them with hub.KerasLayer; %s serves as --init_checkpoint.", settings.export_dir)


def _check_export_dir(settings, wanted: model_exports.Wanted) -> None:
  """Refuses to renew a part of an export's models: the others would stay those of another one."""
  task = os.path.join(settings.export_dir or "", "task")
  if settings.export_dir and not settings.task_model and os.path.exists(task):
    raise command_line.UsageError(
      f"--export_dir={settings.export_dir} holds task/, the model of a fine-tuned task, which this "
      "export would not renew. Give another --export_dir, or remove that folder."
    )
  if settings.task_model and model_exports.SAVED_MODEL not in wanted.formats:
    raise command_line.UsageError("--task_model is for --format=saved_model.")
  model_exports.check_folder(settings.export_dir, wanted)


if __name__ == "__main__":
  command_line.run(main, define_flags)
