"""Every script with an encoder of the TensorFlow Model Garden: only `--init_checkpoint` changes.

Alone: python -m pytest -m ci tests/scripts/model_garden_test.py
"""

import shutil

import numpy as np
import pytest

from bert.checkpoints import finding, reading
from bert.keras3 import BertForMaskedLM
from bert.model.configuration import BertConfig
from tests.kit import conversions, every_script, healthy_run, model_garden
from tests.kit.every_script import RUNS, flags, script, without_model_files
from tests.kit.keras_models import numpy_of, random_inputs

pytestmark = pytest.mark.ci

# Their form of the model: the folder of a checkpoint, or a SavedModel as TensorFlow Hub has it.
IN_CHECKPOINTS = ("run_ner", "run_swag", "run_pretraining", "distill", "predict")
_IN_CI = ("run_classifier", "extract_features", "predict")
SCRIPTS = [name for name in RUNS if "init_checkpoint" in RUNS[name]] + ["distill"]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
  """The files of every script, with their model as the garden has it, in `garden` and `hub`."""
  folder = every_script.write_files(tmp_path_factory.mktemp("garden"))
  prefix = finding.find_checkpoint(folder / "model")
  tensors = reading.read_tensors(prefix, reading.names_and_shapes(prefix))
  (folder / "garden").mkdir()
  shutil.copy(folder / "vocab.txt", folder / "garden")
  checkpoint = str(folder / "garden" / "bert_model.ckpt")
  model_garden.write(checkpoint, tensors, BertConfig(**healthy_run.CONFIG))
  model_garden.save_as_on_hub(checkpoint, folder / "hub", folder / "vocab.txt")
  return folder


@pytest.mark.parametrize(
  "name",
  [pytest.param(name, marks=() if name in _IN_CI else pytest.mark.slow) for name in SCRIPTS],
)
def test_a_script(name, files, tmp_path):
  model = files / ("garden" if name in IN_CHECKPOINTS else "hub")
  given = flags(name, files, tmp_path, init_checkpoint=model)
  done = script(name).run(**without_model_files(given))
  assert done.code in (None, 0), done.err + done.out
  assert "from random values" not in done.err


@pytest.mark.parametrize("model", ["garden", "hub"])
def test_models_of_keras(model, files):
  inputs = random_inputs(2, 6)
  expected = BertForMaskedLM(BertConfig(**healthy_run.CONFIG))
  expected.load_pretrained_weights(files / "model")
  found = BertForMaskedLM.from_pretrained(files / model)
  np.testing.assert_array_equal(*(numpy_of(each(inputs).logits) for each in (found, expected)))


def test_the_command_from_model_garden(files, tmp_path):
  for model in ("garden", "hub"):
    conversions.run_well(
      "from_model_garden", init_checkpoint=files / model, output_dir=tmp_path / model
    )
    ours, back = (finding.find_checkpoint(folder) for folder in (files / "model", tmp_path / model))
    names = reading.names_and_shapes(ours)
    assert reading.names_and_shapes(back) == names
    expected, found = (reading.read_tensors(prefix, names) for prefix in (ours, back))
    for name in names:
      np.testing.assert_array_equal(found[name], expected[name], err_msg=name)
    config = BertConfig.from_json_file(tmp_path / model / "bert_config.json")
    assert {key: getattr(config, key) for key in healthy_run.CONFIG} == healthy_run.CONFIG
    assert (tmp_path / model / "vocab.txt").read_bytes() == (files / "vocab.txt").read_bytes()


@pytest.mark.parametrize(
  ("command", "model", "message"),
  [
    ("from_model_garden", "model", "model is not of the Model Garden"),
    ("from_saved_model", "garden", "is a checkpoint already"),
    ("from_transformers", "hub", "was not saved by transformers"),
  ],
)
def test_what_a_command_does_not_read(command, model, message, files, tmp_path):
  flags = {"init_checkpoint": files / model, "output_dir": tmp_path / "out"}
  error = conversions.error_of(command, **flags)
  assert message in error
  assert not (tmp_path / "out").exists()
