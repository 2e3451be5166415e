"""Records what google-research/bert computes from `inputs/`. Runs under Python 3.7 and TF 1.15.5.

From a directory outside this repository, on Linux with an x86 processor:

  git clone https://github.com/google-research/bert original && git -C original checkout eedf571
  python3.7 -m venv tf115
  tf115/bin/pip install tensorflow==1.15.5 'protobuf<3.21' 'numpy<1.19'
  CUDA_VISIBLE_DEVICES= tf115/bin/python PROJECT/tests/golden/record.py original

It takes about half a minute and replaces every file in `tests/golden/` that it writes; a second
argument names another directory to write to. Recording twice on one machine gives equal bytes.

The original's modules are imported from the checkout and are not changed, with two exceptions.
`create_optimizer` reads `global_step` for the learning rate and increments it in the same step, in
no defined order: `_in_order` makes each step finish everything else before the increment. And
training has no dropout, also not the 0.1 that `run_classifier.create_model` is written with.
"""

import argparse
import gzip
import importlib
import json
import os
import sys
import tempfile
from unittest import mock

HERE = os.path.dirname(os.path.abspath(__file__))
INPUTS = os.path.join(HERE, "inputs")
VOCAB = os.path.join(INPUTS, "vocab.txt")

# Sizes of the batches of the model: examples, tokens, masked tokens.
BATCH, LENGTH, MASKED = 8, 16, 4
STEPS, STEPS_AFTER_RESUMING = 20, 10
# Learning rate, steps of the whole run, steps of warm-up. The run is recorded in part.
OPTIMIZATION = (5e-3, 40, 5)

# Of SQuAD: tokens of a window, stride, tokens of a question. The last of the long windows is so
# much shorter that the length decides which window shows a token best.
WINDOWS = ((48, 16, 12), (256, 200, 12))

PRETRAINING_RECORDS = {
  "plain": ["--max_seq_length=64", "--max_predictions_per_seq=10", "--dupe_factor=2"],
  "whole_words": [
    "--max_seq_length=32",
    "--max_predictions_per_seq=6",
    "--dupe_factor=3",
    "--do_whole_word_mask=True",
    "--random_seed=7",
    "--short_seq_prob=0.4",
    "--masked_lm_prob=0.2",
    "--do_lower_case=False",
  ],
}


def load(name, *arguments):
  """Imports a script of the original with its flags parsed, in place of the flags of another."""
  import tensorflow as tf
  from absl import flags

  for flag in list(flags.FLAGS):
    delattr(flags.FLAGS, flag)
  sys.modules.pop(name, None)  # importing it defines its flags
  module = importlib.import_module(name)
  flags.FLAGS([name, *arguments], known_only=True)
  tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.ERROR)
  return module


class Recorder:
  """Writes files into one directory, with the same bytes for the same content."""

  def __init__(self, folder):
    self.folder = folder

  def path(self, name):
    return os.path.join(self.folder, name)

  def json_lines(self, name, records):
    """Writes one JSON value a line, compressed."""
    with open(self.path(name), "wb") as raw:
      with gzip.GzipFile("", "wb", 9, raw, mtime=0) as lines:
        for record in records:
          lines.write((json.dumps(record, sort_keys=True) + "\n").encode("ascii"))

  def arrays(self, name, arrays):
    """Writes arrays by name."""
    import numpy as np

    np.savez_compressed(self.path(name), **arrays)


# -------------------------------------------------------------------------------------------------
# Text.


def record_tokens(recorder):
  import tokenization

  vocab = tokenization.load_vocab(VOCAB)
  tokenizers = {"wordpiece": tokenization.WordpieceTokenizer(vocab)}
  for case in ("uncased", "cased"):
    lower = case == "uncased"
    tokenizers["basic_" + case] = tokenization.BasicTokenizer(do_lower_case=lower)
    tokenizers["full_" + case] = tokenization.FullTokenizer(VOCAB, do_lower_case=lower)
  with open(os.path.join(INPUTS, "texts.json"), encoding="utf-8") as reader:
    texts = json.load(reader)
  recorder.json_lines(
    "tokens.jsonl.gz",
    [{name: t.tokenize(text) for name, t in tokenizers.items()} for text in texts],
  )


def record_classifier_features(recorder):
  run_classifier, tokenizer = load("run_classifier"), tokenizer_for()
  example_sets = [
    (run_classifier.MrpcProcessor(), "MRPC", "get_train_examples"),
    (run_classifier.ColaProcessor(), "CoLA", "get_train_examples"),
    (run_classifier.ColaProcessor(), "CoLA", "get_test_examples"),
  ]
  records = []
  for processor, task, method in example_sets:
    examples = getattr(processor, method)(os.path.join(INPUTS, task))
    for max_seq_length in (32, 11):
      for number, example in enumerate([*examples, run_classifier.PaddingInputExample()]):
        features = run_classifier.convert_single_example(
          number, example, processor.get_labels(), max_seq_length, tokenizer
        )
        records.append(
          {
            "task": task,
            "method": method,
            "max_seq_length": max_seq_length,
            "number": number,
            "example": vars(example),
            "features": vars(features),
          }
        )
  recorder.json_lines("classifier_features.jsonl.gz", records)


def record_squad(recorder):
  """Windows for training and prediction, and the answers that synthetic scores lead to."""
  import numpy as np

  random = np.random.RandomState(3)
  windows, answers = [], []
  for version in ("v1.1", "v2.0"):
    run_squad = load("run_squad", f"--version_2_with_negative={version == 'v2.0'}")
    path = os.path.join(INPUTS, f"questions-{version}.json")
    for is_training in (True, False):
      examples = run_squad.read_squad_examples(path, is_training)
      for lengths in reversed(WINDOWS):
        features = []
        run_squad.convert_examples_to_features(
          examples, tokenizer_for(), *lengths, is_training, features.append
        )
        setting = {"version": version, "is_training": is_training, "lengths": lengths}
        windows += [{**setting, **vars(feature)} for feature in features]
    # Of the windows made last. Multiples of 1/8 are exact in float32, in float64 and as JSON.
    scores = np.round(random.normal(0, 4, [len(features), 2, lengths[0]]) * 8) / 8
    for feature, window in zip(features, scores):  # noqa: B905
      outside = [p for p in range(1, lengths[0]) if p not in feature.token_to_orig_map]
      window[:, outside] -= 8  # Without any possible answer, the original fails on version 2.0.
    results = [
      run_squad.RawResult(feature.unique_id, starts.tolist(), ends.tolist())
      for feature, (starts, ends) in zip(features, scores)  # noqa: B905
    ]
    with tempfile.TemporaryDirectory() as folder:
      paths = [os.path.join(folder, name) for name in ("predictions", "nbest", "null_odds")]
      run_squad.write_predictions(examples, features, results, 10, 12, True, *paths)
      record = {"version": version, "scores": scores.tolist()}
      for file_path in filter(os.path.exists, paths):
        with open(file_path) as reader:
          record[os.path.basename(file_path)] = json.load(reader)
    answers.append(record)
  recorder.json_lines("squad_windows.jsonl.gz", windows)
  recorder.json_lines("squad_answers.jsonl.gz", answers)


def record_pretraining_records(recorder):
  """Parsed records: the order of features in the bytes of the original's files is random."""
  import tensorflow as tf

  records = []
  for name, arguments in PRETRAINING_RECORDS.items():
    with tempfile.TemporaryDirectory() as folder:
      output = os.path.join(folder, "records")
      script = load(
        "create_pretraining_data",
        "--input_file=" + os.path.join(INPUTS, "corpus.txt"),
        "--output_file=" + output,
        "--vocab_file=" + VOCAB,
        *arguments,
      )
      script.main(None)
      for record in tf.python_io.tf_record_iterator(output):
        features = tf.train.Example.FromString(record).features.feature
        values = {
          key: list(feature.int64_list.value or feature.float_list.value)
          for key, feature in features.items()
        }
        records.append({"set": name, **values})
  recorder.json_lines("pretraining_records.jsonl.gz", records)


def tokenizer_for():
  import tokenization

  return tokenization.FullTokenizer(VOCAB, do_lower_case=True)


# -------------------------------------------------------------------------------------------------
# The model.


def load_config(**changes):
  import modeling

  config = modeling.BertConfig.from_json_file(os.path.join(INPUTS, "bert_config.json"))
  vars(config).update(changes)
  return config


def random_batches(count):
  """Batches for every head: name -> array `[count, BATCH, ...]`."""
  import numpy as np

  random = np.random.RandomState(1)
  lengths = random.randint(6, LENGTH + 1, [count, BATCH])
  mask = (np.arange(LENGTH) < lengths[..., None]).astype(np.int32)  # [count, BATCH, LENGTH]
  ids = random.randint(1, load_config().vocab_size, mask.shape) * mask
  first_lengths = random.randint(1, 6, lengths.shape)
  positions = np.stack(
    [
      [np.sort(random.choice(np.arange(1, length), MASKED, False)) for length in row]
      for row in lengths
    ]
  )
  weights = np.arange(MASKED) < random.randint(1, MASKED + 1, lengths.shape)[..., None]
  starts = random.randint(0, lengths)
  batches = {
    "input_ids": ids,
    "input_mask": mask,
    "segment_ids": (np.arange(LENGTH) >= first_lengths[..., None]) * mask,
    "masked_lm_positions": positions * weights,
    "masked_lm_ids": np.take_along_axis(ids, positions, axis=-1) * weights,
    "next_sentence_labels": random.randint(0, 2, [count, BATCH, 1]),
    "label_ids": random.randint(0, 3, lengths.shape),
    "is_real_example": np.ones(lengths.shape),
    "unique_ids": np.arange(lengths.size).reshape(lengths.shape),
    "start_positions": starts,
    "end_positions": random.randint(starts, lengths),
  }
  batches = {name: values.astype(np.int32) for name, values in batches.items()}
  return dict(batches, masked_lm_weights=weights.astype(np.float32))


def write_initial_weights(recorder):
  """Writes a checkpoint of all heads: weights so large that a wrong one shows in every output."""
  import numpy as np
  import tensorflow as tf

  random = np.random.RandomState(2)
  with tf.Graph().as_default(), new_session() as session:
    for script, batch in heads().items():
      with tf.variable_scope(tf.get_variable_scope(), reuse=tf.AUTO_REUSE):
        build(script, "infer" if script == "run_squad" else "eval", batch, None)
    for variable in sorted(tf.trainable_variables(), key=lambda v: v.name):
      center = 1.0 if variable.name.endswith("gamma:0") else 0.0
      values = random.normal(center, 0.2, variable.shape.as_list())
      variable.load(values.astype(np.float32), session)
    save(tf.train.Saver(tf.trainable_variables()), session, recorder.path("initial.ckpt"))


def heads():
  """Scripts by name, each with the features of its model."""
  sequences = ("input_ids", "input_mask", "segment_ids")
  masked = ("masked_lm_positions", "masked_lm_ids", "masked_lm_weights")
  return {
    "run_pretraining": (*sequences, *masked, "next_sentence_labels"),
    "run_classifier": (*sequences, "label_ids", "is_real_example"),
    "run_squad": (*sequences, "unique_ids", "start_positions", "end_positions"),
  }


def build(script, mode, names, init_checkpoint):
  """Calls the `model_fn` of a script; returns placeholders by name and its specification."""
  import tensorflow as tf

  module = load(script)
  batches = random_batches(1)
  inputs = {
    name: tf.placeholder(tf.as_dtype(batches[name].dtype), batches[name].shape[1:])
    for name in names
  }
  num_labels = [3] if script == "run_classifier" else []
  model_fn = module.model_fn_builder(
    load_config(), *num_labels, init_checkpoint, *OPTIMIZATION, False, False
  )
  return inputs, model_fn(inputs, None, mode, {})


def new_session():
  """One thread, so that sums are taken in one order."""
  import tensorflow as tf

  return tf.Session(
    config=tf.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
  )


def save(saver, session, path):
  saver.save(session, path, write_meta_graph=False, write_state=False)


def record_forward(recorder, initial):
  """Outputs of `BertModel`, with masks that have holes and without masks, and of the heads."""
  import numpy as np
  import tensorflow as tf

  import modeling

  random = np.random.RandomState(4)
  arrays = {name: values[0] for name, values in random_batches(1).items()}
  arrays["holes_mask"] = random.randint(0, 2, [BATCH, LENGTH]).astype(np.int32)
  arrays["holes_mask"][0] = 0
  names = ("input_ids", "input_mask", "segment_ids")

  def record(prefix, config, *inputs):
    with tf.Graph().as_default(), new_session() as session:
      model = modeling.BertModel(config, False, *map(tf.constant, inputs))
      tf.train.Saver().restore(session, initial)
      outputs = {
        "embedding_output": model.get_embedding_output(),
        "layers": tf.stack(model.get_all_encoder_layers()),
        "sequence_output": model.get_sequence_output(),
        "pooled_output": model.get_pooled_output(),
      }
      for name, value in session.run(outputs).items():
        arrays[prefix + "/" + name] = value

  record("padded", load_config(), *(arrays[name] for name in names))
  record("holes", load_config(), arrays["input_ids"], arrays["holes_mask"], arrays["segment_ids"])
  record("ids_only", load_config(), arrays["input_ids"])
  for activation in ("relu", "tanh", "linear"):
    config = load_config(hidden_act=activation)
    record(activation, config, *(arrays[name] for name in names))

  outputs_of_heads = {
    "run_pretraining": (
      "masked_lm_example_loss",
      "masked_lm_log_probs",
      None,
      None,
      "next_sentence_example_loss",
      "next_sentence_log_probs",
      None,
    ),
    "run_classifier": ("per_example_loss", None, "logits", None),
  }
  for script, kept in outputs_of_heads.items():
    with tf.Graph().as_default(), new_session() as session:
      inputs, spec = build(script, "eval", heads()[script], initial)
      session.run(tf.global_variables_initializer())
      feed = {tensor: arrays[name] for name, tensor in inputs.items()}
      arrays[script + "/loss"] = session.run(spec.loss, feed)
      for name, tensor in zip(kept, spec.eval_metrics[1]):  # noqa: B905
        if name:
          arrays[script + "/" + name] = session.run(tensor, feed)
  for script in ("run_classifier", "run_squad"):
    with tf.Graph().as_default(), new_session() as session:
      inputs, spec = build(script, "infer", heads()[script], initial)
      session.run(tf.global_variables_initializer())
      feed = {tensor: arrays[name] for name, tensor in inputs.items()}
      for name, tensor in spec.predictions.items():
        if name != "unique_ids":
          arrays[script + "/" + name] = session.run(tensor, feed)
  recorder.arrays("forward.npz", arrays)


def record_training(recorder, initial):
  """Losses and rates of each step, and checkpoints with slots; one of them is resumed."""
  batches = random_batches(STEPS + STEPS_AFTER_RESUMING)
  arrays = dict(batches)
  for script in heads():
    losses, rates = train(recorder, script, batches, range(STEPS), initial)
    if script == "run_pretraining":
      rest = range(STEPS, STEPS + STEPS_AFTER_RESUMING)
      resumed = recorder.path(f"{script}.ckpt-{STEPS}")
      more_losses, more_rates = train(recorder, script, batches, rest, initial, resumed)
      losses, rates = losses + more_losses, rates + more_rates
    arrays[f"{script}/losses"], arrays[f"{script}/learning_rates"] = losses, rates
  recorder.arrays("training.npz", arrays)


def train(recorder, script, batches, steps, initial, resumed=None):
  """Trains on batches number `steps` and saves; returns the loss and the rate of each step."""
  import numpy as np
  import tensorflow as tf

  import optimization

  optimizer_class, rate_tensors = optimization.AdamWeightDecayOptimizer, []
  apply_gradients = optimizer_class.apply_gradients

  def keep_rate(self, *arguments, **options):
    rate_tensors.append(self.learning_rate)
    return apply_gradients(self, *arguments, **options)

  with tf.Graph().as_default(), new_session() as session:
    with mock.patch.object(optimizer_class, "apply_gradients", keep_rate):
      with mock.patch.object(tf.nn, "dropout", lambda tensor, keep_prob: tensor):
        inputs, spec = build(script, "train", heads()[script], initial)
    [rate] = rate_tensors
    _in_order(spec.train_op, rate)
    gradients = tf.gradients(spec.loss, tf.trainable_variables())
    norm = tf.global_norm([gradient for gradient in gradients if gradient is not None])
    saver = tf.train.Saver()
    session.run(tf.global_variables_initializer())
    if resumed:
      saver.restore(session, resumed)
    losses, rates, norms = [], [], []
    for step in steps:
      feed = {tensor: batches[name][step] for name, tensor in inputs.items()}
      norms.append(session.run(norm, feed))
      _, loss, rate_now = session.run([spec.train_op, spec.loss, rate], feed)
      losses.append(loss)
      rates.append(rate_now)
    save(saver, session, recorder.path(f"{script}.ckpt-{steps[-1] + 1}"))
    # Gradients of a norm above 1 are clipped: some should be, and some not.
    print(f"{script}, steps {steps}: losses {np.round(losses, 3)}, norms {np.round(norms, 2)}")
    return losses, rates


def _in_order(train_op, rate):
  """Makes the increment of `global_step` wait for the learning rate and for all updates."""
  import tensorflow as tf

  step = tf.train.get_global_step()
  [increment] = [
    op for op in train_op.control_inputs if op.type == "Assign" and op.inputs[0].op is step.op
  ]
  others = [op for op in train_op.control_inputs if op is not increment]
  increment._add_control_inputs([rate.op, *others])


def main():
  parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
  parser.add_argument("original", help="a checkout of google-research/bert")
  parser.add_argument("folder", nargs="?", default=HERE, help="where to write")
  arguments = parser.parse_args()
  sys.path.insert(0, os.path.abspath(arguments.original))
  recorder = Recorder(arguments.folder)
  record_tokens(recorder)
  record_classifier_features(recorder)
  record_squad(recorder)
  record_pretraining_records(recorder)
  write_initial_weights(recorder)
  initial = recorder.path("initial.ckpt")
  record_forward(recorder, initial)
  record_training(recorder, initial)


if __name__ == "__main__":
  main()
