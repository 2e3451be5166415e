"""A folder with a model in other formats than TensorFlow's, and all that belongs to it.

  onnx/model.onnx, onnx/model_quantized.onnx                          float32, int8
  litert/model.tflite, model_float16.tflite, model_int8.tflite
  bert_run.json                     the facts and the settings of the run that trained the model
  bert_config.json, vocab.txt       or another vocabulary: the model as this project reads it
  label_map.json                    label -> index of the model's output
  config.json, tokenizer.json, tokenizer_config.json, special_tokens_map.json     transformers' form
  modules.json, 1_Pooling/          of sentence vectors: sentence-transformers' form
  accuracy.json, README.md          what int8 costs, and how the model is loaded

So the folder is one of transformers.js, of sentence-transformers' onnx backend and of
`Predictor.load` at once. `write_description` writes all but the models, labels and figures; `read`
reads what `Predictor.load` needs. No TensorFlow is needed here.
"""

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from bert.checkpoints import (
  sentence_pooling,
  transformers_config,
  transformers_folder,
  transformers_heads,
)
from bert.exporting import model_files
from bert.families import form
from bert.io import atomic_files, filesystem, json_files, vocabulary_kind
from bert.model.configuration import BertConfig
from bert.tasks import kinds
from bert.text import tokenizer_json

RUN = "bert_run.json"
CONFIG = "bert_config.json"
CARD = "README.md"
ACCURACY = "accuracy.json"

_SPECIAL_TOKENS = "special_tokens_map.json"
_TOKENIZER = "tokenizer.json"
_REMEDY = "Export the model anew: export_hub.py."


class Described(NamedTuple):
  """What is known of an exported model, beside what it computes."""

  config: BertConfig
  vocab_file: str
  do_lower_case: bool
  max_seq_length: int  # of a text, or of a pair
  facts: Mapping[str, Any]  # of the run that trained it; empty of an encoder without a task
  settings: Mapping[str, Any]  # of that run
  pooling: str | None = None  # of sentence vectors

  @property
  def kind(self) -> kinds.Kind | None:
    """The kind of its task; None of an encoder."""
    return kinds.of_facts(self.facts)

  @property
  def is_encoder(self) -> bool:
    """Whether the files hold the encoder alone: vectors are pooled outside of them."""
    return self.kind is None or self.pooling is not None


# ---------------------------------------------------------------------------------------------
# Reading.


def is_model_folder(folder: str | os.PathLike) -> bool:
  """Tells whether a folder is an export in one of these formats, perhaps a damaged one."""
  return filesystem.is_file(os.path.join(folder, RUN)) or bool(model_files.formats_in(folder))


def read(folder: str | os.PathLike, vocab_file: str | None = None) -> Described:
  """Reads what is known of an exported model.

  Raises:
    ValueError: a file is damaged, or missing.
  """
  folder = os.fsdecode(folder)
  path = os.path.join(folder, RUN)
  run = _object(path)
  kinds_of_values = {"facts": dict, "settings": dict, "max_seq_length": int, "do_lower_case": bool}
  for name, kind in kinds_of_values.items():
    if not isinstance(run.get(name), kind):
      raise ValueError(f"{path}: {name!r} is missing, or is no {_WORDS[kind]}. {_REMEDY}")
  config_file = os.path.join(folder, CONFIG)
  _object(config_file)
  return Described(
    BertConfig.from_json_file(config_file),
    vocab_file or _vocabulary_in(folder),
    run["do_lower_case"],
    run["max_seq_length"],
    run["facts"],
    run["settings"],
    run.get("pooling"),
  )


_WORDS = {dict: "object", int: "number", bool: "true or false"}


def _object(path: str) -> dict[str, Any]:
  try:
    return json_files.read_object(path, _REMEDY)
  except FileNotFoundError:
    raise ValueError(f"{path} is missing. {_REMEDY}") from None


def _vocabulary_in(folder: str) -> str:
  """Finds the vocabulary; a byte-level BPE's file alone is also in folders of the other kinds."""
  names = (vocabulary_kind.VOCABULARY, vocabulary_kind.SENTENCE_PIECES, vocabulary_kind.BYTE_PAIRS)
  for name in names:
    path = os.path.join(folder, name)
    if filesystem.is_file(path) and (name != names[-1] or vocabulary_kind.holds_byte_pairs(path)):
      return path
  raise ValueError(
    f"{folder} has no vocabulary ({', '.join(names)}). Give it with vocab_file. {_REMEDY}"
  )


# ---------------------------------------------------------------------------------------------
# Writing.


def write_description(folder: str, model: Described) -> None:
  """Writes the files that describe a model, in this project's form and in that of others.

  Args:
    folder: must exist.
    model: what is known of it.

  Raises:
    ValueError: the vocabulary is bad, or transformers cannot say the configuration.
    OSError: a file cannot be read or written.
  """
  config = model.config.to_dict()
  atomic_files.write_text(os.path.join(folder, CONFIG), model.config.to_json_string())
  content = {
    "facts": dict(model.facts),
    "settings": dict(model.settings),
    "pooling": model.pooling,
    "do_lower_case": model.do_lower_case,
    "max_seq_length": model.max_seq_length,
  }
  _write_json(folder, RUN, content)
  _write_json(folder, transformers_folder.CONFIG, _config_of_transformers(model, config))
  length = model.config.longest_sequence
  transformers_folder.write_tokenizer(folder, model.vocab_file, model.do_lower_case, length)
  _write_tokenizer(folder, model)
  if model.pooling:
    sentence_pooling.write_sentence_transformers(
      folder, model.pooling, config["hidden_size"], model.max_seq_length
    )


def _config_of_transformers(model: Described, config: Mapping[str, Any]) -> dict[str, Any]:
  """Makes the config.json: that of the encoder where transformers has no class for the head."""
  family, facts = model.config.family.name, model.facts
  head = form.ENCODER if model.is_encoder else (model.kind.transformers or form.ENCODER)
  try:
    its_class = transformers_heads.class_of(head, family, config=config)
  except ValueError:
    head, its_class = form.ENCODER, transformers_heads.class_of(form.ENCODER, family)
  classifies = head in (form.TEXTS, form.TOKENS)
  labels = facts.get("labels") if classifies else None
  return transformers_config.from_original(
    config,
    its_class,
    [f"LABEL_{i}" if each is None else str(each) for i, each in enumerate(labels or ())] or None,
    facts.get("problem_type") if head == form.TEXTS else None,
    family,
  )


def _write_tokenizer(folder: str, model: Described) -> None:
  """Writes a tokenizer.json where there is none yet, and the names of the special tokens."""
  if not vocabulary_kind.is_meant_as_byte_pairs(model.vocab_file):
    content = tokenizer_json.whole(model.vocab_file, model.do_lower_case)
    atomic_files.write_text(
      os.path.join(folder, _TOKENIZER), json.dumps(content, ensure_ascii=False)
    )
  config = json_files.read_object(os.path.join(folder, transformers_folder.TOKENIZER_CONFIG))
  special = {name: token for name, token in config.items() if name.endswith("_token")}
  _write_json(folder, _SPECIAL_TOKENS, special)


def _write_json(folder: str, name: str, content: Mapping[str, Any] | Sequence[Any]) -> None:
  text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
  atomic_files.write_text(os.path.join(folder, name), text)
