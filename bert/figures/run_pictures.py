"""The pictures of `--plots`: curves and scores of a run, as PNG files in OUTPUT_DIR/plots.

| file | shows |
|---|---|
| `training.png` | losses, accuracies and the learning rate, step by step |
| `eval_results_confusion_matrix.png` | classification: the confusion matrix |
| `eval_results_scores.png` | named entities: precision, recall and F1 of each type |

A run writes these numbers to event files and, with `--plots`, to `eval_results*.json`. A picture
that cannot be drawn must not stop a run of days: it is a warning.
"""

import functools
import glob
import json
import os
from collections.abc import Callable, Mapping

from absl import logging

from bert.figures import drawing, event_files, training_curves
from bert.tasks.metrics import ConfusionTable

FOLDER = "plots"


def _or_warn(draw: Callable) -> Callable:
  """Decorates a function so that it warns instead of raising any exception."""

  @functools.wraps(draw)
  def draw_or_warn(*args):
    try:
      return draw(*args)
    except Exception as error:  # A failed picture must not stop a run.
      logging.warning("--plots: no picture (%s): %s", type(error).__name__, error)
      return None

  return draw_or_warn


def draw_run(output_dir: str) -> None:
  """Draws the curves and results for which a run's folder, which has to exist, has values."""
  event_files.check_folder(output_dir)
  draw_training(output_dir)
  results = sorted(glob.glob(os.path.join(glob.escape(output_dir), "*_results*.json")))
  for path in results:
    _draw_file(path)
  if not results and not event_files.has_events(output_dir):
    logging.warning("Nothing to draw: %s %s", output_dir, event_files.why_empty(output_dir))


@_or_warn
def _draw_file(path: str) -> None:
  with open(path, encoding="utf-8") as reader:
    results = json.load(reader)
  tables = {name: value for name, value in results.items() if isinstance(value, dict)}
  draw_results(path, results | {name: ConfusionTable(**table) for name, table in tables.items()})


@_or_warn
def draw_training(output_dir: str) -> None:
  """Draws the curves of a run from the event files in its folder, if it trained."""
  if event_files.has_events(output_dir):
    path = _path(output_dir, "training")
    training_curves.plot_curves(output_dir, path)
    logging.info("Drew %s.", path)


@_or_warn
def draw_results(results_file: str, results: Mapping) -> None:
  """Draws the results, see `result_files.write_values`, that have a picture, beside their file."""
  output_dir, name = os.path.split(results_file)
  name = os.path.splitext(name)[0]
  for table in results.values():
    if isinstance(table, ConfusionTable):
      path = _path(output_dir, f"{name}_confusion_matrix")
      drawing.plot_confusion_matrix(table.matrix, table.labels, path)
      logging.info("Drew %s.", path)
  scores = scores_by_type(results)
  if scores:
    path = _path(output_dir, f"{name}_scores")
    drawing.plot_scores(scores, path, "Entities by type, with their number")
    logging.info("Drew %s.", path)


def _path(output_dir: str, name: str) -> str:
  folder = os.path.join(output_dir, FOLDER)
  os.makedirs(folder, exist_ok=True)
  return os.path.join(folder, f"{name}.png")


def scores_by_type(results: Mapping[str, float]) -> dict[str, dict[str, float]]:
  """Reads the scores of `tagging.score` for `drawing.plot_scores`; empty for other tasks.

  Example:
    >>> results = {"eval_precision": 1.0, "eval_recall": 0.5, "eval_f1": 0.67, "eval_loss": 0.1}
    >>> scores_by_type(results)
    {}
    >>> of_loc = {"precision_LOC": 1.0, "recall_LOC": 0.5, "f1_LOC": 0.67, "support_LOC": 2.0}
    >>> scores = scores_by_type(results | {f"eval_{name}": score for name, score in of_loc.items()})
    >>> list(scores), scores["all"]["f1"], scores["LOC"]["support"]
    (['LOC', 'all'], 0.67, 2.0)
  """
  begin, names = "eval_support_", ("precision", "recall", "f1")
  types = [key.removeprefix(begin) for key in results if key.startswith(begin)]
  scores = {
    each: {name: results[f"eval_{name}_{each}"] for name in (*names, "support")} for each in types
  }
  if scores:
    total = sum(score["support"] for score in scores.values())
    scores["all"] = {**{name: results[f"eval_{name}"] for name in names}, "support": total}
  return scores
