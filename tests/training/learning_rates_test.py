"""Learning rates over time, against what the originals recorded."""

import json

import numpy as np
import pytest

from bert.training.learning_rates import learning_rate_at

# Of a rate near 0: float32 keeps that much of 1 - step / total.
_NOISE = 1e-9


def recorded(path):
  return json.loads(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize(("golden", "warmup"), [("tiny_pretrain", 5), ("tiny_classifier", 2)])
def test_learning_rate_equals_the_original(golden_dir, golden, warmup):
  expected = np.load(golden_dir / f"{golden}.npz")["learning_rate"]
  actual = learning_rate_at(np.arange(23), 1e-2, 20, warmup)
  np.testing.assert_allclose(actual, expected, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("setting", range(9))
def test_product_equals_electra(golden_dir, setting):
  record = recorded(golden_dir / "electra" / "learning_rates.json")[setting]
  given = record["arguments"]
  total = given["num_train_steps"]
  warmup = max(given.get("warmup_steps", 0), total * given.get("warmup_proportion", 0.0))
  actual = learning_rate_at(
    np.array(record["steps"]),
    given["learning_rate"],
    total,
    warmup,
    "product",
    poly_power=given.get("lr_decay_power", 1.0),
  ).numpy()
  np.testing.assert_allclose(actual, record["learning_rate"], rtol=1e-6, atol=_NOISE)


@pytest.mark.parametrize("setting", range(8))
def test_powers_and_late_warm_ups_equal_albert(golden_dir, setting):
  record = recorded(golden_dir / "albert" / "learning_rates.json")[setting]
  given = record["flags"]
  actual = learning_rate_at(
    np.array(record["steps"]),
    given["learning_rate"],
    given["num_train_steps"],
    given["num_warmup_steps"],
    poly_power=given["poly_power"],
    start_warmup_step=given["start_warmup_step"],
  ).numpy()
  np.testing.assert_allclose(actual, record["learning_rate"], rtol=1e-6, atol=_NOISE)


@pytest.mark.parametrize("none", [0, 0.0, None])
def test_product_without_warm_up_is_a_number(none):
  """The original divides 0 by 0 here, which destroys all weights in today's TensorFlow."""
  rates = learning_rate_at(np.arange(3), 1.0, 10, none, "product").numpy()
  np.testing.assert_allclose(rates, [1.0, 0.9, 0.8], rtol=1e-6)
