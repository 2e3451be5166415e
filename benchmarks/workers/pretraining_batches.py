"""Writes the batches that `run_pretraining.py` will train on, for another system to do the same.

pretraining_batches.py RECORDS OUT.npz STEPS BATCH_SIZE MAX_SEQ_LENGTH MAX_PREDICTIONS SEED
"""

import os
import pathlib
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent))

import numpy as np

from bert import run_pretraining

if __name__ == "__main__":
  records, path, *numbers = sys.argv[1:]
  steps, batch_size, max_seq_length, max_predictions, seed = map(int, numbers)
  input_fn = run_pretraining.input_fn_builder(
    [records], max_seq_length, max_predictions, is_training=True
  )
  dataset = input_fn({"batch_size": batch_size, "seed": seed, "skip_examples": 0})
  arrays = {}
  for step, batch in enumerate(dataset.take(steps)):
    arrays |= {f"{step}/{name}": tensor.numpy() for name, tensor in batch.items()}
  np.savez(path, **arrays)
