"""The library transformers itself, from which everything but the TensorFlow models comes.

from bert.transformers.library import transformers
"""

import importlib
import logging
from typing import Any

_INSTALL = "Install it: pip install 'bert-alive[transformers]'"


def _import() -> Any:
  """Imports it without its advice to install PyTorch, which nothing here needs.

  Raises:
    ImportError: it is not installed, or in a version before 5.
  """
  logger = logging.getLogger("transformers")
  logger.addFilter(_is_no_advice)
  try:
    found = importlib.import_module("transformers")
  except ModuleNotFoundError as error:
    raise ImportError(f"bert.transformers needs transformers 5 ({error}). {_INSTALL}") from None
  finally:
    logger.removeFilter(_is_no_advice)
  if int(found.__version__.partition(".")[0]) < 5:
    raise ImportError(
      f"bert.transformers needs transformers 5, but {found.__version__} is installed. {_INSTALL}"
    )
  return found


def _is_no_advice(record: logging.LogRecord) -> bool:
  return "PyTorch was not found" not in record.getMessage()


transformers = _import()
