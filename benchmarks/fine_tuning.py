"""Fine-tuning with `run_classifier.py`: speed, wall time and score, beside transformers.

  python benchmarks/fine_tuning.py --task=MRPC --data_dir=glue/MRPC \\
    --weights=uncased_L-12_H-768_A-12 --seeds=1,2,3 --also="--group_by_length" -- --fast

trains and evaluates once for each seed with the command of 2018 (length 128, batch 32, rate 5e-5,
three epochs); flags after `--` are added to it, and each `--also` is one more set of flags to
compare. On MRPC the peer is transformers' own Trainer with the same weights and settings: float32
and bfloat16 autocast, batches grouped by length and padded to their longest. Systems take turns,
seed by seed, and every turn is a whole command.

  training       examples over the whole time of training, compilation and checkpoints included
  later steps    the same without the first tenth of the steps
  first step     seconds from the command to the end of its first step
  command        seconds of the whole command

`--steps=40` stops after 40 steps and does not evaluate: speed only. With `--original_python`,
an interpreter with TensorFlow 1.15 and the original's package (on PyPI: `tensorflow==1.15.5
protobuf==3.20.3 bert-tensorflow==1.0.4`, Python 3.7), the original trains for `--original_epochs`
first, in the same run. Its speed is the median of what it logs.
"""

import argparse
import pathlib
import re
import shlex
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks import common  # noqa: E402
from bert.scripts import result_files  # noqa: E402

BATCH_SIZE = 32
MAX_SEQ_LENGTH = 128
DTYPES = ("bfloat16", "float32")

System = Callable[[int | str], dict[str, float]]  # a seed -> figures by name


def main():
  args = _parse()
  has_peer = args.peer_python and args.task == "MRPC"
  common.check_peer(args.peer_python if has_peer else "")
  original = _time_original(args) if args.original_python else None
  ceilings = common.measure_ceilings(args.peer_python if has_peer else "")
  with tempfile.TemporaryDirectory() as folder:
    systems = {_name(flags): ours(args, flags) for flags in _variants(args)}
    if has_peer:
      npz = f"{folder}/weights.npz"
      write_npz(args.weights, npz)
      systems |= {f"transformers, {dtype}": peer(args, npz, dtype) for dtype in DTYPES}
    runs = {name: [] for name in systems}
    for seed in args.seeds.split(","):
      for name, run in systems.items():
        runs[name].append({"seed": int(seed), **run(seed)})
        print(name, _one_line(runs[name][-1]), flush=True)
  rows = to_rows(runs, flops_per_example(args) if args.task == "MRPC" else 0.0)
  if original:
    rows.append(common.Row("training", "original", "examples/s", [original]))
  references = [f"transformers, {dtype}" for dtype in DTYPES] if has_peer else []
  references += ["original"] if original else []
  scores = {name: _scores(of_seeds) for name, of_seeds in runs.items()}
  facts = {"task": args.task, "steps": args.steps, "seeds": args.seeds, "scores": scores}
  common.report("fine_tuning", rows, references, ceilings, **facts)


def _parse():
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--task", default="MRPC")
  parser.add_argument("--data_dir", required=True)
  common.add_weights_flag(parser)
  parser.add_argument("--seeds", default="1,2,3", help="a turn of each system for each seed")
  parser.add_argument("--steps", type=int, help="stop after N steps; MRPC only")
  parser.add_argument("--peer_epochs", type=float, default=3.0)
  parser.add_argument("--original_python")
  parser.add_argument("--original_epochs", default="0.2")
  parser.add_argument(
    "--also", action="append", default=[], help="flags of one more system to compare, as one string"
  )
  common.add_peer_flags(parser)
  parser.add_argument("flags", nargs="*", help="further flags of run_classifier.py, after --")
  return parser.parse_args()


# ---------------------------------------------------------------------------------------------
# The systems: each a function of a seed that returns name -> number.


def _variants(args):
  """The sets of flags to compare."""
  return [args.flags, *(shlex.split(flags) for flags in args.also)]


def _name(flags):
  return " ".join(["ours", *flags])


def _command_of_2018(args, output_dir, epochs):
  weights = pathlib.Path(args.weights)
  return [
    f"--task_name={args.task}",
    "--do_train=true",
    f"--do_eval={'false' if args.steps else 'true'}",
    f"--data_dir={args.data_dir}",
    f"--vocab_file={weights / 'vocab.txt'}",
    f"--bert_config_file={weights / 'bert_config.json'}",
    f"--init_checkpoint={common.checkpoint_in(weights)}",
    f"--max_seq_length={MAX_SEQ_LENGTH}",
    f"--train_batch_size={BATCH_SIZE}",
    "--learning_rate=5e-5",
    f"--num_train_epochs={epochs}",
    f"--output_dir={output_dir}",
  ]


def ours(args, flags: Sequence[str], environment: Sequence[str] = ()) -> System:
  """Runs `run_classifier.py`.

  Args:
    args: `task`, `data_dir` (MRPC's form if there are steps), `weights` and `steps`, as the flags.
    flags: further ones of `run_classifier.py`.
    environment: `NAME=value` of more variables for its process.
  """
  epochs = 3.0
  if args.steps:
    epochs = (args.steps + 0.5) * BATCH_SIZE / len(_read_mrpc(args.data_dir))

  def run(seed):
    with tempfile.TemporaryDirectory() as output_dir:
      command = ["env", *environment, sys.executable, str(ROOT / "run_classifier.py")]
      command += [*_command_of_2018(args, output_dir, epochs), "--log_every_steps=1"]
      finished = common.run_command([*command, f"--seed={seed}", *flags])
      results = {}
      if not args.steps:
        results = result_files.read_eval_results(f"{output_dir}/eval_results.txt")
    training_s = float(re.search(r"Training took ([\d.]+) s", finished.log)[1])
    steps = int(re.search(r"Num steps = (\d+)", finished.log)[1])
    return {**speeds(finished, training_s, steps), **log_facts(finished.log), **results}

  return run


def peer(args, npz: str, dtype: str, device="cpu", environment: Sequence[str] = ()) -> System:
  """Runs transformers' Trainer.

  Args:
    args: as of `ours`, and `peer_python` and `peer_epochs`.
    npz: what `write_npz` has written.
    dtype: `float32`, `bfloat16`, or on a GPU `float16`.
    device: `cpu` or `cuda`.
    environment: `NAME=value` of more variables for its process.
  """
  command = ["env", *environment, args.peer_python, str(common.WORKERS / "fine_tuning_torch.py")]
  command += [f"--device={device}"]
  command += [f"--weights={args.weights}", f"--npz={npz}", f"--data_dir={args.data_dir}"]
  command += [f"--dtype={dtype}", f"--epochs={args.peer_epochs}"]
  command += [f"--steps={args.steps}"] if args.steps else ["--evaluate"]

  def run(seed):
    finished = common.run_command([*command, f"--seed={seed}"])
    facts = common.last_json(finished.log)
    results = {key: facts[key] for key in facts if key.startswith("eval_") or key == "mean_loss"}
    return {**speeds(finished, facts["training_s"], facts["steps"]), **results}

  return run


def write_npz(weights: str, path: str) -> None:
  """Writes a checkpoint's encoder for the peer."""
  with common.Worker(sys.executable, "encoder_tensorflow.py", weights, "") as worker:
    worker.ask("write_npz", path=path)


def _time_original(args):
  with tempfile.TemporaryDirectory() as output_dir:
    flags = _command_of_2018(args, output_dir, args.original_epochs)
    flags[2] = "--do_eval=false"
    log = common.run_command([args.original_python, "-m", "bert.run_classifier", *flags]).log
  found = [float(speed) for speed in re.findall(r"examples/sec: ([\d.]+)", log)]
  return statistics.median(found)


# ---------------------------------------------------------------------------------------------
# Figures.


def speeds(finished: common.Finished, training_s: float, steps: int) -> dict[str, float]:
  """What a run's log says of its time.

  Example:
    >>> steps = [(step, 4.0 + step) for step in range(1, 21)]
    >>> run = common.Finished(log="", seconds=30.0, steps=steps)
    >>> speeds(run, training_s=25.0, steps=20)["examples_per_second"]
    25.6
    >>> speeds(run, training_s=25.0, steps=20)["later_examples_per_second"]
    32.0
  """
  first, begin = finished.steps[max(1, len(finished.steps) // 10) - 1]
  last, end = finished.steps[-1]
  return {
    "examples_per_second": BATCH_SIZE * steps / training_s,
    "later_examples_per_second": BATCH_SIZE * (last - first) / (end - begin),
    "training_s": training_s,
    "first_step_s": finished.first_step_seconds(),
    "command_s": finished.seconds,
  }


def log_facts(log: str) -> dict[str, float]:
  """What a run's log says beside its speed: the mean loss of its steps, and the GPUs it had.

  TensorFlow names its GPUs where TF_CPP_MIN_LOG_LEVEL is 0.

  Example:
    >>> log_facts("step 1/2, loss 0.7500, x\\nstep 2/2, loss 0.2500, x\\n")
    {'mean_loss': 0.5, 'gpus': 0}
    >>> log_facts("step 1/1, loss 0.5\\nCreated device /job:localhost/task:0/device:GPU:0 with")
    {'mean_loss': 0.5, 'gpus': 1}
  """
  losses = [float(loss) for loss in re.findall(r"\bstep \d+/\d+, loss (\S+?),?\s", log)]
  gpus = set(re.findall(r"Created device /job:\S*/device:(GPU:\d+)", log))
  return {"mean_loss": statistics.mean(losses), "gpus": len(gpus)}


def to_rows(runs, flops: float) -> list[common.Row]:
  """The rows of the report: each figure of each system, a value for each seed."""
  figures = {
    "training": ("examples_per_second", "examples/s"),
    "later steps": ("later_examples_per_second", "examples/s"),
    "first step": ("first_step_s", "s"),
    "command": ("command_s", "s"),
  }
  rows = []
  for what, (key, unit) in figures.items():
    for name, of_seeds in runs.items():
      dtype = "bfloat16" if re.search("bfloat16|auto|fast", name) else "float32"
      values = [run[key] for run in of_seeds]
      row_flops = flops if unit == "examples/s" else 0.0
      rows.append(common.Row(what, name, unit, values, row_flops, dtype))
  return rows


def _scores(of_seeds):
  """Mean, smallest and largest of each evaluation result."""
  names = [name for name in of_seeds[0] if name.startswith(("eval_", "loss"))]
  columns = {name: [run[name] for run in of_seeds] for name in names}
  return {
    name: {"mean": statistics.mean(values), "min": min(values), "max": max(values)}
    for name, values in columns.items()
  }


def _one_line(run):
  return ", ".join(f"{name} {value:.4g}" for name, value in run.items())


def _read_mrpc(data_dir):
  lines = (pathlib.Path(data_dir) / "train.tsv").read_text("utf-8-sig").split("\n")
  return [line.split("\t")[3:5] for line in lines[1:] if line]


def flops_per_example(args) -> float:
  """Matrix products of forward and backward for the mean example, without padding."""
  from bert import tokenization

  tokenizer = tokenization.FullTokenizer(str(pathlib.Path(args.weights) / "vocab.txt"))
  lengths = [
    min(MAX_SEQ_LENGTH, 3 + sum(len(tokenizer.tokenize(text)) for text in pair))
    for pair in _read_mrpc(args.data_dir)
  ]
  return 3 * common.encoder_flops(common.read_config(args.weights), lengths) / len(lengths)


if __name__ == "__main__":
  main()
