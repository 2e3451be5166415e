"""The scores of one run of many on its dev set: read from its folder, and as words."""

import glob
import math
import os

from bert.scripts import result_files
from bert.sweeps.sweep import Outcome
from bert.tasks.run_statistics import shown, title


def read(outcome: Outcome) -> None:
  """Reads the files of a run that has finished, `dev_summary.json` and `eval_results*.txt`.

  Raises:
    ValueError: a file is damaged, or a score is not a finite number.
    OSError: a file cannot be read.
  """
  folder = outcome.run.folder
  summary = result_files.read_summary(folder)
  if not {"headline", "metrics", "failure", "examples"} <= set(summary):
    path = os.path.join(folder, result_files.SUMMARY_FILE)
    raise ValueError(f"{path} is missing, or is damaged: repeat the run.")
  results = read_figures(folder)
  headline = summary["headline"]
  if not math.isfinite(results.get(headline, math.nan)):
    shown = results.get(headline, "missing")
    raise ValueError(f"{folder}/eval_results.txt: {headline} is {shown}.")
  names = dict.fromkeys((headline, *summary["metrics"]))
  further = [key for name in names for key in results if key.startswith(f"{name}_mis")]
  outcome.headline = (headline,)
  outcome.metrics = tuple(name for name in (*names, *further) if name in results)
  outcome.collapsed, outcome.examples = summary["failure"], summary["examples"]
  outcome.results = results


def read_figures(folder: str) -> dict[str, float]:
  """Reads all numbers of `eval_results*.txt`; those of a second set have its suffix."""
  results = {}
  paths = sorted(glob.glob(os.path.join(glob.escape(folder), "eval_results*.txt")))
  for path in paths:
    suffix = os.path.basename(path).removeprefix("eval_results").removesuffix(".txt")
    for name, value in result_files.read_eval_results(path).items():
      results[name + suffix] = value
  return results


def describe(outcome: Outcome) -> str:
  """Writes the scores of a finished run in one line."""
  scores = [f"{title(name)} {shown(name, outcome.results[name])}" for name in outcome.metrics]
  return ", ".join(scores) + (f"; FAILED: {outcome.collapsed}" if outcome.collapsed else "")
