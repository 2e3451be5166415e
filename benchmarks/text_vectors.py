"""Texts to mean-pooled vectors, strings in and arrays out, beside transformers.

  python benchmarks/text_vectors.py --weights=uncased_L-12_H-768_A-12 \\
    --text_file=glue/MRPC/train.tsv

Texts of mixed length are the last two columns of a tab-separated file, or the lines of any other.
All systems have the same weights, tokens (at most `--max_seq_length`) and threads:

  ours, float32 / bfloat16     Predictor.load(weights, task="vectors", pooling="mean")
  ours, ENGINE ...             the same with `engine`, of `export_hub.py --format=onnx --int8`
  pipeline                     transformers as users write it: pipeline("feature-extraction") in
                               batches of 32, each padded to its longest in the given order
  transformers, ...            sorted by length by hand; float32, or weights and all in bfloat16

A value is the speed of one pass over all texts; another pass comes before the clock. Vectors have
to agree: float32 to 1e-4. The ceiling counts what the texts' own tokens need, no padding.
"""

import argparse
import contextlib
import functools
import json
import pathlib
import sys
import tempfile
import time

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks import common  # noqa: E402

OURS = {
  "ours, float32": ("tensorflow", "float32"),
  "ours, bfloat16": ("tensorflow", "bfloat16"),
  "ours, onnxruntime float32": ("onnxruntime", "float32"),
  "ours, onnxruntime int8": ("onnxruntime", "int8"),
  "ours, openvino float32": ("openvino", "float32"),
  "ours, openvino bfloat16": ("openvino", "bfloat16"),
}
PEERS = {
  "pipeline": "pipeline",
  "transformers, float32": "float32",
  "transformers, bfloat16": "bfloat16",
}


def main():
  args = _parse()
  common.check_peer(args.peer_python)
  texts = read_texts(args.text_file)[: args.texts]
  ceilings = common.measure_ceilings(args.peer_python)
  with contextlib.ExitStack() as stack:
    folder = stack.enter_context(tempfile.TemporaryDirectory())
    systems = _start(stack, args, folder, texts)
    differences = _check_agreement(systems, folder)
    turns = {name: functools.partial(_speed, system, texts) for name, system in systems.items()}
    values = common.take_turns(turns, args.repeats)
    lengths = systems["ours, float32"][0].ask("lengths")
  flops = common.encoder_flops(common.read_config(args.weights), lengths) / len(texts)
  rows = [
    common.Row("", name, "texts/s", each, flops, "bfloat16" if "bfloat16" in name else "float32")
    for name, each in values.items()
  ]
  facts = {"texts": len(texts), "tokens_per_text": sum(lengths) / len(lengths)}
  references = [name for name in PEERS if name in systems]
  common.report("text_vectors", rows, references, ceilings, differences=differences, **facts)


def _parse():
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  common.add_weights_flag(parser)
  parser.add_argument("--text_file", required=True)
  parser.add_argument("--texts", type=int, default=2000, help="how many of the file's first")
  parser.add_argument("--max_seq_length", type=int, default=128)
  common.add_peer_flags(parser)
  return parser.parse_args()


def read_texts(path):
  """The texts of a file, see this script's docstring."""
  lines = pathlib.Path(path).read_text(encoding="utf-8-sig").split("\n")
  rows = [line.split("\t") for line in lines if line]
  if len(rows[0]) < 2:
    return [row[0] for row in rows]
  return [text for row in rows[1:] for text in row[-2:]]


def _start(stack, args, folder, texts):
  """Name -> `(worker, way)`."""
  path, npz = pathlib.Path(folder, "texts.json"), f"{folder}/weights.npz"
  path.write_text(json.dumps(texts))

  def start(python, script, *more):
    arguments = (args.weights, path, args.max_seq_length, *more)
    return stack.enter_context(common.Worker(python, script, *arguments))

  exports = f"{folder}/exports"
  flags = [f"--init_checkpoint={args.weights}", f"--export_dir={exports}"]
  common.run_script("export_hub", "--format=onnx", "--int8", *flags)
  ours = start(sys.executable, "text_vectors_predictor.py", exports)
  systems = {name: (ours, way) for name, way in OURS.items()}
  if args.peer_python:
    ours.ask("write_npz", path=npz)
    peer = start(args.peer_python, "text_vectors_torch.py", npz)
    systems |= {name: (peer, way) for name, way in PEERS.items()}
  return systems


def _speed(system, texts):
  worker, way = system
  time.sleep(0.05)  # threads of the system before may still spin
  return len(texts) / worker.ask("seconds", way=way)


def _check_agreement(systems, folder):
  """Largest difference of vectors from the first system's; ends the program if too large."""

  def vectors_of(worker, way):
    path = f"{folder}/vectors.npy"
    worker.ask("write_vectors", way=way, path=path)
    return np.load(path)

  vectors = {name: vectors_of(*system) for name, system in systems.items()}
  return common.check_agreement("vectors", vectors, {"bfloat16": 0.3, "int8": 0.3})


if __name__ == "__main__":
  main()
