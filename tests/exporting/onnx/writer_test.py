"""Models written as ONNX compute what TensorFlow does.

Alone: python -m pytest tests/exporting/onnx/writer_test.py (seconds; TensorFlow and onnxruntime)
"""

import numpy as np
import pytest

from bert.exporting import token_graph
from bert.exporting.onnx import writer
from bert.exporting.onnx.names import INPUTS
from tests.exporting.token_graph_test import FEATURES, config_of

onnxruntime = pytest.importorskip("onnxruntime")


def outputs_of(model, graph, features):
  session = onnxruntime.InferenceSession(
    model.SerializeToString(), providers=["CPUExecutionProvider"]
  )
  names = {n: INPUTS[n] for n in graph.inputs}
  given = {names[n]: features[n].astype(np.int64) for n in names}
  return dict(zip(graph.outputs, session.run(list(graph.outputs), given), strict=True))


@pytest.mark.parametrize("fused", [True, False])
def test_encoder(fused):
  graph = token_graph.of_encoder(config_of())
  model = writer.model_of(graph, fused=fused)
  expected = graph(FEATURES)
  for name, values in outputs_of(model, graph, FEATURES).items():
    np.testing.assert_allclose(values, expected[name], atol=1e-5)
