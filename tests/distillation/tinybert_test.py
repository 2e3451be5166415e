"""TinyBERT's losses and 20 steps of each stage against what its original recorded."""

import gzip
import json
import shutil

import numpy as np
import pytest
import tensorflow as tf

from bert import tokenization
from bert.checkpoints import finding, transformers_folder
from bert.distillation import tinybert
from bert.distillation.methods import DistillationLoss, Step
from bert.distillation.teachers import Teacher
from bert.model import heads
from bert.model.variables import VariableStore, traced_once, use_store
from bert.modeling import BertConfig, BertModel
from bert.tasks import glue, metrics
from bert.tasks.classification import convert_examples_to_features
from bert.training.pretraining_objectives import Setting
from tests.kit import teachers, tiny_bert
from tests.kit.distillation import Steps, noise_of, our_tensors
from tests.kit.rounding import assert_within_noise

NAMES = ("input_ids", "input_mask", "segment_ids")


@pytest.fixture(scope="module")
def folder(golden_dir):
  return golden_dir / "tinybert"


def config_of(folder) -> BertConfig:
  """The erf form of GELU, as everywhere in PyTorch; the file has no key that would say so."""
  config = BertConfig.from_json_file(folder / "config.json")
  config.hidden_act = "gelu_erf"
  return config


@pytest.fixture(scope="module")
def teacher(folder) -> Teacher:
  return Teacher(config_of(folder / "teacher"), str(folder / "teacher" / "model.safetensors"))


def optimizer_of(folder, stage) -> dict:
  facts = json.loads((folder / "training.json").read_text())[stage]
  options = {**tinybert.OPTIMIZER, "init_lr": facts["lr"], "num_train_steps": 20}
  if facts["schedule"] == "warmup_linear":
    return {**options, "num_warmup_steps": 2}
  return {**options, "schedule": "constant"}


# ---------------------------------------------------------------------------------------------
# The losses.


def test_losses_of_layers_and_their_gradients_equal_the_original(folder):
  golden = np.load(folder / "losses.npz")
  scores, states = (tf.constant(golden[f"student_{name}"]) for name in ("atts", "reps"))
  with tf.GradientTape() as tape:
    tape.watch([scores, states])
    taught = [list(golden[f"teacher_{name}"]) for name in ("atts", "reps")]
    of_scores = tinybert.attention_losses(tf.unstack(scores), taught[0])
    of_states = tinybert.hidden_losses(tf.unstack(states), taught[1])
    means = [[tf.reduce_mean(each) for each in losses] for losses in (of_scores, of_states)]
    loss = tf.add_n([*means[0], *means[1]])
  np.testing.assert_allclose(means[0], golden["att_loss"], rtol=1e-6)
  np.testing.assert_allclose(means[1], golden["rep_loss"], rtol=1e-6)
  gradients = tape.gradient(loss, [scores, states])
  for gradient, name in zip(gradients, ("atts", "reps"), strict=True):
    np.testing.assert_allclose(gradient, golden[f"grad_student_{name}"], rtol=1e-5, atol=1e-7)


def test_losses_of_predictions_and_their_gradients_equal_the_original(folder):
  golden = np.load(folder / "losses.npz")
  logits = tf.constant(golden["student_logits"])
  for temperature, expected in zip(
    golden["temperatures"], golden["soft_cross_entropy"], strict=True
  ):
    with tf.GradientTape() as tape:
      tape.watch(logits)
      losses = tinybert.soft_cross_entropy(logits, golden["teacher_logits"], float(temperature))
      loss = tf.reduce_mean(losses)
    np.testing.assert_allclose(loss, expected, rtol=1e-6)
    np.testing.assert_allclose(
      tape.gradient(loss, logits),
      golden[f"grad_student_logits_T{temperature}"],
      rtol=1e-5,
      atol=1e-8,
    )


@pytest.mark.parametrize(
  ("layers", "heads_of_student", "message"),
  [(2, 3, "3 attention heads, the teacher 4"), (3, 4, "no multiple of the student's 3")],
)
def test_a_student_that_does_not_fit_is_refused(layers, heads_of_student, message):
  student = [tf.zeros([1, heads_of_student, 2, 2])] * layers
  with pytest.raises(ValueError, match=message):
    tinybert.attention_losses(student, [tf.zeros([1, 4, 2, 2])] * 4)


# ---------------------------------------------------------------------------------------------
# 20 steps of each stage.


def batches_of(golden) -> list[dict[str, tf.Tensor]]:
  return [{name: tf.constant(golden[name][step]) for name in NAMES} for step in range(20)]


def assert_same_training(folder, stage, names_of_losses, steps, batches):
  """20 steps: every loss and rate, then the weights."""
  golden = np.load(folder / f"{stage}.npz")
  losses, rates = steps.run(batches)
  np.testing.assert_allclose(losses["loss"], golden["loss"], rtol=1e-5)
  for ours, theirs in names_of_losses.items():
    np.testing.assert_allclose(
      losses[ours], golden[theirs].reshape([20, -1]).sum(axis=1), rtol=1e-5, err_msg=ours
    )
  np.testing.assert_allclose(rates, golden["learning_rate"], rtol=1e-6, atol=1e-12)
  facts = json.loads((folder / "training.json").read_text())[stage]
  final = our_tensors(np.load(folder / f"{stage}_final.npz"))
  found = steps.weights()
  recorded = {name: final[name] for name in found}
  assert_within_noise(found, recorded, noise_of(facts))


LAYER_LOSSES = {"att_loss": "att_loss", "rep_loss": "rep_loss"}


@pytest.mark.ci
def test_20_steps_of_the_general_stage_equal_the_original(folder, teacher):
  layers, config = tinybert.Layers(teacher), config_of(folder / "student")

  def forward(batch):
    return layers.learned(layers.losses(config, batch, Setting(is_training=True)))

  steps = Steps(forward, **optimizer_of(folder, "general"))
  batches = batches_of(np.load(folder / "general.npz"))
  weights = transformers_folder.open_weights(folder / "student")
  steps.load(batches[0], transformers_folder.tensors_of(weights))
  assert "fit_dense/kernel" in steps.weights()
  assert_same_training(folder, "general", LAYER_LOSSES, steps, batches)


@pytest.mark.ci
def test_20_steps_of_the_task_s_layers_equal_the_original(folder, teacher):
  layers, config = tinybert.Layers(teacher), config_of(folder / "student")

  def forward(batch):
    return layers.learned(layers.losses(config, batch, Setting(is_training=True)))

  steps = Steps(forward, **optimizer_of(folder, "task_intermediate"))
  batches = batches_of(np.load(folder / "task_intermediate.npz"))
  steps.load(batches[0], our_tensors(np.load(folder / "general_final.npz")))
  assert_same_training(folder, "task_intermediate", LAYER_LOSSES, steps, batches)


def with_relu(config) -> BertConfig:
  """The original's head, which has a ReLU after the pooler's tanh, and no dropout."""
  return BertConfig.from_dict({**config.to_dict(), "classifier_activation": "relu"})


def logits_of(config, batch):
  model = BertModel(config, False, *(batch[name] for name in NAMES))
  hidden = heads.hidden_of(config, "texts")
  # As in training, which the rate 0 of `hidden` leaves without dropout.
  return {"logits": heads.get_classifier_logits(model.get_pooled_output(), 2, True, hidden=hidden)}


@pytest.mark.ci
def test_20_steps_of_the_task_s_predictions_equal_the_original(folder, teacher):
  config = with_relu(config_of(folder / "student"))
  taught = Teacher(with_relu(teacher.config), teacher.prefix)
  method = tinybert.PredictionMethod(lambda step: taught.outputs(step.forward), temperature=1.5)

  def forward(batch) -> DistillationLoss:
    outputs = logits_of(config, batch)
    return method(Step(batch, outputs, tf.zeros([]), lambda other: logits_of(other, batch)))

  steps = Steps(forward, **optimizer_of(folder, "task_prediction"))
  batches = batches_of(np.load(folder / "task_prediction.npz"))
  steps.load(batches[0], our_tensors(np.load(folder / "task_intermediate_final.npz")))
  assert_same_training(folder, "task_prediction", {"cls_loss": "cls_loss"}, steps, batches)
  dev = np.load(folder / "task_dev.npz")
  with use_store(steps.store):
    logits = logits_of(config, dev)["logits"]
  np.testing.assert_allclose(logits, dev["logits"], rtol=0, atol=1e-5)


def test_what_a_model_computes_on_its_way_equals_the_original(folder, teacher):
  golden = np.load(folder / "general.npz")
  batch = {name: tf.constant(golden[name][0][:2]) for name in NAMES}

  def inside(config):
    found = tinybert.inside_of(config, batch, Setting(is_training=False), drops_out=False)
    return {"states": tf.stack(found.hidden_states), "scores": tf.stack(found.attention_scores)}

  with traced_once():  # as in a training step: the weights are read when the graph is there
    found = tf.function(lambda: teacher.outputs(inside)).get_concrete_function()()
  np.testing.assert_allclose(found["states"], golden["step0/teacher_reps"], rtol=0, atol=1e-5)
  # In float32 a score of padding, near -10000, has three digits behind the point.
  np.testing.assert_allclose(
    tf.gather(found["scores"], [1, 3]), golden["step0/teacher_atts_used"], rtol=0, atol=2e-3
  )


@pytest.mark.ci
@pytest.mark.parametrize(("family", "padding"), [("bert", 0), ("roberta", 1)])
def test_the_row_of_padding_learns_nothing_from_layers(family, padding):
  """Though padding counts in the losses; the other rows learn. In RoBERTa, 0 is `<s>`."""
  content = {"model_type": family, **tiny_bert.config(9, **tiny_bert.NO_DROPOUT)}
  ids = tf.constant([[5, 6, padding, padding], [1 - padding, 6, 7, 8]])
  batch = {"input_ids": ids, "input_mask": tf.cast(ids != padding, tf.int32)}
  batch["segment_ids"] = tf.zeros_like(ids)
  with use_store(VariableStore()) as store, tf.GradientTape() as tape:
    setting = Setting(is_training=True)
    inside = tinybert.inside_of(BertConfig.from_dict(content), batch, setting, drops_out=True)
    loss = tf.reduce_sum(inside.hidden_states[-1] ** 3)
  gradient = tape.gradient(loss, store.variables[f"{family}/embeddings/word_embeddings"])
  rows = tf.reduce_sum(tf.abs(tf.convert_to_tensor(gradient)), 1)
  assert np.flatnonzero(rows).tolist() == [1 - padding, 5, 6, 7, 8]


@pytest.mark.ci
def test_the_teacher_never_drops_out(tmp_path):
  """Recorded teachers have no dropout that would show it."""
  words = [*tiny_bert.SPECIAL_TOKENS, "a", "b"]
  prefix = finding.latest(teachers.write(tmp_path / "teacher", words, {}, {}))
  config = BertConfig.from_dict(tiny_bert.config(len(words), num_hidden_layers=2))
  student = BertConfig.from_dict(tiny_bert.config(len(words), **tiny_bert.NO_DROPOUT))
  ones = tf.ones([2, 4], tf.int32)
  batch = {"input_ids": 5 * ones, "input_mask": ones, "segment_ids": 0 * ones}
  losses = []
  with use_store(VariableStore()):
    for is_training in (True, False):
      layers = tinybert.Layers(Teacher(config, prefix))
      learned = layers.learned(layers.losses(student, batch, Setting(is_training=is_training)))
      losses.append(float(learned.loss))
  assert losses[0] == pytest.approx(losses[1], rel=1e-6)


def test_a_student_of_the_teacher_s_width_starts_with_an_identity():
  states = [tf.random.stateless_normal([2, 3, 4], [1, 2])]
  with use_store(VariableStore()):
    np.testing.assert_array_equal(tinybert.fitted(states, 4, 0.02)[0], states[0])
  with use_store(VariableStore()):
    assert tinybert.fitted(states, 6, 0.02)[0].shape == [2, 3, 6]


def test_a_regression_learns_its_labels():
  method = tinybert.PredictionMethod(None, problem_type="regression")
  step = Step({}, {"logits": tf.zeros([2, 1])}, tf.constant([1.0, 3.0]), None)
  assert float(method(step).loss) == 2.0
  with pytest.raises(ValueError, match="--method=logits teaches"):
    tinybert.PredictionMethod(None, problem_type="multi_label")


# ---------------------------------------------------------------------------------------------
# The texts.


def pieces_of(folder, path) -> list[str]:
  """The word pieces of a text, all lines in one."""
  tokenizer = tokenization.FullTokenizer(str(folder / "teacher" / "vocab.txt"))
  return tokenizer.tokenize(path.read_text(encoding="utf-8"))


def records_in(path) -> list[dict]:
  with gzip.open(path, "rt", encoding="utf-8") as file:
    return [json.loads(line) for line in file]


@pytest.mark.parametrize("stage", ["task_intermediate", "task_prediction"])
def test_examples_of_the_task_equal_the_original(folder, tmp_path, stage):
  """`task_train.tsv` in batches of four, and `task_dev.tsv`, as run_classifier.py reads them."""
  tokenizer = tokenization.FullTokenizer(str(folder / "teacher" / "vocab.txt"))
  processor = glue.MrpcProcessor()
  for name in ("train", "dev"):
    shutil.copy(folder / f"task_{name}.tsv", tmp_path / f"{name}.tsv")
  sets = {
    f"{stage}.npz": processor.get_train_examples(str(tmp_path)),
    "task_dev.npz": processor.get_dev_examples(str(tmp_path)),
  }
  for file, examples in sets.items():
    golden = np.load(folder / file)
    features = convert_examples_to_features(examples, processor.get_labels(), 28, tokenizer)
    for name in NAMES:
      found = np.array([getattr(each, name) for each in features])
      np.testing.assert_array_equal(found.reshape(golden[name].shape), golden[name], err_msg=name)
    labels = np.array([each.label_id for each in features])
    np.testing.assert_array_equal(labels, golden["label_ids"].reshape(-1))


def test_records_of_the_general_stage_are_the_first_of_its_file(folder):
  golden = np.load(folder / "general.npz")
  tokenizer = tokenization.FullTokenizer(str(folder / "teacher" / "vocab.txt"))
  records = records_in(folder / "pregenerated_short.jsonl.gz")[:80]
  ids = [tokenizer.convert_tokens_to_ids(record["tokens"]) for record in records]
  lengths = golden["input_mask"].reshape([80, -1]).sum(axis=1)
  assert lengths.tolist() == list(map(len, ids))
  for row, expected in zip(golden["input_ids"].reshape([80, -1]), ids, strict=True):
    assert row[: len(expected)].tolist() == expected


@pytest.mark.parametrize("name", ["", "_short", "_masked", "_one_seq"])
def test_pregenerated_texts_have_our_word_pieces(folder, name):
  """Each segment is a stretch of the corpus; which ones, the original's random numbers decide."""
  text = " ".join(["", *pieces_of(folder, folder / "corpus.txt"), ""])
  records = records_in(folder / f"pregenerated{name}.jsonl.gz")
  for record in records:
    tokens = list(record["tokens"])
    for position, label in zip(
      record["masked_lm_positions"], record["masked_lm_labels"], strict=True
    ):
      tokens[position] = label
    for segment in " ".join(tokens[1:-1]).split(" [SEP] "):
      assert f" {segment} " in text
  assert len(records) > 80


def test_the_layers_of_the_task_leave_its_classifier_alone(folder):
  """It gets no gradient, and is not even decayed: see tests/scripts/distill_tinybert_test.py."""
  started = np.load(folder / "task_classifier_init.npz")
  final = np.load(folder / "task_intermediate_final.npz")
  for name in started.files:
    np.testing.assert_array_equal(final[name], started[name])


def test_the_last_student_is_scored_as_the_original_scores_it(folder):
  facts = json.loads((folder / "training.json").read_text())
  expected = facts["evaluation_of_task_prediction_final"]
  dev = np.load(folder / "task_dev.npz")
  labels = dev["label_ids"].astype(np.int32)
  found = metrics.compute_metrics(["accuracy", "f1"], labels, dev["logits"], prefix="")
  assert found == pytest.approx({"accuracy": expected["acc"], "f1": expected["f1"]})
  loss, *_ = heads.get_classifier_loss(tf.constant(dev["logits"]), labels, "classification")
  assert float(loss) == pytest.approx(expected["eval_loss"], rel=1e-6)
