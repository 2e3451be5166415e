"""Tests of bert/scripts/steps.py: what the scripts share beside their runs."""

import numpy as np
import pytest

from bert.scripts import steps
from bert.scripts.run_settings import FineTuningSettings
from bert.scripts.settings import UsageError
from bert.tasks import squad_scores
from bert.training import pretraining_objectives


def tiny_run(**values):
  return steps.Run(FineTuningSettings(**values), None)


def test_a_script_in_a_process_of_its_own(monkeypatch, capfd, tmp_path):
  monkeypatch.chdir(tmp_path)  # `bert` is found from any folder
  monkeypatch.setenv("TF_CONFIG", "not for this process")
  assert steps.start_script("plots", "--help") == 0
  assert steps.start_script("export_hub", "--nothing") == 1
  assert steps.start_script("plots") == 1
  out, err = capfd.readouterr()
  assert "usage: " in out
  assert "Ignoring the unknown flag --nothing" in err
  assert "ERROR: Flag --model_dir must have a value other than None." in err


def test_the_metric_of_the_best_weights_is_one_of_the_results():
  for name in ("eval_accuracy", "loss", None):
    tiny_run(eval_every_steps=1, best_metric=name)._check_best_metric()
  tiny_run(eval_every_steps=0, best_metric="nosuch")._check_best_metric()
  with pytest.raises(UsageError, match=r"acuracy is no .* mean eval_accuracy\?"):
    tiny_run(eval_every_steps=1, best_metric="acuracy")._check_best_metric()


def test_results_that_scripts_promise_are_those_they_compute():
  correct = squad_scores.evaluate_v1({"q": ["a"]}, {"q": "a"})
  assert set(correct) <= set(squad_scores.RESULTS_OF_1_1)
  odds = {"q": 0.0, "r": 0.0}
  correct = squad_scores.evaluate_v2({"q": ["a"], "r": []}, {"q": "a", "r": ""}, odds, {"q": "a"})
  selecting = {name for name in correct if not name.endswith("_thresh")}
  assert selecting <= set(squad_scores.RESULTS_OF_2_0)
  ones = np.ones(1)
  names = pretraining_objectives.pair_metrics(ones, ones, ones, ones, ones, ones, ones)
  assert set(names) <= set(pretraining_objectives.objective_of("mlm_nsp").result_keys)
