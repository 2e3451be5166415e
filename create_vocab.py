"""Learns a WordPiece vocabulary from text, or adds the words of a domain to an existing one.

  python create_vocab.py --input_file=wiki/*.txt,books.txt --output_file=vocab.txt \\
    --vocab_size=30522 --do_lower_case=True

The text is UTF-8; words are those that training will see. The file has exactly --vocab_size tokens,
and every word of the text can be spelled with them, unless the text has more different characters
than --max_unique_chars.

A vocabulary of a released model has [unusedN] lines. New words can take their places; all other ids
stay, so the checkpoint of the model fits as it is:

  python create_vocab.py --input_file=medical.txt --output_file=medical_vocab.txt \\
    --extend=$BERT_BASE_DIR/vocab.txt --num_new=500

If they are not enough, new words are appended, and the checkpoint gets rows for them:

  python create_vocab.py --input_file=medical.txt --output_file=medical_vocab.txt \\
    --extend=$BERT_BASE_DIR/vocab.txt --extend_by=append --num_new=5000
  python convert_checkpoint.py resize_vocab --init_checkpoint=$BERT_BASE_DIR/bert_model.ckpt \\
    --old_vocab_file=$BERT_BASE_DIR/vocab.txt --vocab_file=medical_vocab.txt --output_dir=medical
"""

import os

from absl import flags, logging

from bert.pretraining import instances
from bert.scripts import command_line, flag_groups
from bert.text import corpus, vocabulary, vocabulary_file, word_counts

__all__ = ["main"]

FLAGS = flags.FLAGS


def define_flags() -> None:
  """Defines this script's flags."""
  with flag_groups.flag_group("Files"):
    flags.DEFINE_string("input_file", None, "Text files or patterns, separated by commas.")
    flags.DEFINE_string("output_file", None, "The vocabulary to write, one token on a line.")
    flags.DEFINE_bool("strict_utf8", False, "Refuse text that is not UTF-8, instead of mending it.")
  with flag_groups.flag_group("Vocabulary"):
    flags.DEFINE_integer("vocab_size", 30522, "Number of tokens.")
    flags.DEFINE_bool("do_lower_case", True, "True for uncased models, False for cased ones.")
    flags.DEFINE_string(
      "reserved_tokens",
      ",".join(vocabulary.RESERVED_TOKENS),
      "Tokens that are not learned, [PAD] first: its id, 0, is that of padding.",
    )
    flags.DEFINE_integer(
      "num_unused",
      0,
      "Lines [unused0], [unused1], ... for words to come. With 99 or more, [UNK], [CLS], [SEP] and "
      "[MASK] have the ids 100 to 103, as in released models.",
    )
    flags.DEFINE_integer("min_count", 2, "Rarer words and pieces are not learned, only spelled.")
    flags.DEFINE_integer(
      "max_unique_chars", 1000, "Keep the most frequent characters; words with others are [UNK]."
    )
  with flag_groups.flag_group("Extending a vocabulary"):
    flags.DEFINE_string("extend", None, "The vocabulary to which new tokens are added.")
    flags.DEFINE_enum(
      "extend_by",
      "replace_unused",
      ["replace_unused", "append"],
      "Where new tokens go: in place of [unusedN] lines, or to the end.",
    )
    flags.DEFINE_integer(
      "num_new", None, "How many tokens are added. Default: as many as there are [unusedN] lines."
    )
  with flag_groups.flag_group("Resources"):
    flags.DEFINE_integer("num_workers", None, "Processes that read. Default: one for each CPU.")
    flags.DEFINE_integer(
      "max_words",
      word_counts.WordCounts.max_words,
      "Different words to count before rare ones are forgotten; a million takes about 150 MB.",
    )
    flags.DEFINE_integer(
      "max_input_words",
      500_000,
      "Learn from so many different words, the most frequent ones.",
    )
  flag_groups.mark_required(["input_file", "output_file"])


def main(_) -> None:
  """Writes a vocabulary as the flags say."""
  command_line.check_required()
  check_flags()
  input_files = corpus.find_input_files(FLAGS.input_file)
  old = [FLAGS.extend] if FLAGS.extend else []
  instances.check_output_files([FLAGS.output_file], input_files + old)
  old_tokens = vocabulary_file.read_tokens(FLAGS.extend) if FLAGS.extend else []
  num_new = _number_of_new_tokens(old_tokens) if FLAGS.extend else 0
  counts = word_counts.count_words(
    input_files,
    FLAGS.do_lower_case,
    FLAGS.strict_utf8,
    FLAGS.num_workers or os.cpu_count() or 1,
    FLAGS.max_words,
  )
  report_counts(counts)
  tokens = _extend(counts, old_tokens, num_new) if FLAGS.extend else _learn(counts)
  report_coverage(counts, tokens, old_tokens)
  vocabulary_file.write_tokens(FLAGS.output_file, tokens)
  logging.info("Wrote %d tokens to %s.", len(tokens), FLAGS.output_file)


def check_flags() -> None:
  """Refuses values that would fail, or give nothing of use, after the text was read.

  Raises:
    UsageError: a flag has a value that it cannot have.
  """
  smallest = {
    "vocab_size": 1,
    "num_unused": 0,
    "min_count": 1,
    "max_unique_chars": 1,
    "num_new": 1,
    "num_workers": 1,
    "max_words": 1000,
    "max_input_words": 1,
  }
  for name, bound in smallest.items():
    value = FLAGS[name].value
    if value is not None and value < bound:
      raise command_line.UsageError(f"--{name}={value}: {bound} is the smallest.")
  if FLAGS.extend:
    learning = ("vocab_size", "reserved_tokens", "num_unused", "max_unique_chars")
    command_line.explain_ignored_flags(dict.fromkeys(learning, "--extend keeps all other tokens"))
  else:
    extending = ("extend_by", "num_new")
    command_line.explain_ignored_flags(dict.fromkeys(extending, "there is no --extend"))
  _check_reserved_tokens()


def _reserved_tokens() -> list[str]:
  return [token.strip() for token in FLAGS.reserved_tokens.split(",")]


def _check_reserved_tokens() -> None:
  tokens = _reserved_tokens()
  problem = None
  missing = [token for token in vocabulary.RESERVED_TOKENS if token not in tokens]
  if missing:
    problem = f"{', '.join(missing)} must be among them, or no model can be trained"
  elif len(set(tokens)) < len(tokens) or not all(tokens):
    problem = "a token stands there twice, or is empty"
  elif any(token.split() != [token] for token in tokens):
    problem = "a token has a blank in it"
  elif tokens[0] != "[PAD]":
    problem = "[PAD] must be the first, since sequences are padded with id 0"
  elif vocabulary.unused_ids(tokens):
    problem = "for [unusedN] there is --num_unused"
  if problem:
    raise command_line.UsageError(f"--reserved_tokens={FLAGS.reserved_tokens}: {problem}.")


def _number_of_new_tokens(old_tokens: list[str]) -> int:
  """How many to find, checked before the text is read."""
  num_unused = len(vocabulary.unused_ids(old_tokens))
  if FLAGS.extend_by == "append":
    if FLAGS.num_new is None:
      raise command_line.UsageError("--extend_by=append needs --num_new: how many tokens to add.")
  elif not num_unused:
    raise vocabulary_file.VocabularyError(
      f"--extend={FLAGS.extend} has no [unusedN] line to replace. --extend_by=append adds lines."
    )
  elif (FLAGS.num_new or 0) > num_unused:
    raise vocabulary_file.VocabularyError(
      f"--num_new={FLAGS.num_new}: {FLAGS.extend} has {num_unused} [unusedN] lines. Ask for so "
      "many, or add lines by --extend_by=append."
    )
  return FLAGS.num_new or num_unused


def _learn(counts: word_counts.WordCounts) -> list[str]:
  return vocabulary.learn_vocabulary(
    counts,
    FLAGS.vocab_size,
    _reserved_tokens(),
    FLAGS.num_unused,
    FLAGS.min_count,
    FLAGS.max_unique_chars,
    FLAGS.max_input_words,
  )


def _extend(counts: word_counts.WordCounts, old_tokens: list[str], num_new: int) -> list[str]:
  new = vocabulary.find_new_pieces(
    counts, old_tokens, num_new, FLAGS.min_count, FLAGS.max_input_words
  )
  if len(new) < num_new:
    logging.warning("The text gives %d new tokens only, not %d.", len(new), num_new)
  logging.info("New tokens, the most useful ones first: %s", " ".join(new[:30]))
  if FLAGS.extend_by == "append":
    return old_tokens + new
  return vocabulary.replace_unused(old_tokens, new)


# ---------------------------------------------------------------------------------------------
# What is said about the text and the vocabulary.


def report_counts(counts: word_counts.WordCounts) -> None:
  """Logs what was read, and what of it is not used.

  Raises:
    CorpusError: there is no word.
  """
  if not counts.words:
    raise corpus.CorpusError(f"--input_file={FLAGS.input_file}: there is no word in the text.")
  logging.info(
    "Counted %d words, %d different ones, %d characters (%.1f MB).",
    sum(counts.words.values()),
    len(counts.words),
    len(counts.characters),
    counts.read_bytes / 1e6,
  )
  if counts.forgotten:
    logging.warning(
      "More than --max_words=%d different words: rare ones were forgotten, which occur %d times.",
      counts.max_words,
      counts.forgotten,
    )
  if counts.long_words:
    logging.warning(
      "%d words have more than %d characters: they will be [UNK].",
      counts.long_words,
      word_counts.MAX_WORD_CHARS,
    )
  if counts.invalid_lines:
    logging.warning(
      "%d lines are not valid UTF-8, the first one %s; the invalid bytes were dropped. "
      "--strict_utf8 refuses them.",
      counts.invalid_lines,
      counts.first_invalid,
    )


def report_coverage(
  counts: word_counts.WordCounts, tokens: list[str], old_tokens: list[str]
) -> None:
  """Logs how well the vocabulary fits the text that it was made from."""
  if old_tokens:
    logging.info("Before: %s.", vocabulary.measure(counts, old_tokens))
  coverage = vocabulary.measure(counts, tokens)
  logging.info("%s%s.", "After: " if old_tokens else "", coverage)
  if coverage.unknown and not old_tokens:
    logging.warning(
      "The text has %d different characters, more than --max_unique_chars=%d: %.4f%% of its words "
      "are [UNK]. --max_unique_chars=%d covers 99.99%% of the characters.",
      len(counts.characters),
      FLAGS.max_unique_chars,
      100 * coverage.unknown / coverage.words,
      vocabulary.characters_for_share(counts.characters, 0.9999),
    )


if __name__ == "__main__":
  command_line.run(main, define_flags)
