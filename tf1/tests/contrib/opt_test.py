"""Optimizers of `tf.contrib.opt` and `mixed_precision`: what TensorFlow 1.15.5 made of 4 steps.

The gradients are constants, so that no order of reading and writing variables shows.
Alone: python -m pytest tf1/tests/contrib/opt_test.py
"""

import numpy as np
import pytest

from bert_tf1.contrib import mixed_precision as scaling
from bert_tf1.contrib import opt
from bert_tf1.real import tf

pytestmark = pytest.mark.ci

# The optimizer, whether the gradient of v is sparse (rows 0 twice, and 2), v and b after 4 steps.
CASES = [
  (
    lambda step: opt.AdamWOptimizer(0.01, learning_rate=0.1),
    False,
    [
      [-1.3546344, -0.2921016],
      [-0.8057223, 0.2568105],
      [-0.2568103, 0.8057224],
      [0.2921017, 1.3546345],
    ],
    [0.0862595, -0.0862595],
  ),
  (
    lambda step: opt.AdamWOptimizer(0.01, learning_rate=0.1),
    True,
    [[-1.3546345, -0.2921015], [-0.4285714, -0.1428571], [-0.2568103, 0.8057224], [0.7142857, 1.0]],
    [0.0862595, -0.0862595],
  ),
  (
    lambda step: opt.AdamWOptimizer(
      weight_decay=tf.train.exponential_decay(0.01, step, 2, 0.5),
      learning_rate=tf.train.polynomial_decay(0.1, step, 10, 0.0),
      beta1=0.8,
      epsilon=1e-6,
      name="W",
    ),
    False,
    [
      [-1.3119977, -0.3587762],
      [-0.7550682, 0.1981533],
      [-0.1981387, 0.7550828],
      [0.3587908, 1.3120123],
    ],
    [0.1499205, -0.1499243],
  ),
  (
    lambda step: opt.AdamWOptimizer(
      weight_decay=tf.train.exponential_decay(0.01, step, 2, 0.5),
      learning_rate=tf.train.polynomial_decay(0.1, step, 10, 0.0),
      beta1=0.8,
      epsilon=1e-6,
      name="W",
    ),
    True,
    [[-1.3120104, -0.3587708], [-0.4285714, -0.1428571], [-0.1981387, 0.7550828], [0.7142857, 1.0]],
    [0.1499205, -0.1499243],
  ),
  (
    lambda step: opt.MomentumWOptimizer(0.01, 0.1, 0.9),
    False,
    [
      [-1.2292277, -0.0593328],
      [-0.6803157, 0.4895792],
      [-0.1314037, 1.0384911],
      [0.4175083, 1.5874033],
    ],
    [-1.3105798, 0.4151409],
  ),
  (
    lambda step: opt.MomentumWOptimizer(0.01, 0.1, 0.9),
    True,
    [[-1.4978592, 0.5674744], [-0.4285714, -0.1428571], [-0.1314037, 1.0384911], [0.7142857, 1.0]],
    [-1.3105798, 0.4151409],
  ),
  (
    lambda step: opt.MomentumWOptimizer(0.01, 0.1, 0.9, use_nesterov=True),
    False,
    [
      [-1.3205767, 0.1538144],
      [-0.7716644, 0.7027264],
      [-0.2227525, 1.2516384],
      [0.3261596, 1.8005505],
    ],
    [-1.9195716, 0.7196369],
  ),
  (
    lambda step: opt.MomentumWOptimizer(0.01, 0.1, 0.9, use_nesterov=True),
    True,
    [[-1.6805569, 0.9937687], [-0.4285714, -0.1428571], [-0.2227525, 1.2516384], [0.7142857, 1.0]],
    [-1.9195716, 0.7196369],
  ),
  (
    lambda step: opt.extend_with_decoupled_weight_decay(tf.train.AdagradOptimizer)(
      weight_decay=0.01, learning_rate=0.1
    ),
    False,
    [
      [-1.1760021, -0.4276187],
      [-0.6270901, 0.1212934],
      [-0.0781781, 0.6702054],
      [0.470734, 1.2191175],
    ],
    [0.2088188, -0.2145355],
  ),
  (
    lambda step: opt.extend_with_decoupled_weight_decay(tf.train.AdagradOptimizer)(
      weight_decay=0.01, learning_rate=0.1
    ),
    True,
    [[-1.2144055, -0.4166965], [-0.4285714, -0.1428571], [-0.0781781, 0.6702054], [0.7142857, 1.0]],
    [0.2088188, -0.2145355],
  ),
  (
    lambda step: opt.LazyAdamOptimizer(0.1),
    False,
    [
      [-1.3999984, -0.3142872],
      [-0.8285698, 0.2571414],
      [-0.2571413, 0.8285699],
      [0.3142873, 1.3999985],
    ],
    [0.1000014, -0.1000014],
  ),
  (
    lambda step: opt.LazyAdamOptimizer(0.1),
    True,
    [[-1.3999985, -0.3142871], [-0.4285714, -0.1428571], [-0.2571413, 0.8285699], [0.7142857, 1.0]],
    [0.1000014, -0.1000014],
  ),
  (
    lambda step: scaling.LossScaleOptimizer(
      tf.train.AdamOptimizer(0.1), scaling.FixedLossScaleManager(128.0)
    ),
    False,
    [
      [-1.3999984, -0.3142872],
      [-0.8285698, 0.2571414],
      [-0.2571413, 0.8285699],
      [0.3142873, 1.3999985],
    ],
    [0.1000014, -0.1000014],
  ),
  (
    lambda step: scaling.LossScaleOptimizer(
      tf.train.AdamOptimizer(0.1), scaling.FixedLossScaleManager(128.0)
    ),
    True,
    [[-1.3999985, -0.3142871], [-0.4285714, -0.1428571], [-0.2571413, 0.8285699], [0.7142857, 1.0]],
    [0.1000014, -0.1000014],
  ),
  (
    lambda step: opt.LARSOptimizer(0.1),
    False,
    [
      [-1.00033, -0.7135156],
      [-0.4289014, -0.1420872],
      [0.1425271, 0.4293413],
      [0.7139556, 1.0007699],
    ],
    [0.4994278, -0.4997139],
  ),
  (
    lambda step: opt.LARSOptimizer(0.1),
    True,
    [[-1.5429399, 0.5525742], [-0.4285714, -0.1428571], [-0.1286129, 1.0620013], [0.7142857, 1.0]],
    [0.4994278, -0.4997139],
  ),
  (
    lambda step: opt.LARSOptimizer(0.1, 0.5, 0.01, 0.1, 1e-3, skip_list=["b"], use_nesterov=True),
    False,
    [
      [-1.0246912, -0.654078],
      [-0.4537492, -0.083136],
      [0.1171929, 0.4878061],
      [0.6881349, 1.0587481],
    ],
    [-0.9125, 0.20625],
  ),
  (
    lambda step: opt.LARSOptimizer(0.1, 0.5, 0.01, 0.1, 1e-3, skip_list=["b"], use_nesterov=True),
    True,
    [[-1.4237502, 0.2744643], [-0.4285714, -0.1428571], [-0.0690179, 0.9229465], [0.7142857, 1.0]],
    [-0.9125, 0.20625],
  ),
  (
    lambda step: opt.LARSOptimizer(
      tf.train.exponential_decay(0.1, step, 1, 0.5), 0.5, 0.01, 0.1, 1e-3, skip_list=["b"]
    ),
    False,
    [
      [-1.011325, -0.68667036],
      [-0.44011968, -0.11546492],
      [0.13108574, 0.45574048],
      [0.70229113, 1.02694595],
    ],
    [-0.15000001, -0.17500001],
  ),
]


def trained(make, sparse=False, steps=4, only_b_decays=False):
  """The variables after the steps, and the names of all."""
  with tf.Graph().as_default(), tf.Session() as session:
    start = np.linspace(-1, 1, 8).reshape(4, 2).astype(np.float32)
    v = tf.get_variable("v", initializer=start)
    b = tf.get_variable("b", initializer=np.float32([0.5, -0.5]))
    global_step = tf.train.get_or_create_global_step()
    x = tf.nn.embedding_lookup(v, [0, 2, 0]) if sparse else v
    loss = tf.reduce_sum(x * np.float32([0.3, -0.7])) + tf.reduce_sum(b * np.float32([2.0, -1.0]))
    optimizer = make(global_step)
    if only_b_decays:
      pairs = optimizer.compute_gradients(loss)
      step = optimizer.apply_gradients(pairs, global_step, decay_var_list=[b])
    else:
      step = optimizer.minimize(loss, global_step=global_step)
    session.run(tf.global_variables_initializer())
    for _ in range(steps):
      session.run(step)
    return session.run([v, b]), [variable.name for variable in tf.global_variables()]


@pytest.mark.parametrize(("make", "sparse", "v", "b"), CASES)
def test_steps(make, sparse, v, b):
  (found_v, found_b), _ = trained(make, sparse)
  np.testing.assert_allclose(found_v, v, rtol=2e-6, atol=2e-7)
  np.testing.assert_allclose(found_b, b, rtol=2e-6, atol=2e-7)


def test_slots_have_the_names_of_1x():
  _, names = trained(lambda step: opt.AdamWOptimizer(0.01), steps=1)
  slots = ["v/AdamW:0", "v/AdamW_1:0", "b/AdamW:0", "b/AdamW_1:0"]
  assert names == ["v:0", "b:0", "global_step:0", "beta1_power:0", "beta2_power:0", *slots]


def test_only_some_variables_decay():
  (plain, _), _ = trained(lambda step: tf.train.AdamOptimizer(0.1))
  (v, b), _ = trained(lambda step: opt.AdamWOptimizer(0.01, 0.1), only_b_decays=True)
  (_, all_decayed), _ = trained(lambda step: opt.AdamWOptimizer(0.01, 0.1))
  np.testing.assert_array_equal(v, plain)
  np.testing.assert_array_equal(b, all_decayed)


def test_minimize_forgets_which_variables_decay_as_1x_does(monkeypatch):
  said = []
  monkeypatch.setattr(tf.logging, "warning", said.append)
  with tf.Graph().as_default(), tf.Session() as session:
    v, b = tf.get_variable("v", initializer=1.0), tf.get_variable("b", initializer=1.0)
    step = opt.MomentumWOptimizer(0.5, 0.0, 0.0).minimize(v + b, decay_var_list=[b])
    session.run(tf.global_variables_initializer())
    session.run(step)
    assert session.run([v, b]) == [0.5, 0.5]
  assert said == ["minimize(decay_var_list=...) decays all variables, as in 1.15."]


def test_a_missing_optimizer_has_a_remedy():
  with pytest.raises(AttributeError, match="ExponentialMovingAverage"):
    opt.MovingAverageOptimizer  # noqa: B018


def test_clip_gradients_by_global_norm():
  with tf.Graph().as_default(), tf.Session() as session:
    pairs, norm = opt.clip_gradients_by_global_norm(
      [(tf.constant([3.0, 4.0]), "v"), (None, "w")], 1
    )
    assert [variable for _, variable in pairs] == ["v", "w"]
    assert pairs[1][0] is None
    np.testing.assert_allclose(session.run([pairs[0][0][0], norm]), [0.6, 5.0], rtol=1e-6)


INF, NAN = float("inf"), float("nan")


@pytest.mark.parametrize(
  ("manager", "gradients", "scales"),
  [
    (
      lambda: scaling.ExponentialUpdateLossScaleManager(8.0, 2, 2),
      [1, 1, 1, 1, INF, 1, INF, NAN, 1, 1, 1],
      [8, 16, 16, 32, 32, 32, 25.6, 25.6, 25.6, 51.2, 51.2],
    ),
    (
      lambda: scaling.ExponentialUpdateLossScaleManager(8.0, 3, 9),
      [1, 1, INF, 1, 1, 1],
      [8, 8, 8, 8, 8, 16],
    ),
    (lambda: scaling.ExponentialUpdateLossScaleManager(1.5, 1, 1), [INF, INF, INF], [1.2, 1, 1]),
    (
      lambda: scaling.ExponentialUpdateLossScaleManager(100.0, 1, 2, incr_ratio=3.0),
      [INF, 1, 1],
      [100, 300, 900],
    ),
  ],
)
def test_the_scale_of_the_loss(manager, gradients, scales):
  with tf.Graph().as_default(), tf.Session() as session:
    v = tf.get_variable("v", initializer=1.0)
    fed = tf.placeholder(tf.float32)
    manager = manager()
    step = tf.train.get_or_create_global_step()
    optimizer = scaling.LossScaleOptimizer(tf.train.GradientDescentOptimizer(0.1), manager)
    train = optimizer.minimize(v * fed, global_step=step)
    session.run(tf.global_variables_initializer())
    found = []
    for gradient in gradients:
      session.run(train, {fed: gradient})
      found.append(session.run(manager.get_loss_scale()))
    finite = sum(np.isfinite(gradients))
    assert session.run(step) == finite
    np.testing.assert_allclose(session.run(v), 1 - 0.1 * finite, rtol=1e-6)
    variables = {variable.name for variable in tf.global_variables()}
  np.testing.assert_allclose(found, scales, rtol=1e-6)
  assert variables >= {"loss_scale:0", "good_steps:0", "bad_steps:0"}


def test_a_fixed_scale_below_1():
  with pytest.raises(ValueError, match=r"^loss scale must be at least 1\.$"):
    scaling.FixedLossScaleManager(0.5)
