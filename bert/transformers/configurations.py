"""transformers' configurations, which also read the original's checkpoints.

  config = BertConfig(num_hidden_layers=2, id2label={0: "no", 1: "yes"})
  config = AutoConfig.from_pretrained("uncased_L-12_H-768_A-12", num_labels=3)

What a key means to the model, `bert/checkpoints/transformers_config.py` says.
"""

import os
from typing import Any

from bert.checkpoints import config_files, model_files, transformers_config
from bert.families.files import FILES
from bert.io import filesystem, json_files
from bert.model.configuration import BertConfig as OriginalConfig
from bert.transformers.folders import ModelNotFoundError, located, without_options
from bert.transformers.library import transformers

PretrainedConfig: Any = transformers.PretrainedConfig

__all__ = [
  "CONFIG_MAPPING",
  "AlbertConfig",
  "AutoConfig",
  "BertConfig",
  "DistilBertConfig",
  "ElectraConfig",
  "PretrainedConfig",
  "RobertaConfig",
]


class _ReadsOriginal:
  """What is added to a class of transformers: `from_pretrained` reads any folder of a model."""

  model_type: str

  @classmethod
  def get_config_dict(cls, pretrained_model_name_or_path, **kwargs):
    """Reads the content of a model's `config.json`, as `from_pretrained` needs it.

    Returns:
      The content, and the arguments that are not about the Hub.

    Raises:
      ModelNotFoundError: there is no such model, or it has no configuration.
      ValueError: it is of another family.
    """
    content = read_content(located(pretrained_model_name_or_path, **kwargs))
    if content["model_type"] != cls.model_type:
      raise ValueError(
        f"{os.fsdecode(pretrained_model_name_or_path)} is a model of {content['model_type']}; "
        f"{cls.__name__} is of {cls.model_type}. AutoConfig finds the right class."
      )
    if kwargs.get("num_labels") not in (None, len(content.get("id2label") or ())):
      content = {**content, "id2label": None, "label2id": None}
    return content, without_options(kwargs)


class BertConfig(_ReadsOriginal, transformers.BertConfig):
  """BERT's."""


class RobertaConfig(_ReadsOriginal, transformers.RobertaConfig):
  """RoBERTa's."""


class DistilBertConfig(_ReadsOriginal, transformers.DistilBertConfig):
  """DistilBERT's: `dim`, `n_layers`, `n_heads` and others have the common names, too."""


class AlbertConfig(_ReadsOriginal, transformers.AlbertConfig):
  """ALBERT's."""


class ElectraConfig(_ReadsOriginal, transformers.ElectraConfig):
  """ELECTRA's."""


CONFIGS: dict[str, Any] = {
  config.model_type: config
  for config in (BertConfig, RobertaConfig, DistilBertConfig, AlbertConfig, ElectraConfig)
}
"""`model_type` -> class."""

CONFIG_MAPPING = CONFIGS


class AutoConfig(transformers.AutoConfig):
  """Finds the class that a model's configuration is of."""

  @staticmethod
  def for_model(model_type, *args, **kwargs):
    """Makes the configuration of a family."""
    found = CONFIGS.get(model_type)
    return found(**kwargs) if found else transformers.AutoConfig.for_model(model_type, **kwargs)

  @classmethod
  def from_pretrained(cls, pretrained_model_name_or_path, cache_dir=None, **kwargs):
    """Reads a configuration: of a folder, a checkpoint, a file, or a name; see `folders.located`.

    Raises:
      ModelNotFoundError: there is no such model, or it has no configuration.
    """
    path = located(pretrained_model_name_or_path, cache_dir=cache_dir, **kwargs)
    found = CONFIGS.get(read_content(path)["model_type"], transformers.AutoConfig)
    config = found.from_pretrained(path, **without_options(kwargs))
    made = config[0] if isinstance(config, tuple) else config
    made.name_or_path = os.fsdecode(pretrained_model_name_or_path)
    return config


def to_original(config: Any, architecture: str | None = None) -> OriginalConfig:
  """Makes the configuration of `modeling.py` for the same model.

  Args:
    config: a configuration of transformers.
    architecture: transformers' class of the model, which decides ELECTRA's heads.

  Raises:
    ValueError: a key has a value that these models do not support.
  """
  if any(getattr(config, key, False) for key in ("is_decoder", "add_cross_attention")):
    raise ValueError("is_decoder: these models are encoders; decoders are not supported.")
  content = {**config.to_dict(), "architectures": [architecture]}
  return OriginalConfig.from_dict(transformers_config.to_original(content))


def read_content(path: str) -> dict:
  """Reads the content of a model's `config.json`; of the original's configuration, it is made.

  Args:
    path: the file, or the local path of a model.

  Raises:
    ModelNotFoundError: there is none.
  """
  if not (path.endswith(".json") and filesystem.is_file(path)):
    file = model_files.find(path).config
    if file is None:
      raise ModelNotFoundError(
        f"{model_files.folder_of(path)} has neither config.json nor bert_config.json."
      )
    path = file
  if path.endswith(".json") and not config_files.is_original(
    content := json_files.read_object(path)
  ):
    name = content.get("model_type", "bert")
    return {**content, "model_type": FILES[name].name if name in FILES else name}
  content = config_files.read(path)
  family = OriginalConfig.from_dict(content).family.name
  return transformers_config.from_original(content, "", family=family) | {"architectures": None}
