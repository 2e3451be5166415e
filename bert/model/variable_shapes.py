"""Names and shapes of a model's variables, without TensorFlow and without making them."""

from collections.abc import Iterable

from bert.model.configuration import BertConfig

Shapes = dict[str, tuple[int, ...]]


def encoder_shapes(config: BertConfig) -> Shapes:
  """Maps each variable of the encoder to its shape, as `modeling.BertModel` makes them.

  Example:
    >>> config = BertConfig.from_name("uncased_L-2_H-128_A-2")
    >>> shapes = encoder_shapes(config)
    >>> shapes["bert/encoder/layer_1/intermediate/dense/kernel"]
    (128, 512)
    >>> import math
    >>> sum(map(math.prod, shapes.values())) == config.count_parameters()
    True
  """
  family, width, narrow = config.family, config.hidden_size, config.embedding_width
  embeddings = f"{family.scope}/embeddings"
  shapes: Shapes = {
    f"{embeddings}/word_embeddings": (config.vocab_size, narrow),
    f"{embeddings}/position_embeddings": (config.max_position_embeddings, narrow),
    **_layer_norm(f"{embeddings}/LayerNorm", narrow),
  }
  if config.type_vocab_size:
    shapes[f"{embeddings}/token_type_embeddings"] = (config.type_vocab_size, narrow)
  if narrow != width:
    shapes |= _dense(f"{family.scope}/{family.projection}", narrow, width)
  if family.has_pooler:
    shapes |= _dense(f"{family.scope}/pooler/dense", width, width)
  names, inner = family.layer, config.intermediate_size
  for layer_scope in dict.fromkeys(family.layer_scopes(config)):
    scope = f"{family.scope}/encoder/{layer_scope}"
    for name in ("query", "key", "value"):
      shapes |= _dense(f"{scope}/{names.attention}/{name}", width, width)
    shapes |= _dense(f"{scope}/{names.attention_output}", width, width)
    shapes |= _layer_norm(f"{scope}/{names.attention_norm}", width)
    shapes |= _dense(f"{scope}/{names.intermediate}", width, inner)
    shapes |= _dense(f"{scope}/{names.output}", inner, width)
    shapes |= _layer_norm(f"{scope}/{names.output_norm}", width)
  return shapes


def head_names(config: BertConfig) -> tuple[str, ...]:
  """Variables of the heads that the scripts put on an encoder; a task's name is free."""
  hidden_scopes = dict.fromkeys(layer.scope for layer in config.family.hidden_layers.values())
  return (
    *("output_weights", "output_bias", "cls/squad/output_weights", "cls/squad/output_bias"),
    *("cls/seq_relationship/output_weights", "cls/seq_relationship/output_bias"),
    *("task_specific/task/dense/kernel", "task_specific/task/dense/bias"),
    *(name for layer in hidden_scopes for name in (f"{layer}/kernel", f"{layer}/bias")),
    *word_head_names(config),
  )


def has_word_head(config: BertConfig, names: Iterable[str]) -> bool:
  """Tells whether a checkpoint's encoder has a masked-LM head.

  Beside an ELECTRA discriminator it is the generator's, which has an encoder of its own.
  """
  names = set(names)
  is_generator_s = any(name.startswith("generator/") for name in names)
  return set(word_head_names(config)) <= names and not is_generator_s


def word_head_names(config: BertConfig) -> tuple[str, ...]:
  """Names the variables of the masked-LM head."""
  family = config.family
  transform = family.masked_lm_transform
  return (
    *(f"{transform}/dense/kernel", f"{transform}/dense/bias"),
    *(f"{transform}/LayerNorm/beta", f"{transform}/LayerNorm/gamma"),
    f"{family.masked_lm}/output_bias",
  )


def _dense(scope: str, inputs: int, outputs: int) -> Shapes:
  return {f"{scope}/kernel": (inputs, outputs), f"{scope}/bias": (outputs,)}


def _layer_norm(scope: str, width: int) -> Shapes:
  return {f"{scope}/beta": (width,), f"{scope}/gamma": (width,)}
