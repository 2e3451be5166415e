"""What a recipe of fine-tuning is worth: the same seeds with it and without, on three small tasks.

  python benchmarks/recipes.py --glue_dir=glue --weights=uncased_L-12_H-768_A-12 \\
    --output_dir=/tmp/recipes --seeds=1,2,3,4,5,6,7,8
  python benchmarks/recipes.py --output_dir=/tmp/recipes --report

Each run is one process of `run_classifier.py`, in OUTPUT_DIR/TASK/VARIANT/seed_N; the next start
skips what has finished and continues what has not. MRPC and STS-B are whole, CoLA is the first
2,000 sentences of its training file with the whole dev set. All variants have the command of 2018
(length 128, batch 32, rate 5e-5, three epochs: 343, 187 and 539 steps) with `--fast`, and their
own flags after it.

`--report` prints, at any moment, a row for each task and variant:

  score        mean and standard deviation over the seeds: accuracy (MRPC), Matthews correlation
               (CoLA), Pearson correlation (STS-B), all times 100
  failed       runs at most one point above what the majority class (MRPC) or no correlation scores
  gain         mean of the differences from `2018` with the same seed, and its 95% interval by
               Student's t

and last, one JSON line.
"""

import argparse
import dataclasses
import json
import pathlib
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks import common  # noqa: E402
from bert.scripts import recipes, result_files  # noqa: E402
from bert.tasks import run_statistics  # noqa: E402
from bert.tasks.run_statistics import Summary  # noqa: E402

BASELINE = "2018"
COLA_SENTENCES = 2000
# A run that has learned nothing scores what a constant answer does, give or take some examples.
FAILED_WITHIN = 0.01

COMMON_FLAGS = [
  *("--do_train", "--do_eval", "--fast", "--max_seq_length=128", "--train_batch_size=32"),
  # With --fast, long runs alone would group by length: all are to read alike.
  *("--eval_batch_size=32", "--learning_rate=5e-5", "--num_train_epochs=3", "--nogroup_by_length"),
  # One checkpoint at the start and one at the end: both are removed when the run has finished.
  *("--save_checkpoints_steps=1000000", "--keep_checkpoint_max=1"),
]
_STABLE = recipes.RECIPES["stable"].flags

VARIANTS = {
  BASELINE: (),
  "stable": _STABLE,
  "reinit1": (*_STABLE, "--reinit_layers=1"),
  "reinit2": (*_STABLE, "--reinit_layers=2"),
  "llrd": (*_STABLE, "--layerwise_lr_decay=0.9"),
  # What each half of `stable` does alone.
  "bias": ("--adam_bias_correction",),
  "steps": ("--min_train_steps=600",),
}


@dataclasses.dataclass(frozen=True)
class Task:
  """One task of the study.

  Attributes:
    metric: its name in `eval_results.txt`.
    other_metric: a second one, for the JSON line.
    trivial_score: of a constant answer: 279 of the 408 pairs of MRPC's dev set are paraphrases.
  """

  metric: str
  other_metric: str
  trivial_score: float


TASKS = {
  "MRPC": Task("eval_accuracy", "eval_f1", 279 / 408),
  "CoLA": Task("eval_matthews_corrcoef", "eval_accuracy", 0.0),
  "STS-B": Task("eval_pearson", "eval_spearman", 0.0),
}


def main():
  args = _parse()
  folder = pathlib.Path(args.output_dir)
  failures = 0
  if not args.report:
    runs = ordered(args.tasks, args.seeds, args.variants, args.order)
    for number, run in enumerate(runs, 1):
      print(f"{number} of {len(runs)}: {'/'.join(map(str, run))}", end=" ", flush=True)
      failures += not _finish(args, folder, *run)
  _report(folder, args.tasks, args.variants, args.seeds)
  sys.exit(bool(failures))


def _parse():
  parser = argparse.ArgumentParser(
    description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
  )
  parser.add_argument("--output_dir", required=True, help="folder of the runs")
  parser.add_argument("--report", action="store_true", help="train nothing, print the table")
  parser.add_argument("--glue_dir", help="folder with MRPC, CoLA, STS-B")
  common.add_weights_flag(parser, required=False)
  parser.add_argument("--tasks", type=_names_of(TASKS), default=list(TASKS))
  parser.add_argument("--variants", type=_names_of(VARIANTS), default=list(VARIANTS))
  parser.add_argument("--seeds", type=common.numbers(int), default=list(range(1, 9)), help="1,2,3")
  parser.add_argument(
    "--order",
    choices=("seeds", "variants"),
    default="seeds",
    help="outer loop: all of one seed first, so that partial results are balanced, or of a variant",
  )
  parser.add_argument("--python", default=sys.executable, help="interpreter of the runs")
  args = parser.parse_args()
  if not args.report and not (args.glue_dir and args.weights):
    parser.error("--glue_dir and --weights are needed, but for --report")
  return args


def _names_of(known):
  def names(text):
    chosen = text.split(",")
    if wrong := [name for name in chosen if name not in known]:
      raise argparse.ArgumentTypeError(f"{wrong[0]} is none of {', '.join(known)}")
    return chosen

  return names


# ---------------------------------------------------------------------------------------------
# Runs.


def ordered(
  tasks: Sequence[str], seeds: Sequence[int], variants: Sequence[str], order: str
) -> list[tuple[str, str, int]]:
  """All runs as (task, variant, seed), in the order of the study.

  Example:
    >>> ordered(["MRPC"], [1, 2], ["2018", "bias"], "seeds")[:3]
    [('MRPC', '2018', 1), ('MRPC', 'bias', 1), ('MRPC', '2018', 2)]
    >>> ordered(["MRPC"], [1, 2], ["2018", "bias"], "variants")[:3]
    [('MRPC', '2018', 1), ('MRPC', '2018', 2), ('MRPC', 'bias', 1)]
  """
  if order == "seeds":
    return [(task, name, seed) for seed in seeds for task in tasks for name in variants]
  return [(task, name, seed) for name in variants for task in tasks for seed in seeds]


def _finish(args, folder: pathlib.Path, task: str, variant: str, seed: int) -> bool:
  """Makes one run, unless it is there; returns whether it has succeeded."""
  output_dir = _run_folder(folder, task, variant, seed)
  flags = [*COMMON_FLAGS, *VARIANTS[variant]]
  _check_same_flags(output_dir.parent, flags)
  results = output_dir / "eval_results.txt"
  if results.exists():
    _remove_large_files(output_dir)  # of a study that was stopped just before it did
    print("is there", flush=True)
    return True
  command = [
    *(args.python, str(ROOT / "run_classifier.py")),
    f"--task_name={task}",
    f"--data_dir={_data_dir(pathlib.Path(args.glue_dir), folder, task)}",
    f"--init_checkpoint={args.weights}",
    f"--output_dir={output_dir}",
    f"--seed={seed}",
    *flags,
  ]
  begin = time.monotonic()
  log = output_dir.parent / f"seed_{seed}.log"
  with log.open("a") as stream:
    code = subprocess.run(command, stdout=stream, stderr=stream, cwd=ROOT, check=False).returncode
  if code:
    print(f"FAILED, exit code {code}: {log}", flush=True)
    return False
  _remove_large_files(output_dir)
  value = _read_results(results)[TASKS[task].metric]
  print(f"{value:.4f}, {time.monotonic() - begin:.0f} s", flush=True)
  return True


def _run_folder(folder, task, variant, seed):
  return folder / task / variant / f"seed_{seed}"


def _check_same_flags(folder: pathlib.Path, flags: Sequence[str]) -> None:
  """Refuses to add runs to those of a variant that had the same name and other flags."""
  path, line = folder / "flags.txt", " ".join(flags) + "\n"
  folder.mkdir(parents=True, exist_ok=True)
  if path.exists() and path.read_text() != line:
    sys.exit(f"{path}: the runs here have other flags than {line}Give another --output_dir.")
  path.write_text(line)


def _data_dir(glue_dir: pathlib.Path, folder: pathlib.Path, task: str) -> pathlib.Path:
  """The folder of a task's data; for CoLA one with a part of them, made when first needed."""
  if task != "CoLA":
    return glue_dir / task
  part = folder / "CoLA_data"
  if not (part / "train.tsv").exists():
    part.mkdir(parents=True, exist_ok=True)
    shutil.copy(glue_dir / task / "dev.tsv", part / "dev.tsv")
    lines = (glue_dir / task / "train.tsv").read_text("utf-8").splitlines(keepends=True)
    (part / "train.tsv").write_text("".join(lines[:COLA_SENTENCES]), "utf-8")
  return part


def _remove_large_files(output_dir):
  for pattern in ("model.ckpt*", "*.tf_record", "checkpoint"):
    for path in output_dir.glob(pattern):
      path.unlink()


def _read_results(path):
  return result_files.read_eval_results(str(path))


# ---------------------------------------------------------------------------------------------
# The table.


def gain_over(baseline: Mapping[int, float], scores: Mapping[int, float]) -> Summary | None:
  """The differences over the same seeds: their mean and its 95% interval; None if none is in both.

  Args:
    baseline: seed -> score.
    scores: seed -> score.

  Example:
    >>> gain = gain_over({1: 70.0, 2: 71.0, 3: 69.0}, {1: 72.0, 2: 72.0, 3: 72.0, 4: 80.0})
    >>> gain.mean, [round(bound, 3) for bound in gain.interval], gain.count
    (2.0, [-0.484, 4.484], 3)
  """
  differences = [scores[seed] - baseline[seed] for seed in baseline if seed in scores]
  return run_statistics.summarize(differences) if differences else None


@dataclasses.dataclass(frozen=True)
class Runs:
  """The runs of one task and variant.

  Attributes:
    scores: seed -> score times 100.
    others: seed -> the second metric times 100.
    steps: of one run.
    failed: seeds whose run learned nothing.
  """

  scores: Mapping[int, float]
  others: Mapping[int, float]
  steps: int
  failed: Sequence[int]


def runs_of(folder: pathlib.Path, task: str, variant: str, seeds: Sequence[int]) -> Runs | None:
  """What is there of a variant's runs; None where nothing is."""
  facts = TASKS[task]
  paths = {seed: _run_folder(folder, task, variant, seed) / "eval_results.txt" for seed in seeds}
  results = {seed: _read_results(path) for seed, path in paths.items() if path.exists()}
  if not results:
    return None
  scores = {seed: 100 * values[facts.metric] for seed, values in results.items()}
  others = {seed: 100 * values[facts.other_metric] for seed, values in results.items()}
  limit = 100 * (facts.trivial_score + FAILED_WITHIN)
  failed = [seed for seed, score in scores.items() if score <= limit]
  steps = int(next(iter(results.values()))["global_step"])
  return Runs(scores, others, steps, failed)


def _report(folder, tasks, variants, seeds):
  rows = [["task", "variant", "steps", "runs", "score", "failed", "gain", "pairs"]]
  results = []
  for task in tasks:
    baseline = runs_of(folder, task, BASELINE, seeds)
    for variant in variants:
      runs = runs_of(folder, task, variant, seeds)
      if runs is None:
        continue
      has_gain = baseline and variant != BASELINE
      gain = gain_over(baseline.scores, runs.scores) if has_gain else None
      summary = run_statistics.summarize(list(runs.scores.values()))
      facts = {"task": task, "variant": variant, "flags": VARIANTS[variant]}
      facts |= dataclasses.asdict(runs)
      facts |= {"summary": dataclasses.asdict(summary)}
      results.append(facts | ({"gain": dataclasses.asdict(gain)} if gain else {}))
      rows.append([task, variant, *_cells(runs, summary, gain)])
  common.print_markdown(rows)
  line = {"benchmark": "recipes", "machine": common.machine(), "common_flags": COMMON_FLAGS}
  print(json.dumps({**line, "results": results}))


def _cells(runs, summary, gain):
  spread = f" ± {summary.deviation:.2f}" if summary.count > 1 else ""
  score = f"{summary.mean:.2f}{spread}"
  cells = [str(runs.steps), str(summary.count), score, str(len(runs.failed))]
  if gain is None:
    return [*cells, "", ""]
  bounds = "[{:+.2f}, {:+.2f}]".format(*gain.interval) if gain.interval else ""
  return [*cells, f"{gain.mean:+.2f} {bounds}".rstrip(), str(gain.count)]


if __name__ == "__main__":
  main()
