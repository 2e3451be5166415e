"""The tagger of before.py on bert-alive's model and Estimator: python after.py --output_dir=out.

Flags, data and names of variables are those of before.py: each evaluates what the other trained.
"""

import keras
import numpy as np
import tensorflow as tf
from absl import app, flags, logging

from bert import modeling, optimization
from bert.model import variables
from bert.model.layers import dropout
from bert.training.estimator import Estimator, EstimatorSpec, ModeKeys, RunConfig

FLAGS = flags.FLAGS
flags.DEFINE_string("output_dir", None, "Where the model is written.")
flags.DEFINE_string("bert_config_file", None, "Sizes of the model; a tiny one by default.")
flags.DEFINE_string("init_checkpoint", None, "Where the weights come from.")
flags.DEFINE_enum("head", "dense", ["dense", "keras", "crf"], "What computes the tags.")
flags.DEFINE_bool("do_train", True, "Whether to train before the evaluation.")
flags.DEFINE_integer("num_train_steps", 20, "Number of steps.")

NUM_TAGS, LENGTH = 3, 12


def read_examples():
  """Sentences of 4 to 12 tokens, whose tags follow from the token ids."""
  random = np.random.RandomState(1)
  ids = random.randint(1, 100, [64, LENGTH]).astype(np.int32)
  mask = (np.arange(LENGTH) < random.randint(4, LENGTH + 1, [64, 1])).astype(np.int32)
  return {"input_ids": ids * mask, "input_mask": mask, "tag_ids": ids % NUM_TAGS * mask}


def input_fn_builder(is_training):
  """Returns the input_fn; the fork's own reads records."""

  def input_fn(params):
    data = tf.data.Dataset.from_tensor_slices(read_examples())
    if is_training:
      data = data.shuffle(100, seed=params["seed"]).repeat().skip(params["skip_examples"])
    return data.batch(params["batch_size"], drop_remainder=is_training)

  return input_fn


def create_head(sequence, mask, tag_ids, is_training):
  """Returns the loss, and the tags [B, S] of vectors [B, S, W]."""
  if is_training:
    sequence = dropout(sequence, 0.1)
  if FLAGS.head == "keras":
    sequence = apply_keras(keras.layers.Dense(32, activation="relu", name="hidden"), sequence)
    logits = apply_keras(keras.layers.Dense(NUM_TAGS, name="tags"), sequence)
  else:
    weights = variables.get_variable(
      "output_weights",
      [NUM_TAGS, sequence.shape[-1]],
      variables.truncated_normal_initializer(0.02),
    )
    bias = variables.get_variable("output_bias", [NUM_TAGS], variables.zeros_initializer)
    logits = tf.tensordot(sequence, weights, [[2], [1]]) + bias
  if FLAGS.head == "crf":
    transitions = variables.get_variable(
      "transitions", [NUM_TAGS, NUM_TAGS], variables.glorot_uniform_initializer
    )
    likelihood = crf_log_likelihood(logits, tag_ids, mask, transitions)
    return -tf.reduce_mean(likelihood), crf_decode(logits, mask, transitions)
  losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tag_ids, logits=logits)
  weights = tf.cast(mask, tf.float32)
  loss = tf.reduce_sum(losses * weights) / tf.reduce_sum(weights)
  return loss, tf.argmax(logits, axis=-1, output_type=tf.int32)


def apply_keras(layer, inputs):
  """Applies any layer of Keras; the Estimator trains and saves its variables, `<name>/kernel`."""
  with tf.init_scope():
    layer.build(inputs.shape)
  trained = [
    variables.get_variable(each.path, each.shape, lambda shape, dtype, each=each: each.value)
    for each in layer.trainable_variables
  ]
  return layer.stateless_call(trained, layer.non_trainable_variables, inputs)[0]


def crf_log_likelihood(logits, tags, mask, transitions):
  """Computes the log-likelihood [B] of tags [B, S] in a linear-chain conditional random field."""
  weights = tf.cast(mask, tf.float32)  # [B, S]
  pairs = tf.gather_nd(transitions, tf.stack([tags[:, :-1], tags[:, 1:]], axis=-1))
  score = tf.reduce_sum(tf.gather(logits, tags, batch_dims=2) * weights, axis=1)
  score += tf.reduce_sum(pairs * weights[:, 1:], axis=1)

  def step(alphas, inputs):
    logit, is_token = inputs
    new = tf.reduce_logsumexp(alphas[:, :, None] + transitions, axis=1) + logit
    return tf.where(is_token, new, alphas)

  alphas = tf.scan(step, crf_steps(logits, mask), logits[:, 0])[-1]  # [B, NUM_TAGS]
  return score - tf.reduce_logsumexp(alphas, axis=1)


def crf_decode(logits, mask, transitions):
  """Finds the most probable tags [B, S], by Viterbi's algorithm."""

  def step(state, inputs):
    (scores, pointers), (logit, is_token) = state, inputs
    candidates = scores[:, :, None] + transitions  # [B, from, to]
    best = tf.argmax(candidates, axis=1, output_type=tf.int32)
    stay = tf.broadcast_to(tf.range(NUM_TAGS), tf.shape(pointers))
    scores = tf.where(is_token, tf.reduce_max(candidates, axis=1) + logit, scores)
    return scores, tf.where(is_token, best, stay)

  start = logits[:, 0], tf.zeros(tf.shape(logits[:, 0]), tf.int32)
  scores, pointers = tf.scan(step, crf_steps(logits, mask), start)
  last = tf.argmax(scores[-1], axis=1, output_type=tf.int32)  # [B]
  tags = tf.scan(lambda tag, row: tf.gather(row, tag, batch_dims=1), pointers, last, reverse=True)
  return tf.concat([tf.transpose(tags), last[:, None]], axis=1) * mask


def crf_steps(logits, mask):
  """Returns logits and mask of each token but the first, with the tokens as the first axis."""
  return tf.transpose(logits[:, 1:], [1, 0, 2]), tf.transpose(mask[:, 1:] > 0)[:, :, None]


def model_fn_builder(config, init_checkpoint):
  """Returns the model in three modes."""

  def model_fn(features, labels, mode, params):
    is_training = mode == ModeKeys.TRAIN
    ids, mask, tag_ids = (features[n] for n in ("input_ids", "input_mask", "tag_ids"))
    model = modeling.BertModel(
      config=config, is_training=is_training, input_ids=ids, input_mask=mask
    )
    loss, tags = create_head(model.get_sequence_output(), mask, tag_ids, is_training)
    if is_training:
      train_op = optimization.create_optimizer(loss, 1e-3, FLAGS.num_train_steps, 2)
      return EstimatorSpec(mode, loss=loss, train_op=train_op, init_checkpoint=init_checkpoint)
    if mode == ModeKeys.PREDICT:
      return EstimatorSpec(mode, predictions={"tags": tags}, init_checkpoint=init_checkpoint)

    def metric_fn(tag_ids, tags, mask):  # NumPy arrays of the whole set
      return {"eval_accuracy": float((tag_ids == tags)[mask > 0].mean())}

    tensors = {"tag_ids": tag_ids, "tags": tags, "mask": mask}
    return EstimatorSpec(
      mode, loss=loss, eval_metrics=(metric_fn, tensors), init_checkpoint=init_checkpoint
    )

  return model_fn


def main(_):
  """Trains and evaluates."""
  logging.set_verbosity(logging.INFO)
  tf.io.gfile.makedirs(FLAGS.output_dir)
  config = modeling.BertConfig(100, 32, 2, 2, 64, max_position_embeddings=64)
  if FLAGS.bert_config_file:
    config = modeling.BertConfig.from_json_file(FLAGS.bert_config_file)
  estimator = Estimator(
    model_fn_builder(config, FLAGS.init_checkpoint),
    RunConfig(model_dir=FLAGS.output_dir, save_checkpoints_steps=1000),
    {"train_batch_size": 8, "eval_batch_size": 8, "predict_batch_size": 8},
  )
  if FLAGS.do_train:
    estimator.train(input_fn_builder(True), max_steps=FLAGS.num_train_steps)
  results = estimator.evaluate(input_fn_builder(False))
  for name in sorted(results):
    print(f"{name} = {results[name]:.5f}")


if __name__ == "__main__":
  flags.mark_flag_as_required("output_dir")
  app.run(main)
