"""Runs of the programs in examples/, as users run them.

@pytest.fixture
def output_of(forked_python):
  return functools.partial(example_runs.output_of, forked_python)
"""

import subprocess

from tests.kit.forked_python import Python
from tests.kit.paths import ROOT

_WITHOUT_PROJECT = """
import runpy, sys
sys.modules["bert"] = None
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def output_of(
  python: Python, script: str, *arguments, needs_project: bool = True, **environment: str
) -> str:
  """Returns what an example prints on standard output.

  Where it does not need this project, that cannot be imported.
  """
  done = subprocess.run(
    [
      python.command,
      *([] if needs_project else ["-c", _WITHOUT_PROJECT]),
      str(ROOT / "examples" / script),
      *map(str, arguments),
    ],
    capture_output=True,
    text=True,
    env={**python.environment, **environment},
    timeout=900,
  )
  assert done.returncode == 0, done.stderr[-3000:]
  return done.stdout
