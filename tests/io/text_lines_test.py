"""Lines in, whole files out: local, remote, standard streams, pipes."""

import contextlib
import os
import stat
import subprocess

import pytest

from bert.io import text_lines
from bert.io.tables import DataError


def test_a_pipe_is_written_to_and_not_replaced(tmp_path):
  pipe = tmp_path / "pipe"
  os.mkfifo(pipe)
  reader = subprocess.Popen(["cat", str(pipe)], stdout=subprocess.PIPE)
  with text_lines.written_output(str(pipe)) as writer:
    writer.write(b"through\n")
  assert reader.communicate(timeout=30)[0] == b"through\n"
  assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_other_file_systems_are_tensorflows(tmp_path):
  url = f"file://{tmp_path}/out.txt"
  for content in ("first\n", "second\n"):
    with text_lines.written_output(url) as writer:
      writer.write(content.encode())
  assert list(text_lines.read_lines(url)) == ["second"]
  with contextlib.suppress(DataError), text_lines.written_output(url) as writer:
    writer.write(b"half")
    raise DataError("of something else")
  assert list(text_lines.read_lines(url)) == ["second"]
  assert os.listdir(tmp_path) == ["out.txt"]
  with pytest.raises(FileNotFoundError, match="No such file"):
    list(text_lines.read_lines("file:///no/such/in"))
  with pytest.raises(OSError, match="file:///no/such/out"):
    with text_lines.written_output("file:///no/such/out") as writer:
      writer.write(b"x")


def test_lines_are_those_of_the_file(tmp_path):
  path = tmp_path / "in.txt"
  path.write_bytes("\ufeff first \r\n\n\u2028 a\u2028b \u2028\nlast".encode())
  assert list(text_lines.read_lines(str(path))) == ["first", "", "a\u2028b", "last"]
  path.write_bytes(b"ok\nbad \xe9\n")
  with pytest.raises(DataError, match=r"in\.txt, line 2: byte 0xe9 is not UTF-8"):
    list(text_lines.read_lines(str(path)))


def test_a_table_that_is_read_as_texts_is_said(tmp_path, caplog):
  path = tmp_path / "own.csv"
  path.write_text("text,label\na,1\n")
  assert list(text_lines.read_lines(str(path))) == ["text,label", "a,1"]
  assert caplog.messages == [
    f"{path} is not read as a table here, as predict.py does: each line is a text, a header and "
    "delimiters too."
  ]


def test_a_pipe_is_read_once_and_waited_for_with_a_word(tmp_path, caplog):
  pipe = tmp_path / "pipe"
  os.mkfifo(pipe)
  writer = subprocess.Popen(["sh", "-c", f"echo one > {pipe}"])
  with caplog.at_level("INFO", logger="absl"):
    assert list(text_lines.read_lines(str(pipe))) == ["one"]
  assert writer.wait(timeout=30) == 0
  assert caplog.messages == [f"{pipe} is a pipe: waiting for the program that writes to it."]
