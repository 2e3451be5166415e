"""transformers 4's TensorFlow classes on top of transformers 5, which has none any more.

  from bert.transformers import AutoTokenizer, TFAutoModelForSequenceClassification

A line that says `from transformers import ...` says `from bert.transformers import ...`, and the
rest stays as it is, for models of BERT, RoBERTa, DistilBERT, ALBERT and ELECTRA. Models, their
training and their files are this project's; everything else is transformers' own: tokenizers and
data collators with `return_tensors="tf"`, configurations that read the original's checkpoints.
"""

import contextlib
import importlib
import os
import sys
from types import ModuleType
from typing import Any

from bert.transformers import module_names

# Modules with public names, those that need no TensorFlow first.
_LIGHT = ("configurations", "tokenization", "data_collators", "training_args_tf", "script_names")
_OF_TENSORFLOW = (
  "task_models",
  "main_layers",
  "models",
  "outputs",
  "pipelines",
  "optimization",
  "callbacks",
  "tf_functions",
  "glue",
)
# Names of `_OF_TENSORFLOW` that transformers has for PyTorch.
_OVERSHADOWED = ("TF", "pipeline", "ModelOutput")
# Names of transformers 4 -> what to use instead.
_REPLACED = {
  "AdamW": "AdamWeightDecay or keras.optimizers.AdamW",
  "TFBertTokenizer": "BertTokenizer before the model, or an export, which reads texts itself",
  "TFBertLayer": "bert.keras3.TransformerLayer, or one of model.bert.encoder.layer",
  "TFSharedEmbeddings": "keras.layers.Embedding",
  "TFTrainer": "the fit of a model",
  "Trainer": "the fit of a model",
  "booleans_processing": "unpack_inputs",
  "get_linear_schedule_with_warmup": "create_optimizer",
  "input_processing": "unpack_inputs",
}
# Of transformers, in `import *`.
_OFTEN_IMPORTED = (
  "BertTokenizer",
  "BertTokenizerFast",
  "DistilBertTokenizer",
  "DistilBertTokenizerFast",
  "RobertaTokenizer",
  "RobertaTokenizerFast",
  "AlbertTokenizer",
  "AlbertTokenizerFast",
  "ElectraTokenizer",
  "ElectraTokenizerFast",
  "PreTrainedTokenizerFast",
  "PretrainedConfig",
  "AddedToken",
  "HfArgumentParser",
  "EvalPrediction",
  "logging",
)


def __getattr__(name: str) -> Any:
  """Finds what a name stands for, and imports no more than that needs."""
  virtual = sys.modules.get(f"{__name__}.{name}")
  return virtual or _find(name, "")


def _find(name: str, module: str) -> Any:
  """Finds a name of `bert.transformers`, or of a module of transformers.

  Raises:
    ImportError: there is no such class here, or transformers is not installed; says what to do.
    AttributeError: it is no name of a class or function.
  """
  is_module = os.path.isfile(os.path.join(os.path.dirname(__file__), f"{name}.py"))
  if is_module or (name.startswith("_") and name not in ("__version__", "__all__")):
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
  if name == "__all__":
    light = {each for home in _LIGHT for each in _module(home).__all__}
    own = {each for home in _OF_TENSORFLOW for each in _public(_module(home))}
    return sorted({*light, *own, *_OFTEN_IMPORTED})
  for home in _LIGHT:
    if name in _module(home).__all__:
      return getattr(_module(home), name)
  if name in _REPLACED:
    raise ImportError(f"bert.transformers has no {name}; use {_REPLACED[name]}.")
  if not name.startswith(_OVERSHADOWED) and not name.endswith("Pipeline"):
    found = _of_transformers(name, module)
    if found is not None:
      return found
  for home in _OF_TENSORFLOW:
    if name in _public(_module(home)):
      return getattr(_module(home), name)
  if name[0].isupper():
    raise ImportError(_missing(name))
  raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _of_transformers(name: str, module: str) -> Any:
  """Finds a name of transformers, in a module or at its top; None if it has none.

  Raises:
    ImportError: it needs PyTorch.
  """
  from bert.transformers import tokenization
  from bert.transformers.library import transformers

  found = None
  if module:
    with contextlib.suppress(ImportError):  # a module of version 4, or one that needs PyTorch
      found = getattr(importlib.import_module(f"transformers.{module}"), name, None)
  found = getattr(transformers, name, None) if found is None else found
  if tokenization.is_tokenizer(found):
    return tokenization.adapted(found)
  if hasattr(found, "_backends") or ".modeling_" in getattr(found, "__module__", ""):
    raise ImportError(_missing(name))
  return found


def _module(name: str) -> ModuleType:
  if name in _OF_TENSORFLOW:
    from bert.transformers.backend import use_tensorflow

    use_tensorflow()
  return importlib.import_module(f"{__name__}.{name}")


def _public(module: ModuleType) -> set[str]:
  """Returns the names of a module's own classes and functions, and those that it lists."""
  own = {
    name
    for name, value in vars(module).items()
    if name[0] != "_" and getattr(value, "__module__", None) == module.__name__
  }
  return own.union(getattr(module, "__all__", ()))


def _missing(name: str) -> str:
  """Says why a name is not here, and what to do."""
  if any(f"TF{name}" in _public(_module(home)) for home in _OF_TENSORFLOW):
    return f"{name} is of PyTorch; bert.transformers has TF{name}."
  if name.startswith("Flax"):
    return f"{name}: bert.transformers has models for TensorFlow; bert.keras3 has them for JAX."
  if name.startswith(("TF", "Auto")):
    return (
      f"bert.transformers has no {name}: it has encoders of BERT, RoBERTa, DistilBERT, ALBERT and "
      "ELECTRA without decoders. docs/transformers.md lists its classes. For other models use "
      "transformers 5 with PyTorch, or transformers<5 with TensorFlow."
    )
  return (
    f"bert.transformers has no {name}: neither TensorFlow code nor transformers 5 without PyTorch "
    "has it. docs/transformers.md lists what there is."
  )


module_names.register(__name__, _find)
