"""What the size of a released model costs: parameters, file, training and inference speed, memory.

  python benchmarks/model_sizes.py --vocab_file=uncased_vocab.txt --data_dir=glue/MRPC

Weights are random, which changes no speed. For each model a command trains `--steps` steps of
`run_classifier.py --fast` (length 128, batch 32), and another process embeds the texts of MRPC's
dev.tsv with `Predictor.from_checkpoint`, float32, once to warm up and once for the clock. Prints a
table in Markdown and a line of JSON.
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import types

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks import common, fine_tuning, text_vectors  # noqa: E402
from bert.model.configuration import BertConfig  # noqa: E402

MODELS = (
  "uncased_L-2_H-128_A-2",
  "uncased_L-4_H-256_A-4",
  "uncased_L-4_H-512_A-8",
  "uncased_L-8_H-512_A-8",
  "uncased_L-12_H-768_A-12",
  "uncased_L-24_H-1024_A-16",
)
_INFERENCE = """
import json, resource, sys, time
from bert.predicting.predictor import Predictor
texts = json.load(open(sys.argv[2]))
embed = Predictor.from_checkpoint(sys.argv[1], max_seq_length=128)
embed(texts)
begin = time.perf_counter()
embed(texts)
seconds = time.perf_counter() - begin
print(len(texts) / seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""
HEADER = ("model", "parameters", "checkpoint, MB", "training, examples/s")
HEADER += ("inference, texts/s", "inference, peak MB")


def main():
  args = _parse()
  results = []
  with tempfile.TemporaryDirectory() as folder:
    texts = f"{folder}/texts.json"
    pathlib.Path(texts).write_text(json.dumps(text_vectors.read_texts(f"{args.data_dir}/dev.tsv")))
    for model in args.models.split(","):
      results.append(_measure(model, args, pathlib.Path(folder, model), texts))
      print(results[-1], file=sys.stderr, flush=True)
  rows = [[result["model"], *(_shown(result[name]) for name in HEADER[1:])] for result in results]
  common.print_markdown([HEADER, *rows])
  print(json.dumps({"benchmark": "model_sizes", "machine": common.machine(), "results": results}))


def _parse():
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--vocab_file", required=True)
  parser.add_argument("--data_dir", required=True, help="MRPC")
  parser.add_argument("--models", default=",".join(MODELS))
  parser.add_argument("--steps", type=int, default=20)
  return parser.parse_args()


def _measure(model: str, args, folder: pathlib.Path, texts: str) -> dict:
  folder.mkdir()
  config_file = folder.parent / f"{model}.json"
  config = BertConfig.from_name(model)
  config_file.write_text(config.to_json_string())
  write = [sys.executable, str(ROOT / "benchmarks/workers/random_weights.py")]
  subprocess.run([*write, str(folder), str(config_file), args.vocab_file], check=True)
  settings = types.SimpleNamespace(
    task="MRPC", data_dir=args.data_dir, weights=str(folder), steps=args.steps
  )
  training = fine_tuning.ours(settings, ["--fast"])(1)
  done = common.run_command([sys.executable, "-c", _INFERENCE, str(folder), texts])
  speed, memory = map(float, re.findall(r"^([\d.]+) ([\d.]+)$", done.log, re.MULTILINE)[-1])
  [data] = folder.glob("*.data-00000-of-00001")
  figures = (config.count_parameters(), data.stat().st_size / 1e6)
  figures += (training["later_examples_per_second"], speed, memory)
  return {"model": model, **dict(zip(HEADER[1:], figures, strict=True))}


def _shown(value: float) -> str:
  return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


if __name__ == "__main__":
  main()
