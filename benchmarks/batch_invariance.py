"""Whether a text's vector has the same bits in every batch, and what that costs.

  python benchmarks/batch_invariance.py --weights=uncased_L-12_H-768_A-12 \\
    --text_file=glue/MRPC/train.tsv --texts=5000

Texts are read as by text_vectors.py. With `Predictor.load(..., batch_invariant=True)`
they are encoded for each of `--batch_sizes` in three orders: the file's, reversed, and shuffled.
The program counts the texts whose vectors have not always the same bits, and, for comparison, how
many there are without `batch_invariant`, of the same batch sizes. Then it measures both in turn, at
batches of 32, and texts given one by one. It ends with status 1 if a bit differs. One JSON line
comes last.
"""

import argparse
import json
import pathlib
import random
import statistics
import sys
import time

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks import common  # noqa: E402
from benchmarks.text_vectors import read_texts  # noqa: E402


def main():
  args = _parse()
  texts = read_texts(args.text_file)[: args.texts]
  sizes = list(map(int, args.batch_sizes.split(",")))
  results = {"texts": len(texts), "dtype": args.dtype, "batch_sizes": sizes}
  for is_invariant in (True, False):
    orders = _orders(len(texts)) if is_invariant else _orders(len(texts))[:1]
    passes = (_vectors(args, size, is_invariant, texts, o) for size in sizes for o in orders)
    different = count_different(passes)
    name = "texts_that_differ" if is_invariant else "texts_that_differ_without"
    results[name] = different
    print(f"{name}: {different} of {len(texts)}, {len(sizes)} batch sizes, {len(orders)} orders")
  turns = {
    f"{way}, {label}": _speed(_encoder(args, 32, way == "invariant"), texts, at_once)
    for label, at_once in (("batches", len(texts)), ("one by one", 1))
    for way in ("ordinary", "invariant")
  }
  speeds = common.take_turns(turns, args.rounds) if args.rounds else {}
  for label in ("batches", "one by one") if speeds else ():
    ordinary, invariant = (speeds[f"{way}, {label}"] for way in ("ordinary", "invariant"))
    slower = [a / b - 1 for a, b in zip(ordinary, invariant, strict=True)]
    results[label] = {"ordinary": ordinary, "invariant": invariant, "slower": slower}
    print(
      f"{label}: {statistics.median(ordinary):.1f} texts/s, invariant "
      f"{statistics.median(invariant):.1f}: slower by {statistics.median(slower):.1%} "
      f"({min(slower):.1%} to {max(slower):.1%})"
    )
  print(json.dumps(results))
  if results["texts_that_differ"]:
    sys.exit(1)


def _parse():
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  common.add_weights_flag(parser)
  parser.add_argument("--text_file", required=True)
  parser.add_argument("--texts", type=int, default=5000, help="how many of the file's first")
  parser.add_argument("--max_seq_length", type=int, default=128)
  parser.add_argument("--dtype", default="float32", choices=["float32", "bfloat16"])
  parser.add_argument("--batch_sizes", default="1,7,32,128")
  parser.add_argument("--rounds", type=int, default=5, help="of measuring; 0: compare bits alone")
  return parser.parse_args()


def _orders(count):
  """Three orders of the texts, as lists of indices."""
  shuffled = random.Random(0).sample(range(count), count)
  return [list(range(count)), list(reversed(range(count))), shuffled]


def _encoder(args, batch_size, is_invariant):
  from bert.predicting.predictor import Predictor

  return Predictor.load(
    args.weights,
    task="vectors",
    pooling="mean",
    max_seq_length=args.max_seq_length,
    batch_size=batch_size,
    dtype=args.dtype,
    batch_invariant=is_invariant,
  )


def _vectors(args, batch_size, is_invariant, texts, order):
  """float32 `[M, W]`, of the texts in their own order, computed in another."""
  vectors = np.stack(_encoder(args, batch_size, is_invariant)([texts[index] for index in order]))
  return vectors[np.argsort(order)]


def count_different(passes):
  """How many rows of arrays `[M, W]` have not the same bits in all of them.

  Example:
    >>> count_different([np.array([[0.0], [1.0]]), np.array([[-0.0], [1.0]])])
    1
  """
  first = None
  for vectors in passes:
    bits = np.ascontiguousarray(vectors).view(np.uint8)
    if first is None:
      first, is_different = bits, np.zeros(len(bits), bool)
    is_different |= (bits != first).any(axis=1)
  return int(is_different.sum())


def _speed(encode, texts, at_once):
  """A function that returns texts a second, given `at_once` at once; single ones: 100 of them."""
  texts = texts if at_once > 1 else texts[:100]

  def measure():
    start = time.perf_counter()
    for first in range(0, len(texts), at_once):
      encode(texts[first : first + at_once])
    return len(texts) / (time.perf_counter() - start)

  measure()  # before the clock
  return measure


if __name__ == "__main__":
  main()
