"""Runs of the `run_*` scripts within a test's process, and what they leave.

  script = Script(run_squad)
  done = script.run_well(do_train=True, output_dir=tmp_path)
  assert "Training took" in done.err

A script starts fast here, as TensorFlow is loaded; a few tests of each start a Python.
"""

import contextlib
import io
import os
import pathlib
import types
from typing import NamedTuple

import numpy as np
import pytest
import tensorflow as tf

from bert.scripts import command_line


class Done(NamedTuple):
  """What a run left: exit code, standard output, standard error."""

  code: int | None
  out: str
  err: str


class Script:
  """A script with `main` and `define_flags`."""

  def __init__(self, module: types.ModuleType):
    self._module = module

  def run(self, **values) -> Done:
    """Runs it; `run(do_train=True)` is `--do_train=True`."""
    name = f"{self._module.__name__}.py"
    argv = [name, *(f"--{flag}={value}" for flag, value in values.items())]
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
      with pytest.raises(SystemExit) as left:
        command_line.run(self._module.main, self._module.define_flags, argv)
    return Done(left.value.code, out.getvalue(), err.getvalue())

  def run_well(self, **values) -> Done:
    """Runs it and expects that nothing fails."""
    done = self.run(**values)
    assert done.code is None, done.err
    return done

  def error_of(self, **values) -> str:
    """The message of a run that fails as it should: one message and a hint, no traceback."""
    done = self.run(**values)
    assert done.code == 1, done.err
    assert "Traceback" not in done.err
    assert done.out == ""
    return done.err[done.err.index("ERROR: ") :]


def results_in(path: pathlib.Path) -> dict[str, float]:
  """The figures of an `eval_results.txt`."""
  pairs = [line.split(" = ") for line in path.read_text().splitlines()]
  return {key: float(value) for key, value in pairs}


def tensors(prefix: str | os.PathLike) -> dict[str, np.ndarray]:
  """All that a checkpoint holds, by name."""
  prefix = os.fspath(prefix)
  return {name: tf.train.load_variable(prefix, name) for name, _ in tf.train.list_variables(prefix)}
