"""The mean of the weights of several runs, greedily chosen ("model soup").

Runs of the same settings from the same checkpoint often lie in one basin, so that the mean of their
weights is as good as the mean of their outputs, at the cost of a single model (Wortsman et al.
2022, arXiv:2203.05482, the greedy recipe): in the order of their dev scores, a run joins the mean
if the dev score does not fall. Heads that start from different random values, as of different
seeds, are averaged too; where that does harm, the dev score falls, and the run stays outside.

Pure Python and NumPy; a tensor at a time is in memory.
"""

import dataclasses
import os
import shutil
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from absl import logging

from bert.checkpoints import bundle_files, load_report, numpy_reader, numpy_writer
from bert.io import atomic_files, byte_pair_files, vocabulary_kind
from bert.scripts import run_files
from bert.sweeps.sweep import Outcome, ranked
from bert.tasks import run_statistics

_FILES_OF_RUN = (
  *(run_files.CONFIG, vocabulary_kind.VOCABULARY, vocabulary_kind.SENTENCE_PIECES),
  byte_pair_files.TOKENIZER,
  run_files.LABEL_MAP,
  *(run_files.FLAGS, run_files.VERSIONS),
)


@dataclasses.dataclass(frozen=True)
class Result:
  """What came of averaging weights."""

  members: list[int]  # seeds of the runs in the mean, the best first
  score: float  # of the mean on the dev set
  median: float  # of the scores of all runs
  is_kept: bool  # whether the mean was written: it has several members, and beats the median run
  results: dict[str, float]  # name -> number, of the mean, if it has several members


def make(
  folder: str, outcomes: Sequence[Outcome], evaluate: Callable[[str], Outcome | None]
) -> Result | None:
  """Averages weights as far as the dev score does not fall, and keeps what beats the median run.

  Of two or more finished runs, `folder` becomes a complete run if its score is above their median;
  else there is no such folder afterwards. `evaluate` scores the weights of a folder; its None
  stops, and is returned.

  Raises:
    OSError: a file cannot be read or written.
    ValueError: a checkpoint is missing or damaged.
  """
  best, *others = ranked(outcomes)
  trial, accepted = (atomic_files.hidden_beside(folder, name) for name in ("trial", "accepted"))
  members, score, results = [best], best.score, {}
  try:
    for other in others:
      write_mean(trial, [*members, other])
      outcome = evaluate(trial)
      if outcome is None:
        return None
      joins = outcome.score >= score
      names = [f"seed_{member.run.seed}" for member in (*members, other)]
      shown = run_statistics.shown(best.metrics[0], outcome.score)
      logging.info("Mean of %s: %s%s", ", ".join(names), shown, "" if joins else ", not kept")
      if joins:
        members, score, results = [*members, other], outcome.score, dict(outcome.results)
        shutil.rmtree(accepted, ignore_errors=True)
        os.replace(trial, accepted)
    median = statistics.median(outcome.score for outcome in outcomes)
    is_kept = len(members) > 1 and score > median
    shutil.rmtree(folder, ignore_errors=True)
    if is_kept:
      os.replace(accepted, folder)
    return Result([member.run.seed for member in members], score, median, is_kept, results)
  finally:
    shutil.rmtree(trial, ignore_errors=True)
    shutil.rmtree(accepted, ignore_errors=True)


def write_mean(folder: str, outcomes: Sequence[Outcome]) -> None:
  """Writes the mean of the weights of runs as the folder of a run.

  Its other files, the step among them, are those of the first.

  Raises:
    OSError: a file cannot be read or written.
    ValueError: a checkpoint is missing or damaged, or of another model.
  """
  shutil.rmtree(folder, ignore_errors=True)
  os.makedirs(folder)
  for name in _FILES_OF_RUN:
    source = os.path.join(outcomes[0].run.folder, name)
    if os.path.isfile(source):
      atomic_files.copy_file(source, os.path.join(folder, name))
  prefixes = [numpy_reader.find_prefix(outcome.run.folder) for outcome in outcomes]
  mean = _Mean([numpy_reader.CheckpointReader(prefix) for prefix in prefixes])
  name = os.path.basename(prefixes[0])
  prefix = os.path.join(folder, name)
  numpy_writer.write(prefix, mean)
  state = bundle_files.read_sidecar(prefixes[0]).get("state", {})
  bundle_files.write_sidecar(prefix, state)
  pointer = f'model_checkpoint_path: "{name}"\nall_model_checkpoint_paths: "{name}"\n'
  atomic_files.write_text(os.path.join(folder, "checkpoint"), pointer)


class _Mean(Mapping):
  """Name -> mean of a tensor, read when it is asked for; whole numbers are the first's."""

  def __init__(self, readers: Sequence[numpy_reader.CheckpointReader]):
    self._readers = readers
    first = readers[0]
    self._names = [name for name in first.shapes if not load_report.is_slot(name)]
    for name in self._names:
      for reader in readers[1:]:
        if reader.shapes.get(name) != first.shapes[name]:
          raise ValueError(f"{reader.prefix} and {first.prefix} differ in the shape of {name}.")

  def __getitem__(self, name: str) -> np.ndarray:
    first = self._readers[0].read(name)
    if first.dtype.kind != "f":
      return first
    total = first.astype(np.float64)
    for reader in self._readers[1:]:
      total += reader.read(name)
    return (total / len(self._readers)).astype(first.dtype)

  def __iter__(self) -> Iterator[str]:
    return iter(self._names)

  def __len__(self) -> int:
    return len(self._names)
