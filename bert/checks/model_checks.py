"""Checks that configuration, vocabulary and checkpoint are valid and belong to one model.

The checks of `doctor.py` that look at a model's three files; see `findings.py`. The checkpoint
needs TensorFlow, the other two do not.
"""

import difflib
import os
import warnings
from collections.abc import Iterator, Mapping

import numpy as np

from bert import tokenization
from bert.checkpoints import model_files
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
from bert.io import vocabulary_kind
from bert.io.wording import counted
from bert.model.configuration import HARMLESS_KEYS, BertConfig
from bert.model.variable_shapes import encoder_shapes
from bert.text.vocabulary_file import supported_settings

# Bytes of a checkpoint that are read at a time.
_BATCH_BYTES = 1 << 27
_SHOWN = 5  # findings of one kind that are listed

# A vocab_size is rounded up for speed: to a multiple of this at most.
_LARGEST_MULTIPLE = 128

# Of released vocabularies, uncased ones have no capital at all, cased ones about a third.
_CASED_SHARE = 0.01


# ---------------------------------------------------------------------------------------------
# Configuration.


def check_config(subject: RunUnderCheck) -> Iterator[Finding]:
  """Reads `--bert_config_file`."""
  path = subject.bert_config_file
  if subject.config is None and path is None:
    yield note("Without --bert_config_file, sizes, checkpoint and memory are not checked.")
    return
  config = subject.config or BertConfig.from_json_file(path)
  subject.config = config
  millions = config.count_parameters() / 1e6
  yield ok(
    f"{config.num_hidden_layers} layers of width {config.hidden_size}, {millions:.1f} million "
    "parameters.",
    path or "",
  )
  yield from _unknown_keys(config, path or "")
  length, longest = subject.max_seq_length, config.longest_sequence
  if length and length > longest:
    yield error(
      f"The model reads at most {longest} tokens (max_position_embeddings is "
      f"{config.max_position_embeddings}), but --max_seq_length is {length}.",
      path or "",
      f"Give --max_seq_length={longest} or less.",
    )


def _unknown_keys(config: BertConfig, path: str) -> Iterator[Finding]:
  known = config.known_keys
  for key in sorted(set(vars(config)) - set(known)):
    if key in HARMLESS_KEYS:
      continue
    nearest = difflib.get_close_matches(key, known, n=1)
    question = (
      f" Did you mean {nearest[0]} (now {getattr(config, nearest[0], None)})?" if nearest else ""
    )
    yield warning(f"The key {key!r} has no effect.{question}", path, "Correct or remove it.")


# ---------------------------------------------------------------------------------------------
# Vocabulary.


def check_vocabulary(subject: RunUnderCheck) -> Iterator[Finding]:
  """Reads `--vocab_file`, compares its size with the configuration's and its case with the flag."""
  path = subject.vocab_file
  if subject.vocab is None and path is None:
    model = subject.init_checkpoint
    if model and (refusal := model_files.tokenizer_refusal(model)):
      yield error(refusal)
    yield note("Without --vocab_file, the vocabulary is not checked, and texts are not tokenized.")
    return
  with warnings.catch_warnings():
    warnings.simplefilter("ignore", tokenization.VocabularyWarning)  # reported below, with the line
    if path:
      supported_settings(path)
    subject.vocab = vocab = subject.vocab or tokenization.load_vocab(path)
    has_lines = vocabulary_kind.is_of_word_pieces(vocab)
    odd_lines = list(_odd_lines(path)) if path and has_lines else []
  path = path or "the vocabulary"
  digest = tokenization.vocabulary_hash(vocab)[:12]
  yield ok(f"{len(vocab)} different tokens; the hash begins with {digest}.", path)
  yield from odd_lines
  yield from _missing_tokens(vocab, path)
  yield from _case(vocab, path, subject.do_lower_case)
  if subject.config:
    yield from _size(vocab, path, subject)


def _odd_lines(path: str) -> Iterator[Finding]:
  """Blank lines, and tokens that occurred before."""
  from bert.text.vocabulary_file import read_tokens

  first_line: dict[str, int] = {}
  odd = []
  tokens = read_tokens(path)
  while not tokens[-1]:
    tokens.pop()
    yield note("The last line is empty: it is no token.", f"{path}:{len(tokens) + 1}", "Remove it.")
  for number, token in enumerate(tokens, start=1):
    if not token:
      odd.append((number, "The line is blank: its id belongs to no token."))
    elif token in first_line:
      odd.append((number, f"{token!r} is already in line {first_line[token]}."))
    else:
      first_line[token] = number
  for number, what in odd[:_SHOWN]:
    remedy = "Take the vocabulary that came with the checkpoint; a removed line shifts all ids."
    yield warning(what, f"{path}:{number}", remedy)
  if len(odd) > _SHOWN:
    yield warning(f"{len(odd)} lines in all are blank or repeat another one.", path)


def _missing_tokens(vocab: Mapping[str, int], path: str) -> Iterator[Finding]:
  remedy = "Take the vocabulary that came with the checkpoint."
  *ends, mask = vocabulary_kind.ends_and_mask(vocab)
  for token in (vocabulary_kind.unknown_token(vocab), *ends):
    if token not in vocab:
      yield error(f"{token} is missing, which every sequence needs.", path, remedy)
  if mask not in vocab:
    yield warning(f"{mask} is missing: the model cannot be pre-trained on masked words.", path)
  padding = vocabulary_kind.padding_token(vocab)
  if vocabulary_kind.is_of_byte_pairs(vocab):
    return  # which pads with its own
  if vocab.get(padding) != 0:
    found = f"is token {vocab[padding]}" if padding in vocab else "is missing"
    yield warning(f"{padding} {found}, but sequences are padded with token 0.", path, remedy)


def _case(vocab: Mapping[str, int], path: str, do_lower_case: bool | None) -> Iterator[Finding]:
  """Compares the letters of the vocabulary with `--do_lower_case`."""
  if do_lower_case is None or vocabulary_kind.is_of_byte_pairs(vocab):  # which keeps the case
    return
  words = [token for token in vocab if not token.startswith("[")]
  capitals = sum(word.lower() != word for word in words)
  has_case = any(word.upper() != word for word in words)
  is_cased = capitals > _CASED_SHARE * len(words)
  if is_cased and do_lower_case:
    yield warning(
      f"{share(capitals, len(words))} of the tokens have capitals, which --do_lower_case=True "
      "never produces: the vocabulary is a cased model's.",
      path,
      "Give --do_lower_case=False.",
    )
  elif has_case and not capitals and not do_lower_case:
    yield warning(
      "No token has a capital, so with --do_lower_case=False words with a capital become unknown: "
      "the vocabulary is an uncased model's.",
      path,
      "Give --do_lower_case=True.",
    )


def _size(vocab: Mapping[str, int], path: str, subject: RunUnderCheck) -> Iterator[Finding]:
  tokens, needed = vocabulary_kind.size(vocab), subject.config.vocab_size
  unit = "lines" if vocabulary_kind.is_of_word_pieces(vocab) else "tokens"
  said = f"{tokens} {unit}, and vocab_size of {subject.bert_config_file or 'the model'} is {needed}"
  remedy = "Take the vocabulary and the configuration of one model."
  if model_files.is_of_other_kind(vocab, needed, subject.config.family.name):
    yield error(f"{said}: it is not the kind that this family of models has.", path, remedy)
  elif tokens > needed:
    yield error(f"{said}: the last tokens have no embedding.", path, remedy)
  elif needed - tokens >= _LARGEST_MULTIPLE:
    # Weights were trained with their own tokens; a model without them can have any number.
    level = error if _is_of_another(vocab, subject) else warning
    yield level(f"{said}: it may be another model's.", path, remedy)
  elif tokens < needed:
    yield note(f"{said}, perhaps rounded up for speed.", path)


def _is_of_another(vocab: Mapping[str, int], subject: RunUnderCheck) -> bool:
  """Tells whether the weights, if any, are not those of a run with this very vocabulary."""
  if not subject.init_checkpoint:
    return False
  from bert.checkpoints import finding

  try:
    facts = (subject.checkpoint or finding.find(subject.init_checkpoint)).facts
  except (ValueError, OSError):
    return False  # `check_checkpoint` says what is wrong with it
  return facts.get("vocabulary") != tokenization.vocabulary_hash(vocab)


# ---------------------------------------------------------------------------------------------
# Checkpoint.


def check_checkpoint(subject: RunUnderCheck) -> Iterator[Finding]:
  """Finds `--init_checkpoint`, and compares names and shapes with the configuration.

  Values are not read: this takes milliseconds for a checkpoint of any size.
  """
  if not subject.init_checkpoint:
    yield note("Without --init_checkpoint, the model starts from random values.")
    return
  from bert.checkpoints import bundle_files, finding

  try:
    subject.checkpoint = subject.checkpoint or finding.find(subject.init_checkpoint)
  except bundle_files.CheckpointError as failure:
    yield finding_from_error(failure, subject.init_checkpoint)
    return
  prefix, contents = subject.checkpoint.prefix, subject.checkpoint.contents
  trained = " and a training run's state" if "global_step" in contents else ""
  yield ok(f"{len(contents)} tensors{trained}; its files are complete.", prefix)
  if subject.config:
    found = {name: tuple(shape) for name, (shape, _) in contents.items()}
    yield from _compare_shapes(encoder_shapes(subject.config), found, prefix)
  yield from _of_same_vocabulary(subject.checkpoint.state, subject)
  yield from _of_same_case(subject)


def _compare_shapes(expected, found, prefix: str) -> Iterator[Finding]:
  from bert.checkpoints import load_report

  remedy = "Take the bert_config.json that came with the checkpoint."
  missing = [name for name in expected if name not in found]
  wrong = [name for name in expected if name in found and found[name] != expected[name]]
  for name in wrong[:_SHOWN]:
    yield error(
      f"{name} is {list(found[name])}, but {list(expected[name])} by the configuration.",
      prefix,
      remedy,
    )
  if len(wrong) > _SHOWN:
    yield error(f"{len(wrong)} shapes in all differ from the configuration's.", prefix, remedy)
  names = load_report.abbreviate(missing)
  if len(missing) == len(expected):
    has = load_report.abbreviate(sorted(found))
    yield error(f"It has none of the encoder's variables. It has {has}.", prefix)
  elif missing:
    what = f"{len(missing)} of {len(expected)} variables of the encoder are missing: {names}."
    yield warning(what, prefix, "They would start from random values. " + remedy)
  scope = load_report.encoder_scope(expected) + "encoder/layer_"
  layers = {name.split("/")[2] for name in found if name.startswith(scope)}
  unused = layers - {name.split("/")[2] for name in expected if name.startswith(scope)}
  if unused and not wrong:
    yield error(
      f"It has {counted(len(unused), 'layer')} more than the configuration.", prefix, remedy
    )


def _of_same_vocabulary(state: Mapping, subject: RunUnderCheck) -> Iterator[Finding]:
  """Compares the vocabulary's hash with the one that a checkpoint of this project stores."""
  trained_with = state.get("fingerprint", {}).get("vocabulary")
  if trained_with and subject.vocab:
    found = tokenization.vocabulary_hash(subject.vocab)
    if found != trained_with:
      yield error(
        f"It was trained with a vocabulary whose hash begins with {trained_with[:12]}; that of "
        f"--vocab_file={subject.vocab_file} begins with {found[:12]}.",
        subject.checkpoint.prefix,
        "Give the vocabulary of that run.",
      )


def _of_same_case(subject: RunUnderCheck) -> Iterator[Finding]:
  if subject.do_lower_case is None:
    return
  try:
    tokenization.validate_case_matches_checkpoint(subject.do_lower_case, subject.init_checkpoint)
    model_files.check_case(subject.do_lower_case, subject.checkpoint)
  except ValueError as failure:
    yield finding_from_error(failure)


def check_checkpoint_values(subject: RunUnderCheck) -> Iterator[Finding]:
  """Reads every value: checksums, NaN, infinity."""
  if not subject.checkpoint:
    return
  from bert.checkpoints import bundle_files

  prefix, contents = subject.checkpoint.prefix, subject.checkpoint.contents
  wrong = 0
  for names in _in_batches(contents):
    try:
      tensors = {name: subject.checkpoint.read(name) for name in names}
    except bundle_files.CheckpointError as failure:
      wrong += 1
      yield error(str(failure), prefix, "Fetch or copy the checkpoint again.")
      continue
    for name, values in tensors.items():
      if count := _not_finite(values):
        wrong += 1
        if wrong <= _SHOWN:
          yield error(
            f"{name}: {count} of {values.size} values are NaN or infinite.",
            prefix,
            "Take an earlier checkpoint: from this one every loss is NaN.",
          )
  if wrong > _SHOWN:
    yield error(f"{wrong} tensors in all have such values.", prefix)
  elif not wrong:
    yield ok("All values are finite numbers, and their checksums are right.", prefix)


def _in_batches(contents) -> Iterator[list[str]]:
  """Yields names in groups whose values need little memory."""
  names: list[str] = []
  size = 0
  for name, (shape, dtype) in contents.items():
    tensor_bytes = int(np.prod(shape, dtype=object)) * dtype.itemsize
    if names and size + tensor_bytes > _BATCH_BYTES:
      yield names
      names, size = [], 0
    names.append(name)
    size += tensor_bytes
  if names:
    yield names


def _not_finite(values: np.ndarray) -> int:
  return int(np.size(values) - np.isfinite(values).sum()) if values.dtype.kind == "f" else 0


# ---------------------------------------------------------------------------------------------
# The checkpoint that a run would resume.


def check_resumed(subject: RunUnderCheck) -> Iterator[Finding]:
  """Checks that a run would accept the checkpoint in `--output_dir`, which it would resume."""
  if not (subject.output_dir and os.path.isdir(subject.output_dir)):
    return
  from bert.checkpoints import finding
  from bert.training import resumption

  newest = finding.latest(subject.output_dir)
  if not newest:
    return
  now = {**(subject.config.deciding_values() if subject.config else {}), **subject.facts}
  if subject.do_lower_case is not None:
    now["do_lower_case"] = subject.do_lower_case
  if subject.vocab:
    now["vocabulary"] = tokenization.vocabulary_hash(subject.vocab)
    stated = supported_settings(subject.vocab_file)
    strips = now.get("do_lower_case") if stated.strip_accents is None else stated.strip_accents
    now |= {"strip_accents": strips, "tokenize_chinese_chars": stated.tokenize_chinese_chars}
  try:
    resumption.check_same_run(newest, now)  # the rule of the run itself
  except resumption.ResumeMismatchError as failure:
    yield error(str(failure), newest)
    return
  yield note(
    "The run would resume this checkpoint; --init_checkpoint would not be read.",
    newest,
    "To start from --init_checkpoint, choose another --output_dir.",
  )
