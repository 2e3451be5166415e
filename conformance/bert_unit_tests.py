"""google-research/bert: its unit tests, unedited, with `bert tf1`; then against our modules.

Beside their own modules the tests show that TensorFlow 1.15's API is right; alone in a folder they
import the modules that `bert tf1` has for scripts without their own.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator

from conformance.cases import FAILED, PASSED, SKIPPED, Case, Context, SuiteError, read_with

FOLDERS = ("bert",)
ROOT = pathlib.Path(__file__).resolve().parent.parent
_TESTS = ("tokenization_test.py", "modeling_test.py", "optimization_test.py")
# absltest's lines.
_RESULT = re.compile(r"^\[ +(OK|FAILED|SKIPPED) +\] (\w+\.\w+)", re.MULTILINE)
_OUTCOMES = {"OK": PASSED, "FAILED": FAILED, "SKIPPED": SKIPPED}
_REASONS = {"FAILED": "fails", "SKIPPED": "TensorFlow's test class skips it: a method, no test"}


def cases(context: Context) -> Iterator[Case]:
  """Each test function, twice."""
  clone = context.folder("bert")
  for name in _TESTS:
    yield from read_with(clone / name, lambda path: _run(context, path, True))
    yield from read_with(clone / name, lambda path: _run(context, path, False))


def _run(context: Context, path: pathlib.Path, with_theirs: bool) -> Iterator[Case]:
  if not path.is_file():
    raise SuiteError(f"{path}: not there; the suite has another layout than expected.")
  whose = "their modules" if with_theirs else "our modules"
  folder = context.scratch / f"{path.stem}_{whose.replace(' ', '_')}"
  folder.mkdir(parents=True)
  copied = sorted(path.parent.glob("*.py")) if with_theirs else [path]
  for source in copied:
    shutil.copy(source, folder)
  # Not in the clone itself: Python would write compiled modules there.
  environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "TF_CPP_MIN_LOG_LEVEL": "3"}
  environment["PYTHONPATH"] = str(ROOT / "tf1")
  command = [sys.executable, "-m", "bert_tf1", f"--cwd={folder}", path.name]
  done = subprocess.run(
    command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600
  )
  yield from results(f"{path.name}, {whose}", done.stdout + done.stderr, done.returncode)


def results(title: str, output: str, returncode: int) -> Iterator[Case]:
  """The cases of a run of absltest.

  Args:
    title: what was run.
    output: both streams.
    returncode: of the process.

  Raises:
    SuiteError: the run failed before any test, or failed although no test did.
  """
  found = list(dict.fromkeys(_RESULT.findall(output)))
  for word, name in found:
    yield Case(f"{title}: {name}", _OUTCOMES[word], _REASONS.get(word, ""))
  has_failure = any(word == "FAILED" for word, _ in found)
  if not found or (returncode != 0) != has_failure:
    raise SuiteError(f"{title}: the run ended with {returncode}: {output[-800:]}")
