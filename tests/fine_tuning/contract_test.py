"""What every registered task has, ours and those of a user's own alike.

Alone: python -m pytest tests/fine_tuning/contract_test.py (a minute, most of it compiling graphs)
"""

import json

import numpy as np
import pytest

from bert.fine_tuning.task import Task
from bert.model.task_head import Head
from bert.predicting.predictor import Predictor
from bert.scripts.run_settings import FineTuningSettings
from bert.tasks import kinds
from tests.kit import every_script, own_tasks
from tests.kit.script_runs import (
  assert_same_tensors,
  check_help,
  results_in,
  stopped_after,
  tensors,
)

OURS = tuple(kinds.registered())
TASKS = (*OURS, *own_tasks.FILES)
ITEMS = {
  "sentences": "ada bob.",
  "squad": ("ada?", "bob is ada."),
  "ner": "ada bob .",
  "swag": ("ada", ["bob", "cat", "dog", "elk"]),
  "similarity": ("ada bob.", "bob ada."),
}
each_task = pytest.mark.parametrize("name", TASKS)
# Whole runs of each kind of head, and of one custom task; the others are slow.
_IN_CI = ("sentences", "squad", "ner", TASKS[len(OURS)])
_TIERS = [pytest.param(name, marks=() if name in _IN_CI else pytest.mark.slow) for name in TASKS]
each_task_in_whole_runs = pytest.mark.parametrize("name", _TIERS)


@pytest.fixture(scope="module", autouse=True)
def own():
  with own_tasks.loaded(*own_tasks.FILES):
    yield


@pytest.fixture(scope="module")
def files(tmp_path_factory):
  return every_script.write_files(tmp_path_factory.mktemp("files"))


@pytest.fixture
def script(name):
  file = kinds.find(name).file
  return own_tasks.script(name) if file else every_script.script(kinds.find(name).script)


@pytest.fixture
def flags(name, files, tmp_path, monkeypatch) -> dict:
  """The flags of a run of three steps, without `do_*`."""
  if kinds.find(name).file:
    values = own_tasks.write(tmp_path, name)
  else:
    values = every_script.flags(kinds.find(name).script, files, tmp_path)
    values = {flag: value for flag, value in values.items() if not flag.startswith("do_")}
  monkeypatch.setattr(FineTuningSettings, "planned", lambda self, *_: self.with_steps(3, 0))
  return {**values, "train_batch_size": 64, "output_dir": tmp_path / "out"}


def job_of(name) -> dict:
  """Evaluation; SQuAD's examples to evaluate are those to predict."""
  return {"do_predict": True} if name == "squad" else {"do_eval": True}


@each_task
def test_its_row_names_what_it_needs(name):
  kind = kinds.find(name)
  assert issubclass(kind.task_class(), Task)
  assert issubclass(kind.head_class(), Head)
  assert kind.task_class().name == name


@pytest.mark.parametrize("name", OURS)
def test_help_is_complete_and_needs_no_tensorflow(name, tmp_path):
  module = every_script.module(kinds.find(name).script)
  check_help(module, tmp_path, {"Model", "Training", "TPU"})


@pytest.mark.ci
@each_task_in_whole_runs
def test_stopped_and_resumed_it_is_the_same_to_the_bit(script, flags, tmp_path):
  values = {**flags, "do_train": True, "save_checkpoints_steps": 1}
  script.run_well(**{**values, "output_dir": tmp_path / "straight"})
  with stopped_after(2):
    assert script.run(**{**values, "output_dir": tmp_path / "parts"}).code == 130
  assert "Resumed from" in script.run_well(**{**values, "output_dir": tmp_path / "parts"}).err
  assert tensors(tmp_path / "straight")["global_step"] == 3
  assert_same_tensors(tmp_path / "straight", tmp_path / "parts")


@pytest.mark.ci
@each_task_in_whole_runs
def test_the_best_weights_are_kept(script, flags, name):
  done = script.run_well(**flags, **job_of(name), eval_every_steps=1, do_train=True)
  out = flags["output_dir"]
  assert f"Using the best checkpoint, {out}/best/model.ckpt-" in done.err
  summary = json.loads((out / "dev_summary.json").read_text())
  assert {summary["headline"]} <= set(summary["metrics"])
  assert summary["headline"] in results_in(out / "eval_results.txt")


def _rounded(entities):
  return [{**each, "probability": round(each["probability"], 4)} for each in entities]


@pytest.mark.ci
@pytest.mark.parametrize(
  "name",
  [
    pytest.param(name, marks=() if name == "squad" else pytest.mark.slow)
    for name in (*OURS, "stars")
  ],
)
def test_its_export_answers_as_its_folder(script, flags, name, tmp_path):
  script.run_well(**flags, do_train=True, do_export=True, export_dir=tmp_path / "export")
  of_run = Predictor.load(str(flags["output_dir"]), vocab_file=str(flags["vocab_file"]))
  of_export = Predictor.load(str(tmp_path / "export"))
  item = ITEMS[name] if name in ITEMS else own_tasks.ITEMS[name][0]
  one, other = of_run([item])[0], of_export([item])[0]
  assert one.keys() == other.keys()
  for key, value in one.items():
    if isinstance(value, float | np.ndarray):
      np.testing.assert_allclose(value, other[key], rtol=1e-4, atol=1e-5, err_msg=key)
    elif key == "entities":
      assert _rounded(value) == _rounded(other[key])
    else:
      assert value == other[key], key
