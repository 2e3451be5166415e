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
"""

import os
import random
from collections.abc import Iterator, Sequence

from absl import flags, logging

import command_line
import corpus
import pretraining_data
from pretraining_data import TrainingInstance, shuffle

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


def define_flags() -> None:
  """Defines this script's flags; names, types and defaults of 2018 are unchanged."""
  with command_line.flag_group("Files"):
    flags.DEFINE_string("input_file", None, "Text files or patterns, separated by commas.")
    flags.DEFINE_string("output_file", None, "TFRecord files to write, separated by commas.")
    flags.DEFINE_string("vocab_file", None, "The vocabulary of the model to be trained.")
    flags.DEFINE_bool("strict_utf8", False, "Refuse text that is not UTF-8, instead of mending it.")
  with command_line.flag_group("Text"):
    flags.DEFINE_bool("do_lower_case", True, "True for uncased models, False for cased ones.")
    flags.DEFINE_integer("max_seq_length", 128, "Tokens in a sequence, special ones included.")
    flags.DEFINE_float("short_seq_prob", 0.1, "Share of documents that give shorter sequences.")
  with command_line.flag_group("Masks"):
    flags.DEFINE_float("masked_lm_prob", 0.15, "Share of tokens to predict.")
    flags.DEFINE_integer("max_predictions_per_seq", 20, "Tokens to predict in a sequence, at most.")
    flags.DEFINE_bool("do_whole_word_mask", False, "Mask all pieces of a word, or none.")
    flags.DEFINE_integer("dupe_factor", 10, "Passes over the text, each with masks of its own.")
    flags.DEFINE_integer("random_seed", 12345, "Decides everything that is drawn.")
  command_line.mark_required(["input_file", "output_file", "vocab_file"])


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
  strict_utf8: bool = False,
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
    strict_utf8: refuse invalid UTF-8.
    workspace: where documents and instances are kept, and valid as long as it is open; by default
      in memory.

  Returns:
    The instances, as a list unless there is a `workspace`.

  Raises:
    CorpusError: there is no text, or (`strict_utf8`) no valid text.
  """
  statistics = corpus.TextStatistics(_total_bytes(input_files))
  sentences = corpus.read_sentences(input_files, tokenizer, statistics, strict_utf8)
  if workspace is None:
    documents, instances = corpus.split_documents(sentences), []
  else:
    documents, instances = workspace.store_documents(sentences), workspace.new_instances()
  statistics.log()
  if not documents:
    raise corpus.CorpusError(f"There is no text in {', '.join(input_files)}.")
  shuffle(documents, rng)

  vocab_words = list(tokenizer.vocab)
  progress = corpus.Progress("Creating", dupe_factor * len(documents), "documents")
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


def _total_bytes(input_files: Sequence[str]) -> int:
  """The size of all files, or 0 if one is not on a local disk."""
  if not all(os.path.isfile(path) for path in input_files):
    return 0
  return sum(map(os.path.getsize, input_files))


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
  candidates = _mask_candidates(tokens, do_whole_word_mask)
  rng.shuffle(candidates)
  num_to_predict = min(max_predictions_per_seq, max(1, round(len(tokens) * masked_lm_prob)))
  output = list(tokens)
  positions: list[int] = []
  for word in candidates:
    if len(positions) >= num_to_predict:
      break
    if len(positions) + len(word) > num_to_predict:
      continue
    for position in word:
      output[position] = _masked(tokens[position], vocab_words, rng)
      positions.append(position)
  positions.sort()
  return output, positions, [tokens[position] for position in positions]


def _mask_candidates(tokens: Sequence[str], do_whole_word_mask: bool) -> list[list[int]]:
  """Positions that are chosen together.

  Example:
    >>> _mask_candidates(["[CLS]", "un", "##able", "to", "[SEP]"], do_whole_word_mask=True)
    [[1, 2], [3]]
    >>> _mask_candidates(["[CLS]", "un", "##able", "to", "[SEP]"], do_whole_word_mask=False)
    [[1], [2], [3]]
  """
  candidates: list[list[int]] = []
  for position, token in enumerate(tokens):
    if token in ("[CLS]", "[SEP]"):
      continue
    if do_whole_word_mask and candidates and token.startswith("##"):
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
  random_seed: int | None = None,
) -> None:
  """Writes instances as TFRecord files, dealt to them in turn; see `RecordFiles`.

  Args:
    instances: what to write.
    tokenizer: the `tokenization.FullTokenizer` whose ids are written.
    max_seq_length: S, to which sequences are padded.
    max_predictions_per_seq: P, to which masks are padded.
    output_files: the files; they appear when all of them are complete.
    random_seed: for the manifests.

  Raises:
    ValueError: an instance is too long, or a token has no id.
    OSError: a file cannot be written.
  """
  import input_pipeline

  facts = {
    "vocabulary": pretraining_data.vocabulary_hash(tokenizer.vocab),
    "max_seq_length": max_seq_length,
    "max_predictions_per_seq": max_predictions_per_seq,
    "random_seed": random_seed,
  }
  progress = corpus.Progress("Writing", len(instances), "instances")
  with pretraining_data.RecordFiles(output_files, facts) as files:
    for index, instance in enumerate(instances):
      features = _features(instance, tokenizer, max_seq_length, max_predictions_per_seq)
      files.write(input_pipeline.serialize_example(features), len(instance.tokens))
      if index < _SHOWN_EXAMPLES:
        _log_example(instance, features)
      progress.update(index + 1)
  logging.info("Wrote %d total instances", files.count)


def _features(instance, tokenizer, max_seq_length: int, max_predictions_per_seq: int) -> dict:
  """Name -> values: int64 `[S]`, int64 `[P]` (weights float32), and the label int64 `[1]`."""
  length, masks = len(instance.tokens), len(instance.masked_lm_positions)
  if length > max_seq_length or masks > max_predictions_per_seq:
    raise ValueError(
      f"An instance has {length} tokens and {masks} masks; max_seq_length is {max_seq_length}, "
      f"max_predictions_per_seq {max_predictions_per_seq}."
    )
  padding, no_masks = [0] * (max_seq_length - length), [0] * (max_predictions_per_seq - masks)
  return {
    "input_ids": tokenizer.convert_tokens_to_ids(instance.tokens) + padding,
    "input_mask": [1] * length + padding,
    "segment_ids": list(instance.segment_ids) + padding,
    "masked_lm_positions": list(instance.masked_lm_positions) + no_masks,
    "masked_lm_ids": tokenizer.convert_tokens_to_ids(instance.masked_lm_labels) + no_masks,
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
  input_files = corpus.find_input_files(FLAGS.input_file)
  output_files = [path.strip() for path in FLAGS.output_file.split(",") if path.strip()]
  pretraining_data.check_output_files(output_files, input_files)
  tokenizer = _load_tokenizer()
  _log_files("Reading from input files", input_files)
  folder = os.path.dirname(output_files[0]) or "."
  with pretraining_data.Workspace(folder, tokenizer) as workspace:
    instances = create_training_instances(
      input_files,
      tokenizer,
      FLAGS.max_seq_length,
      FLAGS.dupe_factor,
      FLAGS.short_seq_prob,
      FLAGS.masked_lm_prob,
      FLAGS.max_predictions_per_seq,
      random.Random(FLAGS.random_seed),
      do_whole_word_mask=FLAGS.do_whole_word_mask,
      strict_utf8=FLAGS.strict_utf8,
      workspace=workspace,
    )
    _log_files("Writing to output files", output_files)
    write_instance_to_example_files(
      instances,
      tokenizer,
      FLAGS.max_seq_length,
      FLAGS.max_predictions_per_seq,
      output_files,
      random_seed=FLAGS.random_seed,
    )


def check_flags() -> None:
  """Refuses values that would fail, or give nothing of use, after hours of reading.

  Raises:
    UsageError: a flag has a value that it cannot have.
  """
  for name, smallest in (("max_seq_length", 5), ("max_predictions_per_seq", 1), ("dupe_factor", 1)):
    if FLAGS[name].value < smallest:
      raise command_line.UsageError(f"--{name}={FLAGS[name].value}: {smallest} is the smallest.")
  for name in ("masked_lm_prob", "short_seq_prob"):
    if not 0 <= FLAGS[name].value <= 1:
      raise command_line.UsageError(f"--{name}={FLAGS[name].value}: a share is from 0 to 1.")
  wanted = int(FLAGS.max_seq_length * FLAGS.masked_lm_prob)
  if FLAGS.max_predictions_per_seq < wanted:
    logging.warning(
      "--max_predictions_per_seq=%d cuts the masks of long sequences short: %d x %g makes %d.",
      FLAGS.max_predictions_per_seq,
      FLAGS.max_seq_length,
      FLAGS.masked_lm_prob,
      wanted,
    )


def _load_tokenizer():
  import tokenization

  tokenizer = tokenization.FullTokenizer(FLAGS.vocab_file, do_lower_case=FLAGS.do_lower_case)
  missing = [t for t in ("[CLS]", "[SEP]", "[MASK]", "[UNK]") if t not in tokenizer.vocab]
  if missing:
    raise tokenization.VocabularyError(f"{FLAGS.vocab_file} lacks {', '.join(missing)}.")
  return tokenizer


def _log_files(title: str, paths: Sequence[str]) -> None:
  logging.info("*** %s ***", title)
  for path in paths:
    logging.info("  %s", path)


if __name__ == "__main__":
  command_line.run(main, define_flags)
