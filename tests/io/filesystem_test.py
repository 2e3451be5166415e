"""Local and remote files alike: TensorFlow's file system in memory, `ram://`, is the remote one."""

import gzip
import os
import subprocess
import sys

import pytest

from bert.io import filesystem
from tests.kit.paths import ROOT


@pytest.fixture(params=["local", "remote"])
def folder(request, tmp_path):
  """A folder on either side, empty at first."""
  return str(tmp_path) if request.param == "local" else f"ram://{request.node.originalname}"


def write(path, data):
  with filesystem.open_to_write(path) as writer:
    writer.write(data)
  return path


def test_a_file_is_written_found_read_renamed_and_removed(folder):
  path = write(f"{folder}/a.txt", b"one\ntwo\n")
  assert filesystem.read_bytes(path) == b"one\ntwo\n"
  assert filesystem.size_bytes(path) == 8
  assert filesystem.exists(path)
  assert [filesystem.is_file(each) for each in (path, folder)] == [True, False]
  assert [filesystem.is_folder(each) for each in (path, folder)] == [False, True]
  write(f"{folder}/b.txt", b"")
  filesystem.rename(path, f"{folder}/b.txt")
  assert filesystem.list_folder(folder) == ["b.txt"]
  assert filesystem.matching(f"{folder}/*.txt") == [f"{folder}/b.txt"]
  filesystem.remove(f"{folder}/b.txt")
  assert filesystem.list_folder(folder) == []
  assert filesystem.list_folder(f"{folder}/none") == []


def test_a_file_is_a_usual_one_of_python(folder):
  lines = [b"%d\n" % number for number in range(5000)]
  path = write(f"{folder}/a.gz", gzip.compress(b"".join(lines)))
  with filesystem.open_to_read(path) as file, gzip.GzipFile(fileobj=file) as reader:
    assert list(reader) == lines
  path = write(f"{folder}/a", b"".join(lines))
  with filesystem.open_to_read(path) as file:
    file.seek(10)
    assert (file.readline(), file.tell(), file.seek(-2, os.SEEK_END)) == (b"5\n", 12, 23888)
    assert file.read() == b"9\n"


@pytest.mark.parametrize("function", ["open_to_read", "read_bytes", "size_bytes", "remove"])
def test_errors_are_those_of_the_operating_system(folder, function):
  with pytest.raises(FileNotFoundError) as caught:
    getattr(filesystem, function)(f"{folder}/missing.txt")
  assert caught.value.filename == f"{folder}/missing.txt"


def test_an_unknown_file_system_is_an_error_of_the_operating_system():
  with pytest.raises(OSError, match="unknown://bucket/a"):
    filesystem.open_to_read("unknown://bucket/a")


def test_local_files_need_no_tensorflow(tmp_path):
  write(tmp_path / "a", b"x")
  program = (
    "import sys; from bert.io import filesystem\n"
    "assert filesystem.read_bytes(sys.argv[1]) == b'x' and filesystem.exists(sys.argv[1])\n"
    "assert 'tensorflow' not in sys.modules"
  )
  subprocess.run([sys.executable, "-c", program, tmp_path / "a"], cwd=ROOT, check=True)
