"""Each protection is still where the table says, and its test fails once it is broken.

Alone: python -m pytest tests/system/protections_test.py (a second; with `-m slow` it breaks each of
them in a copy of the project, about half an hour)
"""

import ast
import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

from tests.system import protections
from tests.system.protections import PROTECTIONS, ROOT, broken_source_of, source_of

EVERY = [each for group in PROTECTIONS.values() for each in group]
DOCUMENT = ROOT / "docs" / "reliability.md"
# What tests read beside the modules.
_BESIDE = ("tests", "samples", "pyproject.toml", "requirements.lock")


def functions_of(test_file: str) -> set[str]:
  """Names of the tests in a file."""
  tree = ast.parse((ROOT / test_file).read_text(encoding="utf-8"))
  return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_there_are_enough_and_none_twice():
  assert len({(each.file, each.text, each.broken) for each in EVERY}) == len(EVERY) >= 100
  assert len({each.what for each in EVERY}) == len(EVERY)


def test_each_line_is_there_once_and_can_be_broken():
  problems = []
  for each in EVERY:
    try:
      compile(broken_source_of(each), each.file, "exec")
    except (ValueError, SyntaxError) as error:
      problems.append(f"{each.file}: {each.what}: {error}")
  assert problems == []


def test_each_test_is_there():
  known = {name: functions_of(name) for name in {each.test.split("::")[0] for each in EVERY}}
  missing = []
  for each in EVERY:
    file, function = each.test.split("[")[0].split("::")
    if function not in known[file]:
      missing.append(each.test)
  assert missing == []


def test_a_line_that_is_not_there_is_told():
  each = protections.Protection(
    "what", "bert/io/atomic_files.py", "no such line", "", "tests/io/atomic_files_test.py::test"
  )
  with pytest.raises(ValueError, match=r"files\.py has 0 times, not once: 'no such line'"):
    broken_source_of(each)


def test_the_document_has_the_table_as_it_is():
  assert protections.markdown_table() in DOCUMENT.read_text(encoding="utf-8"), (
    "put the output of `python -m tests.system.protections` into docs/reliability.md"
  )


# ---------------------------------------------------------------------------------------------
# Breaking them.


@pytest.fixture(scope="module")
def copy(tmp_path_factory) -> pathlib.Path:
  """The project once more, to be broken. Recorded outputs and real data are not beside it."""
  folder = tmp_path_factory.mktemp("broken") / "project"
  folder.mkdir()
  for path in [*ROOT.glob("*.py"), ROOT / "bert", *(ROOT / name for name in _BESIDE)]:
    if path.is_dir():
      shutil.copytree(path, folder / path.name, ignore=shutil.ignore_patterns("__pycache__"))
    else:
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
  """`run_tests(*tests)` runs tests of the copy by name: pytest's exit code, and what it said."""
  environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST_", "BERT_"))}
  # Compiled files are told apart by size and second: a broken line could hide behind an old one.
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
    arguments = ["-q", "-p", "no:cacheprovider", *tests]
    server.stdin.write(json.dumps([arguments, str(log)]) + "\n")
    server.stdin.flush()
    code = int(server.stdout.readline())
    return code, log.read_text(errors="replace")

  yield run
  server.communicate()


@pytest.mark.slow
def test_all_of_them_pass_where_nothing_is_broken(run_tests):
  code, said = run_tests(*dict.fromkeys(f"tests/{each.test}" for each in EVERY))
  assert code == 0, said[-5000:]
  assert "skipped" not in said.splitlines()[-1], said[-5000:]


@pytest.mark.slow
@pytest.mark.parametrize("each", EVERY, ids=lambda each: f"{each.file}: {each.what}")
def test_its_test_fails_without_it(copy, run_tests, each):
  path, whole = copy / each.file, source_of(each, copy)
  path.write_text(broken_source_of(each, copy), encoding="utf-8")
  try:
    code, said = run_tests(f"tests/{each.test}")
  finally:
    path.write_text(whole, encoding="utf-8")
  # 1: tests ran, and failed. 2 and more: they could not even be collected.
  assert code == 1, said[-3000:]
