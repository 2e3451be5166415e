"""Exports of models that nobody trained, one of each kind of task.

  folder = tiny_exports.write(tmp_path / "names", "tags")
  Predictor.load(folder)(["Ada was in London."])

Their weights are far from zero, so that answers differ.
"""

import pathlib
from typing import Any

from bert import tokenization
from bert.exporting import model_folder, token_graph
from bert.exporting.model_files import FILES
from bert.exporting.model_folder import Described
from bert.exporting.onnx import writer
from bert.model.configuration import BertConfig
from bert.tasks import kinds
from tests.kit import onnx_models, tiny_bert
from tests.kit.paths import SAMPLE_VOCAB

LENGTH = 32
_WINDOWS = {"long_text": "windows", "window_stride": 5, "max_windows": 4, "window_pooling": "max"}

# Name -> facts and settings of the run that would have trained it.
MODELS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
  "classes": ({"problem_type": "classification", "labels": ["no", "yes"]}, {}),
  "topics": ({"problem_type": "multi_label", "labels": ["a", "b", "päť"], **_WINDOWS}, {}),
  "score": ({"problem_type": "regression", "labels": ["x"]}, {}),
  "spans": (
    {"task_name": "squad", "version_2_with_negative": True},
    {"doc_stride": 5, "max_query_length": 6},
  ),
  "tags": ({"task_name": "ner", "labels": ["O", "B-PER", "I-PER"]}, {"doc_stride": 5}),
  "choices": ({"task_name": "swag"}, {}),
  "similarity": ({"task_name": "similarity", "pooling": "mean"}, {}),
  "vectors": ({}, {}),
}


def write(folder: pathlib.Path, name: str) -> pathlib.Path:
  """Writes a model of `MODELS` as ONNX; returns the folder."""
  described = _described(name)
  path = folder / FILES["onnx"]["float32"]
  path.parent.mkdir(parents=True)
  writer.write(onnx_models.fill(_graph(described)), str(path))
  model_folder.write_description(str(folder), described)
  return folder


def write_saved_model(export: pathlib.Path, name: str) -> pathlib.Path:
  """Writes a model of `MODELS` as the SavedModel of token ids in an export; returns its folder."""
  described, folder = _described(name), export / "task"
  onnx_models.fill(_graph(described)).save(str(folder))
  model_folder.write_description(str(folder), described)
  return folder


def _described(name: str) -> Described:
  facts, settings = MODELS[name]
  pooling = None if facts and "pooling" not in facts else "mean"
  return Described(_config(), str(SAMPLE_VOCAB), True, LENGTH, facts, settings, pooling)


def _config() -> BertConfig:
  size = len(tokenization.load_vocab(str(SAMPLE_VOCAB)))
  return BertConfig.from_dict(
    tiny_bert.config(size, max_position_embeddings=2 * LENGTH, type_vocab_size=2)
  )


def _graph(model: Described) -> token_graph.TokenGraph:
  if model.is_encoder:
    return token_graph.of_encoder(model.config)
  head = kinds.of_facts(model.facts).head_class().of_run(model.facts, model.settings)
  return token_graph.of_task(model.config, head)
