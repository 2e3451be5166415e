"""Scripts that read lines from standard input and print what they make of them."""

import io
import sys
import types
from collections.abc import Sequence

import pytest

from bert.scripts import command_line
from tests.kit.script_runs import Done


class Terminal(io.TextIOWrapper):
  """Standard input at which somebody types."""

  def isatty(self):
    """See base class."""
    return True


def run_filter(
  script: types.ModuleType,
  stdin: bytes = b"",
  argv: Sequence[str] = (),
  stdin_type: type[io.TextIOWrapper] = io.TextIOWrapper,
  **values,
) -> Done:
  """Runs a script in this process; `run_filter(script, task="vectors")` is `--task=vectors`."""
  argv = ["script.py", *argv, *(f"--{name}={value}" for name, value in values.items())]
  out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.StringIO()
  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(sys, "stdin", stdin_type(io.BytesIO(stdin), "utf-8"))
    patch.setattr(sys, "stdout", out)
    patch.setattr(sys, "stderr", err)
    with pytest.raises(SystemExit) as left:
      command_line.run(script.main, script.define_flags, argv)
  out.flush()
  return Done(left.value.code, out.buffer.getvalue().decode(), err.getvalue())
