"""A configuration, from whatever file holds it."""

import json

import numpy as np
import pytest

from bert.checkpoints import config_files, model_files, numpy_writer
from bert.model.configuration import BertConfig
from bert.model.variable_shapes import encoder_shapes
from tests.kit.small_checkpoints import save

SIZES = {"vocab_size": 40, "hidden_size": 8, "num_attention_heads": 2}
ELECTRA = {
  **dict(model_type="electra", vocab_size=30, embedding_size=16, hidden_size=128),
  **dict(num_hidden_layers=4, num_attention_heads=2, intermediate_size=512, type_vocab_size=2),
  **dict(max_position_embeddings=20, generator_hidden_size=0.5, generator_layers=0.5),
}


def test_files_of_both_forms(tmp_path):
  theirs = {"model_type": "bert", "layer_norm_eps": 1e-12, "hidden_act": "gelu_new"}
  for content in (SIZES, {**BertConfig(**SIZES).to_dict(), **theirs}):
    (tmp_path / "config.json").write_text(json.dumps(content))
    found = config_files.read(tmp_path / "config.json")
    assert found.items() >= SIZES.items()
    assert "model_type" not in found
  assert found["hidden_act"] == "gelu"


def test_weights_without_sizes_are_refused(tmp_path):
  with pytest.raises(ValueError, match=r"from_keras --init_checkpoint=.*model\.keras"):
    config_files.read(tmp_path / "model.keras")
  with pytest.raises(ValueError, match=r"model\.ckpt-1\.index has no encoder of ELECTRA"):
    config_files.read(f"{save(tmp_path, 1)}.index")


# ---------------------------------------------------------------------------------------------
# Checkpoints without a configuration: those of ELECTRA.


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
  """An archive as google-research/electra published them: a checkpoint and a vocabulary."""
  folder = tmp_path_factory.mktemp("electra_small")
  config = BertConfig.from_dict(ELECTRA)
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
  assert {name: found[name] for name in ELECTRA} == ELECTRA
  assert found["hidden_act"] == "gelu_erf"
  generator = config.generator_config()
  assert (generator.hidden_size, generator.num_hidden_layers) == (64, 2)


def test_a_configuration_beside_the_checkpoint_comes_first(folder, tmp_path):
  for path in folder.iterdir():
    (tmp_path / path.name).write_bytes(path.read_bytes())
  (tmp_path / "bert_config.json").write_text(BertConfig.from_dict(ELECTRA).to_json_string())
  assert model_files.find(tmp_path).config == str(tmp_path / "bert_config.json")


def test_checkpoints_of_other_families_have_none(tmp_path):
  numpy_writer.write(
    tmp_path / "model", {"bert/embeddings/word_embeddings": np.zeros([3, 2], "float32")}
  )
  assert config_files.index_of(tmp_path) is None
  assert model_files.find(tmp_path).config is None
  with pytest.raises(ValueError, match="has no encoder of ELECTRA"):
    BertConfig.from_json_file(tmp_path / "model.index")
