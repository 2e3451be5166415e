"""Configurations of checkpoints without one, from their shapes: those of ELECTRA.

Alone: python -m pytest tests/checkpoints/index_config_test.py
"""

import numpy as np
import pytest

from bert.checkpoints import index_config, model_files, numpy_writer
from bert.model.configuration import BertConfig
from bert.model.variable_shapes import encoder_shapes

SIZES = {
  **dict(model_type="electra", vocab_size=30, embedding_size=16, hidden_size=128),
  **dict(num_hidden_layers=4, num_attention_heads=2, intermediate_size=512, type_vocab_size=2),
  **dict(max_position_embeddings=20, generator_hidden_size=0.5, generator_layers=0.5),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
  """An archive as google-research/electra published them: a checkpoint and a vocabulary."""
  folder = tmp_path_factory.mktemp("electra_small")
  config = BertConfig.from_dict(SIZES)
  shapes = encoder_shapes(config)
  for name, shape in encoder_shapes(config.generator_config()).items():
    shapes[name.replace("electra/encoder", "generator/encoder")] = shape
  shapes |= encoder_shapes(config)
  arrays = {name: np.zeros(shape, np.float32) for name, shape in shapes.items()}
  numpy_writer.write(folder / "electra_small", arrays)
  return folder


def test_a_folder_without_a_configuration_gets_one_from_its_shapes(folder):
  path = model_files.find(folder).config
  assert path == str(folder / "electra_small.index")
  config = BertConfig.from_json_file(path)
  found = config.to_dict()
  assert {name: found[name] for name in SIZES} == SIZES
  assert found["hidden_act"] == "gelu_erf"
  generator = config.generator_config()
  assert (generator.hidden_size, generator.num_hidden_layers) == (64, 2)


def test_a_configuration_beside_the_checkpoint_comes_first(folder, tmp_path):
  for path in folder.iterdir():
    (tmp_path / path.name).write_bytes(path.read_bytes())
  (tmp_path / "bert_config.json").write_text(BertConfig.from_dict(SIZES).to_json_string())
  assert model_files.find(tmp_path).config == str(tmp_path / "bert_config.json")


def test_checkpoints_of_other_families_have_none(tmp_path):
  numpy_writer.write(
    tmp_path / "model", {"bert/embeddings/word_embeddings": np.zeros([3, 2], "float32")}
  )
  assert index_config.index_of(tmp_path) is None
  assert model_files.find(tmp_path).config is None
  with pytest.raises(ValueError, match="has no encoder of ELECTRA"):
    BertConfig.from_json_file(tmp_path / "model.index")
