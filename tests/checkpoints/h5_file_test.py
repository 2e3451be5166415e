"""`tf_model.h5`: the names of all versions, and the layouts, become those of PyTorch's classes.

Alone: python -m pytest tests/checkpoints/h5_file_test.py (seconds)
Files that are refused: tests/system/bad_older_weights_test.py. With transformers' own TensorFlow
classes: tests/checkpoints/older_weights_test.py.
"""

import json
import re

import h5py
import numpy as np
import pytest

from bert.checkpoints import h5_file, transformers_folder, transformers_names
from bert.checkpoints.bundle_files import CheckpointError
from bert.checkpoints.h5_file import open_weights
from bert.families.files import FILES
from tests.kit.older_weights import weight_of, write_h5

KERNEL = np.arange(6, dtype=np.float32).reshape(2, 3)


def write(path, arrays):
  """Writes arrays by their paths, behind which comes :0."""
  with h5py.File(path, "w") as h5:
    for name, values in arrays.items():
      h5[f"{name}:0"] = values
  return path


def names_of(family):
  """All keys of a family's files."""
  names = FILES[family].transformers.names
  keys = [key for table in (names.exact, *names.by_head.values()) for key in table.values()]
  modules = [re.sub(r"\b[NM]\b", "3", each) for each in names.modules.values()]
  return keys + [f"{module}.{leaf}" for module in modules for leaf in ("weight", "bias")]


@pytest.mark.parametrize("family", FILES)
@pytest.mark.parametrize("before", ["", "bert/tf_a_for_b_c_1/", "model_weights/x/tf_a_for_b/"])
def test_names_of_all_modules(family, before):
  for key in names_of(family):
    weight, _ = weight_of(key, KERNEL)
    found = transformers_names.key_of_weight(before + weight, family)
    assert found == (key, "kernel:" in weight)


def test_layouts(tmp_path):
  paths = {
    "bert/m/bert/embeddings/word_embeddings/weight": KERNEL,
    "bert/m/bert/pooler/dense/kernel": KERNEL,
    "bert/m/bert/pooler/dense/bias": KERNEL[0].astype(">f4"),
    "bert/m/bert/encoder/layer_._0/output/LayerNorm/gamma": KERNEL[1].astype(np.float16),
  }
  file = open_weights(write(tmp_path / "a.h5", paths), "bert")
  found = {name: file.read(name) for name in file.tensors}
  for name, values in found.items():
    assert (values.shape, values.dtype) == file.tensors[name][:2][::-1]
  assert found["bert.embeddings.word_embeddings.weight"].tolist() == KERNEL.tolist()
  assert found["bert.pooler.dense.weight"].tolist() == KERNEL.T.tolist()
  assert found["bert.pooler.dense.bias"].tolist() == KERNEL[0].tolist()
  assert found["bert.pooler.dense.bias"].dtype.isnative
  assert found["bert.encoder.layer.0.output.LayerNorm.weight"].dtype == np.float16
  with pytest.raises(CheckpointError, match=r"has no tensor 'bert\.x'"):
    file.read("bert.x")


def test_heads_as_dimensions(tmp_path):
  """As versions 4.1 and 4.2 save attention: [in, heads, size] and [heads, size, out]."""
  query, output = np.arange(24.0).reshape(4, 3, 2), np.arange(24.0).reshape(3, 2, 4)
  scope = "bert/m/bert/encoder/layer_._0/attention"
  paths = {
    f"{scope}/self/query/kernel": query,
    f"{scope}/self/query/bias": query[0],
    f"{scope}/output/dense/kernel": output,
    f"{scope}/output/dense/bias": output[0, 0],
  }
  file = open_weights(write(tmp_path / "a.h5", paths), "bert")
  scope = "bert.encoder.layer.0.attention"
  assert file.read(f"{scope}.self.query.weight").tolist() == query.reshape(4, 6).T.tolist()
  assert file.read(f"{scope}.self.query.bias").tolist() == query[0].reshape(6).tolist()
  assert file.read(f"{scope}.output.dense.weight").tolist() == output.reshape(6, 4).T.tolist()


def test_weights_of_several_layers_and_what_is_no_weight(tmp_path):
  """Keras stores a shared weight with each layer; a whole model has its optimizer's state, too."""
  words = "tf_bert_for_masked_lm/bert/embeddings/word_embeddings/weight"
  paths = {f"bert/{words}": KERNEL, f"mlm___cls/{words}": KERNEL}
  paths["optimizer_weights/Adam/m/bert/embeddings/word_embeddings/weight"] = KERNEL
  path = write(tmp_path / "a.h5", paths)
  assert list(open_weights(path, "bert").tensors) == ["bert.embeddings.word_embeddings.weight"]
  assert h5_file.read_class(path) == "BertForMaskedLM"


def test_the_bias_for_words_of_albert(tmp_path):
  """Its TensorFlow class adds the decoder's bias, and has one of its own that it does not use."""
  paths = {
    "predictions/m/predictions/bias": np.zeros(3),
    "predictions/m/predictions/decoder/bias": np.ones(3),
  }
  path = write(tmp_path / "tf_model.h5", paths)
  (tmp_path / "config.json").write_text('{"model_type": "albert"}')
  weights = transformers_folder.open_weights(path)
  assert weights.read("cls/predictions/output_bias").tolist() == [1, 1, 1]


@pytest.mark.parametrize(
  ("architectures", "model", "expected"),
  [
    (["BertForMaskedLM"], "tf_bert_for_sequence_classification_2", "BertForSequenceClassification"),
    (["TFBertModel"], "mine", "BertModel"),
    (None, "tf_bert_for_question_answering", "BertForQuestionAnswering"),
    (None, "mine", None),
  ],
)
def test_the_class_is_that_of_the_model(tmp_path, architectures, model, expected):
  """Before version 4, the configuration kept the class of the model that a training began with."""
  write_h5(tmp_path / "tf_model.h5", {"bert.pooler.dense.bias": KERNEL[0]}, model)
  (tmp_path / "config.json").write_text(json.dumps({"architectures": architectures}))
  assert transformers_folder.read_architecture(tmp_path / "tf_model.h5") == expected


def test_a_file_that_shrinks_between_opening_and_reading(tmp_path):
  path = write(tmp_path / "a.h5", {"bert/pooler/dense/bias": np.zeros(1000)})
  file = open_weights(path, "bert")
  path.write_bytes(path.read_bytes()[:2500])
  with pytest.raises(CheckpointError, match="truncated"):
    file.read("bert.pooler.dense.bias")


def test_cut_off_and_flipped_bytes(tmp_path):
  """Clear errors, or other values; HDF5 has no checksums in such files."""
  path = write(tmp_path / "a.h5", {"bert/pooler/dense/kernel": KERNEL})
  content, generator = path.read_bytes(), np.random.default_rng(3)
  damaged = [content[:length] for length in range(0, len(content), 7)]
  for _ in range(300):
    flipped = bytearray(content)
    flipped[generator.integers(len(content))] ^= generator.integers(1, 256)
    damaged.append(bytes(flipped))
  for each in damaged:
    path.write_bytes(each)
    try:
      file = open_weights(path, "bert")
      size = sum(file.read(name).nbytes for name in file.tensors)
    except CheckpointError:
      continue
    assert size <= len(content)
