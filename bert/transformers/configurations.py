"""Configurations with the keys, defaults and methods of transformers 4.

  config = BertConfig(num_hidden_layers=2, id2label={0: "no", 1: "yes"})
  config = AutoConfig.from_pretrained("a_folder", num_labels=3)

What a key means to the model, `bert/checkpoints/transformers_config.py` says: the content of a
`config.json` is translated there, whoever wrote it. The keys and defaults of a family are those of
`bert/checkpoints/families`.
"""

import copy
import json
import os
from collections.abc import Mapping
from typing import Any, ClassVar

from bert.checkpoints import (
  config_files,
  model_files,
  model_source,
  transformers_config,
  transformers_folder,
)
from bert.checkpoints.families import FILES, files_of
from bert.io import atomic_files, filesystem, json_files
from bert.model.configuration import BertConfig as OriginalConfig

# What every configuration has beside its family's keys.
_SHARED: dict[str, Any] = {
  "architectures": None,
  "classifier_dropout": None,
  "is_decoder": False,
  "is_encoder_decoder": False,
  "add_cross_attention": False,
  "layer_norm_eps": 1e-12,
  "output_attentions": False,
  "output_hidden_states": False,
  "pad_token_id": 0,
  "position_embedding_type": "absolute",
  "problem_type": None,
  "return_dict": True,
  "tie_word_embeddings": True,
  "use_cache": True,
}
_NOT_WRITTEN = ("return_dict", "output_attentions", "output_hidden_states", "use_cache")


class PretrainedConfig:
  """The base of all; an attribute for each key.

  Attributes:
    model_type: the family.
    attribute_map: common name of a key -> the family's own, both of which may be read and set.
    head_defaults: keys about heads -> their values where none is given, `models.py` reads.
    name_or_path: where the model's `from_pretrained` found it.
  """

  model_type: ClassVar[str] = ""
  attribute_map: ClassVar[Mapping[str, str]] = {}
  sub_configs: ClassVar[Mapping[str, type]] = {}
  has_no_defaults_at_init: ClassVar[bool] = False
  head_defaults: ClassVar[Mapping[str, Any]] = {}

  def __init__(self, **kwargs):
    """Sets the keys; those not given have the family's defaults.

    Args:
      **kwargs: keys of a `config.json`; unknown ones are kept. `num_labels` is the number of
        labels, of which `id2label` gives the names.

    Raises:
      ValueError: `num_labels` and `id2label` contradict each other.
    """
    self.name_or_path = kwargs.pop("name_or_path", kwargs.pop("_name_or_path", ""))
    for key in ("model_type", "transformers_version"):
      kwargs.pop(key, None)
    num_labels = kwargs.pop("num_labels", None)
    labels, numbers = kwargs.pop("id2label", None), kwargs.pop("label2id", None)
    for key, value in {**self.defaults(), **kwargs}.items():
      setattr(self, key, value)
    for key, value in kwargs.items():  # a common name after the default of the family's own
      setattr(self, key, value)
    self._set_labels(labels, numbers, num_labels)

  @classmethod
  def defaults(cls) -> dict[str, Any]:
    """Returns the value of each key that none is given for."""
    if not cls.model_type:
      return dict(_SHARED)
    theirs = files_of(cls.model_type).transformers
    own = {key: value for key, value in theirs.defaults.items() if key not in theirs.absent_keys}
    own["hidden_act"] = theirs.default_activation
    renamed = {theirs.keys.get(key, key): value for key, value in own.items()}
    return copy.deepcopy({**_SHARED, **renamed, **cls.head_defaults})

  def _set_labels(self, labels, numbers, num_labels) -> None:
    if labels is None:
      self.num_labels = 2 if num_labels is None else num_labels
    else:
      self.id2label = {int(index): label for index, label in dict(labels).items()}
      if num_labels is not None and num_labels != len(self.id2label):
        raise ValueError(f"num_labels is {num_labels}, but id2label has {len(self.id2label)}.")
      self.label2id = {label: index for index, label in self.id2label.items()}
    if numbers is not None:
      self.label2id = dict(numbers)

  def __setattr__(self, name: str, value: Any) -> None:
    super().__setattr__(type(self).attribute_map.get(name, name), value)

  def __getattr__(self, name: str) -> Any:
    own = type(self).attribute_map.get(name)
    if own is None:
      raise AttributeError(f"{type(self).__name__} has no {name}.")
    return getattr(self, own)

  @property
  def num_labels(self) -> int:
    """The number of labels."""
    return len(self.id2label)

  @num_labels.setter
  def num_labels(self, count: int) -> None:
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
      raise ValueError(f"num_labels is {count!r}; a whole number of at least 1 is needed.")
    if "id2label" not in vars(self) or len(self.id2label) != count:
      self.id2label = {index: f"LABEL_{index}" for index in range(count)}
      self.label2id = {label: index for index, label in self.id2label.items()}

  @property
  def use_return_dict(self) -> bool:
    """Whether models return an output with names, not a tuple."""
    return self.return_dict

  def update(self, values: Mapping[str, Any]) -> None:
    """Sets several keys."""
    for key, value in values.items():
      setattr(self, key, value)

  def to_dict(self) -> dict[str, Any]:
    """Returns the content of its `config.json`."""
    content = copy.deepcopy({key: value for key, value in vars(self).items() if key[0] != "_"})
    content["_name_or_path"] = content.pop("name_or_path")
    content["id2label"] = {str(index): label for index, label in self.id2label.items()}
    return {**content, "model_type": self.model_type}

  def to_json_string(self, use_diff: bool = True) -> str:
    """Returns that content as text; see `to_diff_dict`."""
    content = self.to_diff_dict() if use_diff else self.to_dict()
    return json.dumps(content, indent=2, sort_keys=True) + "\n"

  def to_diff_dict(self) -> dict[str, Any]:
    """Returns that content without what models are called with: outputs, caches."""
    return {key: value for key, value in self.to_dict().items() if key not in _NOT_WRITTEN}

  def to_json_file(self, json_file_path: str | os.PathLike, use_diff: bool = True) -> None:
    """Writes the content into a file."""
    atomic_files.write_text(os.fsdecode(json_file_path), self.to_json_string(use_diff))

  def save_pretrained(self, save_directory: str | os.PathLike, **kwargs) -> None:
    """Writes `config.json` into a folder, which is made."""
    refuse_upload(kwargs)
    os.makedirs(save_directory, exist_ok=True)
    self.to_json_file(os.path.join(save_directory, transformers_folder.CONFIG))

  @classmethod
  def from_dict(cls, config_dict: Mapping[str, Any], **kwargs) -> Any:
    """Makes it of the content of a `config.json`.

    Args:
      config_dict: the content.
      **kwargs: keys that replace those of the content; with `return_unused_kwargs=True` those that
        are none are returned, too.

    Returns:
      The configuration, or it and the other arguments.
    """
    return_unused = kwargs.pop("return_unused_kwargs", False)
    config = cls(**dict(config_dict))
    known = {key: value for key, value in kwargs.items() if hasattr(config, key)}
    config.update({key: value for key, value in known.items() if key != "label2id"})
    if "id2label" in known:
      config._set_labels(known["id2label"], known.get("label2id"), kwargs.get("num_labels"))
    unused = {key: value for key, value in kwargs.items() if key not in known}
    return (config, unused) if return_unused else config

  @classmethod
  def from_json_file(cls, json_file: str | os.PathLike) -> "PretrainedConfig":
    """Makes it of a file.

    Raises:
      ValueError: the file has no JSON object.
    """
    return cls(**json_files.read_object(json_file))

  @classmethod
  def from_pretrained(
    cls,
    pretrained_model_name_or_path: str | os.PathLike,
    cache_dir: str | os.PathLike | None = None,
    **kwargs,
  ) -> Any:
    """Reads the configuration of a model.

    Args:
      pretrained_model_name_or_path: a folder of transformers, a checkpoint of the original, a
        configuration file, or the name of a released model.
      cache_dir: folder of downloads.
      **kwargs: as in `from_dict`.

    Returns:
      See `from_dict`.

    Raises:
      ValueError: there is no configuration, or it is of another family.
    """
    path = in_subfolder(pretrained_model_name_or_path, kwargs)
    content = read_content(path, cache_dir)
    if cls.model_type and content["model_type"] != cls.model_type:
      raise ValueError(
        f"{os.fsdecode(pretrained_model_name_or_path)} is a model of {content['model_type']}; "
        f"{cls.__name__} is of {cls.model_type}. AutoConfig finds the right class."
      )
    return cls.from_dict(content, **without_options(kwargs))

  def to_original(self, architecture: str | None = None) -> OriginalConfig:
    """Makes the configuration of `modeling.py` for the same model.

    Args:
      architecture: transformers' class of the model, which decides ELECTRA's heads.

    Raises:
      ValueError: a key has a value that these models do not support.
    """
    content = {**self.to_dict(), "architectures": [architecture]}
    if self.is_decoder or self.add_cross_attention:
      raise ValueError("is_decoder: these models are encoders; decoders are not here.")
    content = {k: v for k, v in content.items() if k not in self.attribute_map}
    return OriginalConfig.from_dict(transformers_config.to_original(content))

  def __eq__(self, other) -> bool:
    return isinstance(other, PretrainedConfig) and self.to_dict() == other.to_dict()

  __hash__ = None

  def __repr__(self) -> str:
    return f"{type(self).__name__} {self.to_json_string()}"


class BertConfig(PretrainedConfig):
  """BERT's."""

  model_type = "bert"


class RobertaConfig(PretrainedConfig):
  """RoBERTa's."""

  model_type = "roberta"


class DistilBertConfig(PretrainedConfig):
  """DistilBERT's: `dim`, `n_layers`, `n_heads` and others have the common names, too."""

  model_type = "distilbert"
  attribute_map: ClassVar = {
    key: own
    for key, own in FILES["distilbert"].transformers.keys.items()
    if key in ("hidden_size", "num_attention_heads", "num_hidden_layers")
  }


class AlbertConfig(PretrainedConfig):
  """ALBERT's."""

  model_type = "albert"
  head_defaults: ClassVar = {"classifier_dropout_prob": 0.1}


class ElectraConfig(PretrainedConfig):
  """ELECTRA's."""

  model_type = "electra"
  head_defaults: ClassVar = {
    **{"summary_type": "first", "summary_use_proj": True},
    **{"summary_activation": "gelu", "summary_last_dropout": 0.1},
  }


CONFIGS = {
  config.model_type: config
  for config in (BertConfig, RobertaConfig, DistilBertConfig, AlbertConfig, ElectraConfig)
}
"""`model_type` -> class."""


class AutoConfig:
  """Finds the class that a model's configuration is of."""

  def __init__(self):
    raise OSError("AutoConfig is made by AutoConfig.from_pretrained(name or folder).")

  @staticmethod
  def for_model(model_type: str, **kwargs) -> PretrainedConfig:
    """Makes the configuration of a family; see `PretrainedConfig`.

    Raises:
      ValueError: there is no such family here.
    """
    return CONFIGS[files_of(model_type).name](**kwargs)

  @staticmethod
  def from_pretrained(
    pretrained_model_name_or_path: str | os.PathLike,
    cache_dir: str | os.PathLike | None = None,
    **kwargs,
  ) -> PretrainedConfig:
    """Reads a configuration; see `PretrainedConfig.from_pretrained`."""
    path = in_subfolder(pretrained_model_name_or_path, kwargs)
    content = read_content(path, cache_dir)
    config_class = CONFIGS[files_of(content["model_type"]).name]
    return config_class.from_pretrained(path, cache_dir, **kwargs)


# Arguments of `from_pretrained` about the Hub, which a folder or the cache of downloads need not.
_HUB = (
  *("force_download", "resume_download", "proxies", "local_files_only", "token", "revision"),
  *("use_auth_token", "trust_remote_code", "mirror", "_from_auto", "_commit_hash"),
  *("use_safetensors", "from_pt", "from_tf", "variant", "torch_dtype", "dtype", "code_revision"),
)


class ModelNotFoundError(OSError, ValueError):
  """There is no model of a name, or no folder; an OSError, as in transformers."""


def located(name_or_path: str | os.PathLike, cache_dir=None) -> str:
  """Returns where a model lies, which is downloaded if need be.

  Raises:
    ModelNotFoundError: there is none.
  """
  try:
    return model_source.local_path(name_or_path, cache_dir)
  except ValueError as error:
    raise ModelNotFoundError(str(error)) from None


def in_subfolder(name_or_path: str | os.PathLike, arguments: dict[str, Any]) -> str:
  """Adds the argument `subfolder`, which is taken out of the arguments, to a path."""
  return os.path.join(os.fsdecode(name_or_path), arguments.pop("subfolder", None) or "").rstrip("/")


def without_options(arguments: Mapping[str, Any]) -> dict[str, Any]:
  """Leaves the arguments about the Hub and the form of files out, which make no difference here."""
  return {name: value for name, value in arguments.items() if name not in _HUB}


def refuse_upload(arguments: Mapping[str, Any]) -> None:
  """Raises a ValueError if a model is to be sent to the Hub."""
  if arguments.get("push_to_hub"):
    raise ValueError(
      "push_to_hub: nothing is sent from here. Send the folder with huggingface-cli."
    )


def read_content(name_or_path: str | os.PathLike, cache_dir=None) -> dict[str, Any]:
  """Reads the content of a model's `config.json`; of the original's configuration, it is made.

  Raises:
    ModelNotFoundError: there is none.
  """
  path = os.path.expanduser(os.fsdecode(name_or_path))
  if not (path.endswith(".json") and filesystem.is_file(path)):
    path = located(path, cache_dir)
    file = model_files.find(path).config
    if file is None:
      raise ModelNotFoundError(
        f"{model_files.folder_of(path)} has neither config.json nor bert_config.json."
      )
    path = file
  if path.endswith(".json") and not config_files.is_original(
    content := json_files.read_object(path)
  ):
    return {**content, "model_type": files_of(content.get("model_type", "bert")).name}
  return _of_original(config_files.read(path))


def _of_original(content: Mapping[str, Any]) -> dict[str, Any]:
  family = OriginalConfig.from_dict(dict(content)).family.name
  return transformers_config.from_original(content, "", family=family) | {"architectures": None}
