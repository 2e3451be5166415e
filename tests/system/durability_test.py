"""What a power cut would show, and no killed process does: content reaches the disk before names.

Every writer of files is watched while it synchronises and renames. Dying at any moment, and a full
disk, are tested elsewhere for each of them.
"""

import contextlib
import errno
import os
import pathlib
import zipfile

import numpy as np
import pytest


def identity_of(path) -> tuple[int, int]:
  """What stays the same when a file is renamed."""
  facts = os.stat(path)
  return facts.st_dev, facts.st_ino


def files_in(path) -> dict[str, tuple[int, int]]:
  """Name -> identity of a file, or of all files and folders below a folder."""
  return {str(p): identity_of(p) for p in [path, *pathlib.Path(path).rglob("*")]}


class Disk:
  """Notes what is forced to disk, and complains of names that come before their content.

  Attributes:
    named: final names that were given, in order.
    unsafe: names of files that were not on disk when they, or a folder around them, got a new name.
    synced: identities of files and folders forced to disk since the last new name.
  """

  def __init__(self, monkeypatch):
    self.named, self.unsafe, self.synced = [], [], set()
    self._ever_synced = set()
    self._fsync, self._replace, self._rename = os.fsync, os.replace, os.rename
    monkeypatch.setattr(os, "fsync", self.fsync)
    monkeypatch.setattr(os, "replace", self.replace)
    monkeypatch.setattr(os, "rename", self.rename)

  def fsync(self, descriptor):
    facts = os.fstat(descriptor)
    self.synced.add((facts.st_dev, facts.st_ino))
    self._ever_synced.add((facts.st_dev, facts.st_ino))
    self._fsync(descriptor)

  def replace(self, source, target):
    self._note(source, target)
    self._replace(source, target)

  def rename(self, source, target):
    self._note(source, target)
    self._rename(source, target)

  def _note(self, source, target):
    self.unsafe += [n for n, i in files_in(source).items() if i not in self._ever_synced]
    self.named.append(os.path.basename(target))
    self.synced = set()


@pytest.fixture
def disk(monkeypatch):
  return Disk(monkeypatch)


# ---------------------------------------------------------------------------------------------
# Writers: `write(folder)` returns the names that it gives.


def write_text(folder):
  from bert.io import atomic_files

  atomic_files.write_text(folder / "eval_results.txt", "loss = 1.0\n")
  return ["eval_results.txt"]


def write_answers(folder):
  from bert.io import text_lines

  with text_lines.written_output(str(folder / "out.jsonl")) as writer:
    writer.write(b"{}\n")
  return ["out.jsonl"]


def write_safetensors(folder):
  from bert.checkpoints import safetensors_file

  safetensors_file.write(folder / "model.safetensors", {"a": np.zeros(3, np.float32)})
  return ["model.safetensors"]


def write_records(folder):
  from bert.io import record_files

  record_files.write_records(folder / "train.tf_record", [{"ids": [1, 2]}])
  return ["train.tf_record", ".train.tf_record.manifest.json"]


def write_pretraining_records(folder):
  from bert.pretraining import record_output

  facts = {"max_seq_length": 4}
  with record_output.RecordFiles([folder / "a", folder / "b"], facts) as records:
    for _ in range(3):
      records.write(b"record", 2)
  return ["a", "b", ".a.manifest.json", ".b.manifest.json"]


def write_export(folder):
  from bert.exporting import saved_models

  with saved_models.written_aside(str(folder / "encoder")) as aside:
    pathlib.Path(aside, "saved_model.pb").write_bytes(b"graph")
    pathlib.Path(aside, "variables").mkdir()
    pathlib.Path(aside, "variables", "variables.index").write_bytes(b"index")
  return ["encoder"]


WRITERS = {
  "text": write_text,
  "answers": write_answers,
  "safetensors": write_safetensors,
  "records": write_records,
  "pretraining records": write_pretraining_records,
  "export": write_export,
}


@pytest.mark.parametrize("writer", WRITERS)
def test_content_is_on_disk_before_its_name(tmp_path, disk, writer):
  names = WRITERS[writer](tmp_path)
  assert disk.named == names
  assert disk.unsafe == []
  # And the names themselves before the call returns.
  assert identity_of(tmp_path) in disk.synced


def test_a_download_is_on_disk_before_its_name(tmp_path, monkeypatch):
  from bert.checkpoints import released_models
  from bert.families import files
  from bert.io import download_cache

  events, rename = [], os.rename
  model = "uncased_L-2_H-128_A-2"
  folder = (tmp_path / "models" / released_models.RELEASED_MODELS[model]).with_suffix("")
  folder.parent.mkdir(parents=True)
  with zipfile.ZipFile(folder.with_suffix(".zip"), "w") as archive:
    for name in files.RELEASED[model].files:
      archive.writestr(name, b"content")

  def watched(source, target):
    events.append(pathlib.Path(target).name)
    rename(source, target)

  monkeypatch.setattr(download_cache.os, "sync", lambda: events.append("sync"))
  monkeypatch.setattr(download_cache.os, "rename", watched)
  assert released_models.download_model(model, tmp_path) == str(folder)
  assert events[-2:] == ["sync", folder.name]


# ---------------------------------------------------------------------------------------------
# Between two steps of one writer.


def test_records_without_their_manifest_yet_can_be_read(tmp_path, monkeypatch):
  """Killed between the two renames: the manifest of the old records must not refuse the new."""
  from bert.io import record_files

  path = tmp_path / "train.tf_record"
  record_files.write_records(path, [{"ids": [1]}])

  def dies(path, text):
    raise KeyboardInterrupt

  monkeypatch.setattr(record_files, "write_text", dies)
  with pytest.raises(KeyboardInterrupt):
    record_files.write_records(path, [{"ids": [1, 2, 3]}] * 2)
  assert len(list(record_files.records_of(path))) == 2


def old_model(folder):
  folder.mkdir()
  (folder / "saved_model.pb").write_bytes(b"old")
  return str(folder)


def test_a_failed_export_leaves_the_old_model(tmp_path):
  from bert.exporting import saved_models

  path = old_model(tmp_path / "encoder")
  with contextlib.suppress(OSError), saved_models.written_aside(path) as folder:
    pathlib.Path(folder, "saved_model.pb").write_bytes(b"half")
    raise OSError("No space left on device")
  assert_only_the_old_model_is_in(tmp_path)


def assert_only_the_old_model_is_in(folder):
  assert os.listdir(folder) == ["encoder"]
  assert (folder / "encoder" / "saved_model.pb").read_bytes() == b"old"


def test_an_export_that_cannot_be_renamed_leaves_the_old_model(tmp_path, monkeypatch):
  """Where the system cannot exchange two folders, the old one is moved away first."""
  from bert.io import atomic_files

  path, replace = old_model(tmp_path / "encoder"), os.replace

  def refuses_the_new(source, target):
    if source.endswith(".encoder.new"):
      raise OSError(errno.EIO, "Input/output error")
    replace(source, target)

  monkeypatch.setattr(atomic_files, "_exchange", lambda first, second: False)
  monkeypatch.setattr(os, "replace", refuses_the_new)
  with pytest.raises(OSError, match="Input/output error"), atomic_files.folder_written_whole(path):
    pass
  assert_only_the_old_model_is_in(tmp_path)


def test_an_export_killed_between_two_renames_loses_no_model(tmp_path):
  from bert.io import atomic_files

  os.rename(old_model(tmp_path / "encoder"), tmp_path / ".encoder.old")
  with (
    contextlib.suppress(KeyboardInterrupt),
    atomic_files.folder_written_whole(tmp_path / "encoder"),
  ):
    assert (tmp_path / "encoder" / "saved_model.pb").read_bytes() == b"old"
    raise KeyboardInterrupt
  assert_only_the_old_model_is_in(tmp_path)


def test_an_export_replaces_no_folder_of_something_else(tmp_path):
  from bert.exporting import saved_models

  (tmp_path / "thesis").mkdir()
  (tmp_path / "thesis" / "chapter.txt").write_text("years of work")
  with pytest.raises(FileExistsError, match="is not a SavedModel"):
    with saved_models.written_aside(str(tmp_path / "thesis")):
      pass
  assert os.listdir(tmp_path / "thesis") == ["chapter.txt"]
