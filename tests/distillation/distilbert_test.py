"""DistilBERT's losses, students and 20 steps against what the original distillation recorded."""

import json

import numpy as np
import pytest
import tensorflow as tf

from bert.checkpoints.safetensors_file import open_weights
from bert.distillation import distilbert, students
from bert.distillation.distilbert import Weights, Words
from bert.distillation.teachers import Teacher
from bert.modeling import BertConfig
from bert.training.pretraining_objectives import Setting
from tests.kit.distillation import Steps, noise_of, our_tensors
from tests.kit.rounding import assert_within_noise

# Of `alpha_ce` and so on in the recorded settings.
PARTS = ("ce", "mlm", "mse", "cos")


@pytest.fixture(scope="module")
def folder(golden_dir):
  return golden_dir / "distilbert"


@pytest.fixture(scope="module")
def teacher(folder) -> Teacher:
  config = BertConfig.from_json_file(folder / "teacher" / "config.json")
  return Teacher(config, str(folder / "teacher" / "model.safetensors"))


def weights_of(settings) -> Weights:
  alphas = {f"alpha_{name}": settings[f"alpha_{name}"] for name in PARTS}
  return Weights(
    **alphas,
    temperature=settings["temperature"],
    restrict_ce_to_mask=settings["restrict_ce_to_mask"],
  )


# ---------------------------------------------------------------------------------------------
# The loss.


@pytest.mark.parametrize("entry", range(6))
def test_losses_and_their_gradients_equal_the_original(folder, entry):
  golden = np.load(folder / "distill_loss.npz")
  expected = json.loads((folder / "distill_loss.json").read_text())[entry]
  is_token = golden["attention_mask"] > 0
  student = [tf.constant(golden[f"student_{name}"]) for name in ("logits", "hidden")]
  taught = Words(*(golden[f"teacher_{name}"][is_token] for name in ("logits", "hidden")))
  labels = tf.constant(golden["lm_labels"][is_token].astype(np.int32))
  assert (golden["lm_labels"][~is_token] < 0).all()
  with tf.GradientTape() as tape:
    tape.watch(student)
    said = Words(*(tf.boolean_mask(tensor, is_token) for tensor in student))
    losses = distilbert.token_losses(said, taught, labels, expected["temperature"])
    learned = distilbert.loss_of(losses, labels, weights_of(expected), tf.constant(len(is_token)))
  np.testing.assert_allclose(learned.loss, expected["loss"], rtol=1e-6)
  for name in PARTS:
    np.testing.assert_allclose(learned.parts[f"{name}_loss"], expected[name], rtol=1e-6)
  gradients = tape.gradient(learned.loss, student)
  for gradient, name in zip(gradients, ("logits", "hidden"), strict=True):
    recorded = golden[f"grad_student_{name}_{entry}"]
    np.testing.assert_allclose(gradient, recorded, rtol=1e-5, atol=1e-7)


def test_parts_without_weight_are_not_computed():
  losses = dict.fromkeys(("ce_loss", "mlm_loss"), tf.constant([1.0, 2.0]))
  weights = Weights(alpha_cos=0.0)
  learned = distilbert.loss_of(losses, tf.constant([-1, 5]), weights, tf.constant(1))
  assert {name: float(part) for name, part in learned.parts.items()} == {
    "ce_loss": 1.5,
    "mlm_loss": 2.0,
  }
  assert float(learned.loss) == 11.5


def test_a_student_of_another_width_is_refused():
  student, taught = (Words(tf.zeros([3, 5]), tf.zeros([3, width])) for width in (4, 6))
  with pytest.raises(ValueError, match="4 hidden units, the teacher 6"):
    distilbert.token_losses(student, taught, tf.zeros([3], tf.int32))


# ---------------------------------------------------------------------------------------------
# The student.


@pytest.mark.parametrize("with_transform", [True, False])
def test_a_student_of_a_teacher_equals_the_original_s(folder, teacher, with_transform):
  layers = students.spread_layers(12, 6)
  facts = json.loads((folder / "student_mapping.json").read_text())
  assert layers == facts["teacher_layers_kept"]
  cut = students.cut(teacher.prefix, teacher.config, layers)
  config, tensors = students.as_distilbert(*cut, with_transform=with_transform)
  expected = _student_init(folder)
  if not with_transform:
    expected = {n: v for n, v in expected.items() if not n.startswith("vocab_transform/")}
  assert tensors.keys() == expected.keys()
  for name, value in expected.items():
    np.testing.assert_array_equal(tensors[name], value, err_msg=name)
  assert config.to_dict() == _student_config(folder).to_dict()


def test_only_a_bert_becomes_a_distilbert():
  config = BertConfig.from_dict({"model_type": "electra", "vocab_size": 9})
  with pytest.raises(ValueError, match=r"DistilBERT .* not of ELECTRA"):
    students.as_distilbert(config, {})


def test_a_distilbert_base_has_66362880_parameters():
  base = BertConfig.from_name("uncased_L-12_H-768_A-12")
  base.num_hidden_layers = 6
  assert students.as_distilbert(base, {})[0].count_parameters() == 66_362_880


def _student_init(folder):
  weights = open_weights(folder / "student_init.safetensors")
  return our_tensors({name: weights.read(name) for name in weights.tensors}, "distilbert")


def _student_config(folder) -> BertConfig:
  return BertConfig.from_json_file(folder / "student_config.json")


# ---------------------------------------------------------------------------------------------
# 20 steps.


@pytest.mark.ci
@pytest.mark.parametrize("run", ["a", "b"])
def test_20_steps_equal_the_original(folder, teacher, run):
  golden = np.load(folder / "distill_training.npz")
  facts = json.loads((folder / "distill_training.json").read_text())[run]
  settings, config = facts["params"], _student_config(folder)
  objective = distilbert.objective(teacher, weights_of(settings))
  parts = settings["gradient_accumulation_steps"]

  def forward(batch):
    outputs = objective.outputs(config, batch, Setting(is_training=True, parts=parts))
    return distilbert.DistillationLoss(
      outputs.loss, {name: outputs.summaries[name] for name in objective.progress}
    )

  batches = []
  for t, length in enumerate(golden["batch_length"]):
    del length  # the rest of a row is padding, which counts for nothing
    names = {"input_ids": "input_ids", "input_mask": "attention_mask", "labels": "lm_labels"}
    batches.append({ours: tf.constant(golden[theirs][t]) for ours, theirs in names.items()})
  steps = Steps(
    forward,
    parts,
    init_lr=settings["learning_rate"],
    num_train_steps=facts["num_train_optimization_steps"],
    num_warmup_steps=facts["warmup_steps"],
    **{**distilbert.OPTIMIZER, "weight_decay": settings["weight_decay"]},
  )
  assert distilbert.OPTIMIZER["clipping"].norm == settings["max_grad_norm"]
  steps.load(batches[0], _student_init(folder))
  losses, rates = steps.run(batches)
  np.testing.assert_allclose(rates, golden[f"{run}/learning_rate"][::parts], rtol=1e-6, atol=1e-12)
  np.testing.assert_allclose(losses["loss"], golden[f"{run}/loss"], rtol=1e-5)
  for name in objective.progress:
    recorded = golden[f"{run}/{name.removesuffix('_loss')}"]
    np.testing.assert_allclose(losses[name], recorded, rtol=1e-5, err_msg=name)
  final = our_tensors(np.load(folder / f"distill_final_{run}.npz"), "distilbert")
  assert_within_noise(steps.weights(), final, noise_of(facts, "distilbert"), ("key/bias",))
