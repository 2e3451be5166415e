"""MRPC with transformers' Trainer: the settings of `fine_tuning.py`, batches grouped by length.

Prints a line of progress after each step and one JSON line last.
"""

import argparse
import json
import os
import tempfile
import time

import numpy as np
import torch
import transformers
from torch_weights import config_of, load_encoder


def main():
  args = parse()
  torch.manual_seed(args.seed)
  torch.set_float32_matmul_precision("highest")  # no TF32, as here without --allow_tf32
  tokenizer = transformers.BertTokenizer(vocab=os.path.join(args.weights, "vocab.txt"))
  with open(os.path.join(args.weights, "bert_config.json")) as reader:
    config = config_of(json.load(reader), num_labels=2)
  model = transformers.BertForSequenceClassification(config)
  load_encoder(model.bert, args.npz)
  train = read_examples(os.path.join(args.data_dir, "train.tsv"), tokenizer)
  trainer = transformers.Trainer(
    model,
    settings(args),
    transformers.DataCollatorWithPadding(tokenizer),
    train,
    callbacks=[Progress()],
  )
  begin = time.perf_counter()
  mean_loss = trainer.train().training_loss
  facts = {"training_s": time.perf_counter() - begin, "steps": trainer.state.global_step}
  facts["mean_loss"] = mean_loss
  if args.evaluate:
    dev = read_examples(os.path.join(args.data_dir, "dev.tsv"), tokenizer)
    output = trainer.predict(dev)
    facts["eval_accuracy"] = float(np.mean(output.predictions.argmax(-1) == output.label_ids))
  print(json.dumps(facts))


def parse():
  parser = argparse.ArgumentParser()
  parser.add_argument("--weights", required=True)
  parser.add_argument("--npz", required=True)
  parser.add_argument("--data_dir", required=True)
  parser.add_argument("--dtype", choices=["float32", "bfloat16", "float16"], required=True)
  parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
  parser.add_argument("--epochs", type=float, default=3.0)
  parser.add_argument("--steps", type=int, default=-1)
  parser.add_argument("--seed", type=int, default=1)
  parser.add_argument("--evaluate", action="store_true")
  return parser.parse_args()


def settings(args):
  """As the original's command: batch 32, rate 5e-5, a tenth of warm-up, clipping at 1."""
  return transformers.TrainingArguments(
    output_dir=tempfile.mkdtemp(),
    use_cpu=args.device == "cpu",
    bf16=args.dtype == "bfloat16",
    fp16=args.dtype == "float16",
    per_device_train_batch_size=32,
    per_device_eval_batch_size=32,
    train_sampling_strategy="group_by_length",
    learning_rate=5e-5,
    weight_decay=0.01,
    max_grad_norm=1.0,
    warmup_steps=0.1,
    num_train_epochs=args.epochs,
    max_steps=args.steps,
    seed=args.seed,
    save_strategy="no",
    report_to=[],
    logging_strategy="no",
    disable_tqdm=True,
  )


def read_examples(path, tokenizer):
  """Features of a TSV of MRPC, at most 128 tokens, without padding."""
  with open(path, encoding="utf-8-sig") as reader:
    rows = [line.rstrip("\n").split("\t") for line in reader][1:]
  features = tokenizer(
    [row[3] for row in rows], [row[4] for row in rows], truncation=True, max_length=128
  )
  return [
    {**{name: values[i] for name, values in features.items()}, "labels": int(row[0])}
    for i, row in enumerate(rows)
  ]


class Progress(transformers.TrainerCallback):
  """Prints a line for each step."""

  def on_step_end(self, args, state, control, **kwargs):
    print(f"step {state.global_step}/{state.max_steps},", flush=True)


if __name__ == "__main__":
  main()
