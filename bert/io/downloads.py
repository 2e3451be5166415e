"""The way to the network: what a user names, instead of giving a path, is downloaded.

  downloads.source("model").identify("bert-base-uncased")     # a model that is not on this disk
  downloads.source("data").download_task_data("MRPC")         # --data_dir=download

A source is a module that knows what its names stand for, and where it lies. It is imported when
something was named, so a run on local files never loads what talks to the network.
"""

import importlib
from typing import Any

# What is named -> the module that knows the names.
_SOURCES = {"model": "bert.checkpoints.released_models", "data": "bert.tasks.public_data"}


def source(kind: str) -> Any:
  """Returns the module that knows the names of models, or of data."""
  return importlib.import_module(_SOURCES[kind])
