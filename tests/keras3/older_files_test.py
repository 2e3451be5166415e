"""Files that were written when layers had other places."""

import io
import json
import zipfile

import h5py
import keras
import numpy as np
import pytest

from bert import keras3
from tests.kit.keras_models import TINY, numpy_of, random_inputs, randomized

LAYER = "encoder_layers/transformer_layer"
# Place in such a file -> path of the layer now; own variables of an encoder's embeddings are there.
ENCODER = {
  "embeddings": "embeddings",
  "embeddings/layer_norm": "embeddings.LayerNorm",
  f"{LAYER}/attention/query": "encoder.layer.0.attention.self_attention.query",
  f"{LAYER}/attention/key": "encoder.layer.0.attention.self_attention.key",
  f"{LAYER}/attention/value": "encoder.layer.0.attention.self_attention.value",
  f"{LAYER}/attention/output_dense": "encoder.layer.0.attention.dense_output.dense",
  f"{LAYER}/attention_norm": "encoder.layer.0.attention.dense_output.LayerNorm",
  f"{LAYER}/feed_forward/intermediate": "encoder.layer.0.intermediate.dense",
  f"{LAYER}/feed_forward/output_dense": "encoder.layer.0.bert_output.dense",
  f"{LAYER}/output_norm": "encoder.layer.0.bert_output.LayerNorm",
  "layers/dense": "pooler.dense",
}
MODEL = {f"bert/{place}": f"bert.{path}" for place, path in ENCODER.items()}


def at(layer, path: str):
  for name in path.split("."):
    layer = layer[int(name)] if name.isdigit() else getattr(layer, name)
  return layer


def rewritten(path, model, places, scores=None) -> None:
  """Writes a saved model's file as it was written before.

  Args:
    path: of the file.
    model: the model in it.
    places: as `ENCODER`.
    scores: the layer whose matrix was transposed, in the file and in the optimizer's state.
  """
  with zipfile.ZipFile(path) as archive:
    files = {name: archive.read(name) for name in archive.namelist()}
  memory = io.BytesIO()
  with h5py.File(memory, "w") as file:
    for place, attributes in places.items():
      layer = at(model, attributes)
      tables = ("word_embeddings", "token_type_embeddings", "position_embeddings")
      is_table = attributes.endswith("embeddings")
      weights = [getattr(layer, name) for name in tables] if is_table else layer.weights
      for index, variable in enumerate(weights):
        value = numpy_of(variable)
        file[f"{place}/vars/{index}"] = value.T if layer is scores else value
    for index, variable in enumerate(model.optimizer.variables if model.compiled else ()):
      value = numpy_of(variable)
      is_scores = scores is not None and value.shape == scores.kernel.shape
      file[f"optimizer/vars/{index}"] = value.T if is_scores else value
  config = json.loads(files["config.json"])
  del config["config"]["parts"]
  files |= {"config.json": json.dumps(config).encode(), "model.weights.h5": memory.getvalue()}
  with zipfile.ZipFile(path, "w") as archive:
    for name, content in files.items():
      archive.writestr(name, content)


def test_an_encoder_by_itself_and_in_a_functional_model(tmp_path):
  bert, inputs = randomized(keras3.BERT(**TINY)), random_inputs(2, 6)
  expected = numpy_of(bert(inputs)["pooler_output"])
  bert.save(tmp_path / "bert.keras")
  rewritten(tmp_path / "bert.keras", bert, ENCODER)
  loaded = keras.models.load_model(tmp_path / "bert.keras")
  np.testing.assert_array_equal(numpy_of(loaded(inputs)["pooler_output"]), expected)
  loaded.save(tmp_path / "again.keras")
  again = keras.models.load_model(tmp_path / "again.keras")
  np.testing.assert_array_equal(numpy_of(again(inputs)["pooler_output"]), expected)


def test_a_classifier_with_the_state_of_its_optimizer(tmp_path):
  model = keras3.BertForSequenceClassification(keras3.BERT(**TINY), num_labels=3)
  inputs = random_inputs(4, 6)
  loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
  model.compile("adam", loss, run_eagerly=True)
  model.train_on_batch(inputs, np.arange(4) % 3)
  expected = numpy_of(model(inputs).logits)
  model.save(tmp_path / "model.keras")
  rewritten(
    tmp_path / "model.keras", model, {**MODEL, "classifier": "classifier"}, model.classifier
  )
  loaded = keras.models.load_model(tmp_path / "model.keras")
  np.testing.assert_array_equal(numpy_of(loaded(inputs).logits), expected)
  for one, two in zip(model.optimizer.variables, loaded.optimizer.variables, strict=True):
    np.testing.assert_array_equal(numpy_of(one), numpy_of(two))


def test_arguments_that_are_gone():
  config = keras3.TextClassificationHead(3).get_config()
  again = keras3.TextClassificationHead.from_config({**config, "use_ffn": False})
  assert again.spec.num_classes == 3
  with pytest.raises(
    ValueError, match=r"saved with use_ffn=True, which bert\.keras3 no longer has"
  ):
    keras3.TextClassificationHead.from_config({**config, "use_ffn": True})
