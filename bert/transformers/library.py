"""The library transformers itself, from which everything but the TensorFlow models comes.

from bert.transformers.library import transformers
"""

import importlib
import logging
from typing import Any

from bert.io import installation


def _import() -> Any:
  """Imports it without its advice to install PyTorch, which nothing here needs.

  Raises:
    MissingExtraError: it is not installed, or in a version before 5.
  """
  logger = logging.getLogger("transformers")
  logger.addFilter(_is_no_advice)
  try:
    with installation.extra("transformers", "bert.transformers"):
      found = importlib.import_module("transformers")
      if int(found.__version__.partition(".")[0]) < 5:
        raise ImportError(f"transformers {found.__version__} is installed, version 5 is needed")
  finally:
    logger.removeFilter(_is_no_advice)
  return found


def _is_no_advice(record: logging.LogRecord) -> bool:
  return "PyTorch was not found" not in record.getMessage()


transformers = _import()
