"""Turns text into TFRecord files of masked sentence pairs, which BERT is pre-trained on.

The input is UTF-8 text, one sentence on a line, an empty line between documents; the end of a file
does not end a document:

  python create_pretraining_data.py --input_file=./sample_text.txt \\
    --output_file=/tmp/tf_examples.tfrecord --vocab_file=$BERT_BASE_DIR/vocab.txt \\
    --do_lower_case=True --max_seq_length=128 --max_predictions_per_seq=20 \\
    --masked_lm_prob=0.15 --random_seed=12345 --dupe_factor=5

Several inputs and outputs are separated by commas, and inputs may be patterns; records are dealt to
the outputs in turn. Memory does not grow with the corpus: what is in work lies in temporary files
beside the first output, about as large as the text, and 1.5 times the text for each pass of
--dupe_factor. The records take twice the text for each pass.

The same seed gives the instances of the original in the original's order, and files of the same
bytes each time.

With --num_workers=N the work is done by N processes and in another way (`pretraining_blocks`): each
document draws for itself, random next sentences come from the same few megabytes of text, and the
end of a file ends a document. These records are others than the original's, but the same for every
N, and the same that --engine=beam makes on a cluster. Temporary files are as large as the output.
"""

import itertools
import os
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from absl import flags, logging

from bert import tokenization
from bert.io import installation
from bert.io.tfrecord_bytes import encode_examples
from bert.pretraining import blocks, workers
from bert.pretraining import instances as pretraining_data
from bert.pretraining.instances import TrainingInstance, shuffle
from bert.scripts import command_line, flag_groups
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
_SMALLEST = {
  "max_seq_length": 5,
  "max_predictions_per_seq": 1,
  "dupe_factor": 1,
  "ngram_max": 1,
  "num_workers": 0,
}
_NEW_STREAM_FLAGS = ("no_next_sentence", "whole_words_by_space", "ngram_max", "dynamic_masking")
_BATCH = 512  # instances that are serialized together


def define_flags() -> None:
  """Defines this script's flags; names, types and defaults of 2018 are unchanged."""
  with flag_groups.flag_group("Files"):
    flags.DEFINE_string("input_file", None, "Text files or patterns, separated by commas.")
    flags.DEFINE_string("output_file", None, "TFRecord files to write, separated by commas.")
    flags.DEFINE_string("vocab_file", None, "The vocabulary of the model to be trained.")
    flags.DEFINE_bool("gzip", False, "Compress the output; the names stay as given.")
    flags.DEFINE_bool("strict_utf8", False, "Refuse text that is not UTF-8, instead of mending it.")
    flags.DEFINE_string(
      "jsonl_field", "", "Each line is a JSON object and a document; this field holds its text."
    )
    flags.DEFINE_bool(
      "split_sentences", False, "Each line is a paragraph, to be split at the ends of sentences."
    )
  with flag_groups.flag_group("Text"):
    flags.DEFINE_bool("do_lower_case", True, "True for uncased models, False for cased ones.")
    flags.DEFINE_integer("max_seq_length", 128, "Tokens in a sequence, special ones included.")
    flags.DEFINE_float("short_seq_prob", 0.1, "Share of documents that give shorter sequences.")
    flags.DEFINE_bool(
      "no_next_sentence", False, "Fill sequences with whole sentences of one document. *"
    )
  with flag_groups.flag_group("Masks"):
    flags.DEFINE_float("masked_lm_prob", 0.15, "Share of tokens to predict.")
    flags.DEFINE_integer("max_predictions_per_seq", 20, "Tokens to predict in a sequence, at most.")
    flags.DEFINE_bool("do_whole_word_mask", False, "Mask all pieces of a word, or none.")
    flags.DEFINE_bool(
      "whole_words_by_space",
      False,
      "What blanks separate in the text is a word: for Chinese that was segmented before. *",
    )
    flags.DEFINE_integer(
      "ngram_max", 1, "Mask runs of 1 to so many words, n words with probability ~ 1/n. *"
    )
    flags.DEFINE_bool(
      "dynamic_masking", False, "Leave the masks to run_pretraining.py, which draws new ones. *"
    )
    flags.DEFINE_integer("dupe_factor", 10, "Passes over the text, each with masks of its own.")
    flags.DEFINE_integer("random_seed", 12345, "Decides everything that is drawn.")
  with flag_groups.flag_group("Processes"):
    flags.DEFINE_integer(
      "num_workers",
      0,
      "0 draws what the original draws, in one process. From 1 on, so many processes make other "
      "records, the same for every number. Options marked * need that, and turn 0 into 1.",
    )
    flags.DEFINE_enum(
      "engine", "local", ["local", "beam"], "beam makes the records of --num_workers on a cluster."
    )
    flags.DEFINE_string("beam_args", "", "Options of Apache Beam, such as --runner=FlinkRunner.")
  flag_groups.mark_required(["input_file", "output_file", "vocab_file"])


# ---------------------------------------------------------------------------------------------
# Documents -> instances. What is drawn, and in which order, is the original's.


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
  workspace: pretraining_data.Workspace | None = None,
) -> Sequence[TrainingInstance]:
  """Reads a corpus and makes its instances, in random order.

  Args:
    input_files: text files, read in this order.
    tokenizer: a `tokenization.FullTokenizer`.
    max_seq_length: tokens in an instance, at most.
    dupe_factor: passes over the documents.
    short_seq_prob: see `create_instances_from_document`.
    masked_lm_prob: see `create_masked_lm_predictions`.
    max_predictions_per_seq: see `create_masked_lm_predictions`.
    rng: what is drawn from.
    do_whole_word_mask: mask whole words.
    text_format: what the files hold.
    workspace: where documents and instances are kept, and valid as long as it is open; by default
      in memory.

  Returns:
    The instances, as a list unless there is a `workspace`.

  Raises:
    CorpusError: there is no text, or a line is not as `text_format` says.
  """
  statistics = corpus_statistics.TextStatistics(text_files.total_bytes(input_files))
  sentences = corpus.read_sentences(input_files, tokenizer, statistics, text_format)
  if workspace is None:
    documents, instances = corpus.split_documents(sentences), []
  else:
    documents, instances = workspace.store_documents(sentences), workspace.new_instances()
  statistics.log()
  if not documents:
    raise text_files.CorpusError(f"There is no text in {', '.join(input_files)}.")
  shuffle(documents, rng)

  vocab_words = list(tokenizer.vocab)
  progress = corpus_statistics.Progress("Creating", dupe_factor * len(documents), "documents")
  for number in range(dupe_factor * len(documents)):
    instances.extend(
      _instances_of_document(
        documents,
        number % len(documents),
        max_seq_length,
        short_seq_prob,
        masked_lm_prob,
        max_predictions_per_seq,
        vocab_words,
        rng,
        do_whole_word_mask,
      )
    )
    progress.update(number + 1)
  shuffle(instances, rng)
  return instances


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
  """Makes the instances of one document, in its order.

  Sentences are gathered until they are long enough, and cut in two at a sentence's end. In half of
  the cases the second part is replaced by text of a random document, and its sentences are used for
  the next instance.

  Args:
    all_documents: documents as sequences of sentences, sentences as lists of tokens.
    document_index: which of them.
    max_seq_length: tokens in an instance, at most.
    short_seq_prob: probability that the document's sequences have another, random target length,
      since a model also has to do with short texts.
    masked_lm_prob: see `create_masked_lm_predictions`.
    max_predictions_per_seq: see `create_masked_lm_predictions`.
    vocab_words: see `create_masked_lm_predictions`.
    rng: what is drawn from.
    do_whole_word_mask: mask whole words.
  """
  return list(
    _instances_of_document(
      all_documents,
      document_index,
      max_seq_length,
      short_seq_prob,
      masked_lm_prob,
      max_predictions_per_seq,
      vocab_words,
      rng,
      do_whole_word_mask,
    )
  )


def _instances_of_document(
  all_documents,
  document_index,
  max_seq_length,
  short_seq_prob,
  masked_lm_prob,
  max_predictions_per_seq,
  vocab_words,
  rng,
  do_whole_word_mask,
) -> Iterator[TrainingInstance]:
  """One by one: a corpus may be one document of a gigabyte."""
  max_num_tokens = max_seq_length - 3  # [CLS], [SEP], [SEP]
  target = max_num_tokens
  if rng.random() < short_seq_prob:
    target = rng.randint(2, max_num_tokens)

  document = all_documents[document_index]
  position = 0
  while position < len(document):
    chunk = _gather(document, position, target)
    position += len(chunk)
    a_end = rng.randint(1, len(chunk) - 1) if len(chunk) >= 2 else 1
    tokens_a, tokens_b = _joined(chunk[:a_end]), _joined(chunk[a_end:])
    is_random_next = len(chunk) == 1 or rng.random() < 0.5
    if is_random_next:
      position -= len(chunk) - a_end  # what is replaced comes again
      tokens_b = _random_text(all_documents, document_index, target - len(tokens_a), rng)
    truncate_seq_pair(tokens_a, tokens_b, max_num_tokens, rng)
    tokens, positions, labels = create_masked_lm_predictions(
      ["[CLS]", *tokens_a, "[SEP]", *tokens_b, "[SEP]"],
      masked_lm_prob,
      max_predictions_per_seq,
      vocab_words,
      rng,
      do_whole_word_mask=do_whole_word_mask,
    )
    segment_ids = [0] * (len(tokens_a) + 2) + [1] * (len(tokens_b) + 1)
    yield TrainingInstance(tokens, segment_ids, positions, labels, is_random_next)


def _gather(document, start: int, target: int) -> list[list[str]]:
  """Sentences from `start` on until they have `target` tokens or the document ends."""
  chunk, length = [], 0
  for index in range(start, len(document)):
    chunk.append(document[index])
    length += len(chunk[-1])
    if length >= target:
      break
  return chunk


def _joined(sentences: list[list[str]]) -> list[str]:
  return [token for sentence in sentences for token in sentence]


def _random_text(all_documents, document_index: int, target: int, rng) -> list[str]:
  """At least `target` tokens, if there are, from a random sentence of a random document on."""
  for _ in range(10):  # another document, unless chance or their number is against it
    random_index = rng.randint(0, len(all_documents) - 1)
    if random_index != document_index:
      break
  document = all_documents[random_index]
  return _joined(_gather(document, rng.randint(0, len(document) - 1), target))


def truncate_seq_pair(
  tokens_a: list[str], tokens_b: list[str], max_num_tokens: int, rng: random.Random
) -> None:
  """Shortens both lists in place to `max_num_tokens` in all.

  Tokens go one by one from the list that is longer then (the second if they are equal), from its
  front or its end at random.

  Example:
    >>> a, b = list("abcdef"), list("xy")
    >>> truncate_seq_pair(a, b, 5, random.Random(1))
    >>> "".join(a), "".join(b)
    ('bcd', 'xy')
  """
  length_a, length_b = len(tokens_a), len(tokens_b)
  # Counted first and cut at once: deleting token by token from the front is quadratic.
  front_a = front_b = 0
  while length_a + length_b > max_num_tokens:
    from_front = rng.random() < 0.5
    if length_a > length_b:
      length_a -= 1
      front_a += from_front
    else:
      length_b -= 1
      front_b += from_front
  tokens_a[:] = tokens_a[front_a : front_a + length_a]
  tokens_b[:] = tokens_b[front_b : front_b + length_b]


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
    tokens: with [CLS] and [SEP], which are never chosen but count in the share.
    masked_lm_prob: the share to choose; one token at least.
    max_predictions_per_seq: tokens to choose, at most.
    vocab_words: random tokens come from the whole of it, special tokens included.
    rng: what is drawn from.
    do_whole_word_mask: choose words with all their pieces. A word with more pieces than are still
      to be chosen is passed over. What becomes of a chosen piece is drawn for each piece.

  Returns:
    `(tokens, positions, labels)`: the tokens with masks, where they were chosen, in ascending
    order, and which tokens were there.
  """
  num_to_predict = min(max_predictions_per_seq, max(1, round(len(tokens) * masked_lm_prob)))
  if do_whole_word_mask:
    candidates = _word_positions(tokens)
    pretraining_data.shuffle(candidates, rng)
    positions = _first_that_fit(candidates, num_to_predict)
  else:  # most of the time of a run is spent here
    positions = [i for i, token in enumerate(tokens) if token not in ("[CLS]", "[SEP]")]
    pretraining_data.shuffle(positions, rng)
    del positions[num_to_predict:]
  output = list(tokens)
  for position in positions:
    output[position] = _masked(tokens[position], vocab_words, rng)
  positions.sort()
  return output, positions, [tokens[position] for position in positions]


def _first_that_fit(words: list[list[int]], limit: int) -> list[int]:
  """Positions of words in their order; a word that would exceed `limit` is passed over.

  Example:
    >>> _first_that_fit([[3, 4], [7, 8], [5], [1]], limit=3)
    [3, 4, 5]
  """
  positions: list[int] = []
  for word in words:
    if len(positions) + len(word) <= limit:
      positions += word
  return positions


def _word_positions(tokens: Sequence[str]) -> list[list[int]]:
  """Positions that are chosen together.

  Example:
    >>> _word_positions(["[CLS]", "un", "##able", "to", "[SEP]"])
    [[1, 2], [3]]
  """
  candidates: list[list[int]] = []
  for position, token in enumerate(tokens):
    if token in ("[CLS]", "[SEP]"):
      continue
    if candidates and token.startswith("##"):
      candidates[-1].append(position)
    else:
      candidates.append([position])
  return candidates


def _masked(token: str, vocab_words: Sequence[str], rng: random.Random) -> str:
  if rng.random() < 0.8:
    return "[MASK]"
  if rng.random() < 0.5:
    return token
  return vocab_words[rng.randint(0, len(vocab_words) - 1)]


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
  """Writes instances as TFRecord files, dealt to them in turn; see `RecordFiles`.

  Args:
    instances: what to write.
    tokenizer: the `tokenization.FullTokenizer` whose ids are written.
    max_seq_length: S, to which sequences are padded.
    max_predictions_per_seq: P, to which masks are padded.
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
  with pretraining_data.RecordFiles(output_files, facts) as files:
    remaining = iter(instances)
    while batch := list(itertools.islice(remaining, _BATCH)):
      rows = [
        _features(instance, tokenizer, max_seq_length, max_predictions_per_seq)
        for instance in batch
      ]
      for instance, features in zip(batch[: _SHOWN_EXAMPLES - files.count], rows, strict=False):
        _log_example(instance, features)
      columns = {name: np.array([features[name] for features in rows]) for name in rows[0]}
      for instance, record in zip(batch, encode_examples(columns), strict=True):
        files.write(record, len(instance.segment_ids))
      progress.update(files.count)
  logging.info("Wrote %d total instances", files.count)


def _features(instance, tokenizer, max_seq_length: int, max_predictions_per_seq: int) -> dict:
  """Name -> values: int64 `[S]`, int64 `[P]` (weights float32), and the label int64 `[1]`."""
  length, masks = len(instance.segment_ids), len(instance.masked_lm_positions)
  if length > max_seq_length or masks > max_predictions_per_seq:
    raise ValueError(
      f"An instance has {length} tokens and {masks} masks; max_seq_length is {max_seq_length}, "
      f"max_predictions_per_seq {max_predictions_per_seq}."
    )
  if isinstance(instance, pretraining_data.StoredInstance):
    input_ids, masked_lm_ids = instance.input_ids, instance.masked_lm_ids
  else:
    input_ids = tokenizer.convert_tokens_to_ids(instance.tokens)
    masked_lm_ids = tokenizer.convert_tokens_to_ids(instance.masked_lm_labels)
  padding, no_masks = [0] * (max_seq_length - length), [0] * (max_predictions_per_seq - masks)
  return {
    "input_ids": input_ids + padding,
    "input_mask": [1] * length + padding,
    "segment_ids": list(instance.segment_ids) + padding,
    "masked_lm_positions": list(instance.masked_lm_positions) + no_masks,
    "masked_lm_ids": masked_lm_ids + no_masks,
    "masked_lm_weights": [1.0] * masks + [0.0] * len(no_masks),
    "next_sentence_labels": [int(instance.is_random_next)],  # 1: not the next sentence
  }


def _log_example(instance, features) -> None:
  logging.info("*** Example ***")
  logging.info("tokens: %s", " ".join(instance.tokens))
  for name, values in features.items():
    logging.info("%s: %s", name, " ".join(map(str, values)))


# ---------------------------------------------------------------------------------------------
# The job.


def main(_) -> None:
  """Creates the records as the flags say."""
  command_line.check_required()
  check_flags()
  input_files = text_files.find_input_files(FLAGS.input_file)
  output_files = [path.strip() for path in FLAGS.output_file.split(",") if path.strip()]
  is_beam = FLAGS.engine == "beam"
  pretraining_data.check_output_files(output_files, input_files, may_be_remote=is_beam)
  settings = _settings()
  tokenizer = blocks.load_tables(settings).tokenizer
  facts = settings.facts(tokenizer.vocab)
  if FLAGS.gzip:
    facts["compression"] = "GZIP"
  _log_files("Reading from input files", input_files)
  if is_beam:
    engine = _import_beam_engine()
    engine.create_records(input_files, output_files, settings, facts, FLAGS.beam_args)
  elif num_workers := FLAGS.num_workers or _workers_needed():
    workers.create_records(input_files, output_files, settings, num_workers, facts)
  else:
    _create_original_records(input_files, output_files, tokenizer, settings, facts)


def _import_beam_engine():
  with installation.extra("beam", "--engine=beam"):
    from bert.pretraining import beam
  return beam


def _settings() -> blocks.BlockSettings:
  text_format = corpus.TextFormat(FLAGS.strict_utf8, FLAGS.split_sentences, FLAGS.jsonl_field)
  names = set(blocks.BlockSettings._fields) - {"text_format"}
  values = {name: FLAGS[name].value for name in names}
  return blocks.BlockSettings(**values, text_format=text_format)


def _workers_needed() -> int:
  """1 if an option is used that the original's stream does not have, else 0."""
  given = [name for name in _NEW_STREAM_FLAGS if FLAGS[name].value != FLAGS[name].default]
  if not given:
    return 0
  logging.info(
    "--%s is an option of --num_workers: the records are made as with --num_workers=1.", given[0]
  )
  return 1


def _create_original_records(input_files, output_files, tokenizer, settings, facts) -> None:
  folder = os.path.dirname(output_files[0]) or "."
  with pretraining_data.Workspace(folder, tokenizer) as workspace:
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
    _log_files("Writing to output files", output_files)
    write_instance_to_example_files(
      instances,
      tokenizer,
      settings.max_seq_length,
      settings.max_predictions_per_seq,
      output_files,
      facts=facts,
    )


def check_flags() -> None:
  """Refuses values that would fail, or give nothing of use, after hours of reading.

  Raises:
    UsageError: a flag has a value that it cannot have.
  """
  for name, smallest in _SMALLEST.items():
    if FLAGS[name].value < smallest:
      raise command_line.UsageError(f"--{name}={FLAGS[name].value}: {smallest} is the smallest.")
  for name in ("masked_lm_prob", "short_seq_prob"):
    if not 0 <= FLAGS[name].value <= 1:
      raise command_line.UsageError(f"--{name}={FLAGS[name].value}: a share is from 0 to 1.")
  if FLAGS.whole_words_by_space and not (FLAGS.do_whole_word_mask or FLAGS.ngram_max > 1):
    raise command_line.UsageError(
      "--whole_words_by_space says what a word is; add --do_whole_word_mask or --ngram_max."
    )
  if FLAGS.dynamic_masking and FLAGS.ngram_max > 1:
    raise command_line.UsageError(
      "--ngram_max draws masks now, --dynamic_masking leaves them to run_pretraining.py: "
      "choose one."
    )
  if FLAGS.engine == "beam" and FLAGS.num_workers:
    raise command_line.UsageError("--engine=beam: the runner has workers, leave --num_workers out.")
  if FLAGS.beam_args and FLAGS.engine != "beam":
    raise command_line.UsageError("--beam_args needs --engine=beam.")
  if FLAGS.dynamic_masking and FLAGS.dupe_factor > 1:
    logging.info(
      "--dynamic_masking draws new masks in each epoch: --dupe_factor=1 takes less room than %d.",
      FLAGS.dupe_factor,
    )
  wanted = int(FLAGS.max_seq_length * FLAGS.masked_lm_prob)
  if FLAGS.max_predictions_per_seq < wanted:
    logging.warning(
      "--max_predictions_per_seq=%d cuts the masks of long sequences short: %d x %g makes %d.",
      FLAGS.max_predictions_per_seq,
      FLAGS.max_seq_length,
      FLAGS.masked_lm_prob,
      wanted,
    )


def _log_files(title: str, paths: Sequence[str]) -> None:
  logging.info("*** %s ***", title)
  for path in paths:
    logging.info("  %s", path)


if __name__ == "__main__":
  command_line.run(main, define_flags)
