"""What the machine can do at best: large matrix products, and copies in memory.

  python benchmarks/ceiling.py --library=tensorflow
  .bench-venv/bin/python benchmarks/ceiling.py --library=torch

prints one JSON line: FLOP/s of `[2048, 2048]` products in float32 and bfloat16, and bytes a second
that are read and written. Other benchmarks run it and say which share of it they have reached.
"""

import argparse
import json
import os
import time

SIZE = 2048
FLOPS = 2 * SIZE**3


def main():
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--library", choices=["tensorflow", "torch"], default="tensorflow")
  parser.add_argument("--seconds", type=float, default=1.0, help="for each figure")
  args = parser.parse_args()
  product = {"tensorflow": tensorflow_product, "torch": torch_product}[args.library]
  speeds = {dtype: FLOPS / best(product(dtype), args.seconds) for dtype in ("float32", "bfloat16")}
  print(json.dumps({**speeds, "memory_bytes": memory_bytes_per_second(args.seconds)}))


def best(call, seconds: float) -> float:
  """Seconds of the fastest call: a ceiling is what no disturbance has lowered."""
  call()
  shortest, end = float("inf"), time.perf_counter() + seconds
  while time.perf_counter() < end:
    begin = time.perf_counter()
    call()
    shortest = min(shortest, time.perf_counter() - begin)
  return shortest


def tensorflow_product(dtype):
  os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
  import tensorflow as tf

  x = tf.cast(tf.random.stateless_normal([SIZE, SIZE], [1, 2]), dtype)
  return lambda: tf.matmul(x, x)[0, 0].numpy()


def torch_product(dtype):
  import torch

  x = torch.randn(SIZE, SIZE).to(getattr(torch, dtype))
  return lambda: torch.mm(x, x)


def memory_bytes_per_second(seconds: float) -> float:
  """Bytes read and bytes written by copies of 128 MB, far more than caches hold."""
  import numpy as np

  source = np.ones(16 << 20)
  target = np.empty_like(source)
  return 2 * source.nbytes / best(lambda: np.copyto(target, source), seconds)


if __name__ == "__main__":
  main()
