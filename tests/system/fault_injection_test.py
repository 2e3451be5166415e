"""Every file operation of every program fails once, or is the last: nothing is lost or half there.

Alone: python -m pytest tests/system/fault_injection_test.py (half a minute; `-m slow`: whole
scripts, real deaths and failures of single system calls, which take an hour; `-rP` shows the
numbers)

What is promised, and checked after each fault:

- a file under its final name is what was there before, or what a run without faults writes there;
- an error ends with a message that names the place, and with no traceback;
- the same command again ends as if nothing had happened, and leaves nothing of the dead run.
"""

import contextlib
import dataclasses
import errno
import functools
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np
import pytest
import tensorflow as tf

from bert import create_pretraining_data, export_hub, extract_features, predict, run_classifier
from bert.checkpoints import finding, reading
from bert.exporting import saved_models
from bert.io import atomic_files, record_files
from bert.predicting import vector_files
from bert.scripts import result_files
from tests import run_classifier_test
from tests.kit import faults, toy_training
from tests.kit.faults import Loss
from tests.kit.paths import ROOT
from tests.kit.script_runs import Script, tensors

CODES = {"full disk": errno.ENOSPC, "broken disk": errno.EIO}


@dataclasses.dataclass(frozen=True)
class Program:
  """Something that writes to a folder.

  Attributes:
    run: raises an OSError or ValueError when it fails.
    prepare: fills the folder with what an earlier run has left.
    check_whole: raises an AssertionError if a file of the folder is not whole; it may be in a state
      in between. By default each file has to be equal to that of before or after.
    facts: of a folder in the end; equal for equal results. By default the hashes of its files.
  """

  run: Callable[[pathlib.Path], None]
  prepare: Callable[[pathlib.Path], None] = lambda folder: None
  check_whole: Callable[[pathlib.Path], None] | None = None
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


def run_script(module, **flags) -> None:
  """Runs a script in this process; its message becomes an OSError."""
  done = Script(module).run(**flags)
  if done.code is not None:
    assert done.code == 1, done
    assert "Traceback" not in done.err
    raise OSError(done.err[done.err.index("ERROR: ") :])


# ---------------------------------------------------------------------------------------------
# Preparing data.

TEXT = "the lighthouse stood on the pier\nit took eleven winters\n\na loaf needs flour\nand salt\n"


def create_data(folder, seed=2, **flags) -> None:
  (folder.parent / "text.txt").write_text(TEXT * 3)
  run_script(
    create_pretraining_data,
    **{
      "input_file": folder.parent / "text.txt",
      "output_file": f"{folder}/a.tfrecord,{folder}/b.tfrecord",
      "vocab_file": ROOT / "samples" / "vocab.txt",
      "max_seq_length": 16,
      "max_predictions_per_seq": 3,
      "dupe_factor": 2,
      "random_seed": seed,
      **flags,
    },
  )


def check_records(folder) -> None:
  """Of all files of records: readable, and as their manifests say."""
  for path in folder.glob("*.tfrecord"):
    assert list(record_files.records_of(path))


DATA = Program(create_data, functools.partial(create_data, seed=1), check_records)


def test_data(tmp_path):
  check(DATA, tmp_path, step=4)


def write_vectors(folder, seed=2) -> None:
  rng = np.random.default_rng(seed)
  results = [
    vector_files.TextVectors("a b", ["a", "b"], [1, 2], rng.normal(size=[2, 1, 40]))
    for _ in range(30 * seed)
  ]
  layout = vector_files.Layout([-1], 40, is_pooled=False, token_length=1)
  for ending, write in vector_files.WRITERS.items():
    write(str(folder / f"vectors.{ending}"), results, layout)


VECTORS = Program(write_vectors, functools.partial(write_vectors, seed=1))


def test_vectors(tmp_path):
  check(VECTORS, tmp_path, step=2)


def test_records_keep_their_manifest(tmp_path):
  """Never an old manifest beside a new file, or the other way round: that would be unreadable."""
  program = dataclasses.replace(VECTORS, check_whole=check_records)
  trial = Trial(program, tmp_path / "trial")
  for loss in Loss:
    trial.check_deaths(loss, step=100)


# ---------------------------------------------------------------------------------------------
# Results.


def write_results(folder, seed=2) -> None:
  rows = [np.array([seed / 10, 1 - seed / 10], np.float32)] * 3
  result_files.write_label_map(str(folder), ["no", "yes"])
  result_files.write_eval_results(str(folder / "eval_results.txt"), {"eval_accuracy": seed / 3})
  result_files.write_predictions(str(folder), "", "abc", rows, ["no", "yes"], "classification")
  atomic_files.write_text(folder / "run.json", json.dumps({"seed": seed}))


RESULTS = Program(write_results, functools.partial(write_results, seed=1))


def test_results(tmp_path):
  check(RESULTS, tmp_path, step=3)


# ---------------------------------------------------------------------------------------------
# Exports.


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


MODEL = Program(export_model, functools.partial(export_model, weight=1.0), answer_of, answer_of)


def test_exports(tmp_path):
  check(MODEL, tmp_path, step=8)


def test_exports_where_folders_cannot_be_exchanged(tmp_path, monkeypatch):
  """A death between two renames: the old export has another name then, and gets its own again."""
  monkeypatch.setattr(atomic_files, "_exchange", lambda *_: False)
  trial = Trial(MODEL, tmp_path / "trial")
  old = visible(trial._seed)

  def is_somewhere(folder):
    places = [folder / "model", folder / ".model.old"]
    assert any(place.exists() for place in places)
    if places[0].exists():
      answer_of(folder)

  moments, states = 0, tmp_path / "moments"
  faults.fresh_copy(trial._seed, trial.work)
  found, moments = faults.states_of_death(lambda: export_model(trial.work), trial.work, states)
  assert moments > 10
  between = [state for state in found if not (state / "model").exists()]
  assert between
  for state in found:
    is_somewhere(state)
  with contextlib.suppress(RuntimeError), atomic_files.folder_written_whole(between[0] / "model"):
    raise RuntimeError("the next export fails, too")
  assert visible(between[0]) == old
  assert names(between[0]) == set(old)


# ---------------------------------------------------------------------------------------------
# Training.


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


TRAINING = Program(
  train_toy, functools.partial(train_toy, steps=2), check_resumable, trained_weights
)


def test_training(tmp_path):
  check(TRAINING, tmp_path, step=16)


@pytest.fixture(scope="module")
def trial(tmp_path_factory) -> Trial:
  return Trial(TRAINING, tmp_path_factory.mktemp("training") / "trial")


def test_a_death_after_the_last_step_leaves_nothing_for_ever(trial, tmp_path):
  """No later `save` clears what the last one left: the same command does, as it finds no work."""
  faults.fresh_copy(trial._seed, trial.work)
  run = functools.partial(train_toy, trial.work)
  states, _ = faults.states_of_death(run, trial.work, tmp_path / "states")
  finished = [s for s in states if str(finding.latest(str(s))).endswith("-5")]
  assert [s for s in finished if names(s) != trial._names]
  for state in finished:
    faults.fresh_copy(state, trial.work)
    trial._check_second_run(state.name)


def test_what_is_cleaned_is_ours(tmp_path):
  """A later checkpoint, put there by hand, is none that was about to make room."""
  train_toy(tmp_path, steps=4)
  for path in tmp_path.glob("model.ckpt-4.*"):
    shutil.copy(path, str(path).replace("-4.", "-9."))
  train_toy(tmp_path, steps=4)
  assert [step for step, _ in finding.list_checkpoints(str(tmp_path))] == [2, 4, 9]


class FullDisk:
  """A writer of events that cannot write."""

  def flush(self, *_):
    raise tf.errors.ResourceExhaustedError(None, None, "{{node x}} events.out; No space left")

  as_default = close = flush


@pytest.mark.parametrize("when", ["created", "written"])
def test_events_that_cannot_be_written_cost_no_run(trial, monkeypatch, caplog, when):
  creates = FullDisk().flush if when == "created" else lambda *_: FullDisk()
  monkeypatch.setattr(tf.summary, "create_file_writer", creates)
  faults.fresh_copy(trial._seed, trial.work)
  train_toy(trial.work, save_summary_steps=1)
  assert trained_weights(trial.work) == trial._facts
  assert "the run goes on: events.out; No space left" in caplog.text


# ---------------------------------------------------------------------------------------------
# Whole scripts.


@pytest.fixture(scope="module")
def flags(tmp_path_factory) -> dict:
  """The flags of a tiny classifier."""
  folder = tmp_path_factory.mktemp("model")
  run_classifier_test.write(folder, "vocab.txt", *run_classifier_test.VOCAB)
  config = json.dumps(run_classifier_test.CONFIG)
  run_classifier_test.write(folder, "bert_config.json", config)
  run_classifier_test.write_mrpc(folder / "MRPC", {"train": 20, "dev": 4, "test": 4})
  return {
    "task_name": "MRPC",
    "data_dir": folder / "MRPC",
    "vocab_file": folder / "vocab.txt",
    "bert_config_file": folder / "bert_config.json",
    "max_seq_length": 16,
    "train_batch_size": 8,
    "num_train_epochs": 2.0,
    "save_checkpoints_steps": 2,
    "learning_rate": 0.01,
  }


def classify(folder, flags, **more) -> None:
  run_script(run_classifier, **{**flags, "output_dir": folder, **more})


def check_run(folder) -> None:
  checkpoints_are_whole(folder)
  for path in folder.glob("*.tf_record"):
    list(record_files.records_of(path))
  for path in folder.glob("*.t[sx][vt]"):
    assert path.read_text().endswith("\n")


def run_facts(folder) -> dict:
  """The weights, and the files of results."""
  results = {n: x for n, x in visible(folder).items() if n.endswith((".tsv", ".txt", ".json"))}
  return {**trained_weights(folder), **results}


@pytest.mark.slow
def test_run_classifier_trains(flags, tmp_path):
  train = functools.partial(classify, flags=flags, do_train=True)
  earlier = functools.partial(train, num_train_epochs=1.0)
  check(Program(train, earlier, check_run, run_facts), tmp_path)


@pytest.mark.slow
def test_run_classifier_evaluates_and_predicts(flags, tmp_path):
  train = functools.partial(classify, flags=flags, do_train=True)
  answer = functools.partial(classify, flags=flags, do_eval=True, do_predict=True)
  check(Program(answer, train, check_run, run_facts), tmp_path)


def check_export(folder) -> None:
  for path in folder.rglob("saved_model.pb"):
    if not any(part.startswith(".") for part in path.relative_to(folder).parts):
      tf.saved_model.load(str(path.parent))


def names_only(folder) -> dict:
  return dict.fromkeys(visible(folder))


@pytest.mark.slow
def test_export_hub(flags, tmp_path):
  classify(tmp_path / "trained", flags, do_train=True)

  def export(folder):
    run_script(
      export_hub,
      init_checkpoint=tmp_path / "trained",
      export_dir=folder,
      max_seq_length=16,
      **{name: flags[name] for name in ("vocab_file", "bert_config_file")},
    )

  check(Program(export, export, check_export, names_only), tmp_path, step=3)


@pytest.mark.slow
@pytest.mark.parametrize("ending", vector_files.WRITERS)
def test_extract_features_and_predict(flags, tmp_path, ending):
  classify(tmp_path / "trained", flags, do_train=True)
  (tmp_path / "texts.txt").write_text("a good film\nthe film was bad\n")
  model = {name: flags[name] for name in ("vocab_file", "bert_config_file", "max_seq_length")}
  common = {"input_file": tmp_path / "texts.txt", "init_checkpoint": tmp_path / "trained", **model}

  def answer(folder):
    out = folder / f"vectors.{ending}"
    run_script(extract_features, layers="-1", output_format=ending, output_file=out, **common)
    run_script(predict, task="vectors", output_file=folder / "vectors.out", **common)

  check(Program(answer, answer), tmp_path)


# ---------------------------------------------------------------------------------------------
# Real deaths, and failures of system calls.


def create_data_with_workers(folder, seed=2) -> None:
  create_data(folder, seed, num_workers=2)


DATA_OF_WORKERS = Program(
  create_data_with_workers, functools.partial(create_data_with_workers, seed=1), check_records
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

# A process that has imported everything and forks for each run, before TensorFlow's runtime starts.
# It reads lines of JSON, and tells the number of each child, then how it ended. A child waits for a
# file to appear, so that strace can be attached before.
_SERVER = """
import contextlib, json, os, pathlib, sys, time, traceback
sys.path[:0] = sys.argv[1:3]
from tests.system import fault_injection_test as tests; from tests.kit import faults

def work(program, folder, die_at, go, log):
  while not os.path.exists(go):
    time.sleep(0.005)
  out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
  os.dup2(out, 1)
  os.dup2(out, 2)
  dying = faults.die_at(folder, die_at) if die_at else contextlib.nullcontext()
  try:
    with dying:
      tests.PROGRAMS[program].run(pathlib.Path(folder))
  except (OSError, ValueError) as error:
    os.write(2, f"ERROR: {error}".encode())
    os._exit(1)
  except BaseException:
    os.write(2, traceback.format_exc().encode())
    os._exit(3)
  os._exit(0)

print("ready", flush=True)
for line in sys.stdin:
  child = os.fork()
  if not child:
    work(**json.loads(line))
  print(child, flush=True)
  print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


class Server:
  """Runs programs in processes of their own; see `_SERVER`."""

  def __init__(self, folder: pathlib.Path):
    self._folder = folder
    self._process = subprocess.Popen(
      [sys.executable, "-c", _SERVER, str(ROOT), str(ROOT / "tests")],
      stdin=subprocess.PIPE,
      stdout=subprocess.PIPE,
      text=True,
    )
    assert self._answer() == "ready"
    self.log, self.trace = folder / "log", folder / "trace"

  def _answer(self) -> str:
    return self._process.stdout.readline().strip()

  def run(self, program, folder, die_at=0, inject=None, kill_when=None) -> int:
    """Runs a program to its end, which may be violent; returns the exit code.

    Args:
      program: one of `PROGRAMS`.
      folder: where it writes.
      die_at: see `faults.die_at`; 0 for never.
      inject: what strace is to do, such as `fsync:error=EIO:when=3`.
      kill_when: a function; once it returns True, the program is killed.
    """
    go = self._folder / "go"
    go.unlink(missing_ok=True)
    request = {"program": program, "folder": str(folder), "die_at": die_at, "go": str(go)}
    self._process.stdin.write(json.dumps({**request, "log": str(self.log)}) + "\n")
    self._process.stdin.flush()
    child = int(self._answer())
    tracer = self._trace(child, inject) if inject else None
    go.touch()
    if kill_when:
      while not kill_when():
        time.sleep(0.005)
      os.kill(child, signal.SIGKILL)
    code = int(self._answer())
    if tracer:
      tracer.wait(timeout=60)
    return code

  def _trace(self, child: int, inject: str) -> subprocess.Popen:
    calls = inject.split(":")[0]
    command = ["strace", "-f", "-y", "-o", str(self.trace), "-e", f"trace={calls}"]
    tracer = subprocess.Popen(
      [*command, "-e", f"inject={inject}", "-p", str(child)], stderr=subprocess.PIPE, text=True
    )
    told = tracer.stderr.readline()
    if "attached" not in told:
      os.kill(child, signal.SIGKILL)
      self._answer()
      pytest.skip(f"strace cannot attach to a process here: {told.strip()}")
    return tracer

  def close(self) -> None:
    self._process.stdin.close()
    self._process.wait(timeout=60)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
  server = Server(tmp_path_factory.mktemp("server"))
  yield server
  server.close()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["data", "vectors", "results", "export", "training"])
def test_a_real_death_leaves_what_was_foretold(server, tmp_path, name):
  """Copies of a folder before each operation stand for deaths: here are the deaths."""
  trial = Trial(PROGRAMS[name], tmp_path / "trial")
  deaths = 0
  while True:
    faults.fresh_copy(trial._seed, trial.work)
    code = server.run(name, trial.work, die_at=deaths + 1)
    if code == 0:
      break
    assert code == faults.EXIT_CODE, server.log.read_text()
    deaths += 1
    trial._check_whole(f"death {deaths}")
    trial._check_second_run(f"death {deaths}")
  faults.fresh_copy(trial._seed, trial.work)
  run = functools.partial(PROGRAMS[name].run, trial.work)
  _, moments = faults.states_of_death(run, trial.work, tmp_path / "states")
  assert moments == deaths + 1  # the last of them is the end of the run
  print(f"faults tried: {deaths} real deaths of {name}; none lost, none unreadable")


def newest_step(folder) -> int:
  return max(int(path.stem.rpartition("-")[2]) for path in folder.glob("model.ckpt-*.index"))


@pytest.mark.slow
def test_fifty_kills_at_random_moments(server, tmp_path):
  """Each of them somewhere after a checkpoint more: while a step runs, or while the next is saved.

  `tests/system/run_pretraining_kill_test.py` does it to a whole script.
  """
  trial = Trial(LONG_TRAINING, tmp_path / "trial")
  faults.fresh_copy(trial._seed, trial.work)
  rng, reached = random.Random(1), []
  for _ in range(50):
    reached.append(newest_step(trial.work))

    def is_time(step=reached[-1]):
      if newest_step(trial.work) <= step:  # fewer, while that step is written once more
        return False
      time.sleep(rng.uniform(0.0, 0.03))
      return True

    code = server.run("long training", trial.work, kill_when=is_time)
    assert code == -signal.SIGKILL, server.log.read_text()[-2000:]
    trial._check_whole(f"killed {len(reached)} times")
  assert reached == sorted(reached)
  trial._check_second_run("the end")
  print(f"killed {len(reached)} times, from step {reached[0]} to {newest_step(trial.work)}")


# What is done to a program, as strace has it; a program may die or be told of an error.
INJECTIONS = [
  ("write,pwrite64,writev", "error=ENOSPC"),
  ("write,pwrite64,writev", "error=EIO"),
  ("write,pwrite64,writev", "signal=KILL"),
  ("fsync,fdatasync", "error=EIO"),
  ("fsync,fdatasync", "signal=KILL"),
  ("rename,renameat,renameat2", "error=EIO"),
  ("rename,renameat,renameat2", "signal=KILL"),
  ("mkdir,mkdirat", "error=ENOSPC"),
  ("mkdir,mkdirat", "signal=KILL"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("calls", "what"), INJECTIONS)
@pytest.mark.parametrize("name", [name for name in PROGRAMS if name != "long training"])
def test_system_calls(server, tmp_path, name, calls, what):
  """The n-th call of each thread and process fails, or is the last: also those of C++."""
  if not shutil.which("strace"):
    pytest.skip("there is no strace: apt-get install strace")
  trial = Trial(PROGRAMS[name], tmp_path / "trial")
  tried = nth = 0
  while True:
    nth += 1
    faults.fresh_copy(trial._seed, trial.work)
    code = server.run(name, trial.work, inject=f"{calls}:{what}:when={nth}")
    trace = server.trace.read_text()
    injected = [line for line in trace.splitlines() if "(INJECTED)" in line or "SIGKILL" in line]
    if not injected:
      break
    here = [line for line in injected if str(trial.work) in line]
    is_kill = what == "signal=KILL"
    tried += bool(here) or is_kill
    about = f"{calls}, {what}, {nth}, exit code {code}: {server.log.read_text()[-2000:]} {here}"
    trial._check_whole(about)
    if is_kill:
      assert code != 0 or name == "data of workers", about
    elif here:
      assert code in (0, 1), about
      if code == 1:
        assert str(trial.work) in server.log.read_text(), about
      else:
        assert trial._program.facts(trial.work) == trial._facts, about
    trial._check_second_run(about)
  print(f"faults tried: {tried} of {name}, {calls}, {what}; none lost, none unreadable")
