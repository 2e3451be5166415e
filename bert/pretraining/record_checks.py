"""Checks that records fit the model and the flags of `run_pretraining.py`, before it trains.

  fmt = RecordFormat(max_seq_length=128, max_predictions_per_seq=20, vocab_size=30522)
  vocabulary = check_manifests(["a.tfrecord", "b.tfrecord"], fmt)
  check_records(["a.tfrecord", "b.tfrecord"], fmt)

The manifest beside a file contains the settings of its records, which are compared. In addition the
first records are parsed, because files of other programs have no manifest. Every message names the
file, both values, and the flag to change.
"""

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from absl import logging

from bert.pretraining.record_formats import format_for, format_of

# The number of records of each file to check before anything starts.
RECORDS_TO_CHECK = 32

_MASKED_FEATURES = ("masked_lm_positions", "masked_lm_ids", "masked_lm_weights")
_REMEDY = "or write the records again with create_pretraining_data.py"


@dataclasses.dataclass(frozen=True)
class RecordFormat:
  """The required format of records, and its sources for messages."""

  max_seq_length: int  # S
  max_predictions_per_seq: int  # P
  vocab_size: int  # of the model
  config_file: str | None = None  # the file that contains `vocab_size`
  dynamic_masking: bool = False  # whether masks are drawn while reading, from unmasked records
  whole_words: bool = False  # whether these masks are of whole words
  # Hash of the model's vocabulary, see `tokenization.vocabulary_hash`, or None.
  vocabulary: str | None = None
  vocab_file: str | None = None  # the file with this hash
  # What else than `--dynamic_masking` draws masks while reading, for messages.
  drawn_by: str | None = None
  # Whether records may say if their two parts belong together. ELECTRA's do not, nor do they have
  # masks.
  has_pairs: bool = True
  # What is learned, see `families.OBJECTIVES`; None leaves the meaning of labels open.
  objective: str | None = None
  # Id of padding, for models that count positions by it, as RoBERTa's; None leaves it open.
  pad_id: int | None = None

  def features(self) -> dict:
    """Returns name -> `tf.io.FixedLenFeature`; see `pretraining_features`."""
    unmasked = self.dynamic_masking
    return pretraining_features(
      self.max_seq_length,
      None if unmasked else self.max_predictions_per_seq,
      self.whole_words,
      self.has_pairs,
    )


def pretraining_features(
  max_seq_length: int,
  max_predictions_per_seq: int | None,
  whole_words: bool = False,
  has_pairs: bool = True,
) -> dict:
  """Returns `create_pretraining_data.py`'s features: name -> `tf.io.FixedLenFeature`.

  Without masks, where P is None, they may mark beginnings of words.
  """
  import tensorflow as tf

  sequence = tf.io.FixedLenFeature([max_seq_length], tf.int64)
  features = {"input_ids": sequence, "input_mask": sequence, "segment_ids": sequence}
  if has_pairs:
    features["next_sentence_labels"] = tf.io.FixedLenFeature([1], tf.int64)
  if max_predictions_per_seq is not None:
    masked = tf.io.FixedLenFeature([max_predictions_per_seq], tf.int64)
    weights = tf.io.FixedLenFeature([max_predictions_per_seq], tf.float32)
    features |= dict(zip(_MASKED_FEATURES, (masked, masked, weights), strict=True))
  elif whole_words:
    features["word_starts"] = sequence
  return features


def counted_padding(config: Any) -> int | None:
  """Returns the padding id by which a model counts positions; None if it counts all places."""
  return config.pad_token_id if config.family.positions_from_ids else None


def max_predictions_of(masked_lm_prob: float, max_seq_length: int) -> int:
  """P of ELECTRA's masks, as the original computes it.

  Example:
    >>> max_predictions_of(0.15, 128), max_predictions_of(0.25, 512)
    (19, 130)
  """
  return int((masked_lm_prob + 0.005) * max_seq_length)


# ---------------------------------------------------------------------------------------------
# Manifests.


def check_manifests(paths: Sequence[str], fmt: RecordFormat) -> str | None:
  """Compares the settings of the records with the required format; skips files without a manifest.

  Returns:
    The hash of the vocabulary in all manifests, or None if no manifest has one.

  Raises:
    RecordError: a manifest does not fit its file, the flags, or another manifest.
  """
  from bert.io.record_files import RecordError, check_manifest

  named = {fmt.vocab_file: fmt.vocabulary} if fmt.vocabulary else {}
  for path in paths:
    facts = check_manifest(path)
    problem = _unfit(facts, fmt) or _other_vocabulary(facts, fmt, named)
    if problem:
      raise RecordError(f"{path}, by its manifest: {problem}")
    if isinstance(facts.get("vocabulary"), str):
      named[path] = facts["vocabulary"]
  return next(iter(named.values()), None)


def _unfit(facts: Mapping[str, Any], fmt: RecordFormat) -> str | None:
  """Returns the first mismatch between a manifest and the format, or None."""
  if facts.get("records") == 0:
    return f"it holds no record. Omit the file, {_REMEDY}."
  if problem := _wrong_family(facts, fmt) or _wrong_padding(_padding_of(facts), fmt):
    return problem
  is_unmasked = facts.get("dynamic_masking", fmt.dynamic_masking)
  if bool(is_unmasked) != fmt.dynamic_masking:
    return _wrong_masking(bool(is_unmasked), fmt)
  lengths = ["max_seq_length"] + ["max_predictions_per_seq"] * (not is_unmasked)
  for name in lengths:
    made_for, needed = facts.get(name), getattr(fmt, name)
    if made_for not in (None, needed):
      made_for = f"{made_for!r:.60}"
      return f"{name} is {made_for}, but --{name} is {needed}. Give --{name}={made_for}, {_REMEDY}."
  return _wrong_vocab_size(facts.get("vocab_size"), fmt)


def _wrong_family(facts: Mapping[str, Any], fmt: RecordFormat) -> str | None:
  """Tells of records of another family: without labels, or with labels of another meaning."""
  rules = format_of(facts)
  if rules is None:
    return None
  if fmt.has_pairs and not rules.has_labels:
    return (
      f"its records are for {rules.title}, with neither masks nor labels. Give the "
      f"--bert_config_file of an {rules.title}, {_REMEDY} "
      f"--format={format_for(fmt.objective, fmt.pad_id)}."
    )
  has_order = rules.has_sentence_order and not facts.get("random_next_sentence")
  if fmt.objective == "mlm_sop" and not has_order:
    return (
      "its labels say which sentences follow each other, but --objective=mlm_sop learns their "
      f"order. Give --objective=mlm, {_REMEDY} --format=albert."
    )
  if fmt.objective == "mlm_nsp" and has_order:
    return (
      "its labels say which sentences are in the wrong order, but --objective=mlm_nsp learns which "
      f"follow each other. Give --objective=mlm_sop, {_REMEDY} --format=bert."
    )
  if fmt.objective == "mlm_nsp" and not rules.has_pairs:
    return (
      "its sequences are no pairs, but --objective=mlm_nsp learns which sentences follow each "
      "other. Give the --bert_config_file of the records' own model, or --objective=mlm, or write "
      "them again with create_pretraining_data.py --format=bert."
    )
  return None


def _padding_of(facts: Mapping[str, Any]) -> Any:
  """Returns what fills up records, by their manifest; None where it does not tell."""
  return facts.get("pad_id", 0 if {"format", "dupe_factor"} & facts.keys() else None)


def _wrong_padding(pad_id: Any, fmt: RecordFormat) -> str | None:
  if pad_id is None or fmt.pad_id in (None, pad_id):
    return None
  return (
    f"its padding has the id {pad_id!r:.60}, but the model counts positions by the pad_token_id of "
    f"--bert_config_file={fmt.config_file}, {fmt.pad_id}. Give the configuration of a model for "
    f"these records, {_REMEDY} --format=roberta and the model's vocabulary."
  )


def _wrong_masking(is_unmasked: bool, fmt: RecordFormat) -> str:
  if is_unmasked:
    return (
      "its sequences have no masks, as for --dynamic_masking. Give --dynamic_masking and "
      f"--vocab_file, {_REMEDY} without --dynamic_masking."
    )
  if fmt.drawn_by:
    message = (
      f"its sequences have masks already, but {fmt.drawn_by} draws them while reading. Write the "
      "records with create_pretraining_data.py --dynamic_masking"
    )
    if fmt.has_pairs:
      return f"{message}, or give --nodynamic_masking to train with the masks that they have."
    return f"{message} or --format=electra."
  return (
    "its sequences have masks already, but --dynamic_masking is given. Omit "
    f"--dynamic_masking, {_REMEDY} --dynamic_masking."
  )


def _wrong_vocab_size(made_for: Any, fmt: RecordFormat) -> str | None:
  if made_for is None or made_for == fmt.vocab_size:
    return None
  if not isinstance(made_for, int):
    return f"its vocab_size is {made_for!r:.60}, not a number. Remove the manifest, {_REMEDY}."
  sizes = f"made with a vocabulary of {made_for} tokens; the vocab_size of --bert_config_file="
  sizes += f"{fmt.config_file} is {fmt.vocab_size}"
  if made_for > fmt.vocab_size:
    return (
      f"{sizes}. Give the --bert_config_file of a model for that vocabulary, {_REMEDY}, from a "
      "vocab.txt without empty last lines."
    )
  # Sizes are often rounded up for speed, and unused rows do no harm.
  logging.warning("Records were %s: is it the model's own?", sizes)
  return None


def _other_vocabulary(facts, fmt: RecordFormat, named: Mapping[str | None, str]) -> str | None:
  """Compares with the given vocabulary, or that of the files before."""
  made_with = facts.get("vocabulary")
  if not made_with or not named or made_with in named.values():
    return None
  if not isinstance(made_with, str):
    return f"its vocabulary is {made_with!r:.60}, not a hash. Remove the manifest, {_REMEDY}."
  other, expected = next(iter(named.items()))
  if other == fmt.vocab_file:
    other, remedy = f"--vocab_file={other}", "Give the vocabulary of the records"
  else:
    remedy = "All of --input_file and --eval_input_file need the same: omit one of them"
  return (
    f"the hash of its vocabulary begins with {made_with[:12]}, but that of {other} with "
    f"{expected[:12]}. {remedy}, {_REMEDY}."
  )


# ---------------------------------------------------------------------------------------------
# Records.


def masked_positions(path: str) -> int | None:
  """Reads the room P for masked words of a file's first record; RecordError if damaged.

  It is None where the record has no masks, or is none of `create_pretraining_data.py`.
  """
  import tensorflow as tf

  from bert.io.record_files import records_of

  for record in records_of(path):
    try:
      found = tf.train.Example.FromString(record).features.feature
    except Exception:  # see `_problem`, which says so
      return None
    return len(found["masked_lm_ids"].int64_list.value) if "masked_lm_ids" in found else None
  return None


def check_records(
  paths: Sequence[str], fmt: RecordFormat, limit: int | None = RECORDS_TO_CHECK
) -> None:
  """Compares at most `limit` records of each file with the flags and the model; None: all of them.

  Raises:
    RecordError: a file is damaged, or a record does not fit; names file, record and flag.
  """
  from bert.io.record_files import RecordError, records_of

  features = fmt.features()
  for path in paths:
    number = 0
    for number, record in enumerate(itertools.islice(records_of(path), limit), start=1):
      problem = _problem(record, features, fmt)
      if problem:
        raise RecordError(f"{path}, record {number}: {problem}")
    if not number:
      raise RecordError(f"{path} holds no record.")


def first_fault(paths: Sequence[str], fmt: RecordFormat) -> ValueError | None:
  """What is wrong with these files, all of whose records are read; None where they are sound."""
  try:
    check_records(paths, fmt, limit=None)
  except ValueError as clear:
    return clear
  return None


def _problem(record: bytes, features: Mapping, fmt: RecordFormat) -> str | None:
  """Returns the fault of a serialized record, or None."""
  import tensorflow as tf

  try:
    found = tf.train.Example.FromString(record).features.feature
  except Exception:  # The parser's exception type differs between protobuf's implementations.
    return "not a tf.train.Example. Was it made by create_pretraining_data.py?"
  problem = _wrongly_masked(found, fmt)
  if problem:
    return problem
  arrays = {}
  for name, spec in features.items():
    kind = "int64_list" if spec.dtype == tf.int64 else "float_list"
    if name not in found or found[name].WhichOneof("kind") != kind:
      present = ", ".join(sorted(found)) or "none at all"
      return (
        f"no {kind} {name!r} is among its features ({present}). "
        "Was it made by create_pretraining_data.py?"
      )
    arrays[name] = np.array(getattr(found[name], kind).value)
  return _wrong_length(arrays, features) or _wrong_value(arrays, fmt)


def _wrongly_masked(found: Mapping, fmt: RecordFormat) -> str | None:
  """Unexpected or missing masks, or None."""
  masks = [name for name in _MASKED_FEATURES if name in found]
  if fmt.dynamic_masking and masks:
    return _wrong_masking(False, fmt)
  if not fmt.dynamic_masking and not masks and "input_ids" in found:
    return _wrong_masking(True, fmt)
  if fmt.whole_words and "word_starts" not in found:
    return (
      "it does not mark the beginnings of words (word_starts). Omit --do_whole_word_mask, "
      f"{_REMEDY} --dynamic_masking --do_whole_word_mask."
    )
  return None


def _wrong_length(arrays, features):
  for name, array in arrays.items():
    [expected] = features[name].shape
    if len(array) != expected:
      flag = _flag_of_length(name)
      remedy = f" Give --{flag}={len(array)}, or write the records again." if flag else ""
      given = f"--{flag} is {expected}" if flag else f"{expected} is needed"
      return f"{name} has {len(array)} values, but {given}.{remedy}"
  return None


def _flag_of_length(name: str) -> str | None:
  if name in _MASKED_FEATURES:
    return "max_predictions_per_seq"
  return None if name == "next_sentence_labels" else "max_seq_length"


def _wrong_value(arrays, fmt: RecordFormat):
  for name in ("input_ids", "masked_lm_ids"):
    ids = arrays.get(name, np.zeros(0, np.int64))
    outside = ids[(ids < 0) | (ids >= fmt.vocab_size)]
    if outside.size:
      return (
        f"{name} holds {outside[0]}, but the vocab_size of --bert_config_file={fmt.config_file} is "
        f"{fmt.vocab_size}: the records were made with the vocabulary of another model."
      )
  for pad_id in arrays["input_ids"][arrays["input_mask"] == 0]:
    if problem := _wrong_padding(int(pad_id), fmt):
      return problem
  # On a CPU such values cause no error: they select no row of a one-hot matrix, and so no loss.
  segments = arrays["segment_ids"]
  labels = arrays.get("next_sentence_labels", np.zeros(0, np.int64))
  for name, values in (
    ("segment_ids", segments[segments < 0]),
    ("next_sentence_labels", labels[(labels != 0) & (labels != 1)]),
  ):
    if values.size:
      return f"{name} holds {values[0]}. Was it made by create_pretraining_data.py?"
  if fmt.dynamic_masking:
    return None
  is_token = arrays["input_mask"] != 0
  for position in arrays["masked_lm_positions"][arrays["masked_lm_weights"] != 0]:
    if not 0 <= position < len(is_token) or not is_token[position]:
      return f"masked_lm_positions holds {position}, where input_mask shows no token."
  return None
