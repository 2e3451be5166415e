"""Programs that write files, and trials of them: each file operation fails once, or is the last.

  check(Program(run, prepare), tmp_path)

What is promised, and checked after each fault:

- a file under its final name is what was there before, or what a run without faults writes there;
- an error ends with a message that names the place, and with no traceback;
- the same command again ends as if nothing had happened, and leaves nothing of the dead run.
"""

import dataclasses
import errno
import functools
import json
import pathlib
import shutil
from collections.abc import Callable

import numpy as np
import tensorflow as tf

from bert import create_pretraining_data
from bert.checkpoints import finding, label_map, reading
from bert.exporting import saved_models
from bert.io import atomic_files, record_files
from bert.predicting import vector_files
from bert.scripts import result_files
from tests.kit import faults, toy_training
from tests.kit.faults import Loss
from tests.kit.paths import ROOT
from tests.kit.script_runs import Script, tensors

CODES = {"full disk": errno.ENOSPC, "broken disk": errno.EIO}


@dataclasses.dataclass(frozen=True)
class Program:
  """Something that writes to a folder."""

  run: Callable[[pathlib.Path], None]  # raises an OSError or ValueError when it fails
  # Fills the folder with what an earlier run has left.
  prepare: Callable[[pathlib.Path], None] = lambda folder: None
  # Raises an AssertionError if a file of the folder is not whole; it may be in a state in between.
  # By default each file has to be equal to that of before or after.
  check_whole: Callable[[pathlib.Path], None] | None = None
  # Of a folder in the end; equal for equal results. By default the hashes of its files.
  facts: Callable[[pathlib.Path], dict] = lambda folder: visible(folder)


def is_log(name: str) -> bool:
  """Event files are logs: their readers stop at the first record that is not whole."""
  return name.startswith("events.out.") or name == ".lock"


def visible(folder) -> dict[str, str]:
  """Hashes of the files that anybody would find."""
  hashes = faults.contents(folder, is_log)
  return {path: x for path, x in hashes.items() if not any(p[0] == "." for p in path.split("/"))}


def names(folder) -> set[str]:
  """All files, hidden ones too, but for logs."""
  return set(faults.contents(folder, is_log))


class Trial:
  """A program, the folder it starts from, and what it makes of it without any fault."""

  def __init__(self, program: Program, base: pathlib.Path):
    self._program = program
    self._base = base
    self.work = base / "work"  # Every run is of this one folder: some files hold its name.
    self._seed = base / "seed"
    self.work.mkdir(parents=True)
    program.prepare(self.work)
    faults.fresh_copy(self.work, self._seed)
    self._before = visible(self.work)
    program.run(self.work)
    self._after, self._names = visible(self.work), names(self.work)
    self._facts = program.facts(self.work)
    # Hashes of what was left, and seen to be whole, and to end well: equal folders need one look.
    self._whole: set[tuple] = set()
    self._finished: set[tuple] = set()
    self.tried = 0

  def check_failures(self, code: int, step: int = 1) -> None:
    """Lets operations fail, every one or every `step`-th."""
    for failure in faults.every_failure(self.work, code, step=step):
      faults.fresh_copy(self._seed, self.work)
      error = None
      with failure:
        try:
          self._program.run(self.work)
        except (OSError, ValueError) as caught:
          error = caught
      if failure.operation is None:
        assert error is None
        break
      self.tried += 1
      self._check_whole(failure)
      if error is None:  # It did not matter: then nothing may be missing.
        assert self._program.facts(self.work) == self._facts, failure
      else:
        assert str(self.work) in str(error), f"{failure}: {error!r}"
        assert "Traceback" not in str(error), failure
      self._check_second_run(failure)
    assert self.tried, "no operation was seen"

  def check_deaths(self, loss: Loss, step: int = 1) -> None:
    """Looks at what a death at any moment leaves; begins again from every `step`-th state."""
    faults.fresh_copy(self._seed, self.work)
    run = functools.partial(self._program.run, self.work)
    shutil.rmtree(self._base / "states", ignore_errors=True)
    states, moments = faults.states_of_death(run, self.work, self._base / "states", loss)
    self.tried += moments
    for number, state in enumerate(states):
      faults.fresh_copy(state, self.work)
      self._check_whole(f"{loss}, {state.name}")
      if number % step == 0:
        self._check_second_run(f"{loss}, {state.name}")

  def _check_whole(self, what) -> None:
    now = visible(self.work)
    lost = set(self._before) & set(self._after) - set(now)
    assert not lost, f"{what}: lost {lost}"
    if self._program.check_whole:
      if tuple(now.items()) not in self._whole:
        self._program.check_whole(self.work)
        self._whole.add(tuple(now.items()))
      return
    for path, found in now.items():
      assert found in (self._before.get(path), self._after.get(path)), f"{what}: {path}"

  def _check_second_run(self, what) -> None:
    left = tuple(faults.contents(self.work, is_log).items())
    if left in self._finished:
      return
    self._program.run(self.work)
    assert self._program.facts(self.work) == self._facts, what
    assert names(self.work) == self._names, what
    self._finished.add(left)


def check(program, tmp_path, step=1, losses=tuple(Loss)) -> None:
  """The whole of it, and a line with the number of faults."""
  trial = Trial(program, tmp_path / "trial")
  told = []
  for name, code in CODES.items():
    tried, trial.tried = trial.tried, 0
    trial.check_failures(code, step)
    told.append(f"{trial.tried} of a {name}")
    trial.tried += tried
  for loss in losses:
    tried = trial.tried
    trial.check_deaths(loss, step)
    told.append(f"{trial.tried - tried} deaths ({loss.name.lower()} lost)")
  print(f"faults tried: {trial.tried}: {', '.join(told)}; none lost, none unreadable")


# ---------------------------------------------------------------------------------------------
# Programs.


def run_script(module, **flags) -> None:
  """Runs a script in this process; its message becomes an OSError."""
  done = Script(module).run(**flags)
  if done.code is not None:
    assert done.code == 1, done
    assert "Traceback" not in done.err
    raise OSError(done.err[done.err.index("ERROR: ") :])


TEXT = "the lighthouse stood on the pier\nit took eleven winters\n\na loaf needs flour\nand salt\n"


def create_data(folder, seed=2, **flags) -> None:
  if flags.get("format") != "electra":
    flags = {"max_predictions_per_seq": 3, "dupe_factor": 2, **flags}
  (folder.parent / "text.txt").write_text(TEXT * 3)
  run_script(
    create_pretraining_data,
    **{
      "input_file": folder.parent / "text.txt",
      "output_file": f"{folder}/a.tfrecord,{folder}/b.tfrecord",
      "vocab_file": ROOT / "samples" / "vocab.txt",
      "max_seq_length": 16,
      "random_seed": seed,
      **flags,
    },
  )


def check_records(folder) -> None:
  """Of all files of records: readable, and as their manifests say."""
  for path in folder.glob("*.tfrecord"):
    assert list(record_files.records_of(path))


def create_data_with_workers(folder, seed=2) -> None:
  create_data(folder, seed, num_workers=2)


def write_vectors(folder, seed=2) -> None:
  rng = np.random.default_rng(seed)
  results = [
    vector_files.TextVectors("a b", ["a", "b"], [1, 2], rng.normal(size=[2, 1, 40]))
    for _ in range(30 * seed)
  ]
  layout = vector_files.Layout([-1], 40, is_pooled=False, token_length=1)
  for ending, write in vector_files.WRITERS.items():
    write(str(folder / f"vectors.{ending}"), results, layout)


def write_results(folder, seed=2) -> None:
  rows = [np.array([seed / 10, 1 - seed / 10], np.float32)] * 3
  label_map.write(str(folder), ["no", "yes"])
  result_files.write_eval_results(str(folder / "eval_results.txt"), {"eval_accuracy": seed / 3})
  result_files.write_predictions(str(folder), "", "abc", rows, ["no", "yes"], "classification")
  atomic_files.write_text(folder / "run.json", json.dumps({"seed": seed}))


class Doubler(tf.train.Checkpoint):
  """The smallest thing that is worth a SavedModel."""

  def __init__(self, weight):
    super().__init__()
    self.weight = tf.Variable([weight])

  @tf.function(autograph=False, input_signature=[tf.TensorSpec([], tf.float32)])
  def serve(self, x):
    return {"y": self.weight * x}


def export_model(folder, weight=2.0) -> None:
  model = Doubler(weight)
  with saved_models.written_aside(str(folder / "model")) as aside:
    saved_models.save(model, aside, {"serving_default": model.serve}, {"weight.txt": str(weight)})


def answer_of(folder) -> dict:
  """What a model answers, and that all of its files are those of one export."""
  model = tf.saved_model.load(str(folder / "model"))
  weight = float(model.signatures["serving_default"](tf.constant(1.0))["y"][0])
  assert (folder / "model/assets.extra/weight.txt").read_text() == str(weight)
  return {"weight": weight, "names": sorted(visible(folder))}


def train_toy(folder, steps=5, **config) -> None:
  config = {"save_checkpoints_steps": 2, "keep_checkpoint_max": 2, **config}
  toy_training.make(folder, {"dropout": True}, **config).train(toy_training.train_input_fn, steps)


def checkpoints_are_whole(folder) -> None:
  """Whatever looks like a checkpoint is one; with one there, there always is one to resume."""
  for path in folder.glob("*.index"):
    prefix = str(path.with_suffix(""))
    names_of = reading.names_and_shapes(prefix)
    assert all(np.isfinite(tf.train.load_variable(prefix, name)).all() for name in names_of)
    assert "run" in reading.read_state(prefix)
  for path in folder.glob("*.json"):
    json.loads(path.read_text())


def trained_weights(folder) -> dict:
  """Of the newest checkpoint, in a form that can be compared."""
  prefix = finding.latest(str(folder))
  return {name: array.tobytes() for name, array in tensors(prefix).items()}


def check_resumable(folder) -> None:
  checkpoints_are_whole(folder)
  assert finding.latest(str(folder)), "the checkpoint of step 2 was there"


DATA = Program(create_data, functools.partial(create_data, seed=1), check_records)

# Its files are open while the text is read.
DATA_OF_ELECTRA = Program(
  functools.partial(create_data, format="electra"),
  functools.partial(create_data, seed=1, format="electra"),
  check_records,
)

DATA_OF_WORKERS = Program(
  create_data_with_workers, functools.partial(create_data_with_workers, seed=1), check_records
)

VECTORS = Program(write_vectors, functools.partial(write_vectors, seed=1))

RESULTS = Program(write_results, functools.partial(write_results, seed=1))

MODEL = Program(export_model, functools.partial(export_model, weight=1.0), answer_of, answer_of)

TRAINING = Program(
  train_toy, functools.partial(train_toy, steps=2), check_resumable, trained_weights
)

LONG_TRAINING = Program(
  functools.partial(train_toy, steps=240, save_checkpoints_steps=1),
  functools.partial(train_toy, steps=2),
  check_resumable,
  trained_weights,
)

PROGRAMS = {
  "data": DATA,
  "data of workers": DATA_OF_WORKERS,
  "vectors": VECTORS,
  "results": RESULTS,
  "export": MODEL,
  "training": TRAINING,
  "long training": LONG_TRAINING,
}
