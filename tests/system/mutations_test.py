"""The tests of protections fail once the protection is gone. Slow, half an hour:

  python -m pytest -m slow tests/system/mutations_test.py

`@pytest.mark.mutation("bert.io.atomic_files:written_whole", "call fsync")` beside a test names a
function and what is left out of it, a phrase of `tests/kit/mutations.py`. That is done in a copy of
the project, in one place after the other, until the test fails. With `case=`, only that one of its
cases has to fail.
"""

import ast
import json
import os
import pathlib
import shutil
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.kit.mutations import mutants
from tests.kit.paths import ROOT

pytestmark = pytest.mark.slow

# What tests read beside the modules.
_BESIDE = ("bert", "tests", "tools", "examples", "benchmarks", "samples")
_FILES = ("*.py", "pyproject.toml", "requirements.lock")


def _marks() -> Iterator[tuple[str, str, str]]:
  """Yields where, what is left out, and the test as pytest names it."""
  for path in sorted((ROOT / "tests").rglob("*_test.py")):
    for test in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
      for mark in getattr(test, "decorator_list", ()):
        if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.mutation":
          where, without = map(ast.literal_eval, mark.args)
          case = "".join(f"[{ast.literal_eval(each.value)}]" for each in mark.keywords)
          yield where, without, f"{path.relative_to(ROOT)}::{test.name}{case}"


MARKS = [*_marks()]


def _file_and_lines(where: str, root: pathlib.Path) -> tuple[pathlib.Path, range]:
  """The file of `bert.module:Class.function`, and the lines of that function."""
  module, _, function = where.partition(":")
  path = root / f"{module.replace('.', '/')}.py"
  path = path if path.is_file() else root / path.name
  node = ast.parse(path.read_text(encoding="utf-8"))
  for name in filter(None, function.split(".")):
    below = (each for child in ast.iter_child_nodes(node) for each in ast.walk(child))
    node = next(each for each in below if getattr(each, "name", None) == name)
  is_module = isinstance(node, ast.Module)
  return path, range(1, 1_000_000) if is_module else range(node.lineno, node.end_lineno + 1)


@pytest.fixture(scope="module")
def copy(tmp_path_factory) -> pathlib.Path:
  """The project once more, to be broken. Recorded outputs and real data are not beside it."""
  folder = tmp_path_factory.mktemp("broken") / "project"
  for name in _BESIDE:
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / name, folder / name, ignore=ignored)
  for path in (path for pattern in _FILES for path in ROOT.glob(pattern)):
    shutil.copy(path, folder)
  return folder


# Importing TensorFlow takes longer than most tests. It is done once, and every run begins with a
# fork that has nothing of the project in it yet.
_SERVER = """
import json, os, signal, sys
import hypothesis, numpy, pytest, tensorflow

for line in sys.stdin:
  arguments, log = json.loads(line)
  child = os.fork()
  if child == 0:
    signal.alarm(1200)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 1)
    os.dup2(1, 2)
    code = pytest.main(arguments)
    sys.stdout.flush()
    os._exit(code)
  print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@pytest.fixture(scope="module")
def run_tests(copy):
  """`run_tests(*tests)` runs tests of the copy by name: pytest's exit code, and its output."""
  environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST_", "BERT_"))}
  # Compiled files are distinguished by size and second: a broken line could hide behind an old one.
  environment |= {
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONHASHSEED": "0",
    "TF_CPP_MIN_LOG_LEVEL": "2",
  }
  log = copy.parent / "log"
  server = subprocess.Popen(
    [sys.executable, "-c", _SERVER],
    cwd=copy,
    env=environment,
    stdin=subprocess.PIPE,
    stdout=subprocess.PIPE,
    text=True,
  )

  def run(*tests):
    arguments = ["-q", "-m", "", "-p", "no:cacheprovider", *tests]
    server.stdin.write(json.dumps([arguments, str(log)]) + "\n")
    server.stdin.flush()
    code = int(server.stdout.readline())
    return code, log.read_text(errors="replace")

  yield run
  server.communicate()


def test_all_of_them_pass_where_nothing_is_broken(run_tests):
  code, output = run_tests(*dict.fromkeys(test for _, _, test in MARKS))
  assert code == 0, output[-5000:]
  assert "skipped" not in output.splitlines()[-1], output[-5000:]


@pytest.mark.parametrize(("where", "without", "test"), MARKS, ids=map(" ".join, MARKS))
def test_its_test_fails_without_it(copy, run_tests, where, without, test):
  path, lines = _file_and_lines(where, copy)
  whole = path.read_text(encoding="utf-8")
  output = "there is no such place"
  for broken in mutants(whole, lines, without):
    path.write_text(broken, encoding="utf-8")
    try:
      code, output = run_tests(test)
    finally:
      path.write_text(whole, encoding="utf-8")
    assert code in (0, 1), output[-3000:]  # 2 and more: they could not even be collected
    if code:
      return
  pytest.fail(f"Nothing was noticed; the last run: {output[-3000:]}")
