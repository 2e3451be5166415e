"""What the tests of run_pretraining.py share: a tiny model, its records, and one run on them."""

import pytest

from bert import run_pretraining
from tests.kit.script_runs import Script, Trained
from tests.kit.tiny_pretraining import (
  flags_of_model,
  make_unmasked,
  write_vocabulary,
  write_with_facts,
)


@pytest.fixture(scope="session")
def model(tmp_path_factory) -> dict:
  return flags_of_model(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="session")
def trained(model, tmp_path_factory) -> Trained:
  """One run that trains and evaluates. Tests only read its folder."""
  out = tmp_path_factory.mktemp("out") / "pretraining"
  values = {**model, "output_dir": out, "num_train_steps": 60, "max_eval_steps": 5}
  values["keep_checkpoint_max"] = 0  # tests need the untrained weights
  script = Script(run_pretraining)
  done = script.run_well(**values, do_train=True, do_eval=True, save_summary_steps=5)
  return Trained(values, out, done)


@pytest.fixture(scope="session")
def unmasked(model, tmp_path_factory) -> dict:
  """The flags of a run on unmasked records."""
  folder = tmp_path_factory.mktemp("unmasked")
  write_with_facts(folder / "train.tfrecord", make_unmasked(22), dynamic_masking=True)
  return {
    **model,
    "input_file": folder / "train.tfrecord",
    "vocab_file": write_vocabulary(folder / "vocab.txt"),
    "dynamic_masking": True,
  }
