"""A task that only a test knows: trained, resumed, predicted, loaded, and not named by a folder."""

import json
import subprocess
import sys

import numpy as np
import pytest

from bert import distill
from bert.fine_tuning import engine
from bert.fine_tuning.task import Task
from bert.predicting import load_run
from bert.scripts import distill_flags
from bert.scripts.command_line import UsageError
from bert.scripts.run_settings import RunSettings
from bert.tasks import kinds
from tests.kit import tiny_bert
from tests.kit.event_files import series_in
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


@pytest.mark.ci
def test_it_teaches_a_student(script, flags, trained, tmp_path, monkeypatch):
  """distill.py takes the task's flags from its file, and its loss from the problem type."""
  assert distill_flags.script_of(["distill.py", f"--teacher={trained}"]) == str(FILE)
  values = {"teacher": trained, "data_dir": flags["data_dir"], "num_hidden_layers": 1}
  values |= {"do_train": True, "do_eval": True, "learning_rate": 0.01, "train_batch_size": 4}
  values |= {"save_summary_steps": 1, "cache_teacher": True, "output_dir": tmp_path / "student"}
  monkeypatch.setattr(sys, "argv", ["distill.py", *(f"--{n}={v}" for n, v in values.items())])
  done = Script(distill).run_well(**values)
  assert "From the teacher's run: --max_seq_length=16" in done.err
  parts = series_in(tmp_path / "student")
  assert len(parts["soft_loss"]) == 9
  assert load_run.find_run(tmp_path / "student").kind.name == "stars"
  stars = sys.modules["stars"]
  monkeypatch.setattr(stars.Stars, "head", lambda self: stars.StarsHead(1.0))
  found = Script(distill).error_of(**{**values, "output_dir": tmp_path / "out"})
  assert (
    f"--teacher={trained} has the head {{'middle': 3.0}}, the student {{'middle': 1.0}}" in found
  )


def test_outputs_of_unknown_meaning_have_no_loss():
  class Ranks(Task):
    name, problem_type = "ranks", "ranks"

  with pytest.raises(
    UsageError, match="ranks has the problem_type ranks, and no distillation_loss"
  ):
    Ranks(RunSettings({})).distillation_loss(None)


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
