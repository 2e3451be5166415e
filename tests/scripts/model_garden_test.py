"""Every script with an encoder of the TensorFlow Model Garden: only `--init_checkpoint` changes.

Alone: python -m pytest -m ci tests/scripts/model_garden_test.py
"""

import numpy as np
import pytest

from bert.checkpoints import finding, numpy_writer, reading
from bert.keras3 import BertForMaskedLM
from bert.model.configuration import BertConfig
from bert.model.variable_shapes import encoder_shapes
from tests.kit import conversions, every_script, healthy_run, model_garden
from tests.kit.every_script import MODEL, RUNS, flags, script, without_model_files
from tests.kit.keras_models import numpy_of, random_inputs

pytestmark = pytest.mark.ci

# Their form of the model: the folder of a checkpoint, or a SavedModel as TensorFlow Hub has it.
IN_CHECKPOINTS = ("run_ner", "run_swag", "run_pretraining", "distill", "predict")
SCRIPTS = [name for name in RUNS if "init_checkpoint" in RUNS[name]] + ["distill"]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
  """The files of every script, with their model as the garden has it, in `garden` and `hub`."""
  folder = every_script.write_files(tmp_path_factory.mktemp("garden"))
  conversions.run_well(
    "to_model_garden",
    init_checkpoint=folder / "model",
    output_dir=folder / "garden",
    **{name: path.replace("{}", str(folder)) for name, path in MODEL.items()},
  )
  checkpoint = str(folder / "garden" / "bert_model.ckpt")
  model_garden.save_as_on_hub(checkpoint, folder / "hub", folder / "vocab.txt")
  return folder


@pytest.mark.parametrize("name", SCRIPTS)
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


def test_there_and_back_by_the_command(files, tmp_path):
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


def test_what_the_garden_does_not_have(files, tmp_path):
  config = {**healthy_run.CONFIG, "model_type": "electra", "embedding_size": 8}
  electra = BertConfig.from_dict(config)
  healthy_run.write_json(tmp_path / "bert_config.json", config)
  zeros = {name: np.zeros(shape, "float32") for name, shape in encoder_shapes(electra).items()}
  numpy_writer.write(tmp_path / "electra", zeros)
  error = conversions.error_of(
    "to_model_garden", init_checkpoint=tmp_path / "electra", output_dir=tmp_path / "out"
  )
  assert "no encoder with these layers of ELECTRA" in error
  assert not (tmp_path / "out").exists()
  error = conversions.error_of(
    "to_model_garden", init_checkpoint=files / "model", output_dir=files / "garden"
  )
  assert "holds a model already" in error
