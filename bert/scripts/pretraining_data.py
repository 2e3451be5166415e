"""Where `run_pretraining.py` finds its records, what they are, and how their words are masked."""

import contextlib
import dataclasses
import itertools
import os
import warnings
from collections.abc import Mapping, Sequence

from absl import logging

from bert import tokenization
from bert.checkpoints import model_files
from bert.io import filesystem, record_files, vocabulary_kind
from bert.io.wording import counted
from bert.model.configuration import BertConfig
from bert.pretraining import record_checks
from bert.pretraining.record_checks import RecordFormat
from bert.pretraining.record_settings import room_for_masks
from bert.scripts import command_line
from bert.scripts.pretraining_settings import PretrainingSettings

# Of a model, beside its configuration or the records that were made with it.
_VOCABULARIES = (
  *(vocabulary_kind.VOCABULARY, vocabulary_kind.SENTENCE_PIECES),
  *(vocabulary_kind.BYTE_PAIRS, "vocab.json"),
)


def find_files(flag: str, patterns: str) -> list[str]:
  """Returns the files of patterns that are joined by commas, those of each pattern sorted.

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


def with_masks_of_records(
  settings: PretrainingSettings, bert_config: BertConfig, files: Sequence[str]
) -> PretrainingSettings:
  """Returns the settings of a model that learns masked words alone: masks as in the records.

  Where `--dynamic_masking` is not given, masks are drawn while reading if the first record has
  none; and where `--max_predictions_per_seq` is not, there is room for those of the record, or for
  `--masked_lm_prob` of its longest sequence. Other families keep the flags' defaults.

  Raises:
    RecordError: the first file is damaged.
  """
  if bert_config.family.objective != "mlm":
    return settings
  masked = record_checks.masked_positions(files[0])
  if "dynamic_masking" not in settings.given:
    settings = settings.replace(dynamic_masking=masked is None)
  if "max_predictions_per_seq" not in settings.given:
    drawn = room_for_masks(settings.masked_lm_prob, settings.max_seq_length)
    room = drawn if settings.dynamic_masking or masked is None else masked
    settings = settings.replace(max_predictions_per_seq=room)
  return settings


def with_vocabulary_of_records(
  settings: PretrainingSettings, files: Sequence[str]
) -> PretrainingSettings:
  """Finds `--vocab_file` beside the configuration or the records, if it is not given.

  With it the folder of the run is a model that every script reads. It is the vocabulary of the
  records, or it is not taken: their manifests have its hash.
  """
  digests = {record_files.read_manifest(path).get("vocabulary") for path in files}
  if settings.vocab_file or None in digests or len(digests) != 1:
    return settings
  folders = map(os.path.dirname, (settings.bert_config_file, files[0]))
  for folder, name in itertools.product(folders, _VOCABULARIES):
    path = os.path.join(folder, name)
    if not filesystem.is_file(path):
      continue
    with contextlib.suppress(ValueError, OSError), warnings.catch_warnings():
      warnings.simplefilter("ignore")  # of another model's file, which is then not taken
      if tokenization.vocabulary_hash(tokenization.load_vocab(path)) in digests:
        logging.info("--vocab_file=%s, the vocabulary of the records.", path)
        return settings.replace(vocab_file=path)
  return settings


def masking_of(
  settings: PretrainingSettings, vocab: Mapping[str, int] | None, bert_config: BertConfig
):
  """Returns the `dynamic_masking.Masking` of `--dynamic_masking`.

  The arguments are those of `Records`.

  Raises:
    UsageError: `--vocab_file` is missing.
    ValueError: it lacks a special token.
  """
  from bert.pretraining import dynamic_masking

  if vocab is None:
    raise command_line.UsageError(
      f"{_drawn_by(settings, bert_config) or '--dynamic_masking'} needs --vocab_file: masks are "
      "drawn with the vocabulary of the records."
    )
  try:
    return dynamic_masking.Masking.from_vocabulary(
      vocab,
      draws_special=not bert_config.family.positions_from_ids,
      max_predictions_per_seq=settings.max_predictions_per_seq,
      masked_lm_prob=settings.masked_lm_prob,
      whole_words=settings.do_whole_word_mask,
      electra=bert_config.family.has_generator,
    )
  except ValueError as error:
    raise ValueError(f"--vocab_file={settings.vocab_file}: {error}") from None


def _drawn_by(settings: PretrainingSettings, bert_config: BertConfig) -> str | None:
  """Returns what says that masks are drawn while reading, if it is not the user's flag."""
  if bert_config.family.has_generator:
    return f"a model of {bert_config.family.title}"
  if "dynamic_masking" in settings.given or not settings.dynamic_masking:
    return None
  return f"a model of {bert_config.family.title}"


class Records:
  """The files that a run reads: what they must hold, and what is known about them.

  Records to evaluate on may have fixed masks, where those to train on get theirs while they are
  read: then the loss on them can be compared between runs with other masks.
  """

  def __init__(
    self,
    settings: PretrainingSettings,
    bert_config: BertConfig,
    vocab: Mapping[str, int] | None,
    train_files: Sequence[str],
    eval_files: Sequence[str],
  ):
    """Reads the first record of the files to evaluate on, if it is to be known.

    Args:
      settings: of the run.
      bert_config: of the model.
      vocab: token -> id, of `--vocab_file`; None without one.
      train_files: paths.
      eval_files: paths.

    Raises:
      ValueError: the vocabulary is not the model's.
    """
    if vocab is not None:
      model_files.check_vocabulary_size(
        *(vocab, settings.vocab_file, bert_config.vocab_size, settings.bert_config_file),
        family=bert_config.family.name,
      )
    self._settings = settings
    self._train_files, self._eval_files = list(train_files), list(eval_files)
    self._train_format = RecordFormat(
      settings.max_seq_length,
      settings.max_predictions_per_seq,
      bert_config.vocab_size,
      config_file=settings.bert_config_file,
      dynamic_masking=settings.dynamic_masking,
      whole_words=settings.do_whole_word_mask,
      vocabulary=tokenization.vocabulary_hash(vocab) if vocab else None,
      vocab_file=settings.vocab_file,
      drawn_by=_drawn_by(settings, bert_config),
      has_pairs=not bert_config.family.has_generator,
      objective=settings.objective,
      pad_id=record_checks.counted_padding(bert_config),
    )
    self._eval_format = self._train_format
    masked = None
    # Beside a generator, evaluation needs words without masks, too.
    may_have_masks = settings.dynamic_masking and not bert_config.family.has_generator
    if may_have_masks and settings.eval_input_file and settings.reads_dev_set:
      masked = record_checks.masked_positions(self._eval_files[0])
    if masked is not None:
      self._eval_format = dataclasses.replace(
        self._train_format, max_predictions_per_seq=masked, dynamic_masking=False, whole_words=False
      )
    self._masking = masking_of(settings, vocab, bert_config) if settings.dynamic_masking else None
    self._special_ids = vocabulary_kind.special_ids(vocab or {})

  def check(self) -> dict[str, str | bool | None]:
    """Checks that the records suit the model and the flags; returns `vocabulary`, `do_lower_case`.

    Raises:
      RecordError: names the file, both values, and the flag to change.
    """
    by_format: dict[RecordFormat, list[str]] = {}
    if self._settings.do_train:
      by_format[self._train_format] = self._train_files
    if self._settings.reads_dev_set:
      by_format[self._eval_format] = list(
        dict.fromkeys([*by_format.get(self._eval_format, []), *self._eval_files])
      )
    vocabulary = None
    for fmt, files in by_format.items():
      if vocabulary is not None and fmt.vocabulary is None:
        fmt = dataclasses.replace(fmt, vocabulary=vocabulary, vocab_file=self._train_files[0])
      vocabulary = record_checks.check_manifests(files, fmt)
    used = [path for files in by_format.values() for path in files]
    manifests = {path: record_files.read_manifest(path) for path in used}
    known: dict[str, str | bool | None] = {"vocabulary": vocabulary}
    if len(cases := {each.get("do_lower_case") for each in manifests.values()}) == 1:
      known["do_lower_case"] = cases.pop()
    alone = [path for path, each in manifests.items() if each.get("no_next_sentence")]
    if alone and self._settings.objective == "mlm_nsp":
      logging.warning(
        "%s: written with --no_next_sentence, so its next_sentence_labels are all 0. "
        "--objective=mlm leaves them out of the loss.",
        alone[0],
      )
    for fmt, files in by_format.items():
      record_checks.check_records(files, fmt)
    return known

  def mask_rare_tokens(self, smoothing: float) -> None:
    """Masks by DistilBERT's rules, where masks are drawn while reading; see `dynamic_masking.py`.

    Tokens are counted in the records to train on, or in those to evaluate where the run does not
    train.
    """
    if self._masking is None or self._masking.whole_words or self._masking.electra:
      return
    from bert.pretraining import dynamic_masking

    files = self._train_files or self._eval_files
    logging.info("Counting the tokens of %s.", counted(len(files), "file"))
    counts = dynamic_masking.count_tokens(files, self._masking.vocab_size)
    weights = dynamic_masking.token_weights(counts, self._special_ids, smoothing)
    self._masking = dataclasses.replace(self._masking, token_weights=weights)

  def to_train(self):
    """Files, format and masking of training."""
    return self._train_files, self._train_format, self._masking

  def to_evaluate(self):
    """Files, format and masking of evaluation."""
    fmt = self._eval_format
    return self._eval_files, fmt, self._masking if fmt.dynamic_masking else None
