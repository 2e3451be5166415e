"""Which seeds `--num_runs` and `--seeds` mean, and what cannot be combined with them."""

import os
import re

from bert.io import json_files
from bert.scripts import command_line

_MOST_RUNS = 1000
STATE_FILE = "run.json"  # in the folder of a run, or of many: see `run_states.py`


def of_settings(settings) -> list[int] | None:
  """Returns the seeds of many runs, in their order; None for a single run.

  Raises:
    UsageError: the flags do not say which.
  """
  count, words = settings.get("num_runs"), settings.get("seeds")
  if count is None and words is None:
    return None
  if count is not None and words is not None:
    raise command_line.UsageError(
      f"--num_runs={count} and --seeds={','.join(words)} exclude each other: give the number of "
      "runs, or their seeds."
    )
  if words is None:
    if not 1 <= count <= _MOST_RUNS:
      raise command_line.UsageError(f"--num_runs={count}: must be from 1 to {_MOST_RUNS:,}.")
    last = settings.seed + count - 1
    if last >= 1 << 63:
      raise command_line.UsageError(
        f"--num_runs={count}: with --seed={settings.seed} the last seed would be {last}; it must "
        "be below 2^63."
      )
    return list(range(settings.seed, last + 1))
  seeds = [_seed(word) for word in words]
  if not seeds:
    raise command_line.UsageError("--seeds is empty.")
  for seed in seeds:
    if seeds.count(seed) > 1:
      raise command_line.UsageError(f"--seeds={','.join(words)}: two runs would have seed {seed}.")
  return seeds


def _seed(word: str) -> int:
  seed = int(word) if re.fullmatch(r"\s*[+-]?[0-9]{1,19}\s*", word) else None
  if seed is None or abs(seed) >= 1 << 63:
    raise command_line.UsageError(
      f"--seeds: must be whole numbers below 2^63, not {word!r}, such as --seeds=1,2,3."
    )
  return seed


def of_folder(folder: str) -> list[int]:
  """Lists the seeds of the runs that `--num_runs` has made in a folder; [] if it is no such one."""
  try:
    seeds = json_files.read_if_there(os.path.join(folder, STATE_FILE), "").get("seeds")
  except (OSError, ValueError):  # Any other program's run.json.
    return []
  return seeds if isinstance(seeds, list) else []


def check(settings) -> None:
  """Checks the flags of many runs and of averages (UsageError); see `run_settings.check_run`."""
  if settings.get("average_runs"):
    _check_average(settings)
  if of_settings(settings) is None:
    return
  settings.check_at_least(1, "parallel_runs")
  flag = "--num_runs" if settings.get("num_runs") is not None else "--seeds"
  if settings.seeds is not None and "seed" in settings.given:
    raise command_line.UsageError(
      f"--seed={settings.seed} and --seeds={','.join(settings.seeds)} exclude each other."
    )
  if not settings.do_eval:
    raise command_line.UsageError(f"{flag} compares runs by their dev scores: add --do_eval.")
  if settings.distribution_strategy == "multi_worker":
    raise command_line.UsageError(
      f"{flag} starts its runs on this machine alone: --distribution_strategy=multi_worker cannot "
      "be combined with it."
    )
  for name in ("average_runs", "features_dir"):
    if settings.get(name):
      raise command_line.UsageError(f"{flag} sets --{name} for its runs: leave it out.")


def _check_average(settings) -> None:
  for name in ("do_train", "do_export", "save_outputs"):
    if settings.get(name):
      raise command_line.UsageError(
        f"--average_runs evaluates and predicts with what runs have left: --{name} cannot be "
        "combined with it."
      )
