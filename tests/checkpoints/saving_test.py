"""The original's files both ways, and no moment fatal to be killed at.

Alone: python -m pytest tests/checkpoints/saving_test.py (a minute, with `-m "not ci"` seconds)
"""

import errno
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from bert.checkpoints import finding, loading, reading, saving
from bert.checkpoints.bundle_files import CheckpointError
from tests.kit.paths import ROOT
from tests.kit.script_runs import assert_same_values, tensors
from tests.kit.small_checkpoints import (
  DATA,
  KERNEL,
  raising,
  save,
  steps_in,
  steps_listed,
  values_of,
  variables_of,
)


def test_round_trip_of_names_values_and_state(tmp_path):
  prefix = save(tmp_path / "new" / "folder", 20)
  assert prefix == str(tmp_path / "new" / "folder" / "model.ckpt-20")
  restored = variables_of(values_of(20))
  loading.restore(prefix, restored)
  assert_same_values({name: v.numpy() for name, v in restored.items()}, values_of(20))
  assert reading.read_state(prefix) == {"position": 640}
  assert finding.latest(str(tmp_path / "new" / "folder")) == prefix
  assert reading.names_and_shapes(prefix)[KERNEL] == ([3, 4], np.float32)


def test_files_are_those_of_the_original_plus_the_sidecar(tmp_path):
  save(tmp_path, 20)
  assert sorted(os.listdir(tmp_path)) == [
    "checkpoint",
    "model.ckpt-20.data-00000-of-00001",
    "model.ckpt-20.index",
    "model.ckpt-20.state.json",
  ]
  assert (tmp_path / "checkpoint").read_text() == (
    'model_checkpoint_path: "model.ckpt-20"\nall_model_checkpoint_paths: "model.ckpt-20"\n'
  )
  assert "_CHECKPOINTABLE_OBJECT_GRAPH" not in tensors(tmp_path / "model.ckpt-20")


def test_tensorflow_1_readers(tmp_path):
  for step in (10, 20):
    save(tmp_path, step)
  assert tf.train.latest_checkpoint(str(tmp_path)) == str(tmp_path / "model.ckpt-20")
  state = tf.train.get_checkpoint_state(str(tmp_path))
  assert list(state.all_model_checkpoint_paths) == [
    str(tmp_path / "model.ckpt-10"),
    str(tmp_path / "model.ckpt-20"),
  ]
  assert_same_values(tensors(tmp_path / "model.ckpt-20"), values_of(20))
  with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    kernel = tf.compat.v1.get_variable(KERNEL, [3, 4])
    tf.compat.v1.train.Saver().restore(session, str(tmp_path / "model.ckpt-20"))
    np.testing.assert_array_equal(session.run(kernel), values_of(20)[KERNEL])


def test_checkpoints_of_tensorflow_1_savers(tmp_path):
  with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    for name, value in values_of(3).items():
      tf.compat.v1.get_variable(name, initializer=tf.constant(value))
    session.run(tf.compat.v1.global_variables_initializer())
    saver = tf.compat.v1.train.Saver()
    saver.save(session, str(tmp_path / "model.ckpt"), global_step=3)
  prefix = finding.latest(str(tmp_path))
  assert prefix == str(tmp_path / "model.ckpt-3")
  assert reading.read_state(prefix) == {}
  restored = variables_of(values_of(3))
  loading.restore(prefix, restored)
  assert_same_values({name: v.numpy() for name, v in restored.items()}, values_of(3))
  # Our next save adopts and, beyond `keep`, removes it, with its .meta file.
  save(tmp_path, 4, keep=1)
  assert not list(tmp_path.glob("model.ckpt-3*"))


# ---------------------------------------------------------------------------------------------
# Retention


@pytest.mark.parametrize(("keep", "kept"), [(1, [4]), (2, [3, 4]), (0, [1, 2, 3, 4]), (None, 4)])
def test_other_numbers_are_kept(tmp_path, keep, kept):
  for step in (1, 2, 3, 4):
    save(tmp_path, step, keep=keep)
  assert steps_in(tmp_path) == steps_listed(tmp_path) == ([1, 2, 3, 4] if kept == 4 else kept)


@pytest.mark.parametrize(
  ("state", "keep", "kept"),
  [({"run": {}}, 5, [1, 2]), ({"run": {}}, 0, [0, 1, 2]), ({"fingerprint": {}}, 5, [0, 1, 2])],
)
def test_untrained_weights_of_a_run_go_with_the_next_step(tmp_path, state, keep, kept):
  saving.save(str(tmp_path), 0, {"a": tf.zeros([2])}, state, keep=keep)
  assert steps_in(tmp_path) == [0]
  for step in (1, 2):
    save(tmp_path, step, keep=keep)
  assert steps_in(tmp_path) == steps_listed(tmp_path) == kept


def test_after_going_back_the_abandoned_steps_go_first(tmp_path):
  for step in (10, 20, 30):
    save(tmp_path, step, keep=3)
  (tmp_path / "checkpoint").write_text('model_checkpoint_path: "model.ckpt-10"\n')
  save(tmp_path, 15, keep=3)
  assert steps_listed(tmp_path) == [20, 30, 15]
  save(tmp_path, 18, keep=3)
  assert steps_listed(tmp_path) == [30, 15, 18]
  assert finding.latest(str(tmp_path)).endswith("-18")


def test_a_failing_purge_only_warns(tmp_path, warnings, monkeypatch):
  save(tmp_path, 1)
  save(tmp_path, 2)
  monkeypatch.setattr(os, "remove", raising(OSError(errno.EROFS, "Read-only file system")))
  save(tmp_path, 3, keep=1)
  assert ["Read-only" in warning for warning in warnings] == [True, True]
  assert steps_in(tmp_path) == [1, 2, 3]
  assert steps_listed(tmp_path) == [3]
  monkeypatch.undo()
  save(tmp_path, 4, keep=2)
  assert steps_in(tmp_path) == steps_listed(tmp_path) == [3, 4]


# ---------------------------------------------------------------------------------------------
# Failing and dying while writing


def test_state_that_json_cannot_hold_is_refused_before_writing(tmp_path):
  with pytest.raises(TypeError, match="not JSON serializable"):
    saving.save(str(tmp_path / "out"), 1, values_of(1), {"x": np.int64(1)})
  assert not (tmp_path / "out").exists()


@pytest.mark.ci
def test_a_full_disk(tmp_path):
  """A real one: files may not grow beyond 400 bytes. It takes a process of its own."""
  older = save(tmp_path, 1)
  script = f"""
import resource, signal, sys
sys.path.insert(0, {str(ROOT)!r})
from bert.checkpoints.bundle_files import CheckpointError
from tests.kit import small_checkpoints
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (400, 400))
try:
  small_checkpoints.save({str(tmp_path)!r}, 2)
except CheckpointError as error:
  print(error)
"""
  done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
  assert f"Cannot write {tmp_path}/model.ckpt-2" in done.stdout
  assert "MiB free" in done.stdout
  assert "Earlier checkpoints are untouched" in done.stdout
  assert sorted(path.name for path in tmp_path.iterdir()) == [
    "checkpoint",
    *sorted(f"model.ckpt-1{suffix}" for suffix in (DATA, ".index", ".state.json")),
  ]
  assert finding.latest(str(tmp_path)) == older


def test_a_file_that_comes_out_short_replaces_nothing(tmp_path, monkeypatch):
  older = save(tmp_path, 1)
  write = tf.raw_ops.SaveV2

  def write_short(prefix, **kwargs):
    write(prefix=prefix, **kwargs)
    os.truncate(prefix + DATA, 100)

  monkeypatch.setattr(tf.raw_ops, "SaveV2", write_short)
  with pytest.raises(CheckpointError, match="truncated"):
    save(tmp_path, 2, keep=1)
  assert finding.latest(str(tmp_path)) == older
  assert steps_in(tmp_path) == steps_listed(tmp_path) == [1]


@pytest.mark.parametrize("function", ["replace", "fsync"])
def test_an_error_at_any_call_is_clean_and_harmless(tmp_path, monkeypatch, function):
  save(tmp_path, 1)
  original, calls, messages = getattr(os, function), [], []
  for nth in range(1, 99):
    calls.clear()

    def fail_at_nth(*args, **kwargs):
      calls.append(args)
      if len(calls) == nth:  # noqa: B023
        raise OSError(errno.EIO, "Input/output error")
      return original(*args, **kwargs)

    monkeypatch.setattr(os, function, fail_at_nth)
    try:
      save(tmp_path, 1 + nth, keep=2)
    except CheckpointError as error:
      messages.append(str(error))
    monkeypatch.undo()
    assert not list(tmp_path.glob(".tmp-*"))
    step, prefix = finding.list_checkpoints(str(tmp_path))[-1]
    assert_same_values(tensors(prefix), values_of(step))
    assert finding.latest(str(tmp_path)) is not None
    if len(calls) < nth:
      break
  assert len(messages) == nth - 1 > 0
  assert all("Input/output error" in message for message in messages)


def test_unusable_directories(tmp_path):
  (tmp_path / "file").write_text("")
  with pytest.raises(CheckpointError, match=r"Cannot write .*/file/model\.ckpt-1"):
    save(tmp_path / "file", 1)
  with pytest.raises(CheckpointError, match="local folders only"):
    saving.save("gs://bucket/out", 1, values_of(1), {})


def test_everything_is_on_disk_before_it_becomes_visible(tmp_path, monkeypatch):
  """The order of fsync and rename, which no killing shows: only a power cut would."""
  events = []
  replace, fsync = os.replace, os.fsync

  def record_fsync(descriptor):
    path = os.path.basename(os.readlink(f"/proc/self/fd/{descriptor}"))
    events.append(("sync", path.removeprefix(".").removesuffix(".tmp")))
    fsync(descriptor)

  def record_replace(source, target):
    if os.path.dirname(target) == str(tmp_path):  # what becomes visible, not what is aside
      events.append(("rename", os.path.basename(target)))
    replace(source, target)

  monkeypatch.setattr(os, "fsync", record_fsync)
  monkeypatch.setattr(os, "replace", record_replace)
  save(tmp_path, 3)
  name, folder = "model.ckpt-3", tmp_path.name
  renames = [event for event in events if event[0] == "rename"]
  assert renames[-2:] == [("rename", name + ".index"), ("rename", "checkpoint")]
  first = events.index(renames[0])
  for suffix in (DATA, ".index", ".state.json"):
    assert ("sync", name + suffix) in events[:first]
  index, pointer = (events.index(event) for event in renames[-2:])
  assert ("sync", folder) in events[first:index]
  assert ("sync", folder) in events[index:pointer]
  assert ("sync", "checkpoint") in events[index:pointer]
  assert ("sync", folder) in events[pointer:]


# Child process of the next tests: one import of TensorFlow, then, before its runtime starts, one
# fork for each moment to die at. The fork calls os._exit at its n-th call of something that
# changes the disk: nothing of Python's clean-up runs, as after SIGKILL.
_DYING = """
import os, shutil, sys
sys.path.insert(0, sys.argv[1])
import tensorflow as tf
from tests.kit import small_checkpoints

def die_at(nth):
  calls = 0
  def moment(before_dying=None):
    nonlocal calls
    calls += 1
    if calls == nth:
      if before_dying:
        before_dying()
      os._exit(137)
  def wrap(owner, name, damage=None):
    original = getattr(owner, name)
    def function(*args, **kwargs):
      moment()
      result = original(*args, **kwargs)
      if damage:
        moment(lambda: damage(**kwargs))
      return result
    setattr(owner, name, function)
  def half_written(prefix, **_):
    with open(prefix + ".data-00000-of-00001", "r+b") as file:
      os.ftruncate(file.fileno(), 77)
    open(prefix + ".index", "wb").close()
  for name in ("replace", "rename", "remove", "unlink", "rmdir", "mkdir", "link", "fsync"):
    wrap(os, name)
  wrap(tf.raw_ops, "SaveV2", damage=half_written)

for base, keep in zip(sys.argv[2::2], sys.argv[3::2]):
  for nth in range(1, 200):
    folder = f"{base}/killed/{nth:03}"
    shutil.copytree(base + "/seed", folder)
    child = os.fork()
    if child == 0:
      die_at(nth)
      small_checkpoints.save(folder, 30, keep=int(keep))
      os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status != 137:
      break
  if status != 0 or nth < 10:
    sys.exit(f"{base}: after {nth} runs a save ended with {status}")
"""


@pytest.fixture(scope="module")
def killed(tmp_path_factory) -> dict[str, list[pathlib.Path]]:
  """Folders as left by a `save` of step 30 that was killed at its 1st, 2nd, ... last call.

  What was there before: "later", steps 10 and 20, of which one may stay; "first", nothing; "same",
  a step 30 alone, with one tensor more.
  """
  bases = {name: tmp_path_factory.mktemp(name) for name in ("later", "first", "same")}
  save(bases["later"] / "seed", 10)
  save(bases["later"] / "seed", 20)
  (bases["first"] / "seed").mkdir()
  old_values = {**values_of(30), "old": np.ones([1], np.float32)}
  saving.save(str(bases["same"] / "seed"), 30, old_values, {"position": 960})
  runs = [text for base in bases.values() for text in (str(base), "1")]
  done = subprocess.run(
    [sys.executable, "-c", _DYING, str(ROOT), *runs], capture_output=True, text=True
  )
  assert done.returncode == 0, done.stderr
  return {name: sorted((base / "killed").iterdir()) for name, base in bases.items()}


def _resume(folder) -> dict[str, np.ndarray] | None:
  """What a run started in `folder` finds; it saves step 40, and leaves nothing else behind."""
  prefix = finding.latest(str(folder))
  found = None
  if prefix is not None:
    found = tensors(prefix)
    restored = variables_of(found)
    loading.restore(prefix, restored)
    assert_same_values({name: v.numpy() for name, v in restored.items()}, found)
    assert reading.read_state(prefix) == {"position": int(found["global_step"]) * 32}
  save(folder, 40, keep=1)
  assert sorted(path.name for path in folder.iterdir()) == [
    "checkpoint",
    *sorted(f"model.ckpt-40{suffix}" for suffix in (DATA, ".index", ".state.json")),
  ]
  assert tf.train.latest_checkpoint(str(folder)) == str(folder / "model.ckpt-40")
  return found


@pytest.mark.ci
def test_killed_while_saving(killed):
  steps = []
  for folder in killed["later"]:
    found = _resume(folder)
    assert found is not None, folder
    steps.append(int(found["global_step"]))
    assert_same_values(found, values_of(steps[-1]))
  assert set(steps) == {20, 30}
  assert steps == sorted(steps)


@pytest.mark.ci
def test_killed_while_replacing_the_only_checkpoint(killed):
  """The same step again: at each moment either the old content or the new, never neither."""
  is_old = []
  for folder in killed["same"]:
    assert [step for step, _ in finding.list_checkpoints(str(folder))] == [30], folder
    found = _resume(folder)
    is_old.append("old" in found)
    found.pop("old", None)
    assert_same_values(found, values_of(30))
  assert set(is_old) == {True, False}
  assert is_old == sorted(is_old, reverse=True)


def test_saving_the_same_step_again(tmp_path):
  save(tmp_path, 30)
  prefix = saving.save(str(tmp_path), 30, {**values_of(30), "more": np.ones([1])}, {"position": -1})
  assert "more" in tensors(prefix)
  assert reading.read_state(prefix) == {"position": -1}
  assert len(os.listdir(tmp_path)) == 4


def test_replacing_without_hard_links(tmp_path, monkeypatch):
  save(tmp_path, 30)
  monkeypatch.setattr(os, "link", raising(OSError(errno.EPERM, "Operation not permitted")))
  monkeypatch.setattr(saving, "_delete", raising(KeyboardInterrupt()))
  with pytest.raises(KeyboardInterrupt):
    save(tmp_path, 30)
  copy = tmp_path / ".old-model.ckpt-30" / "model.ckpt-30"
  assert_same_values(tensors(copy), values_of(30))
