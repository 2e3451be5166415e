"""Sizes of a BERT by name: short names, released models, numbers of parameters."""

from collections.abc import Mapping

from bert.checkpoints import model_names
from bert.checkpoints.keras_model import ARGUMENTS
from bert.keras3.parts import require_one_of
from bert.model.configuration import RELEASED_SIZES, BertConfig

NAMED_VARIANTS = {
  "base": {"hidden_size": 768, "num_layers": 12, "num_heads": 12, "intermediate_size": 3072},
  "large": {"hidden_size": 1024, "num_layers": 24, "num_heads": 16, "intermediate_size": 4096},
  "small": {"hidden_size": 512, "num_layers": 6, "num_heads": 8, "intermediate_size": 2048},
  "tiny": {"hidden_size": 256, "num_layers": 4, "num_heads": 4, "intermediate_size": 512},
}
"""Short names. `tiny` has half the usual feed-forward width: no released model fits it."""

WEIGHTS_DATASETS = {  # name: (vocabulary size, archive name before the sizes)
  "uncased": (30522, "uncased"),
  "cased": (28996, "cased"),
  "multilingual": (119547, "multi_cased"),
  "multilingual_uncased": (105879, "multilingual"),
  "chinese": (21128, "chinese"),
  "wwm_uncased": (30522, "wwm_uncased"),
  "wwm_cased": (28996, "wwm_cased"),
}
"""Training data of the released weights; `wwm` stands for whole word masking."""


def variant_arguments(variant: str, weights_dataset: str = "uncased") -> dict:
  """The arguments of `BERT` for a variant.

  Raises:
    ValueError: the variant or the dataset is unknown.

  Example:
    >>> variant_arguments("tiny", "cased")["vocab_size"]
    28996
  """
  if name := model_names.released_name_of(variant):
    return arguments_from_config(BertConfig.from_name(name))
  if variant not in NAMED_VARIANTS:
    known = f"{', '.join(NAMED_VARIANTS)}, and the names of released models"
    raise ValueError(f"variant is {variant!r}; known: {known}. {model_names.question(variant)}")
  require_one_of("weights_dataset", weights_dataset, tuple(WEIGHTS_DATASETS))
  return {**NAMED_VARIANTS[variant], "vocab_size": WEIGHTS_DATASETS[weights_dataset][0]}


def arguments_from_config(config: BertConfig) -> dict:
  """The arguments of `BERT` for the model of a `bert_config.json`.

  Raises:
    ValueError: it is a model of another family.
  """
  check_family(config.family.name)
  arguments = {name: getattr(config, key) for name, key in ARGUMENTS.items()}
  return {**arguments, "hidden_act": config.hidden_act or "linear"}


def check_family(name: str) -> None:
  """Refuses models of other families than BERT, none of whose layers would get its weights.

  Raises:
    ValueError: names the family, and where its models are.
  """
  if name != "bert":
    raise ValueError(
      f"This is a model of the family {name}, and bert.keras3 has models of BERT. The scripts, "
      "bert.modeling.BertModel and exports (export_hub.py) have this one: docs/families.md."
    )


def config_of(arguments: Mapping) -> BertConfig:
  """The configuration of a `BERT` with these arguments; the reverse of `arguments_from_config`."""
  return BertConfig(
    **{key: arguments[name] for name, key in ARGUMENTS.items() if name in arguments}
  )


def released_name(arguments: dict, variant: str, weights_dataset: str) -> str:
  """The name of the released model with these sizes.

  Raises:
    ValueError: no released model has these sizes.

  Example:
    >>> released_name(variant_arguments("large"), "large", "wwm_cased")
    'wwm_cased_L-24_H-1024_A-16'
  """
  if name := model_names.released_name_of(variant):
    return name
  width, inner = arguments["hidden_size"], arguments["intermediate_size"]
  size = f"L-{arguments['num_layers']}_H-{width}_A-{arguments['num_heads']}"
  name = f"{WEIGHTS_DATASETS[weights_dataset][1]}_{size}"
  if name not in RELEASED_SIZES or inner != 4 * width:
    raise ValueError(
      f"No {weights_dataset} weights were released for {size} with intermediate_size {inner}. "
      f"Released are {', '.join(RELEASED_SIZES)}, all with intermediate_size 4 * hidden_size."
    )
  return name


def count_parameters(variant: str, weights_dataset: str = "uncased") -> int:
  """Number of parameters of a variant, with its pooler, computed without creating the model.

  Example:
    >>> count_parameters("base"), count_parameters("large")
    (109482240, 335141888)
  """
  arguments = {"type_vocab_size": 2, **variant_arguments(variant, weights_dataset)}
  return config_of(arguments).count_parameters()
