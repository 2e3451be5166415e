"""Files of pre-training records: whole or not there, whatever stops a job."""

import os
import subprocess
import sys

import pytest

from bert import create_pretraining_data as script
from bert.io import record_files
from bert.pretraining import record_output
from tests.kit.paths import ROOT
from tests.kit.pretraining_records import create, flags_for, in_memory, names


def test_readers_notice_a_file_cut_between_records(tmp_path):
  import tensorflow as tf

  from bert.training import input_pipeline

  path = tmp_path / "out"
  create(path)
  features = {"input_ids": tf.io.FixedLenFeature([128], tf.int64)}
  input_pipeline.record_input_fn(str(path), features, is_training=False, drop_remainder=False)
  first = len(next(iter(tf.data.TFRecordDataset(str(path)))).numpy()) + 16
  os.truncate(path, first)
  with pytest.raises(record_files.RecordError, match="cut short"):
    input_pipeline.record_input_fn(str(path), features, is_training=False, drop_remainder=False)


class StopError(Exception):
  pass


def test_an_interrupted_job_leaves_no_file(tokenizer, tmp_path):
  outputs = [tmp_path / "a", tmp_path / "b"]

  class Interrupted(list):
    def __iter__(self):
      yield from list(super().__iter__())[:5]
      raise StopError

  instances = Interrupted(in_memory(tokenizer))
  with pytest.raises(StopError):
    script.write_instance_to_example_files(instances, tokenizer, 64, 10, outputs)
  assert not list(tmp_path.iterdir())


@pytest.mark.ci
def test_a_killed_job_leaves_no_final_name_and_the_next_one_cleans_up(tmp_path):
  program = (
    "import os, sys\n"
    "from bert import create_pretraining_data\n"
    "from bert.pretraining import record_output\n"
    "from bert.scripts import command_line\n"
    "write = record_output.RecordFiles.write\n"
    "def stop(self, record, num_tokens):\n"
    "  write(self, record, num_tokens)\n"
    "  if self.count == 7: os._exit(9)\n"
    "record_output.RecordFiles.write = stop\n"
    "command_line.run(create_pretraining_data.main, create_pretraining_data.define_flags)\n"
  )
  path = tmp_path / "out"
  arguments = [f"--{name}={value}" for name, value in flags_for(path).items()]
  killed = subprocess.run(
    [sys.executable, "-c", program, *arguments], cwd=ROOT, capture_output=True, check=False
  )
  assert killed.returncode == 9
  assert not path.exists()
  create(path)
  assert names(tmp_path) == [".out.manifest.json", "out"]


def test_a_failing_rename_leaves_the_old_file_readable(tokenizer, tmp_path, monkeypatch):
  path = tmp_path / "out"
  path.write_bytes(b"old")

  def refuse(*_):
    raise OSError("no")

  monkeypatch.setattr(record_output.os, "replace", refuse)
  with pytest.raises(OSError, match="no"):
    script.write_instance_to_example_files(in_memory(tokenizer), tokenizer, 64, 10, [path])
  assert path.read_bytes() == b"old"
  assert names(tmp_path) == ["out"]


@pytest.mark.ci
@pytest.mark.skipif(sys.platform == "win32", reason="no limits of file sizes")
@pytest.mark.parametrize("what", ["temporary files", "out"])
def test_a_full_disk_is_named_and_leaves_nothing(what, tmp_path):
  create(tmp_path / "whole", dupe_factor=2)
  # The records are the largest file of a run: with a bit less than they need, only they fail.
  limit = 500 if what == "temporary files" else (tmp_path / "whole").stat().st_size - 100
  program = (
    "import resource\n"
    "from bert import create_pretraining_data; from bert.scripts import command_line\n"
    f"resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))\n"
    "command_line.run(create_pretraining_data.main, create_pretraining_data.define_flags)\n"
  )
  folder = tmp_path / "full"
  arguments = [f"--{name}={value}" for name, value in flags_for(folder / "out").items()]
  result = subprocess.run(
    [sys.executable, "-c", program, *arguments, "--dupe_factor=2"],
    cwd=ROOT,
    capture_output=True,
    check=False,
    text=True,
  )
  assert result.returncode == 1
  error = next(line for line in result.stderr.splitlines() if line.startswith("ERROR"))
  assert str(folder) in error
  assert what in error
  assert not list(folder.iterdir())
