"""The optimizer against recorded steps of the original. Run: pytest tests/optimization_test.py"""

import numpy as np
import pytest
import tensorflow as tf

from bert.model import heads
from bert.model.variables import VariableStore, get_variable, use_store, zeros_initializer
from bert.modeling import BertConfig, BertModel
from bert.optimization import AdamWeightDecayOptimizer, create_optimizer
from tests.kit.tiny_pretraining import outputs_of_heads

INPUTS = ("input_ids", "input_mask", "segment_ids")


def run_20_steps(golden_dir, losses_of, before_training, warmup):
  """Trains on the recorded batches; returns the store and each step's losses and rate."""
  data = np.load(golden_dir / "tiny_pretrain.npz")
  config = BertConfig.from_json_file(golden_dir / "tiny" / "bert_config.json")
  store = VariableStore()

  @tf.function(autograph=False)
  def step(batch):
    with use_store(store):
      model = BertModel(config, True, batch["input_ids"], batch["input_mask"], batch["segment_ids"])
      losses = losses_of(config, model, batch)
      train_op = create_optimizer(tf.add_n(losses), 1e-2, 20, warmup, False)
      train_op.apply(train_op.gradients)
    return losses, train_op.learning_rate

  batches = [
    {
      name: data[name][i]
      for name in data.files
      if data[name].shape[:1] == (20,) and name not in ("losses", "learning_rate")
    }
    for i in range(20)
  ]
  step.get_concrete_function(batches[0])
  before_training(store)
  results = [step(batch) for batch in batches]
  return store, np.array([r[0] for r in results]), np.array([r[1] for r in results])


def load_all(store, prefix):
  reader = tf.train.load_checkpoint(str(prefix))
  for name, variable in store.variables.items():
    if reader.has_tensor(name):
      variable.assign(reader.get_tensor(name))


def compare_with_checkpoint(store, prefix):
  """Every tensor within 1e-4 of its largest entry; see the golden README for the two exceptions."""
  reader = tf.train.load_checkpoint(str(prefix))
  assert set(store.variables) == set(reader.get_variable_to_shape_map())
  for name, variable in store.variables.items():
    expected = reader.get_tensor(name)
    actual = variable.numpy()
    assert actual.dtype == expected.dtype, name
    if "attention/self/key/bias" in name:
      continue  # the true gradient is zero: only rounding is there to compare
    tolerance = 1e-3 if "word_embeddings" in name else 1e-4
    scale = np.abs(expected).max()
    assert np.abs(actual - expected).max() <= tolerance * max(scale, 1e-30), name


def test_pretraining_steps_equal_the_original(golden_dir):
  golden = np.load(golden_dir / "tiny_pretrain.npz")

  def losses_of(config, model, batch):
    masked, following = outputs_of_heads(config, model, batch)
    return [masked[0], following[0]]

  store, losses, rates = run_20_steps(
    golden_dir,
    losses_of,
    lambda store: load_all(store, golden_dir / "tiny" / "bert_model.ckpt"),
    warmup=5,
  )
  np.testing.assert_allclose(losses, golden["losses"], rtol=1e-5)
  np.testing.assert_allclose(rates, golden["learning_rate"][:20], rtol=1e-6, atol=1e-12)
  compare_with_checkpoint(store, golden_dir / "tiny_pretrain_20steps.ckpt")


def test_classifier_steps_equal_the_original(golden_dir):
  golden = np.load(golden_dir / "tiny_classifier.npz")
  logits_of_step = []

  def losses_of(config, model, batch):
    del config
    logits = heads.get_classifier_logits(model.get_pooled_output(), 2, is_training=False)
    return [heads.get_classifier_loss(logits, batch["label_ids"], "classification")[0]]

  def before(store):
    load_all(store, golden_dir / "tiny" / "bert_model.ckpt")
    store.variables["output_weights"].assign(golden["output_weights_init"])
    data = np.load(golden_dir / "tiny_pretrain.npz")
    config = BertConfig.from_json_file(golden_dir / "tiny" / "bert_config.json")
    with use_store(store):
      model = BertModel(config, False, *(data[name][0] for name in INPUTS))
      logits_of_step.append(heads.get_classifier_logits(model.get_pooled_output(), 2, False))

  store, losses, rates = run_20_steps(golden_dir, losses_of, before, warmup=2)
  np.testing.assert_allclose(logits_of_step[0], golden["logits_step0"], atol=1e-5)
  np.testing.assert_allclose(losses[:, 0], golden["losses"], rtol=1e-5)
  np.testing.assert_allclose(rates, golden["learning_rate"][:20], rtol=1e-6, atol=1e-12)
  compare_with_checkpoint(store, golden_dir / "tiny_classifier_20steps.ckpt")


# ---------------------------------------------------------------------------------------------
# One small variable, followed by hand.


def minimise(steps, **options):
  """The original's own test: fit three numbers; returns their values after each step."""
  store = VariableStore()
  target = tf.constant([0.4, 0.2, -0.5])

  @tf.function(autograph=False)
  def step():
    with use_store(store):
      w = get_variable("w", [3], lambda *a, **k: tf.constant([0.1, -0.2, -0.1]))
      gradient = tf.gradients(tf.reduce_mean(tf.square(target - w)), [w])
      AdamWeightDecayOptimizer(**options).apply_gradients(zip(gradient, [w], strict=True))
      return tf.identity(w)

  return [step().numpy() for _ in range(steps)]


@pytest.mark.parametrize("bias_correction", [False, True])
def test_update_in_numpy(bias_correction):
  """Three steps of the published formulas, decay included, in float64."""
  options = dict(learning_rate=0.1, weight_decay_rate=0.3, bias_correction=bias_correction)
  ours = minimise(3, **options)
  w, m, v = np.array([0.1, -0.2, -0.1]), 0.0, 0.0
  for t in (1, 2, 3):
    gradient = 2.0 / 3.0 * (w - np.array([0.4, 0.2, -0.5]))
    m, v = 0.9 * m + 0.1 * gradient, 0.999 * v + 0.001 * gradient**2
    c1, c2 = (1 - 0.9**t, 1 - 0.999**t) if bias_correction else (1.0, 1.0)
    w = w - 0.1 * (m / c1 / (np.sqrt(v / c2) + 1e-6) + 0.3 * w)
    np.testing.assert_allclose(ours[t - 1], w, rtol=2e-5)
    if bias_correction:
      break  # this helper does not count steps; the first shows the correction


# ---------------------------------------------------------------------------------------------
# create_optimizer: clipping, options.


def one_step(gradients, names=None, rate=1.0, steps=1, **options):
  """Applies constant gradients to variables that start at one; returns the store."""
  names = names or [f"v{i}" for i in range(len(gradients))]
  store = VariableStore()

  @tf.function(autograph=False)
  def step():
    with use_store(store):
      ones = [
        get_variable(name, np.shape(g), lambda shape, **k: tf.ones(shape))
        for name, g in zip(names, gradients, strict=True)
      ]
      loss = tf.add_n([tf.reduce_sum(v * g) for v, g in zip(ones, gradients, strict=True)])
      train_op = create_optimizer(loss, rate, 100, 0, **options)
      train_op.apply(train_op.gradients)

  for _ in range(steps):
    step()
  return store


def gradients_of_two_layers():
  """Names and gradients: kernels of two shapes, and small variables that do not decay."""
  shapes = {"layer_0/kernel": [256, 128], "layer_1/kernel": [256, 128], "output_weights": [2, 128]}
  for layer in ("layer_0", "layer_1", "output"):
    shapes |= {f"{layer}/bias": [128], f"{layer}/LayerNorm/gamma": [2, 3]}
  random = np.random.RandomState(1)
  return list(shapes), [random.randn(*shape).astype(np.float32) for shape in shapes.values()]


@pytest.mark.parametrize("optimizer", ["adamw", "lamb"])
def test_a_compiled_update_is_the_plain_one(monkeypatch, optimizer):
  names, gradients = gradients_of_two_layers()
  options = {"optimizer": optimizer, "rate": 0.1, "weight_decay": 0.3, "layerwise_lr_decay": 0.5}
  compiled = one_step(gradients, names, **options)
  monkeypatch.setattr("bert.optimization._MIN_SIZE_TO_COMPILE", 1 << 30)
  plain = one_step(gradients, names, **options)
  assert set(compiled.variables) == set(plain.variables)
  for name, variable in compiled.variables.items():
    np.testing.assert_allclose(variable, plain.variables[name], rtol=2e-6, err_msg=name)


def test_gradients_are_clipped_to_a_global_norm_of_one():
  store = one_step([np.full([2], 30.0, np.float32), np.full([1, 1], 40.0, np.float32)])
  norm = np.sqrt(2 * 30.0**2 + 40.0**2)
  np.testing.assert_allclose(store.variables["v0/adam_m"], [0.1 * 30 / norm] * 2, rtol=1e-5)
  np.testing.assert_allclose(store.variables["v1/adam_m"], [[0.1 * 40 / norm]], rtol=1e-5)
  assert store.variables["global_step"].numpy() == 1
  assert store.variables["global_step"].dtype == tf.int64


def test_a_norm_of_zero_clips_nothing_and_biases_may_decay():
  gradients, names = [np.full([2], 30.0, np.float32)], ["a/bias"]
  store = one_step(gradients, names, clipping=(0.0,), weight_decay=0.5, bias_correction=True)
  np.testing.assert_allclose(store.variables["a/bias/adam_m"], [3.0, 3.0], rtol=1e-6)
  np.testing.assert_allclose(store.variables["a/bias"], [0.0, 0.0], atol=2e-5)
  options = {"weight_decay": 0.5, "bias_correction": True, "exclude_from_weight_decay": ()}
  store = one_step(gradients, names, **options)
  np.testing.assert_allclose(store.variables["a/bias"], [-0.5, -0.5], atol=2e-5)


def test_norm_counts_rows_that_were_gathered_twice_separately():
  """As TensorFlow's clip_by_global_norm does while the gradient is sparse."""
  store = VariableStore()

  @tf.function(autograph=False)
  def step():
    with use_store(store):
      table = get_variable("table", [3, 2], zeros_initializer)
      loss = tf.reduce_sum(tf.gather(table, [1, 1, 2]) * [[3.0, 0.0], [4.0, 0.0], [12.0, 0.0]])
      train_op = create_optimizer(loss, 1.0, 100, 0)
      assert isinstance(train_op.gradients[0], tf.IndexedSlices)
      train_op.apply(train_op.gradients)

  step()
  merged_row_over_norm = 7.0 / np.sqrt(3.0**2 + 4.0**2 + 12.0**2)
  np.testing.assert_allclose(
    store.variables["table/adam_m"][1, 0], 0.1 * merged_row_over_norm, rtol=1e-5
  )


NAMES = [
  "bert/embeddings/word_embeddings",
  "bert/encoder/layer_0/x",
  "bert/encoder/layer_1/x",
  "bert/pooler/dense/kernel",
  "output_weights",
]


def moved(**options):
  store = one_step([np.ones([2], np.float32)] * 5, NAMES, rate=1e-2, **options)
  return {name: 1.0 - store.variables[name].numpy()[0] for name in NAMES}


def test_freezing():
  still = moved(freeze=["layers:1"])
  assert [still[name] == 0.0 for name in NAMES] == [True, True, False, False, False]
  still = moved(freeze=["embeddings", "pooler"])
  assert [still[name] == 0.0 for name in NAMES] == [True, False, False, True, False]
  still = moved(freeze=["encoder"])
  assert [still[name] == 0.0 for name in NAMES] == [True, True, True, True, False]
  with pytest.raises(ValueError, match="Nothing is left"):
    moved(freeze=["."])
  with pytest.raises(ValueError, match="regular expression"):
    moved(freeze=["("])
  with pytest.raises(ValueError, match="--freeze=nosuch selects no variable"):
    moved(freeze=["embeddings", "nosuch"])
  with pytest.raises(ValueError, match="--freeze=layers:9: the model has 2 layers"):
    moved(freeze=["layers:9"])


def test_layerwise_and_head_learning_rates():
  plain = moved()
  scaled = moved(layerwise_lr_decay=0.5, head_learning_rate=3e-2)
  factors = [scaled[name] / plain[name] for name in NAMES]
  np.testing.assert_allclose(factors, [0.25, 0.5, 1.0, 1.0, 3.0], rtol=1e-3)


@pytest.mark.parametrize("decay", [0.0, 0.3])
@pytest.mark.parametrize("is_compiled", [True, False])
def test_lamb_scales_the_update_with_and_without_weight_decay(monkeypatch, decay, is_compiled):
  """Two steps in NumPy, as google-research/albert's lamb_optimizer.py computes them."""
  names, gradients = gradients_of_two_layers()
  if not is_compiled:
    monkeypatch.setattr("bert.optimization._MIN_SIZE_TO_COMPILE", 1 << 30)
  store = one_step(
    gradients, names, rate=0.1, steps=2, optimizer="lamb", weight_decay=decay, clipping=(0.0,)
  )
  for name, gradient in zip(names, gradients, strict=True):
    value = np.ones(gradient.shape)
    m = v = np.zeros(gradient.shape)
    for rate in (0.1, 0.1 * 0.99):
      m, v = 0.9 * m + 0.1 * gradient, 0.999 * v + 0.001 * gradient.astype(np.float64) ** 2
      update, ratio = m / (np.sqrt(v) + 1e-6), 1.0
      if "bias" not in name and "LayerNorm" not in name:
        update = update + decay * value
        ratio = np.linalg.norm(value) / np.linalg.norm(update)
      value = value - rate * ratio * update
    np.testing.assert_allclose(store.variables[name], value, rtol=1e-4, atol=1e-5, err_msg=name)


def test_unknown_optimizer_is_named():
  with pytest.raises(ValueError, match="sgd"):
    one_step([np.ones([2], np.float32)], optimizer="sgd")


def test_bias_correction_makes_the_first_step_the_full_rate():
  store = one_step([np.full([1], 0.01, np.float32)], ["bias"], rate=0.1, bias_correction=True)
  np.testing.assert_allclose(store.variables["bias"], [0.9], rtol=1e-3)


_OF_A_LAYER = 48  # 16 weights, each with two slots


@pytest.mark.parametrize(
  ("head", "layers", "count"),
  [
    pytest.param("classifier", 12, 604, marks=pytest.mark.slow),
    pytest.param("pretraining", 12, 619, marks=pytest.mark.slow),
    ("pretraining", 2, 619 - 10 * _OF_A_LAYER),  # of BERT-Base, but for ten layers
  ],
)
def test_a_training_checkpoint_has_as_many_variables_as_the_originals(head, layers, count):
  config = BertConfig.from_name("uncased_L-12_H-768_A-12")
  config.num_hidden_layers = layers
  config.hidden_size, config.intermediate_size, config.vocab_size = 12, 48, 50
  store = VariableStore()
  zeros = tf.zeros([1, 2], tf.int32)

  @tf.function(autograph=False)
  def step():
    with use_store(store):
      model = BertModel(config, True, zeros)
      if head == "classifier":
        loss = tf.reduce_sum(heads.get_classifier_logits(model.get_pooled_output(), 2, True))
      else:
        output, table = model.get_sequence_output(), model.get_embedding_table()
        masked = heads.get_masked_lm_output(config, output, table, zeros, zeros, tf.ones([1, 2]))
        loss = masked[0]
        loss += heads.get_next_sentence_output(config, model.get_pooled_output(), zeros[:, :1])[0]
      train_op = create_optimizer(loss, 1e-3, 100, 10)
      train_op.apply(train_op.gradients)

  step.get_concrete_function()
  assert len(store.variables) == count


def test_without_a_loss_it_is_an_optimizer_of_keras():
  by_numbers = create_optimizer(2e-5, 1000, 100)
  parameters = iter([tf.Variable(1.0)])
  with_parameters = create_optimizer(parameters, 2e-5, 1000, 100)
  for optimizer in (by_numbers, with_parameters):
    assert optimizer.weight_decay_rate == 0.01
    assert float(optimizer._learning_rate(50)) == pytest.approx(1e-5)
