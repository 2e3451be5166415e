"""Each protection is still where the table says, and its test fails once it is broken.

Alone: python -m pytest tests/system/protections_test.py (seconds; with `-m slow` it breaks each of
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

from tests.kit.mutations import mutants
from tests.kit.paths import ROOT
from tests.system.protections import PROTECTIONS, Protection

# What one test guards in the same way, it guards at as many places.
SAME_PLACES: dict[tuple[str, str, str], list[Protection]] = {}
for _each in PROTECTIONS:
  SAME_PLACES.setdefault((_each.where, _each.without, _each.test), []).append(_each)
# What tests read beside the modules.
_BESIDE = ("tests", "examples", "benchmarks", "samples", "pyproject.toml", "requirements.lock")


def test_there_are_enough_and_none_twice():
  assert len({each.what for each in PROTECTIONS}) == len(PROTECTIONS) >= 180
  for (where, without, test), rows in SAME_PLACES.items():
    # Each row has a place of its own, if one test guards several.
    enough = len(rows) == 1 or len(rows) <= len(rows[0].broken_sources())
    assert enough, (where, without, test)


def test_each_is_there_and_can_be_left_out():
  problems = []
  for each in PROTECTIONS:
    try:
      for broken in each.broken_sources():
        ast.parse(broken)
    except (ValueError, SyntaxError) as error:
      problems.append(f"{each.what}: {error}")
  assert problems == []


def test_each_test_is_there():
  problems = []
  for each in PROTECTIONS:
    try:
      each.test_id()
    except ValueError as error:
      problems.append(f"{each.what}: {error}")
  assert problems == []


@pytest.mark.parametrize(
  ("where", "without", "said"),
  [
    ("written_whole", "call no_such", "files.written_whole has no place for 'call no_such'"),
    ("no_such_function", "guard", "0 definitions are named no_such_function, not one"),
    ("main", "guard", r"definitions are named main, not one: .*run_squad\.main"),
  ],
)
def test_what_is_not_there_is_named(where, without, said):
  with pytest.raises(ValueError, match=said):
    Protection("what", where, without, "test").broken_sources()


_SOURCE = """
import os

def save(path, names):
  with errors_naming(path) as writer:
    os.fsync(
      writer)
  try:
    if not path or names & 1:
      raise ValueError("é", os.path.join(path, "x"))
  except (OSError, KeyError):
    done = names.skip(2) if names else None
  return dump(done, plain=True)

def other():
  os.fsync(0)
"""


@pytest.mark.parametrize(
  ("without", "old", "new"),
  [
    ("guard", "if not path or names & 1:", "if ((not path or names & 1) and False):"),
    ("always", "2) if names else", "2) if ((names) or True) else"),
    ("operand or", "not path or names & 1", "((names & 1))"),
    ("operand &", "names & 1", "(names)"),
    ("except KeyError", "(OSError, KeyError)", "(OSError, )"),
    ("call fsync", "os.fsync(\n      writer)", "pass"),
    ("call errors_naming", "errors_naming(path)", '__import__("contextlib").nullcontext(path)'),
    ("call skip", "names.skip(2)", "(names)"),
    ("call join", 'os.path.join(path, "x")', "(path)"),
    ("keyword plain", "plain=True", "plain=False"),
    ("set done", "done = names.skip(2) if names else None", "pass"),
    ("join() -> {1} + {0}", 'os.path.join(path, "x")', "('x' + path)"),
    ("2 -> 3", "skip(2)", "skip((3))"),
    ("done -> path", "dump(done", "dump((path)"),
  ],
)
def test_what_is_left_out(without, old, new):
  broken = mutants(_SOURCE, range(4, 14), without)
  assert _SOURCE.replace(old, new, 1) in broken
  assert all("def other():\n  os.fsync(0)\n" in each for each in broken)
  assert mutants(_SOURCE, range(100, 101), without) == []


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
  code, said = run_tests(*dict.fromkeys(each.test_id() for each in PROTECTIONS))
  assert code == 0, said[-5000:]
  assert "skipped" not in said.splitlines()[-1], said[-5000:]


@pytest.mark.slow
@pytest.mark.parametrize("rows", SAME_PLACES.values(), ids=map(" ".join, SAME_PLACES))
def test_its_test_fails_without_it(copy, run_tests, rows):
  path = copy / rows[0].definition().file
  whole = path.read_text(encoding="utf-8")
  noticed = 0
  for broken in rows[0].broken_sources(copy):
    path.write_text(broken, encoding="utf-8")
    try:
      code, said = run_tests(rows[0].test_id())
    finally:
      path.write_text(whole, encoding="utf-8")
    assert code in (0, 1), said[-3000:]  # 2 and more: they could not even be collected
    noticed += code
    if noticed == len(rows):
      return
  pytest.fail(f"{noticed} of {len(rows)} were noticed; the last: {said[-3000:]}")
