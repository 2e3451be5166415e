"""The sizes of BERT models: `bert_config.json`, and every size that was released.

No TensorFlow is needed to read a configuration or to count its parameters.
"""

import copy
import importlib
import json
import math
import os

from absl import logging

from bert import families

# Values of `hidden_act`; linear and the last two mean no activation.
ACTIVATION_NAMES = ("relu", "gelu", "gelu_erf", "tanh", "linear", "none", "")

_RELEASED_LARGE_SIZES = {  # name: (vocab_size, layers, hidden size, heads)
  "uncased_L-24_H-1024_A-16": (30522, 24, 1024, 16),
  "cased_L-12_H-768_A-12": (28996, 12, 768, 12),
  "cased_L-24_H-1024_A-16": (28996, 24, 1024, 16),
  "multi_cased_L-12_H-768_A-12": (119547, 12, 768, 12),
  "multilingual_L-12_H-768_A-12": (105879, 12, 768, 12),
  "chinese_L-12_H-768_A-12": (21128, 12, 768, 12),
  "wwm_uncased_L-24_H-1024_A-16": (30522, 24, 1024, 16),
  "wwm_cased_L-24_H-1024_A-16": (28996, 24, 1024, 16),
}
# The 24 miniatures (arXiv:1908.08962): heads of 64, and uncased BERT-Base is the largest of them.
_MINIATURES = {
  f"uncased_L-{layers}_H-{width}_A-{width // 64}": (30522, layers, width, width // 64)
  for layers in (2, 4, 6, 8, 10, 12)
  for width in (128, 256, 512, 768)
}
RELEASED_SIZES = {**_MINIATURES, **_RELEASED_LARGE_SIZES}

# Above these a size is a typing error, reported before any memory is requested: BERT-Large has
# 3.4e8 parameters, and 1e12 take 4 TB.
_MAX_SIZE = 2**31 - 1
_MAX_PARAMETERS = 10**12

_SIZES = (
  *("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size"),
  *("max_position_embeddings", "type_vocab_size"),
)
_SIZES_OF_FAMILIES = ("embedding_size", "num_hidden_groups", "inner_group_num")

# Extra keys of released configs that nothing reads; not worth a warning.
HARMLESS_KEYS = {
  *("down_scale_factor", "gap_size", "net_structure_type", "num_memory_blocks"),  # ALBERT's
  "directionality",
  "pooler_fc_size",
  "pooler_num_attention_heads",
  "pooler_num_fc_layers",
  "pooler_size_per_head",
  "pooler_type",
}

# Keys that a configuration may have, whatever its family.
_OPTIONAL_KEYS = ("model_type", "classifier_activation")

# Keys that decide how weights are made, and not what they compute; they may change during a run.
# The generator's sizes are of pre-training alone, whose facts hold them where they matter.
_KEYS_OF_TRAINING = (
  *("hidden_dropout_prob", "attention_probs_dropout_prob", "seq_classif_dropout", "qa_dropout"),
  *("initializer_range", "generator_hidden_size", "generator_layers"),
)


class BertConfig:
  """Sizes and rates of a BERT model; attributes are the keys of `bert_config.json`.

  A model of another family has the keys of its row in `bert/families` besides. `from_dict` makes
  its config: `BertConfig.from_dict({"model_type": "electra", "vocab_size": 30522, ...})`.

  Attributes:
    vocab_size: number of tokens.
    hidden_size: width of the encoder and of the pooler.
    num_hidden_layers: transformer layers.
    num_attention_heads: attention heads of each layer; must divide `hidden_size`.
    intermediate_size: width of the feed-forward layer.
    hidden_act: activation of the feed-forward layer; a name or a function.
    hidden_dropout_prob: dropout of embeddings and of each sub-layer's output.
    attention_probs_dropout_prob: dropout of attention probabilities.
    max_position_embeddings: longest sequence.
    type_vocab_size: number of segment ids. 16 by default as in the original; 2 in released configs.
    initializer_range: standard deviation of the initial weights.
  """

  # Of a BERT that has it: what follows the pooler's tanh where sentences are classified, without
  # dropout. TinyBERT's own models have `relu`.
  classifier_activation: str

  # Of other families; a config has those of its own family (`families.Family.keys`).
  embedding_size: int | None
  num_hidden_groups: int
  inner_group_num: int
  generator_hidden_size: float
  generator_layers: float
  transformers_heads: bool
  layer_norm_eps: float
  pad_token_id: int
  qa_dropout: float

  def __init__(
    self,
    vocab_size: int | None,
    hidden_size: int = 768,
    num_hidden_layers: int = 12,
    num_attention_heads: int = 12,
    intermediate_size: int = 3072,
    hidden_act="gelu",
    hidden_dropout_prob: float = 0.1,
    attention_probs_dropout_prob: float = 0.1,
    max_position_embeddings: int = 512,
    type_vocab_size: int = 16,
    initializer_range: float = 0.02,
  ):
    self.vocab_size = vocab_size
    self.hidden_size = hidden_size
    self.num_hidden_layers = num_hidden_layers
    self.num_attention_heads = num_attention_heads
    self.intermediate_size = intermediate_size
    self.hidden_act = hidden_act
    self.hidden_dropout_prob = hidden_dropout_prob
    self.attention_probs_dropout_prob = attention_probs_dropout_prob
    self.max_position_embeddings = max_position_embeddings
    self.type_vocab_size = type_vocab_size
    self.initializer_range = initializer_range

  @classmethod
  def from_dict(cls, json_object: dict) -> "BertConfig":
    """Makes a config of a dictionary. Unknown keys are kept, and named in a warning.

    Raises:
      ValueError: a key would hide one of the methods, or `model_type` is unknown.
    """
    config = cls(vocab_size=None)
    for key in json_object:
      if hasattr(cls, key):
        raise ValueError(f"{key!r} cannot be a key: BertConfig has a method of that name.")
    family = families.family_of(json_object)
    vars(config).update(family.keys)
    unknown = sorted(set(json_object) - {*_known_keys(family), *HARMLESS_KEYS})
    if unknown:
      logging.warning(
        "BertConfig: unknown keys %s have no effect; known keys are %s.",
        ", ".join(unknown),
        ", ".join(vars(config)),
      )
    vars(config).update(json_object)
    activation = config.hidden_act
    if isinstance(activation, str):
      config.hidden_act = family.activations.get(activation.lower(), activation)
    return config

  @classmethod
  def from_json_file(cls, json_file: str | bytes | os.PathLike) -> "BertConfig":
    """Reads a config from a `bert_config.json`, or another file that stands for one.

    See `bert/checkpoints/config_files.py`.

    Raises:
      ValueError: the file is not a JSON object, or its values do not make a model.
      OSError: the file cannot be read.
    """
    # By name: the reader of all formats is above the model, which needs none of them to compute.
    config_files = importlib.import_module("bert.checkpoints.config_files")
    json_file = os.fsdecode(json_file)
    json_object = config_files.read(json_file)
    try:
      config = cls.from_dict(json_object)
      config.validate()
    except ValueError as error:
      hint = ""
      if "vocab_size" not in json_object:
        keys = ", ".join(sorted(json_object)[:8]) or "none"
        hint = f" Is it the configuration of a model? Its keys: {keys}."
      raise ValueError(f"{json_file}: {error}{hint}") from None
    return config

  @classmethod
  def from_name(cls, name: str) -> "BertConfig":
    """Makes the config of a released model, by the name of its archive.

    Raises:
      ValueError: no model of that name was released.

    Example:
      >>> BertConfig.from_name("uncased_L-2_H-128_A-2").intermediate_size
      512
      >>> BertConfig.from_name("albert_base_v2").count_parameters()
      11683584
      >>> BertConfig.from_name("distilbert-base-uncased").count_parameters()
      66362880
    """
    if name not in RELEASED_SIZES:
      released = importlib.import_module("bert.families.files").RELEASED  # by name, see above
      others = {other: model.sizes for other, model in released.items() if model.sizes}
      if name not in others:
        known = ", ".join([*RELEASED_SIZES, *others])
        raise ValueError(f"No released model is called {name!r}; known: {known}.")
      return cls.from_dict(dict(others[name]))
    vocab_size, layers, width, heads = RELEASED_SIZES[name]
    return cls(
      vocab_size=vocab_size,
      hidden_size=width,
      num_hidden_layers=layers,
      num_attention_heads=heads,
      intermediate_size=4 * width,
      type_vocab_size=2,
    )

  @property
  def family(self) -> families.Family:
    """The family that the model belongs to."""
    return families.family_of(vars(self))

  @property
  def known_keys(self) -> list[str]:
    """The keys that have a meaning for a model of this family."""
    return _known_keys(self.family)

  @property
  def embedding_width(self) -> int:
    """E, the width of the embeddings: `embedding_size` if the family has it, else `hidden_size`."""
    has_own = "embedding_size" in self.family.keys
    return (self.embedding_size if has_own else None) or self.hidden_size

  @property
  def norm_epsilon(self) -> float:
    """What every LayerNorm adds to the variance: `layer_norm_eps` if the family has it."""
    has_own = "layer_norm_eps" in self.family.keys
    return self.layer_norm_eps if has_own else families.LAYER_NORM_EPSILON

  @property
  def longest_sequence(self) -> int:
    """The longest sequence, in tokens: fewer than positions where those of padding come first."""
    is_offset = self.family.positions_from_ids
    return self.max_position_embeddings - (self.pad_token_id + 1 if is_offset else 0)

  def generator_config(self) -> "BertConfig":
    """Makes the config of the generator beside an ELECTRA discriminator, whose config this is.

    Its embeddings are the discriminator's; heads and feed-forward part follow from its width.
    """
    config = copy.deepcopy(self)
    config.embedding_size = self.embedding_width
    config.hidden_size = round(self.hidden_size * self.generator_hidden_size)
    config.num_hidden_layers = round(self.num_hidden_layers * self.generator_layers)
    config.num_attention_heads = max(1, config.hidden_size // 64)
    config.intermediate_size = 4 * config.hidden_size
    return config

  def deciding_values(self) -> dict:
    """Returns the values that decide what given weights compute.

    Every known key is one of them unless it is listed as one of training. What two configurations
    can say in different words has one value here: the family, and the width of the embeddings.

    Example:
      >>> config = BertConfig.from_dict({"model_type": "electra", "hidden_size": 8})
      >>> config.deciding_values()["embedding_size"]
      8
    """
    values = {key: vars(self).get(key) for key in self.known_keys if key not in _KEYS_OF_TRAINING}
    values["model_type"] = self.family.name
    if "embedding_size" in values:
      values["embedding_size"] = self.embedding_width
    return values

  def to_dict(self) -> dict:
    """Copies all attributes."""
    return copy.deepcopy(vars(self))

  def to_json_string(self) -> str:
    """Writes a `bert_config.json`: sorted keys, indented by 2, newline at the end."""
    return json.dumps(self.to_dict(), indent=2, sort_keys=True) + "\n"

  def validate(self) -> None:
    """Checks what would otherwise fail deep inside a model.

    Raises:
      ValueError: names the key, its value and what is needed.
    """
    own_keys = [key for key in self.family.keys if key in _SIZES_OF_FAMILIES]
    # One that may be None follows from `hidden_size`.
    may_be_none = {key for key in own_keys if self.family.keys[key] is None}
    own_sizes = [k for k in own_keys if k not in may_be_none or vars(self).get(k) is not None]
    for key in (*_SIZES, *own_sizes):
      value = getattr(self, key)
      least = 0 if key == "type_vocab_size" and not self.family.has_segments else 1
      if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ValueError(f"{key} is {value!r:.60}; a whole number of at least {least} is needed.")
      if value > _MAX_SIZE:
        raise ValueError(f"{key} is {value!r:.60}; at most {_MAX_SIZE} is possible.")
    own_rates = [key for key in self.family.keys if key.endswith("_dropout")]
    for key in ("hidden_dropout_prob", "attention_probs_dropout_prob", *own_rates):
      value = getattr(self, key)
      if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1:
        raise ValueError(f"{key} is {value!r}; a number in [0, 1) is needed.")
    own_numbers = [key for key in ("layer_norm_eps",) if key in self.family.keys]
    for key in ("initializer_range", *own_numbers):
      value = getattr(self, key)
      if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < math.inf:
        raise ValueError(f"{key} is {value!r}; a positive number is needed.")
    if "pad_token_id" in self.family.keys:
      self._check_padding()
    if "classifier_activation" in vars(self):
      self._check_classifier()
    if self.hidden_size % self.num_attention_heads:
      raise ValueError(
        f"hidden_size {self.hidden_size} is not a multiple of num_attention_heads "
        f"{self.num_attention_heads}."
      )
    if (count := self.count_parameters()) > _MAX_PARAMETERS:
      raise ValueError(f"these sizes make a model of {count:.1e} parameters: is one of them wrong?")
    if not callable(self.hidden_act) and str(self.hidden_act).lower() not in ACTIVATION_NAMES:
      known = ", ".join(name for name in ACTIVATION_NAMES if name)
      raise ValueError(f"hidden_act is {self.hidden_act!r}; one of {known} is needed.")

  def _check_classifier(self) -> None:
    if self.family is not families.BERT or self.classifier_activation != "relu":
      raise ValueError(
        f"classifier_activation is {self.classifier_activation!r:.40} of {self.family.title}; only "
        "relu of BERT is possible, as in TinyBERT's own models."
      )

  def _check_padding(self) -> None:
    value = self.pad_token_id
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < self.vocab_size:
      raise ValueError(
        f"pad_token_id is {value!r:.60}; a number from 0 to {self.vocab_size - 1} is needed."
      )
    if self.longest_sequence < 1:
      raise ValueError(
        f"max_position_embeddings is {self.max_position_embeddings}, of which padding takes the "
        f"first {value + 1} (pad_token_id {value}): none is left for tokens."
      )

  def count_parameters(self) -> int:
    """Counts the floats of the encoder with its pooler: everything in the family's scope.

    Example:
      >>> BertConfig.from_name("uncased_L-12_H-768_A-12").count_parameters()
      109482240
    """
    width, inner, embedding_width = self.hidden_size, self.intermediate_size, self.embedding_width
    rows = self.vocab_size + self.type_vocab_size + self.max_position_embeddings
    embeddings = (rows + 2) * embedding_width  # 2: LayerNorm
    if embedding_width != width:
      embeddings += embedding_width * width + width
    attention = 4 * (width * width + width) + 2 * width
    feed_forward = width * inner + inner + inner * width + width + 2 * width
    layers = self.family.count_own_layers(self)
    pooler = width * width + width if self.family.has_pooler else 0
    return embeddings + layers * (attention + feed_forward) + pooler


def _known_keys(family: families.Family) -> list[str]:
  return list(dict.fromkeys([*vars(BertConfig(None)), *family.keys, *_OPTIONAL_KEYS]))
