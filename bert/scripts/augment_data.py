"""Writes more training rows of a GLUE task, in which words are replaced by likely ones.

  bert augment_data --task_name=MRPC --data_dir=MRPC --init_checkpoint=uncased_L-12_H-768_A-12 \\
    --glove_file=glove.6B.300d.txt --output_file=augmented/train.tsv

This is TinyBERT's augmentation: every word that is not a stop word is replaced with probability
--replace_prob in each of --variants copies of a text: by one of the --candidates words that the
masked language model prefers in its place, or, for a word of several pieces, by one of its
neighbours in GloVe. Without --glove_file such words stay. Rows keep their labels. A student learns
from the file as from any train.tsv: put dev.tsv and test.tsv beside it.
"""

import csv
import io
import os
import random
from collections.abc import Callable, Iterable
from typing import BinaryIO

import numpy as np
from absl import flags, logging

from bert import tokenization
from bert.distillation import augmentation
from bert.io import tables, text_lines
from bert.predicting import load_model
from bert.scripts import command_line, flag_groups, path_flags

FLAGS = flags.FLAGS
_LOG_EVERY = 10_000
_INPUTS = ("input_ids", "segment_ids", "positions")


def define_flags() -> None:
  """Defines this command's flags."""
  with flag_groups.flag_group("Augmentation"):
    flags.DEFINE_enum(
      "task_name",
      None,
      list(augmentation.TASKS),
      "The task, which says where texts are in its train.tsv.",
      case_sensitive=False,
    )
    path_flags.define("data_dir", None, "The folder of the task's train.tsv.")
    path_flags.define("output_file", None, "The file to write, such as FOLDER/train.tsv.")
    path_flags.define(
      "init_checkpoint",
      None,
      "An uncased model with a head for masked words: a checkpoint, a folder, or a released name.",
      is_model=True,
    )
    path_flags.define("bert_config_file", None, "[bert_config.json beside the checkpoint]")
    path_flags.define("vocab_file", None, "[vocab.txt beside the checkpoint]")
    path_flags.define(
      "glove_file", None, "Vectors of words in GloVe's format; the first 100,000 lines are read."
    )
    flags.DEFINE_integer(
      "variants",
      None,
      "Copies drawn of each text; N of TinyBERT. [30; 20 for QNLI and SST-2, 10 for MNLI and QQP]",
      lower_bound=1,
    )
    flags.DEFINE_integer(
      "candidates", 15, "Words that may replace one; M of TinyBERT.", lower_bound=1
    )
    flags.DEFINE_float(
      "replace_prob", 0.4, "Probability that a word is replaced.", lower_bound=0, upper_bound=1
    )
    flags.DEFINE_integer("seed", 12345, "Of the draws: the same seed gives the same file.")
    flags.DEFINE_bool(
      "quotes_as_original",
      False,
      'Put fields with " into quotes, doubling it, as the original does, whose reader then takes '
      "these quotes for text.",
    )
  flag_groups.mark_required(["task_name", "data_dir", "init_checkpoint", "output_file"])


def main(_) -> None:
  """Writes the file."""
  for name in ("task_name", "data_dir", "init_checkpoint", "output_file"):
    if not FLAGS[name].value:
      raise command_line.UsageError(f"--{name} is missing.")
  path = os.path.join(FLAGS.data_dir, "train.tsv")
  text_lines.check_output_file(FLAGS.output_file, input_file=path)
  columns = augmentation.TASKS[FLAGS.task_name]
  if FLAGS.variants:
    columns = columns._replace(variants=FLAGS.variants)
  rows = tables.read_table(path)
  needed = max(columns.texts) + 1
  for row in rows:
    if len(row) < needed:
      raise tables.DataError(
        f"{len(row)} columns, but {FLAGS.task_name} has a text in column {needed}", path, row.line
      )
  augmentor = create_augmentor(
    FLAGS.init_checkpoint,
    FLAGS.bert_config_file,
    FLAGS.vocab_file,
    glove_file=FLAGS.glove_file,
    candidates=FLAGS.candidates,
    replace_prob=FLAGS.replace_prob,
    seed=FLAGS.seed,
  )
  logging.info("%d rows in %s.", len(rows), path)
  with text_lines.written_output(FLAGS.output_file) as stream:
    count = _write(stream, augmentation.augmented_rows(rows, columns, augmentor))
  logging.info("%d rows in %s.", count, FLAGS.output_file)


def create_augmentor(
  init_checkpoint: str,
  bert_config_file: str | None = None,
  vocab_file: str | None = None,
  *,
  glove_file: str | None = None,
  candidates: int = 15,
  replace_prob: float = 0.4,
  seed: int = 12345,
) -> augmentation.Augmentor:
  """Returns the augmentor that flags describe, see there.

  Raises:
    UsageError: the model is cased, or has no pieces of words.
    CheckpointError: it has no head for masked words.
  """
  config, tokenizer, prefix = load_model.load_model(
    init_checkpoint,
    bert_config_file,
    vocab_file,
    do_lower_case=True,
    max_seq_length=3,  # of no text: only checked
  )
  if not isinstance(tokenizer, tokenization.FullTokenizer):
    raise command_line.UsageError(
      f"--init_checkpoint={init_checkpoint} has no vocab.txt of word pieces: give a BERT."
    )
  length = min(512, config.max_position_embeddings)
  function = load_model.load_graph(
    _graph(config, candidates), _INPUTS, prefix, optional=("bert/pooler/",)
  )

  def best_words(texts):
    ids = [tokenizer.convert_tokens_to_ids(text.tokens) for text in texts]
    columns = ids, [text.segments for text in texts], [[text.position] for text in texts]
    batch = {name: np.array(c, np.int32) for name, c in zip(_INPUTS, columns, strict=True)}
    return [tokenizer.convert_ids_to_tokens(row) for row in function(batch)["ids"].numpy()]

  neighbours: Callable[[str], list[str]] = _no_neighbours
  if glove_file:
    vectors = augmentation.read_vectors(glove_file)
    neighbours = augmentation.Neighbours(vectors, candidates)
  return augmentation.Augmentor(
    tokenizer,
    best_words,
    neighbours,
    random.Random(seed),
    replace_prob=replace_prob,
    max_length=length,
  )


def _no_neighbours(word: str) -> list[str]:
  del word
  return []


def _graph(config, count: int):
  """A graph function: masked texts of one length -> the best words at each mask, `[B, count]`."""

  def build(features):
    import tensorflow as tf

    from bert.model import heads
    from bert.modeling import BertModel

    ids, segments, positions = (features[name] for name in _INPUTS)
    model = BertModel(config, False, ids, None, segments)
    vectors = heads.gather_indexes(model.get_sequence_output(), positions)  # [B, W]
    logits = heads.masked_lm_logits(config, vectors, model.get_embedding_table())
    return {"ids": tf.math.top_k(logits, min(count, config.vocab_size)).indices}

  return build


def _write(stream: BinaryIO, rows: Iterable[list[str]]) -> int:
  """Writes the rows; returns their number."""
  quoted = FLAGS.quotes_as_original
  text = io.StringIO(newline="")
  writer = csv.writer(
    text,
    delimiter="\t",
    quoting=csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE,
    quotechar='"' if quoted else None,
    lineterminator="\r\n" if quoted else "\n",
  )
  count = 0
  for count, row in enumerate(rows, 1):
    writer.writerow(row)
    stream.write(text.getvalue().encode())
    text.seek(0)
    text.truncate()
    if count % _LOG_EVERY == 0:
      logging.info("%d rows written.", count)
  return count


if __name__ == "__main__":
  command_line.run(main, define_flags)
