"""Groups of variables by their names: the embeddings, each layer, the head.

Here names become learning rates, and values of `--freeze` become patterns. No TensorFlow is needed.
"""

import re
from collections.abc import Iterable

from bert.families import FAMILIES

# The generator of ELECTRA's pre-training is an encoder, too.
_SCOPES = (*dict.fromkeys(family.scope for family in FAMILIES.values()), "generator")
_ENCODER = rf"^(?:{'|'.join(_SCOPES)})/"
_PROJECTIONS = [f"{family.projection}" for family in FAMILIES.values() if family.projection]
_EMBEDDINGS = rf"{_ENCODER}(?:embeddings|{'|'.join(_PROJECTIONS)})/"
# Layers of ALBERT that share their weights are one layer here: a group.
_LAYER = rf"{_ENCODER}encoder/(?:layer|transformer/group)_"

_layer = re.compile(rf"{_LAYER}(\d+)/")


def learning_rate_multipliers(
  names: Iterable[str],
  layerwise_decay: float = 1.0,
  head_multiplier: float = 1.0,
  top_power: int = 0,
) -> dict[str, float]:
  """Computes the factor of the learning rate for each variable name.

  Variables outside the encoder are the head. The top layer has `layerwise_decay ** top_power`,
  every layer below `layerwise_decay` times the factor of the one above, the embeddings and their
  projection the smallest. The pooler has the power before `top_power`, at least 0.

  Args:
    names: of all variables.
    layerwise_decay: see above.
    head_multiplier: factor of the head.
    top_power: where the exponents start. 0: the top layer learns at the full rate. 2: as in ELECTRA
      (`_get_layer_lrs` in its model/optimization.py counts the absent pooler as a layer).

  Example:
    >>> names = ["bert/embeddings/x", "bert/encoder/layer_0/x", "bert/encoder/layer_1/x", "bias"]
    >>> list(learning_rate_multipliers(names, 0.5, head_multiplier=10.0).values())
    [0.25, 0.5, 1.0, 10.0]
    >>> list(learning_rate_multipliers(names, 0.5, top_power=2).values())
    [0.0625, 0.125, 0.25, 1.0]
  """
  names = list(names)
  matches = {name: _layer.match(name) for name in names}
  layers = {name: int(match[1]) for name, match in matches.items() if match}
  top = max(layers.values(), default=-1)

  def power(name):
    if re.match(_EMBEDDINGS, name):
      return top_power + top + 1
    if name in layers:
      return top_power + top - layers[name]
    return max(top_power - 1, 0)

  return {
    name: layerwise_decay ** power(name) if is_of_encoder(name) else head_multiplier
    for name in names
  }


def is_of_encoder(name: str) -> bool:
  """Checks whether a variable is part of the encoder, and not of the head."""
  return bool(re.match(_ENCODER, name))


def check_frozen(freeze: Iterable[str], names: Iterable[str]) -> list[re.Pattern]:
  """Returns the patterns of `--freeze`, see `frozen_pattern`, for the names of a model's variables.

  Raises:
    ValueError: a value selects no variable, or more layers than there are.
  """
  names = list(names)
  matches = [match for match in map(_layer.match, names) if match]
  num_layers = len({match[1] for match in matches})
  patterns = [frozen_pattern(what) for what in freeze]
  for what, pattern in zip(freeze, patterns, strict=True):
    layers = re.fullmatch(r"layers:(\d+)", what)
    if layers and int(layers[1]) > num_layers:
      shared = any("/group_" in match[0] for match in matches)
      reason = " of weights of their own, which the others share" if shared else ""
      count = f"{num_layers} layer{'s' if num_layers != 1 else ''}"
      raise ValueError(f"--freeze={what}: the model has {count}{reason}.")
    if not any(map(pattern.search, names)):
      example = matches[0].string if matches else "bert/encoder/layer_0/output/dense/kernel"
      raise ValueError(
        f"--freeze={what} selects no variable. It takes embeddings, encoder, layers:N with N up to "
        f"{num_layers}, or a regular expression on names such as {example}."
      )
  return patterns


def frozen_pattern(what: str) -> re.Pattern:
  """Returns a pattern of the variables that a value of `--freeze` selects.

  Args:
    what: `embeddings`; `encoder` (all of `bert/` or `electra/`); `layers:N` (the embeddings and the
      first N layers, of ALBERT the first N groups of layers); or a regular expression on variable
      names.

  Raises:
    ValueError: not a regular expression.

  Example:
    >>> bool(frozen_pattern("layers:2").search("bert/encoder/layer_1/output/dense/bias"))
    True
    >>> bool(frozen_pattern("layers:2").search("bert/encoder/layer_12/output/dense/bias"))
    False
  """
  if what == "embeddings":
    return re.compile(_EMBEDDINGS)
  if what == "encoder":
    return re.compile(_ENCODER)
  match = re.fullmatch(r"layers:(\d+)", what)
  if match:
    layers = "|".join(str(i) for i in range(int(match[1]))) or "none"
    return re.compile(rf"{_EMBEDDINGS}|{_LAYER}(?:{layers})/")
  try:
    return re.compile(what)
  except re.error as error:
    raise ValueError(
      f"--freeze={what}: not `embeddings`, `encoder`, `layers:N` or a regular expression ({error})."
    ) from None
