"""Runs of the programs in examples/, each in its own process, as users run them."""

import os
import subprocess
import sys

from tests.kit.paths import ROOT

_WITHOUT_PROJECT = """
import runpy, sys
sys.modules["bert"] = None
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def output_of(script: str, *arguments, needs_project: bool = True, **environment: str) -> str:
  """Returns what an example prints on standard output.

  Where it does not need this project, that cannot be imported.
  """
  inherited = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
  done = subprocess.run(
    [
      sys.executable,
      *([] if needs_project else ["-c", _WITHOUT_PROJECT]),
      str(ROOT / "examples" / script),
      *map(str, arguments),
    ],
    capture_output=True,
    text=True,
    env={**inherited, "TF_CPP_MIN_LOG_LEVEL": "3", **environment},
    timeout=900,
  )
  assert done.returncode == 0, done.stderr[-3000:]
  return done.stdout
