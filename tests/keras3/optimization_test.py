"""The original's optimizer in Keras 3, and learning rates with warm-up against their formulas."""

import keras
import numpy as np
import pytest
from keras import ops

from bert.checkpoints.numpy_reader import CheckpointReader
from bert.keras3 import (
  BERT,
  AdamW,
  AdamWeightDecay,
  LinearWithWarmup,
  TextClassificationHead,
  WarmUpLinearDecay,
  create_inputs,
  create_optimizer,
  get_linear_schedule_with_warmup,
)
from tests.kit.keras_models import TINY, numpy_of, on_tensorflow
from tests.kit.tiny_bert import NO_DROPOUT


def variable(value, name, layer_name="layer"):
  with keras.name_scope(layer_name):
    return keras.Variable(np.array(value, "float32"), name=name)


def numpy_steps(values, gradients, rates, decay, bias_correction=False):
  """The published formulas, in NumPy."""
  m, v, w = np.zeros_like(values), np.zeros_like(values), values.astype("float64")
  for step, (gradient, rate) in enumerate(zip(gradients, rates, strict=True), start=1):
    m, v = 0.9 * m + 0.1 * gradient, 0.999 * v + 0.001 * gradient**2
    correction = (1 - 0.9**step) / np.sqrt(1 - 0.999**step) if bias_correction else 1
    w = w - rate * (m / correction / (np.sqrt(v) + 1e-6) + decay * w)
  return w


@pytest.mark.parametrize("bias_correction", [False, True])
def test_steps_are_those_of_the_formulas(bias_correction):
  generator = np.random.default_rng(1)
  start = generator.normal(size=3).astype("float32")
  gradients = generator.normal(size=(5, 2, 3)).astype("float32") * 0.1
  kernel, bias = variable(start, "kernel"), variable(start, "bias")
  schedule = WarmUpLinearDecay(0.1, num_train_steps=5, num_warmup_steps=2)
  rates = [float(schedule(step)) for step in range(5)]
  optimizer = AdamWeightDecay(
    schedule, weight_decay_rate=0.1, global_clipnorm=None, bias_correction=bias_correction
  )
  for pair in gradients:
    optimizer.apply([ops.convert_to_tensor(g) for g in pair], [kernel, bias])
  for weights, index, decay in ((kernel, 0, 0.1), (bias, 1, 0.0)):
    expected = numpy_steps(start, gradients[:, index], rates, decay, bias_correction)
    np.testing.assert_allclose(numpy_of(weights), expected, rtol=0, atol=2e-6)


def test_body_and_head_learn_at_different_rates():
  body, head = variable([1.0], "kernel", "bert"), variable([1.0], "kernel", "head")
  optimizer = AdamWeightDecay(1e-3, learning_rate_multipliers={"^bert/": 0.0})
  optimizer.apply([ops.convert_to_tensor([1.0])] * 2, [body, head])
  assert (numpy_of(body), numpy_of(head) < 1.0) == (1.0, True)


def test_gradients_are_clipped_to_their_common_norm():
  steps = []
  for scale in (1.0, 100.0):  # norms 5 and 500, both clipped to 1
    weights = [variable([1.0], "kernel"), variable([1.0], "bias")]
    optimizer = AdamWeightDecay(0.1)
    optimizer.apply([ops.convert_to_tensor([scale * x]) for x in (3.0, 4.0)], weights)
    steps.append([numpy_of(moment) for moment in optimizer._first])
  np.testing.assert_allclose(np.ravel(steps[0]), [0.06, 0.08], atol=1e-6)
  np.testing.assert_allclose(steps[0], steps[1], atol=1e-6)


def test_what_decays():
  inputs = create_inputs()
  model = keras.Model(
    inputs, TextClassificationHead(2, name="head")(BERT(**TINY, **NO_DROPOUT)(inputs))
  )
  optimizer = AdamWeightDecay(0.1)
  optimizer.build(model.trainable_variables)
  decays = {
    v.path: rate for v, rate in zip(model.trainable_variables, optimizer._decay_rates, strict=True)
  }
  assert decays["bert/encoder/layer_0/attention/self/query/kernel"] == 0.01
  assert decays["bert/embeddings/word_embeddings"] == 0.01
  assert decays["head/output_weights"] == 0.01
  spared = [path for path, rate in decays.items() if rate == 0.0]
  assert all("LayerNorm" in path or "bias" in path for path in spared)
  assert len(spared) == 2 * 3 + 6 + 1 + 1  # LayerNorms; biases of layer, pooler and head
  optimizer = AdamWeightDecay(0.1, include_in_weight_decay=["^head/"])
  optimizer.build(model.trainable_variables)
  assert optimizer._decay_rates.count(0.0) == len(spared) - 1


def test_the_schedules(golden_dir):
  expected = np.load(golden_dir / "tiny_classifier.npz")["learning_rate"]
  schedule = WarmUpLinearDecay(1e-2, num_train_steps=20, num_warmup_steps=2)
  actual = [float(schedule(step)) for step in range(len(expected))]
  np.testing.assert_allclose(actual, expected, rtol=1e-6, atol=1e-9)


def test_a_schedule_of_an_earlier_file():
  config = {"init_lr": 2e-5, "num_train_steps": 1000, "num_warmup_steps": 500}
  schedule = WarmUpLinearDecay.from_config({**config, "schedule": "continuous"})
  actual = [float(schedule(step)) / 2e-5 for step in (0, 250, 500, 750, 1000, 1200)]
  np.testing.assert_allclose(actual, [0, 0.5, 1, 0.5, 0, 0], atol=1e-6)
  schedule = WarmUpLinearDecay.from_config({**config, "schedule": "original"})
  assert float(schedule(500)) == pytest.approx(1e-5)


def test_optimizer_and_schedule_survive_saving():
  schedule = WarmUpLinearDecay(0.1, 10, 2)
  optimizer = AdamWeightDecay(
    schedule, epsilon=1e-5, learning_rate_multipliers={"^bert/": 0.5}, global_clipnorm=2.0
  )
  config = keras.saving.serialize_keras_object(optimizer)
  again = keras.saving.deserialize_keras_object(config)
  assert again.get_config() == optimizer.get_config()
  assert again.multipliers == (("^bert/", 0.5),)


@pytest.mark.ci
@on_tensorflow
def test_twenty_steps_equal_the_original(golden_dir):
  """Losses and every weight of a classifier, dropout 0, batches of one after the other."""
  golden, data = (np.load(golden_dir / f"tiny_{n}.npz") for n in ("classifier", "pretrain"))
  bert = BERT.from_checkpoint(golden_dir / "tiny")
  inputs = create_inputs()
  head = TextClassificationHead(2, dropout_rate=0.0, name="head")
  model = keras.Model(inputs, head(bert(inputs)))
  head.output_weights.assign(golden["output_weights_init"])
  schedule = WarmUpLinearDecay(1e-2, num_train_steps=20, num_warmup_steps=2)
  model.compile(AdamWeightDecay(schedule), "sparse_categorical_crossentropy", jit_compile=False)
  losses = [
    model.train_on_batch(
      {
        "input_ids": data["input_ids"][step],
        "attention_mask": data["input_mask"][step],
        "token_type_ids": data["segment_ids"][step],
      },
      data["label_ids"][step],
      return_dict=True,
    )
    for step in range(20)
  ]
  losses = [float(entry["loss"]) for entry in losses]
  np.testing.assert_allclose(losses, golden["losses"], rtol=0, atol=1e-5)

  reader = CheckpointReader(str(golden_dir / "tiny_classifier_20steps.ckpt"))
  variables = {**bert.checkpoint_variables(), **head.checkpoint_variables()}
  assert set(variables) == {n for n in reader.contents if "adam" not in n and n != "global_step"}
  for name, weights in variables.items():
    if name.endswith("key/bias"):
      continue  # its true gradient is zero: what the original has there is rounding
    expected = reader.read(name)
    tolerance = 1e-4 * max(1.0, abs(expected).max())
    np.testing.assert_allclose(numpy_of(weights), expected, rtol=0, atol=tolerance, err_msg=name)


# ---------------------------------------------------------------------------------------------
# Schedules.


def test_the_published_fine_tuning():
  optimizer = AdamW(None, lr=2e-5, weight_decay=0.01)
  schedule = get_linear_schedule_with_warmup(
    optimizer, num_warmup_steps=500, num_training_steps=1000
  )
  shares = [float(schedule(step)) / 2e-5 for step in (0, 250, 500, 750, 1000, 1100)]
  np.testing.assert_allclose(shares, [0, 0.5, 1, 0.5, 0, 0], atol=1e-6)
  assert isinstance(optimizer, keras.optimizers.AdamW)
  assert (optimizer.weight_decay, optimizer.epsilon) == (0.01, 1e-6)
  again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(schedule))
  assert type(again) is LinearWithWarmup
  assert again.get_config() == schedule.get_config()


def test_without_warmup_the_first_step_has_the_peak():
  assert float(LinearWithWarmup(3e-4, 9)(0)) == pytest.approx(3e-4)


def test_the_optimizer_follows_its_schedule():
  optimizer = keras.optimizers.SGD(0.5)
  schedule = get_linear_schedule_with_warmup(optimizer, 2, 6)
  position = keras.Variable(np.zeros(1, "float32"))
  for _ in range(6):
    optimizer.apply([ops.ones(1)], [position])
  walked = -float(numpy_of(position)[0])
  assert walked == pytest.approx(sum(float(schedule(step)) for step in range(6)), rel=1e-5)
  with pytest.raises(ValueError, match="already has a schedule"):
    get_linear_schedule_with_warmup(optimizer, 2, 6)
  optimizer = keras.optimizers.SGD(0.5)
  optimizer.apply([ops.ones(1)], [position])
  with pytest.raises(ValueError, match="has already made steps"):
    get_linear_schedule_with_warmup(optimizer, 1, 2)


def test_an_optimizer_without_a_loss():
  optimizer = create_optimizer(init_lr=1e-3, num_train_steps=10, num_warmup_steps=2)
  original = AdamWeightDecay(WarmUpLinearDecay(1e-3, 10, 2))
  with_parameters = create_optimizer(BERT(**TINY).parameters(), 1e-3, 10, 2)
  for other in (original, with_parameters):
    assert optimizer.get_config() == {**other.get_config(), "name": optimizer.name}
  assert create_optimizer(1e-3, 10)._learning_rate.num_warmup_steps == 0
  with pytest.raises(ValueError, match="The order is init_lr, num_train_steps"):
    create_optimizer(1000, 1e-3, 10)
