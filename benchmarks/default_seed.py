"""Is a seed a poor draw, or is something amiss? SQuAD 1.1 over seeds, beside the original.

  python benchmarks/default_seed.py --squad_dir=squad --weights=uncased_L-12_H-768_A-12 \\
    --output_dir=/tmp/seeds --seeds=12345,1,2,3,4,5,6,7
  python benchmarks/default_seed.py ... --mixtures=12345:1:1,1:12345:1,1:1:12345
  python benchmarks/default_seed.py ... --early_seeds=12345,1,2,3 --early_steps=50
  python benchmarks/default_seed.py ... --keep_weights
  python benchmarks/default_seed.py --output_dir=/tmp/seeds --report

Every run is one process, in OUTPUT_DIR/SYSTEM_NAME, and one line of OUTPUT_DIR/results.txt; the
next start skips what has a line there. Systems:

  ours      run_squad.py with that seed; batch 12, rate 5e-5, two epochs, length 256
  mixed     as 12345:1:2, the initial values of seed 12345, the order of the data of seed 1 and the
            dropout of seed 2: which of the three makes a run poor
  early     the first steps of a whole run: the mean loss of the last ten of them
  original  google-research/bert under TensorFlow 1.15 (--original_dir, --original_python,
            --original_runs): it has no seed, so its runs differ by themselves

`--report` prints, at any moment, all scores of a system in rising order with mean and standard
deviation, where each seed stands among them, and tests of ours against the original: exact rank
tests of the scores (Mann and Whitney 1947) and of their distances from the median of their own
system, and a permutation test of the standard deviations. The latter two ask whether one spreads
more. Of runs with `--keep_weights` it prints how far apart the trained encoders of two runs are: if
one system's runs differed more in what is random, its own would be further apart. Scores of a few
runs say little of their spread; these distances say much. Last, one JSON line.
"""

import argparse
import contextlib
import itertools
import json
import pathlib
import re
import statistics
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple
from unittest import mock

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks import common  # noqa: E402
from bert.tasks import run_statistics  # noqa: E402

FLAGS = [
  *("--train_batch_size=12", "--learning_rate=5e-5", "--num_train_epochs=2"),
  *("--max_seq_length=256", "--doc_stride=128"),
]
DEFAULT_SEED = "12345"  # its score raised the question, so it is no draw like the others
# Losses of single batches scatter: the mean of several says more.
EARLY_LOSSES = 10


def main():
  args = _parse()
  folder = pathlib.Path(args.output_dir)
  if not args.report:
    folder.mkdir(parents=True, exist_ok=True)
    for system, name in _runs(args):
      if (system, name) not in read_results(folder):
        _make(args, folder, system, name)
  report(read_results(folder), weight_distances(folder))


def _parse():
  parser = argparse.ArgumentParser(
    description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
  )
  parser.add_argument("--output_dir", required=True, help="folder of the runs")
  parser.add_argument("--report", action="store_true", help="train nothing, print the tables")
  parser.add_argument("--keep_weights", action="store_true", help="of each run, for --report")
  parser.add_argument("--squad_dir", help="folder with train-v1.1.json and dev-v1.1.json")
  common.add_weights_flag(parser, required=False)
  parser.add_argument("--seeds", type=_words, default=[], help="of whole runs: 12345,1,2")
  parser.add_argument("--mixtures", type=_words, default=[], help="INITIAL:ORDER:DROPOUT,...")
  parser.add_argument("--early_seeds", type=_words, default=[], help="of runs that stop early")
  parser.add_argument("--early_steps", type=int, default=50, help="where those stop")
  parser.add_argument("--original_dir", help="a checkout of google-research/bert")
  parser.add_argument("--original_python", help="an interpreter with TensorFlow 1.15")
  parser.add_argument("--original_runs", type=int, default=0, help="number of its runs")
  args = parser.parse_args()
  if not args.report and not (args.squad_dir and args.weights):
    parser.error("--squad_dir and --weights are needed, but for --report")
  if args.original_runs and not (args.original_dir and args.original_python):
    parser.error("--original_runs needs --original_dir and --original_python")
  for mixture in args.mixtures:
    if not re.fullmatch(r"\d+:\d+:\d+", mixture):
      parser.error(f"--mixtures: {mixture} is not INITIAL:ORDER:DROPOUT, such as 12345:1:1")
  return args


def _words(text: str) -> list[str]:
  return [word for word in text.split(",") if word]


def _runs(args) -> list[tuple[str, str]]:
  """(system, name) of every run that was asked for."""
  return [
    *(("ours", seed) for seed in args.seeds),
    *(("original", str(number)) for number in range(1, args.original_runs + 1)),
    *(("mixed", mixture) for mixture in args.mixtures),
    *(("early", seed) for seed in args.early_seeds),
  ]


# ---------------------------------------------------------------------------------------------
# Runs.


class Seeds(NamedTuple):
  """The seeds of the three things that a seed governs."""

  initial: int
  order: int
  dropout: int


@contextlib.contextmanager
def mixed_seeds(seeds: Seeds, stop_after: int | None = None) -> Iterator[None]:
  """Within the block an `Estimator` trains with these seeds, whatever its own is.

  Args:
    seeds: those of initial values, order and dropout.
    stop_after: stop after N steps of the run's own schedule.
  """
  from bert.training import estimator

  def variables(config):
    made = model_variables(config)
    made.store.seed = seeds.initial
    return made

  def data(input_fn, params, *others):
    return training_data(input_fn, {**params, "seed": seeds.order}, *others)

  def graph(model, seed, *others):
    del seed
    return training_graph(model, seeds.dropout, *others)

  def train(self, input_fn, max_steps, **others):
    return whole_train(self, input_fn, min(max_steps, stop_after or max_steps), **others)

  model_variables, training_data = estimator.ModelVariables, estimator.TrainingData
  training_graph, whole_train = estimator.TrainingGraph, estimator.Estimator.train
  with (
    mock.patch.object(estimator, "ModelVariables", variables),
    mock.patch.object(estimator, "TrainingData", data),
    mock.patch.object(estimator, "TrainingGraph", graph),
    mock.patch.object(estimator.Estimator, "train", train),
  ):
    yield


def _make(args, folder: pathlib.Path, system: str, name: str) -> None:
  """Makes one run and adds its line to the results; a run that fails has none."""
  output_dir = folder / f"{system}_{name.replace(':', '_')}"
  command = _command(args, output_dir, system, name)
  # The original's flags are in its scripts' own folder.
  where = args.original_dir if system == "original" else ROOT
  with (folder / f"{output_dir.name}.log").open("a") as log:
    code = subprocess.run(command, stdout=log, stderr=log, cwd=where, check=False).returncode
  if code:
    print(f"{system} {name} FAILED, exit code {code}: {log.name}", flush=True)
    return
  if system == "early":
    line = f"steps = {args.early_steps} loss = {_early_loss(output_dir):.4f}"
  else:
    line = _scores(pathlib.Path(args.squad_dir), output_dir)
  with (folder / "results.txt").open("a") as results:
    results.write(f"{system} {name} {line}\n")
  print(f"{system} {name} {line}", flush=True)
  kept = f"{pathlib.Path(common.checkpoint_in(output_dir)).name}." if args.keep_weights else None
  for pattern in ("model.ckpt*", "*.tf_record", "checkpoint"):
    for path in output_dir.glob(pattern):
      if kept is None or not path.name.startswith(kept):
        path.unlink()


def _command(args, output_dir: pathlib.Path, system: str, name: str) -> list[str]:
  weights, squad = pathlib.Path(args.weights).resolve(), pathlib.Path(args.squad_dir).resolve()
  flags = [
    *("--do_train=True", f"--train_file={squad}/train-v1.1.json"),
    *(f"--vocab_file={weights}/vocab.txt", f"--bert_config_file={weights}/bert_config.json"),
    *(f"--init_checkpoint={common.checkpoint_in(weights)}", *FLAGS),
    f"--output_dir={output_dir.resolve()}",
  ]
  predict = ["--do_predict=True", f"--predict_file={squad}/dev-v1.1.json"]
  if system == "original":
    return [args.original_python, "-W", "ignore", "run_squad.py", *flags, *predict]
  if system == "ours":
    return [sys.executable, str(ROOT / "run_squad.py"), *flags, *predict, f"--seed={name}"]
  driver = [sys.executable, str(pathlib.Path(__file__).resolve()), "--as_run"]
  if system == "mixed":
    return [*driver, name, "0", *flags, *predict]
  return [*driver, ":".join([name] * 3), str(args.early_steps), *flags, "--save_summary_steps=1"]


def _as_run(mixture: str, stop_after: str, flags: list[str]) -> None:
  """`run_squad.py` with mixed seeds, in this process."""
  import run_squad
  from bert.scripts import command_line

  seeds = Seeds(*map(int, mixture.split(":")))
  with mixed_seeds(seeds, int(stop_after) or None):
    command_line.run(
      run_squad.main,
      run_squad.define_flags,
      ["run_squad.py", *flags, f"--seed={seeds.initial}"],
    )


def _early_loss(output_dir: pathlib.Path) -> float:
  from bert.figures import event_files

  losses = list(event_files.read_curves(output_dir)["loss"].values())
  return statistics.fmean(losses[-EARLY_LOSSES:])


def _scores(squad: pathlib.Path, output_dir: pathlib.Path) -> str:
  """The official scores of the written answers, of whichever system, by one scorer."""
  from bert.tasks import squad_scores

  data = json.loads((squad / "dev-v1.1.json").read_text("utf-8"))["data"]
  answers = {
    question["id"]: [answer["text"] for answer in question["answers"]]
    for article in data
    for paragraph in article["paragraphs"]
    for question in paragraph["qas"]
  }
  predictions = json.loads((output_dir / "predictions.json").read_text("utf-8"))
  scores = squad_scores.evaluate_v1(answers, predictions)
  return " ".join(f"{name} = {value:.4f}" for name, value in scores.items())


# ---------------------------------------------------------------------------------------------
# The report.


def read_results(folder: pathlib.Path) -> dict[tuple[str, str], float]:
  """(system, name) -> F1, or the loss of an early run, from `results.txt`."""
  path = folder / "results.txt"
  if not path.exists():
    return {}
  results = {}
  for line in path.read_text("utf-8").splitlines():
    match = re.match(r"(\w+) ([\w:]+) .*\b(?:f1|loss) = ([\d.]+)", line)
    if match:
      results[match[1], match[2]] = float(match[3])
  return results


def rank_tests(ours: Sequence[float], theirs: Sequence[float]) -> tuple[float, float]:
  """Two-sided p-values: that both have the same distribution, and that both spread alike.

  Exact for samples without ties; the second compares distances from the own median.

  Example:
    >>> p, p_spread = rank_tests([1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.5])
    >>> round(p, 4), p_spread > 0.5
    (0.0286, True)
  """
  from scipy import stats

  def distances(values):
    middle = statistics.median(values)
    return [abs(value - middle) for value in values]

  pairs = [(ours, theirs), (distances(ours), distances(theirs))]
  first, second = (
    float(stats.mannwhitneyu(one, other, method="exact").pvalue) for one, other in pairs
  )
  return first, second


def deviation_test(ours: Sequence[float], theirs: Sequence[float]) -> float:
  """Two-sided p-value, by 20,000 permutations, that both have the same standard deviation.

  What is permuted are distances from the own median. A few outliers decide it, unlike a rank test.

  Example:
    >>> p = deviation_test([1.0, 2.0, 3.0, 4.0, 5.0], [11.0, 12.0, 13.0, 14.0, 15.0])
    >>> p, deviation_test([1.0, 2.0, 3.0, 4.0, 5.0], [2.8, 2.9, 3.0, 3.1, 3.2]) < 0.05
    (1.0, True)
  """
  from scipy import stats

  def centred(values):
    return np.asarray(values) - statistics.median(values)

  def log_ratio(one, other, axis):
    return np.abs(np.log(np.std(one, axis=axis) / np.std(other, axis=axis)))

  tested = stats.permutation_test(
    (centred(ours), centred(theirs)),
    log_ratio,
    n_resamples=20_000,
    alternative="greater",
    rng=np.random.default_rng(0),
  )
  return float(tested.pvalue)


def weight_distances(folder: pathlib.Path) -> dict[str, list[float]]:
  """Computes how far apart the trained encoders of each two runs are, as far as they were kept.

  Returns:
    `ours, original` and the like -> the Euclidean distances of pairs of such runs.
  """
  weights = {}
  for index in sorted(folder.glob("*/model.ckpt-*.index")):
    weights[index.parent.name] = _encoder_weights(str(index.with_suffix("")))
  distances: dict[str, list[float]] = {}
  for one, other in itertools.combinations(weights, 2):
    systems = ", ".join(sorted(name.partition("_")[0] for name in (one, other)))
    distance = float(np.linalg.norm(weights[one] - weights[other]))
    distances.setdefault(systems, []).append(distance)
  return distances


def _encoder_weights(prefix: str) -> np.ndarray:
  """Reads all variables of the encoder as one vector, float32 `[N]`."""
  import tensorflow as tf

  reader = tf.train.load_checkpoint(prefix)
  names = sorted(reader.get_variable_to_shape_map())
  trained = [name for name in names if name.startswith("bert/") and "/adam_" not in name]
  return np.concatenate([reader.get_tensor(name).ravel() for name in trained])


def report(
  results: Mapping[tuple[str, str], float], distances: Mapping[str, Sequence[float]]
) -> None:
  """Prints the table, the place of each seed, the tests, the distances and the JSON line."""
  systems: dict[str, dict[str, float]] = {}
  for (system, name), value in results.items():
    systems.setdefault(system, {})[name] = value
  facts: dict = {"benchmark": "default_seed", "machine": common.machine(), "flags": FLAGS}
  print("| system | runs | mean | standard deviation | all, in rising order |")
  print("|---|---|---|---|---|")
  for system, values in systems.items():
    summary = run_statistics.summarize(list(values.values()))
    digits = 3 if system == "early" else 1
    deviation = "" if summary.deviation is None else f"{summary.deviation:.{digits}f}"
    rising = sorted(values.items(), key=lambda item: item[1])
    shown = ", ".join(
      f"{value:.{digits}f}" + ("" if system == "original" else f" ({name})")
      for name, value in rising
    )
    print(f"| {system} | {summary.count} | {summary.mean:.{digits}f} | {deviation} | {shown} |")
    facts[system] = {"values": values, "mean": summary.mean, "deviation": summary.deviation}
  if len(systems.get("ours", ())) > 1 and len(systems.get("original", ())) > 1:
    theirs = list(systems["original"].values())
    others = {name: score for name, score in systems["ours"].items() if name != DEFAULT_SEED}
    print()
    for key, scores in (("all", systems["ours"]), (f"without {DEFAULT_SEED}", others)):
      if len(scores) < 2:
        continue
      p, p_spread = rank_tests(list(scores.values()), theirs)
      p_deviation = deviation_test(list(scores.values()), theirs)
      print(
        f"ours ({key}) against original: p = {p:.3f} for scores, {p_spread:.3f} for their spread, "
        f"{p_deviation:.3f} for their deviations"
      )
      facts[f"tests, {key}"] = {"p": p, "p_spread": p_spread, "p_deviation": p_deviation}
  if distances:
    print("\n| runs of | pairs | mean distance of their weights | smallest | largest |")
    print("|---|---|---|---|---|")
  for systems, values in distances.items():
    mean, extremes = statistics.fmean(values), f"{min(values):.2f} | {max(values):.2f}"
    print(f"| {systems} | {len(values)} | {mean:.2f} | {extremes} |")
    facts[f"distances, {systems}"] = values
  print(json.dumps(facts))


if __name__ == "__main__":
  if sys.argv[1:2] == ["--as_run"]:
    _as_run(sys.argv[2], sys.argv[3], sys.argv[4:])
  else:
    main()
