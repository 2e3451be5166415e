"""Models of ONNX with 8-bit weights.

Alone: python -m pytest tests/exporting/onnx/quantization_test.py (seconds; TensorFlow, onnxruntime)
"""

import os

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from bert.exporting import token_graph
from bert.exporting.onnx import quantization, writer
from bert.exporting.onnx.names import INT8_BITS
from tests.kit.onnx_models import config_of, outputs_of, session_of

SIZES = {
  "vocab_size": 1200,
  "hidden_size": 64,
  "num_attention_heads": 4,
  "intermediate_size": 128,
}
RANDOM = np.random.default_rng(1)


def batch(rows, length=12):
  ones = np.ones((rows, length), np.int32)
  return {
    "input_ids": RANDOM.integers(5, 1200, (rows, length)),
    "input_mask": ones,
    "segment_ids": 0 * ones,
  }


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
  """A folder with model.onnx and dynamic.onnx."""
  folder = tmp_path_factory.mktemp("models")
  config = config_of(**SIZES, initializer_range=0.2)
  graph = token_graph.of_encoder(config)
  for variable in graph.variables:
    if "LayerNorm" in variable.name:  # columns of different sizes, as those of trained models
      variable.assign(variable + RANDOM.normal(0, 0.5, variable.shape) ** 3)
  source = str(folder / "model.onnx")
  writer.write(graph, source)
  quantization.quantize_dynamic(source, str(folder / "dynamic.onnx"))
  return folder


def outputs(folder, name, features):
  return outputs_of(session_of(str(folder / name)), features)["last_hidden_state"]


def test_values_stay_about_the_same(folder):
  texts = batch(5)
  expected, found = (outputs(folder, name, texts) for name in ("model.onnx", "dynamic.onnx"))
  assert found.shape == expected.shape
  assert found.dtype == expected.dtype
  error = np.sqrt(np.square(found - expected).mean() / np.square(expected).mean())
  assert 1e-4 < error < 0.03


def test_bits_of_weights(folder):
  model = onnx.load(str(folder / "dynamic.onnx"))
  kinds = (onnx.TensorProto.INT8, onnx.TensorProto.UINT8)
  small = [w for w in model.graph.initializer if w.data_type in kinds and len(w.dims) == 2]
  # Attention, its output, and two products of the feed-forward layer, twice; and the words.
  assert len(small) == 2 * 4 + 1
  assert {np.abs(numpy_helper.to_array(weights)).max() for weights in small} == {127, 255}
  assert [each.value for each in model.metadata_props if each.key == INT8_BITS] == ["8"]
  assert {node.op_type for node in model.graph.node} >= {"QAttention", "MatMulInteger"}


def test_models_that_cannot_be_quantized(folder, tmp_path):
  target = str(tmp_path / "target.onnx")
  source = str(folder / "model.onnx")
  with pytest.raises(ValueError, match=r"dynamic\.onnx: the model is quantized already"):
    quantization.quantize_dynamic(str(folder / "dynamic.onnx"), target)
  damaged = tmp_path / "damaged.onnx"
  damaged.write_bytes(b"version https://git-lfs.github.com/spec/v1\n")
  with pytest.raises(ValueError, match=r"damaged\.onnx: not a model of ONNX, or damaged"):
    quantization.quantize_dynamic(str(damaged), target)
  tiny = str(tmp_path / "tiny.onnx")
  onnx.save(without_products(onnx.load(source)), tiny)
  with pytest.raises(ValueError, match="no matrix product that is worth quantizing"):
    quantization.quantize_dynamic(tiny, target)
  with pytest.raises(OSError, match=r"missing\.onnx"):
    quantization.quantize_dynamic(str(tmp_path / "missing.onnx"), target)
  assert not os.path.exists(target)


def without_products(model):
  kept = [node for node in model.graph.node if node.op_type in ("Cast", "Shape")]
  del model.graph.node[:]
  model.graph.node.extend(kept)
  return model
