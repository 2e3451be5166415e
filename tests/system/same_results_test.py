"""Tests of `tests/kit/same_results.py`, which compares two checkouts: it finds what is planted."""

import json
import pathlib

import numpy as np
import pytest

from bert.io import record_files
from tests.kit import result_runs, same_results, small_checkpoints

# A checkout of one script, which writes a file; TensorFlow is an empty module there.
SCRIPT = """
import pathlib, sys
data = pathlib.Path(sys.argv[1].removeprefix("--file="), "number").read_text()
pathlib.Path("results.txt").write_text(f"first\\n{int(data) + NUMBER}\\n")
"""


@pytest.fixture
def left(tmp_path) -> pathlib.Path:
  """A folder with a file of each kind that runs leave."""
  small_checkpoints.save(tmp_path / "out", 3)
  record_files.write_records(tmp_path / "out/a.tf_record", [{"ids": [i]} for i in range(3)])
  np.savez(tmp_path / "out/outputs.npz", outputs=np.arange(3.0))
  (tmp_path / "out/predictions.tsv").write_text("a\nb\n")
  (tmp_path / "out/flags.json").write_text(json.dumps({"seed": 1, "nested": {"rate": 0.5}}))
  (tmp_path / "out/image").write_bytes(b"\xff\0")
  (tmp_path / "log_0.txt").write_text("at 10:15")
  return tmp_path


def _plant_in_checkpoint(folder):
  path = folder / "out/model.ckpt-3"
  values = small_checkpoints.values_of(3)
  values[small_checkpoints.KERNEL][1, 2] = np.nextafter(np.float32(9), np.float32(10))
  small_checkpoints.saving.save(str(path.parent), 3, values, {"position": 96})


def _plant_in_records(folder):
  record_files.write_records(folder / "out/a.tf_record", [{"ids": [i]} for i in (0, 1, 9)])


def _write(name, content):
  return lambda folder: (folder / "out" / name).write_text(content)


def _plant_in_arrays(folder):
  np.savez(folder / "out/outputs.npz", outputs=np.array([0, 1, 2.5]))


@pytest.mark.parametrize(
  ("plant", "expected"),
  [
    (_plant_in_checkpoint, {f"out/model.ckpt-3.index: {small_checkpoints.KERNEL}"}),
    (_plant_in_records, {"out/a.tf_record: record 3"}),
    (_plant_in_arrays, {"out/outputs.npz: outputs"}),
    (_write("predictions.tsv", "a\nc\nd\n"), {f"out/predictions.tsv: line {n}" for n in (2, 3)}),
    (
      _write("flags.json", '{"seed": 1.0, "nested": {}}'),
      {f"out/flags.json: {name}" for name in ("seed", "nested", "nested/rate")},
    ),
    (lambda folder: (folder / "out/image").unlink(), {"out/image: bytes"}),
    (_write("label_map.json", '{"a": 0}'), {"out/label_map.json: a"}),
    (lambda folder: (folder / "log_0.txt").write_text("at 10:16"), set()),
  ],
  ids=["tensor", "record", "array", "lines", "JSON", "no file", "new file", "log"],
)
def test_a_planted_difference_is_named(left, plant, expected):
  before = same_results.contents(left)
  plant(left)
  assert set(same_results.differences(before, same_results.contents(left))) == expected


def _write_checkout(folder, number):
  (folder / "bert").mkdir(parents=True)
  (folder / "bert/__init__.py").touch()
  (folder / "tensorflow.py").touch()
  (folder / "bert/script.py").write_text(SCRIPT.replace("NUMBER", number))
  return folder


@pytest.fixture
def compare(tmp_path, monkeypatch):
  """Compares checkouts whose scripts add a number; returns the verdict."""
  monkeypatch.setattr(result_runs, "RUNS", {"small": [("script", {"file": "{}"})]})
  monkeypatch.setattr(result_runs, "write_data", _write_number)
  checkouts = {}

  def run(*numbers):
    for number in numbers:
      if number not in checkouts:
        checkouts[number] = _write_checkout(tmp_path / f"checkout{len(checkouts)}", number)
    old, new = (checkouts[number] for number in numbers)
    return same_results.compare(old, new, ["small"], tmp_path / "out")

  return run


def _write_number(folder):
  folder.mkdir()
  (folder / "number").write_text("5")


def test_two_checkouts(compare, capfd, monkeypatch):
  assert not compare("1", "2")
  assert "small: 1 of 2 DIFFER, 0 s\n  results.txt: line 2: 6, now 7\n" in capfd.readouterr().out
  assert compare("1", "True"), "other sources, and equal results"
  assert "small: 2 equal" in capfd.readouterr().out
  assert not compare("1", "None")
  assert "FAILED with the new checkout" in (shown := capfd.readouterr().out)
  assert "TypeError: unsupported operand" in shown
  monkeypatch.setattr(same_results, "ON_PURPOSE", {"results": "It is another sum."})
  assert compare("1", "2")
  assert capfd.readouterr().out == "small: 2 equal\n  1 on purpose: It is another sum.\n"
