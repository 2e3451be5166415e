"""The TensorFlow classes of transformers 4, of which transformers 5 has none any more.

  from bert.transformers import AutoTokenizer, TFAutoModelForSequenceClassification

A line that says `from transformers import ...` says `from bert.transformers import ...`, and the
rest stays as it is, for models of BERT, RoBERTa, DistilBERT, ALBERT and ELECTRA; what is here,
docs/transformers.md lists. The package transformers itself is not needed, and may be used, too.
"""

import importlib
import os
from typing import Any

_MODULES = {  # module here -> names
  "configurations": (
    *("AutoConfig", "PretrainedConfig", "BertConfig", "RobertaConfig", "DistilBertConfig"),
    *("AlbertConfig", "ElectraConfig"),
  ),
  "optimization": ("AdamWeightDecay", "WarmUp", "create_optimizer"),
  "seeds": ("set_seed",),
  "models": ("TFPreTrainedModel",),
  "callbacks": ("KerasMetricCallback",),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
  """Imports what a name stands for.

  Raises:
    ImportError: there is no such class here; says what to do.
    AttributeError: it is no name of a class.
  """
  if name.startswith("__") or (not name[:1].isupper() and name not in _HOMES):
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
  _use_tensorflow()
  modules = [_HOMES[name]] if name in _HOMES else ["main_layers", "task_models", "outputs"]
  for module in modules:
    found = getattr(importlib.import_module(f"{__name__}.{module}"), name, None)
    if found is not None:
      return found
  raise ImportError(_missing(name))


def _use_tensorflow() -> None:
  """Chooses the backend, before Keras is imported."""
  os.environ.setdefault("KERAS_BACKEND", "tensorflow")
  import keras

  if keras.backend.backend() != "tensorflow":
    raise ImportError(
      f"bert.transformers needs Keras on TensorFlow, which is on {keras.backend.backend()} here: "
      "set KERAS_BACKEND=tensorflow. On other backends, bert.keras3 has the same models."
    )


def _missing(name: str) -> str:
  """Says why a name is not here, and what to do."""
  if name.startswith("Flax"):
    return f"{name}: bert.transformers has models for TensorFlow; bert.keras3 has them for JAX."
  if name.startswith(("TF", "Auto")) or name.endswith(("Config", "Tokenizer", "TokenizerFast")):
    return (
      f"bert.transformers has no {name}: it has encoders of BERT, RoBERTa, DistilBERT, ALBERT and "
      "ELECTRA without decoders. docs/transformers.md lists its classes. For other models use "
      "transformers 5 with PyTorch, or transformers<5 with TensorFlow."
    )
  return f"bert.transformers has no {name}. docs/transformers.md lists what it has."
