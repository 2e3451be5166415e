"""Fine-tunes an exported encoder with `hub.KerasLayer` and `fit`, on MRPC.

  python export_hub.py --init_checkpoint=uncased_L-12_H-768_A-12 --export_dir=export
  python examples/fine_tune_keras_layer.py --export_dir=export --data_dir=glue/MRPC \\
    --output_dir=fine_tuned

`hub.KerasLayer` is a layer of tf_keras, that is Keras 2, and so is the model. The model saved in
--output_dir does not need the export.
"""

import argparse
import csv
import pathlib

import tensorflow as tf
import tensorflow_hub as hub
import tensorflow_text as text  # noqa: F401 (registers ops of the preprocess model)
import tf_keras


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--export_dir", required=True)
  parser.add_argument("--data_dir", required=True, help="with train.tsv and dev.tsv")
  parser.add_argument("--output_dir", required=True)
  parser.add_argument("--epochs", type=int, default=3)
  parser.add_argument("--batch_size", type=int, default=32)
  parser.add_argument("--learning_rate", type=float, default=5e-5)
  parser.add_argument("--seq_length", type=int, default=128)
  parser.add_argument("--seed", type=int, default=12345)
  args = parser.parse_args()

  tf_keras.utils.set_random_seed(args.seed)
  train, dev = (_read(pathlib.Path(args.data_dir, name)) for name in ("train.tsv", "dev.tsv"))
  steps = args.epochs * len(train[1]) // args.batch_size
  schedule = LinearWarmUpAndDecay(args.learning_rate, max(1, steps // 10), steps)
  model = build(args.export_dir, args.seq_length)
  model.compile(
    optimizer=tf_keras.optimizers.AdamW(schedule, weight_decay=0.01),
    loss=tf_keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=["accuracy"],
  )
  model.fit(_batches(train, args.batch_size, args.seed), epochs=args.epochs, verbose=2)
  loss, accuracy = model.evaluate(_batches(dev, args.batch_size), verbose=0)
  print(f"eval_loss = {loss:.4f}\neval_accuracy = {accuracy:.4f}")
  model.save(args.output_dir)


def build(export_dir: str, seq_length: int) -> tf_keras.Model:
  """Two strings in, two logits out."""
  # Loaded without KerasLayer, so that its parts such as `tokenize` can be wrapped separately.
  preprocess = hub.load(f"{export_dir}/preprocess")
  tokenize = hub.KerasLayer(preprocess.tokenize, name="tokenize")
  pack = hub.KerasLayer(
    preprocess.bert_pack_inputs, arguments={"seq_length": seq_length}, name="pack"
  )
  encoder = hub.KerasLayer(f"{export_dir}/encoder", trainable=True, name="encoder")

  sentences = [tf_keras.Input([], dtype=tf.string, name=name) for name in ("text_a", "text_b")]
  pooled = encoder(pack([tokenize(sentence) for sentence in sentences]))["pooled_output"]
  pooled = tf_keras.layers.Dropout(0.1)(pooled)
  return tf_keras.Model(sentences, tf_keras.layers.Dense(2, name="classifier")(pooled))


def _read(path: pathlib.Path) -> tuple[dict[str, list[str]], list[int]]:
  with open(path, encoding="utf-8-sig", newline="") as file:
    rows = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))[1:]
  return {"text_a": [row[3] for row in rows], "text_b": [row[4] for row in rows]}, [
    int(row[0]) for row in rows
  ]


def _batches(examples, batch_size: int, seed: int | None = None) -> tf.data.Dataset:
  dataset = tf.data.Dataset.from_tensor_slices(examples)
  if seed is not None:
    dataset = dataset.shuffle(len(examples[1]), seed)
  return dataset.batch(batch_size).prefetch(2)


class LinearWarmUpAndDecay(tf_keras.optimizers.schedules.LearningRateSchedule):
  """Linear from 0 to `peak` in `warmup` steps, then linear to 0 at the last step."""

  def __init__(self, peak: float, warmup: int, steps: int):
    self.peak, self.warmup, self.steps = peak, warmup, steps

  def __call__(self, step):
    step = tf.cast(step, tf.float32)
    rising, falling = step / self.warmup, (self.steps - step) / (self.steps - self.warmup)
    return self.peak * tf.maximum(0.0, tf.minimum(rising, falling))

  def get_config(self):
    return {"peak": self.peak, "warmup": self.warmup, "steps": self.steps}


if __name__ == "__main__":
  main()
