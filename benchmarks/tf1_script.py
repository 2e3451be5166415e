"""One script of TensorFlow 1.x started in several ways: examples per second of its training.

  python benchmarks/tf1_script.py --rounds=3 --batch_size=32 \\
    --way="1.15.5=py37/bin/python bert/run_classifier.py" \\
    --way="bert tf1=python -m bert_tf1 bert/run_classifier.py" \\
    -- --task_name=MRPC --do_train=true --train_batch_size=32 ...

Each way is a command to which the flags after `--` are added, with an --output_dir of its own and
--save_checkpoints_steps. What counts is the time from the checkpoint of that step to the last one,
so starting, building the graph and the first steps do not. Rounds alternate between the ways; the
table has medians and all values. One JSON line comes last.
"""

import argparse
import json
import pathlib
import shlex
import statistics
import subprocess
import sys
import tempfile


def main():
  args = _parse()
  ways = dict(way.split("=", 1) for way in args.way)
  speeds = {name: [] for name in ways}
  for _ in range(args.rounds):
    for name, command in ways.items():
      speeds[name].append(_examples_per_second(command, args))
  medians = {name: statistics.median(values) for name, values in speeds.items()}
  first = next(iter(medians.values()))
  for name, values in speeds.items():
    each = ", ".join(f"{value:.1f}" for value in values)
    print(
      f"{name:<24}{medians[name]:>8.1f} examples/s{medians[name] / first:>7.2f} times   ({each})"
    )
  print(json.dumps({"examples_per_second": speeds, "medians": medians}))


def _parse():
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--way", action="append", required=True, metavar="NAME=COMMAND")
  parser.add_argument("--rounds", type=int, default=3)
  parser.add_argument("--batch_size", type=int, default=32, help="Examples in a training batch.")
  parser.add_argument("--first_step", type=int, default=20, help="Count from this step on.")
  parser.add_argument("flags", nargs="*", help="Flags of the script, after --.")
  return parser.parse_args()


def _examples_per_second(command, args):
  with tempfile.TemporaryDirectory() as folder:
    flags = [*args.flags, f"--output_dir={folder}", f"--save_checkpoints_steps={args.first_step}"]
    run = subprocess.run(
      [*shlex.split(command), *flags], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if run.returncode:
      sys.exit(f"{command} ended with status {run.returncode}:\n{run.stdout[-2000:]}")
    saved = {
      int(path.stem.rpartition("-")[2]): path.stat().st_mtime
      for path in pathlib.Path(folder).glob("model.ckpt-*.index")
    }
  last = max(saved)
  if args.first_step not in saved or last == args.first_step:
    sys.exit(f"{command}: needs more than {args.first_step} steps; it saved {sorted(saved)}")
  steps = last - args.first_step
  return steps * args.batch_size / (saved[last] - saved[args.first_step])


if __name__ == "__main__":
  main()
