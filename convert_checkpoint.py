"""Looks into checkpoints and changes them: `python convert_checkpoint.py COMMAND --flags`.

inspect: names, shapes, types, numbers of parameters.

  python convert_checkpoint.py inspect --init_checkpoint=$BERT_BASE_DIR/bert_model.ckpt

strip: leaves out what only the training run needed, two thirds of the file.

  python convert_checkpoint.py strip --init_checkpoint=/tmp/pretraining_output --output_dir=small

resize_vocab: fits a model to another vocabulary. Tokens that were there keep their rows, wherever
they have moved; a new one starts as the mean of the pieces that it was split into before.

  python convert_checkpoint.py resize_vocab --init_checkpoint=$BERT_BASE_DIR/bert_model.ckpt \\
    --old_vocab_file=$BERT_BASE_DIR/vocab.txt --vocab_file=medical_vocab.txt --output_dir=medical

to_saved_model: exports the encoder for `tf.saved_model.load` and `hub.KerasLayer`.

  python convert_checkpoint.py to_saved_model --init_checkpoint=small --output_dir=encoder

from_saved_model: writes the variables of an exported encoder as a checkpoint again, for programs
that read nothing else, TensorFlow 1's among them.

  python convert_checkpoint.py from_saved_model --init_checkpoint=encoder --output_dir=small

to_transformers: writes a folder that transformers loads, of the class that fits the head on the
model: config.json, model.safetensors, vocab.txt, tokenizer_config.json. Outputs are the same.

  python convert_checkpoint.py to_transformers --init_checkpoint=/tmp/mrpc_output \\
    --vocab_file=$BERT_BASE_DIR/vocab.txt --output_dir=mrpc

from_transformers: writes the model of such a folder as a checkpoint, bit for bit as it was.

  python convert_checkpoint.py from_transformers --init_checkpoint=mrpc --output_dir=small

--init_checkpoint is a prefix, a folder of a run, of a released model or of transformers, or an
exported encoder. --output_dir is a new folder, and serves as --init_checkpoint. It gets
bert_config.json and vocab.txt, too, if they are beside the checkpoint.
"""

import glob
import json
import math
import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from absl import flags, logging

from bert.checkpoints import transformers_folder
from bert.io import atomic_files
from bert.scripts import command_line, flag_groups

__all__ = ["inspect", "main", "resize_vocabulary", "strip"]

FLAGS = flags.FLAGS

EMBEDDINGS = "bert/embeddings/word_embeddings"
OUTPUT_BIAS = "cls/predictions/output_bias"
_SLOT = re.compile(r"(.+)/(adam_[mv])")
_IN_SAVED_MODEL = os.path.join("variables", "variables")

_NEEDED_FLAGS = {
  "inspect": [],
  "strip": ["output_dir"],
  "resize_vocab": ["output_dir", "vocab_file"],
  "to_saved_model": ["output_dir"],
  "from_saved_model": ["output_dir"],
  "to_transformers": ["output_dir"],
  "from_transformers": ["output_dir"],
}
# What these write is a checkpoint, which --init_checkpoint has to be already.
_NEED_A_CHECKPOINT = ("strip", "resize_vocab", "to_transformers")


def define_flags() -> None:
  """Defines this script's flags."""
  with flag_groups.flag_group("All commands"):
    flags.DEFINE_enum("command", None, list(_NEEDED_FLAGS), "What to do; also as the first word.")
    flags.DEFINE_string("init_checkpoint", None, "The checkpoint to read, see above.")
    flags.DEFINE_string("output_dir", None, "The folder to write, for all commands but inspect.")
    flags.DEFINE_string(
      "bert_config_file", None, "Sizes of the model. Default: beside --init_checkpoint."
    )
    flags.DEFINE_string(
      "vocab_file",
      None,
      "resize_vocab: the new vocabulary. Otherwise the model's; default: beside --init_checkpoint.",
    )
  with flag_groups.flag_group("resize_vocab"):
    flags.DEFINE_string(
      "old_vocab_file", None, "The vocabulary until now. Default: beside --init_checkpoint."
    )
    flags.DEFINE_enum(
      "new_rows",
      "mean",
      ["mean", "random"],
      "Where new tokens start: at the mean of their old pieces, or as in an untrained model.",
    )
    flags.DEFINE_integer("random_seed", 12345, "Decides the rows of new tokens without pieces.")
  with flag_groups.flag_group("to_saved_model, to_transformers"):
    flags.DEFINE_bool("do_lower_case", True, "True for uncased models, False for cased ones.")
  with flag_groups.flag_group("to_transformers"):
    flags.DEFINE_enum(
      "head",
      None,
      list(transformers_folder.HEADS),
      "What the model is made for, which decides the class. Default: as its run says, or else its "
      "variables; a classifier is then taken to be one of sentences, though it could be one of "
      "tokens.",
    )


def main(_) -> None:
  """Carries out a command."""
  _check_flags()
  from bert.checkpoints import finding

  prefix = finding.find_checkpoint(FLAGS.init_checkpoint)
  if FLAGS.command == "inspect":
    print(inspect(prefix))
    return
  if FLAGS.command == "from_saved_model" and not prefix.endswith(_IN_SAVED_MODEL):
    raise command_line.UsageError(
      f"{FLAGS.init_checkpoint} is a checkpoint already. Without its training state: strip."
    )
  is_transformers = transformers_folder.is_weights_file(prefix)
  if is_transformers and FLAGS.command in _NEED_A_CHECKPOINT:
    raise command_line.UsageError(
      f"{FLAGS.init_checkpoint} was saved by transformers. First make a checkpoint of it: "
      "from_transformers."
    )
  if FLAGS.command == "from_transformers" and not is_transformers:
    raise command_line.UsageError(f"{FLAGS.init_checkpoint} was not saved by transformers.")
  check_output_dir(FLAGS.output_dir)
  beside = FilesBeside.find(prefix)
  if FLAGS.command == "resize_vocab":
    _resize_vocab(prefix, beside)
  elif FLAGS.command == "to_transformers":
    _to_transformers(prefix, beside)
  elif FLAGS.command == "from_transformers":
    _from_transformers(prefix, beside)
  elif FLAGS.command == "to_saved_model":
    _to_saved_model(prefix, beside)
  else:
    strip(prefix, FLAGS.output_dir, beside)


def _check_flags() -> None:
  if FLAGS.command is None:
    raise command_line.UsageError(f"Say what to do, as the first word: {', '.join(_NEEDED_FLAGS)}.")
  for name in ["init_checkpoint", *_NEEDED_FLAGS[FLAGS.command]]:
    if not FLAGS[name].value:
      raise command_line.UsageError(f"{FLAGS.command} needs --{name}.")
  reason = f"it is about another command than {FLAGS.command}"
  if FLAGS.command != "resize_vocab":
    command_line.explain_ignored_flags(
      dict.fromkeys(["old_vocab_file", "new_rows", "random_seed"], reason)
    )
  if FLAGS.command not in ("to_saved_model", "to_transformers"):
    command_line.explain_ignored_flags({"do_lower_case": reason})
  if FLAGS.command != "to_transformers":
    command_line.explain_ignored_flags({"head": reason})


def name_command(argv: Sequence[str]) -> list[str]:
  """Makes the command, given as the first word, a flag.

  Example:
    >>> name_command(["convert_checkpoint.py", "inspect", "--init_checkpoint=a"])
    ['convert_checkpoint.py', '--command=inspect', '--init_checkpoint=a']
  """
  program, *words = argv
  if words and not words[0].startswith("-"):
    words[0] = f"--command={words[0]}"
  return [program, *words]


# ---------------------------------------------------------------------------------------------
# What belongs to a checkpoint, and where results go.


class FilesBeside(NamedTuple):
  """Paths of what lies beside a checkpoint, or was named by a flag; None if there is none."""

  config: str | None
  vocabulary: str | None

  @classmethod
  def find(cls, prefix: str) -> "FilesBeside":
    """Looks in the checkpoint's folder; in an exported encoder, among its assets."""
    folder = os.path.dirname(prefix)
    exported = os.path.dirname(folder)
    asked = FLAGS.old_vocab_file if FLAGS.command == "resize_vocab" else FLAGS.vocab_file
    configs = [
      os.path.join(folder, "bert_config.json"),
      os.path.join(folder, transformers_folder.CONFIG),
      os.path.join(exported, "assets.extra", "bert_config.json"),
    ]
    vocabularies = [
      os.path.join(folder, "vocab.txt"),
      *sorted(glob.glob(os.path.join(glob.escape(exported), "assets", "*.txt"))),
    ]
    return cls(
      FLAGS.bert_config_file or next(filter(os.path.isfile, configs), None),
      asked or next(filter(os.path.isfile, vocabularies), None),
    )

  def check(self, prefix: str, vocabulary_flag: str) -> None:
    """Refuses to go on without both.

    Raises:
      UsageError: one of them was not found.
    """
    for path, flag in ((self.config, "bert_config_file"), (self.vocabulary, vocabulary_flag)):
      if path is None:
        raise command_line.UsageError(f"{FLAGS.command} needs --{flag}: none is beside {prefix}.")


def check_output_dir(folder: str) -> None:
  """Makes the folder, and refuses one that holds a model, maybe that of a running training.

  Raises:
    CheckpointError: there is a model.
    OSError: it cannot be written.
  """
  from bert.checkpoints.bundle_files import CheckpointError

  if "://" in folder:
    raise CheckpointError(f"--output_dir={folder} is remote. Write to a local folder and copy it.")
  os.makedirs(folder, exist_ok=True)
  endings = (".index", ".safetensors", "saved_model.pb", "saved_model.pbtxt")
  if any(name.endswith(endings) for name in os.listdir(folder)):
    raise CheckpointError(f"--output_dir={folder} holds a model already. Give a new folder.")
  atomic_files.check_writable(folder)


def write_checkpoint(folder: str, tensors: Mapping[str, np.ndarray]) -> str:
  """Writes a checkpoint; last, so that a folder with a checkpoint is complete.

  Args:
    folder: where to.
    tensors: name -> array; `global_step`, if there, gives the checkpoint its number.

  Returns:
    The checkpoint's prefix.
  """
  from bert.checkpoints import saving

  prefix = saving.save(folder, int(tensors.get("global_step", 0)), tensors, {}, keep=None)
  logging.info("Wrote %s.", prefix)
  return prefix


def _read_config(path: str) -> dict:
  from bert.model.configuration import BertConfig

  BertConfig.from_json_file(path)  # refuses what makes no model
  return transformers_folder.read_config(path)


# ---------------------------------------------------------------------------------------------
# inspect


def inspect(prefix: str) -> str:
  """A table of a checkpoint's tensors, and totals.

  Slots of the optimizer stand in the line of their variable.

  Args:
    prefix: see `finding.find_checkpoint`.
  """
  from bert.checkpoints import load_report, reading

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
  return "\n".join([prefix, "", *_aligned(rows), "", *totals])


def _natural_order(name: str) -> list:
  """Sorts layer 10 behind layer 9.

  Example:
    >>> sorted(["layer_10", "layer_9"], key=_natural_order)
    ['layer_9', 'layer_10']
  """
  return [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", name)]


def _total(contents, names) -> str:
  sizes = [(math.prod(contents[name][0]), contents[name][1].size) for name in names]
  size_mb = sum(count * width for count, width in sizes) / 1e6
  count = sum(count for count, _ in sizes)
  return f"{len(sizes)} tensors, {count:,} parameters, {size_mb:,.1f} MB"


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
  """Columns; the fourth, a number, to the right.

  Example:
    >>> _aligned([("name", "shape", "type", "n", ""), ("a/b", "[2]", "int32", "10", "x")])
    ['name  shape  type    n', 'a/b   [2]    int32  10  x']
  """
  widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
  return [
    "  ".join(
      cell.rjust(width) if column == 3 else cell.ljust(width)
      for column, (cell, width) in enumerate(zip(row, widths, strict=True))
    ).rstrip()
    for row in rows
  ]


# ---------------------------------------------------------------------------------------------
# strip, from_saved_model, to_saved_model


def strip(prefix: str, output_dir: str, beside: FilesBeside) -> str:
  """Writes the model without the state of its training; values are the same, bit for bit.

  Returns:
    The new checkpoint's prefix.
  """
  from bert.checkpoints import reading

  tensors = reading.read_tensors(prefix, _without_training_state(prefix))
  for path, name in ((beside.config, "bert_config.json"), (beside.vocabulary, "vocab.txt")):
    if path:
      shutil.copyfile(path, os.path.join(output_dir, name))
  return write_checkpoint(output_dir, tensors)


def _without_training_state(prefix: str) -> list[str]:
  """Names of the model's variables in a checkpoint; those of the optimizer are left out."""
  from bert.checkpoints import load_report, reading

  names = reading.names_and_shapes(prefix)
  kept = [name for name in names if not load_report.is_training_state(name)]
  logging.info("%s: leaving out %d of %d tensors.", prefix, len(names) - len(kept), len(names))
  return kept


def _to_saved_model(prefix: str, beside: FilesBeside) -> None:
  from bert.model.configuration import BertConfig
  from bert.tokenization import validate_case_matches_checkpoint

  beside.check(prefix, "vocab_file")
  validate_case_matches_checkpoint(FLAGS.do_lower_case, prefix)
  config = BertConfig.from_json_file(beside.config)
  from bert.exporting import hub_encoder

  hub_encoder.export_encoder(
    FLAGS.output_dir, config, prefix, beside.vocabulary, FLAGS.do_lower_case
  )


# ---------------------------------------------------------------------------------------------
# to_transformers, from_transformers


def _to_transformers(prefix: str, beside: FilesBeside) -> None:
  from bert.checkpoints import reading
  from bert.tokenization import validate_case_matches_checkpoint

  beside.check(prefix, "vocab_file")
  validate_case_matches_checkpoint(FLAGS.do_lower_case, prefix)
  config = _read_config(beside.config)
  kept = _without_training_state(prefix)
  head = transformers_folder.guess_head(kept, reading.read_state(prefix).get("fingerprint", {}))
  if FLAGS.head and FLAGS.head != head.name:
    head = transformers_folder.Head(FLAGS.head)
  path = transformers_folder.write_folder(
    FLAGS.output_dir,
    config,
    reading.read_tensors(prefix, kept),
    beside.vocabulary,
    FLAGS.do_lower_case,
    head,
  )
  logging.info("Wrote %s, a %s.", path, transformers_folder.HEADS[head.name])


def _from_transformers(prefix: str, beside: FilesBeside) -> None:
  from bert.checkpoints.load_report import abbreviate
  from bert.text import vocabulary_file

  if beside.config is None:
    raise command_line.UsageError(f"There is no {transformers_folder.CONFIG} beside {prefix}.")
  config_text = json.dumps(transformers_folder.read_config(beside.config), indent=2) + "\n"
  weights = transformers_folder.open_weights(prefix)
  tensors = transformers_folder.tensors_of(weights)
  if strange := weights.names_unchanged():
    logging.warning("%d tensors keep their names: %s.", len(strange), abbreviate(strange))
  atomic_files.write_text(os.path.join(FLAGS.output_dir, "bert_config.json"), config_text)
  vocab_file = os.path.join(FLAGS.output_dir, "vocab.txt")
  if beside.vocabulary:
    shutil.copyfile(beside.vocabulary, vocab_file)
  elif tokens := transformers_folder.read_tokens(prefix):
    vocabulary_file.write_tokens(vocab_file, tokens)
  write_checkpoint(FLAGS.output_dir, tensors)


# ---------------------------------------------------------------------------------------------
# resize_vocab


def _resize_vocab(prefix: str, beside: FilesBeside) -> None:
  from bert.checkpoints import reading
  from bert.text import vocabulary_file

  beside.check(prefix, "old_vocab_file")
  config = _read_config(beside.config)
  old_tokens = vocabulary_file.read_tokens(beside.vocabulary)
  new_tokens = vocabulary_file.read_tokens(FLAGS.vocab_file)
  tensors = resize_vocabulary(
    reading.read_tensors(prefix, reading.names_and_shapes(prefix)),
    old_tokens,
    new_tokens,
    initializer_range=config.get("initializer_range", 0.02),
    seed=FLAGS.random_seed,
    from_pieces=FLAGS.new_rows == "mean",
  )
  config_text = json.dumps({**config, "vocab_size": len(new_tokens)}, indent=2) + "\n"
  atomic_files.write_text(os.path.join(FLAGS.output_dir, "bert_config.json"), config_text)
  vocabulary_file.write_tokens(os.path.join(FLAGS.output_dir, "vocab.txt"), new_tokens)
  write_checkpoint(FLAGS.output_dir, tensors)


def resize_vocabulary(
  tensors: Mapping[str, np.ndarray],
  old_tokens: Sequence[str],
  new_tokens: Sequence[str],
  initializer_range: float,
  seed: int,
  from_pieces: bool = True,
) -> dict[str, np.ndarray]:
  """Gives each token of a new vocabulary its row of the embeddings and of the output bias.

  A token of the old vocabulary keeps its row and the optimizer's. A new one starts as the mean of
  its pieces in the old vocabulary, in both tensors: as logits are linear in them, its logit is then
  the mean of its pieces' logits in any context. A token without pieces ([ENTITY], an unknown
  character) starts as in an untrained model, with the lowest bias there is, so that it is not
  predicted before it is learned. The optimizer knows nothing of new rows: zeros.

  Args:
    tensors: name -> array, of the whole checkpoint.
    old_tokens: in the order of their ids.
    new_tokens: in the order of their ids.
    initializer_range: standard deviation of rows that are drawn.
    seed: decides those rows.
    from_pieces: False to draw all new rows.

  Returns:
    The same names and types; all other tensors are as they were.

  Raises:
    CheckpointError: there are no embeddings, or fewer than `old_tokens`.
  """
  _check_rows(tensors, old_tokens)
  rows = _Rows.of(old_tokens, new_tokens, from_pieces)
  drawn = [index for index, pieces in rows.pieces_of.items() if not pieces]
  _log_rows(rows, drawn, old_tokens, new_tokens)
  resized = dict(tensors)
  for name in (EMBEDDINGS, OUTPUT_BIAS):
    if name not in tensors:
      continue
    table = tensors[name]
    resized[name] = rows.moved(table)
    for index, pieces in rows.pieces_of.items():
      if pieces:
        resized[name][index] = table[pieces].astype(np.float32).mean(axis=0)
    if name == EMBEDDINGS:
      resized[name][drawn] = _truncated_normal(len(drawn), table, initializer_range, seed)
    else:
      resized[name][drawn] = table.min()
    for slot in (f"{name}/adam_m", f"{name}/adam_v"):
      if slot in tensors:
        resized[slot] = rows.moved(tensors[slot])
  return resized


class _Rows(NamedTuple):
  """Where the rows of a new vocabulary come from.

  Attributes:
    source: int `[V]`, the old id of each token, -1 for a new one.
    pieces_of: new id -> old ids of the pieces, for the new tokens.
  """

  source: np.ndarray
  pieces_of: dict[int, list[int]]

  @classmethod
  def of(cls, old_tokens, new_tokens, from_pieces):
    from bert.text.vocabulary import TokenSplitter

    id_of = {token: index for index, token in enumerate(old_tokens)}
    splitter = TokenSplitter(old_tokens)
    source = np.array([id_of.get(token, -1) for token in new_tokens])
    pieces_of: dict[int, list[int]] = {}
    for index in np.flatnonzero(source < 0).tolist():
      token = new_tokens[index]
      # What stands in brackets is a name, which the tokenizer never splits.
      named = len(token) > 1 and token.startswith("[") and token.endswith("]")
      pieces = splitter.split(token) if from_pieces and not named else []
      pieces_of[index] = [id_of[piece] for piece in pieces]
    return cls(source, pieces_of)

  def moved(self, table: np.ndarray) -> np.ndarray:
    """The table's rows in their new order; zeros for new tokens."""
    result = np.zeros((len(self.source), *table.shape[1:]), table.dtype)
    result[self.source >= 0] = table[self.source[self.source >= 0]]
    return result


def _check_rows(tensors, old_tokens):
  from bert.checkpoints.bundle_files import CheckpointError

  if EMBEDDINGS not in tensors:
    raise CheckpointError(f"The checkpoint has no {EMBEDDINGS}: it is not one of BERT.")
  for name in filter(tensors.__contains__, (EMBEDDINGS, OUTPUT_BIAS)):
    count = len(tensors[name])
    if count < len(old_tokens):
      raise CheckpointError(
        f"{name} has {count} rows, the old vocabulary {len(old_tokens)} tokens: they do not belong "
        "together. Give the vocabulary of the checkpoint as --old_vocab_file."
      )
    if count > len(old_tokens):
      logging.warning(
        "%s has %d rows more than the old vocabulary has tokens: they are dropped.",
        name,
        count - len(old_tokens),
      )


def _truncated_normal(count: int, table: np.ndarray, stddev: float, seed: int) -> np.ndarray:
  import tensorflow as tf

  shape = [count, *table.shape[1:]]
  return tf.random.stateless_truncated_normal(shape, [seed, 0], stddev=stddev).numpy()


def _log_rows(rows, drawn, old_tokens, new_tokens):
  from bert.checkpoints.load_report import abbreviate

  logging.info(
    "%d tokens keep their rows, %d start as the mean of their pieces, %d at random (%s).",
    len(new_tokens) - len(rows.pieces_of),
    len(rows.pieces_of) - len(drawn),
    len(drawn),
    abbreviate([new_tokens[index] for index in drawn]) or "none",
  )
  known = set(new_tokens)
  gone = [token for token in old_tokens if token not in known]
  if gone:
    logging.info("%d tokens are not in the new vocabulary: %s.", len(gone), abbreviate(gone))


if __name__ == "__main__":
  command_line.run(main, define_flags, name_command(sys.argv))
