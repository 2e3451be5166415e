"""The original's classifier as a library: examples, features, inputs, model and training."""

import gzip
import json

import numpy as np
import pytest

from bert_tf1.contrib import tpu
from bert_tf1.estimator.specs import ModeKeys
from bert_tf1.library import modeling, optimization, run_classifier, tokenization
from bert_tf1.real import tf
from tests.kit.paths import CHECKOUT

IDS = [[2, 5, 6, 3], [2, 7, 3, 0]]
MASK = [[1, 1, 1, 1], [1, 1, 1, 0]]
SEGMENTS = [[0, 0, 1, 1], [0, 0, 0, 0]]
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "b", "c", "d", "e"]


def small_config(num_hidden_layers=1, **options):
  return modeling.BertConfig(
    11,
    hidden_size=8,
    num_hidden_layers=num_hidden_layers,
    num_attention_heads=2,
    intermediate_size=12,
    max_position_embeddings=6,
    type_vocab_size=2,
    hidden_dropout_prob=0.0,
    attention_probs_dropout_prob=0.0,
    **options,
  )


@pytest.fixture
def tokenizer(tmp_path):
  (tmp_path / "vocab.txt").write_text("".join(f"{word}\n" for word in WORDS))
  return tokenization.FullTokenizer(str(tmp_path / "vocab.txt"))


def example(text_a, text_b=None, label="0"):
  return run_classifier.InputExample("x-1", text_a, text_b, label)


# ---------------------------------------------------------------------------------------------
# Numbers.

# Of the original under TensorFlow 1.15.5: `create_model(is_training=False)` and
# `create_optimizer(loss, 0.01, 10**9, 0, False)` on the batch above, labels 1 and 0, with the
# values of `waves` in conftest.py in the variables sorted by name.
BY_1_15 = {
  "gelu": (
    [[-0.7007655, 1.5609591], [-0.7005335, 1.5607071]],
    [1.2297376, 0.7487290, 0.7191390, 0.6950177],
    [-0.1347829, 0.2801480, 0.4029956, 0.4653341, 0.4126241, 0.5776647, 0.5016856, 0.1817678],
  ),
  "relu": (
    [[-0.7157055, 1.5785806], [-0.7157001, 1.5785720]],
    [1.2432041, 0.7809773, 0.7088813, 0.6951947],
    [-0.1362001, 0.2865197, 0.4091560, 0.4739982, 0.4050113, 0.5778257, 0.5027036, 0.1797574],
  ),
}


@pytest.mark.parametrize("activation", ["gelu", pytest.param("relu", marks=pytest.mark.ci)])
def test_four_steps_are_those_of_1_15(activation, started):
  logits_there, losses_there, word_there = BY_1_15[activation]
  batch = map(tf.constant, (IDS, MASK, SEGMENTS, [1, 0]))
  config = small_config(2, hidden_act=activation)
  loss, _, logits, probabilities = run_classifier.create_model(config, False, *batch, 2, False)
  train = optimization.create_optimizer(loss, 0.01, 10**9, 0, False)
  assert len(tf.global_variables()) == 124
  (words,) = [v for v in tf.global_variables() if v.op.name == "bert/embeddings/word_embeddings"]
  session = started()
  np.testing.assert_allclose(session.run(logits), logits_there, rtol=0, atol=1e-5)
  np.testing.assert_allclose(session.run(probabilities).sum(axis=1), [1, 1], rtol=0, atol=1e-6)
  losses = [session.run([loss, train])[0] for _ in losses_there]
  np.testing.assert_allclose(losses, losses_there, rtol=0, atol=1e-5)
  np.testing.assert_allclose(session.run(words)[5], word_there, rtol=0, atol=1e-5)


@pytest.mark.ci
def test_twenty_steps_are_the_originals(golden_dir, tmp_path, started):
  golden, data = (np.load(golden_dir / f"tiny_{n}.npz") for n in ("classifier", "pretrain"))
  config = modeling.BertConfig.from_json_file(str(golden_dir / "tiny" / "bert_config.json"))
  names = ["input_ids", "input_mask", "segment_ids", "label_ids"]
  batch = [tf.placeholder(tf.int32, data[name].shape[1:]) for name in names]
  loss, *_ = run_classifier.create_model(config, False, *batch, 2, False)
  train = optimization.create_optimizer(loss, 1e-2, 20, 2, False)
  session = started(golden_dir / "tiny" / "bert_model.ckpt")
  variables = {variable.op.name: variable for variable in tf.global_variables()}
  variables["output_weights"].load(golden["output_weights_init"], session)
  losses = [
    session.run([loss, train], dict(zip(batch, [data[name][step] for name in names], strict=True)))[
      0
    ]
    for step in range(20)
  ]
  np.testing.assert_allclose(losses, golden["losses"], rtol=0, atol=1e-5)

  # What is saved has the original's names, and its values; what it saved can be restored.
  theirs = str(golden_dir / "tiny_classifier_20steps.ckpt")
  ours = tf.train.Saver().save(session, str(tmp_path / "model.ckpt"))
  assert dict(tf.train.list_variables(ours)) == dict(tf.train.list_variables(theirs))
  for name, _ in tf.train.list_variables(theirs):
    if "key/bias" in name or "word_embeddings" in name:
      continue  # a gradient that is only rounding, and rows of vanishing gradients
    expected = tf.train.load_variable(theirs, name)
    tolerance = 1e-4 * max(1.0, abs(expected).max())
    found = tf.train.load_variable(ours, name)
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance, err_msg=name)
  tf.train.Saver().restore(session, theirs)
  assert session.run(variables["global_step"]) == 20


# ---------------------------------------------------------------------------------------------
# Examples and features.


@pytest.mark.parametrize("task", ["MRPC", "CoLA"])
def test_examples_and_features_are_the_originals(task, golden_dir, data_dir, released_vocab_file):
  processor = {"MRPC": run_classifier.MrpcProcessor, "CoLA": run_classifier.ColaProcessor}[task]()
  tokenizer = tokenization.FullTokenizer(str(released_vocab_file))
  folder = str(data_dir / "glue" / task)
  examples = {
    "train": processor.get_train_examples(folder),
    "dev": processor.get_dev_examples(folder),
    "test": processor.get_test_examples(folder),
  }
  with gzip.open(golden_dir / "classifier" / f"{task}.jsonl.gz", "rt") as lines:
    rows = [json.loads(line) for line in lines]
  assert rows
  for row in rows:
    one = examples[row["split"]][row["index"]]
    assert [one.guid, one.text_a, one.text_b, one.label] == [
      row[name] for name in ("guid", "text_a", "text_b", "label")
    ]
    feature = run_classifier.convert_single_example(
      9, one, processor.get_labels(), row["max_seq_length"], tokenizer
    )
    size = sum(feature.input_mask)
    assert feature.input_ids[:size] == row["input_ids"]
    assert feature.label_id == row["label_id"]
    assert len(feature.segment_ids) == row["max_seq_length"]


def test_the_samples_are_read():
  processor = run_classifier.MrpcProcessor()
  folder = str(CHECKOUT / "samples" / "MRPC")
  first = processor.get_train_examples(folder)[0]
  assert (first.guid, first.label) == ("train-1", first.label)
  assert {one.label for one in processor.get_dev_examples(folder)} == {"0", "1"}
  assert {one.label for one in processor.get_test_examples(folder)} == {"0"}


def write_rows(path, *rows):
  path.parent.mkdir(exist_ok=True)
  path.write_text("".join("\t".join(row) + "\n" for row in rows))


def fields(examples):
  return [(one.guid, one.text_a, one.text_b, one.label) for one in examples]


def test_xnli(tmp_path):
  write_rows(
    tmp_path / "multinli" / "multinli.train.zh.tsv",
    ["premise", "hypo", "label"],
    ["a", 'b "', "contradictory"],
    ["c", "d", "neutral"],
  )
  dev = ["x"] * 6
  write_rows(
    tmp_path / "xnli.dev.tsv",
    ["language"] * 8,
    ["en", "neutral", *dev[2:], "p", "h"],
    ["zh", "entailment", *dev[2:], "q", "r"],
  )
  processor = run_classifier.XnliProcessor()
  assert fields(processor.get_train_examples(str(tmp_path))) == [
    ("train-1", "a", 'b "', "contradiction"),
    ("train-2", "c", "d", "neutral"),
  ]
  assert fields(processor.get_dev_examples(str(tmp_path))) == [("dev-2", "q", "r", "entailment")]
  assert processor.get_labels() == ["contradiction", "entailment", "neutral"]
  with pytest.raises(NotImplementedError):
    processor.get_test_examples(str(tmp_path))


def test_mnli(tmp_path):
  header, row = ["h"] * 12, ["7", *"1234567", "a", "b", "x", "neutral"]
  for name in ("train", "dev_matched", "test_matched"):
    write_rows(tmp_path / f"{name}.tsv", header, row)
  processor = run_classifier.MnliProcessor()
  assert fields(processor.get_train_examples(str(tmp_path))) == [("train-7", "a", "b", "neutral")]
  assert fields(processor.get_dev_examples(str(tmp_path))) == [
    ("dev_matched-7", "a", "b", "neutral")
  ]
  assert fields(processor.get_test_examples(str(tmp_path))) == [
    ("test-7", "a", "b", "contradiction")
  ]
  assert processor.get_labels() == ["contradiction", "entailment", "neutral"]


@pytest.mark.parametrize(
  ("texts", "length", "ids", "segments"),
  [
    (("a b",), 6, [2, 4, 5, 3], [0, 0, 0, 0]),
    (("a b c d e",), 5, [2, 4, 5, 6, 3], [0] * 5),
    (("a b", "c"), 7, [2, 4, 5, 3, 6, 3], [0, 0, 0, 0, 1, 1]),
    (("a b c", "d e"), 6, [2, 4, 5, 3, 7, 3], [0, 0, 0, 0, 1, 1]),  # of equal ones the second
    (("a", "b"), 4, [2, 4, 3], [0, 0, 0]),  # nothing is left of the second
    (("a", "zzz"), 8, [2, 4, 3, 1, 3], [0, 0, 0, 1, 1]),
  ],
)
def test_features(texts, length, ids, segments, tokenizer):
  (feature,) = run_classifier.convert_examples_to_features(
    [example(*texts, label=1)], [0, 1], length, tokenizer
  )
  padding = [0] * (length - len(ids))
  assert feature.input_ids == ids + padding
  assert feature.input_mask == [1] * len(ids) + padding
  assert feature.segment_ids == segments + padding
  assert (feature.label_id, feature.is_real_example) == (1, True)


def test_padding_and_unknown_labels(tokenizer):
  padding = run_classifier.convert_single_example(
    0, run_classifier.PaddingInputExample(), ["0"], 3, tokenizer
  )
  assert [padding.input_ids, padding.input_mask, padding.segment_ids] == [[0] * 3] * 3
  assert (padding.label_id, padding.is_real_example) == (0, False)
  with pytest.raises(KeyError, match=r"label '2' of example x-1 is not one of \['0', '1'\]"):
    run_classifier.convert_single_example(0, example("a", label="2"), ["0", "1"], 4, tokenizer)


# ---------------------------------------------------------------------------------------------
# Input functions.


def read_all(dataset):
  following = tf.data.make_one_shot_iterator(dataset).get_next()
  batches = []
  with tf.Session() as session:
    while True:
      try:
        batches.append(session.run(following))
      except tf.errors.OutOfRangeError:
        return batches


@pytest.mark.parametrize("drop", [False, True])
def test_batches_from_memory_and_from_a_file(drop, tokenizer, tmp_path):
  examples = [example("a", "b", "1"), example("c"), run_classifier.PaddingInputExample()]
  record_file = str(tmp_path / "x.tf_record")
  run_classifier.file_based_convert_examples_to_features(
    examples, ["0", "1"], 5, tokenizer, record_file
  )
  features = run_classifier.convert_examples_to_features(examples, ["0", "1"], 5, tokenizer)
  params = {"batch_size": 2}
  from_file = run_classifier.file_based_input_fn_builder(record_file, 5, False, drop)(params)
  from_memory = run_classifier.input_fn_builder(features, 5, False, drop)(params)
  assert from_file.element_spec["input_ids"].shape.as_list() == [2 if drop else None, 5]
  batches = read_all(from_file)
  assert [batch["label_ids"].tolist() for batch in batches] == [[1, 0], [0]][: 1 if drop else 2]
  assert batches[0]["input_ids"].tolist() == [[2, 4, 3, 5, 3], [2, 6, 3, 0, 0]]
  assert [b["is_real_example"].tolist() for b in batches] == [[1, 1], [0]][: 1 if drop else 2]
  for batch, other in zip(batches, read_all(from_memory), strict=True):
    assert {array.dtype for array in batch.values()} == {np.dtype(np.int32)}
    assert set(batch) - set(other) == {"is_real_example"}
    for name, array in other.items():
      np.testing.assert_array_equal(array, batch[name])


@pytest.mark.ci
def test_training_batches_never_end(tokenizer):
  features = run_classifier.convert_examples_to_features([example("a")], ["0"], 4, tokenizer)
  dataset = run_classifier.input_fn_builder(features, 4, True, False)({"batch_size": 3})
  assert [batch["label_ids"].tolist() for batch in read_all(dataset.take(2))] == [[0] * 3] * 2


# ---------------------------------------------------------------------------------------------
# The model function.


def spec_of(mode, checkpoint=None, use_tpu=False):
  model_fn = run_classifier.model_fn_builder(
    small_config(), 2, checkpoint, 0.01, 10, 2, use_tpu, False
  )
  names = ["input_ids", "input_mask", "segment_ids", "label_ids", "is_real_example"]
  batch = dict(zip(names, map(tf.constant, (IDS, MASK, SEGMENTS, [1, 0], [1, 0])), strict=True))
  return model_fn(batch, None, mode, {})


@pytest.mark.ci
def test_specs_of_the_model_function(started):
  with tf.Graph().as_default():
    training = spec_of(ModeKeys.TRAIN)
    assert training.loss.shape.as_list() == []
    assert training.train_op.type == "NoOp"
    assert "output_bias/adam_m" in {variable.op.name for variable in tf.global_variables()}
  with tf.Graph().as_default():
    assert list(spec_of(ModeKeys.PREDICT).predictions) == ["probabilities"]
  evaluation = spec_of(ModeKeys.EVAL)
  metric_fn, tensors = evaluation.eval_metrics
  metrics = metric_fn(*tensors)
  session = started()
  session.run(tf.local_variables_initializer())
  per_example, *_ = session.run(tensors)
  session.run([update for _, update in metrics.values()])
  values = session.run({name: value for name, (value, _) in metrics.items()})
  # The second example is padding.
  assert values == pytest.approx({"eval_accuracy": 1.0, "eval_loss": per_example[0]})


@pytest.mark.ci
def test_variables_start_from_a_checkpoint(tmp_path, started):
  spec_of(ModeKeys.PREDICT)
  checkpoint = tf.train.Saver().save(started(), str(tmp_path / "model.ckpt"))
  for use_tpu in (False, True):
    with tf.Graph().as_default(), tf.Session() as session:
      spec = spec_of(ModeKeys.PREDICT, checkpoint, use_tpu)
      assert bool(spec.scaffold_fn) == use_tpu
      if use_tpu:
        spec.scaffold_fn()
      session.run(tf.global_variables_initializer())
      values = session.run({variable.op.name: variable for variable in tf.global_variables()})
      for name, value in values.items():
        np.testing.assert_array_equal(value, tf.train.load_variable(checkpoint, name))


@pytest.mark.ci
def test_the_estimator_trains_evaluates_and_predicts(tokenizer, tmp_path):
  """What evaluation says of the trained model is what its predictions give."""
  examples = [example(*texts) for texts in [("a c", "d", "0"), ("b c", "d", "1")] * 4]
  features = run_classifier.convert_examples_to_features(examples, ["0", "1"], 6, tokenizer)
  model_fn = run_classifier.model_fn_builder(small_config(), 2, None, 0.02, 4, 1, False, False)
  estimator = tpu.TPUEstimator(
    model_fn=model_fn,
    config=tpu.RunConfig(model_dir=str(tmp_path / "run")),
    use_tpu=False,
    train_batch_size=4,
    eval_batch_size=3,
    predict_batch_size=3,
  )
  estimator.train(run_classifier.input_fn_builder(features, 6, True, True), max_steps=4)
  input_fn = run_classifier.input_fn_builder(features, 6, False, False)
  result = estimator.evaluate(input_fn)
  rows = np.array([row["probabilities"] for row in estimator.predict(input_fn)])
  labels = [feature.label_id for feature in features]
  assert result["global_step"] == 4
  assert result["eval_accuracy"] == (rows.argmax(axis=1) == labels).mean()
  loss = -np.log(rows[np.arange(8), labels]).mean()
  assert result["eval_loss"] == pytest.approx(loss, abs=1e-5)
