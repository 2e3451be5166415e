"""Tiny trained models and their exports, made once in a test session.

  @pytest.fixture(scope="module")
  def exported(tmp_path_factory):
    return exports.classifier(tmp_path_factory).exported

The first pytest worker that needs a model makes it, behind a lock. Tests only read its folder.
"""

import json
import os
import pathlib
from collections.abc import Callable
from typing import NamedTuple

import tensorflow as tf

from bert.checkpoints import finding, reading, saving, transformers_folder
from bert.checkpoints.transformers_heads import Head
from bert.exporting.sentence_model import SentenceModel
from bert.model import heads
from bert.model.configuration import BertConfig
from bert.model.variables import VariableStore, use_store
from bert.modeling import BertModel
from tests.kit import once


def config(vocab_size: int, **changes) -> BertConfig:
  """Two layers, and weights far from zero, so that a mistake anywhere shows in the output."""
  settings = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
  settings |= {"intermediate_size": 32, "max_position_embeddings": 32, "type_vocab_size": 2}
  return BertConfig(vocab_size=vocab_size, **{**settings, "initializer_range": 0.3, **changes})


WORDS = ["the", "film", "was", "good", "bad", ",", "."]
VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
LABELS = ["no", "yes", "päť"]
CONFIG = config(len(VOCAB))


class Model(NamedTuple):
  """Folders of a model."""

  trained: str  # a checkpoint, its configuration and its vocabulary
  exported: str  # SavedModels of it


def classifier(tmp_path_factory) -> Model:
  """A classifier of `LABELS`; its SavedModel is `task` in the export."""
  return made_once(tmp_path_factory, "classifier", _make_classifier)


def made_once(tmp_path_factory, name: str, make: Callable[[pathlib.Path], None]) -> Model:
  """The model that `make` writes into `trained` and `export` of a folder, once a session."""
  folder = once.folder(tmp_path_factory, name, make)
  return Model(str(folder / "trained"), str(folder / "export"))


def write_model(folder: pathlib.Path, config: BertConfig, vocab: list[str], variables) -> str:
  """Writes a checkpoint with its configuration and vocabulary; returns the folder."""
  folder.mkdir(parents=True, exist_ok=True)
  (folder / "vocab.txt").write_text("\n".join(vocab) + "\n")
  (folder / "bert_config.json").write_text(config.to_json_string())
  saving.save(str(folder), 1, variables, {})
  return str(folder)


def write_transformers(model: Model, folder: pathlib.Path, head: Head, **changes) -> None:
  """Writes a trained model as transformers saves it; `changes` are of its config.json."""
  config = BertConfig.from_json_file(os.path.join(model.trained, "bert_config.json")).to_dict()
  prefix = finding.find_checkpoint(model.trained)
  names = [name for name in reading.names_and_shapes(prefix) if name != "global_step"]
  tensors = reading.read_tensors(prefix, names)
  vocab_file = os.path.join(model.trained, "vocab.txt")
  transformers_folder.write_folder(folder, config, tensors, vocab_file, True, head)
  if changes:
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def _make_classifier(folder: pathlib.Path) -> None:
  with use_store(VariableStore(seed=5)) as store:
    model = BertModel(CONFIG, False, tf.zeros([1, 1], tf.int32))
    heads.get_classifier_logits(model.get_pooled_output(), len(LABELS), False)
  store.variables["output_weights"].assign_add(tf.ones([len(LABELS), 16]) * 0.1)
  trained = write_model(folder / "trained", CONFIG, VOCAB, store.variables)
  task = SentenceModel(CONFIG, os.path.join(trained, "vocab.txt"), True, 16, LABELS)
  task.export(str(folder / "export" / "task"), trained)
