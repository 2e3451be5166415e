"""SQuAD prediction beside the original's way of it: windows per second, and what the answers are.

  python benchmarks/squad_prediction.py --weights=uncased_L-12_H-768_A-12 \\
    --predict_file=squad/dev-v2.0.json --questions=500

Each way is `run_squad.py --do_predict` as a command of its own, on the first `--questions` of the
file, with windows of 384 pieces and a stride of 128:

  padded, batch 8           the original's way, and the default: every window padded to 384
  padded, batch 32          the same in larger batches
  sorted, batch 32          --pad_to_longest: windows of like length, and nothing else, together
  sorted, bfloat16          the same with --dtype=bfloat16

Speeds are those that run_squad.py logs: from records to logits, loading and tracing included.
`--weights` may lack the head of answers; it is random then, and as fast. With `--original_python`,
an interpreter with TensorFlow 1.15 and the original's package (see `benchmarks/fine_tuning.py`),
the original runs, too, as a whole command. Ways take turns; the table has medians. `same answers`
says for how many questions predictions.json agrees with the first way. One JSON line comes last.
"""

import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks import common  # noqa: E402

WAYS = {
  "padded, batch 8": ["--predict_batch_size=8"],
  "padded, batch 32": ["--predict_batch_size=32"],
  "sorted, batch 32": ["--predict_batch_size=32", "--pad_to_longest"],
  "sorted, bfloat16": ["--predict_batch_size=32", "--pad_to_longest", "--dtype=bfloat16"],
}


def main():
  args = _parse()
  speeds, answers = {}, {}
  with tempfile.TemporaryDirectory() as folder:
    predict_file = os.path.join(folder, "questions.json")
    _write_first_questions(args.predict_file, predict_file, args.questions)
    for round_number in range(args.rounds):
      for way, flags in WAYS.items():
        out = os.path.join(folder, f"{way} {round_number}")
        speed, num_windows = _this_project(args, predict_file, out, flags)
        speeds.setdefault(way, []).append(speed)
        answers[way] = json.loads(pathlib.Path(out, "predictions.json").read_text())
    if args.original_python:
      speeds["the original"] = [_original(args, predict_file, folder, num_windows)]
  _report(args, num_windows, speeds, answers)


def _parse():
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  common.add_weights_flag(parser)
  parser.add_argument("--init_checkpoint", help="a fine-tuned one, for answers that mean something")
  parser.add_argument("--predict_file", required=True)
  parser.add_argument("--questions", type=int, default=500)
  parser.add_argument("--rounds", type=int, default=3)
  parser.add_argument("--original_python")
  return parser.parse_args()


def _write_first_questions(source, path, count):
  """The first `count` questions of a SQuAD file, with their paragraphs."""
  paragraphs = []
  for entry in json.loads(pathlib.Path(source).read_text(encoding="utf-8"))["data"]:
    for paragraph in entry["paragraphs"]:
      left = count - sum(len(each["qas"]) for each in paragraphs)
      if left > 0:
        paragraphs.append({**paragraph, "qas": paragraph["qas"][:left]})
  pathlib.Path(path).write_text(json.dumps({"data": [{"paragraphs": paragraphs}]}))


def _flags(args, predict_file, out):
  weights = pathlib.Path(args.weights)
  return [
    "--do_predict=true",
    f"--predict_file={predict_file}",
    f"--vocab_file={weights / 'vocab.txt'}",
    f"--bert_config_file={weights / 'bert_config.json'}",
    f"--init_checkpoint={args.init_checkpoint or common.checkpoint_in(weights)}",
    f"--output_dir={out}",
    "--version_2_with_negative=true",
    "--max_seq_length=384",
    "--doc_stride=128",
  ]


def _this_project(args, predict_file, out, flags):
  command = [sys.executable, str(ROOT / "run_squad.py"), *_flags(args, predict_file, out), *flags]
  log = _run(command)
  num_windows = int(re.search(r"Num split examples = (\d+)", log)[1])
  return float(re.search(r"Prediction took .* ([\d.]+) windows/s", log)[1]), num_windows


def _original(args, predict_file, folder, num_windows):
  """Of the whole command: it says nothing of its own speed."""
  out = os.path.join(folder, "original")
  start = time.perf_counter()
  _run([args.original_python, "-m", "bert.run_squad", *_flags(args, predict_file, out)])
  return num_windows / (time.perf_counter() - start)


def _run(command):
  done = subprocess.run(command, capture_output=True, text=True)
  if done.returncode:
    sys.exit(f"{' '.join(command)}\nfailed:\n{done.stderr[-3000:]}")
  return done.stderr + done.stdout


def _report(args, num_windows, speeds, answers):
  first = next(iter(WAYS))
  medians = {way: statistics.median(runs) for way, runs in speeds.items()}
  print(f"{'':<20}{'windows/s':>10}{'times':>8}{'same answers':>15}")
  same = {}
  for way, speed in medians.items():
    times = speed / medians[first]
    same[way] = sum(a == answers[first][qid] for qid, a in answers.get(way, {}).items())
    print(f"{way:<20}{speed:>10.1f}{times:>8.2f}{same[way]:>15}")
  facts = {"questions": args.questions, "windows": num_windows, "rounds": args.rounds}
  print(json.dumps({**facts, "windows_per_second": medians, "same_answers": same}))


if __name__ == "__main__":
  main()
