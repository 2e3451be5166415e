"""Checks this project on a GPU, and prints one table and a JSON line: `make check-gpu`.

  python -m tools.check_gpu --peer_python=.bench-venv/bin/python

  goldens    forward passes, losses and steps beside recorded outputs of the originals: tests of
             this project, in float32 without TF32
  mirrored   `--distribution_strategy=mirrored` on one and on two devices takes the steps of none.
             Of one GPU the two are parts, between which TensorFlow adds without NCCL
  memory     a batch twice as large as the GPU ends in one message
  kill       a run that is killed and resumed equals one that never stopped, to the bit
  training   `run_classifier.py` with each `--dtype` and `--fast`, beside transformers: speeds, and
             mean losses near float32's. TF32 is off in both.
             Without --weights the model has BERT-Base's size and random weights

Each is a process of its own, one after another, and the log of each lies in --log_dir.

Without a GPU the same checks run in a small form on the CPU, two at a time, which shows that the
command works and says nothing of a GPU. What lacks goldens, peers or data is "not run". The exit
status is 1 if a check fails, or if there is a GPU that TensorFlow does not see.
"""

import argparse
import concurrent.futures
import dataclasses
import functools
import json
import os
import pathlib
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence

from benchmarks import common
from tests.kit.paths import ROOT
from tools import gpu_tests, gpu_training
from tools.gpu_tests import FAILED, NOT_RUN, PASSED, Outcome, Plan

GROUPS = (*dict.fromkeys(name.partition("_")[0] for name in gpu_tests.TESTS), "training")
_PEER = """
import json, torch, transformers
print(json.dumps({"torch": torch.__version__, "transformers": transformers.__version__,
                  "sees_gpu": torch.cuda.is_available()}))
"""


def main():
  args, begin = parse(), time.monotonic()
  devices = common.last_json(
    common.run_command([sys.executable, str(common.WORKERS / "devices.py")]).log
  )
  listed = nvidia_smi()
  is_gpu = bool(devices["gpus"]) and not args.cpu
  is_hidden = args.cpu or os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1")
  if problem := unseen_gpu(devices, listed, is_hidden):
    sys.exit(problem)
  if not is_gpu:
    os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
    print(no_gpu(devices, listed), flush=True)
  args.steps = args.steps or (500 if is_gpu else 3)
  plan = Plan(args, devices, is_gpu, find_peer(args.peer_python, is_gpu))
  outcomes = run_checks(plan)
  report(plan, listed, outcomes, time.monotonic() - begin)
  sys.exit(any(outcome.result == FAILED for outcome in outcomes))


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
  """Reads the command line."""
  parser = argparse.ArgumentParser(
    description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
  )
  parser.add_argument("--only", default=",".join(GROUPS), help="some of %(default)s")
  parser.add_argument("--cpu", action="store_true", help="check the command alone, on the CPU")
  parser.add_argument("--steps", type=int, help="of each training; default: 500, on the CPU 3")
  parser.add_argument("--mrpc", help="folder with MRPC's train.tsv; default: the samples")
  common.add_weights_flag(parser, required=False)
  parser.add_argument("--peer_python", default=str(ROOT / ".bench-venv" / "bin" / "python"))
  parser.add_argument("--log_dir", type=pathlib.Path, default=ROOT / "output" / "check_gpu")
  args = parser.parse_args(argv)
  unknown = set(args.only.split(",")) - set(GROUPS)
  if unknown:
    parser.error(f"--only: no {', '.join(sorted(unknown))} among {', '.join(GROUPS)}")
  return args


# ---------------------------------------------------------------------------------------------
# The machine and the peers.


def nvidia_smi(command: str = "nvidia-smi") -> list[dict[str, str]]:
  """Name and driver of each GPU that the driver knows; none without `nvidia-smi`."""
  query = [command, "--query-gpu=name,driver_version", "--format=csv,noheader"]
  try:
    done = subprocess.run(query, capture_output=True, text=True, timeout=20, check=True)
  except (OSError, subprocess.SubprocessError):
    return []
  pairs = [line.rpartition(", ") for line in done.stdout.splitlines()]
  return [{"name": name, "driver": driver} for name, comma, driver in pairs if comma]


def unseen_gpu(devices: Mapping, listed: Sequence[Mapping], is_hidden: bool) -> str | None:
  """What is wrong where the driver has a GPU and TensorFlow sees none, unless it is hidden."""
  if devices["gpus"] or not listed or is_hidden:
    return None
  return (
    f"nvidia-smi lists {listed[0]['name']}, but TensorFlow {devices['tensorflow']} sees no GPU: "
    '.venv/bin/python -m pip install -e ".[gpu]" brings its libraries for CUDA. (--cpu checks the '
    "command alone.)"
  )


def no_gpu(devices: Mapping, listed: Sequence[Mapping]) -> str:
  """The line that says that no GPU is checked."""
  why = (
    "it was not to be used" if devices["gpus"] or listed else "TensorFlow and nvidia-smi see none"
  )
  return (
    f"No GPU is checked: {why}. Instead the checks run in a small form on the CPU, which shows "
    "that this command works, and nothing else."
  )


def find_peer(python: str, is_gpu: bool) -> dict:
  """Versions of the peers, or `why` they cannot be compared with."""
  if not os.access(python, os.X_OK):
    return {
      "why": f"{python} is not there; `make bench-setup` makes it, --peer_python names another"
    }
  done = subprocess.run([python, "-c", _PEER], capture_output=True, text=True, check=False)
  if done.returncode:
    return {"why": f"{python}: {gpu_tests.last_line(done.stderr)}"}
  found = common.last_json(done.stdout)
  if is_gpu and not found["sees_gpu"]:
    return {"why": f"{python}: PyTorch {found['torch']} sees no GPU"}
  return found


# ---------------------------------------------------------------------------------------------
# Checks and their table.


def run_checks(plan: Plan) -> list[Outcome]:
  """Rows of the checks that were asked for: on a GPU one by one, on the CPU two at a time."""
  wanted = plan.args.only.split(",")
  checks = {
    name: functools.partial(gpu_tests.run_tests, plan, name)
    for name in gpu_tests.TESTS
    if name.partition("_")[0] in wanted
  }
  if "training" in wanted:
    checks["training"] = functools.partial(gpu_training.run_training, plan)
  # On the CPU the longest, which is the last, starts first.
  order = list(checks) if plan.is_gpu else list(checks)[::-1]
  with concurrent.futures.ThreadPoolExecutor(1 if plan.is_gpu else 2) as pool:
    running = {name: pool.submit(_shown, name, checks[name]) for name in order}
    return [row for name in checks for row in running[name].result()]


def _shown(name, check):
  """A check's rows, each with a line on stderr, too: a run that is cut short has no table."""
  rows = []
  try:
    for row in check():
      rows.append(row)
      _show(row)
  except Exception as error:  # The others' rows are worth having.
    rows.append(Outcome(name, FAILED, f"the check itself: {type(error).__name__}: {error}"))
    _show(rows[-1])
  return rows


def _show(row):
  print(f"{row.check}: {row.result}; {row.figure} ({row.seconds:.0f} s)", file=sys.stderr)


def report(
  plan: Plan, listed: Sequence[Mapping], outcomes: Sequence[Outcome], seconds: float
) -> None:
  """Prints the machine, the table, a line of counts, and the JSON line."""
  print()
  for line in machine_lines(plan, listed):
    print(line)
  print()
  head = ["check", "result", "figure", "s"]
  cells = [[row.check, row.result, row.figure, f"{row.seconds:.0f}"] for row in outcomes]
  common.print_markdown([head, *(_escaped(row) for row in cells)])
  counts = {kind: sum(row.result == kind for row in outcomes) for kind in (PASSED, NOT_RUN, FAILED)}
  told = ", ".join(f"{count} {kind}" for kind, count in counts.items())
  print(f"\n{told}, in {seconds:.0f} s. Logs: {plan.args.log_dir}")
  facts = {"benchmark": "check_gpu", "is_gpu": plan.is_gpu, "devices": plan.devices}
  facts |= {"driver": listed[0]["driver"] if listed else None, "peer": plan.peer}
  facts |= {"machine": common.machine(), "date": time.strftime("%Y-%m-%d", time.gmtime())}
  results = [dataclasses.asdict(row) for row in outcomes]
  print(json.dumps({**facts, "seconds": seconds, "counts": counts, "results": results}))


def _escaped(cells):
  return [cell.replace("|", "\\|") for cell in cells]


def machine_lines(plan: Plan, listed: Sequence[Mapping]) -> list[str]:
  """The machine's name: GPUs and driver, versions, processor, TF32, peers."""
  devices, machine = plan.devices, common.machine()
  driver = listed[0]["driver"] if listed else "unknown, nvidia-smi is not there"
  gpus = [
    f"{gpu['name']} ({gpu['bytes'] / 2**30:.0f} GiB free, compute capability {gpu['capability']})"
    for gpu in devices["gpus"]
  ]
  cuda = f"CUDA {devices['cuda']}, cuDNN {devices['cudnn']}, driver {driver}"
  names = ("torch", "transformers")
  peer = ", ".join(f"{name} {plan.peer[name]}" for name in names if name in plan.peer)
  return [
    f"GPU: {'; '.join(gpus)}; {cuda}" if plan.is_gpu else "GPU: not checked, small form on the CPU",
    f"TensorFlow {devices['tensorflow']}, Python {devices['python']}; beside it {peer or 'nobody'}",
    f"{machine['cores']} cores of {machine['processor']}",
    "TF32: off, here and in the peer" if plan.is_gpu else "TF32: no CPU has it",
  ]


if __name__ == "__main__":
  main()
