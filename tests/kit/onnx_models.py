"""Tiny models as ONNX, and what onnxruntime, OpenVINO and TensorFlow compute of them."""

import numpy as np
import onnxruntime

from bert.exporting.onnx import writer
from bert.exporting.onnx.names import INPUTS
from bert.modeling import BertConfig
from bert.predicting.engines import openvino

SIZES = {
  "vocab_size": 20,
  "hidden_size": 8,
  "num_hidden_layers": 2,
  "num_attention_heads": 2,
  "intermediate_size": 8,
  "max_position_embeddings": 18,
}
FAMILIES = {
  "bert": {},
  "electra": {"embedding_size": 4},
  "albert": {"embedding_size": 4},
  "roberta": {},
  "distilbert": {"type_vocab_size": 0},
}
FACTS = {"labels": ["a", "b", "c"], "problem_type": "classification", "pooling": "mean"}
FEATURES = {  # the second row ends with padding, which is 1 in RoBERTa
  "input_ids": np.array([[2, 5, 6, 3, 7, 3], [2, 9, 3, 8, 3, 1]]),
  "input_mask": np.array([[1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 1, 0]]),
  "segment_ids": np.array([[0, 0, 0, 0, 1, 1], [0, 0, 0, 1, 1, 0]]),
}


def config_of(family: str = "bert", **more) -> BertConfig:
  return BertConfig.from_dict({"model_type": family, **SIZES, **FAMILIES[family], **more})


def fill(graph, seed: int = 0):
  """Gives the variables values that are far from 0 and 1; returns the graph."""
  random = np.random.default_rng(seed)
  for variable in graph.variables:
    mean = 1.0 if variable.name.endswith("gamma:0") else 0.0
    variable.assign(random.normal(mean, 0.4, variable.shape))
  return graph


def session_of(model) -> onnxruntime.InferenceSession:
  """A session of a model, or of the path of one."""
  options = onnxruntime.SessionOptions()
  options.log_severity_level = 3
  given = model if isinstance(model, str) else model.SerializeToString()
  return onnxruntime.InferenceSession(given, options, providers=["CPUExecutionProvider"])


def outputs_of(session, features) -> dict[str, np.ndarray]:
  asked = {each.name for each in session.get_inputs()}
  given = {own: features[n].astype(np.int64) for n, own in INPUTS.items() if own in asked}
  names = [each.name for each in session.get_outputs()]
  return dict(zip(names, session.run(names, given), strict=True))


def check(graph, atol: float = 1e-5) -> None:
  """Compares onnxruntime with TensorFlow, for a batch and for its second row without padding."""
  session = session_of(writer.model_of(graph))
  _compare(graph, lambda features: outputs_of(session, features), dict, atol)


def check_openvino(graph, folder, atol: float = 1e-5) -> None:
  """Compares OpenVINO with TensorFlow in the same way, but for the order of equal scores."""
  path = str(folder / "model.onnx")
  writer.write(graph, path)
  _compare(graph, openvino.load(path, threads=1), _without_masked_starts, atol)


def _compare(graph, compute, comparable, atol: float) -> None:
  alone = {name: values[1:, :5] for name, values in FEATURES.items()}
  for features in (FEATURES, alone):
    outputs = compute(features)
    assert tuple(outputs) == graph.outputs
    expected = comparable({name: values.numpy() for name, values in graph(features).items()})
    for name, values in comparable(outputs).items():
      np.testing.assert_allclose(values, expected[name], atol=atol, rtol=1e-5, err_msg=name)


def _without_masked_starts(outputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
  """Leaves out starts of answers where no word is: their scores are equal, in any order."""
  if "start_log_probs" not in outputs:
    return outputs
  is_word = outputs["start_log_probs"] > -1e20
  of_start = {name: values for name, values in outputs.items() if values.shape[:2] == is_word.shape}
  return outputs | {name: values[is_word] for name, values in of_start.items()}
