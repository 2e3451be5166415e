"""A task that only a test knows: trained, resumed, predicted, loaded, and not named by a folder."""

import json
import subprocess
import sys

import numpy as np
import pytest

from bert import doctor
from bert.fine_tuning import engine
from bert.predicting import load_run
from bert.tasks import kinds
from tests.kit import tiny_bert
from tests.kit.paths import ROOT
from tests.kit.script_runs import Script, assert_same_tensors, results_in, table

FILE = ROOT / "tests" / "kit" / "stars.py"
WORDS = ["good", "bad", "film", "it", "was"]
VOCAB = [*tiny_bert.SPECIAL_TOKENS, *WORDS]


class _AsScript:
  """The file of the task as a module with `main` and `define_flags`."""

  def __init__(self, module):
    self.__name__ = "stars"
    self.main = engine.main_of(module.Stars)
    self.define_flags = module.Stars.define_flags


@pytest.fixture(scope="module")
def script():
  with pytest.MonkeyPatch.context() as patch:
    patch.setenv(kinds.PLUGINS, "")
    patch.setattr(kinds, "_KINDS", dict(kinds._KINDS))
    patch.setattr(kinds, "_FILES", dict(kinds._FILES))
    kinds.load_plugins(str(FILE))
    yield Script(_AsScript(sys.modules["stars"]))
    sys.modules.pop("stars", None)


@pytest.fixture(scope="module")
def flags(tmp_path_factory):
  folder = tmp_path_factory.mktemp("stars")
  rows = [f"it was {'good' if i % 2 else 'bad'} film,{5 if i % 2 else 1}" for i in range(12)]
  for split in ("train", "dev", "test"):
    (folder / f"{split}.csv").write_text("\n".join(["text_a,label", *rows]) + "\n")
  model = tiny_bert.write(folder, VOCAB)
  return {
    **{**model, "data_dir": folder, "max_seq_length": 16, "train_batch_size": 4},
    **{"learning_rate": 0.01, "num_train_epochs": 8.0},
  }


@pytest.fixture(scope="module")
def trained(script, flags, tmp_path_factory):
  out = tmp_path_factory.mktemp("out") / "stars"
  script.run_well(**flags, output_dir=out, do_train=True, do_eval=True, do_predict=True)
  return out


def test_it_learns_and_predicts(trained):
  assert results_in(trained / "eval_results.txt")["eval_mae"] < 1.0
  rows = table(trained / "predictions.tsv")
  assert rows[0][-1] == "stars"
  found = np.array([row[-1] for row in rows[1:]], np.float32)
  assert found[1::2].mean() - found[::2].mean() > 2


def test_its_folder_answers_texts(trained):
  function = load_run.load_run(trained)
  answers = function({"text_a": ["it was good film", "it was bad film"], "text_b": ["", ""]})
  rows = table(trained / "predictions.tsv")[1:]
  np.testing.assert_allclose(
    np.asarray(answers["stars"]), [float(rows[1][-1]), float(rows[0][-1])], rtol=0, atol=1e-4
  )


def test_stopped_and_resumed_it_is_the_same(script, flags, trained, tmp_path):
  # The rate of a step must not depend on how many are still to come.
  values = {**flags, "do_train": True, "lr_schedule": "constant", "warmup_proportion": 0.0}
  script.run_well(**{**values, "num_train_epochs": 4.0}, output_dir=tmp_path / "out")
  script.run_well(**values, output_dir=tmp_path / "whole")
  script.run_well(**values, output_dir=tmp_path / "out")
  assert_same_tensors(tmp_path / "out" / "model.ckpt-24", tmp_path / "whole" / "model.ckpt-24")


def test_doctor_reads_its_numbers_as_numbers(script, flags, monkeypatch):
  values = {name: flags[name] for name in ("data_dir", "vocab_file", "max_seq_length")}
  monkeypatch.setattr(sys, "argv", ["doctor.py", "--task_name=stars"])
  done = Script(doctor).run(**values, task_name="stars", skip_bad_rows=True)
  assert done.code == 0, done.out
  assert "12 examples for train" in done.out
  assert "10 example(s) of test repeat" in done.out
  assert "Labels of" not in done.out  # the numbers are no classes
  assert "Ignoring" not in done.err  # the flags are the task's


def test_doctor_names_a_bad_number(script, flags, tmp_path, monkeypatch):
  (tmp_path / "train.csv").write_text("text_a,label\nit was good,3\nit was bad,7\n")
  monkeypatch.setattr(sys, "argv", ["doctor.py", "--task_name=stars"])
  done = Script(doctor).run(data_dir=tmp_path, task_name="stars")
  assert done.code == 1
  assert "train.csv, line 3: 7 is no number of stars" in done.out


def test_a_bad_number_is_named(script, flags, tmp_path):
  (tmp_path / "train.csv").write_text("text_a,label\nit was good,3\nit was bad,7\n")
  found = script.error_of(**{**flags, "data_dir": tmp_path}, output_dir="x", do_train=True)
  assert "train.csv, line 3: 7 is no number of stars" in found


def test_a_folder_names_no_python_to_execute(trained):
  """Elsewhere, where nobody has loaded the task, its folder is refused, and runs nothing."""
  code = (
    "import sys; from bert.predicting import load_run\n"
    "try: load_run.find_run(sys.argv[1])\n"
    "except ValueError as error: print(error)\n"
    "print('stars' in sys.modules)"
  )
  environment = {"PATH": "", "PYTHONPATH": str(ROOT), kinds.PLUGINS: ""}
  command = [sys.executable, "-c", code, str(trained)]
  done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
  assert "The task 'stars' is not known here" in done.stdout
  assert done.stdout.splitlines()[-1] == "False"
  facts = json.loads((trained / "model.ckpt-24.state.json").read_text())
  assert "stars.py" not in json.dumps(facts)
