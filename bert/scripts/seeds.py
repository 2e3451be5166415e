"""Which seeds `--num_runs` means, and what cannot be combined with it."""

import os

from bert.io import json_files
from bert.scripts import command_line

_MOST_RUNS = 1000
STATE_FILE = "run.json"  # in the folder of a run, or of many: see `run_states.py`


def of_settings(settings) -> list[int]:
  """Returns the seeds of the runs of `--num_runs`: `--seed`, `--seed` + 1, ...

  Raises:
    UsageError: there are too many, or none.
  """
  count = settings.num_runs
  if not 1 <= count <= _MOST_RUNS:
    raise command_line.UsageError(f"--num_runs={count}: must be from 1 to {_MOST_RUNS:,}.")
  last = settings.seed + count - 1
  if last >= 1 << 63:
    raise command_line.UsageError(
      f"--num_runs={count}: with --seed={settings.seed} the last seed would be {last}; it must "
      "be below 2^63."
    )
  return list(range(settings.seed, last + 1))


def of_folder(folder: str) -> list[int]:
  """Lists the seeds of the runs that `--num_runs` has made in a folder; [] if it is no such one."""
  try:
    seeds = json_files.read_if_there(os.path.join(folder, STATE_FILE), "").get("seeds")
  except (OSError, ValueError):  # Any other program's run.json.
    return []
  return seeds if isinstance(seeds, list) else []


def check(settings) -> None:
  """Checks the flags of many runs (UsageError); see `run_settings.check_run`."""
  if not settings.is_many_runs:
    return
  of_settings(settings)
  settings.check_at_least(1, "parallel_runs")
  if not settings.do_eval:
    raise command_line.UsageError("--num_runs compares runs by their dev scores: add --do_eval.")
  if settings.distribution_strategy == "multi_worker":
    raise command_line.UsageError(
      "--num_runs starts its runs on this machine alone: --distribution_strategy=multi_worker "
      "cannot be combined with it."
    )
