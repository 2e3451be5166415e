"""A student made from the weights of a larger model: some of its layers, and all the rest.

layers = spread_layers(12, 6)                  # [0, 2, 4, 7, 9, 11]
config, tensors = cut("uncased/bert_model.ckpt", teacher_config, layers)
"""

import copy
from collections.abc import Mapping, Sequence

import numpy as np

from bert import families
from bert.checkpoints import load_report, reading
from bert.model.configuration import BertConfig

_SIZES_OF_DISTILBERT = (
  *("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size"),
  *("hidden_dropout_prob", "attention_probs_dropout_prob", "max_position_embeddings"),
  "initializer_range",
)


def spread_layers(num_layers: int, num_kept: int) -> list[int]:
  """Chooses the layers that a student keeps, from 0: first, last, and evenly in between.

  Of 12 layers, DistilBERT keeps these six.

  Example:
    >>> spread_layers(12, 6), spread_layers(6, 2), spread_layers(4, 1)
    ([0, 2, 4, 7, 9, 11], [0, 5], [0])
  """
  step = (num_layers - 1) / max(num_kept - 1, 1)
  return [int(index * step + 0.5) for index in range(num_kept)]


def check_layers(layers: Sequence[int], config: BertConfig) -> None:
  """Checks that a model has these layers, each once and in ascending order, or says what it has.

  The error is a ValueError.
  """
  count = config.num_hidden_layers
  if bad := [layer for layer in layers if not 0 <= layer < count]:
    raise ValueError(f"the model has no layer {bad[0]}: its {count} layers are 0 to {count - 1}")
  if list(layers) != sorted(set(layers)):
    raise ValueError(f"layers {','.join(map(str, layers))}: give each once, in ascending order")


def cut(
  prefix: str, config: BertConfig, layers: Sequence[int]
) -> tuple[BertConfig, dict[str, np.ndarray]]:
  """Returns a smaller model with the weights of a larger one.

  Args:
    prefix: of the larger model's checkpoint, see `finding.find_checkpoint`.
    config: of the larger model.
    layers: those to keep, from 0, see `check_layers`. Where layers share their weights, only their
      number counts.

  Returns:
    The configuration, and name -> weights: those layers under their new numbers, and all that
    belongs to no layer, heads too. Optimizer slots and the step are left out.

  Raises:
    CheckpointError: a file is damaged.
    ValueError: the model has no such layers.
  """
  check_layers(layers, config)
  smaller = copy.deepcopy(config)
  smaller.num_hidden_layers = len(layers)
  encoder = f"{config.family.scope}/encoder/"
  old, new = (
    [f"{encoder}{scope}/" for scope in each.family.layer_scopes(each)] for each in (config, smaller)
  )
  # A layer of ALBERT consists of several blocks.
  blocks = len(old) // config.num_hidden_layers
  kept = [scope for layer in layers for scope in old[layer * blocks : (layer + 1) * blocks]]
  if config.family.shares_layers:
    kept = new
  sources = {}  # new name -> old name
  names = [n for n in reading.names_and_shapes(prefix) if not load_report.is_training_state(n)]
  for name in names:
    if not name.startswith(tuple(old)):
      sources[name] = name
  for new_scope, old_scope in zip(new, kept, strict=True):
    for name in names:
      if name.startswith(old_scope):
        sources[new_scope + name.removeprefix(old_scope)] = name
  values = reading.read_tensors(prefix, set(sources.values()))
  return smaller, {name: values[source] for name, source in sources.items()}


def as_distilbert(
  config: BertConfig, tensors: Mapping[str, np.ndarray], *, with_transform: bool = True
) -> tuple[BertConfig, dict[str, np.ndarray]]:
  """Returns a BERT's weights as those of a DistilBERT, which has neither segments nor a pooler.

  Its GELU is the erf form, whatever the other model has.

  Args:
    config: of the BERT, see `cut`.
    tensors: name -> weights.
    with_transform: whether to keep the dense layer and LayerNorm of the head for masked words.

  Returns:
    The configuration, and name -> weights: the encoder, and the head for masked words if there is
    one. The rest is left out.

  Raises:
    ValueError: it is a model of another family, or its sizes do not fit.

  Example:
    >>> bert = BertConfig(9, hidden_size=2, num_attention_heads=1)
    >>> tensors = {"bert/pooler/dense/bias": [0.0] * 2, "cls/predictions/output_bias": [0.0] * 9}
    >>> list(as_distilbert(bert, tensors)[1])
    ['vocab_projector/output_bias']
  """
  if config.family is not families.BERT:
    raise ValueError(f"a DistilBERT is made of a BERT, not of {config.family.title}")
  family = families.DISTILBERT
  sizes = {name: getattr(config, name) for name in _SIZES_OF_DISTILBERT}
  scopes = {
    "bert/embeddings/": f"{family.scope}/embeddings/",
    "bert/encoder/": f"{family.scope}/encoder/",
    "cls/predictions/transform/": f"{family.masked_lm_transform}/",
    "cls/predictions/output_bias": f"{family.masked_lm}/output_bias",
  }
  left_out = ["bert/embeddings/token_type_embeddings"]
  left_out += [] if with_transform else ["cls/predictions/transform/"]
  renamed = {}
  for name, values in tensors.items():
    scope = next((scope for scope in scopes if name.startswith(scope)), None)
    if scope and not name.startswith(tuple(left_out)):
      renamed[scopes[scope] + name.removeprefix(scope)] = values
  return BertConfig.from_dict({"model_type": family.name, **sizes}), renamed
