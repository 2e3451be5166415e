"""Tests of bert/fine_tuning/engine.py: the steps of a run that computes nothing."""

import pytest

from bert.fine_tuning import engine
from bert.fine_tuning.task import Task
from bert.scripts.run_settings import RunSettings


class TinyRun(engine.FineTuning):
  """Notes its steps instead of taking them."""

  def __init__(self, tmp_path, **values):
    defaults = dict.fromkeys(("do_train", "do_eval", "do_predict"), False)
    values = {"output_dir": str(tmp_path), "shows_examples": True, **defaults, **values}
    super().__init__(Task, RunSettings(values), None, None)
    self.taken = []

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
  run.use("best")
  assert run.taken == expected


def test_one_example_is_shown_and_only_if_wanted(tmp_path):
  run = TinyRun(tmp_path)
  assert [run._shown_examples() for _ in range(3)] == [1, 0, 0]
  assert not TinyRun(tmp_path, shows_examples=False)._shown_examples()
