"""What belongs to a model's weights: its configuration, its vocabulary, and the case of its text.

  files = find("uncased_L-12_H-768_A-12/bert_model.ckpt")
  files.config      # uncased_L-12_H-768_A-12/bert_config.json
  files.vocabulary  # uncased_L-12_H-768_A-12/vocab.txt

Weights are a checkpoint's prefix, a folder with a checkpoint, a folder of a run or of an export, a
folder of transformers, or a `.keras` file, which contains its configuration. Nothing here needs
TensorFlow.
"""

import fnmatch
import os
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from bert.checkpoints.bundle_files import BEST, IN_SAVED_MODEL, KERAS_SUFFIX
from bert.families import FAMILIES
from bert.io import filesystem, json_files, tokenizer_settings, vocabulary_kind

# A folder's own configuration comes first, and the original's before that of transformers.
_OF_AUTHORS = [family.config_file for family in FAMILIES.values() if family.config_file]
_CONFIGS = (*_OF_AUTHORS, "config.json")
# Released ALBERTs have 30k-clean.model; an export keeps the name of its vocabulary.
_VOCABULARIES = (
  *("vocab.txt", "spiece.model", "vocab_chinese.txt", "*.model"),
  *(vocabulary_kind.BYTE_PAIRS, "vocab.json", "*.txt"),
)
_HOLDS = {  # what a file of that name must be
  "*.model": vocabulary_kind.holds_model,
  vocabulary_kind.BYTE_PAIRS: vocabulary_kind.is_read_here,
}

# Below the folder of the weights: SavedModels keep the files that their graph reads in `assets`,
# others in `assets.extra`; an export has its encoder in a folder, a run its export.
_ASSETS = tuple(
  os.path.join(*saved_model, name)
  for saved_model in ((), ("encoder",), ("export", "encoder"), ("export", "task"))
  for name in ("assets", "assets.extra")
)


class ModelFiles(NamedTuple):
  """Paths of the files that belong to weights; None for a file that was not found."""

  config: str | None
  vocabulary: str | None


def find(weights: str | os.PathLike) -> ModelFiles:
  """Finds the files that belong to weights: a prefix or a folder, see `model_source.local_path`."""
  folder = folder_of(weights)
  places = [folder]
  if os.path.basename(folder) == BEST:  # of a run, whose own folder has its files
    places.append(os.path.dirname(folder))
  config, vocabulary = (
    next(filter(None, (_first(place, names) for place in places)), None)
    for names in (_CONFIGS, _VOCABULARIES)
  )
  if os.fsdecode(weights).endswith(KERAS_SUFFIX):
    config = os.fsdecode(weights)  # which contains it
  if config is None:  # perhaps the shapes are
    from bert.checkpoints import config_files

    config = config_files.index_of(weights)
  return ModelFiles(config, vocabulary)


def need_config(weights: str | os.PathLike) -> str:
  """Finds the configuration that belongs to weights; a ValueError if it is missing."""
  return find(weights).config or _missing(_CONFIGS[::2], weights)


def need_vocabulary(weights: str | os.PathLike) -> str:
  """Finds the vocabulary of weights; a ValueError if it is missing, or in a file not read here."""
  found = find(weights).vocabulary
  if not found and (refusal := tokenizer_refusal(weights)):
    raise ValueError(refusal)
  return found or _missing(_VOCABULARIES[:2], weights)


def tokenizer_refusal(weights: str | os.PathLike) -> str:
  """Returns why the tokenizer beside weights is not supported; empty if it is or there is none."""
  folder = folder_of(weights)
  if refusal := tokenizer_settings.in_folder(folder).refusal:
    return refusal
  path = os.path.join(folder, tokenizer_settings.TOKENIZER)
  if not filesystem.is_file(path) or vocabulary_kind.is_read_here(path):
    return ""
  kind = vocabulary_kind.type_of_tokenizer(json_files.read_object(path))
  return f"{path} has a model of the type {kind}, and no spiece.model beside it: not supported."


def folder_of(weights: str | os.PathLike) -> str:
  """Returns the folder of weights: a SavedModel's is the one around its variables.

  Example:
    >>> folder_of("uncased/bert_model.ckpt"), folder_of("model.ckpt-20")
    ('uncased', '.')
    >>> folder_of("export/encoder/variables/variables")
    'export/encoder'
  """
  path = os.fsdecode(weights)
  if filesystem.is_folder(path):
    return path
  if path.endswith(os.sep + IN_SAVED_MODEL):
    return path.removesuffix(os.sep + IN_SAVED_MODEL)
  return os.path.dirname(path) or "."


def run_folder_of(weights: str | os.PathLike) -> str:
  """Returns the folder of a run, also where its best weights are meant; else `folder_of`."""
  folder = folder_of(weights)
  return os.path.dirname(folder) if os.path.basename(folder) == BEST else folder


def _first(folder: str, names: Sequence[str]) -> str | None:
  for place in ("", *_ASSETS):
    path = os.path.join(folder, place)
    present = filesystem.list_folder(path)
    for name in names:
      # A folder has text files of all kinds, but the only one among assets is a vocabulary.
      if place or name != "*.txt":
        found = filter(
          _HOLDS.get(name, filesystem.is_file),
          (os.path.join(path, each) for each in fnmatch.filter(present, name)),
        )
        if file := next(found, None):
          return file
  return None


def _missing(names, weights):
  raise ValueError(f"{folder_of(weights)} has no {' or '.join(names)}: give its path.")


# ---------------------------------------------------------------------------------------------
# Consistency of weights, configuration and vocabulary.


def check_vocabulary_size(
  vocab: Mapping[str, int],
  vocab_file: str | os.PathLike,
  vocab_size: int,
  config_file: str | os.PathLike,
  family: str = "bert",
) -> None:
  """Checks that a model has an embedding for each token of a vocabulary.

  The files are for the message.

  Raises:
    ValueError: it has fewer, or the vocabulary is of the other kind and another size.
  """
  largest_id = vocabulary_kind.size(vocab) - 1
  if is_of_other_kind(vocab, vocab_size, family):
    kind = _KINDS[_kind_of(vocab)].format(largest_id + 1)
    needed = vocabulary_flag(family) or "--vocab_file=vocab.txt"
    raise ValueError(
      f"{vocab_file} is {kind}, but {config_file} is of {family.upper()} with vocab_size "
      f"{vocab_size}: they do not belong to the same model. Give the model's own: {needed}."
    )
  if largest_id >= vocab_size:
    raise ValueError(
      f"{vocab_file} numbers its tokens up to {largest_id}, but {config_file} has vocab_size "
      f"{vocab_size}: they do not belong to the same model."
    )


def is_of_other_kind(vocab: Mapping[str, int], vocab_size: int, family: str) -> bool:
  """Tells whether a vocabulary is of the kind that other families of models have.

  ALBERTs have a sentencepiece model, RoBERTas a byte-level BPE, other families a vocab.txt. Another
  kind is meant, too, if it has exactly the configuration's size, as the vocab.txt of the Chinese
  ALBERTs.
  """
  usual = FAMILIES[family].vocabulary
  return _kind_of(vocab) != usual and vocabulary_kind.size(vocab) != vocab_size


# By the kind of vocabulary (`families.VOCABULARIES`).
_KINDS = {
  "sentence_pieces": "a sentencepiece model of {} pieces",
  "byte_pairs": "a byte-level BPE of {} tokens",
  "word_pieces": "a WordPiece vocabulary of {} tokens",
}
_NEEDED = {
  "sentence_pieces": "--spm_model_file=30k-clean.model (or spiece.model)",
  "byte_pairs": "--vocab_file=vocab.json (or tokenizer.json)",
}


def vocabulary_flag(family: str) -> str | None:
  """Names the flag that gives a family's vocabulary, with an example; None for a `vocab.txt`.

  Example:
    >>> vocabulary_flag("albert"), vocabulary_flag("bert")
    ('--spm_model_file=30k-clean.model (or spiece.model)', None)
  """
  return _NEEDED.get(FAMILIES[family].vocabulary)


def _kind_of(vocab: Mapping[str, int]) -> str:
  if vocabulary_kind.is_of_byte_pairs(vocab):
    return "byte_pairs"
  return "sentence_pieces" if vocabulary_kind.is_of_model(vocab) else "word_pieces"


def check_case(do_lower_case: bool, checkpoint) -> None:
  """Refuses (ValueError) another case than stored by a run, in an export or by transformers."""
  stored = checkpoint.do_lower_case
  if stored not in (None, do_lower_case):
    made = "trained" if checkpoint.state else "exported"
    raise ValueError(
      f"--do_lower_case={do_lower_case}, but {checkpoint.prefix} was {made} with do_lower_case "
      f"{stored}. Give --do_lower_case={stored}."
    )
