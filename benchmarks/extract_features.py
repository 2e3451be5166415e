"""Vectors of texts beside the original's way of making them: texts per second, bytes on disk.

  python benchmarks/extract_features.py --weights=uncased_L-12_H-768_A-12 --input_file=texts.txt

The original's way: every text padded to `--max_seq_length`, in the order of the file, and every
number through Python's `round` into JSON. It is run here by this project's Estimator, on the same
machine code, so that what is compared is the way alone and not the age of TensorFlow. With
`--original_python`, an interpreter with TensorFlow 1.15 and the original's package (see
`benchmarks/fine_tuning.py`), the original itself runs, too.

Loading and tracing are not counted, except for the original's. Rounds alternate between the ways;
the table has medians. One JSON line comes last.
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
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

from benchmarks import common  # noqa: E402

WAYS = {
  "jsonl": ["--output_format=jsonl"],
  "npz": ["--output_format=npz"],
  "npz, mean-pooled": ["--output_format=npz", "--pooling=mean"],
  "npz, mean, bfloat16": ["--output_format=npz", "--pooling=mean", "--dtype=bfloat16"],
}


def main():
  args = _parse()
  with open(args.input_file, "rb") as reader:
    texts = sum(1 for _ in reader)
  speeds = {}
  for _ in range(args.rounds):
    for way in ("the original's way", *WAYS):
      with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "out")
        run = _padded_json if way not in WAYS else _this_project
        speed = run(args, path, WAYS.get(way))
        speeds.setdefault(way, []).append((speed, os.path.getsize(path)))
  if args.original_python:
    speeds["the original"] = [_original(args, texts)]
  medians = {way: statistics.median(speed for speed, _ in runs) for way, runs in speeds.items()}
  print(f"{'':<20}{'texts/s':>10}{'times':>8}{'MB':>10}")
  for way, runs in speeds.items():
    times = medians[way] / medians["the original's way"]
    print(f"{way:<20}{medians[way]:>10.1f}{times:>8.2f}{runs[0][1] / 1e6:>10.1f}")
  facts = {"texts": texts, "rounds": args.rounds, "max_seq_length": args.max_seq_length}
  print(json.dumps({**facts, "layers": args.layers, "texts_per_second": medians}))


def _parse():
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  common.add_weights_flag(parser)
  parser.add_argument("--input_file", required=True)
  parser.add_argument("--layers", default="-1,-2,-3,-4")
  parser.add_argument("--max_seq_length", type=int, default=128)
  parser.add_argument("--batch_size", type=int, default=32)
  parser.add_argument("--rounds", type=int, default=3)
  parser.add_argument("--original_python")
  return parser.parse_args()


def _flags(args, path):
  weights = pathlib.Path(args.weights)
  return [
    f"--input_file={args.input_file}",
    f"--output_file={path}",
    f"--vocab_file={weights / 'vocab.txt'}",
    f"--bert_config_file={weights / 'bert_config.json'}",
    f"--init_checkpoint={common.checkpoint_in(weights)}",
    f"--layers={args.layers}",
    f"--max_seq_length={args.max_seq_length}",
    f"--batch_size={args.batch_size}",
  ]


def _this_project(args, path, flags):
  log = _run([sys.executable, str(ROOT / "extract_features.py"), *_flags(args, path), *flags])
  return float(re.search(r"texts, ([\d.]+) a second", log)[1])


def _original(args, texts):
  """The whole command: it says nothing of its own speed."""
  with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "out")
    start = time.perf_counter()
    _run([args.original_python, "-m", "bert.extract_features", *_flags(args, path)])
    return texts / (time.perf_counter() - start), os.path.getsize(path)


def _padded_json(args, path, _):
  from bert import extract_features, tokenization
  from bert.model.configuration import BertConfig
  from bert.training import estimator

  weights = pathlib.Path(args.weights)
  layers = [int(layer) for layer in args.layers.split(",")]
  tokenizer = tokenization.FullTokenizer(weights / "vocab.txt")
  config = BertConfig.from_json_file(str(weights / "bert_config.json"))
  model_fn = extract_features.model_fn_builder(
    config, common.checkpoint_in(weights), layers, use_tpu=False, use_one_hot_embeddings=False
  )
  with tempfile.TemporaryDirectory() as folder, open(path, "w") as writer:
    runner = estimator.Estimator(
      model_fn, estimator.RunConfig(model_dir=folder), {"predict_batch_size": args.batch_size}
    )

    def results(examples):
      features = extract_features.convert_examples_to_features(
        examples, args.max_seq_length, tokenizer
      )
      input_fn = extract_features.input_fn_builder(features, args.max_seq_length)
      return zip(features, runner.predict(input_fn), strict=True)

    examples = extract_features.read_examples(args.input_file)
    for _ in results(examples[:1]):  # loads and traces
      pass
    start = time.perf_counter()
    for feature, result in results(examples):
      writer.write(json.dumps(_line(feature, result, layers)) + "\n")
    return len(examples) / (time.perf_counter() - start)


def _line(feature, result, layers):
  return {
    "linex_index": int(result["unique_id"]),
    "features": [
      {
        "token": token,
        "layers": [
          {
            "index": index,
            "values": [round(float(x), 6) for x in result[f"layer_output_{j}"][i]],
          }
          for j, index in enumerate(layers)
        ],
      }
      for i, token in enumerate(feature.tokens)
    ],
  }


def _run(command):
  done = subprocess.run(command, capture_output=True, text=True)
  if done.returncode:
    sys.exit(f"{' '.join(command)}\nfailed:\n{done.stderr[-3000:]}")
  return done.stderr + done.stdout


if __name__ == "__main__":
  main()
