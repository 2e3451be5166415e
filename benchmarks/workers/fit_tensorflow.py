"""MRPC by `fit` of a TFBert class: `--package=bert.transformers` or `transformers`, one program.

The settings are those of `fine_tuning.py`, the weights are random; each batch is padded to its
longest row, or all to `--pad_to`. Prints a line of progress after each step, one JSON line last.
"""

import argparse
import importlib
import json
import os
import time

import numpy as np
import tensorflow as tf

BATCH_SIZE = 32


def main():
  args = parse()
  package = importlib.import_module(args.package)
  package.set_seed(args.seed)
  if args.dtype != "float32":
    tf.keras.mixed_precision.set_global_policy(f"mixed_{args.dtype}")
  tokenizer = package.BertTokenizerFast(os.path.join(args.model, "vocab.txt"))
  config = package.BertConfig.from_pretrained(args.model, num_labels=2)
  model = package.TFBertForSequenceClassification(config)
  data = batches(args, tokenizer)
  optimizer, _ = package.create_optimizer(
    5e-5, num_train_steps=args.steps, num_warmup_steps=args.steps // 10, weight_decay_rate=0.01
  )
  model.compile(optimizer=optimizer)
  begin = time.perf_counter()
  model.fit(data, epochs=1, verbose=0, callbacks=[Progress(args.steps)])
  print(json.dumps({"training_s": time.perf_counter() - begin, "steps": args.steps}))


def parse():
  parser = argparse.ArgumentParser()
  parser.add_argument("--package", required=True)
  parser.add_argument("--model", required=True, help="a folder of transformers")
  parser.add_argument("--data_dir", required=True)
  parser.add_argument("--dtype", default="float32")
  parser.add_argument("--steps", type=int, required=True)
  parser.add_argument("--pad_to", type=int)
  parser.add_argument("--seed", type=int, default=1)
  return parser.parse_args()


def batches(args, tokenizer):
  """Batches of rows in an order of the seed, as the tokenizer's arrays and `labels`."""
  with open(os.path.join(args.data_dir, "train.tsv"), encoding="utf-8-sig") as reader:
    rows = [line.rstrip("\n").split("\t") for line in reader][1:]
  order = np.random.default_rng(args.seed).permutation(len(rows))

  def batch(step):
    chosen = [
      rows[n] for n in order.take(range(step * BATCH_SIZE, (step + 1) * BATCH_SIZE), mode="wrap")
    ]
    arrays = tokenizer(
      [row[3] for row in chosen],
      [row[4] for row in chosen],
      truncation=True,
      max_length=128,
      padding="max_length" if args.pad_to else True,
      return_tensors="np",
    )
    return {**arrays, "labels": np.array([int(row[0]) for row in chosen])}

  made = [{k: np.asarray(v, np.int32) for k, v in batch(n).items()} for n in range(args.steps)]
  signature = {
    name: tf.TensorSpec([None] * array.ndim, tf.int32) for name, array in made[0].items()
  }
  data = tf.data.Dataset.from_generator(lambda: iter(made), output_signature=signature)
  return data.apply(tf.data.experimental.assert_cardinality(args.steps)).prefetch(2)


class Progress(tf.keras.callbacks.Callback):
  """Prints a line for each step."""

  def __init__(self, steps):
    super().__init__()
    self.steps = steps

  def on_train_batch_end(self, batch, logs=None):
    print(f"step {batch + 1}/{self.steps},", flush=True)


if __name__ == "__main__":
  main()
