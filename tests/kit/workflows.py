"""The steps of the public workflows in .github/workflows/, and runs of them on this machine."""

import os
import pathlib
import subprocess
import sys

from tests.kit.paths import ROOT

FOLDER = ROOT / ".github" / "workflows"


def steps(workflow: str, job: str) -> list[str]:
  """Returns the shell commands of a job, in order."""
  import yaml  # Not installed where tests run without TensorFlow.

  content = yaml.safe_load((FOLDER / f"{workflow}.yml").read_text(encoding="utf-8"))
  return [step["run"] for step in content["jobs"][job]["steps"] if "run" in step]


def run(
  step: str, folder: pathlib.Path, python: str = sys.executable, **environment: str
) -> subprocess.CompletedProcess:
  """Runs a step as GitHub does; `python` is the one that it finds, with its commands."""
  inherited = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
  path = os.pathsep.join([os.path.dirname(python), os.environ["PATH"]])
  done = subprocess.run(
    ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step],
    cwd=folder,
    env={**inherited, "PATH": path, **environment},
    stdout=subprocess.PIPE,
    stderr=subprocess.STDOUT,
    text=True,
    check=False,
  )
  assert done.returncode == 0, done.stdout[-5000:]
  return done
