"""Fine-tunes a Keras 3 BERT with `fit`, on MRPC: which pairs of sentences say the same?

  python examples/keras_mrpc.py --init_checkpoint=uncased_L-12_H-768_A-12 --data_dir=glue/MRPC
  KERAS_BACKEND=jax python examples/keras_mrpc.py ...

--init_checkpoint is a folder with an original checkpoint, bert_config.json and vocab.txt, or the
name of a released model. With --data_dir left out MRPC is downloaded.
"""

import argparse
import csv
import pathlib
import time

import keras
import numpy as np

import download
from keras_bert import (
  BERT,
  AdamWeightDecay,
  TextClassificationHead,
  WarmUpLinearDecay,
  create_inputs,
)
from keras_tokenizer import BertTokenizer, model_folder


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--init_checkpoint", required=True)
  parser.add_argument("--data_dir")
  parser.add_argument("--epochs", type=int, default=3)
  parser.add_argument("--batch_size", type=int, default=32)
  parser.add_argument("--learning_rate", type=float, default=5e-5)
  parser.add_argument("--max_seq_length", type=int, default=128)
  parser.add_argument("--max_train_examples", type=int)
  parser.add_argument("--seed", type=int, default=12345)
  args = parser.parse_args()

  keras.utils.set_random_seed(args.seed)
  folder = model_folder(args.init_checkpoint)
  data_dir = pathlib.Path(args.data_dir or download.download_task_data("MRPC"))
  tokenizer = BertTokenizer.from_pretrained(folder)
  train_inputs, train_labels = read(data_dir / "train.tsv", tokenizer, args.max_seq_length)
  limit = args.max_train_examples or len(train_labels)
  train_inputs = {name: array[:limit] for name, array in train_inputs.items()}
  dev_inputs, dev_labels = read(data_dir / "dev.tsv", tokenizer, args.max_seq_length)

  inputs = create_inputs(args.max_seq_length)
  head = TextClassificationHead(num_classes=2, name="classifier")
  model = keras.Model(inputs, head(BERT.from_checkpoint(folder)(inputs)))
  steps = args.epochs * -(-limit // args.batch_size)
  model.compile(
    AdamWeightDecay(WarmUpLinearDecay(args.learning_rate, steps, steps // 10)),
    "sparse_categorical_crossentropy",
    metrics=["accuracy"],
  )
  start = time.perf_counter()
  model.fit(
    train_inputs,
    train_labels[:limit],
    batch_size=args.batch_size,
    epochs=args.epochs,
    verbose=2,
  )
  seconds = time.perf_counter() - start
  loss, accuracy = model.evaluate(dev_inputs, dev_labels, verbose=0)
  print(f"backend = {keras.backend.backend()}\ntraining_seconds = {seconds:.1f}")
  print(f"eval_loss = {loss:.4f}\neval_accuracy = {accuracy:.4f}")


def read(path: pathlib.Path, tokenizer: BertTokenizer, length: int):
  """Inputs and labels of a file of MRPC."""
  with open(path, encoding="utf-8-sig", newline="") as file:
    rows = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))[1:]
  inputs = tokenizer(
    [row[3] for row in rows],
    [row[4] for row in rows],
    padding="max_length",
    truncation=True,
    max_length=length,
    return_tensors="np",
  )
  return inputs, np.array([int(row[0]) for row in rows])


if __name__ == "__main__":
  main()
