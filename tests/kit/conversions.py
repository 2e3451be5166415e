"""Runs convert_checkpoint.py in this process."""

import contextlib
import io

import pytest

from bert import convert_checkpoint
from bert.scripts import command_line


def run(*command, **flags):
  """Runs a command; returns exit code, stdout and stderr."""
  argv = [
    "convert_checkpoint.py",
    *command,
    *(f"--{name}={value}" for name, value in flags.items()),
  ]
  out, err = io.StringIO(), io.StringIO()
  with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
    with pytest.raises(SystemExit) as caught:
      command_line.run(
        convert_checkpoint.main,
        convert_checkpoint.define_flags,
        convert_checkpoint.name_command(argv),
      )
  return caught.value.code or 0, out.getvalue(), err.getvalue()


def run_well(*command, **flags):
  """Runs a command and expects that nothing fails; returns stderr."""
  code, _, err = run(*command, **flags)
  assert code == 0, err
  return err


def error_of(*command, **flags):
  """Runs a command that fails; returns the error, which is no traceback."""
  code, _, err = run(*command, **flags)
  assert code == 1, err
  assert "Traceback" not in err
  return err[err.index("ERROR: ") :]
