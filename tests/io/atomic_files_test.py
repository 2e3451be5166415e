"""Files that appear whole, and folders that are held. No TensorFlow, a second."""

import errno
import os
import stat
import subprocess
import sys

import pytest

from bert.io import atomic_files, file_locks
from tests.kit import faults, folder_holder
from tests.kit.paths import ROOT


def names_in(folder) -> list[str]:
  return sorted(path.name for path in folder.iterdir())


def test_everything_is_on_disk_before_the_new_name_is(tmp_path, monkeypatch):
  """A power cut after the rename must not leave a name without its content."""
  calls = []
  real_fsync, real_replace = os.fsync, os.replace

  def fsync(descriptor):
    facts = os.fstat(descriptor)
    calls.append(("fsync", "folder" if stat.S_ISDIR(facts.st_mode) else facts.st_size))
    real_fsync(descriptor)

  def replace(source, target):
    calls.append(("replace", os.path.basename(target)))
    real_replace(source, target)

  monkeypatch.setattr(os, "fsync", fsync)
  monkeypatch.setattr(os, "replace", replace)
  atomic_files.write_text(tmp_path / "a.txt", "12345")
  assert calls == [("fsync", 5), ("replace", "a.txt"), ("fsync", "folder")]


KILLED_AT_THE_NTH_CALL = """
import os, sys
from bert.io import atomic_files

def kill(*args, **kwargs):
  os._exit(137)

setattr(os, sys.argv[2], kill)
atomic_files.write_text(sys.argv[1], "new" * 1000)
"""


@pytest.mark.parametrize("function", ["fsync", "replace"])
def test_killed_before_the_rename_leaves_the_old_text(tmp_path, function):
  path = tmp_path / "a.txt"
  path.write_text("old")
  done = subprocess.run(
    [sys.executable, "-c", KILLED_AT_THE_NTH_CALL, str(path), function],
    env={**os.environ, "PYTHONPATH": str(ROOT)},
    timeout=60,
  )
  assert done.returncode == 137
  assert path.read_text() == "old"
  atomic_files.write_text(path, "newer")  # What the killed process left is not in the way.
  assert path.read_text() == "newer"


@pytest.mark.parametrize("function", ["fsync", "replace"])
def test_an_error_leaves_the_old_text_and_nothing_else(tmp_path, monkeypatch, function):
  path = tmp_path / "a.txt"
  path.write_text("old")

  def full(*args):
    raise OSError(errno.ENOSPC, "No space left on device")

  monkeypatch.setattr(os, function, full)
  with pytest.raises(OSError, match="No space left"):
    atomic_files.write_text(path, "new")
  assert path.read_text() == "old"
  assert names_in(tmp_path) == ["a.txt"]


@pytest.mark.parametrize("function", ["fsync", "replace"])
def test_an_error_names_the_file_that_is_to_be(tmp_path, monkeypatch, function):
  """The system's own errors name a temporary file, or none."""

  def full(*args):
    raise OSError(errno.ENOSPC, "No space left on device", *args[:1])

  monkeypatch.setattr(os, function, full if function == "replace" else lambda _: full())
  with pytest.raises(OSError, match="No space left") as caught:
    atomic_files.write_text(tmp_path / "a.txt", "new")
  assert caught.value.filename == str(tmp_path / "a.txt")


def test_a_full_disk_does_not_keep_from_holding_a_folder(tmp_path, monkeypatch):
  def full(*_):
    raise OSError(errno.ENOSPC, "No space left on device")

  monkeypatch.setattr(os, "write", full)
  with atomic_files.hold_folder(tmp_path):
    assert names_in(tmp_path) == [".lock"]
  assert names_in(tmp_path) == []


def test_a_folder_that_cannot_be_synchronised_is_no_error(tmp_path, monkeypatch):
  """Some network file systems answer EINVAL for a folder; a file must not be let off."""

  def refuse(descriptor):
    raise OSError(errno.EINVAL, "Invalid argument")

  monkeypatch.setattr(os, "fsync", refuse)
  atomic_files.force_to_disk(tmp_path)
  (tmp_path / "a.txt").touch()
  with pytest.raises(OSError, match="Invalid argument"):
    atomic_files.force_to_disk(tmp_path / "a.txt")


def test_a_folder_is_tried_without_a_trace(tmp_path):
  """Whatever has a name would stay there for ever if the process died."""
  seen = []
  with faults.watch(tmp_path, lambda _: seen.append(names_in(tmp_path))):
    atomic_files.check_writable(tmp_path)
  assert seen == [[], []]  # as it is opened, and written
  for nth in (1, 2):
    with faults.Failure(tmp_path, errno.ENOSPC, nth), pytest.raises(OSError, match=tmp_path.name):
      atomic_files.check_writable(tmp_path)
  with pytest.raises(FileNotFoundError, match="nowhere"):
    atomic_files.check_writable(tmp_path / "nowhere")


# Folders that only one run at a time may use.


_with_locks_of_posix = pytest.mark.skipif(
  file_locks.fcntl is None, reason="Windows has locks of its own: tests/system/platforms_test.py"
)


@pytest.fixture
def holder(tmp_path):
  """Another process that holds `tmp_path` until its standard input is closed."""
  with folder_holder.held(tmp_path) as process:
    yield process


def test_a_second_process_is_refused_and_told_of_the_first(tmp_path, holder):
  told = rf"is in use by process {holder.pid} on .*another output_dir"
  with pytest.raises(atomic_files.FolderInUseError, match=told), atomic_files.hold_folder(tmp_path):
    pass
  holder.communicate("")
  with atomic_files.hold_folder(tmp_path):
    assert names_in(tmp_path) == [".lock"]
  assert names_in(tmp_path) == []


def test_a_killed_process_holds_nothing(tmp_path, holder):
  holder.kill()
  holder.wait()
  assert names_in(tmp_path) == [".lock"]  # which alone means nothing
  with atomic_files.hold_folder(tmp_path):
    assert f"process {os.getpid()} on " in (tmp_path / ".lock").read_text()
  assert names_in(tmp_path) == []


@_with_locks_of_posix
def test_a_file_removed_between_opening_and_locking_is_no_lock(tmp_path, monkeypatch):
  real_lock, calls = file_locks.fcntl.lockf, []

  def remove_first(descriptor, how):
    if not calls:
      os.remove(tmp_path / ".lock")
    calls.append(how)
    real_lock(descriptor, how)

  monkeypatch.setattr(file_locks.fcntl, "lockf", remove_first)
  with atomic_files.hold_folder(tmp_path):
    assert len(calls) == 2
    assert names_in(tmp_path) == [".lock"]


@_with_locks_of_posix
def test_file_systems_without_locks_are_borne(tmp_path, monkeypatch, caplog):
  def refuse(error_number):
    def lockf(descriptor, how):
      raise OSError(error_number, os.strerror(error_number))

    monkeypatch.setattr(file_locks.fcntl, "lockf", lockf)

  refuse(errno.ENOLCK)
  with atomic_files.hold_folder(tmp_path):
    assert names_in(tmp_path) == []
  assert "is on a file system without locks" in caplog.text
  refuse(errno.EIO)
  with pytest.raises(OSError, match="Input/output"), atomic_files.hold_folder(tmp_path):
    pass
