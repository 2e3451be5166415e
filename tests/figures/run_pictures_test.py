"""What `--plots` draws of a run, and that no picture ends one."""

import os
import sys

import numpy as np
import pytest
from matplotlib import image

from bert.figures import run_pictures
from bert.scripts import result_files
from bert.tasks import metrics
from tests.kit.event_files import write_run


@pytest.fixture
def run(tmp_path):
  """A run with training and evaluation."""
  return write_run(tmp_path / "run")


def test_what_a_run_leaves_is_drawn(run, warnings):
  run_pictures.draw_training(str(run))
  table = metrics.ConfusionTable([[90, 10], [5, 895]], ["no", "yes"])
  assert table == metrics.format_confusion_matrix([[90, 10], [5, 895]], ["no", "yes"])
  run_pictures.draw_results(f"{run}/eval_results_b.txt", {"eval_accuracy": 0.9, "confusion": table})
  of_type = {"precision_PER": 1.0, "recall_PER": 0.5, "f1_PER": 0.67, "support_PER": 2.0}
  scores = {f"eval_{name}": value for name, value in of_type.items()}
  scores |= {"eval_precision": 1.0, "eval_recall": 0.5, "eval_f1": 0.67}
  run_pictures.draw_results(f"{run}/eval_results.txt", scores)
  names = ["eval_results_b_confusion_matrix.png", "eval_results_scores.png", "training.png"]
  assert sorted(os.listdir(run / "plots")) == names
  for name in names:
    assert image.imread(run / "plots" / name).std() > 0.05
  assert not warnings


@pytest.mark.ci
def test_the_pictures_of_a_folder_are_drawn_from_the_values_in_it(run, warnings):
  table = metrics.ConfusionTable([[90, 10], [5, 895]], ["no", "yes"])
  results = {"eval_accuracy": np.float32(0.9), "confusion": table, "text": "a\nb"}
  result_files.write_values(f"{run}/eval_results_b.json", results)
  (run / "test_results.json").write_text("{")
  run_pictures.draw_run(str(run))
  names = ["eval_results_b_confusion_matrix.png", "training.png"]
  assert sorted(os.listdir(run / "plots")) == names
  assert len(warnings) == 1
  assert "JSONDecodeError" in warnings[0]


def test_results_without_a_picture_leave_none(tmp_path, warnings):
  run_pictures.draw_results(str(tmp_path / "eval_results.txt"), {"eval_f1": 0.9, "text": "a\nb"})
  run_pictures.draw_training(str(tmp_path))  # evaluated only
  assert not os.listdir(tmp_path)
  assert not warnings


def test_what_cannot_be_drawn_is_a_warning_and_no_error(run, warnings, monkeypatch):
  with monkeypatch.context() as without:
    without.setitem(sys.modules, "matplotlib.figure", None)
    run_pictures.draw_training(str(run))
  assert "ImportError" in warnings[0]
  assert "Pictures need matplotlib" in warnings[0]
  assert "pip install matplotlib" in warnings[0]
  (run / "plots" / "training.png").mkdir()
  run_pictures.draw_training(str(run))
  assert "training.png" in warnings[1]
