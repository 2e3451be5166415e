"""Heads for sequences and tokens with ELECTRA's variables, on its encoder, against the original."""

import numpy as np
import pytest
import tensorflow as tf

from bert.model import heads, replaced_tokens
from bert.model.configuration import BertConfig
from bert.model.variables import VariableStore, use_store
from bert.modeling import BertModel
from tests.kit.families import load_variables
from tests.kit.recorded_configs import electra_config

INPUTS = ("input_ids", "input_mask", "segment_ids")


def logits_of(golden_dir, golden, head):
  """`head(model)` with the recorded weights of encoder and head."""
  arguments = electra_config(golden_dir), False, *(golden[f"in_{name}"] for name in INPUTS)
  with use_store(VariableStore()) as store:
    BertModel(*arguments)
    load_variables(store, golden_dir / "electra" / "model.ckpt")
    encoder = set(store.variables)
    head(BertModel(*arguments))
    for name in set(store.variables) - encoder:
      store.variables[name].assign(golden[f"head/{name}"])
    return head(BertModel(*arguments))


def test_regression_equals_electra(golden_dir):
  golden = np.load(golden_dir / "electra" / "finetune_sts.npz")
  scope = heads.task_scope(electra_config(golden_dir), "STS-B")
  logits = logits_of(
    golden_dir,
    golden,
    lambda model: heads.get_classifier_logits(model.get_pooled_output(), 1, True, 0.0, scope=scope),
  )
  targets = golden["in_sts_targets"]
  mean, losses, scores = heads.get_classifier_loss(logits, targets, "regression")
  np.testing.assert_allclose(scores[:, 0], golden["predictions"], atol=1e-5)
  np.testing.assert_allclose(losses, golden["loss"], atol=1e-5)
  np.testing.assert_allclose(len(targets) * mean, golden["total_loss"], rtol=1e-5)


def test_tagging_equals_electra(golden_dir):
  """The original scores the first piece of each word; we score all and read these."""
  golden = np.load(golden_dir / "electra" / "finetune_chunk.npz")
  scope = heads.task_scope(electra_config(golden_dir), "chunk")
  logits = logits_of(
    golden_dir,
    golden,
    # Training changes nothing: the original has no dropout here.
    lambda model: heads.get_token_logits(model.get_sequence_output(), 25, True, scope=scope),
  )
  logits = tf.gather(logits, golden["in_chunk_labeled_positions"], batch_dims=1)
  np.testing.assert_allclose(logits, golden["logits"], atol=1e-5)
  np.testing.assert_array_equal(tf.argmax(logits, -1), golden["predictions"])
  mask = golden["in_chunk_labels_mask"]
  labels = np.where(mask > 0, golden["in_chunk_labels"], -1).astype(np.int32)
  _, losses = heads.get_token_loss(logits, labels)
  np.testing.assert_allclose(tf.reduce_sum(losses, -1), golden["loss"], rtol=1e-5)


@pytest.mark.parametrize("parts", [1, 2])
def test_a_batch_without_labelled_tokens_has_the_loss_zero(parts):
  logits = tf.Variable(np.random.default_rng(1).normal(size=(2, 3, 5)).astype(np.float32))
  config = BertConfig(5, hidden_size=4, num_attention_heads=1)
  nothing = np.zeros((2, 3), np.int32)
  with use_store(VariableStore()), tf.GradientTape() as tape:
    found = [
      heads.get_token_loss(logits, nothing - 1, parts=parts)[0],
      replaced_tokens.detection_loss(logits[..., 0], nothing, nothing, parts)[0],
      heads.get_masked_lm_output(
        config, logits[..., :4], tf.ones([5, 4]), nothing, nothing, np.float32(nothing), parts=parts
      )[0],
    ]
    gradient = tape.gradient(tf.add_n(found), logits)
    found.append(heads.get_token_loss(logits[:0], nothing[:0], parts=parts)[0])
  assert [float(loss) for loss in found] == [0.0, 0.0, 0.0, 0.0]
  np.testing.assert_array_equal(gradient, np.zeros((2, 3, 5)))
