"""Curves read from event files, whole or torn, and drawn; what `--plots` draws of a run.

Alone: python -m pytest tests/plots_test.py
"""

import contextlib
import io
import os
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
from matplotlib import image

from bert import plots
from bert.figures import training_curves
from bert.scripts import command_line
from bert.tasks import metrics
from tests.kit.paths import ROOT


def write_events(folder, values, first_step=1):
  """Writes tag -> values of the steps from `first_step` on; returns the new file."""
  before = set(folder.glob("*")) if folder.exists() else set()
  writer = tf.summary.create_file_writer(str(folder))
  with contextlib.closing(writer), writer.as_default(0):
    for tag, numbers in values.items():
      for step, number in enumerate(numbers, start=first_step):
        tf.summary.scalar(tag, number, step=step)
  [path] = set(folder.glob("*")) - before
  return path


@pytest.fixture
def run(tmp_path):
  """A run with training and evaluation."""
  falling = np.linspace(8.0, 3.0, 50).tolist()
  names = ("loss", "masked_lm_loss", "next_sentence_loss", "masked_lm_accuracy", "examples/sec")
  write_events(tmp_path / "run", dict.fromkeys(names, falling))
  write_events(tmp_path / "run" / "eval", {"loss": [5.0], "masked_lm_loss": [4.0]}, 50)
  return tmp_path / "run"


def test_values_and_steps_are_those_written(run):
  curves = plots.read_curves(run)
  assert list(curves["loss"]) == list(range(1, 51))
  np.testing.assert_allclose(list(curves["loss"].values()), np.linspace(8, 3, 50), rtol=1e-6)
  assert plots.read_curves(run / "eval") == {"loss": {50: 5.0}, "masked_lm_loss": {50: 4.0}}
  assert plots.read_curves(run / "nothing") == {}


def test_the_later_of_two_files_counts_where_they_overlap(tmp_path):
  """By the time of the events: names hold a counter, and 10 is sorted in front of 9."""
  first = write_events(tmp_path, {"loss": [1.0, 2.0, 3.0]})
  second = write_events(tmp_path, {"loss": [4.0, 5.0]}, first_step=3)
  first.rename(tmp_path / f"{second.name}9")
  assert plots.read_curves(tmp_path) == {"loss": {1: 1.0, 2: 2.0, 3: 4.0, 4: 5.0}}


@pytest.mark.parametrize("cut", [1, 9, 30])
def test_a_file_that_ends_within_an_event_shows_what_is_there(tmp_path, cut):
  path = write_events(tmp_path, {"loss": [1.0, 2.0, 3.0]})
  path.write_bytes(path.read_bytes()[:-cut])
  assert plots.read_curves(tmp_path) == {"loss": {1: 1.0, 2: 2.0}}


def test_smoothing_keeps_lines_straight_and_takes_noise_away():
  line = np.linspace(0, 5, 101).tolist()
  np.testing.assert_allclose(plots.smooth(line, 10)[:-10], line[:-10], atol=1e-12)
  noise = np.random.default_rng(0).normal(size=1000).tolist()
  assert np.std(plots.smooth(noise, 20)[20:-20]) < 0.25
  assert plots.smooth(noise, 0) == pytest.approx(noise)
  assert plots.smooth([], 3) == []


def drawn(monkeypatch, *args, **kwargs):
  """What `plot_curves` puts into its figure: title -> panel."""
  from matplotlib.figure import Figure

  figures = []
  savefig = Figure.savefig

  def keep(figure, *args, **kwargs):
    figures.append(figure)
    savefig(figure, *args, **kwargs)

  monkeypatch.setattr(Figure, "savefig", keep)
  plots.plot_curves(*args, **kwargs)
  return {panel.get_title(loc="left"): panel for panel in figures[0].axes}


def test_panels_have_names_units_and_curves(run, tmp_path, monkeypatch):
  references = {"unigram entropy": 7.1}
  panels = drawn(monkeypatch, run, tmp_path / "a.png", references=references)
  assert list(panels) == ["masked LM loss", "next sentence loss", "masked LM accuracy"]
  panel = panels["masked LM loss"]
  assert (panel.get_xlabel(), panel.get_ylabel()) == ("training step", "nats")
  assert panels["masked LM accuracy"].get_ylabel() == "share of right answers"
  raw, smoothed, evaluation, reference = panel.get_lines()
  np.testing.assert_allclose(raw.get_ydata(), np.linspace(8, 3, 50), rtol=1e-6)
  assert raw.get_linewidth() < smoothed.get_linewidth()
  assert (list(evaluation.get_xdata()), list(evaluation.get_ydata())) == ([50], [4.0])
  assert set(reference.get_ydata()) == {7.1}
  labels = [text.get_text() for text in panel.get_legend().get_texts()]
  assert labels == ["training, smoothed", "evaluation", "unigram entropy (7.1)"]
  assert len(panels["next sentence loss"].get_lines()) == 2

  pixels = image.imread(tmp_path / "a.png")
  assert pixels.shape[0] > 500
  assert pixels.shape[1] > 1000
  assert pixels.std() > 0.05


def test_chosen_tags_alone_are_drawn(run, tmp_path, monkeypatch):
  panels = drawn(monkeypatch, run, tmp_path / "a.png", ["examples/sec", "loss"])
  assert list(panels) == ["examples/sec", "loss"]
  assert panels["examples/sec"].get_ylabel() == "examples per second"


def test_a_fine_tuning_run_shows_each_curve_once_and_the_learning_rate_as_it_is(
  tmp_path, monkeypatch
):
  rates = [1e-5, 2e-5, 1.9e-5, *np.linspace(1.8e-5, 0, 97)]
  write_events(tmp_path, {"loss": [0.6] * 100, "learning_rate": rates})
  write_events(tmp_path / "eval", {"eval_accuracy": [0.7, 0.8], "loss": [0.5, 0.4]}, 50)
  write_events(tmp_path / "eval", {"eval_loss": [0.5, 0.4]}, 50)
  panels = drawn(monkeypatch, tmp_path, tmp_path / "a.png")
  assert list(panels) == ["loss", "eval accuracy", "learning rate"]
  [line] = panels["learning rate"].get_lines()
  np.testing.assert_allclose(line.get_ydata(), rates, rtol=1e-6)
  assert panels["learning rate"].get_ylim()[0] == 0


def test_a_single_point_is_no_curve_unless_there_is_nothing_else(tmp_path, monkeypatch):
  write_events(tmp_path / "eval", {"eval_accuracy": [0.7]}, 50)
  assert list(drawn(monkeypatch, tmp_path, tmp_path / "a.png")) == ["eval accuracy"]
  write_events(tmp_path, {"loss": [0.6, 0.5]})
  assert list(drawn(monkeypatch, tmp_path, tmp_path / "a.png")) == ["loss"]


def run_script(*argv):
  err = io.StringIO()
  with contextlib.redirect_stderr(err), pytest.raises(SystemExit) as left:
    command_line.run(plots.main, plots.define_flags, ["plots.py", *map(str, argv)])
  return left.value.code, err.getvalue()


def test_the_script_draws(run, tmp_path):
  out = tmp_path / "curves.svg"
  code, err = run_script(
    f"--model_dir={run}", f"--output_file={out}", "--tags=loss", "--reference=6.5: a: b"
  )
  assert code is None, err
  assert f"Wrote {out}: loss." in err
  assert "a: b (6.5)" in out.read_text()


@pytest.mark.parametrize(
  ("argv", "said"),
  [
    (["--tags=bleu"], "--tags: bleu is not among the scalars of"),
    (["--reference=high"], "--reference=high: a number and a label are needed"),
    (["--model_dir=nowhere"], "nowhere holds no event file with scalars"),
  ],
)
def test_one_message_says_what_is_wrong(run, tmp_path, argv, said):
  out = tmp_path / "curves.png"
  code, err = run_script(f"--model_dir={run}", f"--output_file={out}", *argv)
  assert code == 1
  assert "ERROR: " in err
  assert said in err
  assert "Traceback" not in err
  assert not out.exists()


# ---------------------------------------------------------------------------------------------
# What `--plots` draws.


@pytest.fixture
def warnings(monkeypatch):
  """What `run_plots` warns of."""
  texts = []
  monkeypatch.setattr(
    training_curves.logging, "warning", lambda text, *args: texts.append(text % args)
  )
  return texts


def test_what_a_run_leaves_is_drawn(run, warnings):
  training_curves.draw_training(str(run))
  table = metrics.ConfusionTable([[90, 10], [5, 895]], ["no", "yes"])
  assert table == metrics.format_confusion_matrix([[90, 10], [5, 895]], ["no", "yes"])
  training_curves.draw_results(
    f"{run}/eval_results_b.txt", {"eval_accuracy": 0.9, "confusion": table}
  )
  of_type = {"precision_PER": 1.0, "recall_PER": 0.5, "f1_PER": 0.67, "support_PER": 2.0}
  scores = {f"eval_{name}": value for name, value in of_type.items()}
  scores |= {"eval_precision": 1.0, "eval_recall": 0.5, "eval_f1": 0.67}
  training_curves.draw_results(f"{run}/eval_results.txt", scores)
  names = ["eval_results_b_confusion_matrix.png", "eval_results_scores.png", "training.png"]
  assert sorted(os.listdir(run / "plots")) == names
  for name in names:
    assert image.imread(run / "plots" / name).std() > 0.05
  assert not warnings


def test_results_without_a_picture_leave_none(tmp_path, warnings):
  training_curves.draw_results(str(tmp_path / "eval_results.txt"), {"eval_f1": 0.9, "text": "a\nb"})
  training_curves.draw_training(str(tmp_path))  # evaluated only
  assert not os.listdir(tmp_path)
  assert not warnings


def test_what_cannot_be_drawn_is_a_warning_and_no_error(run, warnings, monkeypatch):
  with monkeypatch.context() as without:
    without.setitem(sys.modules, "matplotlib.figure", None)
    training_curves.draw_training(str(run))
  assert "ImportError" in warnings[0]
  assert "Pictures need matplotlib" in warnings[0]
  assert "pip install matplotlib" in warnings[0]
  (run / "plots" / "training.png").mkdir()
  training_curves.draw_training(str(run))
  assert "training.png" in warnings[1]


def test_importing_loads_neither_matplotlib_nor_tensorflow(tmp_path):
  program = (
    "import sys; from bert import plots; print({'matplotlib', 'tensorflow'} & set(sys.modules))"
  )
  done = subprocess.run(
    [sys.executable, "-c", program],
    env={**os.environ, "PYTHONPATH": str(ROOT)},
    capture_output=True,
    text=True,
    cwd=tmp_path,
    timeout=120,
    check=True,
  )
  assert done.stdout.strip() == "set()"
