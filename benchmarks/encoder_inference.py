"""The encoder's latency and throughput, beside onnxruntime and transformers.

  python benchmarks/encoder_inference.py --weights=uncased_L-12_H-768_A-12 --shapes=1x32,32x128

All systems have the same weights and get the same full-length inputs; each is loaded once, in a
process of its own, and they take turns. A value is the median of the calls of a turn. Before the
clock runs, pooled outputs of inputs with padding must agree: float32 to 1e-4.

  ours, exported            the SavedModel of `export_hub.py`, called
  ours, signature           its `serving_default`
  ours, function            `modeling.BertModel` inside a `tf.function`
  ours, ... bfloat16        matrix products in bfloat16
  onnxruntime               float32, default optimizations, as many threads as cores
  transformers, ...         float32 or bfloat16, weights and all, SDPA attention
"""

import argparse
import contextlib
import functools
import pathlib
import sys
import tempfile
import time

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks import common  # noqa: E402

REFERENCES = ["onnxruntime", "transformers, bfloat16"]


def main():
  args = _parse()
  common.check_peer(args.peer_python)
  config = common.read_config(args.weights)
  ceilings = common.measure_ceilings(args.peer_python)
  rows = []
  with contextlib.ExitStack() as stack:
    folder = stack.enter_context(tempfile.TemporaryDirectory())
    systems = _start(stack, args, folder, config["vocab_size"])
    differences = _check_agreement(systems, folder)
    for batch, length in map(_shape, args.shapes.split(",")):
      calls = {
        name: functools.partial(_time, system, batch, length, args.seconds)
        for name, system in systems.items()
      }
      flops = common.encoder_flops(config, [length] * batch)
      for name, values in common.take_turns(calls, args.repeats).items():
        what, dtype = f"{batch} x {length}", "bfloat16" if "bfloat16" in name else "float32"
        rows.append(common.Row(what, name, "ms", values, flops, dtype))
      print(f"{batch} x {length} is done", flush=True)
  references = [name for name in REFERENCES if name in systems]
  common.report("encoder_inference", rows, references, ceilings, differences=differences)


def _parse():
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  common.add_weights_flag(parser)
  parser.add_argument("--shapes", default="1x32,1x128,8x128,32x128", help="batch x length, ...")
  parser.add_argument("--ways", help="names of our systems, separated by commas; default: all")
  parser.add_argument("--seconds", type=float, default=1.0, help="seconds of each turn")
  common.add_peer_flags(parser)
  return parser.parse_args()


def _shape(text):
  """Example: `_shape("8x128")` is `(8, 128)`."""
  batch, length = text.split("x")
  return int(batch), int(length)


def _start(stack, args, folder, vocab_size):
  """Name -> `(worker, way)`."""

  def start(python, script, *arguments):
    return stack.enter_context(common.Worker(python, script, *arguments))

  ours = start(sys.executable, "encoder_tensorflow.py", args.weights, folder)
  ways = args.ways.split(",") if args.ways else ours.ask("ways")
  systems = {f"ours, {way}": (ours, way) for way in ways}
  if args.peer_python:
    npz, onnx = f"{folder}/weights.npz", f"{folder}/encoder.onnx"
    ours.ask("write_npz", path=npz)
    torch = start(args.peer_python, "encoder_torch.py", args.weights, npz)
    torch.ask("write_onnx", path=onnx)
    ort = start(args.peer_python, "encoder_onnxruntime.py", onnx, vocab_size)
    systems["onnxruntime"] = ort, "float32"
    systems["transformers, float32"] = torch, "float32"
    systems["transformers, bfloat16"] = torch, "bfloat16"
  return systems


def _time(system, batch, length, seconds):
  worker, way = system
  time.sleep(0.05)  # threads of the system before may still spin
  return worker.ask("time", way=way, batch=batch, length=length, seconds=seconds)


def _check_agreement(systems, folder):
  """Largest difference of pooled outputs from the first system's; ends the program if too large."""

  def outputs_of(worker, way):
    path = f"{folder}/outputs.npy"
    worker.ask("outputs", way=way, batch=3, length=40, path=path)
    return np.load(path)

  outputs = {name: outputs_of(*system) for name, system in systems.items()}
  return common.check_agreement("pooled outputs", outputs, bfloat16_limit=0.1)


if __name__ == "__main__":
  main()
