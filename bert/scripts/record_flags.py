"""The flags of `create_pretraining_data.py`: checked, and as settings of the records."""

from collections.abc import Sequence

from absl import flags, logging

from bert.checkpoints import model_files
from bert.io import filesystem, tokenizer_settings, vocabulary_kind
from bert.pretraining.record_formats import FORMAT_OF_BYTE_PAIRS, FORMATS
from bert.pretraining.record_settings import RecordSettings, room_for_masks
from bert.scripts import command_line, runner_flags
from bert.text import corpus

FLAGS = flags.FLAGS

_SMALLEST = {
  "max_seq_length": 5,
  "max_predictions_per_seq": 1,
  "dupe_factor": 1,
  "ngram_max": 1,
  "num_workers": 0,
}
_NEW_STREAM_FLAGS = ("no_next_sentence", "ngram_max", "dynamic_masking")


def settings_of_flags() -> RecordSettings:
  """The settings of the records: the flags, and the format's defaults where one is not given.

  Raises:
    UsageError: a flag belongs to another format, or its value is invalid.
  """
  names = set(RecordSettings._fields) - {"text_format"}
  given = {name for name in names if command_line.flag_was_given(name)}
  values = {name: FLAGS[name].value for name in names}
  values["vocab_file"] = _vocabulary(values["vocab_file"])
  stated = values["vocab_file"] and tokenizer_settings.beside(values["vocab_file"]).do_lower_case
  if "do_lower_case" not in given and stated is not None:
    logging.info("--do_lower_case=%s, as stored with %s.", stated, values["vocab_file"])
    values["do_lower_case"] = stated
  values["format"] = _format_of(given, values["vocab_file"])
  rules = FORMATS[values["format"]]
  values |= {name: value for name, value in rules.defaults.items() if name not in given}
  if rules.room_of_share and "max_predictions_per_seq" not in given:
    room = room_for_masks(values["masked_lm_prob"], values["max_seq_length"])
    values["max_predictions_per_seq"] = room
  text_format = corpus.TextFormat(FLAGS.strict_utf8, FLAGS.split_sentences, FLAGS.jsonl_field)
  settings = RecordSettings(**values, text_format=text_format)
  _check_ranges(settings)
  _check_combinations(settings)
  _warn(settings)
  return settings


def _vocabulary(path: str | None) -> str | None:
  """`--vocab_file`; of a remote folder, the file in it, as `path_flags` does with local ones."""
  if not path or not filesystem.is_folder(path):
    return path
  try:
    return model_files.need_vocabulary(path)
  except ValueError as error:
    raise command_line.UsageError(f"--vocab_file: {error}") from None


def _format_of(given: set[str], vocab_file: str | None) -> str:
  """`--format`; if it is not given, the one that the vocabulary or a given flag belongs to."""
  foreign = sorted(FORMATS[FLAGS.format].unused & given)
  is_open = "format" not in given
  if is_open and vocab_file and vocabulary_kind.is_meant_as_byte_pairs(vocab_file):
    meant, reason = FORMAT_OF_BYTE_PAIRS, f"vocab_file={vocab_file}, a byte-level BPE,"
  elif not foreign:
    return FLAGS.format
  else:
    formats = [name for name, each in FORMATS.items() if foreign[0] not in each.unused]
    if not is_open:
      named = " and ".join(filter(None, [", ".join(formats[:-1]), formats[-1]]))
      raise command_line.UsageError(
        f"--{foreign[0]} means nothing with --format={FLAGS.format}, only with {named}. Omit it, "
        "or give another --format."
      )
    [meant], reason = formats, foreign[0]  # a flag that is not BERT's belongs to one family
  if others := sorted(FORMATS[meant].unused & given):
    raise command_line.UsageError(
      f"--{reason} means --format={meant}, with which --{others[0]} means nothing. Omit one."
    )
  logging.info("--%s means --format=%s.", reason, meant)
  return meant


def _check_ranges(settings: RecordSettings) -> None:
  """Refuses values that would fail, or give a useless result, only after hours of reading."""
  values = {**settings._asdict(), "num_workers": FLAGS.num_workers}
  for name, smallest in _SMALLEST.items():
    if values[name] < smallest:
      raise command_line.UsageError(f"--{name}={values[name]}: must be at least {smallest}.")
  for name in ("masked_lm_prob", "short_seq_prob"):
    if not 0 <= values[name] <= 1:
      raise command_line.UsageError(f"--{name}={values[name]}: must be between 0 and 1.")
  if settings.rules.seeds_numpy and not 0 <= settings.random_seed < 1 << 32:
    raise command_line.UsageError(
      f"--random_seed={settings.random_seed}: must be between 0 and 4294967295 with "
      f"--format={settings.format}, which seeds NumPy too."
    )


def _check_combinations(settings: RecordSettings) -> None:
  if settings.rules.of_lines and not settings.dynamic_masking:
    raise command_line.UsageError(
      f"--format={settings.format} writes no masks: distill.py draws them with --dynamic_masking."
    )
  if settings.dynamic_masking and settings.ngram_max > 1:
    given = command_line.flag_was_given("dynamic_masking")
    raise command_line.UsageError(
      "--ngram_max masks now, --dynamic_masking masks in run_pretraining.py: use only one of them."
      + ("" if given else f" With --format={settings.format}, add --nodynamic_masking.")
    )
  if settings.do_permutation and (runner_flags.is_beam() or FLAGS.num_workers):
    raise command_line.UsageError(
      "--do_permutation is part of the original's stream: omit --num_workers and --runner."
    )
  if runner_flags.is_beam() and FLAGS.num_workers:
    raise command_line.UsageError("--runner=beam has its own workers: omit --num_workers.")
  runner_flags.check()


def _warn(settings: RecordSettings) -> None:
  if settings.dynamic_masking and settings.dupe_factor > 1:
    logging.info(
      "--dynamic_masking masks in each epoch: --dupe_factor=1 takes less space than %d.",
      settings.dupe_factor,
    )
  wanted = int(settings.max_seq_length * settings.masked_lm_prob)
  has_masks = "masked_lm_prob" not in settings.rules.unused
  if has_masks and settings.max_predictions_per_seq < wanted:
    logging.warning(
      "--max_predictions_per_seq=%d is less than --masked_lm_prob of long sequences: %d x %g = %d.",
      settings.max_predictions_per_seq,
      settings.max_seq_length,
      settings.masked_lm_prob,
      wanted,
    )


def workers_of_flags(settings: RecordSettings) -> int:
  """`--num_workers`, but 1 instead of 0 if an option is used that the original did not have."""
  if settings.rules.needs_streams:
    return FLAGS.num_workers or 1
  given = [name for name in _NEW_STREAM_FLAGS if FLAGS[name].value != FLAGS[name].default]
  if FLAGS.num_workers or settings.format != "bert" or not given:
    return FLAGS.num_workers
  logging.info(
    "--%s requires --num_workers: the records are created as with --num_workers=1.", given[0]
  )
  return 1


def log_files(title: str, paths: Sequence[str]) -> None:
  """Logs names of files, as the original does."""
  logging.info("*** %s ***", title)
  for path in paths:
    logging.info("  %s", path)
