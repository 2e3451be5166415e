"""What `--recipe=budget` saves: the held-out loss of two recipes over the FLOPs of training.

  python benchmarks/pretraining_corpus.py ... --output_dir=corpus
  python benchmarks/pretraining_budget.py --corpus_dir=corpus --output_dir=study --flops=1e14

The 2018 recipe gets `--flops` in all, the budget recipe half of them, from the same text, with the
same model and seeds. Each recipe first chooses its peak rate from the same `--rates`, at
`--tuning_share` of its FLOPs and with a seed that is used for nothing else. Everything is compared
by one measure: the loss of masked words of held-out documents, 15% of them masked once and for all
by the rules of 2018, over the first `--eval_batches` batches of 64 sequences.

FLOPs are those of `bert/model/training_flops.py`, as each run counts them. The command may be
killed and started again: finished runs are skipped, an unfinished one resumes. Writes
OUTPUT_DIR/results.json and OUTPUT_DIR/curves.png, prints a table and, last, one JSON line.
"""

import argparse
import dataclasses
import json
import os
import pathlib
import re
import statistics
import sys
from collections.abc import Mapping, Sequence

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks import common  # noqa: E402
from bert.model.configuration import BertConfig  # noqa: E402
from bert.model.training_flops import pretraining_flops  # noqa: E402

LENGTH = 128
EVALUATIONS = 16  # along each run
TUNING_SEED = 77

Curve = list[tuple[float, float]]


@dataclasses.dataclass(frozen=True)
class Recipe:
  """How one side is trained.

  Attributes:
    records: options of `create_pretraining_data.py`.
    flags: of `run_pretraining.py`, beside those of both.
    share: of the FLOPs.
    batch_size: on average over a run.
    masked: share of the tokens that are predicted.
  """

  records: tuple[str, ...]
  flags: tuple[str, ...]
  share: float
  batch_size: float
  masked: float


RECIPES = {
  "2018": Recipe(("--dupe_factor=10",), ("--warmup_proportion=0.1",), 1.0, 32, 0.15),
  "budget": Recipe(
    ("--dupe_factor=5", "--dynamic_masking"), ("--recipe=budget", "--max_predictions_per_seq=20"),
    0.5, 8, 0.15,
  ),
}  # fmt: skip


def main():
  args = _parse()
  folder = pathlib.Path(args.output_dir)
  folder.mkdir(parents=True, exist_ok=True)
  config = BertConfig.from_dict(
    common.write_config(folder, args.vocab_size, args.layers, args.hidden_size)
  )
  _make_records(folder, args)
  results = {}
  for name in RECIPES:
    rate = _choose_rate(name, folder, config, args)
    runs = {seed: _run(name, rate, seed, 1.0, folder, config, args) for seed in args.seeds}
    results[name] = {"rate": rate, "runs": runs}
  facts = summarise(results)
  (folder / "results.json").write_text(json.dumps({"results": results, **facts}, indent=1) + "\n")
  draw(results, folder / "curves.png")
  for name, result in results.items():
    losses = " ".join(f"{run['loss']:.3f}" for run in result["runs"].values())
    print(f"{name}: peak rate {result['rate']:g}, final held-out loss {losses}")
  line = {"benchmark": "pretraining_budget", **vars(args), **facts, "machine": common.machine()}
  print(json.dumps(line))


def _parse():
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--corpus_dir", required=True, help="with train.txt and held_out.txt")
  parser.add_argument("--output_dir", required=True)
  parser.add_argument("--flops", type=float, default=1e14, help="of the 2018 recipe")
  parser.add_argument("--seeds", type=common.numbers(int), default=[1, 2, 3])
  parser.add_argument("--rates", type=common.numbers(float), default=[1e-4, 3e-4, 1e-3, 2e-3])
  parser.add_argument("--tuning_share", type=float, default=0.25)
  parser.add_argument("--layers", type=int, default=2)
  parser.add_argument("--hidden_size", type=int, default=192)
  parser.add_argument("--vocab_size", type=int, default=8000)
  parser.add_argument("--eval_batches", type=int, default=32)
  parser.add_argument("--nice", type=int, default=0, help="added to the runs' niceness")
  return parser.parse_args()


# ---------------------------------------------------------------------------------------------
# Records.


def _make_records(folder: pathlib.Path, args) -> None:
  wanted = {"held_out": ("held_out", ("--dupe_factor=1",))}
  wanted |= {name: ("train", recipe.records) for name, recipe in RECIPES.items()}
  options = [f"--max_seq_length={LENGTH}", "--num_workers=2"]
  common.make_records(args.corpus_dir, folder, args.vocab_size, wanted, options, args.nice)


# ---------------------------------------------------------------------------------------------
# Runs.


def _choose_rate(name, folder, config, args) -> float:
  """The rate with the lowest loss after a short run."""
  losses = {}
  for rate in args.rates:
    losses[rate] = _run(name, rate, TUNING_SEED, args.tuning_share, folder, config, args)["loss"]
  shown = ", ".join(f"{rate:g}: {loss:.3f}" for rate, loss in losses.items())
  print(f"{name}: held-out loss of peak rates after {args.tuning_share:g} of its FLOPs: {shown}")
  return min(losses, key=losses.get)


def _run(name, rate, seed, share, folder, config, args) -> dict:
  """Trains once, or reads what an earlier start has trained: loss, GFLOP, curve."""
  output = folder / f"{name}_rate_{rate:g}_seed_{seed}_of_{share:g}"
  return common.once(
    output / "finished.json", lambda: _train(name, rate, seed, share, output, config, args)
  )


def _train(name, rate, seed, share, output, config, args) -> dict:
  recipe, folder = RECIPES[name], output.parent
  flops = args.flops * recipe.share * share
  steps = round(flops / flops_of_example(config, recipe.masked) / recipe.batch_size)
  every = max(1, steps // EVALUATIONS)
  done = common.run_script(
    "run_pretraining",
    "--do_train",
    "--do_eval",
    f"--input_file={folder}/{name}.tfrecord",
    f"--eval_input_file={folder}/held_out.tfrecord",
    f"--vocab_file={folder}/vocab.txt",
    f"--bert_config_file={folder}/bert_config.json",
    f"--output_dir={output}",
    f"--max_seq_length={LENGTH}",
    f"--num_train_steps={steps}",
    f"--learning_rate={rate:g}",
    f"--seed={seed}",
    "--dtype=auto",
    "--eval_batch_size=64",
    f"--max_eval_steps={args.eval_batches}",
    f"--eval_every_steps={every}",
    "--nokeep_best",
    f"--save_summary_steps={every}",
    f"--save_checkpoints_steps={every}",
    "--keep_checkpoint_max=1",
    f"--log_every_steps={every}",
    *recipe.flags,
    nice=args.nice,
  )
  facts = {**_read_run(output), "steps": steps}
  if found := re.findall(r"([\d.]+) GFLOP/s", done.log):
    facts["gflop_per_second"] = float(found[-1])
  return facts


def flops_of_example(config: BertConfig, masked: float) -> float:
  """FLOPs of training on an average sequence: nine tenths of the room are tokens.

  It plans the number of steps; the runs then count exactly.

  Example:
    >>> small = BertConfig(8000, hidden_size=128, num_hidden_layers=2, intermediate_size=512)
    >>> f"{flops_of_example(small, 0.15):.3g}"
    '4.28e+08'
  """
  tokens = 0.91 * LENGTH
  return pretraining_flops(config, tokens, 0.87 * LENGTH**2, masked * tokens, 1)


def _read_run(output: pathlib.Path) -> dict:
  from bert.figures.event_files import read_run

  os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
  run = read_run(output)
  flops = {step: gflop * 1e9 for step, gflop in run.training["total_GFLOP"].items()}
  losses = run.evaluation["masked_lm_loss"]
  curve = [(flops[step], loss) for step, loss in losses.items() if step in flops]
  return {"loss": curve[-1][1], "flops": curve[-1][0], "curve": curve}


# ---------------------------------------------------------------------------------------------
# Results.


def summarise(results: Mapping[str, Mapping]) -> dict:
  """What the budget recipe needs for the loss of 2018, as a share of its FLOPs.

  Returns:
    For each recipe the mean and the standard deviation of the final loss; `difference`, of the
    means, budget minus 2018; `share_of_flops`, for each seed: where the budget's curve first has
    the mean final loss of 2018, None where it has not.

  Example:
    >>> old = {"loss": 3.0, "flops": 8.0, "curve": [(4.0, 4.0), (8.0, 3.0)]}
    >>> new = {"loss": 2.0, "flops": 4.0, "curve": [(2.0, 4.0), (4.0, 2.0)]}
    >>> facts = summarise({"2018": {"runs": {1: old}}, "budget": {"runs": {1: new}}})
    >>> facts["difference"], facts["share_of_flops"]
    (-1.0, [0.375])
  """
  losses = {name: [run["loss"] for run in each["runs"].values()] for name, each in results.items()}
  facts = {}
  for name, values in losses.items():
    spread = statistics.stdev(values) if len(values) > 1 else 0.0
    facts[name] = {"mean_loss": statistics.mean(values), "standard_deviation": spread}
  target = facts["2018"]["mean_loss"]
  whole = statistics.mean(run["flops"] for run in results["2018"]["runs"].values())
  reached = [flops_at(run["curve"], target) for run in results["budget"]["runs"].values()]
  return {
    **facts,
    "difference": facts["budget"]["mean_loss"] - target,
    "share_of_flops": [None if flops is None else flops / whole for flops in reached],
  }


def flops_at(curve: Sequence[Sequence[float]], loss: float) -> float | None:
  """Where a curve of (FLOPs, loss) first is at a loss, on straight lines between its points.

  Example:
    >>> flops_at([(2.0, 4.0), (4.0, 2.0)], 3.0), flops_at([(2.0, 4.0), (4.0, 2.0)], 1.0)
    (3.0, None)
  """
  before = None
  for flops, value in curve:
    if value <= loss:
      if before is None:
        return flops
      share = (before[1] - loss) / (before[1] - value)
      return before[0] + share * (flops - before[0])
    before = flops, value
  return None


def draw(results: Mapping[str, Mapping], path: pathlib.Path) -> None:
  """Draws the held-out loss of all runs over FLOPs."""
  from bert.figures import drawing

  figure = drawing.new_figure(7.2, 4.4)
  panel = figure.add_subplot()
  for (name, result), color in zip(results.items(), drawing.COLORS, strict=False):
    for number, run in enumerate(result["runs"].values()):
      label = f"{name}, peak rate {result['rate']:g}" if not number else None
      flops, losses = zip(*run["curve"], strict=True)
      panel.plot(flops, losses, color=color, marker="o", markersize=3, linewidth=1.4, label=label)
  target = statistics.mean(run["loss"] for run in results["2018"]["runs"].values())
  label = f"mean end of 2018: {target:.3f}"
  panel.axhline(target, color=drawing.NOTE_COLOR, linestyle="--", linewidth=1.1, label=label)
  panel.set_xlim(left=0)
  title = "Loss of masked words, held-out documents, 15% fixed masks"
  drawing.plain_axes(panel, title, "FLOPs of training", "nats")
  panel.legend(frameon=False)
  drawing.save(figure, path)


if __name__ == "__main__":
  main()
