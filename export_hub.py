"""Writes a checkpoint as two SavedModels for TensorFlow Hub: `preprocess/` and `encoder/`.

  python export_hub.py --init_checkpoint=uncased_L-12_H-768_A-12 --export_dir=/tmp/bert

  preprocess = hub.KerasLayer("/tmp/bert/preprocess")
  encoder = hub.KerasLayer("/tmp/bert/encoder", trainable=True)
  encoder(preprocess(["Hello!"]))["pooled_output"]

--init_checkpoint may be a released model's name, any checkpoint of this project or the original, or
an encoder exported before. Optimizer state and task heads stay behind; the masked language model's
head, where there is one, becomes `encoder.mlm`. The encoder needs nothing but `tensorflow` wherever
it is loaded; the preprocess model needs `import tensorflow_text` before.
"""

from absl import flags, logging

from bert.scripts import command_line, flag_groups, runner

FLAGS = flags.FLAGS


def define_flags() -> None:
  """Defines this script's flags."""
  with flag_groups.flag_group("Output"):
    flags.DEFINE_string("export_dir", None, "Folder for preprocess/ and encoder/.")
    flags.DEFINE_bool(
      "tf_text_tokenizer",
      False,
      "Tokenize as the published preprocess models do, which differs from BERT's own tokenizer in "
      "rare characters, and not exactly as in training.",
    )
  runner.define_model_flags(runs_model=False)
  flag_groups.mark_required(["init_checkpoint", "export_dir", "vocab_file", "bert_config_file"])


def main(_) -> None:
  """Exports as the flags say."""
  if not FLAGS.init_checkpoint or not FLAGS.export_dir:
    command_line.check_required()  # before gigabytes are fetched for nothing
  runner.check_flag("max_seq_length", lambda value: value >= 3, "at least 3")
  runner.resolve_model_files()
  if not FLAGS.vocab_file or not FLAGS.bert_config_file:
    from bert.checkpoints import checkpoint

    checkpoint.find_checkpoint(FLAGS.init_checkpoint)  # If it is not there, neither are they.
  command_line.check_required()
  config, _ = runner.load_config_and_tokenizer()
  runner.export_hub_models(FLAGS.export_dir, config, FLAGS.init_checkpoint, FLAGS.tf_text_tokenizer)
  logging.info("Use them with hub.KerasLayer; %s serves as --init_checkpoint.", FLAGS.export_dir)


if __name__ == "__main__":
  command_line.run(main, define_flags)
