"""Fine-tunes a Keras 3 BERT with `fit` on MRPC: are two sentences paraphrases?

  python examples/keras_mrpc.py --init_checkpoint=uncased_L-12_H-768_A-12 --data_dir=glue/MRPC
  KERAS_BACKEND=jax python examples/keras_mrpc.py ...

--init_checkpoint is a folder with an original checkpoint, bert_config.json and vocab.txt, or the
name of a released model. Without --data_dir, MRPC is downloaded.
"""

import argparse
import csv
import pathlib
import time

import keras

from bert.keras3 import (
  AdamWeightDecay,
  BertForSequenceClassification,
  BertTokenizer,
  WarmUpLinearDecay,
  create_classification_dataloader,
  evaluate_classification_metrics,
)
from bert.tasks import public_data


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--init_checkpoint", required=True)
  parser.add_argument("--data_dir")
  parser.add_argument("--epochs", type=int, default=3)
  parser.add_argument("--batch_size", type=int, default=32)
  parser.add_argument("--learning_rate", type=float, default=5e-5)
  parser.add_argument("--max_seq_length", type=int, default=128)
  parser.add_argument("--max_train_examples", type=int)
  parser.add_argument("--dtype", default="float32", help="float32, or mixed_bfloat16 for speed")
  parser.add_argument("--seed", type=int, default=12345)
  args = parser.parse_args()

  keras.utils.set_random_seed(args.seed)
  keras.config.set_dtype_policy(args.dtype)
  data_dir = pathlib.Path(args.data_dir or public_data.download_task_data("MRPC"))
  tokenizer = BertTokenizer.from_pretrained(args.init_checkpoint)
  train = load(data_dir / "train.tsv", tokenizer, args, limit=args.max_train_examples)
  dev = load(data_dir / "dev.tsv", tokenizer, args, shuffle=False)

  model = BertForSequenceClassification.from_pretrained(args.init_checkpoint, num_labels=2)
  steps = args.epochs * len(train)
  model.compile(
    AdamWeightDecay(WarmUpLinearDecay(args.learning_rate, steps, steps // 10)),
    keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=["accuracy"],
  )
  start = time.perf_counter()
  model.fit(train, epochs=args.epochs, verbose=2)
  seconds = time.perf_counter() - start
  scores = evaluate_classification_metrics(model, dev)
  scores["loss"] = model.evaluate(dev, verbose=0, return_dict=True)["loss"]
  print(f"backend = {keras.backend.backend()}\ntraining_seconds = {seconds:.1f}")
  for name in ("loss", "f1", "accuracy"):
    print(f"eval_{name} = {scores[name]:.4f}")


def load(path: pathlib.Path, tokenizer: BertTokenizer, args, limit=None, shuffle=True):
  """Batches of the sentence pairs in a file of MRPC."""
  with open(path, encoding="utf-8-sig", newline="") as file:
    rows = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))[1:][:limit]
  return create_classification_dataloader(
    texts=[row[3] for row in rows],
    text_pairs=[row[4] for row in rows],
    labels=[int(row[0]) for row in rows],
    tokenizer=tokenizer,
    batch_size=args.batch_size,
    max_length=args.max_seq_length,
    shuffle=shuffle,
    seed=args.seed,
  )


if __name__ == "__main__":
  main()
