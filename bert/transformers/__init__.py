"""The TensorFlow classes of transformers 4, of which transformers 5 has none any more.

  from bert.transformers import AutoTokenizer, TFAutoModelForSequenceClassification

A line that says `from transformers import ...` says `from bert.transformers import ...`, and the
rest stays as it is, for models of BERT, RoBERTa, DistilBERT, ALBERT and ELECTRA; what is here,
docs/transformers.md lists. The package transformers itself is not needed, and may be used, too.
"""

import os
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from bert.transformers import added_tokens, module_names
from bert.transformers.backend import use_tensorflow


def __getattr__(name: str) -> Any:
  """Finds what a name stands for, and imports no more than that needs.

  Raises:
    ImportError: there is no such class here; says what to do.
    AttributeError: it is no name of a class or function.
  """
  if name == "utils":  # `transformers.utils.logging`, without an import of it
    import bert.transformers.utils as utils

    return utils
  if name == "__version__":
    from bert.transformers.utils import versions

    return versions.TRANSFORMERS
  if name == "__all__":  # for `import *`
    listed = {each for module in _modules() for each in getattr(module, "__all__", ())}
    return sorted(_classes() | listed | {"create_optimizer", "pipeline", "set_seed", "shape_list"})
  is_module = os.path.isfile(os.path.join(os.path.dirname(__file__), f"{name}.py"))
  if not (is_module or name.startswith("_")):
    for module in _modules():
      found = vars(module).get(name)
      is_own = getattr(found, "__module__", "").startswith((__name__, added_tokens.__name__))
      if is_own or name in getattr(module, "__all__", ()):
        return found
    if name[0].isupper():
      raise ImportError(_missing(name))
  raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _modules() -> Iterator[ModuleType]:
  """Yields the modules with public names, those that need no TensorFlow first."""
  from bert.transformers import (
    batch_encoding,
    configurations,
    data_collators,
    hf_argparser,
    tokenization_albert,
    tokenization_auto,
    tokenization_base,
    tokenization_bert,
    tokenization_fast,
    tokenization_options,
    tokenization_roberta,
    tokenization_slow,
    tokenization_special,
    trainer_utils,
    training_args_tf,
    utils,
  )

  yield from (configurations, tokenization_auto, tokenization_bert, tokenization_roberta)
  yield from (tokenization_albert, tokenization_base, tokenization_slow, tokenization_fast)
  yield from (tokenization_special, tokenization_options, added_tokens)
  yield from (batch_encoding, data_collators, hf_argparser, training_args_tf, trainer_utils, utils)
  use_tensorflow()
  from bert.transformers import (
    callbacks,
    glue,
    main_layers,
    mappings,
    models,
    optimization,
    outputs,
    pipelines,
    seeds,
    task_models,
    tf_functions,
  )

  yield from (task_models, main_layers, models, outputs, pipelines, optimization, callbacks, seeds)
  yield from (mappings, tf_functions, glue)


def _classes() -> set[str]:
  """Returns the names of all public classes."""
  found = {name: value for module in _modules() for name, value in vars(module).items()}
  own = (__name__, added_tokens.__name__)
  return {
    name
    for name, value in found.items()
    if name[0].isupper() and isinstance(value, type) and value.__module__.startswith(own)
  }


def _missing(name: str) -> str:
  """Says why a name is not here, and what to do."""
  if f"TF{name}" in _classes():
    return f"{name} is of PyTorch; bert.transformers has TF{name}."
  if name.startswith("Flax"):
    return f"{name}: bert.transformers has models for TensorFlow; bert.keras3 has them for JAX."
  if name.startswith(("TF", "Auto")) or name.endswith(("Config", "Tokenizer", "TokenizerFast")):
    return (
      f"bert.transformers has no {name}: it has encoders of BERT, RoBERTa, DistilBERT, ALBERT and "
      "ELECTRA without decoders. docs/transformers.md lists its classes. For other models use "
      "transformers 5 with PyTorch, or transformers<5 with TensorFlow."
    )
  return f"bert.transformers has no {name}. docs/transformers.md lists what it has."


module_names.register(__name__, __getattr__)
