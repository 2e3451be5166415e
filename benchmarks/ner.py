"""Named entities with `run_ner.py`: entity F1 over seeds, and a gazetteer's beside it.

  python benchmarks/ner.py --weights=uncased_L-12_H-768_A-12 \\
    --train=wnut17_train.conll --dev=wnut17_dev.conll

trains three epochs and evaluates once for each seed (length 128, batch 32, rate 5e-5; further flags
after `--`), and prints a table and one JSON line last. The gazetteer knows the training entities by
heart and nothing else: what a model scores above it, it has learnt of contexts and spellings.
"""

import argparse
import collections
import json
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
from bert.scripts import result_files  # noqa: E402
from bert.tasks import conll_files, label_schemes, tagging  # noqa: E402


def main():
  args = _parse()
  train, dev = (conll_files.read_conll(path) for path in (args.train, args.dev))
  gold = [example.labels for example in dev.examples]
  baseline = tagging.score(gold, gazetteer_labels(train.examples, dev.examples))
  print("The training entities as a gazetteer:\n" + tagging.format_scores(baseline), flush=True)
  runs = []
  for seed in args.seeds.split(","):
    runs.append(_run(args, seed))
    print(f"run_ner.py, seed {seed}, {runs[-1]['training_s']:.0f} s of training:")
    print(tagging.format_scores(runs[-1]), flush=True)
  names = ("f1", "precision", "recall", "accuracy", "training_s", "sentences_per_second")
  summary = {name: _spread([run[name] for run in runs]) for name in names}
  gazetteer = {name: baseline[name] for name in ("f1", "precision", "recall")}
  print(json.dumps({"flags": args.flags, **summary, "gazetteer": gazetteer}))


def _parse():
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--train", required=True)
  parser.add_argument("--dev", required=True)
  common.add_weights_flag(parser)
  parser.add_argument("--seeds", default="1")
  parser.add_argument("flags", nargs="*", help="further flags of run_ner.py, after --")
  return parser.parse_args()


def gazetteer_labels(train, sentences):
  """Labels whatever was an entity in training, the longest match first, whatever its case.

  Words that were an entity less than half of the times they occurred are not used, and so most
  names that are also plain words are not.
  """
  entities, occurrences = collections.defaultdict(collections.Counter), collections.Counter()
  for example in train:
    words = _lowered(example)
    for entity_type, start, end in label_schemes.entities_of(example.labels, "bio"):
      entities[words[start:end]][entity_type] += 1
  longest = max(map(len, entities))
  for example in train:
    words = _lowered(example)
    occurrences.update(part for _, _, part in _parts(words, longest) if part in entities)
  known = {
    part: types.most_common(1)[0][0]
    for part, types in entities.items()
    if 2 * types.total() >= occurrences[part]
  }
  return [_look_up(_lowered(sentence), known, longest) for sentence in sentences]


def _lowered(example):
  return tuple(word.lower() for word in example.words)


def _parts(words, longest):
  """Every run of at most `longest` words: start, end, words."""
  for start in range(len(words)):
    for end in range(start + 1, min(start + longest, len(words)) + 1):
      yield start, end, words[start:end]


def _look_up(words, known, longest):
  found, free = [], 0
  matches = [(start, -end) for start, end, part in _parts(words, longest) if part in known]
  for start, minus_end in sorted(matches):
    if start >= free:
      free = -minus_end
      found.append(label_schemes.Entity(known[words[start:free]], start, free))
  return label_schemes.labels_of(found, len(words), "bio")


def _run(args, seed):
  weights = pathlib.Path(args.weights)
  with tempfile.TemporaryDirectory() as output_dir:
    command = [
      *(sys.executable, str(ROOT / "run_ner.py"), "--do_train", "--do_eval"),
      *(f"--train_file={args.train}", f"--dev_file={args.dev}"),
      f"--init_checkpoint={common.checkpoint_in(weights)}",
      *("--max_seq_length=128", "--train_batch_size=32", "--learning_rate=5e-5"),
      *("--num_train_epochs=3.0", f"--seed={seed}", f"--output_dir={output_dir}", *args.flags),
    ]
    start = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True)
    command_s = time.perf_counter() - start
    if done.returncode:
      sys.exit(f"{' '.join(command)}\nfailed:\n{done.stderr[-3000:]}")
    figures = result_files.read_eval_results(f"{output_dir}/eval_results.txt")
  results = {}
  for name, value in figures.items():
    key = name.removeprefix("eval_")
    results[key] = int(value) if key.startswith("support_") else value
  training_s = float(re.search(r"Training took ([\d.]+) s", done.stderr)[1])
  windows = 32 * int(re.search(r"Num steps = (\d+)", done.stderr)[1])
  return {
    **results,
    "training_s": training_s,
    "command_s": command_s,
    "sentences_per_second": windows / training_s,
  }


def _spread(values):
  return {"mean": statistics.mean(values), "min": min(values), "max": max(values)}


if __name__ == "__main__":
  main()
