"""Resuming a run: its state beside each checkpoint, and the settings that must be equal.

A checkpoint's sidecar (`model.ckpt-N.state.json`) holds the `RunState` of the run, its fingerprint
(facts that must be equal to resume: model shape, vocabulary, labels) and informative facts, whose
change is only logged (learning rate, epochs, batch size).
"""

import dataclasses
import json
import os
from collections.abc import Collection, Mapping
from typing import Any

import tensorflow as tf
from absl import logging

from bert.checkpoints import model_files, reading
from bert.model.configuration import BertConfig
from bert.model.task_head import check_retired


class ResumeMismatchError(ValueError):
  """The checkpoint in the output folder belongs to another model or task than this run."""


@dataclasses.dataclass
class RunState:
  """The state of a training run besides its variables.

  It needs no state of a random generator: dropout and shuffling derive from seed, step and
  position.
  """

  seed: int  # of dropout and of the order of the data
  examples: int = 0  # consumed so far, in this order
  best_metric: str | None = None  # the name of the result that evaluation during training watches
  best_value: float | None = None  # of that metric; None before the first evaluation
  best_step: int = 0  # the step of that value
  evaluated_step: int = -1  # of the last evaluation
  evaluations_without_improvement: int = 0  # in a row, up to now
  # Whether it went on without an evaluation that keeps the best weights, after one that did.
  left_best: bool = False
  # Name -> what the run has consumed, for each of `EstimatorSpec.rates`, such as tokens.
  totals: dict[str, float] = dataclasses.field(default_factory=dict)


def differences(saved: Mapping, now: Mapping, ignored: Collection[str] = ()) -> list[str]:
  """Finds the facts that differ between a checkpoint and this run, with both values.

  Tuples equal lists, as in JSON. A key that only one side has is no difference: a later version may
  record more.

  Example:
    >>> differences({"labels": ["0", "1"], "epochs": 1}, {"labels": ("0", "1"), "epochs": 2, "b": 3})
    ['epochs was 1, now 2']
  """  # noqa: E501
  saved, now = (json.loads(json.dumps(dict(facts))) for facts in (saved, now))
  return [
    f"{key} was {value!r}, now {now[key]!r}"
    for key, value in saved.items()
    if key in now and key not in ignored and value != now[key]
  ]


def check_same_run(
  prefix: str | None, fingerprint: Mapping[str, Any], ignored: Collection[str] = ()
) -> None:
  """Refuses a checkpoint of another model or task.

  Args:
    prefix: the newest checkpoint of the output folder; None if it holds none.
    fingerprint: of this run.
    ignored: keys that may differ.

  Raises:
    ResumeMismatchError: names the keys that differ, with both values.
    ValueError: it was trained with a flag that this version does not support.
  """
  state = reading.read_state(prefix) if prefix else {}
  saved = state.get("fingerprint", {})
  check_retired({**state.get("informative", {}), **saved})
  if saved and not fingerprint.keys() <= saved.keys():
    saved = {**_values_of_config(prefix), **saved}
  found = differences(saved, fingerprint, ignored)
  if found:
    raise ResumeMismatchError(
      f"{prefix} was trained with other settings than this run: {'; '.join(found)}. Choose "
      f"another output_dir, or remove {os.path.dirname(prefix) or '.'} to start again."
    )


def _values_of_config(prefix: str) -> dict[str, Any]:
  """Reads what the sidecars of earlier versions lack: values of the folder's own configuration."""
  path = model_files.find(prefix).config
  try:
    return BertConfig.from_json_file(path).deciding_values() if path else {}
  except (OSError, ValueError):
    return {}  # Nothing is known then, as before; the run writes the file anew.


def saved_run(prefix: str, batch_size: int, seed: int) -> tuple[int, RunState]:
  """Reads step and state of the run that wrote a checkpoint, whose seed wins over this run's.

  Without a saved state, the batch size gives the position in the data.
  """
  step, saved = step_of(prefix), reading.read_state(prefix)
  if "run" not in saved:
    examples = step * batch_size
    logging.warning(
      "%s was written by another program: the data continue after %d examples, its steps times "
      "train_batch_size.",
      prefix,
      examples,
    )
    return step, RunState(seed, examples)
  known = {field.name for field in dataclasses.fields(RunState)}
  state = RunState(**{name: value for name, value in saved["run"].items() if name in known})
  state.totals.pop("total_GFLOP", None)  # counted by earlier versions
  if state.seed != seed:
    logging.warning("%s continues with its seed %d, not %d.", prefix, state.seed, seed)
  return step, state


def log_other_settings(prefix: str, informative: Mapping[str, Any]) -> None:
  """Logs the informative facts of a checkpoint that differ in this run."""
  for each in differences(reading.read_state(prefix).get("informative", {}), informative):
    logging.info("Resuming %s: %s.", prefix, each)


def step_of(prefix: str) -> int:
  """Reads the step of a checkpoint; 0 if it holds no `global_step`."""
  has_step = "global_step" in reading.names_and_shapes(prefix)
  return int(tf.train.load_variable(prefix, "global_step")) if has_step else 0
