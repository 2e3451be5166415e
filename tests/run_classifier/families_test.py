"""run_classifier.py's features, model and training steps for ELECTRA and ALBERT, against theirs."""

import gzip
import json

import numpy as np
import pytest
import tensorflow as tf

from bert import run_classifier, tokenization
from bert.model import heads
from bert.model.variables import VariableStore, use_store
from bert.modeling import BertConfig
from bert.tasks.classification import InputExample, convert_single_example
from bert.tasks.glue import MrpcProcessor
from bert.training.estimator import ModeKeys
from tests.kit.families import load_recorded
from tests.kit.recorded_configs import electra_config

INPUTS = ("input_ids", "input_mask", "segment_ids")
# Softmax of scores does not see the bias of keys: its gradient is rounding only.
KEY_BIAS = "self/key/bias"


def lines_of(path):
  with gzip.open(path, "rt", encoding="utf-8") as lines:
    return [json.loads(line) for line in lines]


@pytest.fixture
def no_dropout_in_heads(monkeypatch):
  """The records were made without it; the encoders' configurations have none either."""
  monkeypatch.setattr(heads, "dropout", lambda tensor, probability: tensor)


class Training:
  """Steps of `run_classifier.model_fn_builder` from recorded weights."""

  def __init__(self, config, num_labels, weights, batches, **options):
    self.store, self.batches = VariableStore(), batches
    self._build = run_classifier.model_fn_builder(
      config, num_labels, None, use_tpu=False, use_one_hot_embeddings=False, **options
    )
    self.step = tf.function(self._step, autograph=False)
    self.step.get_concrete_function(batches[0])
    load_recorded(self.store, *weights)

  def _step(self, features):
    with use_store(self.store):
      spec = self._build(features, None, ModeKeys.TRAIN, {})
      with tf.control_dependencies([tf.identity(spec.loss)]):
        spec.train_op.apply(spec.train_op.gradients)
    return spec.loss, spec.train_op.learning_rate

  def run(self):
    """The losses and learning rates of all batches, float32 `[20]` each."""
    results = [self.step(batch) for batch in self.batches]
    return np.array([[float(value) for value in result] for result in results]).T

  def predict(self, features):
    """Losses, logits and probabilities before or after training."""
    with use_store(self.store):
      spec = self._build(features, None, ModeKeys.EVAL, {})
      return spec.eval_metrics[1]

  def assert_equals(self, golden, noise, key_noise):
    """Every weight within `noise` of its tensor's largest entry."""
    names = [name[6:] for name in golden.files if name.startswith("final/")]
    trained = [name for name in names if not name.endswith(("adam_m", "adam_v", "global_step"))]
    assert set(trained) == set(self.store.trainable_variables)
    for name in trained:
      expected = golden[f"final/{name}"]
      limit = key_noise if name.endswith(KEY_BIAS) else noise * np.abs(expected).max()
      assert np.abs(self.store.variables[name] - expected).max() <= limit, name


def batches_of(golden, labels, prefix=""):
  """20 batches of features, as `file_based_input_fn_builder` would give them."""
  columns = {name: golden[f"{prefix}{name}"].astype(np.int32) for name in INPUTS}
  columns["label_ids"] = golden[labels].astype(np.int32)
  columns["is_real_example"] = np.ones_like(columns["label_ids"])
  return [{name: values[i] for name, values in columns.items()} for i in range(20)]


@pytest.mark.ci
def test_electra_trains_as_the_original(golden_dir, no_dropout_in_heads):
  golden = np.load(golden_dir / "electra" / "finetune_mrpc.npz")
  batches = batches_of(golden, "in_mrpc_label_ids", "in_")
  training = Training(
    electra_config(golden_dir),
    2,
    (golden_dir / "electra" / "model.ckpt", golden, "init/"),
    batches,
    task_name="MRPC",
    learning_rate=5e-3,
    num_train_steps=20,
    num_warmup_steps=2.0,
    optimizer_options={
      "schedule": "product",
      "layerwise_lr_decay": 0.8,
      "layerwise_lr_top_power": 2,
      "loss_factor": 8.0,
    },
  )
  before = training.predict(batches[0])
  np.testing.assert_allclose(before["outputs"], golden["b0_logits"], atol=1e-5)
  np.testing.assert_allclose(before["losses"], golden["b0_loss"], atol=1e-5)
  losses, rates = training.run()
  np.testing.assert_allclose(8 * losses, golden["loss"], rtol=2e-5)
  np.testing.assert_allclose(rates, golden["learning_rate"], rtol=1e-6, atol=1e-9)
  training.assert_equals(golden, noise=1.1e-5, key_noise=6.4e-5)


@pytest.mark.ci
def test_albert_trains_as_the_original(golden_dir, no_dropout_in_heads):
  golden = np.load(golden_dir / "albert" / "classifier.npz")
  config = BertConfig.from_json_file(golden_dir / "albert" / "config_A.json")
  batches = batches_of(golden, "label_ids")
  start = {name: golden[f"{name}_init"] for name in ("output_weights", "output_bias")}
  options = {"learning_rate": 5e-3, "num_train_steps": 20, "num_warmup_steps": 2}
  training = Training(
    config, 2, (golden_dir / "albert" / "model_A.ckpt", start, ""), batches, **options
  )
  before = training.predict(batches[0])
  np.testing.assert_allclose(before["outputs"], golden["b0_logits"], atol=1e-5)
  np.testing.assert_allclose(before["losses"], golden["b0_per_example_loss"], atol=1e-5)
  losses, rates = training.run()
  np.testing.assert_allclose(losses, golden["loss"], rtol=1e-5)
  np.testing.assert_allclose(rates, golden["learning_rate"], rtol=1e-6, atol=1e-9)
  training.assert_equals(golden, noise=3.4e-6, key_noise=9e-5)


def test_regression_of_albert_equals_the_original(golden_dir):
  golden = np.load(golden_dir / "albert" / "classifier.npz")
  config = BertConfig.from_json_file(golden_dir / "albert" / "config_A.json")
  head = {name: golden[f"sts_{name}"] for name in ("output_weights", "output_bias")}
  with use_store(VariableStore()) as store:
    arguments = config, False, *(golden[name][0] for name in INPUTS), golden["sts_labels"], 1, False
    run_classifier.create_model(*arguments, problem_type="regression")
    load_recorded(store, golden_dir / "albert" / "model_A.ckpt", head, "")
    outputs = run_classifier.create_model(*arguments, problem_type="regression")
  loss, losses, logits, _ = outputs
  np.testing.assert_allclose(loss, golden["sts_loss"], rtol=1e-5)
  np.testing.assert_allclose(losses, golden["sts_per_example_loss"], rtol=1e-5, atol=1e-5)
  np.testing.assert_allclose(logits[:, 0], golden["sts_logits"], atol=1e-5)


def assert_features(example, record, labels, tokenizer, label_key, max_seq_length):
  feature = convert_single_example(9, example, labels, max_seq_length, tokenizer)
  for name in INPUTS:
    assert getattr(feature, name) == record[name], example.guid
  assert feature.label_id == record[label_key]


def test_features_equal_electras(golden_dir, data_dir):
  """The first 60 examples, and the first one of the half with texts swapped."""
  folder = golden_dir / "electra"
  *records, other = lines_of(folder / "finetune_mrpc_features.jsonl.gz")
  tokenizer = tokenization.FullTokenizer(str(folder / "tiny_vocab.txt"))
  examples = MrpcProcessor().get_train_examples(str(data_dir / "glue" / "MRPC"))
  for example, record in zip(examples[:60], records, strict=True):
    assert (example.text_a, example.text_b) == (record["text_a"], record["text_b"])
    assert_features(example, record, ["0", "1"], tokenizer, "mrpc_label_ids", 48)
  [place] = [i for i, each in enumerate(records) if each["text_a"] == other["text_b"]]
  assert other["mrpc_eid"] == len(examples) + place
  swapped = InputExample("", other["text_a"], other["text_b"], examples[place].label)
  assert_features(swapped, other, ["0", "1"], tokenizer, "mrpc_label_ids", 48)


def test_features_equal_alberts(golden_dir, data_dir):
  pytest.importorskip("sentencepiece")
  from bert.text.sentence_pieces import SentencePieceTokenizer

  folder = golden_dir / "albert"
  records = lines_of(folder / "classifier_MRPC.jsonl.gz")
  tokenizer = SentencePieceTokenizer(folder / "tiny_spm.model")
  examples = MrpcProcessor().get_train_examples(str(data_dir / "glue" / "MRPC"))
  assert len(records) == 160
  for example, record in zip(examples, records, strict=False):
    assert example.guid == record["guid"]
    assert_features(example, record, ["0", "1"], tokenizer, "label_id", 64)
