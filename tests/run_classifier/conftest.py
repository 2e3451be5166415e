"""What the tests of run_classifier.py share: a tiny model, and one run of it on MRPC."""

import pytest

from bert import run_classifier
from tests.kit import tiny_bert
from tests.kit.script_runs import Script, Trained
from tests.kit.tiny_sentences import VOCAB, write_mrpc


@pytest.fixture(scope="session")
def model(tmp_path_factory) -> dict:
  """The flags of a tiny model, the same for every run."""
  return {
    **tiny_bert.write(tmp_path_factory.mktemp("model"), VOCAB),
    "max_seq_length": 16,
    "train_batch_size": 8,
    "learning_rate": 0.01,
  }


@pytest.fixture(scope="session")
def mrpc(model, tmp_path_factory) -> Trained:
  """One run of 20 steps that trains, evaluates and predicts. Tests only read its folder."""
  data, out = tmp_path_factory.mktemp("MRPC"), tmp_path_factory.mktemp("out") / "mrpc"
  write_mrpc(data)
  values = {**model, "task_name": "MRPC", "data_dir": data, "output_dir": out}
  values["num_train_epochs"] = 8.0
  values["keep_checkpoint_max"] = 0  # tests need the untrained weights
  script = Script(run_classifier)
  return Trained(
    values, out, script.run_well(**values, do_train=True, do_eval=True, do_predict=True)
  )
