"""The original's classifier on `hub.Module`, which no longer exists: says what to use instead."""

from typing import NoReturn

from bert_tf1.library import hub


def __getattr__(name: str) -> NoReturn:
  if name.startswith("__"):
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
  raise hub.not_available(f"run_classifier_with_tfhub.{name}, which needs hub.Module,")
