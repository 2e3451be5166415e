"""Fine-tuning with `run_classifier.py`: time and score over several seeds, and the original beside.

  python benchmarks/fine_tuning.py --task=MRPC --data_dir=glue/MRPC --weights=minilm --seeds=1,2,3

trains and evaluates once for each seed with the command of 2018 (length 128, batch 32, rate 5e-5,
three epochs; further flags after `--`), and prints a table and one JSON line last. Speed is
examples over the training's whole time, compilation and checkpoints included.

With `--original_python`, an interpreter with TensorFlow 1.15 and the original's package (on PyPI:
`tensorflow==1.15.5 protobuf==3.20.3 bert-tensorflow==1.0.4`, Python 3.7), the original trains for
`--original_epochs` first, in the same run. Its speed is the median of what it logs.
"""

import argparse
import json
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent


def main():
  args = _parse()
  original = _time_original(args) if args.original_python else None
  runs, columns = [], []
  for seed in args.seeds.split(","):
    run = _run_ours(args, seed)
    if not runs:
      columns = list(run)
      print("  ".join(f"{column:>19}" for column in columns))
    print("  ".join(f"{run[column]:>19.5g}" for column in columns), flush=True)
    runs.append(run)
  summary = {
    column: _spread([run[column] for run in runs]) for column in columns if column != "seed"
  }
  if original:
    summary["original_examples_per_second"] = original
    summary["times_the_original"] = summary["examples_per_second"]["mean"] / original
  print(json.dumps({"task": args.task, "flags": args.flags, **summary}))


def _parse():
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--task", default="MRPC")
  parser.add_argument("--data_dir", required=True)
  parser.add_argument("--weights", required=True, help="folder of an original-format checkpoint")
  parser.add_argument("--seeds", default="1,2,3")
  parser.add_argument("--original_python")
  parser.add_argument("--original_epochs", default="0.2")
  parser.add_argument("flags", nargs="*", help="further flags of run_classifier.py, after --")
  return parser.parse_args()


def _command_of_2018(args, output_dir, epochs="3.0"):
  weights = pathlib.Path(args.weights)
  return [
    f"--task_name={args.task}",
    "--do_train=true",
    "--do_eval=true",
    f"--data_dir={args.data_dir}",
    f"--vocab_file={weights / 'vocab.txt'}",
    f"--bert_config_file={weights / 'bert_config.json'}",
    f"--init_checkpoint={weights / 'bert_model.ckpt'}",
    "--max_seq_length=128",
    "--train_batch_size=32",
    "--learning_rate=5e-5",
    f"--num_train_epochs={epochs}",
    f"--output_dir={output_dir}",
  ]


def _run_ours(args, seed):
  with tempfile.TemporaryDirectory() as output_dir:
    command = [sys.executable, str(ROOT / "run_classifier.py")]
    command += [*_command_of_2018(args, output_dir), f"--seed={seed}", *args.flags]
    start = time.perf_counter()
    log = _run(command)
    wall_s = time.perf_counter() - start
    lines = (pathlib.Path(output_dir) / "eval_results.txt").read_text().splitlines()
  training_s = float(re.search(r"Training took ([\d.]+) s", log)[1])
  examples = 32 * int(re.search(r"Num steps = (\d+)", log)[1])
  results = {key: float(value) for key, value in (line.split(" = ") for line in lines)}
  return {
    "seed": int(seed),
    "examples_per_second": examples / training_s,
    "training_s": training_s,
    "command_s": wall_s,
    **results,
  }


def _time_original(args):
  with tempfile.TemporaryDirectory() as output_dir:
    flags = _command_of_2018(args, output_dir, args.original_epochs)
    flags[flags.index("--do_eval=true")] = "--do_eval=false"
    log = _run([args.original_python, "-m", "bert.run_classifier", *flags])
  speeds = [float(speed) for speed in re.findall(r"examples/sec: ([\d.]+)", log)]
  return statistics.median(speeds)


def _run(command):
  done = subprocess.run(command, capture_output=True, text=True)
  if done.returncode:
    sys.exit(f"{' '.join(command)}\nfailed:\n{done.stderr[-3000:]}")
  return done.stderr + done.stdout


def _spread(values):
  return {"mean": statistics.mean(values), "min": min(values), "max": max(values)}


if __name__ == "__main__":
  main()
