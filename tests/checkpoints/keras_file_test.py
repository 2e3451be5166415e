"""`.keras` files: scripts name the command that converts them, and use what it writes.

Alone: python -m pytest -m "" tests/checkpoints/keras_file_test.py
"""

import numpy as np
import pytest

from bert import keras3
from bert.checkpoints import finding, loading, reading
from bert.checkpoints.bundle_files import CheckpointError
from bert.checkpoints.keras_model import ARGUMENTS
from bert.model import heads
from bert.model.configuration import BertConfig
from bert.model.variables import VariableStore, use_store
from bert.modeling import BertModel
from tests.kit import exports
from tests.kit.conversions import run_well
from tests.kit.keras_models import TINY, on_tensorflow, random_inputs

pytestmark = on_tensorflow
SIZES = {**TINY, "vocab_size": len(exports.VOCAB)}


def test_scripts_name_the_command(tmp_path):
  path = tmp_path / "model.keras"
  path.touch()
  for read in (finding.find_checkpoint, reading.read_facts, BertConfig.from_json_file):
    with pytest.raises(CheckpointError, match=r"convert_checkpoint\.py from_keras --init"):
      read(str(path))


NARROW = {"embedding_size": 8, "type_vocab_size": 2}
FAMILIES = {
  "bert": {},
  "electra": NARROW,
  "albert": {**NARROW, "num_hidden_groups": 2, "inner_group_num": 2},
  "roberta": {"pad_token_id": 0},  # that of the vocabulary here
  "distilbert": {},
}


def classifier_of(family):
  """A classifier with random weights everywhere."""
  sizes = {key: SIZES[name] for name, key in ARGUMENTS.items() if name in SIZES}
  config = {**sizes, **FAMILIES[family], "num_hidden_layers": 3, "model_type": family}
  model = keras3.BertForSequenceClassification(BertConfig.from_dict(config), num_labels=3)
  generator = np.random.default_rng(1)
  for variable in model.weights:
    variable.assign(generator.normal(0.1, 0.3, variable.shape))
  return model


def converted(model, folder) -> str:
  """The folder of a checkpoint that was made of a model's `.keras` file."""
  model.save(folder / "model.keras")
  (folder / "vocab.txt").write_text("\n".join(exports.VOCAB) + "\n")
  run_well("from_keras", init_checkpoint=folder / "model.keras", output_dir=folder / "converted")
  return str(folder / "converted")


@pytest.mark.ci
@pytest.mark.parametrize("family", list(FAMILIES))
def test_the_graph_functions_compute_the_same(family, tmp_path):
  model = classifier_of(family)
  path = converted(model, tmp_path)
  config = BertConfig.from_json_file(f"{path}/bert_config.json")
  assert config.family.name == family
  inputs = random_inputs(3, 8, vocab_size=SIZES["vocab_size"])
  if family == "roberta":
    inputs["input_ids"] = np.where(inputs["attention_mask"], inputs["input_ids"], 0)
  with use_store(VariableStore()) as store:

    def forward():
      names = ("input_ids", "attention_mask", "token_type_ids")
      bert = BertModel(config, False, *(inputs[name] for name in names))
      options = {
        "scope": heads.task_scope(config, None),
        "hidden": heads.hidden_of(config, "texts"),
      }
      return heads.get_classifier_logits(bert.get_pooled_output(), 3, False, **options)

    forward()
    report = loading.init_from_checkpoint(finding.find_checkpoint(path), store.variables)
    assert not report.skipped() + report.unexpected
    np.testing.assert_allclose(forward(), model(inputs).logits, rtol=0, atol=1e-5)
