"""The exported encoder through hub.load and hub.KerasLayer, every promise of the Hub's interface.

Alone: python -m pytest tests/exporting/hub_encoder_test.py (-m "not ci": seconds)
"""

import json
import os
import shutil

import keras as keras_3
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_hub as hub
import tf_keras as keras

from bert.checkpoints import bundle_files, finding, loading, reading, saving
from bert.exporting.hub_encoder import INPUTS, export_encoder
from bert.model import heads, kernels
from bert.model.configuration import BertConfig
from bert.model.variable_shapes import word_head_names
from bert.model.variables import VariableStore, use_store
from bert.modeling import BertModel, get_shape_list
from tests.kit import exports
from tests.kit.script_runs import run_elsewhere

VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "c", "d", "ef"]
CONFIG = exports.config(len(VOCAB))
BATCH = {
  "input_word_ids": tf.constant([[2, 5, 6, 3, 0, 0], [2, 7, 8, 9, 5, 3]]),
  "input_mask": tf.constant([[1, 1, 1, 1, 0, 0], [1, 1, 1, 1, 1, 1]]),
  "input_type_ids": tf.constant([[0, 0, 0, 0, 0, 0], [0, 0, 1, 1, 1, 1]]),
}
MLM_BATCH = {**BATCH, "masked_lm_positions": tf.constant([[1, 2, 0], [4, 0, 0]])}
POSITIONS = MLM_BATCH["masked_lm_positions"]


def training_side(store, config=CONFIG, batch=BATCH):
  """The BertModel that training would run without dropout, and the scores of masked words."""
  with use_store(store):
    model = BertModel(config, False, *(batch[name] for name in INPUTS))
    vectors = heads.gather_indexes(model.get_sequence_output(), POSITIONS)
    logits = heads.masked_lm_logits(config, vectors, model.get_embedding_table())
  return model, tf.reshape(logits, [*get_shape_list(POSITIONS), -1])


@pytest.fixture(scope="module")
def store() -> VariableStore:
  """The weights of a small pre-trained model."""
  store = VariableStore(seed=7)
  training_side(store)
  for variable in store.variables.values():  # biases, too, which start at zero
    variable.assign_add(tf.random.stateless_normal(variable.shape, [1, 2], stddev=0.1))
  return store


@pytest.fixture(scope="module")
def trained(store, tmp_path_factory) -> str:
  """A folder with a checkpoint of the model, with its head, and a vocabulary."""
  folder = tmp_path_factory.mktemp("trained")
  (folder / "vocab.txt").write_text("\n".join(VOCAB) + "\n")
  state = {"global_step": tf.constant(3, tf.int64), "bert/pooler/dense/bias/adam_m": tf.zeros([16])}
  saving.save(str(folder), 3, {**store.variables, **state}, {})
  return str(folder)


def export(folder, trained, **changes) -> str:
  arguments = dict(
    config=CONFIG,
    init_checkpoint=trained,
    vocab_file=os.path.join(trained, "vocab.txt"),
    do_lower_case=True,
  )
  export_encoder(str(folder), **{**arguments, **changes})
  return str(folder)


@pytest.fixture(scope="module")
def exported(trained, tmp_path_factory) -> str:
  """The folder of the exported encoder."""
  return export(tmp_path_factory.mktemp("export") / "encoder", trained)


@pytest.fixture(scope="module")
def encoder(exported):
  return hub.load(exported)


def keras_inputs(length=None, names=INPUTS):
  return {name: keras.Input([length], dtype=tf.int32, name=name) for name in names}


def keras_classifier(handle) -> keras.Model:
  inputs = keras_inputs()
  outputs = hub.KerasLayer(handle, trainable=True)(inputs)
  model = keras.Model(inputs, keras.layers.Dense(2)(outputs["pooled_output"]))
  loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
  model.compile(keras.optimizers.Adam(1e-2), loss)
  return model


def names_of(variables) -> list[str]:
  return [variable.name.split(":")[0] for variable in variables]


# ---------------------------------------------------------------------------------------------
# Inputs, outputs, values.


def test_a_dict_in_and_a_dict_out(encoder):
  outputs = encoder(BATCH)
  assert sorted(outputs) == ["default", "encoder_outputs", "pooled_output", "sequence_output"]
  assert all(tensor.dtype == tf.float32 for tensor in tf.nest.flatten(outputs))
  assert outputs["pooled_output"].shape == [2, 16]
  assert outputs["sequence_output"].shape == [2, 6, 16]
  np.testing.assert_array_equal(outputs["default"], outputs["pooled_output"])
  layers = outputs["encoder_outputs"]
  assert isinstance(layers, list)
  np.testing.assert_array_equal(layers[-1], outputs["sequence_output"])


def test_training_drops_out_and_is_off_by_default(encoder):
  for callee, batch in ((encoder, BATCH), (encoder.mlm, MLM_BATCH)):
    without = np.stack([callee(batch)["sequence_output"] for _ in range(5)])
    explicit = callee(batch, training=False)["sequence_output"]
    with_dropout = np.stack([callee(batch, training=True)["sequence_output"] for _ in range(5)])
    np.testing.assert_array_equal(without, np.stack([explicit] * 5))
    assert with_dropout.std(axis=0).min() > 1e-3


def test_equal_to_the_model_of_training(encoder, store):
  @tf.function(autograph=False)
  def predict(batch):
    model, logits = training_side(store, batch=batch)
    return model.get_pooled_output(), model.get_all_encoder_layers(), logits

  pooled, layers, logits = predict(BATCH)
  outputs, mlm_outputs = encoder(BATCH), encoder.mlm(MLM_BATCH)
  for found in (outputs, mlm_outputs):
    np.testing.assert_allclose(found["pooled_output"], pooled, rtol=0, atol=1e-6)
    np.testing.assert_allclose(found["encoder_outputs"], layers, rtol=0, atol=1e-6)
  names = ["encoder_outputs", "mlm_logits", "pooled_output", "sequence_output"]
  assert sorted(mlm_outputs) == names
  np.testing.assert_allclose(mlm_outputs["mlm_logits"], logits, rtol=1e-6, atol=1e-6)


@pytest.mark.ci
def test_gradients_are_those_of_the_model_of_training(encoder, store):
  """Its graph is differentiated by TensorFlow, the model's by hand."""

  def loss_of(outputs):
    return tf.reduce_sum(outputs["sequence_output"] ** 2) + tf.reduce_sum(outputs["default"])

  with tf.GradientTape() as tape:
    loss = loss_of(encoder(BATCH))
  found = tape.gradient(loss, encoder.trainable_variables)
  own = [store.variables[name] for name in names_of(encoder.trainable_variables)]
  with tf.GradientTape() as tape:
    model, _ = training_side(store)
    outputs = {"sequence_output": model.get_sequence_output(), "default": model.get_pooled_output()}
    loss = loss_of(outputs)
  for gradient, expected in zip(found, tape.gradient(loss, own), strict=True):
    expected = tf.convert_to_tensor(expected)
    tolerance = 1e-4 * np.abs(expected).max() + 1e-5  # a key's bias has none but rounding
    np.testing.assert_allclose(tf.convert_to_tensor(gradient), expected, rtol=0, atol=tolerance)


def test_static_shapes_through_keras(exported):
  inputs = keras_inputs(10)
  outputs = hub.KerasLayer(exported, trainable=True)(inputs)
  assert outputs["pooled_output"].shape.as_list() == [None, 16]
  assert outputs["sequence_output"].shape.as_list() == [None, 10, 16]
  assert [layer.shape.as_list() for layer in outputs["encoder_outputs"]] == [[None, 10, 16]] * 2


@pytest.mark.parametrize("shape", [(0, 4), (1, 1), (3, 32)])
def test_batches_and_lengths(encoder, shape):
  outputs = encoder({name: tf.ones(shape, tf.int32) for name in INPUTS})
  assert outputs["sequence_output"].shape == [*shape, 16]
  assert np.isfinite(outputs["pooled_output"]).all()


def test_a_sequence_that_is_too_long_is_explained(encoder):
  too_long = {name: tf.ones([1, 33], tf.int32) for name in INPUTS}
  with pytest.raises(tf.errors.InvalidArgumentError, match="longer than the 32 positions"):
    encoder.signatures["serving_default"](**too_long)
  with pytest.raises(ValueError, match="33 and 32"):  # TensorFlow sees it while it traces the call
    encoder(too_long)


def test_serving_default(encoder):
  outputs = encoder.signatures["serving_default"](**BATCH)
  assert sorted(outputs) == ["pooled_output", "sequence_output"]
  np.testing.assert_array_equal(outputs["pooled_output"], encoder(BATCH)["pooled_output"])


def serialized(row, length, **changes) -> bytes:
  """A row of `BATCH` as an Example, its first `length` places."""
  lists = {name: BATCH[name][row, :length].numpy().tolist() for name in INPUTS} | changes
  features = {n: tf.train.Feature(int64_list={"value": values}) for n, values in lists.items()}
  return tf.train.Example(features={"feature": features}).SerializeToString()


def test_serving_examples_of_any_length(encoder):
  serve = encoder.signatures["serving_examples"]
  outputs = serve(examples=tf.constant([serialized(0, 4), serialized(1, 6)]))
  expected = encoder(BATCH)
  assert sorted(outputs) == ["pooled_output", "sequence_output"]
  for name in outputs:
    np.testing.assert_allclose(outputs[name], expected[name], atol=1e-6)
  with pytest.raises(tf.errors.InvalidArgumentError, match="input_type_ids differ in length"):
    serve(examples=tf.constant([serialized(0, 4, input_type_ids=[])]))


def test_equal_to_the_original(golden_dir, trained, tmp_path):
  golden = np.load(golden_dir / "tiny_forward.npz")
  config = BertConfig.from_json_file(str(golden_dir / "tiny" / "bert_config.json"))
  path = export(tmp_path / "e", trained, config=config, init_checkpoint=golden_dir / "tiny")
  encoder = hub.load(path)
  names = ("in_input_ids", "in_input_mask", "in_segment_ids")
  batch = {name: tf.constant(golden[key]) for name, key in zip(INPUTS, names, strict=True)}
  batch["masked_lm_positions"] = tf.constant(golden["in_masked_lm_positions"])
  outputs = encoder.mlm(batch)
  np.testing.assert_allclose(outputs["encoder_outputs"], golden["layers"], rtol=0, atol=1e-5)
  np.testing.assert_allclose(outputs["pooled_output"], golden["pooled_output"], rtol=0, atol=1e-5)
  log_probs = tf.reshape(tf.nn.log_softmax(outputs["mlm_logits"])[:, :, :8], [-1, 8])
  np.testing.assert_allclose(log_probs, golden["masked_lm_log_probs_first8"], rtol=0, atol=2e-5)


@pytest.mark.ci
def test_equal_to_the_original_on_real_weights(golden_dir, data_dir, tmp_path):
  golden = np.load(golden_dir / "minilm_forward.npz")
  weights = data_dir / "weights" / "minilm_L-6_H-384_A-12"
  config = BertConfig.from_json_file(str(weights / "bert_config.json"))
  export_encoder(tmp_path / "e", config, weights, str(weights / "vocab.txt"), True)
  encoder = hub.load(str(tmp_path / "e"))
  assert not hasattr(encoder, "mlm")
  ids = tf.constant(golden["input_ids"])
  values = (ids, tf.constant(golden["input_mask"]), tf.zeros_like(ids))
  outputs = encoder(dict(zip(INPUTS, values, strict=True)))
  mask = golden["input_mask"][:, :16, np.newaxis]
  found, expected = (
    outputs["sequence_output"][:, :16] * mask,
    golden["sequence_output_first16"] * mask,
  )
  np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)
  np.testing.assert_allclose(outputs["pooled_output"], golden["pooled_output"], rtol=0, atol=1e-5)


# ---------------------------------------------------------------------------------------------
# Variables.


@pytest.mark.ci
def test_trainable_variables_in_the_order_of_the_original(exported, store):
  encoder_names = [name for name in store.variables if name.startswith("bert/")]
  assert len(encoder_names) == 5 + 16 * CONFIG.num_hidden_layers + 2
  layer = hub.KerasLayer(exported, trainable=True)
  layer(BATCH)
  assert names_of(layer.trainable_weights) == encoder_names
  assert names_of(layer.weights) == encoder_names
  assert layer.losses == []
  assert hub.KerasLayer(exported).trainable_weights == []
  for variable, name in zip(layer.trainable_weights, encoder_names, strict=True):
    assert variable.trainable
    np.testing.assert_array_equal(variable, store.variables[name])


@pytest.mark.ci
def test_vocabulary_and_case(encoder, trained, exported, tmp_path):
  path = encoder.vocab_file.asset_path.numpy().decode()
  assert path == os.path.join(exported, "assets", "vocab.txt")
  with open(path) as reader:
    assert reader.read().split("\n")[:-1] == VOCAB
  assert encoder.do_lower_case.numpy() is np.True_
  assert not encoder.do_lower_case.trainable
  cased = hub.load(export(tmp_path / "encoder", trained, do_lower_case=False))
  assert cased.do_lower_case.numpy() is np.False_


def test_the_path_of_the_vocabulary_is_forgotten(exported, trained):
  with open(os.path.join(exported, "saved_model.pb"), "rb") as reader:
    assert os.path.basename(trained).encode() not in reader.read()


def test_nothing_has_to_be_registered_where_it_is_loaded(exported):
  """Hand-written gradients would be functions of this project, compiled blocks need XLA."""
  with open(os.path.join(exported, "saved_model.pb"), "rb") as reader:
    assert b"_gradient_op_type" not in reader.read()
  with kernels.portable_blocks(), kernels.compile_blocks(True):
    assert not kernels._mode.compiled
  with kernels.compile_blocks(True):
    assert kernels._mode.compiled


# ---------------------------------------------------------------------------------------------
# The masked language model.


@pytest.mark.ci
def test_mlm_has_five_more_variables_and_shares_the_rest(exported):
  encoder = hub.load(exported)
  extra = encoder.mlm.trainable_variables[len(encoder.trainable_variables) :]
  assert names_of(extra) == list(word_head_names(BertConfig(len(VOCAB))))
  before = encoder(BATCH)["pooled_output"]
  layer = hub.KerasLayer(encoder.mlm, trainable=True)
  with tf.GradientTape() as tape:
    logits = layer(MLM_BATCH, training=True)["mlm_logits"]
    loss = tf.reduce_mean(tf.nn.log_softmax(logits)[:, 0, 0])
  gradients = tape.gradient(loss, layer.trainable_weights)
  keras.optimizers.SGD(1.0).apply_gradients(zip(gradients, layer.trainable_weights, strict=True))
  assert np.abs(encoder(BATCH)["pooled_output"] - before).max() > 1e-3


@pytest.mark.ci
def test_no_mlm_without_its_head(store, trained, tmp_path):
  without = {n: v for n, v in store.variables.items() if not n.startswith("cls/")}
  prefix = saving.save(str(tmp_path), 1, without, {})
  assert not hasattr(hub.load(export(tmp_path / "e", trained, init_checkpoint=prefix)), "mlm")


# ---------------------------------------------------------------------------------------------
# Elsewhere: a process without this project, several devices, another SavedModel.

_WITH_TENSORFLOW_ALONE = """
import json
import sys
import tensorflow as tf

encoder = tf.saved_model.load(sys.argv[1])
names = ("input_word_ids", "input_mask", "input_type_ids")
batch = dict.fromkeys(names, tf.ones([2, 5], tf.int32))
a, b = (encoder(batch, training=True)["pooled_output"] for _ in range(2))
assert abs(a - b).numpy().max() > 1e-3
mlm_batch = dict(batch, masked_lm_positions=tf.zeros([2, 2], tf.int32))
for callee, inputs in ((encoder, batch), (encoder.mlm, mlm_batch)):
  with tf.GradientTape(persistent=True) as tape:
    outputs = callee(inputs, training=True)
    loss = tf.reduce_sum(outputs["sequence_output"]) + tf.reduce_sum(outputs["pooled_output"])
    loss += tf.reduce_sum(outputs.get("mlm_logits", 0.0))
  for _ in range(2):
    assert None not in tape.gradient(loss, callee.trainable_variables)
print(json.dumps([float(x) for x in encoder(batch)["pooled_output"][0]]))
assert not {"bert", "modeling", "tf_keras", "tensorflow_text"} & set(sys.modules)
"""

_ON_TWO_DEVICES = """
import json
import sys
import numpy as np
import tensorflow as tf
import tensorflow_hub as hub
import tf_keras as keras

[cpu] = tf.config.list_physical_devices("CPU")
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
names = ("input_word_ids", "input_mask", "input_type_ids")
with strategy.scope():
  inputs = {name: keras.Input([5], dtype=tf.int32, name=name) for name in names}
  layer = hub.KerasLayer(sys.argv[1], trainable=True)
  model = keras.Model(inputs, keras.layers.Dense(2)(layer(inputs)["pooled_output"]))
  model.compile(keras.optimizers.Adam(1e-2), keras.losses.MeanSquaredError())
before = [v.numpy() for v in layer.trainable_weights]
batch = {name: np.ones([4, 5], "int32") for name in names}
history = model.fit(batch, np.eye(2)[[0, 1, 0, 1]], batch_size=4, epochs=2, verbose=0)
assert np.isfinite(history.history["loss"]).all()
pairs = zip(layer.trainable_weights, before)
moved = sum(int(abs(v.numpy() - old).max() > 1e-4) for v, old in pairs)
print(json.dumps([strategy.num_replicas_in_sync, moved]))
"""


def arrays_elsewhere(script, *arguments, cwd) -> list:
  printed = run_elsewhere(script, *arguments, cwd=cwd)
  return json.loads("[" + printed.strip().strip("[]").replace(" ", ",").replace(",,", ",") + "]")


@pytest.mark.ci
def test_a_process_that_imports_only_tensorflow(exported, encoder, tmp_path):
  found = arrays_elsewhere(_WITH_TENSORFLOW_ALONE, exported, cwd=tmp_path)
  ones = dict.fromkeys(INPUTS, tf.ones([2, 5], tf.int32))
  np.testing.assert_allclose(found, encoder(ones)["pooled_output"][0], atol=1e-6)


@pytest.mark.slow
def test_fine_tuning_on_two_devices(exported, tmp_path):
  replicas, moved = arrays_elsewhere(_ON_TWO_DEVICES, exported, cwd=tmp_path)
  assert replicas == 2
  assert moved >= 0.8 * (5 + 16 * 2 + 2)  # the gradient of a key's bias is zero


@pytest.mark.ci
def test_a_keras_model_with_it_trains_saves_and_loads(trained, tmp_path):
  path = export(tmp_path / "encoder", trained)
  model = keras_classifier(path)
  first = model.predict(BATCH, verbose=0)
  model.fit(BATCH, np.array([0, 1]), epochs=8, verbose=0)
  tuned = model.predict(BATCH, verbose=0)
  assert np.abs(tuned - first).max() > 1e-2
  model.save(tmp_path / "keras")
  shutil.rmtree(path)
  again = keras.models.load_model(tmp_path / "keras")
  np.testing.assert_allclose(again.predict(BATCH, verbose=0), tuned, atol=1e-6)
  before = again.evaluate(BATCH, np.array([0, 1]), verbose=0)
  again.fit(BATCH, np.array([1, 0]), epochs=2, verbose=0)
  assert again.evaluate(BATCH, np.array([0, 1]), verbose=0) != before


@pytest.mark.ci
def test_keras_3_takes_the_name_of_the_signature(exported, encoder):
  outputs = keras_3.layers.TFSMLayer(exported, call_endpoint="serving_default")(BATCH)
  assert sorted(outputs) == ["pooled_output", "sequence_output"]
  np.testing.assert_array_equal(outputs["pooled_output"], encoder(BATCH)["default"])


@pytest.mark.ci
def test_litert_needs_its_own_operations_only(exported, encoder):
  converter = tf.lite.TFLiteConverter.from_saved_model(exported, signature_keys=["serving_default"])
  runner = tf.lite.Interpreter(model_content=converter.convert()).get_signature_runner()
  found, expected = runner(**BATCH), encoder(BATCH)
  for name in ("pooled_output", "sequence_output"):
    np.testing.assert_allclose(found[name], expected[name], rtol=0, atol=1e-5)


@pytest.mark.ci
def test_keras_3(exported):
  layer = keras_3.layers.TFSMLayer(exported, call_training_endpoint="with_dropout", trainable=True)
  inputs = {name: keras_3.Input([6], dtype="int32", name=name) for name in INPUTS}
  model = keras_3.Model(inputs, keras_3.layers.Dense(2)(layer(inputs)["pooled_output"]))
  model.compile("adam", keras_3.losses.SparseCategoricalCrossentropy(from_logits=True))
  # Within fit, Keras 3 refuses the names of restored variables, which end in ":0".
  model.optimizer.build(model.trainable_variables)
  assert len(layer.trainable_weights) == 5 + 16 * CONFIG.num_hidden_layers + 2
  before = layer(BATCH)["default"]
  assert np.array_equal(layer(BATCH)["default"], layer(BATCH)["default"])
  dropped = [layer(BATCH, training=True)["default"] for _ in range(2)]
  assert np.abs(dropped[0] - dropped[1]).max() > 1e-3
  model.fit(BATCH, np.array([0, 1]), verbose=0)
  assert np.abs(layer(BATCH)["default"] - before).max() > 1e-3


@pytest.mark.ci
def test_loaded_and_saved_again(exported, encoder, tmp_path):
  shutil.copytree(exported, tmp_path / "first")
  tf.saved_model.save(hub.load(str(tmp_path / "first")), str(tmp_path / "second"))
  shutil.rmtree(tmp_path / "first")
  again = hub.load(str(tmp_path / "second"))
  np.testing.assert_array_equal(again(BATCH)["default"], encoder(BATCH)["default"])
  assert os.path.dirname(again.vocab_file.asset_path.numpy().decode()).endswith("second/assets")
  dropped = [again(BATCH, training=True)["default"].numpy() for _ in range(2)]
  assert np.abs(dropped[0] - dropped[1]).max() > 1e-3


# ---------------------------------------------------------------------------------------------
# The exported folder as --init_checkpoint.


@pytest.mark.parametrize("given", ["encoder", "", "encoder/variables/variables"])
def test_an_export_initialises_a_model(exported, store, given):
  path = os.path.join(os.path.dirname(exported), given)
  prefix = finding.find_checkpoint(path)
  assert prefix == os.path.join(exported, "variables", "variables")
  contents = reading.names_and_shapes(prefix)
  assert sorted(contents) == sorted(store.variables)
  other = VariableStore(seed=1)
  training_side(other)
  report = loading.init_from_checkpoint(prefix, other.variables)
  assert (report.missing, report.unexpected, report.mismatched) == ([], [], [])
  for name, variable in other.variables.items():
    np.testing.assert_array_equal(variable, store.variables[name])


@pytest.mark.ci
def test_an_export_of_an_export(exported, encoder, trained, tmp_path):
  again = hub.load(export(tmp_path / "again", trained, init_checkpoint=exported))
  np.testing.assert_array_equal(again(BATCH)["default"], encoder(BATCH)["default"])
  assert hasattr(again, "mlm")


# ---------------------------------------------------------------------------------------------
# Writing, whole or not at all.


def test_a_checkpoint_that_lacks_a_variable_is_refused(store, trained, tmp_path):
  partial = {n: v for n, v in store.variables.items() if "pooler" not in n}
  prefix = saving.save(str(tmp_path), 1, partial, {})
  with pytest.raises(
    bundle_files.CheckpointError, match=r"lacks 2 of the model's \d+ variables.*bert/pooler"
  ):
    export(tmp_path / "encoder", trained, init_checkpoint=prefix)
  assert not os.path.exists(tmp_path / "encoder")


def test_the_config_lies_in_assets_extra(exported):
  path = os.path.join(exported, "assets.extra", "bert_config.json")
  assert BertConfig.from_json_file(path).to_dict() == CONFIG.to_dict()
