"""What a teacher is worth: the same students with it and on labels alone, on a task of GLUE.

  python benchmarks/distillation.py --glue_dir=glue --weights=minilm_L-6_H-384_A-12 \\
    --corpus=wiki.txt --output_dir=/tmp/distillation --layers=2,3 --seeds=1,2,3
  python benchmarks/distillation.py --output_dir=/tmp/distillation --report

`run_classifier.py` trains the teacher once. All students of one depth start from the same weights
and train for the same number of steps. With --corpus they start from the general stage of TinyBERT:
layers of the released weights that have learned 1,000 steps of its attention and hidden states on
that text. Without, they are cut from the teacher.

  labels     six epochs on labels alone (--label_weight=1)
  logits     six epochs on labels and the teacher's outputs
  texts      as many steps on these and the texts of --unlabelled_file
  tinybert   three on its attention and hidden states, then three on its outputs

--epochs gives another number than six, --run_flags="--train_batch_size=64 ..." other flags for the
teacher and all students.

Each run is a process of its own in OUTPUT_DIR/TASK/VARIANT_LAYERS/seed_N; the next start skips what
has finished and continues what has not. The table has a row for each variant and depth:

  score      mean and standard deviation over the seeds: accuracy (MRPC, SST-2), Matthews
             correlation (CoLA) or Pearson correlation (STS-B), times 100
  gain       mean of the differences from `labels` with the same seed, and its 95% interval
  texts/s    median speed of `Predictor.from_run` on the dev set, 32 at a time; models take turns
  MB         size of the weights

and last, one JSON line.
"""

import argparse
import json
import math
import pathlib
import sys
import time
from collections.abc import Mapping, Sequence

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks import common  # noqa: E402
from bert.scripts import result_files  # noqa: E402
from bert.tasks import run_statistics  # noqa: E402

METRICS = {
  "MRPC": "eval_accuracy",
  "SST-2": "eval_accuracy",
  "CoLA": "eval_matthews_corrcoef",
  "STS-B": "eval_pearson",
}
BASELINE, TEXTS = "labels", "texts"
VARIANTS = {
  BASELINE: ("--method=logits", "--label_weight=1"),
  "logits": ("--method=logits", "--cache_teacher"),
  "tinybert": ("--method=tinybert", "--stage=task"),
}
COMMON_FLAGS = (
  *("--do_train", "--do_eval", "--fast", "--max_seq_length=128", "--train_batch_size=32"),
  *("--nogroup_by_length", "--save_checkpoints_steps=1000000", "--keep_checkpoint_max=1"),
)
TEACHER_RATE, STUDENT_RATE = "--learning_rate=5e-5", "--learning_rate=1e-4"
GENERAL_STEPS = 1000
GENERAL_FLAGS = (
  *("--method=tinybert", "--stage=general", "--do_train", "--max_seq_length=128", "--dtype=auto"),
  *("--train_batch_size=32", f"--num_train_steps={GENERAL_STEPS}", "--num_warmup_steps=100"),
  *("--learning_rate=3e-4", "--save_checkpoints_steps=1000000", "--keep_checkpoint_max=1"),
)
TURNS, BATCH = 5, 32


def main():
  args = _parse()
  folder = pathlib.Path(args.output_dir) / args.task
  if not args.report:
    _train(args, folder)
    common.once(folder / "speeds.json", lambda: _speeds(args, folder))
  _report(args, folder)


def _parse():
  parser = argparse.ArgumentParser(
    description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
  )
  parser.add_argument("--output_dir", required=True, help="folder of the runs")
  parser.add_argument("--report", action="store_true", help="train nothing, print the table")
  parser.add_argument("--glue_dir", help="folder with the task's folder")
  common.add_weights_flag(parser, required=False)
  parser.add_argument("--corpus", help="text of the general stage; without, students are cut")
  parser.add_argument("--unlabelled_file", help="for one more variant, see `distill.py`")
  parser.add_argument("--task", choices=list(METRICS), default="MRPC")
  parser.add_argument("--layers", type=common.numbers(int), default=[2, 3], help="2,3")
  parser.add_argument("--seeds", type=common.numbers(int), default=[1, 2, 3], help="1,2,3")
  parser.add_argument("--epochs", type=float, default=6, help="of each student")
  parser.add_argument("--run_flags", type=str.split, default=[], help="of teacher and students")
  parser.add_argument("--nice", type=int, default=0, help="added to the niceness of the runs")
  args = parser.parse_args()
  if not args.report and not (args.glue_dir and args.weights):
    parser.error("--glue_dir and --weights are needed, but for --report")
  return args


# ---------------------------------------------------------------------------------------------
# Runs.


def _train(args, folder: pathlib.Path) -> None:
  data = f"--data_dir={pathlib.Path(args.glue_dir) / args.task}"
  teacher = folder / "teacher"
  _finish(
    "run_classifier",
    teacher,
    *(f"--task_name={args.task}", data, f"--init_checkpoint={args.weights}"),
    *(*COMMON_FLAGS, TEACHER_RATE, *args.run_flags),
    nice=args.nice,
  )
  variants = {name: (*flags, *_length(name, args.epochs)) for name, flags in VARIANTS.items()}
  variants |= _variant_with_texts(args)
  starts = {layers: _start_of_students(args, layers) for layers in args.layers}
  for seed in args.seeds:
    for layers in args.layers:
      for variant, flags in variants.items():
        _finish(
          "distill",
          run_folder(folder, variant, layers, seed),
          *(f"--teacher={teacher}", data, f"--seed={seed}", STUDENT_RATE),
          *(*starts[layers], *COMMON_FLAGS, *args.run_flags, *flags),
          nice=args.nice,
        )


def _length(variant: str, epochs: float) -> list[str]:
  """The flags that make a variant train for N epochs."""
  if variant != "tinybert":
    return [f"--num_train_epochs={epochs}"]
  return [f"--layer_epochs={epochs / 2}", f"--num_train_epochs={epochs / 2}"]


def _variant_with_texts(args) -> dict[str, tuple[str, ...]]:
  """The variant on more texts, with fewer epochs of them all."""
  if not args.unlabelled_file:
    return {}
  from bert.tasks import glue

  folder = str(pathlib.Path(args.glue_dir) / args.task)
  labelled = len(glue.create_processor(args.task).get_train_examples(folder))
  lines = pathlib.Path(args.unlabelled_file).read_text(encoding="utf-8").splitlines()
  epochs = args.epochs * labelled / (labelled + len(lines))
  return {
    TEXTS: (
      *("--method=logits", f"--num_train_epochs={epochs:.3f}", "--cache_teacher"),
      f"--unlabelled_file={args.unlabelled_file}",
    )
  }


def _start_of_students(args, layers: int) -> list[str]:
  """The flags that say from which weights students of this depth start."""
  cut = f"--num_hidden_layers={layers}"
  if not args.corpus:
    return [cut]
  folder = pathlib.Path(args.output_dir)
  records, general = folder / "general.tfrecord", folder / f"general_{layers}"
  if not records.exists():
    common.run_script(
      "create_pretraining_data",
      *(f"--input_file={args.corpus}", f"--output_file={records}", "--max_seq_length=128"),
      *(f"--vocab_file={pathlib.Path(args.weights) / 'vocab.txt'}", "--no_next_sentence"),
      *("--dupe_factor=2", "--short_seq_prob=0"),
      nice=args.nice,
    )
  if not (general / f"model.ckpt-{GENERAL_STEPS}.index").exists():
    common.run_script(
      "distill",
      *(f"--teacher={args.weights}", cut, f"--input_file={records}", *GENERAL_FLAGS),
      f"--output_dir={general}",
      nice=args.nice,
    )
  return [f"--init_checkpoint={general}"]


def run_folder(folder: pathlib.Path, variant: str, layers: int, seed: int) -> pathlib.Path:
  """Where a run lies."""
  return folder / f"{variant}_{layers}" / f"seed_{seed}"


def _finish(script: str, output_dir: pathlib.Path, *flags: str, nice: int) -> None:
  """Makes a run, unless it is there; a run that was stopped continues."""
  if not (output_dir / "eval_results.txt").exists():
    common.run_script(script, *flags, f"--output_dir={output_dir}", nice=nice)


# ---------------------------------------------------------------------------------------------
# Speed and size.


def _models(args, folder) -> dict[str, pathlib.Path]:
  students = {
    f"{layers} layers": run_folder(folder, BASELINE, layers, args.seeds[0])
    for layers in args.layers
  }
  return {"teacher": folder / "teacher", **students}


def _speeds(args, folder) -> dict:
  """Texts per second and bytes of weights of the teacher and of one student of each depth."""
  from bert.predicting.predictor import Predictor
  from bert.tasks import glue

  processor = glue.create_processor(args.task)
  examples = processor.get_dev_examples(str(pathlib.Path(args.glue_dir) / args.task))
  texts = [(example.text_a, example.text_b or "") for example in examples]
  models = _models(args, folder)
  predictors = {
    name: Predictor.from_run(path, batch_size=BATCH, chunk_size=BATCH)
    for name, path in models.items()
  }
  for predictor in predictors.values():
    _texts_per_second(predictor, texts)  # to warm up
  systems = {
    name: lambda predictor=predictor: _texts_per_second(predictor, texts)
    for name, predictor in predictors.items()
  }
  speeds = common.take_turns(systems, TURNS)
  return {name: {"texts/s": speeds[name], "bytes": _weights_bytes(models[name])} for name in models}


def _texts_per_second(predictor, texts: Sequence[tuple[str, str]]) -> float:
  begin = time.perf_counter()
  predictor(texts)
  return len(texts) / (time.perf_counter() - begin)


def _weights_bytes(output_dir: pathlib.Path) -> int:
  """Of the model's own tensors, without the optimizer's."""
  from bert.checkpoints import load_report, reading
  from bert.checkpoints.finding import find_checkpoint

  contents = reading.names_and_shapes(find_checkpoint(str(output_dir)))
  return sum(
    math.prod(shape) * dtype.size
    for name, (shape, dtype) in contents.items()
    if not load_report.is_training_state(name)
  )


# ---------------------------------------------------------------------------------------------
# The table.


def scores_of(folder, variant, layers, seeds, metric) -> dict[int, float]:
  """seed -> score times 100, of the runs that are there."""
  paths = {seed: run_folder(folder, variant, layers, seed) / "eval_results.txt" for seed in seeds}
  return {
    seed: 100 * result_files.read_eval_results(str(path))[metric]
    for seed, path in paths.items()
    if path.exists()
  }


def _report(args, folder) -> None:
  metric = METRICS[args.task]
  speeds = json.loads(path.read_text()) if (path := folder / "speeds.json").exists() else {}
  rows = [["model", "learned", "runs", "score", "gain", "texts/s", "MB"]]
  results = []
  teacher = folder / "teacher" / "eval_results.txt"
  if teacher.exists():
    score = 100 * result_files.read_eval_results(str(teacher))[metric]
    rows.append(["teacher", "labels", "1", f"{score:.2f}", "", *_speed_cells(speeds, "teacher")])
    results.append({"model": "teacher", "score": score, **speeds.get("teacher", {})})
  for layers in args.layers:
    baseline = scores_of(folder, BASELINE, layers, args.seeds, metric)
    for variant in (*VARIANTS, TEXTS):
      scores = scores_of(folder, variant, layers, args.seeds, metric)
      if not scores:
        continue
      name = f"{layers} layers"
      summary = run_statistics.summarize(list(scores.values()))
      spread = f" ± {summary.deviation:.2f}" if summary.count > 1 else ""
      gain = "" if variant == BASELINE else gain_cell(baseline, scores)
      cells = [str(summary.count), f"{summary.mean:.2f}{spread}", gain]
      rows.append([name, variant, *cells, *_speed_cells(speeds, name)])
      results.append({"model": name, "variant": variant, "scores": scores, **speeds.get(name, {})})
  common.print_markdown(rows)
  facts = {"benchmark": "distillation", "task": args.task, "machine": common.machine()}
  print(
    json.dumps(
      {
        **facts,
        "common_flags": [*COMMON_FLAGS, *args.run_flags],
        "epochs": args.epochs,
        "results": results,
      }
    )
  )


def gain_cell(baseline: Mapping[int, float], scores: Mapping[int, float]) -> str:
  """The mean difference over the same seeds, and its 95% interval.

  Example:
    >>> gain_cell({1: 70.0, 2: 71.0, 3: 69.0}, {1: 72.0, 2: 72.0, 3: 72.0, 4: 80.0})
    '+2.00 [-0.48, +4.48]'
  """
  differences = [scores[seed] - baseline[seed] for seed in baseline if seed in scores]
  if not differences:
    return ""
  gain = run_statistics.summarize(differences)
  bounds = "[{:+.2f}, {:+.2f}]".format(*gain.interval) if gain.interval else ""
  return f"{gain.mean:+.2f} {bounds}".rstrip()


def _speed_cells(speeds: Mapping, name: str) -> list[str]:
  if name not in speeds:
    return ["", ""]
  values = sorted(speeds[name]["texts/s"])
  return [f"{values[len(values) // 2]:.0f}", f"{speeds[name]['bytes'] / 1e6:.1f}"]


if __name__ == "__main__":
  main()
