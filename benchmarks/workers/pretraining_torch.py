"""Masked language modelling with transformers, on batches from a file, as its run_mlm.py trains.

Prints a line of progress after each step and one JSON line last.
"""

import argparse
import json
import time

import numpy as np
import torch
import transformers
from torch_weights import config_of


def main():
  parser = argparse.ArgumentParser()
  parser.add_argument("--config", required=True)
  parser.add_argument("--batches", required=True)
  parser.add_argument("--dtype", choices=["float32", "bfloat16"], required=True)
  parser.add_argument("--learning_rate", type=float, required=True)
  parser.add_argument("--seed", type=int, default=1)
  args = parser.parse_args()
  torch.manual_seed(args.seed)
  with open(args.config) as reader:
    model = transformers.BertForMaskedLM(config_of(json.load(reader))).train()
  batches = read_batches(args.batches)
  optimizer = torch.optim.AdamW(
    model.parameters(), lr=args.learning_rate, weight_decay=0.01, fused=True
  )
  schedule = transformers.get_linear_schedule_with_warmup(
    optimizer, len(batches) // 10, len(batches)
  )
  losses, tokens = [], 0
  for step, batch in enumerate(batches, 1):
    with torch.autocast("cpu", torch.bfloat16, enabled=args.dtype == "bfloat16"):
      loss = model(**batch).loss
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    schedule.step()
    optimizer.zero_grad()
    losses.append(loss.item())
    print(f"step {step}/{len(batches)}, loss {losses[-1]:.4f}", flush=True)
    if step == 1:
      begin = time.perf_counter()
    else:
      tokens += int(batch["attention_mask"].sum())
  speed = tokens / (time.perf_counter() - begin)
  print(json.dumps({"tokens_per_second": speed, "first_loss": losses[0], "last_loss": losses[-1]}))


def read_batches(path):
  """What `pretraining_batches.py` wrote, as keyword arguments of `BertForMaskedLM`."""
  with np.load(path) as arrays:
    steps = len({name.split("/")[0] for name in arrays.files})
    return [to_arguments(*(arrays[f"{step}/{name}"] for name in NAMES)) for step in range(steps)]


NAMES = (
  "input_ids",
  "input_mask",
  "segment_ids",
  "masked_lm_positions",
  "masked_lm_ids",
  "masked_lm_weights",
)


def to_arguments(ids, mask, segments, positions, words, weights):
  """Labels are -100 wherever nothing is to be guessed."""
  labels = np.full(ids.shape, -100, np.int64)
  rows, columns = np.nonzero(weights)
  labels[rows, positions[rows, columns]] = words[rows, columns]
  arrays = {"input_ids": ids, "attention_mask": mask, "token_type_ids": segments, "labels": labels}
  return {name: torch.from_numpy(array.astype(np.int64)) for name, array in arrays.items()}


if __name__ == "__main__":
  main()
