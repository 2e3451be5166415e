"""Curves of one run and of several: what is shown, and that it can be read."""

from unittest import mock

import numpy as np
import pytest

from bert.figures import training_curves
from bert.figures.event_files import Run
from tests.kit.event_files import write_run
from tests.kit.figures import assert_apart, legend_of, saved_figures


def read(training=None, evaluation=None, folder="run", first=1, every=1, **facts) -> Run:
  """What `read_run` returns: training from step `first` on, evaluation at 50, 100, ..."""
  steps, evaluated = range(first, 10**7, every), range(50, 999, 50)
  curves = [
    {tag: dict(zip(at, values, strict=False)) for tag, values in (each or {}).items()}
    for at, each in ((steps, training), (evaluated, evaluation))
  ]
  return Run(folder, *curves, **facts)


LOSS = {"loss": np.linspace(0.6, 0.1, 100)}


def draw(*runs: Run, tags=None):
  """The figure of `plot_curves`, and its panels by heading."""
  folders = {run.folder: run for run in runs}
  with mock.patch.object(training_curves, "read_run", folders.get), saved_figures() as figures:
    training_curves.plot_curves([*folders], "a.png", tags)
  [figure] = figures
  return figure, {panel.get_title(loc="left"): panel for panel in figure.axes}


def test_panels_have_names_units_and_curves():
  values = np.linspace(8, 3, 50)
  names = ("loss", "masked_lm_loss", "next_sentence_loss", "masked_lm_accuracy", "examples/sec")
  run = read(dict.fromkeys(names, values), {"loss": [5.0], "masked_lm_loss": [4.0]})
  figure, panels = draw(run)
  assert list(panels) == ["masked LM loss", "next sentence loss", "masked LM accuracy"]
  panel = panels["masked LM loss"]
  assert (panel.get_xlabel(), panel.get_ylabel()) == ("training step", "nats")
  assert panels["masked LM accuracy"].get_ylabel() == "share of right answers"
  raw, smoothed, evaluation = panel.get_lines()
  np.testing.assert_array_equal(raw.get_ydata(), values)
  assert raw.get_linewidth() < smoothed.get_linewidth()
  assert (list(evaluation.get_xdata()), list(evaluation.get_ydata())) == ([50], [4.0])
  assert set(legend_of(figure)) == {"training, smoothed", "evaluation"}
  assert len(panels["next sentence loss"].get_lines()) == 2


def test_the_best_evaluation_is_marked_in_the_panel_of_its_metric():
  scores = {"eval_f1": [0.5, 0.9, 0.8], "loss": [0.3, 0.2, 0.3], "eval_recall": [0.1, 0.2, 0.3]}
  best = (100, 0.9 + 1e-8)  # Event files hold float32.
  figure, panels = draw(read(LOSS, scores, best=best))
  assert list(panels) == ["loss", "eval f1"], "the metric is shown by default"
  stars = [line for line in panels["eval f1"].get_lines() if line.get_marker() == "*"]
  assert [(list(star.get_xdata()), list(star.get_ydata())) for star in stars] == [([100], [0.9])]
  legend = legend_of(figure)
  assert {"best eval f1: 0.9", "best step: 100"} <= set(legend)
  for panel in panels.values():
    assert any(set(line.get_xdata()) == {100} for line in panel.get_lines())


def test_values_that_are_not_finite_are_counted_and_hide_no_others():
  _, panels = draw(read({"loss": [3.0, 2.5, 2.0, np.nan, np.inf] * 4}))
  [(heading, panel)] = panels.items()
  assert heading == "loss (8 not finite from step 4)"
  assert all(np.isfinite(line.get_ydata()).all() for line in panel.get_lines())
  assert np.isfinite(panel.get_ylim()).all()


def test_several_runs_have_a_colour_each_and_one_legend():
  runs = [
    read(LOSS, {"eval_accuracy": [0.5, 0.6, i / 10]}, f"out/rate_{i}/run", best=(100, 0.6))
    for i in range(8)
  ]
  figure, panels = draw(*runs)
  names = [f"rate_{i}" for i in range(8)]
  legend = legend_of(figure)
  kinds = {"training, smoothed", "evaluation", "best evaluation"}
  assert set(legend) == {*names, *kinds}, "what differs in the paths"
  looks = {(legend[name].get_color(), legend[name].get_linestyle()) for name in names}
  assert len(looks) == 8
  lines = [line for line in panels["eval accuracy"].get_lines() if line.get_marker() == "o"]
  for i, (line, name) in enumerate(zip(lines, names, strict=True)):
    assert list(line.get_ydata()) == [0.5, 0.6, i / 10]
    assert line.get_color() == legend[name].get_color()
  below = figure.legends[0].get_window_extent()
  assert 0 <= below.y0 < below.y1 <= min(panel.get_tightbbox().y0 for panel in panels.values())
  assert_apart(figure.legends[0].get_texts(), figure)


def test_among_several_folders_those_without_curves_are_left_out(tmp_path):
  runs = [write_run(tmp_path / name) for name in ("a", "b")]
  (tmp_path / "export").mkdir()
  (tmp_path / "results.txt").write_text("")
  other = [tmp_path / "export", tmp_path / "results.txt"]
  training_curves.plot_curves([*runs, *other, f"{runs[0]}/"], tmp_path / "a.svg", ["loss"])
  text = (tmp_path / "a.svg").read_text()
  assert [text.count(f"<!-- {name} -->") for name in ("a", "b", "export")] == [1, 1, 0]
  with pytest.raises(ValueError, match=r"None of these holds event files .*export, .*results\.txt"):
    training_curves.plot_curves(other, tmp_path / "a.png")
  with pytest.raises(ValueError, match="nowhere does not exist"):
    training_curves.plot_curves([*runs, tmp_path / "nowhere"], tmp_path / "a.png")
