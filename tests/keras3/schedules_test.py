"""Learning rates with warm-up, against their formulas.

Run alone: python -m pytest tests/keras3/schedules_test.py
"""

import math

import keras
import numpy as np
import pytest
from keras import ops

from bert.keras3 import (
  AdamW,
  AdamWeightDecay,
  ConstantWithWarmup,
  CosineRestartsWithWarmup,
  CosineWithWarmup,
  InverseSqrtWithWarmup,
  LinearWithWarmup,
  PolynomialWithWarmup,
  WarmUpLinearDecay,
  get_linear_schedule_with_warmup,
  get_scheduler,
  schedules,
)

PEAK, STEPS, WARMUP = 3e-4, 50, 10


def after_warmup(progress_to_factor):
  """The closed form of a schedule that falls by a share of the steps after the warm-up."""

  def rate(step):
    if step < WARMUP:
      return PEAK * step / WARMUP
    return PEAK * progress_to_factor(min(1, (step - WARMUP) / (STEPS - WARMUP)))

  return rate


def restarts(progress):
  return 0 if progress == 1 else 0.5 * (1 + math.cos(math.pi * ((3 * progress) % 1)))


FORMULAS = [
  (ConstantWithWarmup(PEAK, WARMUP), after_warmup(lambda p: 1)),
  (LinearWithWarmup(PEAK, STEPS, WARMUP), after_warmup(lambda p: 1 - p)),
  (
    CosineWithWarmup(PEAK, STEPS, WARMUP),
    after_warmup(lambda p: 0.5 * (1 + math.cos(math.pi * p))),
  ),
  (
    CosineWithWarmup(PEAK, STEPS, WARMUP, num_cycles=1.5),
    after_warmup(lambda p: 0.5 * (1 + math.cos(3 * math.pi * p))),
  ),
  (CosineRestartsWithWarmup(PEAK, STEPS, WARMUP, num_cycles=3), after_warmup(restarts)),
  (
    PolynomialWithWarmup(PEAK, STEPS, WARMUP, end_lr=1e-5, power=2.0),
    after_warmup(lambda p: ((PEAK - 1e-5) * (1 - p) ** 2 + 1e-5) / PEAK),
  ),
  (
    InverseSqrtWithWarmup(PEAK, WARMUP),
    lambda step: PEAK * (step / WARMUP if step < WARMUP else math.sqrt(WARMUP / step)),
  ),
]


@pytest.mark.parametrize(("schedule", "formula"), FORMULAS, ids=lambda v: type(v).__name__)
def test_rates_are_those_of_the_formulas(schedule, formula):
  # Not where a cosine starts anew: there rounding decides between the peak and nearly 0.
  steps = [*range(0, STEPS, 3), 9, 10, 11, STEPS - 1, STEPS, STEPS + 5]
  rates = [float(schedule(step)) for step in steps]
  np.testing.assert_allclose(rates, [formula(step) for step in steps], rtol=2e-5, atol=1e-10)
  again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(schedule))
  assert type(again) is type(schedule)
  assert again.get_config() == schedule.get_config()


def test_without_warmup_the_first_step_has_the_peak():
  for schedule in (
    ConstantWithWarmup(PEAK),
    LinearWithWarmup(PEAK, 9),
    InverseSqrtWithWarmup(PEAK),
  ):
    assert float(schedule(0)) == pytest.approx(PEAK)


def test_linear_is_the_optimizers_continuous_one():
  ours, theirs = LinearWithWarmup(PEAK, 20, 5), WarmUpLinearDecay(PEAK, 20, 5, "continuous")
  for step in range(25):
    assert float(ours(step)) == pytest.approx(float(theirs(step)), rel=1e-5, abs=1e-12)


def test_the_published_fine_tuning():
  optimizer = AdamW(None, lr=2e-5, weight_decay=0.01)
  schedule = get_linear_schedule_with_warmup(
    optimizer, num_warmup_steps=500, num_training_steps=1000
  )
  shares = [float(schedule(step)) / 2e-5 for step in (0, 250, 500, 750, 1000)]
  np.testing.assert_allclose(shares, [0, 0.5, 1, 0.5, 0], atol=1e-6)
  assert (optimizer.weight_decay_rate, optimizer.bias_correction) == (0.01, True)
  assert optimizer.no_weight_decay == ()
  assert optimizer.global_clipnorm is None


def test_the_optimizer_follows_its_schedule():
  optimizer = keras.optimizers.SGD(0.5)
  schedule = get_scheduler("cosine", optimizer, num_warmup_steps=2, num_training_steps=6)
  variable = keras.Variable(np.zeros(1, "float32"))
  for _ in range(6):
    optimizer.apply([ops.ones(1)], [variable])
  walked = -float(ops.convert_to_numpy(variable)[0])
  assert walked == pytest.approx(sum(float(schedule(step)) for step in range(6)), rel=1e-5)
  with pytest.raises(ValueError, match="has a schedule already"):
    get_scheduler("linear", optimizer, 2, 6)


def test_every_name_makes_its_schedule():
  for name in schedules._BY_NAME:
    optimizer = AdamWeightDecay(1e-3)
    schedule = get_scheduler(name, optimizer, 2, 10)
    assert schedule.init_lr == pytest.approx(1e-3)
    assert optimizer._learning_rate is schedule
    assert float(schedule(1)) == pytest.approx(5e-4)


def test_what_is_wrong():
  with pytest.raises(ValueError, match="name is 'step'; known: constant_with_warmup, linear"):
    get_scheduler("step", AdamWeightDecay(1e-3))
  with pytest.raises(ValueError, match="'linear' needs num_training_steps"):
    get_scheduler("linear", AdamWeightDecay(1e-3))
  with pytest.raises(ValueError, match="num_train_steps is 5, of which 5 are for warm-up"):
    LinearWithWarmup(1.0, 5, 5)
  with pytest.raises(ValueError, match="num_warmup_steps is -1"):
    ConstantWithWarmup(1.0, -1)
  with pytest.raises(ValueError, match=r"end_lr is 2\.0"):
    PolynomialWithWarmup(1.0, 5, end_lr=2.0)
  optimizer = keras.optimizers.SGD(0.5)
  optimizer.apply([ops.ones(1)], [keras.Variable(np.zeros(1, "float32"))])
  with pytest.raises(ValueError, match="has made steps already"):
    get_linear_schedule_with_warmup(optimizer, 1, 2)
