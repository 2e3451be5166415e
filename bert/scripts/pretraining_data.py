"""Where `run_pretraining.py` finds its records, and how their words are masked."""

from collections.abc import Mapping

from bert.checkpoints import model_files
from bert.io import filesystem
from bert.model.configuration import BertConfig
from bert.scripts import command_line
from bert.scripts.run_settings import RunSettings


def find_files(flag: str, patterns: str) -> list[str]:
  """The files of patterns that are joined by commas, those of each pattern sorted.

  Args:
    flag: where they come from, for messages.
    patterns: its value.

  Raises:
    UsageError: a pattern matches no file.
  """
  found = []
  for pattern in filter(None, map(str.strip, patterns.split(","))):
    # Hidden files are not meant by `*`, such as the manifest beside each file of records.
    matches = filesystem.matching(pattern)
    if not matches:
      raise command_line.UsageError(f"--{flag}: {pattern} matches no file.")
    found += matches
  if not found:
    raise command_line.UsageError(f"--{flag}={patterns} names no file.")
  return found


def masking_of(settings: RunSettings, vocab: Mapping[str, int] | None, bert_config: BertConfig):
  """The `dynamic_masking.Masking` of `--dynamic_masking`.

  Args:
    settings: of the run.
    vocab: token -> id, of `--vocab_file`; None without one.
    bert_config: of the model.

  Raises:
    UsageError: `--vocab_file` is missing.
    ValueError: it lacks a special token, or has more tokens than the model.
  """
  from bert.pretraining import dynamic_masking

  if vocab is None:
    raise command_line.UsageError(
      "--dynamic_masking needs --vocab_file: random words are drawn from the vocabulary."
    )
  try:
    masking = dynamic_masking.Masking.from_vocabulary(
      vocab,
      max_predictions_per_seq=settings.max_predictions_per_seq,
      masked_lm_prob=settings.masked_lm_prob,
      whole_words=settings.do_whole_word_mask,
    )
  except ValueError as error:
    raise ValueError(f"--vocab_file={settings.vocab_file}: {error}") from None
  model_files.check_vocabulary_size(
    vocab, settings.vocab_file, bert_config.vocab_size, settings.bert_config_file
  )
  return masking
