"""The files of a run that pictures are drawn from: its scalars for TensorBoard, its best step.

run = read_run("/tmp/mrpc_output")
run.evaluation["eval_accuracy"]  # {100: 0.79, 200: 0.81}
"""

import dataclasses
import glob
import itertools
import math
import os
from collections.abc import Iterator, Mapping

from absl import logging

from bert.io import filesystem

# Step, or what was consumed until then, -> value, ascending.
Curve = dict[float, float]

_EVENTS = "events.out.tfevents.*"


class NoScalarsError(ValueError):
  """A folder holds no curves."""


@dataclasses.dataclass(frozen=True)
class Run:
  """What the files of a run say."""

  folder: str  # its `model_dir`
  training: Mapping[str, Curve]  # tag -> curve
  evaluation: Mapping[str, Curve]  # tag -> curve
  # Step and value of the best evaluation during training; None without one.
  best: tuple[float, float] | None = None
  problem_type: str = ""  # as of `--problem_type`; "" if unknown

  def lengths(self) -> dict[str, int]:
    """Returns tag -> number of points."""
    both = (self.training, self.evaluation)
    return {tag: max(len(c.get(tag, ())) for c in both) for c in both for tag in c}

  def best_tags(self) -> list[str]:
    """Finds the scalars that have the best value at its step: the watched one, and its copies.

    Event files hold float32, the checkpoint's state float64.
    """
    if self.best is None:
      return []
    step, value = self.best
    return [
      tag
      for tag, curve in self.evaluation.items()
      if math.isclose(curve.get(step, math.nan), value, rel_tol=1e-6)
    ]


def read_run(folder: str | os.PathLike) -> Run:
  """Reads a run: its curves, those of `eval` below it, and the state in its newest checkpoint.

  Raises:
    NoScalarsError: the folder has no event file with scalars.
    ValueError: there is no such folder.
  """
  folder = os.fsdecode(folder)
  check_folder(folder)
  training, evaluation = read_curves(folder), read_curves(os.path.join(folder, "eval"))
  if not training and not evaluation:
    raise NoScalarsError(f"{folder} {why_empty(folder)}")
  state = _newest_state(folder)
  best = state.get("run", {})
  return Run(
    folder,
    training,
    evaluation,
    None if best.get("best_value") is None else (best["best_step"], best["best_value"]),
    _problem_type(state),
  )


def _problem_type(state: Mapping) -> str:
  """Returns the kind of a run's problem: cosines have a squared error, too.

  `own` where the loss is that of a task of one's own, whose facts hold the values of its head.
  """
  is_cosine = state.get("informative", {}).get("loss") == "cosine"
  facts = state.get("fingerprint", {})
  known = "own" if "head" in facts else "regression" if is_cosine else ""
  return facts.get("problem_type", known)


def check_folder(folder: str) -> None:
  """Checks that a folder exists, or raises a ValueError."""
  if not filesystem.exists(folder):
    raise ValueError(f"{folder} does not exist. Give the --output_dir of a run as --model_dir.")


def why_empty(folder: str) -> str:
  """Explains why no curves are found at a path that exists: the second half of a sentence."""
  if filesystem.is_file(folder):
    return "is a file. Give the folder that holds it, the --output_dir of a run, as --model_dir."
  if files := _event_files(folder):
    return (
      f"holds no scalars in {os.path.basename(files[-1])}: the run ended before it wrote any (see "
      "--save_summary_steps), or the file is damaged."
    )
  below = [
    name for name in filesystem.list_folder(folder) if has_events(os.path.join(folder, name))
  ]
  if not below:
    return (
      "holds no event file with scalars, which a run writes every --save_summary_steps steps. Give "
      "the --output_dir of a run as --model_dir."
    )
  some = ", ".join(below[:8]) + (", ..." if len(below) > 8 else "")
  return f"holds no event file with scalars, but these folders in it do: {some}."


def has_events(folder: str | os.PathLike) -> bool:
  """Tells whether there are event files in a folder, not below it."""
  return bool(_event_files(folder))


def _event_files(folder: str | os.PathLike) -> list[str]:
  return filesystem.matching(os.path.join(glob.escape(os.fsdecode(folder)), _EVENTS))


def _newest_state(folder: str) -> Mapping:
  """Reads the state in the newest checkpoint of a run; empty without one that can be read."""
  from bert.checkpoints import bundle_files, finding, reading

  try:
    checkpoints = finding.list_checkpoints(folder)
    return reading.read_state(checkpoints[-1][1]) if checkpoints else {}
  except bundle_files.CheckpointError as error:
    logging.warning("The best step is not marked: %s", error)
    return {}


def read_curves(folder: str | os.PathLike) -> dict[str, Curve]:
  """Reads the scalars in the event files of a folder (not below it): tag -> step -> value.

  A run that was resumed has several files, which overlap if it was killed: the newest value counts.
  """
  import tensorflow as tf

  # Names are not in the order of time: they contain the process number and a counter.
  events = sorted(
    itertools.chain(*map(read_events, _event_files(folder))), key=lambda event: event.wall_time
  )
  curves: dict[str, Curve] = {}
  for event in events:
    for value in event.summary.value:
      number = tf.make_ndarray(value.tensor) if value.HasField("tensor") else value.simple_value
      if getattr(number, "shape", ()) == ():
        curves.setdefault(value.tag, {})[event.step] = float(number)
  return {tag: dict(sorted(curve.items())) for tag, curve in curves.items()}


def read_events(path: str) -> Iterator:
  """Yields the complete events of a file, whose run may have been killed or still be writing."""
  import tensorflow as tf

  try:
    for record in tf.data.TFRecordDataset(path):
      yield tf.compat.v1.Event.FromString(record.numpy())
  except tf.errors.DataLossError:
    logging.info("%s ends within an event; the events before it are shown.", path)
