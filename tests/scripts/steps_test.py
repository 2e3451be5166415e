"""Tests of bert/scripts/steps.py: what the scripts share beside their runs.

Alone: python -m pytest tests/scripts/steps_test.py (seconds)
"""

import pytest

from bert.scripts import run_settings, steps
from bert.scripts.run_settings import RunSettings


class TinyRun(steps.Run):
  """Notes its steps instead of taking them."""

  def __init__(self, tmp_path, **values):
    defaults = dict.fromkeys(("do_train", "do_eval", "do_predict", "do_export", "plots"), False)
    values = {"output_dir": str(tmp_path), "shows_examples": True, **defaults, **values}
    super().__init__(RunSettings(values), None)
    self.taken = []

  def _use(self, checkpoint_path):
    super()._use(checkpoint_path)
    self.taken.append("used")

  def _evaluate(self, checkpoint_path):
    self.taken.append(("evaluated", checkpoint_path))

  def _predict(self, checkpoint_path):
    self.taken.append(("predicted", checkpoint_path))


@pytest.mark.parametrize(
  ("values", "expected"),
  [
    ({}, []),
    ({"do_eval": True}, [("evaluated", "best")]),
    ({"do_predict": True}, [("predicted", "best")]),
    ({"do_eval": True, "do_predict": True}, [("evaluated", "best"), ("predicted", "best")]),
  ],
)
def test_what_flags_ask_for_is_done_with_the_best_weights(tmp_path, values, expected):
  run = TinyRun(tmp_path, **values)
  run._use("best")
  assert run.taken == [*expected, "used"]


def test_examples_are_shown_once_and_only_if_wanted(tmp_path):
  run = TinyRun(tmp_path)
  assert [run._shows_examples() for _ in range(3)] == [True, False, False]
  assert not TinyRun(tmp_path, shows_examples=False)._shows_examples()


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


def test_settings_of_a_run_without_training_have_steps_for_the_model():
  values = {"fast": True, "group_by_length": False, "warmup_proportion": 1.0}
  settings = run_settings.RunSettings(values).without_training()
  assert (settings.num_train_steps, settings.num_warmup_steps) == (1, 1)
  assert settings.group_by_length is False
