"""Learns a WordPiece vocabulary from text, or adds the words of a domain to an existing one.

  python create_vocab.py --input_file=wiki/*.txt,books.txt --output_file=vocab.txt \\
    --vocab_size=30522 --do_lower_case=True

The text is UTF-8. Words are split off as in training. The file has exactly --vocab_size tokens, and
every word of the text can be spelled with them, unless the text has more different characters than
--max_unique_chars. Pieces of words are learned by the library tokenizers, an optional package:
pip install "bert-alive[roberta]".

A vocabulary of a released model has [unusedN] lines. New words can replace them; all other ids stay
the same, so the vocabulary still fits the model's checkpoint:

  python create_vocab.py --input_file=medical.txt --output_file=medical_vocab.txt \\
    --extend=$BERT_BASE_DIR/vocab.txt --num_new=500

If these lines are too few, append the new words, and add rows for them to the checkpoint:

  python create_vocab.py --input_file=medical.txt --output_file=medical_vocab.txt \\
    --extend=$BERT_BASE_DIR/vocab.txt --extend_by=append --num_new=5000
  python convert_checkpoint.py resize_vocab --init_checkpoint=$BERT_BASE_DIR/bert_model.ckpt \\
    --old_vocab_file=$BERT_BASE_DIR/vocab.txt --vocab_file=medical_vocab.txt --output_dir=medical
"""

import bert  # isort: skip  # noqa: F401  from here on Ctrl-C is one line, also while importing

import os

from absl import flags, logging

from bert.io import atomic_files, tokenizer_settings
from bert.scripts import command_line, flag_groups, output_files, path_flags
from bert.text import text_files, tokenizer_kinds, vocabulary, vocabulary_file, word_counts

__all__ = ["main"]

FLAGS = flags.FLAGS


def define_flags() -> None:
  """Defines this script's flags."""
  with flag_groups.flag_group("Files"):
    path_flags.define(
      "input_file", None, "Text files or patterns, separated by commas.", several=True
    )
    path_flags.define(
      "output_file", None, "The vocabulary file to write, one token per line.", local=True
    )
    flags.DEFINE_bool(
      "strict_utf8", False, "Stop at text that is not UTF-8, instead of dropping the invalid bytes."
    )
  with flag_groups.flag_group("Vocabulary"):
    flags.DEFINE_integer("vocab_size", 30522, "Number of tokens in the vocabulary.")
    flags.DEFINE_bool("do_lower_case", True, "True for uncased models, False for cased ones.")
    flags.DEFINE_integer(
      "num_unused",
      0,
      "Number of placeholder lines [unused0], [unused1], ... for later additions. With 99 or more, "
      "[UNK], [CLS], [SEP] and [MASK] have the ids 100 to 103, as in released models.",
    )
    flags.DEFINE_integer(
      "min_count", 2, "Learn only words and pieces that occur at least this often."
    )
    flags.DEFINE_integer(
      "max_unique_chars",
      1000,
      "Keep at most this many characters, the most frequent ones. Words with other characters are "
      "[UNK].",
    )
  with flag_groups.flag_group("Extending a vocabulary"):
    path_flags.define("extend", None, "An existing vocabulary to add tokens to.")
    flags.DEFINE_enum(
      "extend_by",
      "replace_unused",
      ["replace_unused", "append"],
      "Where to put new tokens: in place of [unusedN] lines, or at the end.",
    )
    flags.DEFINE_integer(
      "num_new", None, "Number of tokens to add. Default: the number of [unusedN] lines."
    )
  with flag_groups.flag_group("Resources"):
    flags.DEFINE_integer("num_workers", None, "Number of reading processes. Default: one per CPU.")
  flag_groups.mark_required(["input_file", "output_file"])


def main(_) -> None:
  """Learns or extends a vocabulary."""
  command_line.check_required()
  check_flags()
  vocabulary.trainer_library()  # an error now, not after hours of counting
  input_files = text_files.find_input_files(FLAGS.input_file)
  text_files.warn_of_json(input_files, "Write its texts to a file of their own.")
  old = [FLAGS.extend] if FLAGS.extend else []
  output_files.prepare([FLAGS.output_file], input_files + old)
  old_tokens = vocabulary_file.read_tokens(FLAGS.extend) if FLAGS.extend else []
  num_new = _number_of_new_tokens(old_tokens) if FLAGS.extend else 0
  stated, files = stated_settings(), settings_files()
  counts = word_counts.count_words(
    input_files,
    FLAGS.do_lower_case if stated.do_lower_case is None else stated.do_lower_case,
    FLAGS.strict_utf8,
    FLAGS.num_workers or os.cpu_count() or 1,
    splitting=stated.splitting,
  )
  report_counts(counts)
  tokens = _extend(counts, old_tokens, num_new) if FLAGS.extend else _learn(counts)
  report_coverage(counts, tokens, old_tokens)
  for path, content in files.items():
    atomic_files.write_bytes(path, content)
  vocabulary_file.write_tokens(FLAGS.output_file, tokens)
  logging.info("Wrote %d tokens to %s.", len(tokens), FLAGS.output_file)


def check_flags() -> None:
  """Refuses values (UsageError) that fail, or give a useless result, after the text was read."""
  smallest = {
    "vocab_size": 1,
    "num_unused": 0,
    "min_count": 1,
    "max_unique_chars": 1,
    "num_new": 1,
    "num_workers": 1,
  }
  for name, bound in smallest.items():
    value = FLAGS[name].value
    if value is not None and value < bound:
      raise command_line.UsageError(f"--{name}={value}: must be at least {bound}.")
  if FLAGS.extend:
    learning = ("vocab_size", "num_unused", "max_unique_chars")
    command_line.explain_ignored_flags(dict.fromkeys(learning, "--extend keeps all other tokens"))
  else:
    extending = ("extend_by", "num_new")
    command_line.explain_ignored_flags(dict.fromkeys(extending, "--extend is not given"))


def stated_settings() -> tokenizer_settings.TokenizerSettings:
  """Returns what is stated beside the vocabulary of --extend; --do_lower_case comes before it."""
  if not FLAGS.extend:
    return tokenizer_settings.TokenizerSettings()
  stated = vocabulary_file.supported_settings(FLAGS.extend)
  return stated._replace(do_lower_case=None) if FLAGS["do_lower_case"].present else stated


def settings_files() -> dict[str, bytes]:
  """Returns the files that state the same beside the new vocabulary, by their paths.

  Raises:
    UsageError: something else is stated there.
  """
  if not FLAGS.extend:
    return {}
  files = tokenizer_kinds.kept_settings(FLAGS.extend, with_case=True)
  folder = os.path.dirname(FLAGS.output_file)
  file = os.path.join(folder, tokenizer_settings.CONFIG)
  if not os.path.exists(file):
    return {os.path.join(folder, name): content for name, content in files.items()}
  if tokenizer_kinds.kept_settings(FLAGS.output_file, with_case=True) != files:
    raise command_line.UsageError(
      f"--output_file={FLAGS.output_file}: {file} states other settings than are beside --extend. "
      "Write to another directory."
    )
  return {}


def _number_of_new_tokens(old_tokens: list[str]) -> int:
  """Returns the number of tokens to find, checked before the text is read."""
  num_unused = len(vocabulary.unused_ids(old_tokens))
  if FLAGS.extend_by == "append":
    if FLAGS.num_new is None:
      raise command_line.UsageError("--extend_by=append needs --num_new: the number of new tokens.")
  elif not num_unused:
    raise vocabulary_file.VocabularyError(
      f"--extend={FLAGS.extend} has no [unusedN] line to replace. Use --extend_by=append."
    )
  elif (FLAGS.num_new or 0) > num_unused:
    raise vocabulary_file.VocabularyError(
      f"--num_new={FLAGS.num_new}: {FLAGS.extend} has only {num_unused} [unusedN] lines. Use "
      "a smaller number, or --extend_by=append."
    )
  return FLAGS.num_new or num_unused


def _learn(counts: word_counts.WordCounts) -> list[str]:
  return vocabulary.learn_vocabulary(
    counts,
    FLAGS.vocab_size,
    num_unused=FLAGS.num_unused,
    min_count=FLAGS.min_count,
    max_unique_chars=FLAGS.max_unique_chars,
  )


def _extend(counts: word_counts.WordCounts, old_tokens: list[str], num_new: int) -> list[str]:
  new = vocabulary.find_new_pieces(counts, old_tokens, num_new, FLAGS.min_count)
  if len(new) < num_new:
    logging.warning("Only %d new tokens were found in the text, not %d.", len(new), num_new)
  logging.info("New tokens, the most useful ones first: %s", " ".join(new[:30]))
  if FLAGS.extend_by == "append":
    return old_tokens + new
  return vocabulary.replace_unused(old_tokens, new)


# ---------------------------------------------------------------------------------------------
# Messages about the text and the vocabulary.


def report_counts(counts: word_counts.WordCounts) -> None:
  """Logs the size of the text, and what of it is not used; a CorpusError without any word."""
  if not counts.words:
    raise text_files.CorpusError(f"--input_file={FLAGS.input_file}: the text contains no word.")
  logging.info(
    "Counted %d words, %d different ones, %d characters (%.1f MB).",
    sum(counts.words.values()),
    len(counts.words),
    len(counts.characters),
    counts.read_bytes / 1e6,
  )
  if counts.forgotten:
    logging.warning(
      "More than %d different words: rare ones with %d occurrences were forgotten.",
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
      "%d lines are not valid UTF-8, the first is %s; their invalid bytes were dropped. Words such "
      "as Händler become Hndler: convert the file to UTF-8 (older programs write Windows-1252). To "
      "refuse such lines, use --strict_utf8.",
      counts.invalid_lines,
      text_files.describe_place(counts.first_invalid),
    )


def report_coverage(
  counts: word_counts.WordCounts, tokens: list[str], old_tokens: list[str]
) -> None:
  """Logs how well the vocabulary fits the text from which it was made."""
  if old_tokens:
    logging.info("Before: %s.", vocabulary.measure(counts, old_tokens))
  coverage = vocabulary.measure(counts, tokens)
  logging.info("%s%s.", "After: " if old_tokens else "", coverage)
  if coverage.unknown and not old_tokens:
    logging.warning(
      "The text has %d different characters, more than --max_unique_chars=%d: %.4f%% of its words "
      "are [UNK].",
      len(counts.characters),
      FLAGS.max_unique_chars,
      100 * coverage.unknown / coverage.words,
    )


if __name__ == "__main__":
  command_line.run(main, define_flags)
