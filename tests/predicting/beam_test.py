"""Answers and vectors by Apache Beam equal those of one process, bit for bit.

The first tests have a model that needs no TensorFlow. Several processes: beam_clusters_test.py.
"""

import os
import pickle
import sys
from typing import NamedTuple

import numpy as np
import pytest

from bert import extract_features, predict, predicting
from bert.io import text_lines
from bert.scripts import command_line
from tests.kit import many_texts
from tests.kit.filters import run_filter
from tests.kit.many_texts import joined

LOCAL = "--runner=BundleBasedDirectRunner"


def run_well(script, **values) -> str:
  code, out, err = run_filter(script, **values)
  assert (code, out) == (None, ""), err
  return err


def error_of(script, **values) -> str:
  code, out, err = run_filter(script, **values)
  assert (code, out) == (1, ""), err
  assert "Traceback" not in err[err.rindex("ERROR: ") :]
  return err[err.rindex("ERROR: ") :]


# ---------------------------------------------------------------------------------------------
# The pipeline, without a model.


class Shouted(NamedTuple):
  """Work that needs no model: upper case, with the number of the line."""

  log: str  # a file with a line for each model that was loaded and each shard that was written
  settings: str = "loud"

  def load(self) -> str:
    self._note("load")
    return "!"

  def write(self, model, path, lines, first_index) -> int:
    self._note("write")
    count = 0
    with text_lines.written_output(path) as writer:
      for count, line in enumerate(lines, start=1):
        if line == "bad":
          raise ValueError(f"{lines.place(count)}: this line is bad.")
        writer.write(f"{first_index + count - 1} {line.upper()}{model}\n".encode())
    return count

  def facts(self):
    return {"settings": self.settings}

  def _note(self, word):
    with open(self.log, "a") as writer:
      writer.write(f"{word}\n")


@pytest.fixture
def shout(tmp_path):
  """Runs `Shouted` on two files; returns all lines, and what was loaded and written."""
  pytest.importorskip("apache_beam")
  from bert.predicting import beam

  for name, start in (("a", 0), ("b", 70)):
    (tmp_path / name).write_text("".join(f"line {start + n:03d}\n" for n in range(70)))

  def run(settings="loud", num_shards=4):
    log = tmp_path / "log"
    log.write_text("")
    inputs = [str(tmp_path / name) for name in ("a", "b")]
    names = beam.write_shards(
      Shouted(str(log), settings), inputs, str(tmp_path / "out"), LOCAL, num_shards, True
    )
    assert names == sorted(names)
    return joined(tmp_path / "out").decode().splitlines(), log.read_text().split()

  return run


def test_every_line_once_in_order_and_the_model_once(shout, tmp_path):
  lines, done = shout()
  assert lines == [f"{number} LINE {number:03d}!" for number in range(140)]
  assert done == ["load", *["write"] * 4]
  assert sorted(os.listdir(tmp_path)) == [
    ".out.run.json",
    *("a", "b", "log"),
    *(f"out-0000{number}-of-00004" for number in range(4)),
  ]


def test_a_process_loads_one_model_and_repeats_no_shard(tmp_path):
  """A runner copies a step for each bundle, and repeats what a lost worker had finished."""
  pytest.importorskip("apache_beam")
  from bert.predicting import beam

  path, log = tmp_path / "text", tmp_path / "log"
  path.write_text("a\nb\n")
  step = pickle.dumps(beam.WriteShard(Shouted(str(log))))
  for name in ("one", "two", "one"):
    copy = pickle.loads(step)
    copy.setup()
    copy.process((str(tmp_path / name), (str(path), 0, None), 5))
  assert (tmp_path / "two").read_text() == "5 A!\n6 B!\n"
  assert log.read_text().split() == ["load", "write", "write"]


def test_a_second_run_computes_what_is_missing_alone(shout, tmp_path):
  before, _ = shout()
  (tmp_path / "out-00002-of-00004").unlink()
  (tmp_path / ".out-00002-of-00004.attempt-abc").mkdir()  # of a worker that was killed
  assert shout() == (before, ["load", "write"])
  assert not list(tmp_path.glob("*.attempt-*"))
  assert shout() == (before, []), "there is nothing to do"


def test_a_bad_line_is_named_and_its_shard_does_not_appear(shout, tmp_path):
  text = (tmp_path / "b").read_text().replace("line 110\n", "bad     \n")
  (tmp_path / "b").write_text(text)
  with pytest.raises(ValueError, match=f"^{tmp_path}/b, line 41: this line is bad.$"):
    shout()
  assert not (tmp_path / "out-00003-of-00004").exists()
  assert not list(tmp_path.glob("*.attempt-*"))


# ---------------------------------------------------------------------------------------------
# The scripts.


@pytest.fixture(scope="module")
def text(tmp_path_factory):
  return many_texts.write(tmp_path_factory.mktemp("text") / "in.txt")


@pytest.fixture(scope="module")
def common(trained, text):
  """Flags of both scripts, on one machine."""
  return {
    "init_checkpoint": trained,
    "input_file": text,
    "max_seq_length": 16,
    "batch_invariant": True,
  }


BEAM = {"runner": "beam", "beam_args": LOCAL, "num_shards": 3}


def both(script, folder, **values):
  """The bytes that one process writes, and those of Beam's shards, one after the other."""
  pytest.importorskip("apache_beam")
  run_well(script, **values, output_file=folder / "one")
  run_well(script, **values, **BEAM, output_file=folder / "many")
  assert len(list(folder.glob("many-*"))) == 3
  return (folder / "one").read_bytes(), joined(folder / "many")


@pytest.mark.ci
@pytest.mark.parametrize(
  "flags",
  [
    {"layers": "-1,0"},
    {"layers": "-1", "similarity": True},
    pytest.param({"layers": "-1", "pooling": "mean"}, marks=pytest.mark.slow),
  ],
)
def test_vectors_are_those_of_one_process(common, tmp_path, flags):
  if "similarity" in flags:
    lines = common["input_file"].read_text().splitlines()
    (tmp_path / "pairs").write_text("".join(f"the {line} ||| good film\n" for line in lines))
    common = {**common, "input_file": tmp_path / "pairs"}
  one, many = both(extract_features, tmp_path, **common, **flags)
  assert one == many


@pytest.mark.ci
@pytest.mark.parametrize("pooling", ["none", pytest.param("mean", marks=pytest.mark.slow)])
def test_arrays_are_those_of_one_process(common, tmp_path, pooling):
  flags = {**common, "layers": "-1", "pooling": pooling, "output_format": "npz"}
  both(extract_features, tmp_path, **flags)
  with np.load(tmp_path / "one") as file:
    one = dict(file)
  parts = []
  for path in sorted(tmp_path.glob("many-*")):
    with np.load(path) as file:
      parts.append(dict(file))
  for name in set(one) - {"layers", "row_splits"}:
    whole = np.concatenate([part[name] for part in parts])
    assert (whole.dtype, whole.tobytes()) == (one[name].dtype, one[name].tobytes()), name
  if pooling == "none":
    lengths = [np.diff(part["row_splits"]) for part in parts]
    assert np.concatenate(lengths).tolist() == np.diff(one["row_splits"]).tolist()


@pytest.mark.ci
@pytest.mark.parametrize("task", ["answers", pytest.param("vectors", marks=pytest.mark.slow)])
def test_answers_are_those_of_one_process(common, exported, tmp_path, task):
  flags = {"task": task, **common}
  if task == "answers":
    flags |= {"init_checkpoint": exported}
    del flags["max_seq_length"]
  one, many = both(predict, tmp_path, **flags)
  assert one == many
  assert len(one.splitlines()) == many_texts.COUNT


@pytest.mark.ci
def test_a_line_that_does_not_fit_is_named_in_its_file(common, exported, tmp_path):
  pytest.importorskip("apache_beam")
  lines = common["input_file"].read_text().splitlines()
  lines[90] = '{"text_a": "good", "context": "bad"}'
  (tmp_path / "in.txt").write_text("\n".join(lines))
  flags = {"init_checkpoint": exported, "input_file": tmp_path / "in.txt", **BEAM}
  message = error_of(predict, **flags, output_file=tmp_path / "out")
  assert message.startswith(f"ERROR: {tmp_path}/in.txt, line 91: ")
  assert "does not fit this model, whose inputs are text_a, text_b" in message


BEAM_ALONE = [
  ({"beam_args": "--runner=X"}, "--beam_args requires --runner=beam."),
  ({"num_shards": 3}, "--num_shards requires --runner=beam."),
  ({"runner": "spark"}, "Flag --runner takes one of local, beam"),
  ({"runner": "beam", "num_shards": -1}, "--num_shards=-1: must be at least 0."),
  ({"runner": "beam", "input_file": "-"}, "--input_file must name a file, not a stream."),
  ({"runner": "beam", "output_file": "-"}, "--output_file must name a file, not a stream."),
  ({"runner": "beam", "input_file": "no*.txt"}, "no*.txt matches no file"),
  ({"runner": "beam", "output_file": "{input}"}, "is also an input file"),
]


@pytest.mark.parametrize("script", [extract_features, predict])
@pytest.mark.parametrize(("flags", "said"), BEAM_ALONE)
def test_flags_that_do_not_go_together_are_told_at_once(script, flags, said, tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  (tmp_path / "in.txt").write_text("good\n")
  flags = {name: str(value).replace("{input}", "in.txt") for name, value in flags.items()}
  files = {"input_file": "in.txt", "output_file": "out.jsonl"}
  assert said in error_of(script, **{"init_checkpoint": "no model", **files, **flags})
  assert os.listdir(tmp_path) == ["in.txt"]


def test_beam_that_is_not_installed(tmp_path, monkeypatch):
  monkeypatch.setitem(sys.modules, "apache_beam", None)
  monkeypatch.delitem(sys.modules, "bert.predicting.beam", raising=False)
  monkeypatch.delattr(predicting, "beam", raising=False)
  (tmp_path / "in.txt").write_text("good\n")
  flags = {"init_checkpoint": "not looked at", "input_file": tmp_path / "in.txt", "runner": "beam"}
  message = error_of(predict, **flags, output_file=tmp_path / "out")
  assert 'Install it: pip install "bert-alive[beam]"' in message
  assert os.listdir(tmp_path) == ["in.txt"]


def test_a_plugin_goes_with_the_work(tmp_path, monkeypatch):
  """The workers' environment knows nothing of it."""
  sent = []
  monkeypatch.setattr(predict.runner_flags, "write_shards", sent.append)
  monkeypatch.setattr(command_line, "_load_plugins", lambda argv: None)
  (tmp_path / "in.txt").write_text("good\n")
  flags = {"init_checkpoint": "m", "input_file": tmp_path / "in.txt", "runner": "beam"}
  run_well(predict, **flags, output_file=tmp_path / "out", plugin="a.py,b.py")
  assert sent[0].plugins == ("a.py", "b.py")
