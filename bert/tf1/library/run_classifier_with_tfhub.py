"""The original's classifier on `hub.Module`, which no longer exists: says what to use instead."""

from typing import NoReturn

from bert.tf1.errors import NotAvailable


def __getattr__(name: str) -> NoReturn:
  if name.startswith("__"):
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
  raise NotAvailable(
    f"run_classifier_with_tfhub.{name} is not available on this TensorFlow: it needs hub.Module, "
    "which tensorflow_hub no longer has. Use run_classifier with the model's checkpoint "
    "(--init_checkpoint=bert_model.ckpt --bert_config_file=bert_config.json "
    "--vocab_file=vocab.txt), or hub.load on a SavedModel made by export_hub.py."
  )
