"""Models as `model.tflite`, computed by LiteRT's own runtime, held against TensorFlow.

Alone: python -m pytest tests/exporting/litert_test.py (a minute; TensorFlow, ai-edge-litert)
"""

import dataclasses
import itertools

import numpy as np
import pytest
import tensorflow as tf

from bert.exporting import litert, token_graph
from bert.families import FAMILIES
from bert.model.answer_heads import AnswerHead
from bert.model.span_head import SpanHead
from bert.model.task_head import Head
from bert.predicting.engines import litert as engine
from bert.tasks import kinds
from tests.exporting.token_graph_test import FACTS, FEATURES, config_of

# Texts of other numbers and lengths than those of `FEATURES`.
OTHERS = {
  "input_ids": np.array([[1, 5, 6, 7, 8, 2]] * 3),
  "input_mask": np.array([[1] * 6, [1] * 5 + [0], [1] * 4 + [0] * 2]),
  "segment_ids": np.array([[0, 0, 0, 1, 1, 1]] * 3),
}
BEAMS = {
  kind: SpanHead(AnswerHead(kind, num_starts=3, num_ends=2)) for kind in ("electra", "albert")
}


def family_config(family):
  """A tiny configuration of a family."""
  narrow = {"embedding_size": 4} if FAMILIES[family].projection else {}
  return config_of(model_type=family, initializer_range=0.5, **narrow)


def graph_of(task, family="bert"):
  if task == "encoder":
    return token_graph.of_encoder(family_config(family))
  head = BEAMS.get(task) or kinds.find(task).head_class().of_run(FACTS, {"pad_to_longest": True})
  return token_graph.of_task(family_config(family), head)


def written(graph, folder, precision="float32"):
  path = str(folder / "model.tflite")
  litert.write(graph, path, precision)
  return engine.load(path, threads=1)


def difference(found, expected):
  """The largest one between outputs; positions of a beam have to be equal."""
  assert found.keys() == expected.keys()
  pairs = [(found[name], expected[name].numpy()) for name in expected]
  for values, wanted in pairs:
    assert values.shape == wanted.shape
    assert wanted.dtype == np.float32 or np.array_equal(values, wanted)
  return max(np.abs(values - wanted).max() for values, wanted in pairs)


def check(graph, model):
  """Compares outputs, of changing shapes, and those of a row without the padding of others."""
  assert model.inputs == graph.inputs
  for features in (FEATURES, OTHERS, FEATURES):
    assert difference(model(features), graph(features)) < 1e-4
  if "start_index" in graph.outputs:
    return  # a beam has more starts than these rows have places: the rest lies in padding
  alone = {name: values[2:, :4] for name, values in OTHERS.items()}
  for name, values in model(alone).items():
    expected = model(OTHERS)[name][2:]
    if values.ndim > 1 and values.shape[1] == 4 != expected.shape[1]:
      expected = expected[:, :4]
    np.testing.assert_allclose(values, expected, atol=1e-5)


def test_outputs_are_those_of_tensorflow(tmp_path):
  graph = graph_of("encoder")
  model = written(graph, tmp_path)
  check(graph, model)
  for wrong in (np.full([1, 4], 20), np.ones([1, 17])):  # 20 tokens, 16 positions
    with pytest.raises(ValueError, match=r"model\.tflite cannot compute input_ids \[1, \d+\], "):
      model(dict.fromkeys(FEATURES, wrong))
  with pytest.raises(ValueError, match=r"model\.tflite reads input_mask, segment_ids, which"):
    model({"input_ids": np.ones([1, 4])})
  check(graph, model)


TASKS = [*(kind.name for kind in kinds.registered().values()), *BEAMS]
# Each task and each family once; all pairs have been compared by hand, 4e-6 apart at most.
PAIRS = [*zip(TASKS, itertools.cycle(FAMILIES), strict=False), ("encoder", "albert")]


@pytest.mark.ci
@pytest.mark.parametrize(("task", "family"), PAIRS)
def test_outputs_of_all_tasks_and_families(tmp_path, task, family):
  graph = graph_of(task, family)
  check(graph, written(graph, tmp_path))


@pytest.mark.ci
def test_smaller_weights(tmp_path):
  # Tables of fewer than 1,024 numbers stay float32.
  sizes = {"vocab_size": 200, "hidden_size": 32, "intermediate_size": 64}
  graph = token_graph.of_encoder(config_of(**sizes, initializer_range=0.3))
  expected, path = graph(OTHERS), tmp_path / "model.tflite"
  found, bytes_of = {}, {}
  for precision in ("float32", "float16", "int8"):
    found[precision] = difference(written(graph, tmp_path, precision)(OTHERS), expected)
    bytes_of[precision] = path.stat().st_size
  assert found["float32"] < 1e-5 < found["float16"] < 1e-2 < found["int8"] < 0.3
  assert bytes_of["int8"] < bytes_of["float16"] < bytes_of["float32"]


@dataclasses.dataclass(frozen=True)
class Peculiar(Head):
  """A head with operations that LiteRT lacks."""

  def scores(self, batch):
    vectors = batch.bert().get_sequence_output()
    products = tf.matmul(vectors, vectors, transpose_b=True)
    return {"x": tf.linalg.det(products), "y": tf.math.lgamma(vectors), "z": products[..., None]}


@pytest.mark.ci
def test_operations_that_are_missing_are_named(tmp_path, capfd):
  graph = token_graph.of_task(config_of(), Peculiar())
  with pytest.raises(ValueError, match=r"operation for .*tf\.MatrixDeterminant") as error:
    litert.write(graph, str(tmp_path / "model.tflite"))
  assert "\n" not in str(error.value)
  assert not list(tmp_path.iterdir())
  assert "loc(" not in capfd.readouterr().err
