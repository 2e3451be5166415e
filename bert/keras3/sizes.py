"""Sizes of a BERT by name: short names, released models."""

import os
from collections.abc import Mapping

from bert import families
from bert.checkpoints import loading, model_files, model_names, model_source
from bert.checkpoints.bundle_files import KERAS_SUFFIX
from bert.checkpoints.keras_model import ARGUMENTS, ARGUMENTS_OF_FAMILIES, keys_of
from bert.keras3 import saving
from bert.keras3.building_blocks import LAYER_NORM_EPSILON, require_one_of
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
  """Returns the arguments of `BERT` for a variant.

  Raises:
    ValueError: the variant or the dataset is unknown.

  Example:
    >>> variant_arguments("tiny", "cased")["vocab_size"]
    28996
  """
  if name := model_names.released_name_of(variant):
    try:
      return arguments_from_config(BertConfig.from_name(name))
    except ValueError:
      raise ValueError(
        f"The sizes of {name} are in its files alone; BertModel.from_pretrained reads them."
      ) from None
  if variant not in NAMED_VARIANTS:
    known = f"{', '.join(NAMED_VARIANTS)}, and the names of released models"
    raise ValueError(f"variant is {variant!r}; known: {known}. {model_names.question(variant)}")
  require_one_of("weights_dataset", weights_dataset, tuple(WEIGHTS_DATASETS))
  return {**NAMED_VARIANTS[variant], "vocab_size": WEIGHTS_DATASETS[weights_dataset][0]}


def arguments_from_config(config: BertConfig) -> dict:
  """Returns the arguments of `BERT` for the model of a `bert_config.json`."""
  family = config.family
  own = [name for name in ARGUMENTS_OF_FAMILIES if name in family.keys]
  arguments = {name: getattr(config, key) for name, key in ARGUMENTS.items()}
  if activation := getattr(config, "classifier_activation", None):
    arguments["classifier_activation"] = activation
  if family is not families.BERT:
    arguments |= {"model_type": family.name, **{name: getattr(config, name) for name in own}}
  return {**arguments, "hidden_act": config.hidden_act or "linear"}


def config_of(arguments: Mapping) -> BertConfig:
  """Creates the configuration of a `BERT` with these arguments."""
  return BertConfig.from_dict(keys_of(arguments))


def completed(arguments: Mapping) -> dict:
  """Replaces None in the arguments of `BERT` by its family's values.

  Raises:
    ValueError: the family is unknown, or has no such argument.

  Example:
    >>> completed({"model_type": "albert", "hidden_size": 8, "type_vocab_size": None})
    {'model_type': 'albert', 'hidden_size': 8, 'type_vocab_size': 2, 'embedding_size': 128}
  """
  require_one_of("model_type", arguments["model_type"], tuple(families.FAMILIES))
  family = families.FAMILIES[arguments["model_type"]]
  defaults = {
    "type_vocab_size": 2,
    "layer_norm_eps": LAYER_NORM_EPSILON,
    "pad_token_id": 0,
    **family.keys,
  }
  shared = {"layer_norm_eps", "pad_token_id"}  # of all here
  for name in {*ARGUMENTS_OF_FAMILIES} - shared - {*family.keys}:
    if arguments.get(name) is not None:
      having = ", ".join(each.name for each in families.FAMILIES.values() if name in each.keys)
      raise ValueError(
        f"{name} is {arguments[name]}, but model_type is {family.name!r}; it is of {having}."
      )
  full = {n: defaults.get(n) if value is None else value for n, value in arguments.items()}
  if "embedding_size" in family.keys and full.get("embedding_size") is None:
    full["embedding_size"] = family.keys["embedding_size"] or full["hidden_size"]
  activation = full.get("hidden_act")
  if isinstance(activation, str):
    full["hidden_act"] = family.activations.get(activation.lower(), activation)
  return full


def released_name(arguments: dict, variant: str, weights_dataset: str) -> str:
  """Finds the name of the released model with these sizes.

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


def config_of_weights(path: str | os.PathLike) -> BertConfig:
  """Reads the `bert_config.json`, or transformers' `config.json`, beside weights.

  A `.keras` file contains its sizes.

  Raises:
    ValueError: there is no such file, or it is invalid.
  """
  path = model_source.local_path(path)
  if path.endswith(KERAS_SUFFIX):
    return BertConfig.from_dict(saving.describe(loading.load_keras(path)).config)
  file = model_files.find(path).config
  if file is None:
    folder = model_files.folder_of(path)
    raise ValueError(f"{folder} has no bert_config.json; pass the model's sizes to BERT(...).")
  return BertConfig.from_json_file(file)
