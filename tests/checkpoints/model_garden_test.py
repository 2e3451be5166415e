"""Encoders of the TensorFlow Model Garden."""

import numpy as np
import pytest
import tensorflow as tf

from bert import modeling
from bert.checkpoints import finding, model_files, model_garden, reading
from bert.checkpoints.bundle_files import CheckpointError
from bert.checkpoints.loading import init_from_checkpoint
from bert.model.configuration import BertConfig
from bert.model.variable_shapes import encoder_shapes
from bert.model.variables import VariableStore, use_store
from tests.kit import model_garden as garden

OF_ALBERT = {**garden.SIZES, "model_type": "albert", "embedding_size": 4}
HEAD = "cls/seq_relationship/output_weights"


def arrays_of(config, **others):
  random = np.random.default_rng(5)
  shapes = {**encoder_shapes(config), HEAD: (2, 8), "cls/seq_relationship/output_bias": (2,)}
  arrays = {name: random.normal(size=shape).astype("float32") for name, shape in shapes.items()}
  return {**arrays, **others}


def write(folder, config):
  arrays = arrays_of(config)
  folder.mkdir()
  path = str(folder / "bert_model.ckpt")
  garden.write(path, arrays, config)
  return path, arrays


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
  """Path and tensors of a written BERT."""
  return write(tmp_path_factory.mktemp("bert") / "it", BertConfig.from_dict(garden.SIZES))


@pytest.mark.parametrize("sizes", [garden.SIZES, OF_ALBERT], ids=["bert", "albert"])
def test_tensors_are_read_bit_for_bit(tmp_path, sizes):
  path, arrays = write(tmp_path / "it", BertConfig.from_dict(sizes))
  assert finding.find_checkpoint(tmp_path / "it") == path
  tensors = reading.read_tensors(path, reading.names_and_shapes(path))
  assert sorted(tensors) == sorted(arrays)
  for name, values in arrays.items():
    np.testing.assert_array_equal(tensors[name], values)


def test_sizes_come_from_the_shapes(bert):
  config = BertConfig.from_json_file(model_files.find(bert[0]).config).to_dict()
  assert {name: config[name] for name in garden.SIZES} == garden.SIZES
  assert config["hidden_act"] == "gelu"


def test_number_of_layers_of_an_albert_comes_from_the_settings(tmp_path):
  path, _ = write(tmp_path / "it", BertConfig.from_dict(OF_ALBERT))
  with pytest.raises(CheckpointError, match=r"Give the model's albert_config\.json"):
    model_garden.config_of(path, model_garden.open_encoder(path))
  (tmp_path / "it" / "params.yaml").write_text("  num_layers: 3\n  hidden_activation: relu\n")
  config = model_garden.config_of(path, model_garden.open_encoder(path))
  assert (config["num_hidden_layers"], config["hidden_act"]) == (3, "relu")


def test_a_model_that_normalizes_first_is_refused(tmp_path):
  path, _ = write(tmp_path / "it", BertConfig.from_dict(garden.SIZES))
  (tmp_path / "it" / "params.yaml").write_text("  norm_first: true\n")
  with pytest.raises(CheckpointError, match="norm_first"):
    reading.open_checkpoint(path)


def save_named(path, change):
  """A checkpoint of variables with the garden's names; `change`: name -> other shape."""
  config = BertConfig.from_dict(garden.SIZES)
  names = model_garden.names_of(config.family, 2)
  shapes = {}
  for name, shape in encoder_shapes(config).items():
    axis = model_garden.axis_of_heads(name)
    if axis is not None:
      shape = (*shape[:axis], 2, shape[axis] // 2, *shape[axis + 1 :])
    shapes[names[name]] = shape
  shapes = {name: shape for name, shape in {**shapes, **change}.items() if shape}
  variables = [tf.Variable(tf.zeros(shape), name=name) for name, shape in shapes.items()]
  return tf.train.Checkpoint(all=variables).write(str(path))


QUERY = "transformer/layer_1/self_attention/query/kernel"


@pytest.mark.parametrize(
  ("change", "message"),
  [
    ({QUERY: (8, 8)}, r"layer_1.*has the shape \[8, 8\], not one of 3"),
    ({QUERY: None}, "layer_1/self_attention/query/kernel is missing"),
    ({"transformer/layer_0/gate/kernel": (8, 16)}, "BERT has no .*gate"),
    ({"embedding_projection/kernel": (4, 8)}, "BERT has no embedding"),
    ({f"other/{QUERY}": (8, 2, 4)}, "several encoders"),
    ({QUERY.replace("_1", "_0"): (8, 2, 3)}, "2 heads of 3 at a width of 8"),
  ],
)
def test_other_encoders_are_refused_in_one_line(tmp_path, change, message):
  path = save_named(tmp_path / "it", change)
  with pytest.raises(CheckpointError, match=message) as error:
    reading.open_checkpoint(path)
  assert "\n" not in str(error.value)


def outputs_of(path):
  """`BATCH` through `modeling.BertModel`, with the sizes and weights of a checkpoint."""
  prefix = finding.find_checkpoint(path)
  config = BertConfig.from_json_file(model_files.find(prefix).config)
  store = VariableStore()

  def compute():
    with use_store(store):
      batch = [tf.constant(values) for values in garden.BATCH.values()]
      model = modeling.BertModel(config, False, *batch)
      return {
        "sequence_output": model.get_sequence_output(),
        "pooled_output": model.get_pooled_output(),
      }

  graph = tf.function(compute, autograph=False).get_concrete_function()
  report = init_from_checkpoint(prefix, store.variables)
  assert not report.missing
  return {name: values.numpy() for name, values in graph().items()}


@pytest.mark.ci
def test_outputs_are_those_of_the_gardens_encoder(tmp_path):
  """Of layers with its names and shapes, as checkpoints and as a SavedModel."""
  pytest.importorskip("tf_keras")
  encoder = garden.encoder()
  expected = encoder(list(garden.BATCH.values()))
  checkpoint = tf.train.Checkpoint(model=encoder).write(str(tmp_path / "checkpoint" / "it"))
  encoder.save(tmp_path / "saved", save_format="tf")
  is_token = garden.BATCH["input_mask"] > 0
  for path in (checkpoint, tmp_path / "saved"):
    found = outputs_of(path)
    for name, rows in (("sequence_output", is_token), ("pooled_output", [True, True])):
      np.testing.assert_allclose(found[name][rows], expected[name].numpy()[rows], atol=1e-5)
