"""Turns text into TFRecord files of masked sentence pairs, on which BERT is pre-trained.

The input is UTF-8 text, one sentence per line, with an empty line between documents. The end of a
file does not end a document:

  python create_pretraining_data.py --input_file=./sample_text.txt \\
    --output_file=/tmp/tf_examples.tfrecord --vocab_file=$BERT_BASE_DIR/vocab.txt \\
    --do_lower_case=True --max_seq_length=128 --max_predictions_per_seq=20 \\
    --masked_lm_prob=0.15 --random_seed=12345 --dupe_factor=5

Separate several inputs and outputs by commas; inputs may be patterns. Records are distributed over
the outputs in turn. Temporary files beside the first output hold the text, and 1.5 times the text
for each pass of --dupe_factor. They are mapped: the system takes this memory (500 of 546 MB for a
text of 201 MB) back when needed. Records take twice the text for each pass.

The same seed gives the same instances in the same order as the original, and identical files in
every run.

With --num_workers=N, N processes do the work, in a different way (`bert/pretraining/blocks.py`):
each document has its own random numbers, random next sentences come from the same few megabytes of
text, and the end of a file ends a document. These records differ from the original's, but are the
same for every N, and the same as --runner=beam creates on a cluster. Temporary files are as large
as the output.

--format=electra and --format=albert create the records of these families, in either way:

  python create_pretraining_data.py --format=electra --input_file=./sample_text.txt \\
    --output_file=/tmp/electra.tfrecord --vocab_file=vocab.txt --max_seq_length=128
  python create_pretraining_data.py --format=albert --input_file=./sample_text.txt \\
    --output_file=/tmp/albert.tfrecord --spm_model_file=30k-clean.model --max_seq_length=128

The same seed gives the records of their own scripts, in the same order. ELECTRA's have no masks,
which are drawn in training, and need one pass over the text; the end of a file ends a document.

--format=roberta fills sequences with whole lines, also across documents, and leaves the masks to
run_pretraining.py. A byte-level BPE as --vocab_file means this format:

  python create_pretraining_data.py --format=roberta --input_file=./sample_text.txt \\
    --output_file=/tmp/roberta.tfrecord --vocab_file=roberta-base/vocab.json --max_seq_length=512
"""

import bert  # isort: skip  # noqa: F401  from here on Ctrl-C is one line, also while importing

import itertools
import os
import random
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from absl import flags, logging

from bert import tokenization
from bert.io import vocabulary_kind
from bert.io.tfrecord_bytes import encode_examples
from bert.pretraining import (
  albert_instances,
  electra_examples,
  original_stream,
  piece_tables,
  record_formats,
  workers,
)
from bert.pretraining.instances import TrainingInstance, Workspace
from bert.pretraining.original_stream import truncate_seq_pair
from bert.pretraining.record_output import RecordFiles
from bert.scripts import (
  command_line,
  flag_groups,
  output_files,
  path_flags,
  record_flags,
  runner_flags,
)
from bert.text import corpus, corpus_statistics, text_files

__all__ = [
  "TrainingInstance",
  "create_instances_from_document",
  "create_masked_lm_predictions",
  "create_training_instances",
  "main",
  "truncate_seq_pair",
  "write_instance_to_example_files",
]

FLAGS = flags.FLAGS

_SHOWN_EXAMPLES = 20
_BATCH = 512  # instances that are serialized together


def define_flags() -> None:
  """Defines this script's flags; names, types and defaults of 2018 are unchanged."""
  with flag_groups.flag_group("Files"):
    path_flags.define(
      "input_file", None, "Text files or patterns, separated by commas.", several=True
    )
    path_flags.define(
      "output_file", None, "TFRecord files to write, separated by commas.", several=True
    )
    path_flags.define(
      "vocab_file",
      None,
      "The vocabulary of the model to be trained; not needed with --spm_model_file.",
    )
    flags.DEFINE_bool("gzip", False, "Compress the output files; their names do not change.")
    flags.DEFINE_bool(
      "strict_utf8", False, "Stop at text that is not UTF-8, instead of dropping the invalid bytes."
    )
    flags.DEFINE_string(
      "jsonl_field",
      "",
      "Read JSON Lines: each line is an object and a document, and this field contains its text.",
    )
    flags.DEFINE_bool(
      "split_sentences", False, "Each line is a paragraph; split it into sentences."
    )
  with flag_groups.flag_group("Text"):
    flags.DEFINE_bool("do_lower_case", True, "True for uncased models, False for cased ones.")
    flags.DEFINE_integer(
      "max_seq_length", 128, "Maximum number of tokens in a sequence, special tokens included."
    )
    flags.DEFINE_float(
      "short_seq_prob", 0.1, "Probability that a document is cut into shorter sequences."
    )
    flags.DEFINE_bool(
      "no_next_sentence", False, "Fill sequences with whole sentences of one document. *"
    )
  with flag_groups.flag_group("Masks"):
    flags.DEFINE_float("masked_lm_prob", 0.15, "Fraction of the tokens to predict.")
    flags.DEFINE_integer(
      "max_predictions_per_seq", 20, "Maximum number of tokens to predict in a sequence."
    )
    flags.DEFINE_bool("do_whole_word_mask", False, "Mask either all pieces of a word or none.")
    flags.DEFINE_integer(
      "ngram_max", 1, "Mask runs of 1 to N words; the probability of n words is ~ 1/n. *"
    )
    flags.DEFINE_bool(
      "dynamic_masking", False, "Write records without masks: run_pretraining.py masks them. *"
    )
    flags.DEFINE_integer(
      "dupe_factor", 10, "Number of passes over the text, each with different masks."
    )
    flags.DEFINE_integer("random_seed", 12345, "Seed of all random choices.")
  with flag_groups.flag_group("Other families"):
    flags.DEFINE_enum(
      "format",
      "bert",
      list(record_formats.FORMATS),
      "Whose records to create. Flags that are not given have the defaults of the family's own "
      "script; albert: --do_whole_word_mask --max_seq_length=512 --ngram_max=3 --dupe_factor=40. "
      "distilbert: each line is a sequence of its own, for distill.py --dynamic_masking. "
      "roberta: sequences filled with whole lines, one </s> behind each; --max_seq_length=512 "
      "--dupe_factor=1 --dynamic_masking. "
      "A flag that belongs to one family, as those below do, is enough.",
    )
    path_flags.define(
      "spm_model_file", None, "albert: the sentencepiece model, instead of --vocab_file."
    )
    flags.DEFINE_bool(
      "favor_shorter_ngram", True, "albert: --ngram_max gives n words a probability ~ 1/n."
    )
    flags.DEFINE_bool(
      "do_permutation",
      False,
      "albert, in one process: exchange as many further tokens, and predict them, too.",
    )
    flags.DEFINE_bool(
      "random_next_sentence",
      False,
      "albert: random second segments, as BERT's, instead of segments in the wrong order.",
    )
    flags.DEFINE_bool("strip_accents", True, "electra: drop accents when lower-casing.")
  with flag_groups.flag_group("Processes"):
    flags.DEFINE_integer(
      "num_workers",
      0,
      "0: one process, which creates the records of the original. 1 or more: this many processes, "
      "which create different records, the same for every number. Options marked * need at least 1 "
      "and turn 0 into 1.",
    )
    runner_flags.define("It creates the records of --num_workers.")
  flag_groups.mark_required(["input_file", "output_file", "vocab_file"])


# ---------------------------------------------------------------------------------------------
# Documents -> instances. The random choices and their order are those of the original.


def create_training_instances(
  input_files: Sequence[str],
  tokenizer,
  max_seq_length: int,
  dupe_factor: int,
  short_seq_prob: float,
  masked_lm_prob: float,
  max_predictions_per_seq: int,
  rng: random.Random,
  *,
  do_whole_word_mask: bool = False,
  text_format: corpus.TextFormat = corpus.PLAIN_TEXT,
  workspace: Workspace | None = None,
) -> Sequence[TrainingInstance]:
  """Reads a corpus and creates its instances, in random order.

  Args:
    input_files: text files, read in this order.
    tokenizer: a `tokenization.FullTokenizer`.
    max_seq_length: the maximum number of tokens in an instance.
    dupe_factor: the number of passes over the documents.
    short_seq_prob: see `create_instances_from_document`.
    masked_lm_prob: see `create_masked_lm_predictions`.
    max_predictions_per_seq: see `create_masked_lm_predictions`.
    rng: the random number generator.
    do_whole_word_mask: mask whole words.
    text_format: the format of the files.
    workspace: keeps documents and instances on disk as long as it is open. By default they are kept
      in memory.

  Returns:
    The instances, as a list unless there is a `workspace`.

  Raises:
    CorpusError: there is no text, or a line does not have the format.
  """
  statistics = corpus_statistics.TextStatistics(
    text_files.total_bytes(input_files), max_tokens=max_seq_length - 3
  )
  masking = _masking(
    masked_lm_prob, max_predictions_per_seq, list(tokenizer.vocab), rng, do_whole_word_mask
  )
  return original_stream.instances_of_corpus(
    input_files,
    tokenizer,
    lambda documents, index: original_stream.instances_of_document(
      documents, index, max_seq_length, short_seq_prob, masking
    ),
    statistics,
    dupe_factor,
    rng,
    text_format=text_format,
    workspace=workspace,
  )


def create_instances_from_document(
  all_documents: Sequence[Sequence[list[str]]],
  document_index: int,
  max_seq_length: int,
  short_seq_prob: float,
  masked_lm_prob: float,
  max_predictions_per_seq: int,
  vocab_words: Sequence[str],
  rng: random.Random,
  *,
  do_whole_word_mask: bool = False,
) -> list[TrainingInstance]:
  """Creates the instances of one document, in its order.

  Sentences are gathered until they are long enough, then divided in two between sentences. In half
  of the cases the second part is replaced by text of a random document, and its sentences are used
  for the next instance.

  Args:
    all_documents: documents as sequences of sentences, sentences as lists of tokens.
    document_index: index of the document.
    max_seq_length: the maximum number of tokens in an instance.
    short_seq_prob: the probability that the document's sequences have a random, shorter target
      length, because a model will also be used on short texts.
    masked_lm_prob: see `create_masked_lm_predictions`.
    max_predictions_per_seq: see `create_masked_lm_predictions`.
    vocab_words: see `create_masked_lm_predictions`.
    rng: the random number generator.
    do_whole_word_mask: mask whole words.
  """
  masking = _masking(masked_lm_prob, max_predictions_per_seq, vocab_words, rng, do_whole_word_mask)
  return list(
    original_stream.instances_of_document(
      all_documents, document_index, max_seq_length, short_seq_prob, masking
    )
  )


def create_masked_lm_predictions(
  tokens: Sequence[str],
  masked_lm_prob: float,
  max_predictions_per_seq: int,
  vocab_words: Sequence[str],
  rng: random.Random,
  *,
  do_whole_word_mask: bool = False,
) -> tuple[list[str], list[int], list[str]]:
  """Chooses tokens to predict; 80% of them become [MASK], 10% a random token, 10% stay.

  Args:
    tokens: with [CLS] and [SEP], which are never chosen but count in the fraction.
    masked_lm_prob: the fraction of tokens to choose; at least one token is chosen.
    max_predictions_per_seq: the maximum number of tokens to choose.
    vocab_words: random tokens are taken from all of these, special tokens included.
    rng: the random number generator.
    do_whole_word_mask: choose words with all their pieces. A word with more pieces than are still
      to be chosen is skipped. Each chosen piece is replaced independently.

  Returns:
    `(tokens, positions, labels)`: the tokens with masks, the chosen positions in ascending order,
    and the original tokens at these positions.
  """
  masking = _masking(masked_lm_prob, max_predictions_per_seq, vocab_words, rng, do_whole_word_mask)
  return original_stream.mask(tokens, masking)


def _masking(
  masked_lm_prob: float,
  max_predictions_per_seq: int,
  vocab_words: Sequence[str],
  rng: random.Random,
  do_whole_word_mask: bool,
) -> original_stream.Masking:
  begins_word = piece_tables.begins_word_of_word_pieces if do_whole_word_mask else None
  return original_stream.Masking(
    masked_lm_prob, max_predictions_per_seq, vocab_words, rng, begins_word
  )


# ---------------------------------------------------------------------------------------------
# Instances -> records.


def write_instance_to_example_files(
  instances: Sequence[TrainingInstance],
  tokenizer,
  max_seq_length: int,
  max_predictions_per_seq: int,
  output_files: Sequence[str],
  *,
  facts: Mapping[str, Any] | None = None,
) -> None:
  """Writes instances to TFRecord files, to each in turn; see `RecordFiles`.

  Args:
    instances: the instances to write.
    tokenizer: the `tokenization.FullTokenizer` whose ids are written.
    max_seq_length: S, the length to which sequences are padded.
    max_predictions_per_seq: P, the length to which masks are padded.
    output_files: the files; they appear when all of them are complete.
    facts: further facts for the manifests.

  Raises:
    ValueError: an instance is too long, or a token has no id.
    OSError: a file cannot be written.
  """
  facts = {
    "vocabulary": tokenization.vocabulary_hash(tokenizer.vocab),
    "max_seq_length": max_seq_length,
    "max_predictions_per_seq": max_predictions_per_seq,
    **(facts or {}),
  }
  progress = corpus_statistics.Progress("Writing", len(instances), "instances")
  with RecordFiles(output_files, facts) as files:
    remaining = iter(instances)
    while batch := list(itertools.islice(remaining, _BATCH)):
      rows = [
        instance.features(tokenizer, max_seq_length, max_predictions_per_seq) for instance in batch
      ]
      for instance, features in zip(batch[: _SHOWN_EXAMPLES - files.count], rows, strict=False):
        _log_example(instance, features)
      columns = {name: np.array([features[name] for features in rows]) for name in rows[0]}
      for instance, record in zip(batch, encode_examples(columns), strict=True):
        files.write(record, len(instance.segment_ids))
      progress.update(files.count)
  logging.info("Wrote %d total instances", files.count)


def _log_example(instance, features) -> None:
  logging.info("*** Example ***")
  logging.info("tokens: %s", " ".join(instance.tokens))
  for name, values in features.items():
    logging.info("%s: %s", name, " ".join(map(str, values)))


# ---------------------------------------------------------------------------------------------
# The job.


def main(_) -> None:
  """Reads the text and writes the records."""
  command_line.check_required({"vocab_file": FLAGS.vocab_file or FLAGS.spm_model_file})
  settings = record_flags.settings_of_flags()
  input_files = text_files.find_input_files(FLAGS.input_file)
  if not settings.text_format.jsonl_field:
    text_files.warn_of_json(input_files, "Give --jsonl_field, the field of its texts.")
  outputs = [path.strip() for path in FLAGS.output_file.split(",") if path.strip()]
  is_beam = runner_flags.is_beam()
  output_files.prepare(outputs, input_files, may_be_remote=is_beam)
  tables = piece_tables.load_tables(settings)
  vocab = tables.tokenizer.vocab
  if "sentence_pieces" in settings.rules.vocabularies and vocabulary_kind.is_of_word_pieces(vocab):
    logging.warning(
      "%s is a WordPiece vocabulary, as the Chinese ALBERTs have. For records of any other ALBERT "
      "give its --spm_model_file.",
      settings.vocab_file,
    )
  facts = settings.facts(vocab)
  if FLAGS.gzip:
    facts["compression"] = "GZIP"
  record_flags.log_files("Reading from input files", input_files)
  if is_beam:
    with runner_flags.needed_packages():
      from bert.pretraining import beam
    beam.create_records(input_files, outputs, settings, facts, FLAGS.beam_args)
  elif num_workers := record_flags.workers_of_flags(settings):
    workers.create_records(input_files, outputs, settings, num_workers, facts)
  elif not settings.rules.has_labels:
    electra_examples.create_records(input_files, outputs, settings, tables, facts)
  else:
    # The original replaces words by empty lines of the vocabulary, too.
    facts["vocab_size"] = max(vocab.values()) + 1
    _create_original_records(input_files, outputs, tables, settings, facts)


def _create_original_records(input_files, outputs, tables, settings, facts) -> None:
  # ALBERT's own script has other streams than BERT's, and marks the beginnings of words.
  is_albert = settings.rules.marks_boundaries
  tokenizer = albert_instances.StorablePieces(tables) if is_albert else tables.tokenizer
  with Workspace(os.path.dirname(outputs[0]) or ".", tokenizer) as workspace:
    if is_albert:
      instances = albert_instances.create_training_instances(
        input_files, tables, settings, tokenizer, workspace
      )
    else:
      instances = create_training_instances(
        input_files,
        tokenizer,
        settings.max_seq_length,
        settings.dupe_factor,
        settings.short_seq_prob,
        settings.masked_lm_prob,
        settings.max_predictions_per_seq,
        random.Random(settings.random_seed),
        do_whole_word_mask=settings.do_whole_word_mask,
        text_format=settings.text_format,
        workspace=workspace,
      )
    record_flags.log_files("Writing to output files", outputs)
    write_instance_to_example_files(
      instances, tokenizer, settings.max_seq_length, settings.masks_per_record, outputs, facts=facts
    )


if __name__ == "__main__":
  command_line.run(main, define_flags)
