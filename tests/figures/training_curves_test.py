"""Curves read from event files, whole or torn, and drawn.

Alone: python -m pytest tests/figures/training_curves_test.py
"""

import numpy as np
import pytest
from matplotlib import image

from bert.figures import training_curves
from tests.kit.event_files import write_events, write_run
from tests.kit.script_runs import run_python


@pytest.fixture
def run(tmp_path):
  """A run with training and evaluation."""
  return write_run(tmp_path / "run")


def test_values_and_steps_are_those_written(run):
  curves = training_curves.read_curves(run)
  assert list(curves["loss"]) == list(range(1, 51))
  np.testing.assert_allclose(list(curves["loss"].values()), np.linspace(8, 3, 50), rtol=1e-6)
  assert training_curves.read_curves(run / "eval") == {
    "loss": {50: 5.0},
    "masked_lm_loss": {50: 4.0},
  }
  assert training_curves.read_curves(run / "nothing") == {}


def test_the_later_of_two_files_counts_where_they_overlap(tmp_path):
  """By the time of the events: names hold a counter, and 10 is sorted in front of 9."""
  first = write_events(tmp_path, {"loss": [1.0, 2.0, 3.0]})
  second = write_events(tmp_path, {"loss": [4.0, 5.0]}, first_step=3)
  first.rename(tmp_path / f"{second.name}9")
  assert training_curves.read_curves(tmp_path) == {"loss": {1: 1.0, 2: 2.0, 3: 4.0, 4: 5.0}}


@pytest.mark.parametrize("cut", [1, 9, 30])
def test_a_file_that_ends_within_an_event_shows_what_is_there(tmp_path, cut):
  path = write_events(tmp_path, {"loss": [1.0, 2.0, 3.0]})
  path.write_bytes(path.read_bytes()[:-cut])
  assert training_curves.read_curves(tmp_path) == {"loss": {1: 1.0, 2: 2.0}}


def test_smoothing_keeps_lines_straight_and_takes_noise_away():
  line = np.linspace(0, 5, 101).tolist()
  np.testing.assert_allclose(training_curves.smooth(line, 10)[:-10], line[:-10], atol=1e-12)
  noise = np.random.default_rng(0).normal(size=1000).tolist()
  assert np.std(training_curves.smooth(noise, 20)[20:-20]) < 0.25
  assert training_curves.smooth(noise, 0) == pytest.approx(noise)
  assert training_curves.smooth([], 3) == []


def drawn(monkeypatch, *args, **kwargs):
  """What `plot_curves` puts into its figure: title -> panel."""
  from matplotlib.figure import Figure

  figures = []
  savefig = Figure.savefig

  def keep(figure, *args, **kwargs):
    figures.append(figure)
    savefig(figure, *args, **kwargs)

  monkeypatch.setattr(Figure, "savefig", keep)
  training_curves.plot_curves(*args, **kwargs)
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


def test_importing_loads_neither_matplotlib_nor_tensorflow(tmp_path):
  heavy = "{'matplotlib', 'tensorflow'} & set(sys.modules)"
  program = f"import sys; from bert.figures import training_curves; print({heavy})"
  assert run_python("-c", program, cwd=tmp_path).stdout.strip() == "set()"
