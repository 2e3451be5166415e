"""What `run_classifier.py --task_name=MRPC` does without data and model: a small, quick example.

The data are made up, the model is small and starts from random weights, so that a first run takes a
minute on any machine and needs no network. What the user gives beside the task takes precedence.
"""

import os

from absl import logging

from bert.io import installation
from bert.scripts.settings import Settings

SETTINGS = {
  "data_dir": str(installation.SAMPLES / "MRPC"),
  "vocab_file": str(installation.SAMPLES / "vocab.txt"),
  "bert_config_file": str(installation.SAMPLES / "bert_config.json"),
  "output_dir": os.path.join("output", "mrpc_sample"),
  "do_train": True,
  "do_eval": True,
  "do_predict": True,
  "max_seq_length": 64,
  "train_batch_size": 16,
  "eval_batch_size": 64,
  "predict_batch_size": 64,
  "learning_rate": 2e-4,
  "num_train_epochs": 6.0,
  "shows_examples": False,
}

# Whoever gives one of these flags has data or a model, or knows what to do with them.
_DECISIVE = (
  *("data_dir", "bert_config_file", "vocab_file", "init_checkpoint"),
  *("do_train", "do_eval", "do_predict"),
)


def is_wanted(settings: Settings) -> bool:
  """Tells whether the command line says no more than `--task_name=MRPC`."""
  is_mrpc = (settings.get("task_name") or "").lower() == "mrpc"
  return is_mrpc and settings.given.isdisjoint(_DECISIVE)


def made_folder(reason: str) -> str:
  """Returns the folder of the demonstration's run; trains it where it is missing.

  Args:
    reason: why it is trained, the beginning of a line.

  Raises:
    ValueError: the training failed.
  """
  from bert.scripts import steps  # Imports much of what training needs.

  folder = str(SETTINGS["output_dir"])
  if not os.path.isfile(os.path.join(folder, "checkpoint")):
    print(f"{reason}: run_classifier.py --task_name=MRPC, about a minute.", flush=True)
    if code := steps.start_script("run_classifier", "--task_name=MRPC"):
      raise ValueError(f"The demonstration could not be trained: exit code {code}.")
  return folder


def say_what_this_is(data_dir: str) -> None:
  """At the start: that the score says nothing about BERT."""
  logging.warning(
    "NO DATA AND NO MODEL WERE GIVEN: this is a demonstration on a small made-up sample (%s) with "
    "a small model that starts from RANDOM weights. Its score says nothing about BERT.",
    data_dir,
  )


def say_what_comes_next(output_dir: str) -> None:
  """At the end: where the files are, and the command for the real task."""
  print(
    f"""
The demonstration's files are in {output_dir}:
  report.html         curves, results and the most wrong examples, to open in a browser
  eval_results.txt    the figures above
  predictions.tsv     a prediction for each pair of samples/MRPC/test.tsv
  model.ckpt-*        checkpoints; `tensorboard --logdir {output_dir}` shows the curves
`python serve.py --model={output_dir}` serves it, with a page to try it. To train again from the
start, remove that folder. The real task, data and weights downloaded:

  python run_classifier.py --task_name=MRPC --do_train --do_eval --do_predict \\
    --data_dir=download --init_checkpoint=uncased_L-12_H-768_A-12 \\
    --max_seq_length=128 --train_batch_size=32 --learning_rate=2e-5 --num_train_epochs=3.0 \\
    --output_dir=output/mrpc
"""
  )
