"""`tensorflow_hub` as scripts of 1.x import it: what it has left, and what to do for the rest."""

import types
import warnings
from collections.abc import Callable

from bert_tf1.errors import NotAvailableError

# What tensorflow_hub had for modules in the format of TensorFlow 1, up to its version 0.12.
_DROPPED = {
  *("Module", "ModuleSpec", "create_module_spec", "load_module_spec", "add_signature"),
  *("attach_image_module_info", "attach_message", "get_expected_image_size"),
  *("get_num_image_channels", "image_embedding_column", "text_embedding_column"),
  *("sparse_text_embedding_column", "LatestModuleExporter", "register_module_for_export"),
}


def not_available(name: str) -> NotAvailableError:
  """The error for a name, such as `hub.Module`, that needs modules of TensorFlow 1's format."""
  return NotAvailableError(
    f"{name} is not available on this TensorFlow: tensorflow_hub has dropped modules of TensorFlow "
    "1's format. Build the model from its checkpoint instead: modeling.BertModel with "
    "bert_config.json, and tf.train.init_from_checkpoint with bert_model.ckpt; or the script "
    "run_classifier.py with --init_checkpoint. A model exported by export_hub.py loads by hub.load."
  )


def load(import_module: Callable[[str], types.ModuleType]) -> "Hub":
  """Returns the installed tensorflow_hub, without its warning about pkg_resources."""
  with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    return Hub(import_module("tensorflow_hub"))


class Hub(types.ModuleType):
  """A tensorflow_hub that says what to do where `hub.Module` was."""

  def __init__(self, module: types.ModuleType):
    super().__init__(module.__name__)
    self._module = module

  def __getattr__(self, name: str):
    if name in _DROPPED:
      raise not_available(f"hub.{name}")
    return getattr(self._module, name)

  def __dir__(self):
    return dir(self._module)
