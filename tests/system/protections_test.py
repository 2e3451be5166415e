"""Each protection is still where the table says, and its test fails once it is broken.

Alone: python -m pytest tests/system/protections_test.py (seconds; with `-m slow` it breaks each of
them in a copy of the project, about half an hour)
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

from tests.kit.paths import ROOT
from tests.system import protections
from tests.system.protections import PROTECTIONS, Protection

EVERY = [each for group in PROTECTIONS.values() for each in group]
DOCUMENT = ROOT / "docs" / "reliability.md"
# What tests read beside the modules.
_BESIDE = ("tests", "samples", "pyproject.toml", "requirements.lock")


def test_there_are_enough_and_none_twice():
  edits = {(each.definition().name, each.text, each.broken, each.test) for each in EVERY}
  assert len(edits) == len(EVERY) >= 100
  assert len({each.what for each in EVERY}) == len(EVERY)


@pytest.mark.parametrize("subject", PROTECTIONS)
def test_each_is_there_once_and_can_be_broken(subject):
  problems = []
  for each in PROTECTIONS[subject]:
    try:
      compile(each.broken_source(), each.definition().file, "exec")
    except (ValueError, SyntaxError) as error:
      problems.append(f"{each.what}: {error}")
  assert problems == []


def test_each_test_is_there():
  problems = []
  for each in EVERY:
    try:
      each.test_id()
    except ValueError as error:
      problems.append(f"{each.what}: {error}")
  assert problems == []


@pytest.mark.parametrize(
  ("where", "text", "said"),
  [
    ("written_whole", "no such text", r"files\.written_whole contains 0 times, not once: 'no such"),
    ("no_such_function", "", "0 definitions are named no_such_function, not one"),
    ("main", "", r"definitions are named main, not one: .*run_squad\.main"),
  ],
)
def test_what_is_not_there_once_is_named(where, text, said):
  with pytest.raises(ValueError, match=said):
    Protection("what", where, text, "", "test").broken_source()


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
    arguments = ["-q", "-p", "no:cacheprovider", *tests]
    server.stdin.write(json.dumps([arguments, str(log)]) + "\n")
    server.stdin.flush()
    code = int(server.stdout.readline())
    return code, log.read_text(errors="replace")

  yield run
  server.communicate()


@pytest.mark.slow
def test_all_of_them_pass_where_nothing_is_broken(run_tests):
  code, said = run_tests(*dict.fromkeys(each.test_id() for each in EVERY))
  assert code == 0, said[-5000:]
  assert "skipped" not in said.splitlines()[-1], said[-5000:]


@pytest.mark.slow
@pytest.mark.parametrize("each", EVERY, ids=lambda each: f"{each.where}: {each.what}")
def test_its_test_fails_without_it(copy, run_tests, each):
  path = copy / each.definition().file
  whole = path.read_text(encoding="utf-8")
  path.write_text(each.broken_source(copy), encoding="utf-8")
  try:
    code, said = run_tests(each.test_id())
  finally:
    path.write_text(whole, encoding="utf-8")
  # 1: tests ran, and failed. 2 and more: they could not even be collected.
  assert code == 1, said[-3000:]
