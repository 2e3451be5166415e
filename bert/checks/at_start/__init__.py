"""What looks on when a run starts: it may warn, and changes nothing.

  at_start.model_is_read(settings.values, config, vocab, settings.checkpoint)

Every module in this folder is an observer, and has a function `model_is_read`. Scripts know none of
them, and a run is the same without: who reads what a run does need not read them.
"""

import importlib
import pkgutil
from collections.abc import Mapping
from typing import Any


def model_is_read(
  values: Mapping[str, Any],
  config: Any,
  vocab: Mapping[str, int] | None = None,
  checkpoint: Any = None,
) -> None:
  """Tells the observers that a run has read its model; see `cheap_checks.model_is_read`."""
  for module in sorted(module.name for module in pkgutil.iter_modules(__path__)):
    observer = importlib.import_module(f"{__name__}.{module}")
    observer.model_is_read(values, config, vocab, checkpoint)
