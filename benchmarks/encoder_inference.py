"""The encoder's latency and throughput, beside onnxruntime, OpenVINO and transformers.

  python benchmarks/encoder_inference.py --weights=uncased_L-12_H-768_A-12 --shapes=1x32,32x128

All systems have the same weights and get the same full-length inputs; each is loaded once, in a
process of its own, and they take turns. A value is the median of the calls of a turn. Before the
clock runs, the vectors of first tokens must agree for inputs with padding: float32 to 1e-4.

  ours, exported            the SavedModel of `export_hub.py`, called
  ours, signature           its `serving_default`
  ours, function            `modeling.BertModel` inside a `tf.function`
  ours, ... bfloat16        matrix products in bfloat16
  ours, engine NAME         `export_hub.py --format=onnx,litert`, run by that engine of `Predictor`
  ours, engine NAME int8    the same with `--int8`; or in bfloat16
  onnxruntime               torch's export, float32, default optimizations
  OpenVINO, ...             the same file: float32, bfloat16, or int8 by NNCF
  transformers, ...         float32 or bfloat16, weights and all, SDPA attention
  sentence-transformers     its modules on torch, float32, pooling included

All of them have as many threads as the process has cores.
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
# How far the vectors of a system may be off, by a word of its name; others 1e-4.
LIMITS = {"bfloat16": 0.25, "int8": 1.5}


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
      for name, values in common.take_turns(calls, args.repeats).items():
        what, dtype = f"{batch} x {length}", "bfloat16" if "bfloat16" in name else "float32"
        flops = 0.0 if "int8" in name else common.encoder_flops(config, [length] * batch)
        rows.append(common.Row(what, name, "ms", values, flops, dtype))
      print(f"{batch} x {length} is done", flush=True)
  references = [name for name in REFERENCES if name in systems]
  common.report("encoder_inference", rows, references, ceilings, differences=differences)


def _parse():
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  common.add_weights_flag(parser)
  parser.add_argument("--shapes", default="1x32,1x128,8x128,32x128", help="batch x length, ...")
  parser.add_argument(
    "--ways",
    type=lambda text: text.split(","),
    help="names of our systems, separated by commas; default: all",
  )
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
  exports = f"{folder}/exports"
  common.run_script(
    "export_hub", "--format=onnx,litert", "--int8", *_flags(args, export_dir=exports)
  )
  engines = start(sys.executable, "encoder_engines.py", exports, vocab_size)
  known = {way: worker for worker in (ours, engines) for way in worker.ask("ways")}
  systems = {f"ours, {way}": (known[way], way) for way in (args.ways or known)}
  if args.peer_python:
    npz, onnx = f"{folder}/weights.npz", f"{folder}/encoder.onnx"
    ours.ask("write_npz", path=npz)
    torch = start(args.peer_python, "encoder_torch.py", args.weights, npz)
    torch.ask("write_onnx", path=onnx)
    written = _flags(args, output_dir=f"{folder}/transformers")
    common.run_script("convert_checkpoint", "to_transformers", "--head=none", *written)
    peer = functools.partial(start, args.peer_python)
    systems["onnxruntime"] = peer("encoder_onnxruntime.py", onnx, vocab_size), "float32"
    openvino = peer("encoder_openvino.py", onnx, vocab_size)
    systems |= {f"OpenVINO, {way}": (openvino, way) for way in ("float32", "bfloat16", "int8")}
    systems |= {f"transformers, {way}": (torch, way) for way in ("float32", "bfloat16")}
    sentences = peer("encoder_sentences.py", f"{folder}/transformers", vocab_size)
    systems["sentence-transformers"] = sentences, "float32"
  return systems


def _flags(args, **more):
  """Flags that name the model, and others."""
  return [
    f"--init_checkpoint={args.weights}",
    *(f"--{name}={value}" for name, value in more.items()),
  ]


def _time(system, batch, length, seconds):
  worker, way = system
  time.sleep(0.05)  # threads of the system before may still spin
  return worker.ask("time", way=way, batch=batch, length=length, seconds=seconds)


def _check_agreement(systems, folder):
  """Largest difference of vectors from the first system's; ends the program if too large."""

  def outputs_of(worker, way):
    path = f"{folder}/outputs.npy"
    worker.ask("outputs", way=way, batch=3, length=40, path=path)
    return np.load(path)

  outputs = {name: outputs_of(*system) for name, system in systems.items()}
  return common.check_agreement("vectors of first tokens", outputs, LIMITS)


if __name__ == "__main__":
  main()
