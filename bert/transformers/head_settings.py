"""What keys of a `config.json` say of a head: rates of dropout, and ELECTRA's `summary_*`.

prepare(head, "ForTokenClassification", config)    # before the head's variables exist
vectors = summarized(states, config)                # [B, W], what ELECTRA chooses by
"""

import dataclasses
from typing import Any

from keras import ops

from bert.checkpoints.families import files_of
from bert.keras3.building_blocks import get_activation
from bert.model.families import FAMILIES
from bert.transformers.configurations import PretrainedConfig


def prepare(head: Any, kind: str, config: PretrainedConfig) -> None:
  """Sets up a head; what no key says stays as it is.

  Args:
    head: a layer of `bert/keras3/heads.py` or `pretraining_heads.py`, not built yet.
    kind: end of the name of its class in transformers, see `families/form.py`.
    config: of the model.
  """
  if is_summarized(kind, config):
    _prepare_summary(head, config)
    return
  key = files_of(config.model_type).transformers.dropout_keys.get(kind, "")
  rate = getattr(config, key, None)
  if rate is None or not hasattr(head, "dropout"):
    return
  head.dropout.rate = rate
  if head.hidden_layer is not None and head.hidden_layer.drops_input:
    head.input_dropout.rate = rate


def is_summarized(kind: str, config: PretrainedConfig) -> bool:
  """Tells whether a head, named as in `prepare`, reads what `summarized` computes."""
  return kind in files_of(config.model_type).transformers.summarized_heads


def _prepare_summary(head: Any, config: PretrainedConfig) -> None:
  name = getattr(config, "summary_activation", None)
  activation: Any = FAMILIES[config.model_type].activations.get(name or "", name or "linear")
  scope = head.hidden_layer.scope
  if not getattr(config, "summary_use_proj", False):
    activation, scope = get_activation(activation), ""
  head.hidden_layer = dataclasses.replace(head.hidden_layer, scope=scope, activation=activation)
  head.input_dropout.rate = getattr(config, "summary_first_dropout", 0.0)
  head.dropout.rate = getattr(config, "summary_last_dropout", 0.0)
  head.reads_padding = getattr(config, "summary_type", "first") != "first"


def summarized(states, config: PretrainedConfig):
  """Computes the vector of each text by which such a head chooses: `[B, S, W]` to `[B, W]`.

  Raises:
    ValueError: `summary_type` is not known.
  """
  kind = getattr(config, "summary_type", "first")
  if kind == "first":
    return states[:, 0]
  if kind in ("last", "cls_index"):  # the index is not given, and the last one stands for it
    return states[:, -1]
  if kind == "mean":  # of padding, too, as in transformers
    return ops.mean(states, axis=1)
  raise ValueError(f"summary_type is {kind!r}; known: first, last, mean, cls_index.")
