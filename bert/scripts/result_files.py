"""Files of results: scores and predictions, as the original names and spells them.

All workers of a job call these functions with the same results; the chief writes.
"""

import itertools
import json
import os
import types
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from absl import logging

from bert.io import atomic_files, json_files
from bert.io.tables import tsv_field
from bert.training import distribution

# The keys of `run_classifier.py`'s file in 2018.
ORIGINAL_KEYS = ("eval_accuracy", "eval_loss", "global_step", "loss")


def write_eval_results(
  path: str, results: Mapping, original_keys: Iterable[str] = ORIGINAL_KEYS
) -> None:
  """Logs results and writes them as `key = value` lines, the original's keys first, sorted.

  Args:
    path: usually `OUTPUT_DIR/eval_results.txt`.
    results: name -> number, or text of several lines, which is logged but not written.
    original_keys: what the original's file holds.
  """
  keys = [key for key in original_keys if key in results]
  keys += sorted(set(results) - set(keys))
  kind = "Test" if os.path.basename(path).startswith("test") else "Eval"
  logging.info("***** %s results *****", kind)
  lines = []
  for key in keys:
    value = results[key]
    if isinstance(value, str):
      logging.info("  %s:\n%s", key, value)
      continue
    # As float32 prints, which the original's values were: 0.8455882, not 0.8455882352941176.
    shown = str(value) if isinstance(value, int) else str(np.float32(value))
    logging.info("  %s = %s", key, shown)
    lines.append(f"{key} = {shown}\n")
  distribution.on_chief(atomic_files.write_text, path, "".join(lines))


def is_error(result: str) -> bool:
  """Says whether less of a result is better, by the end of its name.

  Example:
    >>> is_error("eval_loss"), is_error("eval_rmse"), is_error("eval_f1")
    (True, True, False)
  """
  return result.endswith(("loss", "mse", "mae", "error", "perplexity"))


def read_eval_results(path: str) -> dict[str, float]:
  """The numbers of a file of `write_eval_results`, by name.

  Raises:
    OSError: it cannot be read.
    ValueError: a value is not a number.
  """
  return {name: float(value) for name, value in spelled_results(path).items()}


def spelled_results(path: str) -> dict[str, str]:
  """Returns the same numbers as they are written there.

  Raises:
    OSError: it cannot be read.
    ValueError: a value is not a number.
  """
  with open(path, encoding="utf-8") as reader:
    found = dict(line.rstrip("\n").split(" = ", 1) for line in reader if " = " in line)
  for value in found.values():
    float(value)
  return found


SUMMARY_FILE = "dev_summary.json"


def write_summary(
  folder: str, headline: str, metrics: Sequence[str], failure: str | None, examples: int
) -> None:
  """Writes `dev_summary.json`: how to read `eval_results.txt`.

  Args:
    folder: of the run.
    headline: the metric by which runs are compared.
    metrics: those to report, the headline among them, as in `eval_results.txt`.
    failure: why the model counts as failed, or None; see `constant_answers`.
    examples: their number.
  """
  summary = {
    "headline": headline,
    "metrics": list(metrics),
    "failure": failure,
    "examples": examples,
  }
  atomic_files.write_text(os.path.join(folder, SUMMARY_FILE), json.dumps(summary, indent=2) + "\n")


def read_summary(folder: str) -> dict[str, Any]:
  """Reads `dev_summary.json`, see `write_summary`; empty without one.

  Raises:
    ValueError: it is damaged.
  """
  return json_files.read_if_there(os.path.join(folder, SUMMARY_FILE), "Remove it.")


def write_predictions(
  output_dir: str,
  suffix: str,
  guids: Iterable[str],
  probabilities: Sequence[np.ndarray],
  labels: Sequence[str],
  problem_type: str,
  label_separator: str = ",",
  texts: Mapping[str, Sequence[str]] = types.MappingProxyType({}),
) -> None:
  """Writes `test_results.tsv` exactly as the original, and `predictions.tsv` to read.

  Args:
    output_dir: the folder.
    suffix: goes before `.tsv`.
    guids: of each example.
    probabilities: float32 `[C]` for each example; for regression the score, `[1]`.
    labels: C names.
    problem_type: see `metrics.predictions_of`.
    label_separator: between the labels of a multi-label prediction, as in the user's own table.
    texts: further columns of `predictions.tsv`, the last ones: name -> text of each example.
  """
  from bert.tasks.metrics import predictions_of

  rows = ["\t".join(map(str, row)) + "\n" for row in probabilities]
  path = os.path.join(output_dir, f"test_results{suffix}.tsv")
  distribution.on_chief(atomic_files.write_text, path, "".join(rows))

  if problem_type == "regression":
    header, chosen = ["id", *labels], None
  else:
    header = ["id", "label", *(f"probability_{label}" for label in labels)]
    outputs = np.reshape(probabilities, [-1, len(labels)])
    predictions = predictions_of(outputs, problem_type)
    chosen = [_label_names(prediction, labels, label_separator) for prediction in predictions]
  lines = ["\t".join(map(tsv_field, [*header, *texts])) + "\n"]
  further = zip(*texts.values(), strict=True) if texts else itertools.repeat((), len(rows))
  for i, (guid, row, own) in enumerate(zip(guids, rows, further, strict=True)):
    fields = [str(guid)] if chosen is None else [str(guid), chosen[i]]
    fields = [*map(tsv_field, fields), row.rstrip("\n"), *map(tsv_field, own)]
    lines.append("\t".join(fields) + "\n")
  path = os.path.join(output_dir, f"predictions{suffix}.tsv")
  distribution.on_chief(atomic_files.write_text, path, "".join(lines))
  logging.info("Wrote %d predictions to %s.", len(rows), path)


def _label_names(prediction, labels, separator: str) -> str:
  """A class, or the labels of a multi-label prediction, joined."""
  if np.ndim(prediction) == 0:
    return labels[int(prediction)]
  return separator.join(label for label, present in zip(labels, prediction, strict=True) if present)
