"""Folders of transformers models: reads weights under the original's names, and writes folders.

  weights = open_weights("bert-base-uncased/model.safetensors")
  weights.contents["bert/pooler/dense/kernel"]    # ((768, 768), dtype('float32'))
  weights.read("bert/pooler/dense/kernel")

A folder has `config.json`, `model.safetensors` (or several files and their index), `vocab.txt` and
`tokenizer_config.json`; older ones have their weights in `tf_model.h5` or `pytorch_model.bin`. No
TensorFlow and no PyTorch is needed here. `transformers_names.py` translates names,
`transformers_config.py` configurations; `safetensors_file.py` reads and writes, `h5_file.py` and
`torch_file.py` read.
"""

import functools
import json
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from absl import logging

from bert.checkpoints import (
  h5_file,
  safetensors_file,
  torch_file,
  transformers_config,
  transformers_names,
)
from bert.checkpoints.bundle_files import CheckpointError
from bert.checkpoints.formats import (
  H5_NAMES,
  H5_SUFFIXES,
  SHARDS_SUFFIX,
  TORCH_NAMES,
  TORCH_SUFFIXES,
)
from bert.checkpoints.tensor_files import TensorFile
from bert.checkpoints.transformers_heads import Head, class_of, head_of, tensors_of_head
from bert.families import FAMILIES
from bert.families.form import CHOICES, TEXTS, TOKENS
from bert.io import (
  atomic_files,
  byte_pair_files,
  filesystem,
  json_files,
  tokenizer_settings,
  vocabulary_kind,
)
from bert.tasks import kinds

CONFIG = "config.json"
WEIGHTS = "model.safetensors"
TOKENIZER_CONFIG = tokenizer_settings.CONFIG

_WEIGHTS_INDEX = "model" + SHARDS_SUFFIX
# All files that may hold the weights of a folder; the first that is there does.
_ALL_WEIGHTS = (WEIGHTS, _WEIGHTS_INDEX, *H5_NAMES, *TORCH_NAMES)

# What a tokenizer's configuration says of a vocab.txt, a sentencepiece model, a byte-level BPE.
_OF_WORD_PIECES = {
  "tokenizer_class": "BertTokenizer",
  "do_lower_case": True,
  "strip_accents": None,  # follows do_lower_case
  "tokenize_chinese_chars": True,
  "model_max_length": 512,
  "unk_token": "[UNK]",
  "sep_token": "[SEP]",
  "pad_token": "[PAD]",
  "cls_token": "[CLS]",
  "mask_token": "[MASK]",
}
_OF_PIECES = {
  "tokenizer_class": "AlbertTokenizer",
  "remove_space": True,
  "keep_accents": False,
  "bos_token": "[CLS]",
  "eos_token": "[SEP]",
  "unk_token": "<unk>",
  "sep_token": "[SEP]",
  "pad_token": "<pad>",
  "cls_token": "[CLS]",
  "mask_token": "[MASK]",
}
_OF_BYTE_PAIRS = {
  "tokenizer_class": "RobertaTokenizer",
  "bos_token": "<s>",
  "eos_token": "</s>",
  "unk_token": "<unk>",
  "sep_token": "</s>",
  "pad_token": "<pad>",
  "cls_token": "<s>",
  "mask_token": "<mask>",
}


# ---------------------------------------------------------------------------------------------
# Reading.


def find_weights(folder: str | os.PathLike) -> str | None:
  """The file with the weights in a folder, or the index of several; None without one."""
  for name in _ALL_WEIGHTS:
    if filesystem.is_file(os.path.join(folder, name)):
      return os.path.join(folder, name)
  return None


class Weights:
  """The tensors of a model saved by transformers, by the original's names and in its layout.

  Attributes:
    path: the file, or the index of several.
    contents: name -> (shape, dtype of NumPy), sorted by name.
    family: `model_type` of the configuration beside it.
  """

  def __init__(self, path: str | os.PathLike, family: str | None = None):
    """Reads headers only.

    Args:
      path: the file, or the index of several.
      family: `model_type` where there is no configuration beside the file.

    Raises:
      CheckpointError: a file is missing or damaged.
    """
    self.path = os.fsdecode(path)
    config = {"model_type": family, **_read_config_beside(path)}
    self.family = _family_of(config)
    self._file = _open_file(self.path, self.family)
    try:
      head = head_of(_architecture_of(path, config))
      self._places = transformers_names.variables_of(self._file.tensors, self.family, head)
    except ValueError as error:
      raise CheckpointError(f"{self.path}: {error}") from None
    if not config.get("tie_word_embeddings", True):
      self._leave_out_untied_words()
    self.contents = {name: self._describe(name) for name in sorted(self._places)}

  @property
  def do_lower_case(self) -> bool | None:
    """See `read_do_lower_case`."""
    return read_do_lower_case(self.path)

  def read(self, name: str) -> np.ndarray:
    """One tensor.

    Raises:
      CheckpointError: no tensor has this name, or the file has changed.
    """
    if name not in self._places:
      raise CheckpointError(f"{self.path} has nothing for {name}.")
    key, is_transposed = self._places[name]
    values = self._file.read(key)
    return np.ascontiguousarray(values.T if is_transposed else values)

  def names_unchanged(self) -> list[str]:
    """Names that the original does not have, which are the same on both sides."""
    return [name for name, place in self._places.items() if place.name == name]

  def _describe(self, name: str) -> tuple[tuple[int, ...], np.dtype]:
    key, is_transposed = self._places[name]
    dtype, shape = self._file.tensors[key][:2]
    return (shape[::-1] if is_transposed else shape), dtype

  def _leave_out_untied_words(self) -> None:
    """Drops a head for masked words that has its own decoder.

    In this model the word embeddings are the decoder: such a head would predict other words.
    """
    if transformers_names.decoder_of(self.family) not in self._file.tensors:
      return
    _warn_of_untied_words(self.path)
    head = transformers_names.word_head_of(self.family)
    self._places = {n: p for n, p in self._places.items() if not n.startswith(head)}


def _open_file(path: str, family: str) -> TensorFile:
  if path.endswith(H5_SUFFIXES):
    return h5_file.open_weights(path, family)
  if path.endswith(TORCH_SUFFIXES):
    return torch_file.open_weights(path)
  return safetensors_file.open_weights(path, family)


def _family_of(config: Mapping[str, Any]) -> str:
  """`model_type` of a configuration; that of BERT for models that this project does not have."""
  family = config.get("model_type") or "bert"
  return family if family in FAMILIES else "bert"


@functools.cache  # logs once per file
def _warn_of_untied_words(path: str) -> None:
  logging.warning(
    "%s: its head for masked words has a decoder of its own (tie_word_embeddings is false), which "
    "this model does not have. The head is not loaded.",
    path,
  )


def open_weights(path: str | os.PathLike, family: str | None = None) -> Weights:
  """The weights in a file, or in several through their index, or in a folder; see `Weights`.

  Raises:
    CheckpointError: they are missing, or a file is damaged.
  """
  weights = find_weights(path) if filesystem.is_folder(path) else path
  if weights is None:
    raise CheckpointError(f"{os.fsdecode(path)} has no {WEIGHTS}.")
  return Weights(weights, family)


def read_do_lower_case(weights: str | os.PathLike) -> bool | None:
  """The case that the tokenizer's files beside the weights state; None if they do not."""
  try:
    return tokenizer_settings.in_folder(os.path.dirname(os.fsdecode(weights))).do_lower_case
  except ValueError as error:
    raise CheckpointError(str(error)) from None


def read_architecture(weights: str | os.PathLike) -> str | None:
  """The class that the weights are of, by PyTorch's name; None if that is not known.

  It is that of the configuration beside the weights. Before version 4, TensorFlow's classes left
  there what was in the one that they began with, but Keras names the model after its class.
  """
  return _architecture_of(weights, _read_config_beside(weights))


def _architecture_of(weights: str | os.PathLike, config: Mapping[str, Any]) -> str | None:
  names = config.get("architectures")
  name = names[0] if isinstance(names, list) and names else None
  if os.fsdecode(weights).endswith(H5_SUFFIXES[0]):
    name = h5_file.read_class(weights) or name
  return name.removeprefix("TF") if isinstance(name, str) else None


def read_facts(weights: str | os.PathLike) -> dict[str, Any]:
  """Reads what is known of a fine-tuned model, in the form in which a run stores it.

  Returns:
    `task_name`, or `problem_type` of a classifier of texts; `labels` of a classifier; and
    `do_lower_case` if the tokenizer's configuration states it. Empty for other models.

  Raises:
    ValueError: the labels in the configuration are malformed.
  """
  content = _read_config_beside(weights)
  head = head_of(_architecture_of(weights, content))
  kind = kinds.of_class(head or "")
  if kind is None:
    return {}
  try:
    facts: dict[str, Any] = transformers_config.read_classes(content)
  except ValueError as error:
    raise ValueError(f"{CONFIG} beside {weights}: {error}") from None
  if head != TEXTS:
    facts = {**kind.facts, **({"labels": facts["labels"]} if head == TOKENS else {})}
  case = read_do_lower_case(weights)
  return facts if case is None else {**facts, "do_lower_case": case}


def _read_config_beside(weights: str | os.PathLike) -> dict[str, Any]:
  """The `config.json` in the folder of the weights; empty if there is none."""
  path = os.path.join(os.path.dirname(os.fsdecode(weights)), CONFIG)
  try:
    return json_files.read_object(path) if filesystem.is_file(path) else {}
  except ValueError as error:
    raise CheckpointError(str(error)) from None


# ---------------------------------------------------------------------------------------------
# Writing.


def write_folder(
  folder: str | os.PathLike,
  config: Mapping[str, Any],
  tensors: Mapping[str, np.ndarray],
  vocab_file: str | os.PathLike | None,
  do_lower_case: bool,
  head: Head,
  family: str = "bert",
) -> str:
  """Writes a folder that transformers loads; the weights last, since they mark it as complete.

  Args:
    folder: must exist.
    config: content of a `bert_config.json`.
    tensors: the original's name -> array. Names that are not the original's are kept.
    vocab_file: of the model; without one no file of a tokenizer is written.
    do_lower_case: whether the model is an uncased one.
    head: the head of the model.
    family: `model_type`.

  Returns:
    Path of the weights.

  Raises:
    ValueError: the format does not support the configuration or the type of an array.
    OSError: a file cannot be written.
  """
  folder = os.fsdecode(folder)
  its_class = class_of(head.name, family, tensors, config)
  tensors = tensors_of_head(tensors, head, family)
  labels = _labels(tensors, head)
  content = transformers_config.from_original(config, its_class, labels, head.problem_type, family)
  _write_json(os.path.join(folder, CONFIG), content)
  if vocab_file is not None:
    length = content["max_position_embeddings"]
    if FAMILIES[family].positions_from_ids:  # padding has the first ones
      length -= content["pad_token_id"] + 1
    write_tokenizer(folder, vocab_file, do_lower_case, length)
  path = os.path.join(folder, WEIGHTS)
  # transformers requires this entry to load with PyTorch.
  safetensors_file.write(path, _renamed(tensors, head, family), {"format": "pt"})
  return path


def write_tokenizer(
  folder: str | os.PathLike, vocab_file: str | os.PathLike, do_lower_case: bool, max_length: int
) -> None:
  """Writes the vocabulary in its files, and `tokenizer_config.json`.

  Args:
    folder: must exist.
    vocab_file: of the model.
    do_lower_case: whether the model is an uncased one.
    max_length: of a sequence, in tokens.

  Raises:
    OSError: a file cannot be read or written.
  """
  name = vocabulary_kind.saved_vocabulary_name(vocab_file)
  of_kind: Mapping[str, Any] = _OF_WORD_PIECES
  if vocabulary_kind.is_meant_as_byte_pairs(vocab_file):
    of_kind = _OF_BYTE_PAIRS
  elif name == vocabulary_kind.SENTENCE_PIECES:
    of_kind = _OF_PIECES
  config: dict[str, Any] = {**of_kind, "model_max_length": max_length}
  if of_kind is _OF_WORD_PIECES:
    config |= tokenizer_settings.beside(vocab_file).splitting
  if of_kind is not _OF_BYTE_PAIRS:  # which always keeps the case
    _write_json(os.path.join(folder, TOKENIZER_CONFIG), {**config, "do_lower_case": do_lower_case})
    atomic_files.write_bytes(os.path.join(folder, name), vocabulary_kind.vocab_txt(vocab_file))
    return
  pairs = byte_pair_files.read(vocab_file)
  if pairs.add_prefix_space:
    config["add_prefix_space"] = True
  _write_json(os.path.join(folder, TOKENIZER_CONFIG), config)
  contents = {name: pairs.to_json()}
  # What transformers before 5 reads, and fairseq.
  contents |= {
    byte_pair_files.VOCABULARY: pairs.vocab_json(),
    byte_pair_files.MERGES: pairs.merges_txt(),
  }
  for file, content in contents.items():
    atomic_files.write_text(os.path.join(folder, file), content)


def tensors_of(weights: Weights) -> dict[str, np.ndarray]:
  """All tensors, as the original would have saved them.

  Its multiple-choice head has no bias, as all choices would share it: a zero bias is dropped.
  """
  tensors = {name: weights.read(name) for name in weights.contents}
  is_choice = head_of(read_architecture(weights.path)) == CHOICES
  if is_choice and not np.any(tensors.get("output_bias", True)):
    del tensors["output_bias"]
  return tensors


def _renamed(tensors: Mapping[str, np.ndarray], head: Head, family: str) -> dict[str, np.ndarray]:
  """The arrays by transformers' names, and in its layout."""
  renamed = {}
  for name, values in tensors.items():
    key, is_transposed = transformers_names.key_of(name, family, head.name)
    renamed[key] = values.T if is_transposed else values
  bias, second_name = transformers_names.biases_of_words(family)
  if bias in renamed and second_name:  # its TensorFlow classes read the second one of ALBERT
    renamed[second_name] = renamed[bias]
  if head.name == CHOICES and "output_bias" not in tensors:
    renamed["classifier.bias"] = np.zeros([1], tensors["output_weights"].dtype)
  return renamed


def _labels(tensors, head: Head) -> list[str] | None:
  """Names for the outputs of a classifier, one per output as transformers requires."""
  if head.name not in (TEXTS, TOKENS):
    return None
  bias = "output_bias" if "output_bias" in tensors else "task_specific/ner/dense/bias"
  count = len(tensors[bias])
  if head.labels and len(head.labels) == count:
    return list(head.labels)
  return [f"LABEL_{index}" for index in range(count)]


def _write_json(path: str, content: Mapping[str, Any]) -> None:
  atomic_files.write_text(path, json.dumps(content, indent=2, ensure_ascii=False) + "\n")
