"""What ELECTRA's objective is worth: two models from nothing but a text, fine-tuned alike.

  python benchmarks/electra_from_text.py --corpus=wiki.txt --glue_dir=glue --output_dir=study

The last tenth of the documents is held out. One vocabulary, one file of records and one
configuration serve both objectives, masked words (`--objective=mlm`) and ELECTRA
(`--objective=electra`): what is fine-tuned has the same variables and was trained for the same
number of steps, on the same sequences, with the same flags. ELECTRA's generator comes on top; the
table says how many operations and how much time that costs.

For each seed, both are pre-trained, and they and a model with random weights are fine-tuned on
MRPC and CoLA with one command and the same seed: the spread is that of whole runs from the text to
the score. If `--rates` are several, each objective first chooses its peak rate by the held-out loss
that it minimises (ELECTRA: the generator's and 50 times the discriminator's), after
`--tuning_share` of the steps, with a seed that is used for nothing else.

FLOPs are those of `bert/model/training_flops.py`, as each run counts them; seconds are the
processor's, of the whole command with its evaluation (of its last start, if it was resumed). The
command may be killed and started again: finished runs are skipped, an unfinished one resumes.
`--report` prints the table of what is there and trains nothing:

  runs              on MRPC and on CoLA
  MRPC, CoLA        times 100, mean and standard deviation over the seeds, as all that follows
  masked words      their held-out loss, of ELECTRA its generator's
  AUC               of the discriminator on held-out text; 0.5 is chance
  TFLOP             of pre-training
  processor s       of pre-training

and last, one JSON line.
"""

import argparse
import json
import os
import pathlib
import sys
from collections.abc import Mapping, Sequence

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks import common, recipes  # noqa: E402
from bert.scripts import result_files  # noqa: E402
from bert.tasks import run_statistics  # noqa: E402

LENGTH = 128
TUNING_SEED = 77
TASKS = ("MRPC", "CoLA")

# What a fine-tuned model starts from: name -> objective, None without pre-training.
STARTS = {"random weights": None, "masked words": "mlm", "ELECTRA": "electra"}

# Those of `--recipe=budget`, which suit masked words at this scale
# (docs/pretraining_budget.md), but for larger batches. The configuration has the recipe's larger
# initial weights.
PRETRAINING_FLAGS = [
  *("--adam_bias_correction", "--dropout=0", "--lr_schedule=continuous", "--warmup_proportion=0.1"),
  *("--train_batch_size=32", "--dtype=auto", "--eval_batch_size=64"),
]
FINE_TUNING_FLAGS = [
  *("--adam_bias_correction", "--lr_schedule=continuous", "--learning_rate=3e-4"),
  *("--num_train_epochs=3", "--train_batch_size=32", "--dtype=auto"),
]
# One checkpoint at the end of a short run, one each 1,000 steps of a long one.
_CHECKPOINTS = ["--save_checkpoints_steps=1000", "--keep_checkpoint_max=1"]
_SETTINGS = "settings.json"

Facts = Mapping[str, float]


def main():
  args = _parse()
  folder = pathlib.Path(args.output_dir).resolve()
  if args.report and not (folder / _SETTINGS).exists():
    sys.exit(f"{folder} holds no study: its {_SETTINGS} is not there.")
  if not args.report:
    folder.mkdir(parents=True, exist_ok=True)
    _check_same_settings(folder, args)
    _make_inputs(folder, args)
    rates = {name: _choose_rate(name, folder, args) for name in filter(None, STARTS.values())}
    for seed in args.seeds:
      for start, objective in STARTS.items():
        _run_all(start, objective, rates.get(objective), seed, folder, args)
  _report(folder, args.seeds)


def _parse():
  parser = argparse.ArgumentParser(
    description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
  )
  parser.add_argument("--output_dir", required=True)
  parser.add_argument("--report", action="store_true", help="train nothing, print the table")
  parser.add_argument("--corpus", help="text, an empty line between documents")
  parser.add_argument("--glue_dir", help="with MRPC and CoLA")
  parser.add_argument("--seeds", type=common.numbers(int), default=[1, 2, 3])
  parser.add_argument("--steps", type=int, default=1000, help="of each pre-training")
  parser.add_argument("--rates", type=common.numbers(float), default=[2e-3], help="peak rates")
  parser.add_argument("--tuning_share", type=float, default=0.25)
  parser.add_argument("--layers", type=int, default=2)
  parser.add_argument("--hidden_size", type=int, default=128)
  parser.add_argument("--vocab_size", type=int, default=4000)
  parser.add_argument("--eval_batches", type=int, default=16, help="of 64 held-out sequences")
  parser.add_argument("--nice", type=int, default=0, help="added to the runs' niceness")
  args = parser.parse_args()
  if not args.report and not (args.corpus and args.glue_dir):
    parser.error("--corpus and --glue_dir are needed, but for --report")
  return args


def _check_same_settings(folder: pathlib.Path, args) -> None:
  """Refuses to add runs to those of a study with other sizes or flags."""
  names = ("steps", "rates", "tuning_share", "layers", "hidden_size", "vocab_size", "eval_batches")
  settings = {name: getattr(args, name) for name in names}
  settings |= {"pretraining": PRETRAINING_FLAGS, "fine_tuning": FINE_TUNING_FLAGS}
  there = common.once(folder / _SETTINGS, lambda: settings)
  if changed := [name for name in settings if there.get(name) != settings[name]]:
    name = changed[0]
    sys.exit(
      f"{folder}: the runs here have {name} {there.get(name)}, not {settings[name]}. "
      "Give another --output_dir."
    )


def _make_inputs(folder: pathlib.Path, args) -> None:
  """The vocabulary, the records of both objectives, and the configuration of all models."""
  wanted = {name: (name, ()) for name in ("train", "held_out")}
  options = ["--format=electra", f"--max_seq_length={LENGTH}", "--num_workers=1"]
  if not (folder / "train.tfrecord").exists():
    common.split_documents(args.corpus, folder)
  common.make_records(str(folder), folder, args.vocab_size, wanted, options, args.nice)
  sizes = args.vocab_size, args.layers, args.hidden_size
  # A generator of half the width: its narrowest head is 64 wide.
  family = {"model_type": "electra", "embedding_size": args.hidden_size, "initializer_range": 0.04}
  common.write_config(folder, *sizes, **family, generator_hidden_size=0.5, generator_layers=1.0)


# ---------------------------------------------------------------------------------------------
# Runs.


def _choose_rate(objective: str, folder: pathlib.Path, args) -> float:
  """The rate with the lowest held-out loss after a short run; one alone needs none."""
  if len(args.rates) == 1:
    return args.rates[0]
  losses = {}
  for rate in args.rates:
    output = folder / "tuning" / f"{objective}_rate_{rate:g}"
    steps = round(args.steps * args.tuning_share)
    losses[rate] = _pretrain(objective, rate, TUNING_SEED, steps, output, folder, args)["loss"]
  shown = ", ".join(f"{rate:g}: {loss:.4f}" for rate, loss in losses.items())
  print(f"{objective}: held-out loss of peak rates after {steps} steps: {shown}", flush=True)
  return min(losses, key=losses.get)


def _run_all(start, objective, rate, seed, folder, args) -> None:
  """A run from the text to both scores."""
  run = _run_folder(folder, start, seed)
  weights = []
  if objective:
    _pretrain(objective, rate, seed, args.steps, run / "pretraining", folder, args)
    weights = [f"--init_checkpoint={run}/pretraining"]
  for task in TASKS:
    facts = _fine_tune(task, weights, seed, run / task, folder, args)
    print(f"seed {seed}, {start}, {task}: {facts[recipes.TASKS[task].metric]:.4f}", flush=True)


def _run_folder(folder: pathlib.Path, start: str, seed: int) -> pathlib.Path:
  return folder / start.replace(" ", "_") / f"seed_{seed}"


def _pretrain(objective, rate, seed, steps, output, folder, args) -> dict:
  """What held-out text says of a pre-trained model; its rate, GFLOP and seconds."""

  def train():
    done = common.run_script(
      "run_pretraining",
      *("--do_train", "--do_eval", f"--objective={objective}", f"--output_dir={output}"),
      f"--input_file={folder}/train.tfrecord",
      f"--eval_input_file={folder}/held_out.tfrecord",
      *_model_flags(folder),
      f"--num_train_steps={steps}",
      f"--learning_rate={rate:g}",
      f"--seed={seed}",
      f"--max_eval_steps={args.eval_batches}",
      f"--save_summary_steps={max(1, steps // 100)}",
      *PRETRAINING_FLAGS,
      *_CHECKPOINTS,
      nice=args.nice,
    )
    facts = {"rate": rate, "gflop": _gflop(output), "seconds": done.processor_seconds}
    return facts | result_files.read_eval_results(f"{output}/eval_results.txt")

  return common.once(output / "finished.json", train)


def _fine_tune(task, weights: Sequence[str], seed, output, folder, args) -> dict:
  """The scores of a fine-tuned model, and its seconds."""

  def train():
    done = common.run_script(
      "run_classifier",
      *("--do_train", "--do_eval", f"--task_name={task}", f"--output_dir={output}"),
      f"--data_dir={pathlib.Path(args.glue_dir).resolve() / task}",
      *_model_flags(folder),
      *weights,
      f"--seed={seed}",
      *FINE_TUNING_FLAGS,
      *_CHECKPOINTS,
      nice=args.nice,
    )
    results = result_files.read_eval_results(f"{output}/eval_results.txt")
    return {"seconds": done.processor_seconds, **results}

  return common.once(output / "finished.json", train)


def _model_flags(folder: pathlib.Path) -> list[str]:
  files = [f"--bert_config_file={folder}/bert_config.json", f"--vocab_file={folder}/vocab.txt"]
  return [*files, f"--max_seq_length={LENGTH}"]


def _gflop(output: pathlib.Path) -> float:
  os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
  from bert.figures.event_files import read_run

  return max(read_run(output).training["total_GFLOP"].values())


# ---------------------------------------------------------------------------------------------
# The table.


def facts_of(folder: pathlib.Path, start: str, seeds: Sequence[int]) -> dict[str, dict[int, Facts]]:
  """What is there of the runs of a start.

  Returns:
    `pretraining` and each task -> seed -> facts.
  """
  found: dict[str, dict[int, Facts]] = {}
  for part in ("pretraining", *TASKS):
    paths = {s: _run_folder(folder, start, s) / part / "finished.json" for s in seeds}
    found[part] = {s: json.loads(path.read_text()) for s, path in paths.items() if path.exists()}
  return found


def shown(values: Sequence[float], digits: int) -> str:
  """Mean and, of several values, standard deviation.

  Example:
    >>> shown([70.0, 71.0, 72.0], 2), shown([0.5], 2), shown([], 2)
    ('71.00 ± 1.00', '0.50', '')
  """
  if not values:
    return ""
  summary = run_statistics.summarize(values)
  spread = "" if summary.deviation is None else f" ± {summary.deviation:.{digits}f}"
  return f"{summary.mean:.{digits}f}{spread}"


def _report(folder: pathlib.Path, seeds: Sequence[int]) -> None:
  metrics = {task: recipes.TASKS[task].metric for task in TASKS}
  head = [f"{task}, {metric.removeprefix('eval_')}" for task, metric in metrics.items()]
  rows = [["start", "runs", *head, "masked words, nats", "AUC", "TFLOP", "processor s"]]
  results = {}
  for start in STARTS:
    results[start] = facts = facts_of(folder, start, seeds)
    scores = {
      task: [100 * run[metric] for run in facts[task].values()] for task, metric in metrics.items()
    }
    before = list(facts["pretraining"].values())
    rows.append(
      [
        start,
        "/".join(str(len(values)) for values in scores.values()),
        *(shown(values, 2) for values in scores.values()),
        shown([run["masked_lm_loss"] for run in before], 2),
        shown([run["disc_auc"] for run in before if "disc_auc" in run], 3),
        shown([run["gflop"] / 1000 for run in before], 2),
        shown([run["seconds"] for run in before], 0),
      ]
    )
  common.print_markdown(rows)
  settings = json.loads((folder / _SETTINGS).read_text())
  line = {"benchmark": "electra_from_text", "machine": common.machine(), **settings}
  print(json.dumps({**line, "results": results}))


if __name__ == "__main__":
  main()
