"""A small script of TensorFlow 1.x, written as the scripts around BERT are: flags, records,
TPUEstimator, a warm start, three modes, an exported model.
"""

from __future__ import absolute_import, division, print_function  # noqa: UP010 (as of 2018)

import collections
import os

import mini_model
import tensorflow as tf

flags = tf.flags
FLAGS = flags.FLAGS

flags.DEFINE_string("output_dir", None, "Where the model is written.")
flags.DEFINE_string("init_checkpoint", None, "Where the word vectors come from.")
flags.DEFINE_bool("do_train", False, "Whether to train.")
flags.DEFINE_bool("do_eval", False, "Whether to evaluate.")
flags.DEFINE_bool("do_predict", False, "Whether to predict.")
flags.DEFINE_bool("do_export", False, "Whether to export.")
flags.DEFINE_bool("use_tpu", False, "Whether to use a TPU.")
flags.DEFINE_integer("num_train_steps", 20, "Number of steps.")
flags.DEFINE_integer("save_checkpoints_steps", 5, "Steps between checkpoints.")
flags.DEFINE_string("train_until", "", "Send the process a signal at this step.")
flags.DEFINE_integer("signal", 9, "Which signal: SIGKILL, by default.")
tf.flags.DEFINE_string("tpu_name", None, "Name of a TPU.")

VOCAB_SIZE, HIDDEN_SIZE, LENGTH = 20, 8, 5


def write_records(path, count):
  """Rows whose label says whether word 3 occurs."""
  writer = tf.python_io.TFRecordWriter(path)
  for row in range(count):
    ids = [(row * 7 + place * 3 + row * place) % VOCAB_SIZE for place in range(LENGTH)]

    def integers(values):
      return tf.train.Feature(int64_list=tf.train.Int64List(value=list(values)))

    features = collections.OrderedDict()
    features["input_ids"] = integers(ids)
    features["label_ids"] = integers([int(3 in ids)])
    example = tf.train.Example(features=tf.train.Features(feature=features))
    writer.write(example.SerializeToString())
  writer.close()


def input_fn_builder(path, is_training, drop_remainder):
  """Records as batches."""
  names = {
    "input_ids": tf.FixedLenFeature([LENGTH], tf.int64),
    "label_ids": tf.FixedLenFeature([], tf.int64),
  }

  def decode(record):
    example = tf.parse_single_example(record, names)
    return {name: tf.to_int32(value) for name, value in example.items()}

  def input_fn(params):
    data = tf.data.TFRecordDataset(path)
    if is_training:
      data = data.repeat().shuffle(buffer_size=100)
    return data.apply(
      tf.contrib.data.map_and_batch(
        lambda record: decode(record),
        batch_size=params["batch_size"],
        drop_remainder=drop_remainder,
      )
    )

  return input_fn


def model_fn_builder(init_checkpoint):
  """The model in three modes."""

  def model_fn(features, labels, mode, params):
    del labels, params
    is_training = mode == tf.estimator.ModeKeys.TRAIN
    model = mini_model.BagOfWords(
      is_training, features["input_ids"], VOCAB_SIZE, HIDDEN_SIZE, scope="mini"
    )
    weights = tf.get_variable(
      "output_weights", [2, HIDDEN_SIZE], initializer=tf.contrib.layers.xavier_initializer()
    )
    logits = tf.matmul(model.output, weights, transpose_b=True)
    probabilities = tf.nn.softmax(logits, dim=-1)

    scaffold_fn = None
    if init_checkpoint:
      names = {"mini/word_embeddings": "mini/word_embeddings"}

      def scaffold_fn():
        tf.train.init_from_checkpoint(init_checkpoint, names)
        return tf.train.Scaffold()

    if mode == tf.estimator.ModeKeys.PREDICT:
      return tf.contrib.tpu.TPUEstimatorSpec(
        mode=mode, predictions={"probabilities": probabilities}, scaffold_fn=scaffold_fn
      )
    wanted = tf.one_hot(features["label_ids"], depth=2, dtype=tf.float32)
    per_example = -tf.reduce_sum(wanted * tf.nn.log_softmax(logits, dim=-1), reduction_indices=-1)
    loss = tf.reduce_mean(per_example)
    if mode == tf.estimator.ModeKeys.EVAL:

      def metric_fn(per_example, label_ids, logits):
        predictions = tf.argmax(logits, dimension=-1, output_type=tf.int32)
        return {
          "eval_accuracy": tf.metrics.accuracy(label_ids, predictions),
          "eval_loss": tf.metrics.mean(per_example),
        }

      return tf.contrib.tpu.TPUEstimatorSpec(
        mode=mode,
        loss=loss,
        eval_metrics=(metric_fn, [per_example, features["label_ids"], logits]),
        scaffold_fn=scaffold_fn,
      )
    step = tf.train.get_or_create_global_step()
    rate = tf.train.polynomial_decay(0.05, step, FLAGS.num_train_steps, end_learning_rate=0.0)
    optimizer = tf.train.AdamOptimizer(rate)
    if FLAGS.use_tpu:
      optimizer = tf.contrib.tpu.CrossShardOptimizer(optimizer)
    gradients = tf.gradients(loss, tf.trainable_variables())
    gradients, _ = tf.clip_by_global_norm(gradients, clip_norm=1.0)
    pairs = list(zip(gradients, tf.trainable_variables(), strict=True))
    train_op = optimizer.apply_gradients(pairs)
    train_op = tf.group(train_op, [step.assign(step + 1)])
    return tf.contrib.tpu.TPUEstimatorSpec(
      mode=mode, loss=loss, train_op=train_op, scaffold_fn=scaffold_fn
    )

  return model_fn


class KillAt(tf.train.SessionRunHook):
  """Ends the process as a crash or Ctrl-C would."""

  def __init__(self, step):
    self._step = step

  def before_run(self, run_context):
    return tf.train.SessionRunArgs(tf.train.get_global_step())

  def after_run(self, run_context, run_values):
    if run_values.results >= self._step:
      os.kill(os.getpid(), FLAGS.signal)


def serving_input_receiver_fn():
  """Takes ids as they are."""
  ids = tf.placeholder(tf.int32, [None, LENGTH], name="input_ids")
  return tf.estimator.export.build_raw_serving_input_receiver_fn({"input_ids": ids})()


def main(_):
  """The steps that the flags ask for."""
  tf.logging.set_verbosity(tf.logging.INFO)
  tf.gfile.MakeDirs(FLAGS.output_dir)
  resolver = None
  if FLAGS.use_tpu and FLAGS.tpu_name:
    resolver = tf.contrib.cluster_resolver.TPUClusterResolver(FLAGS.tpu_name)
  per_host = tf.contrib.tpu.InputPipelineConfig.PER_HOST_V2
  config = tf.contrib.tpu.RunConfig(
    cluster=resolver,
    model_dir=FLAGS.output_dir,
    save_checkpoints_steps=FLAGS.save_checkpoints_steps,
    log_step_count_steps=5,
    tpu_config=tf.contrib.tpu.TPUConfig(
      iterations_per_loop=100, num_shards=8, per_host_input_for_training=per_host
    ),
  )
  estimator = tf.contrib.tpu.TPUEstimator(
    use_tpu=FLAGS.use_tpu,
    model_fn=model_fn_builder(FLAGS.init_checkpoint),
    config=config,
    train_batch_size=8,
    eval_batch_size=4,
    predict_batch_size=4,
  )
  records = os.path.join(FLAGS.output_dir, "rows.tf_record")
  if not tf.gfile.Exists(records):
    write_records(records, 30)
  if FLAGS.do_train:
    estimator.train(
      input_fn=input_fn_builder(records, True, True),
      max_steps=FLAGS.num_train_steps,
      hooks=[KillAt(int(FLAGS.train_until))] if FLAGS.train_until else None,
    )
  if FLAGS.do_eval:
    result = estimator.evaluate(input_fn=input_fn_builder(records, False, False), steps=None)
    with tf.gfile.GFile(os.path.join(FLAGS.output_dir, "eval_results.txt"), "w") as writer:
      for key in sorted(result.keys()):
        tf.logging.info("  %s = %s", key, str(result[key]))
        writer.write("%s = %s\n" % (key, str(result[key])))  # noqa: UP031 (as of 2018)
  if FLAGS.do_predict:
    with tf.gfile.GFile(os.path.join(FLAGS.output_dir, "test_results.tsv"), "w") as writer:
      for row in estimator.predict(input_fn=input_fn_builder(records, False, False)):
        writer.write("\t".join(str(value) for value in row["probabilities"]) + "\n")
  if FLAGS.do_export:
    estimator._export_to_tpu = False
    folder = estimator.export_savedmodel(
      os.path.join(FLAGS.output_dir, "export"), serving_input_receiver_fn
    )
    print("exported", folder.decode())


if __name__ == "__main__":
  flags.mark_flag_as_required("output_dir")
  tf.app.run()
