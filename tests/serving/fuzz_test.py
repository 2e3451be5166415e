"""A fuzzer asks `serve.py` all that its document says, and much that it does not say.

Alone: python -m pytest tests/serving/fuzz_test.py -m ci (a minute). Each kind of task is there, as
a tiny export.
"""

import contextlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.kit import tiny_exports
from tests.kit.server_program import Program

# What the document cannot say of a request, such as that all columns have one length.
_UNDECIDED = "positive_data_acceptance,negative_data_rejection"


@pytest.fixture(scope="module")
def exports(tmp_path_factory):
  """Flags of one export of each kind."""
  folder = tmp_path_factory.mktemp("exports")
  names = tiny_exports.MODELS
  return {name: f"--model={tiny_exports.write(folder / name, name)}" for name in names}


@contextlib.contextmanager
def unharmed(folder, *flags: str) -> Iterator[Program]:
  """A server that is well afterwards: no mistake, no traceback, nothing in its queue."""
  program = Program(folder, *flags, "--log_format=json")
  try:
    yield program
    assert program.ask("GET", "/health") == {"status": "ready"}
    counts = counted(program)
    queued = {value for name, value in counts.items() if re.match("(te|bert)_queue_", name)}
    assert queued <= {0.0}
    assert sum(n.startswith("bert_worker_restarts_total") for n in counts) == 0
    failed = {name for name in counts if re.match(r'te_request_count{.*status="5', name)}
    assert failed == set()
    assert program.stop() == 0
    log = program.log.read_text()
    assert "Traceback" not in log
    # Others are TensorFlow's, of the process that it computes in.
    lines = [json.loads(line) for line in log.splitlines() if line.startswith("{")]
    assert [each for each in lines if each.get("level") == "error" or "traceback" in each] == []
  finally:
    program.process.kill()
    program.process.wait(60)


def counted(program) -> dict[str, float]:
  """The figures of `/metrics`."""
  lines = program.ask("GET", "/metrics").decode().splitlines()
  pairs = [line.rsplit(" ", 1) for line in lines if not line.startswith("#")]
  return {name: float(value) for name, value in pairs}


def fuzz(program, folder, seconds: int) -> int:
  """Asks for so long, and some seconds more; returns the number of requests."""
  done = subprocess.run(
    [
      *(sys.executable, "-m", "schemathesis.cli", "run"),
      f"http://127.0.0.1:{program.port}/openapi.json",
      *(f"--max-time={seconds}", "--checks=all", f"--exclude-checks={_UNDECIDED}"),
      *("--continue-on-failure", "--no-color", "--generation-database=none"),
      *("--suppress-health-check=all", "--warnings=off", "--request-timeout=60"),
      "--max-response-time=60",  # the first request of a rare ability starts TensorFlow
    ],
    cwd=folder,
    capture_output=True,
    text=True,
    timeout=2 * seconds + 300,
    check=False,
  )
  print(done.stdout[-20_000:])
  assert done.returncode == 0, done.stderr[-3000:]
  return int(sum(v for n, v in counted(program).items() if n.startswith("te_request_count{")))


@pytest.mark.ci
def test_all_routes_of_all_tasks_for_some_seconds(exports, tmp_path):
  with unharmed(tmp_path, *exports.values()) as program:
    assert fuzz(program, tmp_path, seconds=10) > 50
