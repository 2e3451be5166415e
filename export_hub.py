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

from absl import logging

from bert.io import installation
from bert.scripts import command_line, flag_groups, model_exports, resolution
from bert.scripts.run_settings import ModelFiles
from bert.scripts.settings import Path, Settings, UsageError, setting


class OtherFormats(Settings, title="onnx and litert"):
  """What only other formats have."""

  head: str = setting(
    "task",
    "task: the model of the task that the checkpoint was fine-tuned for, if it was; none: the "
    "encoder.",
    choices=["task", "none"],
  )
  int8: bool = setting(False, "Also write a model with weights of 8 bits.")
  float16: bool = setting(False, "Also write a model with weights of 16 bits (litert).")
  eval_file: str | None = setting(
    None,
    "A labelled file of the task, such as its dev.tsv: what int8 and float16 cost there is "
    "written to accuracy.json and to the model card.",
    path=Path(),
  )


class ExportSettings(OtherFormats, ModelFiles, title="Output"):
  """The settings of this script."""

  export_dir: str = setting(None, "Folder to write.", path=Path(local=True))
  format: list[str] = setting(
    [model_exports.SAVED_MODEL],
    f"What to write, one or several of {', '.join(model_exports.FORMATS)}. saved_model: "
    "preprocess/ and encoder/.",
  )
  task_model: bool = setting(
    False,
    "Also write task/, the model of the task that the checkpoint was fine-tuned for, as the "
    "run_*.py scripts do with --do_export.",
  )

  required = ("init_checkpoint", "export_dir", "vocab_file", "bert_config_file")


define_flags = functools.partial(flag_groups.define, ExportSettings)


def main(_) -> None:
  """Writes the exports."""
  settings = flag_groups.read(ExportSettings)
  wanted = model_exports.Wanted.of_flags(settings)
  _check_export_dir(settings, wanted)
  writes_saved_models = model_exports.SAVED_MODEL in wanted.formats
  if writes_saved_models:
    installation.check_text_operations("An export that reads text")
  if not settings.init_checkpoint or not settings.export_dir:
    settings.check_required()  # before a large download
  settings.check()
  settings = resolution.with_readable_length(resolution.resolve(settings), as_trained=True)
  config, _ = resolution.load_config_and_tokenizer(settings)
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
    raise UsageError(
      f"--export_dir={settings.export_dir} holds task/, the model of a fine-tuned task, which this "
      "export would not renew. Give another --export_dir, or remove that folder."
    )
  if settings.task_model and model_exports.SAVED_MODEL not in wanted.formats:
    raise UsageError("--task_model is for --format=saved_model.")
  model_exports.check_folder(settings.export_dir, wanted)


if __name__ == "__main__":
  command_line.run(main, define_flags)
