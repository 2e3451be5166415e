"""Checks that TFRecord files are complete and match the model.

The checks of `doctor.py` that look at records: those of `create_pretraining_data.py`, and those
that `run_classifier.py` and its siblings write into their output folder. See `findings.py`.
"""

import collections
import dataclasses
import hashlib
import itertools
import os
from collections.abc import Iterator, Mapping

import numpy as np

from bert import tokenization
from bert.checks.findings import (
  Finding,
  RunUnderCheck,
  error,
  finding_from_error,
  note,
  ok,
  share,
  warning,
)
from bert.io import other_formats, record_files, vocabulary_kind
from bert.io.atomic_files import sha256_of
from bert.pretraining import record_checks, record_formats

_GZIP_MAGIC = b"\x1f\x8b"
_MUCH_PADDING = 0.75
_MANY_REPEATED = 0.1
_MANY_UNKNOWN = 0.05
_REMEDY = "Write the records again with the program that made them."


def are_records(path: str) -> bool:
  """Tells whether a file has TFRecord's name ending, or starts with a length and its checksum."""
  if path.endswith((".tfrecord", ".tf_record", ".tfrecords", ".tfrecord.gz")):
    return True
  from bert.text import text_files

  try:
    with text_files.open_bytes(path) as reader:  # plain or gzip
      head = reader.read(12)
  except (OSError, EOFError):
    return False
  return other_formats.are_records(head)


def check_record_files(subject: RunUnderCheck, paths: list[str]) -> Iterator[Finding]:
  """Checks each file separately, so that a damaged one does not hide the others."""
  for path in paths:
    try:
      yield from _check_file(path, subject)
    except (ValueError, OSError) as failure:
      yield finding_from_error(failure, path)


def _check_file(path: str, subject: RunUnderCheck) -> Iterator[Finding]:
  manifest = record_files.read_manifest(path)
  yield from _check_bytes(path, manifest, subject.checksums)
  seen = _Seen.of(path, subject)
  features = seen.features
  if "input_ids" not in features:
    present = ", ".join(sorted(features)) or "none"
    yield error(f"input_ids is missing among the features ({present}).", path, _REMEDY)
    return
  length = seen.lengths.pop() if len(seen.lengths) == 1 else None
  subject.longest = max(subject.longest or 0, length or 0)
  yield from _check_lengths(path, subject, seen, length)
  rules = record_formats.format_of(manifest)
  is_to_pretrain = {"masked_lm_ids", "next_sentence_labels"} & features
  if length and (is_to_pretrain or (rules and not rules.has_labels)):
    try:
      _check_pretraining(path, subject, seen, length)
    except ValueError as failure:
      yield finding_from_error(failure, path)
  yield from _check_ids(path, subject, seen)
  are_single = rules is not None and not rules.has_pairs
  yield from _shares(path, seen, are_single or manifest.get("no_next_sentence", False))


def _check_bytes(path: str, manifest: Mapping, checksums: bool) -> Iterator[Finding]:
  """Compares the file with its manifest: its size, and its sha256 with `--checksums`."""
  if not manifest:
    yield note("It has no manifest: a file that ends early would not be noticed.", path)
    return
  record_files.check_manifest(path)
  stated = manifest.get("sha256")
  if not (stated and checksums):
    yield ok("Its size is that of the manifest.", path)
  elif sha256_of(path) == stated:
    yield ok("Its sha256 is that of the manifest.", path)
  else:
    yield error("Its sha256 is not that of the manifest: the file was changed.", path, _REMEDY)


# ---------------------------------------------------------------------------------------------
# Reading.


@dataclasses.dataclass
class _Seen:
  """Counts over the records of one file."""

  count: int = 0  # of records that were read
  is_all: bool = True  # whether all records of the file were read
  features: set[str] = dataclasses.field(default_factory=set)  # names, of the first record
  lengths: set[int] = dataclasses.field(default_factory=set)  # of input_ids, all that occur
  predictions: int | None = None  # length of masked_lm_ids, or None
  tokens: int = 0  # without padding
  places: int = 0  # tokens and padding
  longest: int = 0  # tokens of the longest record
  # Occurrences of each token, without padding.
  ids: collections.Counter = dataclasses.field(default_factory=collections.Counter)
  # (record, feature, value) of the first value out of range.
  outside: tuple[int, str, int] | None = None
  # Occurrences of each id as first token.
  first_tokens: collections.Counter = dataclasses.field(default_factory=collections.Counter)
  # Occurrences of each label.
  labels: collections.Counter = dataclasses.field(default_factory=collections.Counter)
  repeated: int = 0  # records whose input_ids occurred before

  @classmethod
  def of(cls, path: str, subject: RunUnderCheck) -> "_Seen":
    """Reads a file, at most `--max_examples` records."""
    from bert.io.record_files import records_of

    seen, hashes = cls(), set()
    for record in itertools.islice(records_of(path), subject.max_examples + 1):
      if seen.count == subject.max_examples:
        seen.is_all = False
        break
      seen.count += 1
      arrays = _arrays(record, path, seen.count)
      seen.features = seen.features or set(arrays)
      if "input_ids" in arrays:
        seen._add(arrays, _limits(subject))
        key = hashlib.blake2b(arrays["input_ids"].tobytes(), digest_size=8).digest()
        seen.repeated += key in hashes
        hashes.add(key)
    if not seen.count:
      raise ValueError(f"{path} holds no record. {_REMEDY}")
    return seen

  def _add(self, arrays: Mapping[str, np.ndarray], limits: Mapping[str, int]) -> None:
    ids = arrays["input_ids"]
    mask = arrays.get("input_mask", ids != 0)
    kept = ids[mask != 0] if mask.shape == ids.shape else ids
    self.lengths.add(len(ids))
    self.places += len(ids)
    self.tokens += len(kept)
    self.longest = max(self.longest, len(kept))
    self.ids.update(kept.tolist())
    self.first_tokens.update(ids[:1].tolist())
    if "masked_lm_ids" in arrays:
      self.predictions = len(arrays["masked_lm_ids"])
    for name in ("label_ids", "next_sentence_labels"):
      if len(label := arrays.get(name, np.zeros(0))) == 1:
        self.labels.update(label.tolist())
    for name, limit in limits.items():
      values = arrays.get(name, np.zeros(0, np.int64))
      wrong = values[(values < 0) | (values >= limit)]
      if wrong.size and self.outside is None:
        self.outside = self.count, name, int(wrong[0])


def _limits(subject: RunUnderCheck) -> dict[str, int]:
  """Feature -> the first id that is too large for the model."""
  if not subject.config:
    return {}
  tokens, segments = subject.config.vocab_size, subject.config.type_vocab_size
  return {"input_ids": tokens, "masked_lm_ids": tokens, "segment_ids": segments}


def _arrays(record: bytes, path: str, number: int) -> dict[str, np.ndarray]:
  import tensorflow as tf

  try:
    features = tf.train.Example.FromString(record).features.feature
  except Exception:  # The parser's exception type differs between protobuf's implementations.
    raise ValueError(f"{path}, record {number}: not a tf.train.Example. {_REMEDY}") from None
  return {
    name: np.array(getattr(feature, feature.WhichOneof("kind")).value)
    for name, feature in features.items()
    if feature.WhichOneof("kind") in ("int64_list", "float_list")
  }


# ---------------------------------------------------------------------------------------------
# Findings.


def _check_lengths(
  path, subject: RunUnderCheck, seen: _Seen, length: int | None
) -> Iterator[Finding]:
  if length is None:
    lengths = ", ".join(map(str, sorted(seen.lengths)))
    yield error(f"Its records have different lengths: {lengths}.", path, _REMEDY)
    return
  if subject.max_seq_length not in (None, length):
    remedy = f"Give --max_seq_length={length}, or write the records again."
    yield error(
      f"Its length is {length}, not --max_seq_length={subject.max_seq_length}.", path, remedy
    )
  if subject.config and length > subject.config.longest_sequence:
    most = subject.config.longest_sequence
    what = f"Its length is {length}, but the model has {most} positions (max_position_embeddings)."
    yield error(what, path, f"Write the records with --max_seq_length={most} or less.")
  padding = 1 - seen.tokens / seen.places
  what = f"Of length {length}, the longest has {seen.longest} tokens; {padding:.0%} are padding."
  if padding > _MUCH_PADDING:
    remedy = f"--max_seq_length={seen.longest} is enough."
    yield warning(what, path, remedy)
  else:
    yield ok(what, path)


def _check_pretraining(path, subject: RunUnderCheck, seen: _Seen, length: int) -> None:
  """Applies the checks of `run_pretraining.py` to all records instead of the first ones.

  Raises:
    RecordError: a manifest or a record does not fit.
  """
  family = subject.config.family if subject.config else None
  has_generator = bool(family and family.has_generator)
  fmt = record_checks.RecordFormat(
    max_seq_length=length,
    max_predictions_per_seq=subject.max_predictions_per_seq or seen.predictions or 1,
    vocab_size=subject.config.vocab_size if subject.config else 1 << 31,
    config_file=subject.bert_config_file,
    dynamic_masking=has_generator or "masked_lm_ids" not in seen.features,
    drawn_by=f"a model of {family.title}" if family and family.has_generator else None,
    has_pairs=not has_generator
    and (subject.config is not None or "next_sentence_labels" in seen.features),
    vocabulary=tokenization.vocabulary_hash(subject.vocab) if subject.vocab else None,
    vocab_file=subject.vocab_file,
    pad_id=record_checks.counted_padding(subject.config) if subject.config else None,
  )
  subject.max_predictions_per_seq = subject.max_predictions_per_seq or seen.predictions
  if subject.config:
    record_checks.check_manifests([path], fmt)
  if seen.outside is None:  # else reported below
    record_checks.check_records([path], fmt, limit=subject.max_examples)


def _check_ids(path, subject: RunUnderCheck, seen: _Seen) -> Iterator[Finding]:
  if seen.outside:
    number, name, value = seen.outside
    yield error(
      f"Record {number}: {name} holds {value}, but the model has {_limits(subject)[name]}.",
      path,
      "The records are of another model: write them with its vocabulary.",
    )
  if not subject.vocab:
    return
  first, count = seen.first_tokens.most_common(1)[0]
  begin = vocabulary_kind.ends_and_mask(subject.vocab)[0]
  if first != subject.vocab.get(begin):
    yield error(
      f"{share(count, seen.count)} of its records begin with token {first}, but {begin} is "
      f"{subject.vocab.get(begin)} in --vocab_file={subject.vocab_file}.",
      path,
      "The records were made with another vocabulary.",
    )
  unknown_token = vocabulary_kind.unknown_token(subject.vocab)
  unknown = seen.ids[subject.vocab.get(unknown_token, -1)]
  if unknown > _MANY_UNKNOWN * seen.tokens:
    yield warning(
      f"{share(unknown, seen.tokens)} of its tokens are {unknown_token}.",
      path,
      "Make the records with a vocabulary and a --do_lower_case that fit the text.",
    )


def _shares(path, seen: _Seen, are_single: bool) -> Iterator[Finding]:
  total = sum(seen.labels.values())
  # Examples for prediction all have the first label.
  is_predicted = os.path.basename(path).startswith(("predict", "test"))
  if total > 1 and len(seen.labels) == 1 and not (is_predicted or are_single):
    [label] = seen.labels
    yield warning(f"The label of every record is {label}: there is nothing to learn.", path)
  if seen.repeated > _MANY_REPEATED * seen.count:
    yield warning(
      f"{share(seen.repeated, seen.count)} of its records have the tokens of an earlier one.",
      path,
      "Remove duplicates from the text: a model memorises them.",
    )
  counted = f"{seen.count} records" if seen.is_all else f"The first {seen.count} records"
  labels = ", ".join(f"{label}: {share(n, total)}" for label, n in sorted(seen.labels.items())[:10])
  yield ok(f"{counted} were read. Labels: {labels or 'none'}.", path)
