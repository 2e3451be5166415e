"""Inspects and converts checkpoints: `python convert_checkpoint.py COMMAND --flags`.

inspect: names, shapes, types, numbers of parameters.

  python convert_checkpoint.py inspect --init_checkpoint=$BERT_BASE_DIR/bert_model.ckpt

strip: removes the state of the training run, two thirds of the file.

  python convert_checkpoint.py strip --init_checkpoint=/tmp/pretraining_output --output_dir=small

resize_vocab: fits a model to another vocabulary. Tokens of the old vocabulary keep their
rows under their new ids; a new one starts as the mean of its pieces in the old vocabulary.

  python convert_checkpoint.py resize_vocab --init_checkpoint=$BERT_BASE_DIR/bert_model.ckpt \\
    --old_vocab_file=$BERT_BASE_DIR/vocab.txt --vocab_file=medical_vocab.txt --output_dir=medical

from_saved_model: writes the variables of an encoder that export_hub.py made as a checkpoint, for
programs that read only checkpoints, such as those of TensorFlow 1.

  python convert_checkpoint.py from_saved_model --init_checkpoint=encoder --output_dir=small

to_transformers: writes a folder that transformers loads, of the class for the head of the
model: config.json, model.safetensors, vocab.txt, tokenizer_config.json. Outputs are the same.
A model of run_similarity.py becomes a folder of sentence-transformers as well.

  python convert_checkpoint.py to_transformers --init_checkpoint=/tmp/mrpc_output --output_dir=mrpc

from_transformers: writes the model of such a folder as a checkpoint, with identical values. The
folder's weights may also be in tf_model.h5 or pytorch_model.bin.

  python convert_checkpoint.py from_transformers --init_checkpoint=mrpc --output_dir=small

from_keras: writes the model in a .keras file as a checkpoint, with identical values. Keras loads
the file; all other commands and scripts take the checkpoint.

  python convert_checkpoint.py from_keras --init_checkpoint=model.keras --output_dir=small

from_model_garden: writes an encoder of the TensorFlow Model Garden (tensorflow/models,
official/nlp), its checkpoint or its SavedModel from TensorFlow Hub, as a checkpoint with the
original's names and identical values. All other commands take both as well.

  python convert_checkpoint.py from_model_garden --init_checkpoint=garden --output_dir=small

--init_checkpoint is a prefix, a folder of a run, of a released model or of transformers, an
exported encoder, or one of the Model Garden. --output_dir is a new folder, which can serve as
--init_checkpoint. It also gets bert_config.json, vocab.txt and label_map.json if they are known. A
fine-tuned model keeps its task and its labels: predict.py answers with the new folder.
"""

import bert  # isort: skip  # noqa: F401  from here on Ctrl-C is one line, also while importing

import contextlib
import json
import math
import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence

from absl import flags, logging

from bert import families
from bert.checkpoints import (
  config_files,
  formats,
  label_map,
  load_report,
  model_files,
  model_garden,
  model_source,
  sentence_pooling,
  transformers_folder,
  transformers_heads,
)
from bert.checkpoints.bundle_files import IN_SAVED_MODEL, KERAS_SUFFIX, CheckpointError
from bert.checkpoints.model_files import ModelFiles
from bert.families import form
from bert.io import atomic_files, filesystem, installation, vocabulary_kind
from bert.io.wording import aligned, counted
from bert.model.configuration import BertConfig
from bert.scripts import command_line, flag_groups, path_flags, run_files, shared_flags
from bert.text import tokenizer_kinds, vocabulary_file
from bert.text.vocabulary import TokenSplitter
from bert.tokenization import load_vocab, validate_case_matches_checkpoint, vocabulary_hash
from bert.training import hardware

FLAGS = flags.FLAGS

_NEEDED_FLAGS = {
  "inspect": [],
  "strip": ["output_dir"],
  "resize_vocab": ["output_dir", "vocab_file"],
  "from_saved_model": ["output_dir"],
  "to_transformers": ["output_dir"],
  "from_transformers": ["output_dir"],
  "from_keras": ["output_dir"],
  "from_model_garden": ["output_dir"],
}
_SLOT = re.compile(r"(.+)/(adam_[mv])")  # of the optimizer
# These commands read a checkpoint, not a folder of transformers.
_NEED_A_CHECKPOINT = ("strip", "resize_vocab", "to_transformers")


def define_flags() -> None:
  """Defines this script's flags."""
  with flag_groups.flag_group("All commands"):
    flags.DEFINE_enum("command", None, list(_NEEDED_FLAGS), "What to do; also as the first word.")
    path_flags.define(
      "init_checkpoint", None, "The checkpoint to read, as described above.", is_model=True
    )
    path_flags.define(
      "output_dir", None, "The folder to write, for all commands but inspect.", local=True
    )
    path_flags.define(
      "bert_config_file", None, "Sizes of the model. Default: beside --init_checkpoint."
    )
    path_flags.define(
      "vocab_file",
      None,
      "resize_vocab: the new vocabulary. Otherwise the model's; default: beside --init_checkpoint.",
    )
    shared_flags.define_spm_model_file()
  with flag_groups.flag_group("resize_vocab"):
    path_flags.define(
      "old_vocab_file", None, "The vocabulary of --init_checkpoint. Default: beside it."
    )
    flags.DEFINE_integer("random_seed", 12345, "Seed for the rows of new tokens without pieces.")
  with flag_groups.flag_group("to_transformers"):
    flags.DEFINE_bool("do_lower_case", True, "True for uncased models, False for cased ones.")
    flags.DEFINE_enum(
      "head",
      None,
      list(transformers_heads.HEADS),
      "The task of the model, which determines the class. Default: that of its run, else guessed "
      "from its variables: a classifier is then assumed to be for sentences, but may be one of "
      "tokens.",
    )


def main(_) -> None:
  """Runs a command."""
  _check_flags()
  hardware.start_tensorflow()
  from bert.checkpoints import finding

  if FLAGS.command == "from_keras":
    prefix = model_source.local_path(FLAGS.init_checkpoint)
  else:
    prefix = finding.find_checkpoint(FLAGS.init_checkpoint)
  if FLAGS.command == "inspect":
    print(table_of(prefix))
    return
  _check_kind(prefix)
  with new_folder(FLAGS.output_dir):
    _COMMANDS[FLAGS.command](prefix, _files_of(prefix))


def _check_flags() -> None:
  if FLAGS.command is None:
    raise command_line.UsageError(f"Give a command as the first word: {', '.join(_NEEDED_FLAGS)}.")
  for name in ["init_checkpoint", *_NEEDED_FLAGS[FLAGS.command]]:
    if not FLAGS[name].value:
      raise command_line.UsageError(f"{FLAGS.command} needs --{name}.")
  reason = f"{FLAGS.command} does not use it"
  if FLAGS.command != "resize_vocab":
    command_line.explain_ignored_flags(dict.fromkeys(["old_vocab_file", "random_seed"], reason))
  if FLAGS.command != "to_transformers":
    command_line.explain_ignored_flags(dict.fromkeys(["do_lower_case", "head"], reason))


def _check_kind(prefix: str) -> None:
  """Checks that the command reads checkpoints of this kind."""
  from bert.checkpoints import reading

  if FLAGS.command == "from_keras":
    if not prefix.endswith(KERAS_SUFFIX):
      raise command_line.UsageError(f"{FLAGS.init_checkpoint} is not a .keras file.")
    return
  is_transformers = reading.is_of_transformers(prefix)
  if FLAGS.command == "from_saved_model" and not prefix.endswith(IN_SAVED_MODEL):
    raise command_line.UsageError(
      f"{FLAGS.init_checkpoint} is a checkpoint already. Without its training state: strip."
    )
  if is_transformers and FLAGS.command in _NEED_A_CHECKPOINT:
    raise command_line.UsageError(
      f"{FLAGS.init_checkpoint} was saved by transformers. First make a checkpoint of it: "
      "from_transformers."
    )
  if FLAGS.command == "from_transformers" and not is_transformers:
    raise command_line.UsageError(f"{FLAGS.init_checkpoint} was not saved by transformers.")
  if FLAGS.command == "from_model_garden" and not model_garden.holds_encoder(prefix):
    raise command_line.UsageError(f"{FLAGS.init_checkpoint} is not of the Model Garden.")


@contextlib.contextmanager
def new_folder(folder: str) -> Iterator[None]:
  """Makes the folder of a model; if the block fails, it is removed.

  Raises:
    CheckpointError: it holds a model already, such as that of a running training.
    OSError: it cannot be written.
  """
  made = os.path.abspath(folder)  # the first folder on the way there that does not exist
  if os.path.exists(made):
    made = ""
  while made and not os.path.exists(os.path.dirname(made)):
    made = os.path.dirname(made)
  try:
    _prepare(folder)
    yield
  except BaseException:
    if made:
      shutil.rmtree(made, ignore_errors=True)
    raise


def _prepare(folder: str) -> None:
  if filesystem.is_remote(folder):
    raise CheckpointError(f"--output_dir={folder} is remote. Write to a local folder and copy it.")
  os.makedirs(folder, exist_ok=True)
  endings = (".index", ".safetensors", "saved_model.pb", "saved_model.pbtxt")
  names = os.listdir(folder)
  if any(name.endswith(endings) for name in names) or formats.is_folder_of_others(names):
    raise CheckpointError(f"--output_dir={folder} holds a model already. Give a new folder.")
  atomic_files.check_writable(folder)


def _do_lower_case(prefix: str) -> bool:
  """`--do_lower_case` if it was given, else as the model was trained, if that is known."""
  from bert.checkpoints import reading

  checkpoint = reading.open_checkpoint(prefix)
  stored = checkpoint.do_lower_case
  is_given = command_line.flag_was_given("do_lower_case")
  case = FLAGS.do_lower_case if is_given or stored is None else stored
  validate_case_matches_checkpoint(case, prefix)
  model_files.check_case(case, checkpoint)
  return case


def _files_of(prefix: str) -> ModelFiles:
  """The configuration and the vocabulary of the checkpoint: as flags name them, or beside it."""
  found = model_files.find(prefix)
  asked = FLAGS.spm_model_file or FLAGS.vocab_file
  if FLAGS.command == "resize_vocab":
    asked = FLAGS.old_vocab_file
  return ModelFiles(FLAGS.bert_config_file or found.config, asked or found.vocabulary)


def _check_files(files: ModelFiles, prefix: str, vocabulary_flag: str = "vocab_file") -> None:
  for path, flag in ((files.config, "bert_config_file"), (files.vocabulary, vocabulary_flag)):
    if path is None:
      raise command_line.UsageError(
        f"{FLAGS.command} needs --{flag}: it was not found beside {prefix}."
      )


def name_command(argv: Sequence[str]) -> list[str]:
  """Converts the command, given as the first word, to a flag.

  Example:
    >>> name_command(["convert_checkpoint.py", "inspect", "--init_checkpoint=a"])
    ['convert_checkpoint.py', '--command=inspect', '--init_checkpoint=a']
  """
  program, *words = argv
  if words and not words[0].startswith("-"):
    words[0] = f"--command={words[0]}"
  return [program, *words]


# ---------------------------------------------------------------------------------------------
# The commands.


def table_of(prefix: str) -> str:
  """Makes a table of the tensors in a checkpoint, and totals.

  The slots of the optimizer are in the line of their variable.
  """
  from bert.checkpoints import reading

  contents = reading.names_and_shapes(prefix)
  slots_of: dict[str, list[str]] = {}
  for match in filter(None, map(_SLOT.fullmatch, contents)):
    slots_of.setdefault(match[1], []).append(match[2])
  model = [name for name in contents if not load_report.is_training_state(name)]
  alone = [name for name in slots_of if name not in contents]
  rows = [("name", "shape", "type", "parameters", "slots")]
  for name in sorted(model + alone, key=_natural_order):
    shape, dtype = contents.get(name) or contents[f"{name}/{slots_of[name][0]}"]
    count = f"{math.prod(shape):,}" if name in contents else "none"
    slots = ", ".join(slots_of.get(name, []))
    rows.append((name, str(list(shape)), dtype.name, count, slots))
  totals = [f"Model: {_total(contents, model)}", f"In all: {_total(contents, contents)}"]
  if "global_step" in contents:
    step = reading.read_tensors(prefix, ["global_step"])["global_step"]
    totals.append(f"global_step: {int(step)}")
  return "\n".join([prefix, "", *aligned(rows), "", *totals])


def _natural_order(name: str) -> list:
  """Sorts layer 10 behind layer 9.

  Example:
    >>> sorted(["layer_10", "layer_9"], key=_natural_order)
    ['layer_9', 'layer_10']
  """
  return [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", name)]


def _total(contents, names) -> str:
  sizes = [(math.prod(contents[name][0]), contents[name][1].itemsize) for name in names]
  size_mb = sum(count * width for count, width in sizes) / 1e6
  count = sum(count for count, _ in sizes)
  return f"{len(sizes)} tensors, {count:,} parameters, {size_mb:,.1f} MB"


def _strip(prefix: str, files: ModelFiles) -> None:
  """strip, from_saved_model: values are bit-identical."""
  from bert.checkpoints import reading

  tensors = reading.read_tensors(prefix, _without_training_state(prefix))
  if files.config and formats.describes_model(files.config):
    _write_config(_read_config(files.config))
  elif files.config:
    atomic_files.copy_file(files.config, os.path.join(FLAGS.output_dir, run_files.CONFIG))
  if files.vocabulary:
    _copy_vocabulary(files.vocabulary)
  _write_checkpoint(prefix, tensors, *_task_of(prefix))


def _resize_vocab(prefix: str, files: ModelFiles) -> None:
  from bert.checkpoints import reading
  from bert.checkpoints.resizing import resize_vocabulary

  _check_files(files, prefix, "old_vocab_file")
  for flag, path in (("old_vocab_file", files.vocabulary), ("vocab_file", FLAGS.vocab_file)):
    if vocabulary_kind.saved_vocabulary_name(path) != vocabulary_kind.VOCABULARY:
      raise command_line.UsageError(
        f"--{flag}={path}: resize_vocab reads vocabularies of a token per line (vocab.txt) alone. "
        "The pieces of a sentencepiece model or of byte pairs cannot be exchanged one by one."
      )
  config = _read_config(files.config)
  old_tokens = vocabulary_file.read_tokens(files.vocabulary)
  new_tokens = vocabulary_file.read_tokens(FLAGS.vocab_file)
  tensors = resize_vocabulary(
    reading.read_tensors(prefix, reading.names_and_shapes(prefix)),
    old_tokens,
    new_tokens,
    initializer_range=config.get("initializer_range", 0.02),
    seed=FLAGS.random_seed,
    split=TokenSplitter(old_tokens).split,
  )
  _write_config({**config, "vocab_size": len(new_tokens)})
  vocab_file = os.path.join(FLAGS.output_dir, vocabulary_kind.VOCABULARY)
  vocabulary_file.write_tokens(vocab_file, new_tokens)
  _write_files(tokenizer_kinds.kept_settings(files.vocabulary, with_case=True))
  facts, settings = _task_of(prefix)
  if facts:
    digest = vocabulary_hash(load_vocab(vocab_file))
    facts = {**facts, "vocab_size": len(new_tokens), "vocabulary": digest}
  _write_checkpoint(prefix, tensors, facts, settings)


def _to_transformers(prefix: str, files: ModelFiles) -> None:
  from bert.checkpoints import reading

  _check_files(files, prefix)
  case = _do_lower_case(prefix)
  config = _read_config(files.config)
  kept = _without_training_state(prefix)
  facts, settings = _task_of(prefix)
  labels = label_map.labels_of(prefix)
  head = transformers_heads.guess_head(kept, {**facts, "labels": labels})
  asked = transformers_heads.HEADS.get(FLAGS.head)
  if "head" in facts and not asked:
    raise command_line.UsageError(
      f"transformers has no class for the head of the task {facts['task_name']}, which is one of a "
      "user's own. --head=none converts the encoder alone."
    )
  if asked and asked != head.name:
    transformers_heads.check_head(FLAGS.head, kept)
    head = transformers_heads.Head(asked)
  model = BertConfig.from_dict(config)
  if model.family is not families.BERT:
    config = model.to_dict()  # with its family's values of what the file leaves out
  if head.name == form.MASKED_TOKENS and any(name.startswith("generator/") for name in kept):
    config = model.generator_config().to_dict()
  if pooling := facts.get("pooling"):
    length = settings.get("max_seq_length", 128)
    sentence_pooling.write_sentence_transformers(
      FLAGS.output_dir, pooling, config["hidden_size"], length
    )
  path = transformers_folder.write_folder(
    FLAGS.output_dir,
    config,
    reading.read_tensors(prefix, kept),
    files.vocabulary,
    case,
    head,
    model.family.name,
  )
  logging.info("Wrote %s, a %s.", path, transformers_folder.read_architecture(path))
  if pooling:
    logging.info("SentenceTransformer(%r) loads it, too: pooling %s.", FLAGS.output_dir, pooling)


def _from_keras(path: str, files: ModelFiles) -> None:
  with installation.extra("keras", "from_keras"):
    from bert.keras3 import saving
  from bert.checkpoints import loading

  described, tensors, facts = saving.contents(loading.load_keras(path))
  case = transformers_folder.read_do_lower_case(path)
  _write_config(described.config)
  if files.vocabulary:
    _copy_vocabulary(files.vocabulary)
  facts = {**facts, **({} if case is None else {"do_lower_case": case})}
  _write_checkpoint(path, tensors, facts, {})


def _from_model_garden(prefix: str, files: ModelFiles) -> None:
  if left_out := model_garden.open_encoder(prefix).left_out:
    count = counted(len(left_out), "variable")
    logging.warning("%s of other parts left out: %s.", count, load_report.abbreviate(left_out))
  _strip(prefix, files)


def _from_transformers(prefix: str, files: ModelFiles) -> None:
  if files.config is None:
    raise command_line.UsageError(f"{prefix} has no {transformers_folder.CONFIG} beside it.")
  config = config_files.read(files.config)
  weights = transformers_folder.open_weights(prefix)
  tensors = transformers_folder.tensors_of(weights)
  if unknown := weights.names_unchanged():
    logging.warning(
      "Names unchanged: %s: %s.", counted(len(unknown), "tensor"), load_report.abbreviate(unknown)
    )
  _write_config(config)
  if files.vocabulary:
    _copy_vocabulary(files.vocabulary)
  elif refusal := model_files.tokenizer_refusal(prefix):
    logging.warning("No vocabulary is written. %s", refusal)
  _write_checkpoint(prefix, tensors, *_task_of(prefix))


_COMMANDS = {
  "strip": _strip,
  "from_saved_model": _strip,
  "resize_vocab": _resize_vocab,
  "to_transformers": _to_transformers,
  "from_transformers": _from_transformers,
  "from_keras": _from_keras,
  "from_model_garden": _from_model_garden,
}


def _without_training_state(prefix: str) -> list[str]:
  """Names of the model's variables in a checkpoint, without those of the optimizer."""
  from bert.checkpoints import reading

  names = reading.names_and_shapes(prefix)
  kept = [name for name in names if not load_report.is_training_state(name)]
  logging.info("%s: removing %d of %d tensors.", prefix, len(names) - len(kept), len(names))
  return kept


def _read_config(path: str) -> dict:
  BertConfig.from_json_file(path)  # checks the sizes
  return config_files.read(path)


def _task_of(prefix: str) -> tuple[dict, dict]:
  """What is known of the task of a fine-tuned model, and the settings of its run."""
  from bert.checkpoints import reading

  return reading.read_facts(prefix), reading.read_state(prefix).get("informative", {})


def _copy_vocabulary(path: str) -> None:
  _write_files(tokenizer_kinds.kept_files(path, with_case=True))


def _write_files(contents: Mapping[str, bytes]) -> None:
  for name, content in contents.items():
    atomic_files.write_bytes(os.path.join(FLAGS.output_dir, name), content)


def _write_config(config: Mapping) -> None:
  path = os.path.join(FLAGS.output_dir, run_files.CONFIG)
  atomic_files.write_text(path, json.dumps(config, indent=2) + "\n")


def _write_checkpoint(prefix: str, tensors: Mapping, facts: Mapping, settings: Mapping) -> None:
  """Writes the labels of a model and its checkpoint, after all other files of the folder."""
  from bert.checkpoints import saving

  if labels := facts.get("labels") or label_map.labels_of(prefix):
    label_map.write(FLAGS.output_dir, labels)
  state = {"fingerprint": facts, "informative": settings} if facts else {}
  step = int(tensors.get("global_step", 0))
  logging.info("Wrote %s.", saving.save(FLAGS.output_dir, step, tensors, state, keep=None))


if __name__ == "__main__":
  command_line.run(main, define_flags, name_command(sys.argv))
