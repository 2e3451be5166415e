"""A tagger as forks of 2018 are written, on TensorFlow 1.x: bert-tf1 before.py --output_dir=out.

--head=dense is the original's layer, --head=keras has two layers of tf.keras, --head=crf the
conditional random field of tf.contrib. The data are made up: the fork's reader stands there.
"""

import numpy as np
import tensorflow as tf

from bert import modeling, optimization  # or the fork's copies beside the script

flags = tf.flags
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
      data = data.repeat().shuffle(buffer_size=100)
    return data.batch(params["batch_size"], drop_remainder=is_training)

  return input_fn


def create_head(sequence, mask, tag_ids, is_training):
  """Returns the loss, and the tags [B, S] of vectors [B, S, W]."""
  if is_training:
    sequence = tf.nn.dropout(sequence, keep_prob=0.9)
  if FLAGS.head == "keras":
    sequence = tf.keras.layers.Dense(32, activation="relu", name="hidden")(sequence)
    logits = tf.keras.layers.Dense(NUM_TAGS, name="tags")(sequence)
  else:
    weights = tf.get_variable(
      "output_weights",
      [NUM_TAGS, sequence.shape[-1].value],
      initializer=tf.truncated_normal_initializer(stddev=0.02),
    )
    bias = tf.get_variable("output_bias", [NUM_TAGS], initializer=tf.zeros_initializer())
    logits = tf.tensordot(sequence, weights, [[2], [1]]) + bias
  if FLAGS.head == "crf":
    lengths = tf.reduce_sum(mask, axis=1)
    likelihood, transitions = tf.contrib.crf.crf_log_likelihood(logits, tag_ids, lengths)
    tags, _ = tf.contrib.crf.crf_decode(logits, transitions, lengths)
    return -tf.reduce_mean(likelihood), tags
  losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tag_ids, logits=logits)
  weights = tf.to_float(mask)
  loss = tf.reduce_sum(losses * weights) / tf.reduce_sum(weights)
  return loss, tf.argmax(logits, axis=-1, output_type=tf.int32)


def model_fn_builder(config, init_checkpoint):
  """Returns the model in three modes."""

  def model_fn(features, labels, mode, params):
    is_training = mode == tf.estimator.ModeKeys.TRAIN
    ids, mask, tag_ids = (features[n] for n in ("input_ids", "input_mask", "tag_ids"))
    model = modeling.BertModel(
      config=config, is_training=is_training, input_ids=ids, input_mask=mask
    )
    loss, tags = create_head(model.get_sequence_output(), mask, tag_ids, is_training)
    if init_checkpoint:
      variables = tf.trainable_variables()
      names, _ = modeling.get_assignment_map_from_checkpoint(variables, init_checkpoint)
      tf.train.init_from_checkpoint(init_checkpoint, names)
    if is_training:
      train_op = optimization.create_optimizer(loss, 1e-3, FLAGS.num_train_steps, 2, False)
      return tf.contrib.tpu.TPUEstimatorSpec(mode=mode, loss=loss, train_op=train_op)
    if mode == tf.estimator.ModeKeys.PREDICT:
      return tf.contrib.tpu.TPUEstimatorSpec(mode=mode, predictions={"tags": tags})

    def metric_fn(tag_ids, tags, mask):
      return {"eval_accuracy": tf.metrics.accuracy(tag_ids, tags, weights=mask)}

    return tf.contrib.tpu.TPUEstimatorSpec(
      mode=mode, loss=loss, eval_metrics=(metric_fn, [tag_ids, tags, mask])
    )

  return model_fn


def main(_):
  """Trains and evaluates."""
  tf.logging.set_verbosity(tf.logging.INFO)
  tf.gfile.MakeDirs(FLAGS.output_dir)
  config = modeling.BertConfig(100, 32, 2, 2, 64, max_position_embeddings=64)
  if FLAGS.bert_config_file:
    config = modeling.BertConfig.from_json_file(FLAGS.bert_config_file)
  estimator = tf.contrib.tpu.TPUEstimator(
    use_tpu=False,
    model_fn=model_fn_builder(config, FLAGS.init_checkpoint),
    config=tf.contrib.tpu.RunConfig(model_dir=FLAGS.output_dir, save_checkpoints_steps=1000),
    train_batch_size=8,
    eval_batch_size=8,
    predict_batch_size=8,
  )
  if FLAGS.do_train:
    estimator.train(input_fn_builder(True), max_steps=FLAGS.num_train_steps)
  results = estimator.evaluate(input_fn_builder(False))
  for name in sorted(results):
    print("%s = %.5f" % (name, results[name]))  # noqa: UP031 (as of 2018)


if __name__ == "__main__":
  flags.mark_flag_as_required("output_dir")
  tf.app.run()
