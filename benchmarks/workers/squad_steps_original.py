"""SQuAD steps of google-research/bert under TensorFlow 1.15 and Python 3.7: see original_steps.py.

python3.7 squad_steps_original.py ORIGINAL_DIR WEIGHTS FOLDER steps|draws|orders COUNT
"""
# ruff: noqa: B905 - Python 3.7's zip has no `strict`.

import sys

original_dir, weights, folder, task, count = sys.argv[1:6]
sys.path.insert(0, original_dir)
sys.dont_write_bytecode = True

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

import modeling  # noqa: E402
import optimization  # noqa: E402
import run_squad  # noqa: E402

count = int(count)
batches = np.load(folder + "/batches.npz")
inputs = ["input_ids", "input_mask", "segment_ids", "start_positions", "end_positions"]
peak, total, warmup = 5e-5, len(batches["input_ids"]), len(batches["input_ids"]) // 10


def orders():
  """Positions of records in the stream of `run_squad.input_fn_builder`, `[count, records]`."""
  features = {"unique_ids": tf.FixedLenFeature([], tf.int64)}
  batch, rows = 12, []
  for _ in range(count):
    with tf.Graph().as_default(), tf.Session() as session:
      d = tf.data.TFRecordDataset(folder + "/train.tf_record")
      d = d.repeat()
      d = d.shuffle(buffer_size=100)
      d = d.apply(
        tf.contrib.data.map_and_batch(
          lambda record: tf.parse_single_example(record, features),
          batch_size=batch,
          drop_remainder=True,
        )
      )
      ids = d.make_one_shot_iterator().get_next()["unique_ids"]
      rows.append(np.concatenate([session.run(ids) for _ in range(286)]))
  np.savez(folder + "/original_orders.npz", orders=np.array(rows))


def build(config):
  """Placeholders, loss, gradients and variables."""
  places = {name: tf.placeholder(tf.int32, batches[name].shape[1:]) for name in inputs}
  logits = run_squad.create_model(
    config, True, places["input_ids"], places["input_mask"], places["segment_ids"], False
  )
  losses = []
  # The loss is written inside `model_fn_builder`, out of reach.
  for scores, name in zip(logits, ("start_positions", "end_positions")):
    one_hot = tf.one_hot(places[name], depth=batches["input_ids"].shape[2], dtype=tf.float32)
    log_probs = tf.nn.log_softmax(scores, axis=-1)
    losses.append(-tf.reduce_mean(tf.reduce_sum(one_hot * log_probs, axis=-1)))
  loss = (losses[0] + losses[1]) / 2.0
  variables = tf.trainable_variables()
  return places, loss, tf.gradients(loss, variables), variables


def set_all(session, variables, values):
  for variable in variables:
    name = variable.name.split(":")[0]
    if name in values:
      session.run(variable.assign(values[name]))


def main():
  config = modeling.BertConfig.from_json_file(weights + "/bert_config.json")
  if task == "steps":
    config.hidden_dropout_prob = config.attention_probs_dropout_prob = 0.0
  places, loss, gradients, variables = build(config)
  norm = tf.global_norm(gradients)
  rate = tf.placeholder(tf.float32, [])
  clipped, _ = tf.clip_by_global_norm(gradients, clip_norm=1.0)
  # As `create_optimizer`, whose rate is sometimes that of the next step (docs/design.md).
  update = optimization.AdamWeightDecayOptimizer(
    learning_rate=rate,
    weight_decay_rate=0.01,
    epsilon=1e-6,
    exclude_from_weight_decay=["LayerNorm", "layer_norm", "bias"],
  ).apply_gradients(list(zip(clipped, variables)))
  pairs = [(g, v.name.split(":")[0]) for g, v in zip(gradients, variables) if g is not None]
  names = [name for _, name in pairs]
  dense = [tf.convert_to_tensor(gradient) for gradient, _ in pairs]
  session = tf.Session()
  session.run(tf.global_variables_initializer())
  start = "start.npz" if task == "steps" else "trained.npz"
  set_all(session, variables, np.load(folder + "/" + start))
  outputs, sums, squares = [], None, None
  for i in range(count):
    feed = {places[name]: batches[name][i if task == "steps" else 5] for name in inputs}
    if task == "steps":
      feed[rate] = peak * (float(i) / warmup if i < warmup else 1 - i / float(total))
      outputs.append(session.run([loss, norm, update], feed)[:2])
      continue
    one_loss, one_norm, values = session.run([loss, norm, dense], feed)
    outputs.append([one_loss, one_norm])
    values = [value.astype(np.float64) for value in values]
    sums = values if sums is None else [a + b for a, b in zip(sums, values)]
    parts = [value**2 for value in values]
    squares = parts if squares is None else [a + b for a, b in zip(squares, parts)]
  arrays = {"outputs": np.array(outputs)}
  for kind, totals in (("mean", sums), ("square", squares)):
    arrays.update({kind + "/" + n: t / count for n, t in zip(names, totals or [])})
  np.savez(folder + "/original_" + task + ".npz", **arrays)


if task == "orders":
  orders()
else:
  main()
