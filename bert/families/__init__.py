"""What models of other families compute otherwise than BERT, in one table.

Every family is `modeling.BertModel` with options. What differs lies in `Family`: names of
variables, which are those of the family's own checkpoints, and the few places where another value
is computed. What files hold of a family is in the modules beside, which `files.py` lists.

| | BERT | ELECTRA (arXiv:2003.10555) | ALBERT (arXiv:1909.11942) |
|---|---|---|---|
| variables | `bert/...` | `electra/...` | `bert/...` |
| width of embeddings | hidden size | `embedding_size`, projected | `embedding_size`, projected |
| layers | each its own weights | each its own weights | groups of layers share weights |
| gelu | tanh form | erf form | tanh form |
| `pooled_output` | dense and tanh | the first vector itself | dense and tanh |

| | RoBERTa (arXiv:1907.11692) | DistilBERT (arXiv:1910.01108) |
|---|---|---|
| variables | `roberta/...` | `distilbert/...` |
| segments | none: the only row is added everywhere | none |
| positions | 2, 3, ... of tokens, 1 of padding | 0, 1, ... |
| epsilon of LayerNorm | `layer_norm_eps`, 1e-5 | 1e-12 |
| gelu | erf form | erf form |
| `pooled_output` | the first vector itself | the first vector itself |
| classifier | dense, tanh, outputs | dense, ReLU, outputs |

No TensorFlow is needed here.
"""

import dataclasses
from collections.abc import Container, Mapping
from typing import Any

# What pre-training learns; `bert/training/pretraining_objectives.py` computes it.
OBJECTIVES = ("mlm_nsp", "mlm", "mlm_sop", "electra")
VOCABULARIES = ("word_pieces", "sentence_pieces", "byte_pairs")

LAYER_NORM_EPSILON = 1e-12


@dataclasses.dataclass(frozen=True)
class LayerNames:
  """Where a layer's variables lie, below the layer's own scope."""

  attention: str = "attention/self"  # scope of query, key and value
  attention_output: str = "attention/output/dense"  # dense layer after the attention
  attention_norm: str = "attention/output/LayerNorm"  # LayerNorm after it
  intermediate: str = "intermediate/dense"  # first dense layer of the feed-forward part
  output: str = "output/dense"  # its second dense layer
  output_norm: str = "output/LayerNorm"  # LayerNorm after it


@dataclasses.dataclass(frozen=True)
class HiddenLayer:
  """The layer between a sequence's vector and its scores: dropout, dense, activation, dropout."""

  scope: str  # of the dense layer's variables; empty where there is only the activation
  activation: str  # its name
  drops_input: bool = True  # whether its input is dropped out, too
  # The configuration's key of the rate of dropout; that of the head without one.
  dropout_key: str | None = None


@dataclasses.dataclass(frozen=True)
class Family:
  """Says what sets a family of models apart; the defaults are BERT's."""

  name: str  # `model_type` in a configuration
  title: str  # its name in messages
  scope: str = "bert"  # first part of all names of the encoder's variables
  # Keys of a configuration that BERT does not have, with their values where a file has none.
  keys: Mapping[str, Any] = dataclasses.field(default_factory=dict)
  # Dense layer that widens embeddings to the hidden size, below `scope`.
  projection: str | None = None
  # Whether its kernel starts from Glorot's uniform distribution, TensorFlow 1's default, instead of
  # the truncated normal of all other weights.
  projection_is_glorot: bool = False
  projects_embedding_output: bool = True  # whether `get_embedding_output` is projected
  # Whether layers share weights in groups (`num_hidden_groups`), each of `inner_group_num` blocks.
  shares_layers: bool = False
  # Look segments up by a gather. Its gradient is sparse, and the norm for clipping counts repeated
  # rows separately.
  gathers_segments: bool = False
  # Whether tokens have segments. Without, `token_type_ids` are not read, and the first row of the
  # table, if there is one, is added to every token.
  has_segments: bool = True
  # Number positions by the tokens before them that are not padding, from `pad_token_id` + 1 on;
  # padding has the position `pad_token_id`.
  positions_from_ids: bool = False
  # The row of words for padding, and that of positions, gets no gradient from the look-up
  # (PyTorch's `padding_idx`).
  padding_is_fixed: bool = False
  drops_attention_output: bool = True  # whether dropout follows the dense layer after the attention
  layer: LayerNames = dataclasses.field(default_factory=LayerNames)  # names of a layer's variables
  has_pooler: bool = True  # whether a dense layer and tanh follow the first vector
  # What a head scores (`texts` or `choices`) -> the layer before its outputs.
  hidden_layers: Mapping[str, HiddenLayer] = dataclasses.field(default_factory=dict)
  masked_lm: str = "cls/predictions"  # scope of the bias of the masked-LM head
  masked_lm_transform: str = "cls/predictions/transform"  # scope of its dense layer and LayerNorm
  objective: str = "mlm_nsp"  # what models of the family were pre-trained with, one of `OBJECTIVES`
  # Whether a generator is pre-trained beside the model: records then have neither masks nor pairs,
  # and a checkpoint may hold both models.
  has_generator: bool = False
  has_task_scopes: bool = False  # whether the variables of a head lie in `task_specific/TASK/`
  # What its authors call the file of a configuration, if they publish it.
  config_file: str | None = None
  # Kind of the vocabulary that its models usually have, one of `VOCABULARIES`.
  vocabulary: str = "word_pieces"
  # Added to the number of masked tokens by which their loss is divided.
  epsilon_of_words: float = 1e-5
  # Activations that the family means by other names than BERT.
  activations: Mapping[str, str] = dataclasses.field(default_factory=dict)

  def layer_scopes(self, config) -> list[str]:
    """Lists the scopes of a `BertConfig`'s layers below `<scope>/encoder`, as they are computed.

    Example:
      >>> import types
      >>> sizes = dict(num_hidden_layers=4, num_hidden_groups=2, inner_group_num=1)
      >>> ALBERT.layer_scopes(types.SimpleNamespace(**sizes))[1:3]
      ['transformer/group_0/inner_group_0', 'transformer/group_1/inner_group_0']
    """
    layers = range(config.num_hidden_layers)
    if not self.shares_layers:
      return [f"layer_{layer}" for layer in layers]
    # In floating point, as the original: with 22 layers in 22 groups this is no integer division.
    groups = [int(layer / len(layers) * config.num_hidden_groups) for layer in layers]
    inner_groups = range(config.inner_group_num)
    return [f"transformer/group_{g}/inner_group_{i}" for g in groups for i in inner_groups]

  def count_own_layers(self, config) -> int:
    """Counts the layers with weights of their own."""
    if not self.shares_layers:
      return config.num_hidden_layers
    return min(config.num_hidden_groups, config.num_hidden_layers) * config.inner_group_num


BERT = Family("bert", "BERT", config_file="bert_config.json")

ELECTRA = Family(
  "electra",
  "ELECTRA",
  scope="electra",
  # Sizes of the generator as shares of the discriminator's, which pre-training alone reads. No
  # `embedding_size` means that of `hidden_size`, as in Base and Large.
  # With `transformers_heads`, those for texts and choices have a hidden layer, as in the
  # classes of transformers; the original's have none.
  keys={
    **{"embedding_size": None, "generator_hidden_size": 0.25, "generator_layers": 1.0},
    "transformers_heads": False,
  },
  projection="embeddings_project",
  projection_is_glorot=True,
  has_pooler=False,
  hidden_layers={
    "texts": HiddenLayer("classifier/dense", "gelu_erf"),
    "choices": HiddenLayer("sequence_summary", "gelu_erf", drops_input=False),
  },
  masked_lm="generator_predictions",
  masked_lm_transform="generator_predictions",
  objective="electra",
  has_generator=True,
  has_task_scopes=True,
  epsilon_of_words=1e-6,
  activations={"gelu": "gelu_erf"},
)

ALBERT = Family(
  "albert",
  "ALBERT",
  keys={"embedding_size": 128, "num_hidden_groups": 1, "inner_group_num": 1},
  projection="encoder/embedding_hidden_mapping_in",
  projects_embedding_output=False,
  objective="mlm_sop",
  config_file="albert_config.json",
  vocabulary="sentence_pieces",
  shares_layers=True,
  gathers_segments=True,
  layer=LayerNames(
    attention="attention_1/self",
    attention_output="attention_1/output/dense",
    attention_norm="LayerNorm",
    intermediate="ffn_1/intermediate/dense",
    output="ffn_1/intermediate/output/dense",
    output_norm="LayerNorm_1",
  ),
)

ROBERTA = Family(
  "roberta",
  "RoBERTa",
  scope="roberta",
  keys={"layer_norm_eps": 1e-5, "pad_token_id": 1, "type_vocab_size": 1},
  has_segments=False,
  positions_from_ids=True,
  padding_is_fixed=True,
  has_pooler=False,
  hidden_layers={
    "texts": HiddenLayer("classifier/dense", "tanh"),
    # transformers' class for choices is the one that has a pooler.
    "choices": HiddenLayer("roberta/pooler/dense", "tanh", drops_input=False),
  },
  masked_lm="lm_head",
  masked_lm_transform="lm_head",
  objective="mlm",
  vocabulary="byte_pairs",
  epsilon_of_words=1e-12,
  activations={"gelu": "gelu_erf"},
)

_PRE_CLASSIFIER = HiddenLayer(
  "pre_classifier", "relu", drops_input=False, dropout_key="seq_classif_dropout"
)
DISTILBERT = Family(
  "distilbert",
  "DistilBERT",
  scope="distilbert",
  keys={
    **dict(type_vocab_size=0, num_hidden_layers=6, pad_token_id=0),
    **dict(seq_classif_dropout=0.2, qa_dropout=0.1),
  },
  has_segments=False,
  padding_is_fixed=True,
  drops_attention_output=False,
  has_pooler=False,
  hidden_layers={"texts": _PRE_CLASSIFIER, "choices": _PRE_CLASSIFIER},
  masked_lm="vocab_projector",
  masked_lm_transform="vocab_transform",
  objective="mlm",
  epsilon_of_words=1e-12,
  activations={"gelu": "gelu_erf"},
)

FAMILIES = {family.name: family for family in (BERT, ELECTRA, ALBERT, ROBERTA, DISTILBERT)}

# A configuration with one of these keys and no `model_type` is ALBERT's: its files say no more.
_KEYS_OF_ALBERT = ("num_hidden_groups", "inner_group_num")


def family_of(content: Mapping[str, Any]) -> Family:
  """Finds the family of a configuration: a file's content, or a `BertConfig`'s attributes.

  Raises:
    ValueError: `model_type` is unknown.

  Example:
    >>> family_of({"num_hidden_groups": 1}).name, family_of({"hidden_size": 8}).name
    ('albert', 'bert')
  """
  default = "albert" if any(key in content for key in _KEYS_OF_ALBERT) else "bert"
  name = content.get("model_type", default)
  if not isinstance(name, str) or name not in FAMILIES:
    raise ValueError(f"model_type is {name!r:.60}; known: {', '.join(FAMILIES)}.")
  return FAMILIES[name]


def family_of_variables(names: Container[str]) -> Family | None:
  """Finds the family of the encoder whose first layer is among a model's variables.

  Example:
    >>> family_of_variables(["bert/encoder/layer_0/attention/self/query/kernel"]).title
    'BERT'
  """
  for family in FAMILIES.values():
    layer = "transformer/group_0/inner_group_0" if family.shares_layers else "layer_0"
    if f"{family.scope}/encoder/{layer}/{family.layer.attention}/query/kernel" in names:
      return family
  return None
