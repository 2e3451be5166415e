"""Event files as TensorBoard reads them: those of made-up runs, and what a run has written."""

import contextlib
import os
import pathlib
from collections.abc import Mapping, Sequence

import numpy as np
import tensorflow as tf


def write_events(
  folder: pathlib.Path, values: Mapping[str, Sequence[float]], first_step: int = 1
) -> pathlib.Path:
  """Writes tag -> values of the steps from `first_step` on; returns the new file."""
  before = set(folder.glob("*")) if folder.exists() else set()
  writer = tf.summary.create_file_writer(str(folder))
  with contextlib.closing(writer), writer.as_default(0):
    for tag, numbers in values.items():
      for step, number in enumerate(numbers, start=first_step):
        tf.summary.scalar(tag, number, step=step)
  [path] = set(folder.glob("*")) - before
  return path


def write_run(folder: pathlib.Path) -> pathlib.Path:
  """A run of 50 steps with an evaluation at its end; returns its folder."""
  falling = np.linspace(8.0, 3.0, 50).tolist()
  names = ("loss", "masked_lm_loss", "next_sentence_loss", "masked_lm_accuracy", "examples/sec")
  write_events(folder, dict.fromkeys(names, falling))
  write_events(folder / "eval", {"loss": [5.0], "masked_lm_loss": [4.0]}, 50)
  return folder


def scalars_in(folder: str | pathlib.Path) -> dict[int, dict[str, float]]:
  """step -> {tag: value} of the event files of a folder."""
  found = {}
  for path in sorted(tf.io.gfile.glob(os.path.join(folder, "events.*"))):
    for event in tf.compat.v1.train.summary_iterator(path):
      for value in event.summary.value:
        found.setdefault(event.step, {})[value.tag] = float(tf.make_ndarray(value.tensor))
  return found


def series_in(folder: str | pathlib.Path) -> dict[str, dict[int, float]]:
  """tag -> {step: value} of the event files of a folder."""
  found: dict[str, dict[int, float]] = {}
  for step, values in scalars_in(folder).items():
    for tag, value in values.items():
      found.setdefault(tag, {})[step] = value
  return found
