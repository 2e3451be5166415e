"""The tests that `make check-gpu` runs in processes of pytest, and the rows of its table from them.

The tests are those of the project, unchanged; `check_report.py` is the plug-in that tells how they
ended. TF32 is switched off for goldens and `mirrored`: not all of these processes are started by a
script, which does so itself.
"""

import argparse
import dataclasses
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence

from benchmarks import common
from tests.kit.paths import ROOT

PASSED, FAILED, NOT_RUN = "passed", "FAILED", "not run"


@dataclasses.dataclass
class Outcome:
  """A row of the table.

  Attributes:
    check: what was checked.
    result: PASSED, FAILED or NOT_RUN.
    figure: what was found, or the reason.
    seconds: what it took.
  """

  check: str
  result: str
  figure: str
  seconds: float = 0.0


@dataclasses.dataclass(frozen=True)
class Process:
  """Tests of this project that one process of pytest runs.

  Attributes:
    rows: row of the table -> ids of tests. The small form is the first of each.
    environment: further variables.
    computes: whether that process itself computes, so that it must have used the GPU.
    note: what a reader of the row needs to know.
  """

  rows: Mapping[str, Sequence[str]]
  environment: Mapping[str, str] = dataclasses.field(default_factory=dict)
  computes: bool = False
  note: str = ""


@dataclasses.dataclass(frozen=True)
class Plan:
  """What is known before the first check.

  Attributes:
    args: the flags.
    devices: what `workers/devices.py` says.
    is_gpu: whether a GPU is checked, and not the command itself.
    peer: versions of the peers, or `why` there are none.
  """

  args: argparse.Namespace
  devices: dict
  is_gpu: bool
  peer: dict


# ---------------------------------------------------------------------------------------------
# Which tests.

_MODEL, _RUNS = "tests/model", "tests/run_classifier/families_test.py"
_TRANSFORMERS = f"{_MODEL}/roberta_and_distilbert_test.py"
_SEVERAL = "tests/system/several_devices_test.py::test_several_devices_train_as_one"
MIRRORED_SCRIPTS = (
  *("run_classifier", "run_pretraining", "run_squad", "run_ner", "run_swag", "run_similarity"),
)
_NO_TF32 = {"NVIDIA_TF32_OVERRIDE": "0"}
FORWARD = (
  "tests/modeling_test.py::test_tiny_forward_equals_the_original",
  "tests/modeling_test.py::test_minilm_forward_equals_the_original",
  f"{_MODEL}/families_test.py::test_albert_forward_equals_the_original",
  f"{_MODEL}/families_test.py::test_electra_encoders_equal_the_original",
  f"{_MODEL}/families_test.py::test_electra_attention_maps_equal_the_original",
  f"{_TRANSFORMERS}::test_forward_equals_transformers",
)
LOSSES = (
  f"{_MODEL}/replaced_tokens_test.py::test_losses_and_replaced_tokens_equal_the_original",
  f"{_MODEL}/heads_test.py::test_regression_equals_electra",
  f"{_MODEL}/heads_test.py::test_tagging_equals_electra",
  f"{_MODEL}/span_heads_test.py::test_electra_equals_the_original",
  f"{_MODEL}/span_heads_test.py::test_albert_equals_the_original",
  f"{_RUNS}::test_regression_of_albert_equals_the_original",
  f"{_TRANSFORMERS}::test_losses_and_all_words_equal_transformers",
)
STEPS = (
  "tests/optimization_test.py::test_classifier_steps_equal_the_original",
  "tests/optimization_test.py::test_pretraining_steps_equal_the_original",
  "tests/run_pretraining/exactness_test.py::test_20_steps_equal_the_original",
  "tests/run_pretraining/families_test.py::test_20_steps_of_albert_equal_the_original",
  "tests/run_pretraining/families_test.py::test_variants_of_electra_equal_the_original",
  f"{_RUNS}::test_electra_trains_as_the_original",
  f"{_RUNS}::test_albert_trains_as_the_original",
  f"{_TRANSFORMERS}::test_training_equals_pytorch",
)
_MEMORY = "tests/system/memory_limit_test.py::test_a_batch_that_does_not_fit"
MEMORY = tuple(
  f"{_MEMORY}[more{i}-{name}_batch_size]" for i, name in enumerate(("train", "eval", "predict"))
)
KILL = ("tests/system/run_pretraining_kill_test.py::test_one_kill",)

TESTS = {
  "goldens_forward": Process({"goldens, forward passes": FORWARD}, _NO_TF32, computes=True),
  "goldens_losses": Process({"goldens, losses": LOSSES}, _NO_TF32, computes=True),
  "goldens_steps": Process({"goldens, steps": STEPS}, _NO_TF32, computes=True),
  "mirrored": Process(
    {
      f"mirrored, {count}": [f"{_SEVERAL}[{name}-{strategy}]" for name in MIRRORED_SCRIPTS]
      for count, strategy in (("one device", "one_replica"), ("two devices", "mirrored"))
    },
    _NO_TF32,
  ),
  "memory": Process({"out of memory": MEMORY}),
  "kill": Process(
    {"kill and resume": KILL},
    {"TF_DETERMINISTIC_OPS": "1"},
    note="equal to the bit, TF_DETERMINISTIC_OPS=1",
  ),
}


_WHY_LENGTH = 120  # of a cell; the log has all


def run_tests(plan: Plan, name: str) -> list[Outcome]:
  """Runs a process of pytest; a row for each of its parts, as its plug-in tells."""
  tests = TESTS[name]
  ids = [each for row in tests.rows.values() for each in (row if plan.is_gpu else row[:1])]
  command = [sys.executable, "-m", "pytest", "-q", "--tb=short", "-p", "tools.check_report"]
  inherited = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST_", "TF_NUM_"))}
  # What the parent computed must not keep the whole GPU from the scripts that a test starts.
  environment = {**inherited, "TF_FORCE_GPU_ALLOW_GROWTH": "true", **tests.environment}
  if plan.is_gpu:
    environment["BERT_TEST_GPU_BYTES"] = str(plan.devices["gpus"][0]["bytes"])
  done = subprocess.run(
    [*command, "-p", "no:cacheprovider", *ids],
    **dict(cwd=ROOT, env=environment, text=True, errors="replace"),
    **dict(stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False),
  )
  write_log(plan, name, done.stdout)
  return rows_of_tests(tests, done.stdout, done.returncode, plan.is_gpu)


def rows_of_tests(tests: Process, log: str, code: int, is_gpu: bool) -> list[Outcome]:
  """Rows from what pytest has written.

  Args:
    tests: what it was to run.
    log: with the line of `tests/kit/check_report.py`.
    code: its exit code.
    is_gpu: whether what computes must have used a GPU.
  """
  try:
    report = common.last_json(log)
    found = report["tests"]
  except (ValueError, KeyError):
    why = f"pytest ended with exit code {code}: {last_line(log)}"
    return [Outcome(row, FAILED, why) for row in tests.rows]
  idle = is_gpu and tests.computes and not report["gpu_peak_bytes"]
  return [
    _row_of(row, [(each, found[each]) for each in found if _is_one_of(each, ids)], tests.note, idle)
    for row, ids in tests.rows.items()
  ]


def _is_one_of(nodeid, ids):
  return any(nodeid == each or nodeid.startswith(f"{each}[") for each in ids)


def _row_of(row, tests, note, idle):
  by_outcome = {"passed": [], "failed": [], "skipped": []}
  for nodeid, test in tests:
    by_outcome[test["outcome"]].append((nodeid.rpartition("::")[2], test))
  failed, skipped = by_outcome["failed"], by_outcome["skipped"]
  seconds = sum(test["seconds"] for _, test in tests)
  if not tests:
    return Outcome(row, FAILED, "none of its tests was found")
  if failed:
    name, test = failed[0]
    parts = [f"{len(failed)} of {len(tests)} tests failed", _nearest_to_its_limit(failed)]
    parts.append(f"{name}: {test['why'][:_WHY_LENGTH]}")
    return Outcome(row, FAILED, "; ".join(filter(None, parts)), seconds)
  if len(skipped) == len(tests):
    return Outcome(row, NOT_RUN, skipped[0][1]["why"], seconds)
  if idle:
    return Outcome(row, FAILED, "TensorFlow computed nothing on the GPU", seconds)
  parts = [_counted(len(by_outcome["passed"])), _nearest_to_its_limit(tests), note]
  parts += [test["properties"].get("note", "") for _, test in tests]
  parts += [f"{len(skipped)} not run: {skipped[0][1]['why']}"] if skipped else []
  return Outcome(row, PASSED, "; ".join(dict.fromkeys(filter(None, parts))), seconds)


def _counted(number):
  return f"{number} test{'s' if number > 1 else ''}"


def _nearest_to_its_limit(tests):
  test = max((test for _, test in tests), key=lambda test: test["share"])
  if not test["share"]:
    return ""
  return f"largest difference {test['difference']:.2g}, {test['share']:,.0%} of what is allowed"


# ---------------------------------------------------------------------------------------------
# Logs.


def write_log(plan: Plan, name: str, text: str) -> None:
  """Keeps what a process wrote, for those who look for the reason of a failure."""
  plan.args.log_dir.mkdir(parents=True, exist_ok=True)
  (plan.args.log_dir / f"{name}.log").write_text(text, encoding="utf-8")


def last_line(log: str) -> str:
  """The last line that says what is wrong, or else the last one.

  Example:
    >>> last_line("INFO: a\\nERROR: Out of memory.\\n(--verbose_errors shows where.)\\n")
    'ERROR: Out of memory.'
  """
  lines = [line.strip() for line in log.splitlines() if line.strip()] or ["nothing was written"]
  errors = [line for line in lines if re.match(r"ERROR\b|[\w.]*(Error|Exception)\b", line)]
  return (errors or lines)[-1][:300]
