"""`tf.contrib.model_pruning`: what TensorFlow 1.15.5 gave for the same lines, or by NumPy."""

import numpy as np
import pytest

from bert_tf1.contrib import model_pruning
from bert_tf1.real import tf

pytestmark = pytest.mark.usefixtures("graph")
WEIGHTS = np.float32([[1, -8, 3, 4], [-5, 6, -7, 2], [0.5, 9, -1.5, 2.5], [8.5, 0.25, 3.5, -4.5]])


def masked(name="dense", values=WEIGHTS):
  """A variable with a mask; the product is made twice, as for a cell that is used twice."""
  with tf.variable_scope(name):
    kernel = tf.get_variable("kernel", initializer=values)
  with tf.variable_scope(name, reuse=tf.AUTO_REUSE) as scope:
    for _ in range(2):
      product = model_pruning.apply_mask(kernel, scope)
  return product


def run(*fetches, steps=(), update=None, step=None):
  """Runs the update after each of these steps; returns the fetches."""
  with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for number in steps:
      step.load(number, session)
      session.run(update)
    return session.run(fetches)


def pruning(settings: str, **more):
  step = tf.train.get_or_create_global_step()
  hparams = model_pruning.get_pruning_hparams().parse(settings)
  return model_pruning.Pruning(hparams, **more), step


def test_a_mask_of_ones_changes_nothing():
  product = masked()
  assert product.op.name == "dense_1/weights/masked_weight_1"
  [weights], [mask] = model_pruning.get_weights(), model_pruning.get_masks()
  [threshold], [first] = model_pruning.get_thresholds(), model_pruning.get_masked_weights()
  assert (weights.op.name, first.op.name) == ("dense/kernel", "dense_1/weights/masked_weight")
  assert (mask.op.name, threshold.op.name) == ("dense/mask", "dense/threshold")
  assert [v.op.name for v in tf.trainable_variables()] == ["dense/kernel"]
  values = run(product, mask, threshold, *model_pruning.get_weight_sparsity())
  np.testing.assert_array_equal(values[0], WEIGHTS)
  np.testing.assert_array_equal(values[1], np.ones([4, 4]))
  assert values[2:] == (0, 0)


def test_the_settings_have_their_defaults():
  values = model_pruning.get_pruning_hparams().values()
  assert values == {
    "name": "model_pruning",
    "begin_pruning_step": 0,
    "end_pruning_step": -1,
    "weight_sparsity_map": [""],
    "block_dims_map": [""],
    "threshold_decay": 0.0,
    "pruning_frequency": 10,
    "nbins": 256,
    "block_height": 1,
    "block_width": 1,
    "block_pooling_function": "AVG",
    "initial_sparsity": 0.0,
    "target_sparsity": 0.5,
    "sparsity_function_begin_step": 0,
    "sparsity_function_end_step": 100,
    "sparsity_function_exponent": 3.0,
    "use_tpu": False,
  }


def test_the_sparsity_grows_with_the_steps():
  settings = "initial_sparsity=0.1,target_sparsity=0.9,sparsity_function_begin_step=10"
  step = tf.placeholder(tf.int64, [])
  tested, _ = pruning(settings + ",sparsity_function_end_step=20", global_step=step)
  assert tested._sparsity.op.name == "model_pruning/sparsity"
  with tf.Session() as session:
    values = [session.run(tested._sparsity, {step: number}) for number in (0, 10, 15, 20, 30)]
  np.testing.assert_allclose(values, [0.1, 0.1, 0.9 - 0.8 * 0.5**3, 0.9, 0.9], rtol=1e-6)


def test_the_smallest_weights_are_masked():
  product = masked()
  tested, _ = pruning("name=p", sparsity=tf.constant(0.75))
  update = tested.mask_update_op()
  assert update.name == "p_1/mask_update"
  [threshold], [mask] = model_pruning.get_thresholds(), model_pruning.get_masks()
  with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    session.run(update)
    assert session.run(threshold) == 7
    expected = np.where(np.abs(WEIGHTS) >= 7, WEIGHTS, 0)
    np.testing.assert_array_equal(session.run(product), expected)
    assert session.run(model_pruning.get_weight_sparsity()) == [0.75]
    assert session.run(mask).sum() == 4


def test_masks_change_when_it_is_time():
  masked()
  settings = "begin_pruning_step=2,end_pruning_step=8,pruning_frequency=3,threshold_decay=0.5"
  tested, step = pruning(settings + ",sparsity_function_end_step=10,sparsity_function_exponent=1")
  update = tested.conditional_mask_update_op()
  [threshold], [mask] = model_pruning.get_thresholds(), model_pruning.get_masks()
  last = next(v for v in tf.global_variables() if v.name == "model_pruning/last_mask_update_step:0")
  seen = []
  with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for number in range(1, 10):
      step.load(number, session)
      session.run(update)
      seen.append([*session.run([last, threshold]), session.run(mask).sum()])
  # At steps 3 and 6: round(16 (1 - s)) of 16 magnitudes are kept, s = 0.15 and 0.3.
  sizes = np.sort(np.abs(WEIGHTS).ravel())[::-1]
  at_3 = sizes[round(16 * 0.85) - 1] / 2
  at_6 = (sizes[round(16 * 0.7) - 1] + at_3) / 2
  kept = [(sizes >= threshold).sum() for threshold in (at_3, at_6)]
  expected = [[0, 0, 16]] * 2 + [[3, at_3, kept[0]]] * 3 + [[6, at_6, kept[1]]] * 3
  np.testing.assert_allclose(seen[:8], expected, rtol=1e-6)
  assert seen[8] == seen[7]


@pytest.mark.parametrize(
  ("settings", "blocks"),
  [
    ("block_height=2,block_width=2", [[5, 4], [4.5625, 3]]),
    ("block_height=2,block_width=2,block_pooling_function=MAX", [[8, 7], [9, 4.5]]),
    ("block_dims_map=[dense:3x-1]", [[36 / 8], [30.25 / 8]]),  # the pool pads above, too
    ("block_height=-1", [[3.75, 5.8125, 3.75, 3.25]]),
  ],
)
def test_blocks_are_masked_together(settings, blocks):
  product = masked()
  tested, _ = pruning(settings, sparsity=tf.constant(0.5))
  [threshold] = model_pruning.get_thresholds()
  update = tested.mask_update_op()
  with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    session.run(update)
    found, smallest = session.run([product, threshold])
  blocks = np.array(blocks)
  kept = np.sort(blocks.ravel())[::-1][: blocks.size // 2]
  assert smallest == pytest.approx(kept[-1], rel=1e-6)
  height, width = {4: (2, 2), 2: (3, 4)}[blocks.size] if len(blocks) > 1 else (4, 1)
  mask = np.kron(blocks >= kept[-1], np.ones([height, width]))[:4]
  np.testing.assert_array_equal(found, WEIGHTS * mask)


def test_weights_have_their_own_sparsity():
  masked("first")
  masked("second")
  masked("embedding", np.float32([1, 2, 3, 4]))
  settings = "weight_sparsity_map=[first:0.25,sec.nd/kernel:0.75],target_sparsity=0.5"
  tested, _ = pruning(settings, sparsity=tf.constant(0.5))
  update = tested.mask_update_op()
  with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    session.run(update)
    assert session.run(model_pruning.get_weight_sparsity()) == [0.25, 0.75, 0.5]
  tested, _ = pruning("weight_sparsity_map=[first:0.25,kernel:0.75]")
  with pytest.raises(ValueError, match="Multiple matches in weight_sparsity_map for weight first"):
    tested.mask_update_op()


def test_summaries_and_the_log(caplog):
  masked()
  tested, _ = pruning("name=p")
  tested.add_pruning_summaries()
  tags = [op.name for op in tf.get_default_graph().get_operations() if op.type == "ScalarSummary"]
  assert tags == [
    "p_summaries/sparsity",
    "p_summaries/last_mask_update_step",
    "p_summaries/dense/mask/sparsity",
    "p_summaries/dense/threshold/threshold",
  ]
  tested.print_hparams()


@pytest.mark.parametrize(
  ("settings", "message"),
  [
    ("begin_pruning_step=-1", "Illegal value for begin_pruning_step"),
    ("begin_pruning_step=5,end_pruning_step=5", "begin_step=5, end_step=5"),
    ("sparsity_function_begin_step=-1", "Illegal value for sparsity_function_begin_step"),
    ("sparsity_function_begin_step=100", "requires begin_step < end_step"),
    ("threshold_decay=1.0", "threshold_decay must be in range"),
    ("initial_sparsity=-0.1", "initial_sparsity must be in range"),
    ("target_sparsity=1.0", "target_sparsity must be in range"),
    ("weight_sparsity_map=[a:1.0]", "Weight sparsity can not exceed"),
    ("block_dims_map=[a:3]", "Expected 2 values for block dim"),
    ("block_pooling_function=SUM", "Unknown pooling function"),
  ],
)
def test_settings_that_are_refused(settings, message):
  with pytest.raises(ValueError, match=message):
    pruning(settings)


def test_what_to_do_for_layers():
  with pytest.raises(AttributeError, match=r"multiply by apply_mask\(weights, scope\)"):
    _ = model_pruning.masked_fully_connected
