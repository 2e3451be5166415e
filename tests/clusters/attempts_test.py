"""Files of workers: whole, whoever else writes them, and nothing of a dead one remains."""

import os
import pathlib

from bert.clusters import attempts


def names(folder) -> list[str]:
  return sorted(os.listdir(folder))


def write(target, action, error=None) -> None:
  """Does something to a file in an attempt, which then fails if there is an error."""
  with attempts.whole(str(target)) as path:
    action(path)
    if error:
      raise error


def test_a_file_and_what_belongs_to_it_appear_together(tmp_path):
  target = tmp_path / "out"
  for name in ("out", ".out.manifest.json"):
    (tmp_path / name).write_text("old")
  with attempts.whole(str(target)) as path:
    pathlib.Path(path).write_text("new")
    (pathlib.Path(path).parent / ".out.manifest.json").write_text("newer")
    assert target.read_text() == "old"
  assert target.read_text() == "new"
  assert (tmp_path / ".out.manifest.json").read_text() == "newer"
  assert names(tmp_path) == [".out.manifest.json", "out"]


def test_two_attempts_at_one_file_do_not_meet(tmp_path):
  """A worker that seemed lost goes on while another has its work."""
  target = str(tmp_path / "out")
  with attempts.whole(target) as late:
    pathlib.Path(late).write_text("the whole ")
    with attempts.whole(target) as other:
      pathlib.Path(other).write_text("the whole content")
    assert (tmp_path / "out").read_text() == "the whole content"
    with open(late, "a") as writer:
      writer.write("content")
  assert (tmp_path / "out").read_text() == "the whole content"
  assert names(tmp_path) == ["out"]


def test_remains_of_killed_workers_are_removed(tmp_path):
  paths = [str(tmp_path / f"out-{number}") for number in range(2)]
  for name in (".out-0.attempt-abc", ".out-1.attempt-abc", ".out.attempt-abc", "folder"):
    (tmp_path / name).mkdir()
    (tmp_path / name / "half").touch()
  attempts.remove_remains(paths)
  assert names(tmp_path) == [".out.attempt-abc", "folder"], "what belongs to others stays"


def test_a_remote_file_is_copied_when_it_is_complete(monkeypatch):
  copied = []
  monkeypatch.setattr(
    attempts,
    "_copy",
    lambda local, remote: copied.append((pathlib.Path(local).read_text(), remote)),
  )
  with attempts.whole("gs://bucket/folder/out") as path:
    pathlib.Path(path).write_text("data")
    (pathlib.Path(path).parent / ".out.json").write_text("manifest")
    assert copied == []
  assert copied == [
    ("data", "gs://bucket/folder/out"),
    ("manifest", "gs://bucket/folder/.out.json"),
  ]
  assert not pathlib.Path(path).exists()
