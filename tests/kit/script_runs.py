"""Runs of the `run_*` scripts within a test's process, and what they leave.

  script = Script(run_squad)
  done = script.run_well(do_train=True, output_dir=tmp_path)
  assert "Training took" in done.err

A script starts fast here, because TensorFlow is loaded; a few tests of each start a Python.
"""

import contextlib
import importlib
import io
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import types
from collections.abc import Iterator
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import pytest
import tensorflow as tf

from bert.checkpoints import saving
from bert.scripts import command_line, flag_groups, report_pages, run_report, steps
from tests.kit.paths import ROOT


class Done(NamedTuple):
  """What a run left: exit code, standard output, standard error."""

  code: int | None
  out: str
  err: str


class Script:
  """A script with `main` and `define_flags`; `takes_arguments` as in `command_line.run`."""

  def __init__(self, module: types.ModuleType, takes_arguments: bool = False):
    self._module = module
    self._takes_arguments = takes_arguments

  def run(self, *arguments: str, **values) -> Done:
    """Runs it; `run("a", do_train=True)` is `a --do_train=True`."""
    name = f"{self._module.__name__}.py"
    argv = [name, *arguments, *(f"--{flag}={value}" for flag, value in values.items())]
    out, err = io.StringIO(), io.StringIO()
    with (
      contextlib.redirect_stdout(out),
      contextlib.redirect_stderr(err),
      mock.patch.object(steps, "start_script", _run_here),
      # Reports have tests of their own; one of each run here would double the time of many.
      _reporting(run_report, values.get("report", False)),
      _reporting(report_pages, values.get("report", False)),
      pytest.raises(SystemExit) as left,
    ):
      command_line.run(
        self._module.main, self._module.define_flags, argv, takes_arguments=self._takes_arguments
      )
    return Done(left.value.code, out.getvalue(), err.getvalue())

  def run_well(self, *arguments: str, **values) -> Done:
    """Runs it and expects that nothing fails."""
    done = self.run(*arguments, **values)
    assert done.code is None, done.err
    return done

  def assert_resumes(self, straight: pathlib.Path, stop: int, **values) -> None:
    """A run that ends after step `stop` and is started again ends as one did that went through.

    Args:
      straight: the folder of the latter; the former gets one beside it.
      stop: the step.
      **values: flags of both, `num_train_steps` among them.
    """
    folder = straight.with_name("halves")
    with stopped_after(stop):
      assert self.run(**values, output_dir=folder).code == 130
    assert "Resumed from" in self.run_well(**values, output_dir=folder).err
    last = f"model.ckpt-{values['num_train_steps']}"
    assert_same_tensors(folder / last, straight / last)

  def error_of(self, *arguments: str, **values) -> str:
    """The message of a run that fails as it should: one message and a hint, no traceback."""
    done = self.run(*arguments, **values)
    assert done.code == 1, done.err
    assert "Traceback" not in done.err
    assert done.out == ""
    return done.err[done.err.index("ERROR: ") :]


def _reporting(module: types.ModuleType, is_wanted: bool) -> contextlib.AbstractContextManager:
  """Within the block a module writes the report at the end of a run only if that is wanted."""
  if is_wanted:
    return contextlib.nullcontext()
  return mock.patch.object(module, "write_at_end")


def _run_here(name: str, *flags: str) -> int:
  """`steps.start_script` without a new Python, in which TensorFlow would be loaded once more."""
  module = importlib.import_module(f"bert.{name}")
  with pytest.raises(SystemExit) as left:
    command_line.run(module.main, module.define_flags, [f"{name}.py", *flags])
  return left.value.code or 0


class Trained(NamedTuple):
  """A run that several tests look at. They only read its folder."""

  flags: dict[str, Any]  # of the run, without do_*
  out: pathlib.Path  # its `--output_dir`
  done: Done  # what it printed

  def copied_to(self, folder: pathlib.Path) -> dict[str, Any]:
    """The flags of a run that continues in `folder/out`, a copy of this run's folder."""
    shutil.copytree(self.out, folder / "out")
    return {**self.flags, "output_dir": folder / "out"}


@contextlib.contextmanager
def stopped_after(step: int) -> Iterator[None]:
  """Within the block a run ends, as by Ctrl-C, once the checkpoint of that step is complete."""
  save = saving.save

  def save_and_stop(directory, saved_step, *args, **kwargs):
    save(directory, saved_step, *args, **kwargs)
    if saved_step == step:
      raise KeyboardInterrupt

  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(saving, "save", save_and_stop)
    yield


# ---------------------------------------------------------------------------------------------
# What a run leaves.

OF_TRAINING = {"flags.json", "versions.json", "command.txt"}
"""Files that say how a model was trained."""


def results_in(path: pathlib.Path) -> dict[str, float]:
  """The figures of an `eval_results.txt`."""
  pairs = [line.split(" = ") for line in path.read_text().splitlines()]
  return {key: float(value) for key, value in pairs}


def table(path: pathlib.Path) -> list[list[str]]:
  """The fields of each line of a `.tsv`."""
  return [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]


def json_in(path: pathlib.Path) -> Any:
  """The content of a `.json`."""
  return json.loads(path.read_text(encoding="utf-8"))


def json_lines(path: pathlib.Path) -> list[dict]:
  """The objects of a `.jsonl`."""
  return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def records(path: pathlib.Path) -> list[dict[str, tuple[str, list]]]:
  """name -> (`int64_list` or `float_list`, values) of each record."""
  found = []
  compression = "GZIP" if path.read_bytes()[:2] == b"\x1f\x8b" else ""
  for record in tf.data.TFRecordDataset(str(path), compression):
    feature = tf.train.Example.FromString(record.numpy()).features.feature
    kinds = {name: feature[name].WhichOneof("kind") for name in sorted(feature)}
    found.append({n: (k, list(getattr(feature[n], k).value)) for n, k in kinds.items()})
  return found


def values_in(path: pathlib.Path) -> list[dict[str, list]]:
  """name -> values of each record."""
  return [{name: values for name, (_, values) in record.items()} for record in records(path)]


def tensors(prefix: str | os.PathLike) -> dict[str, np.ndarray]:
  """All that a checkpoint holds, by name."""
  prefix = os.fspath(prefix)
  return {name: tf.train.load_variable(prefix, name) for name, _ in tf.train.list_variables(prefix)}


def assert_same_tensors(one: str | os.PathLike, other: str | os.PathLike) -> None:
  """Two checkpoints hold the same, bit for bit."""
  assert_same_values(tensors(other), tensors(one))


def assert_same_values(found: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> None:
  """Arrays have the same names, types and shapes, and are equal bit for bit."""
  assert sorted(found) == sorted(expected)
  for name, value in expected.items():
    ours, theirs = np.asarray(found[name]), np.asarray(value)
    assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape), name
    assert ours.tobytes() == theirs.tobytes(), name


# ---------------------------------------------------------------------------------------------
# Scripts as programs.


def run_python(*arguments: str, cwd: pathlib.Path = ROOT) -> subprocess.CompletedProcess:
  """Runs a Python that sees this checkout."""
  return subprocess.run(
    [sys.executable, *arguments],
    env={**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "100"},
    capture_output=True,
    text=True,
    cwd=cwd,
    timeout=120,
    check=False,
  )


def run_elsewhere(
  program: str, *arguments: str | os.PathLike, cwd: pathlib.Path, stdin=None
) -> str:
  """What a program prints that knows nothing of this checkout, as on another machine."""
  done = subprocess.run(
    [sys.executable, "-c", program, *map(str, arguments)],
    input=stdin,
    cwd=cwd,
    env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"},
    capture_output=True,
    text=True,
    check=False,
  )
  assert done.returncode == 0, done.stderr
  return done.stdout


_HELP = """
import runpy, sys
from bert import {name}
from absl import flags
print("DEFINED", set(flags.FLAGS) & {names}, file=sys.stderr)
sys.argv = ["{name}.py", "--help"]
try:
  runpy.run_module("{name}", run_name="__main__")
finally:
  heavy = {{"tensorflow", "scipy", "sklearn", "seqeval"}} & set(sys.modules)
  print("HEAVY", heavy, file=sys.stderr)
"""


def check_help(module: types.ModuleType, folder: pathlib.Path, groups: set[str]) -> None:
  """Checks that importing a script defines no flag, and that its `--help` is quick and complete.

  It is started in an empty folder; the help has `groups` as titles.
  """
  with flag_groups.defined_flags(module.define_flags):
    names = {flag["name"] for flag in flag_groups.describe()}
  done = run_python("-c", _HELP.format(name=module.__name__, names=names), cwd=folder)
  assert done.returncode == 0, done.stderr
  assert "DEFINED set()" in done.stderr
  assert "HEAVY set()" in done.stderr
  assert names <= set(re.findall(r"^  --(?:\[no\])?(\w+) \(", done.stdout, re.MULTILINE))
  found = set(re.findall(r"^(\S.*):$", done.stdout, re.MULTILINE))
  assert groups <= found
  assert "Other" not in found, "a flag stands in no group"
  assert os.listdir(folder) == []
