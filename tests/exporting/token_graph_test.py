"""What models compute of tokens, as one traced function.

Alone: python -m pytest tests/exporting/token_graph_test.py (seconds; TensorFlow)
"""

import numpy as np
import pytest
import tensorflow as tf

from bert.exporting import token_graph
from bert.model.task_head import SEQUENCES, Batch
from bert.model.variables import use_store
from bert.modeling import BertConfig
from bert.predicting.engines import registry
from bert.tasks import kinds

SIZES = {
  "hidden_size": 8,
  "num_hidden_layers": 1,
  "num_attention_heads": 2,
  "intermediate_size": 8,
  "max_position_embeddings": 16,
}
FACTS = {"labels": ["a", "b", "c"], "problem_type": "classification", "pooling": "mean"}
FEATURES = dict(
  zip(
    SEQUENCES,
    np.array([[[1, 5, 6, 2], [1, 7, 2, 0]], [[1, 1, 1, 1], [1, 1, 1, 0]], [[0] * 4] * 2]),
    strict=True,
  )
)


def config_of(**more):
  return BertConfig.from_dict({"vocab_size": 20, **SIZES, **more})


@pytest.mark.parametrize("name", [kind.name for kind in kinds.registered().values()])
def test_scores_of_rows_do_not_depend_on_padding(name):
  head = kinds.find(name).head_class().of_run(FACTS, {"pad_to_longest": True})
  graph = token_graph.of_task(config_of(), head)
  whole = graph(FEATURES)
  alone = graph({name: values[1:, :3] for name, values in FEATURES.items()})
  for output, values in alone.items():
    expected = whole[output][1:]
    if expected.shape.rank > 1 and expected.shape[1] == 4:
      expected = expected[:, :3]
    np.testing.assert_allclose(values, expected, atol=1e-6)


def test_scores_are_the_outputs_of_the_head():
  head = kinds.find("sentences").head_class().of_run(FACTS, {})
  graph = token_graph.of_task(config_of(), head)
  with use_store(graph._store):
    batch = Batch(config_of(), {name: tf.constant(x) for name, x in FEATURES.items()})
    expected = head.outputs(batch)["logits"]
  np.testing.assert_allclose(graph(FEATURES)["logits"], expected, atol=1e-6)


def test_a_saved_model_has_the_inputs_of_transformers_exports(tmp_path):
  head = kinds.find("ner").head_class().of_run(FACTS, {})
  graph = token_graph.of_task(config_of(), head)
  graph.save(str(tmp_path))
  compute = tf.saved_model.load(str(tmp_path)).signatures["serving_default"]
  names = ("input_ids", "attention_mask", "token_type_ids")
  given = {n: tf.constant(FEATURES[m], tf.int32) for n, m in zip(names, SEQUENCES, strict=True)}
  np.testing.assert_allclose(compute(**given)["logits"], graph(FEATURES)["logits"], atol=1e-6)
  engine = registry.load("tensorflow", str(tmp_path / "saved_model.pb"), max_length=4)
  np.testing.assert_allclose(engine(FEATURES)["logits"], graph(FEATURES)["logits"], atol=1e-6)
  with pytest.raises(ValueError, match="the model reads at most 4 tokens"):
    engine({name: np.ones([1, 5], int) for name in SEQUENCES})


def test_inputs_are_those_that_are_read():
  assert token_graph.of_encoder(config_of()).inputs == SEQUENCES
  distilbert = config_of(model_type="distilbert", type_vocab_size=0)
  graph = token_graph.of_encoder(distilbert)
  assert graph.inputs == SEQUENCES[:2]
  assert graph.outputs == ("last_hidden_state",)
  similarity = kinds.find("similarity").head_class().of_run(FACTS, {})
  assert token_graph.of_task(config_of(), similarity).inputs == SEQUENCES[:2]
