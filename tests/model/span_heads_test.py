"""ELECTRA's and ALBERT's heads for questions, on their encoders, against the originals."""

import numpy as np
import pytest
import tensorflow as tf

from bert.model import heads, span_heads
from bert.model.answer_heads import AnswerHead
from bert.model.variables import VariableStore, use_store
from bert.modeling import BertConfig, BertModel
from tests.kit.families import load_variables, recorded_weight
from tests.kit.recorded_configs import electra_config

INPUTS = ("input_ids", "input_mask", "segment_ids")
SCOPE = "task_specific/squad"
FIVE = {"num_starts": 5, "num_ends": 5}


def assert_equal(actual, expected, atol=1e-5):
  if np.issubdtype(expected.dtype, np.integer):
    np.testing.assert_array_equal(actual, expected)
  else:
    # Relative, too: ALBERT's hidden positions are at -1e30, ELECTRA's at -1000.
    np.testing.assert_allclose(actual, expected, rtol=1e-6, atol=atol)


@pytest.fixture(scope="module")
def electra(golden_dir):
  """The recorded batch, and the encoder's last layer for it."""
  golden = np.load(golden_dir / "electra" / "finetune_squad.npz")
  with use_store(VariableStore()) as store:
    arguments = electra_config(golden_dir), False, *(golden[f"in_{name}"] for name in INPUTS)
    BertModel(*arguments)
    load_variables(store, golden_dir / "electra" / "model.ckpt")
    return golden, BertModel(*arguments).get_sequence_output()


def electra_scores(electra, options, weight_of, **asked):
  golden, sequence_output = electra
  inputs = [golden[f"in_{name}"] for name in INPUTS[1:]]
  store = VariableStore()

  @tf.function(autograph=False)
  def score():
    with use_store(store):
      return span_heads.get_electra_spans(sequence_output, *inputs, options, **asked)

  score.get_concrete_function()
  for name, variable in store.variables.items():
    variable.assign(weight_of(name, variable.shape))
  return store, score()


# Their names in the record, the parts of the head, and the head's variables in order of creation.
VARIANTS = {
  "": (AnswerHead("electra", **FIVE), "dense qa_hidden dense_1 dense_2 dense_3"),
  "independent_": (AnswerHead("electra", joint_prediction=False), "dense dense_1 dense_2 dense_3"),
  "simple_answerable_": (
    AnswerHead("electra", answerable_uses_start_logits=False, **FIVE),
    "dense qa_hidden dense_1 dense_2",
  ),
  "no_answerable_": (
    AnswerHead("electra", answerable_classifier=False, **FIVE),
    "dense qa_hidden dense_1",
  ),
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_electra_equals_the_original(electra, variant):
  golden, _ = electra
  options, layers = VARIANTS[variant]

  def weight_of(name, shape):
    return golden[f"head/{name}"] if not variant else recorded_weight(name, shape)

  store, scores = electra_scores(
    electra, options, weight_of, start_positions=golden["in_squad_start_positions"], with_beam=True
  )
  assert [name.split("/")[2] for name in store.variables if name.endswith("kernel")] == (
    layers.split()
  )
  losses = span_heads.get_span_losses(
    scores,
    *(golden[f"in_squad_{n}"] for n in ("start_positions", "end_positions", "is_impossible")),
  )
  found = {
    "train_loss": losses,
    "train_total_loss": tf.reduce_sum(losses),
    "train_start_logits": scores.start_logits,
    "train_end_logits": scores.end_logits,
    "predict_start_logits": scores.start_logits,
  }
  if scores.null_logit is not None:
    found |= {f"{mode}_answerable_logit": scores.null_logit for mode in ("train", "predict")}
  if scores.beam:
    names = ("start_top_log_probs", "start_top_index", "end_top_log_probs", "end_top_index")
    found |= {f"predict_{name}": value for name, value in zip(names, scores.beam, strict=True)}
  assert f"{variant}train_loss" in golden.files
  for name, value in found.items():
    if variant + name in golden.files:
      assert_equal(value, golden[variant + name])


def test_of_a_short_sequence():
  """A beam keeps its size, with nothing beyond it. New kernels are Glorot's, of known range."""
  with use_store(VariableStore()) as store:
    ones = tf.ones([2, 3], tf.int32)
    vectors = tf.random.stateless_normal([2, 3, 4], [1, 2])
    scores = span_heads.get_electra_spans(
      vectors, ones, ones, AnswerHead("electra"), with_beam=True
    )
    heads.get_classifier_logits(tf.zeros([1, 300]), 2, False, scope="task_specific/mrpc")
  assert scores.beam.end_index.shape == [2, 20, 20]
  assert (scores.beam.end_log_probs[:, :, 3:] == -1e30).numpy().all()
  for name, limit in (
    (f"{SCOPE}/dense_1/kernel", 6 / 513),
    ("task_specific/mrpc/dense/kernel", 6 / 302),
  ):
    assert np.abs(store.variables[name]).max() == pytest.approx(np.sqrt(limit), rel=0.02)


# ---------------------------------------------------------------------------------------------
# ALBERT.


@pytest.fixture(scope="module")
def albert(golden_dir):
  golden = np.load(golden_dir / "albert" / "squad.npz")
  config = BertConfig.from_json_file(golden_dir / "albert" / "config_A.json")
  with use_store(VariableStore()) as store:
    arguments = config, False, *(golden[f"in_{name}"] for name in INPUTS)
    BertModel(*arguments)
    load_variables(store, golden_dir / "albert" / "model_A.ckpt")
    return golden, BertModel(*arguments).get_sequence_output()


def with_head(build, golden):
  """Builds twice: the first time makes the variables, which then get the recorded values."""
  with use_store(VariableStore()) as store:
    build()
    for name, variable in store.variables.items():
      variable.assign(golden[f"head/{name}"])
    return set(store.variables), build()


def test_albert_equals_the_original(albert):
  golden, sequence_output = albert
  starts, ends, impossible = (
    golden[f"in_{name}"] for name in ("start_positions", "end_positions", "is_impossible")
  )
  names, scores = with_head(
    lambda: span_heads.get_albert_spans(
      sequence_output, golden["in_p_mask"], start_positions=starts, beam=(5, 5)
    ),
    golden,
  )
  assert names == {n[5:] for n in golden.files if n.startswith("head/") and "cls/" not in n}
  losses = span_heads.get_span_losses(scores, starts, ends, impossible)
  assert_equal(tf.reduce_mean(losses), golden["train_total_loss"])
  assert_equal(tf.nn.log_softmax(scores.start_logits), golden["train_start_log_probs"])
  assert_equal(tf.nn.log_softmax(scores.end_logits), golden["train_end_log_probs"])
  for mode in ("train", "predict"):
    assert_equal(scores.null_logit, golden[f"{mode}_cls_logits"])
  assert_equal(scores.beam.start_log_probs, golden["predict_start_top_log_probs"])
  assert_equal(scores.beam.start_index, golden["predict_start_top_index"])
  flat = [5, 25]
  assert_equal(tf.reshape(scores.beam.end_log_probs, flat), golden["predict_end_top_log_probs"])
  assert_equal(tf.reshape(scores.beam.end_index, flat), golden["predict_end_top_index"])


def test_where_albert_lets_answers_lie(albert):
  """The record's mask follows from the inputs, but for row 4, which was edited."""
  golden, _ = albert
  mask = span_heads.albert_p_mask(golden["in_input_mask"], golden["in_segment_ids"])
  np.testing.assert_array_equal(mask[:4], golden["in_p_mask"][:4])


def test_alberts_head_for_squad_1_is_berts(albert):
  golden, sequence_output = albert
  _, logits = with_head(lambda: heads.get_span_logits(sequence_output), golden)
  assert_equal(logits[0], golden["v1_start_logits"])
  assert_equal(logits[1], golden["v1_end_logits"])
