"""Exported folders on engines: which one is chosen, and vectors. The engines here are made up.

Alone: python -m pytest tests/predicting/load_export_test.py (a second); what the real ones compute:
tests/predicting/load_run_test.py
"""

import numpy as np
import pytest
import tensorflow as tf
from absl import logging

from bert.exporting import model_folder
from bert.exporting.model_files import FILES
from bert.exporting.model_folder import Described
from bert.model import similarity
from bert.predicting import load_export, servable
from bert.predicting.engines import registry
from bert.predicting.predictor import Predictor
from tests.kit import exports


class MadeUp:
  """An engine whose states are the ids of tokens."""

  inputs = ("input_ids", "input_mask")

  def __init__(self, name):
    self.name = name

  def __call__(self, batch):
    states = np.repeat(batch["input_ids"][..., None], 16, -1).astype(np.float32)
    return {"last_hidden_state": states}


@pytest.fixture
def export(tmp_path, monkeypatch):
  """A folder with models of both formats, and the engines that are installed."""
  for name in ("onnx", "litert"):
    path = tmp_path / FILES[name]["float32"]
    path.parent.mkdir()
    path.write_bytes(b"")
  (tmp_path / "litert" / "model_int8.tflite").write_bytes(b"")
  (tmp_path / "v").mkdir()
  vocab_file = tmp_path / "v" / "vocab.txt"
  vocab_file.write_text("\n".join(exports.VOCAB) + "\n")
  model_folder.write_description(
    str(tmp_path), Described(exports.CONFIG, str(vocab_file), True, 16, {}, {}, "max")
  )
  installed = {"onnxruntime", "litert"}
  monkeypatch.setattr(registry, "load", lambda name, path, **options: MadeUp(name))
  monkeypatch.setattr(registry, "module_of", lambda name: None)
  monkeypatch.setattr(registry, "is_installed", lambda name: name in installed)
  return tmp_path, installed


def load(folder, engine="auto", precision="float32"):
  return load_export.choose_engine(folder, engine, precision)


def test_auto_is_the_same_engine_everywhere_and_logged(export, monkeypatch):
  folder, installed = export
  lines = []
  monkeypatch.setattr(logging, "info", lambda text, *values: lines.append(text % values))
  for engines, expected, rest in [
    ({"onnxruntime", "litert", "openvino"}, "onnxruntime", ", not openvino, litert"),
    ({"litert"}, "litert", ""),
  ]:
    installed.clear()
    installed.update(engines)
    lines.clear()
    assert load(folder) == expected
    assert servable.find(folder).engine == expected
    assert lines == [f"Engine {expected}{rest} computes {folder} in float32."] * 2


def test_rows_are_as_long_as_the_model_reads(export, monkeypatch):
  """OpenVINO does not say by itself that they are too long."""
  folder, _ = export
  asked = []
  monkeypatch.setattr(
    registry, "load", lambda name, path, **options: asked.append(options) or MadeUp(name)
  )
  Predictor.load(folder)
  assert [options["max_length"] for options in asked] == [exports.CONFIG.longest_sequence]


def test_auto_is_an_engine_that_has_such_a_model(export):
  folder, installed = export
  assert load(folder, "auto", "int8") == "litert"
  installed.remove("litert")
  assert load(folder) == "onnxruntime"
  assert load(folder, "onnxruntime") == "onnxruntime"
  installed.add("openvino")  # of both precisions, from one file
  assert load(folder, "auto", "bfloat16") == "openvino"


def test_vectors_are_pooled_as_recorded_or_as_asked_for(export):
  folder, _ = export
  ids = [exports.VOCAB.index(token) for token in ("[CLS]", "film", "bad", "[SEP]")]
  [found] = Predictor.load(folder, "litert")(["Film bad"])
  assert found.tolist() == [max(ids)] * 16
  asked = {"engine": "litert", "pooling": "mean", "max_seq_length": None}
  [found, _] = Predictor.load(folder, task="vectors", **asked)(["Film bad", "a"])
  np.testing.assert_allclose(found, np.mean(ids))


def test_options_of_an_encoder(export):
  folder, _ = export
  for name in ("litert", "auto"):
    assert Predictor.load(folder, name, chunk_size=7).chunk_size == 7
  assert Predictor.load(folder, "litert").chunk_size == 64 * 32
  with pytest.raises(ValueError, match="chunk_size is 0, but must be at least 1"):
    Predictor.load(folder, "litert", chunk_size=0)
  message = "An encoder has no option doc_stride"
  with pytest.raises(ValueError, match=message):
    Predictor.load(folder, "litert", doc_stride=8, max_seq_length=16)


@pytest.mark.parametrize("pooling", ["cls", "mean", "max"])
def test_pooling_is_that_of_tensorflow(pooling):
  vectors = np.random.RandomState(0).randn(2, 5, 3).astype(np.float32)
  mask = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]])
  expected = similarity.pool(tf.constant(vectors), tf.constant(mask), pooling)
  np.testing.assert_allclose(load_export.pool(vectors, mask, pooling), expected, atol=1e-6)
