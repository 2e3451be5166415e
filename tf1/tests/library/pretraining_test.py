"""Pre-training on the graph-mode model: the original's losses, and its weights after 20 steps."""

import numpy as np
import pytest

from bert_tf1.library import modeling, optimization
from bert_tf1.real import tf

NAMES = [
  *("input_ids", "input_mask", "segment_ids", "next_sentence_labels"),
  *("masked_lm_positions", "masked_lm_ids", "masked_lm_weights"),
]


def losses_of(config, batch):
  """float32 `[B * P]`, scalar, scalar: each masked word's loss, their mean, next sentences'."""
  ids, mask, segments, is_random, positions, words, weights = batch
  model = modeling.BertModel(config, True, ids, mask, segments)
  masked = tf.gather(model.get_sequence_output(), positions, batch_dims=1)  # [B, P, D]
  masked = modeling.reshape_to_matrix(masked)  # [B * P, D]
  initializer = modeling.create_initializer(config.initializer_range)
  with tf.variable_scope("cls/predictions"):
    with tf.variable_scope("transform"):
      masked = tf.layers.dense(masked, config.hidden_size, modeling.get_activation("gelu"))
      masked = modeling.layer_norm(masked)
    bias = tf.get_variable("output_bias", [config.vocab_size])
    logits = tf.matmul(masked, model.get_embedding_table(), transpose_b=True) + bias
  per_word = tf.nn.sparse_softmax_cross_entropy_with_logits(tf.reshape(words, [-1]), logits)
  weights = tf.reshape(weights, [-1])
  masked_loss = tf.reduce_sum(weights * per_word) / (tf.reduce_sum(weights) + 1e-5)
  with tf.variable_scope("cls/seq_relationship"):
    shape = [2, config.hidden_size]
    kernel = tf.get_variable("output_weights", shape, initializer=initializer)
    bias = tf.get_variable("output_bias", [2])
    logits = tf.matmul(model.get_pooled_output(), kernel, transpose_b=True) + bias
  is_random = tf.reshape(is_random, [-1])
  per_pair = tf.nn.sparse_softmax_cross_entropy_with_logits(is_random, logits)
  return per_word, masked_loss, tf.reduce_mean(per_pair)


def tiny(golden_dir, arrays):
  """The configuration, a placeholder for each of NAMES, and the losses."""
  config = modeling.BertConfig.from_json_file(str(golden_dir / "tiny" / "bert_config.json"))
  batch = [tf.placeholder(array.dtype, array.shape) for array in arrays]
  return batch, losses_of(config, batch)


def test_losses_are_the_originals(golden_dir, started):
  golden = np.load(golden_dir / "tiny_forward.npz")
  arrays = [golden[f"in_{name}"] for name in NAMES]
  batch, losses = tiny(golden_dir, arrays)
  session = started(golden_dir / "tiny" / "bert_model.ckpt")
  found = session.run(losses, dict(zip(batch, arrays, strict=True)))
  expected = ["masked_lm_example_loss", "masked_lm_loss", "next_sentence_loss"]
  for value, name in zip(found, expected, strict=True):
    np.testing.assert_allclose(value, golden[name], rtol=0, atol=1e-5, err_msg=name)


@pytest.mark.ci
def test_twenty_steps_are_the_originals(golden_dir, started):
  data = np.load(golden_dir / "tiny_pretrain.npz")
  batch, (_, masked_loss, pair_loss) = tiny(golden_dir, [data[name][0] for name in NAMES])
  train = optimization.create_optimizer(masked_loss + pair_loss, 1e-2, 20, 5, False)
  session = started(golden_dir / "tiny" / "bert_model.ckpt")
  feeds = [
    {place: data[name][step] for place, name in zip(batch, NAMES, strict=True)}
    for step in range(20)
  ]
  losses = [session.run([masked_loss, pair_loss, train], feed)[:2] for feed in feeds]
  np.testing.assert_allclose(losses, data["losses"], rtol=0, atol=1e-5)
  theirs = str(golden_dir / "tiny_pretrain_20steps.ckpt")
  values = session.run({variable.op.name: variable for variable in tf.global_variables()})
  assert set(values) == {name for name, _ in tf.train.list_variables(theirs)}
  for name, value in values.items():
    if "key/bias" in name or "word_embeddings" in name:
      continue  # a gradient that is only rounding, and rows of vanishing gradients
    expected = tf.train.load_variable(theirs, name)
    tolerance = 1e-4 * max(1.0, abs(expected).max())
    np.testing.assert_allclose(value, expected, rtol=0, atol=tolerance, err_msg=name)
