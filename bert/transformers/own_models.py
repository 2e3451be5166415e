"""Models of your own on a family's encoder: classes derived from `TFBertPreTrainedModel` and so on.

  class Scorer(TFBertPreTrainedModel):
    def __init__(self, config, *inputs, **kwargs):
      super().__init__(config, *inputs, **kwargs)
      self.bert = TFBertMainLayer(config, name="bert")
      self.score = keras.layers.Dense(1, name="score")

    def call(self, inputs, **kwargs):
      return self.score(self.bert(inputs, **kwargs)[0])

  model = Scorer.from_pretrained("a_folder")      # the score starts at random

Calls, training and losses are those of `keras.Model`.
"""

import os
from typing import ClassVar

import keras
import numpy as np

from bert.checkpoints import model_files
from bert.io import filesystem
from bert.keras3 import weights
from bert.keras3.encoder import BERT
from bert.transformers.configurations import PretrainedConfig
from bert.transformers.folders import WEIGHTS_FILES, located, refuse_upload, without_options

_WEIGHTS = "model.weights.h5"


class OwnModel(keras.Model):
  """The base of `TFBertPreTrainedModel`.

  Attributes:
    config: its configuration.
    config_class: of that.
    base_model_prefix: the attribute with the encoder, by custom.
  """

  config_class: ClassVar[type[PretrainedConfig]] = PretrainedConfig
  base_model_prefix: ClassVar[str] = ""

  def __init__(self, config: PretrainedConfig | None = None, *inputs, **kwargs):
    """Creates the model, without a layer.

    Args:
      config: its configuration; None in this room's own models, which keep it themselves.
      *inputs: not used.
      **kwargs: `name`; others are those of your class.

    Raises:
      ValueError: `config` is none of this family.
    """
    del inputs
    super().__init__(**{key: kwargs[key] for key in ("name", "dtype") if key in kwargs})
    if config is not None and config.model_type != self.config_class.model_type:
      raise ValueError(
        f"{type(self).__name__} needs a {self.config_class.__name__}, not {type(config).__name__}."
      )
    if config is not None:
      self.config = config

  def build(self, input_shape=None):
    """Does nothing: the first call creates the variables of each layer."""
    del input_shape
    self.built = True

  @property
  def dummy_inputs(self) -> dict[str, np.ndarray]:
    """Ids with which the model may be called."""
    return {"input_ids": np.array([[7, 6, 0, 0, 1], [1, 2, 3, 0, 0], [0, 0, 0, 4, 5]], np.int32)}

  @classmethod
  def from_pretrained(
    cls,
    pretrained_model_name_or_path: str | os.PathLike,
    *model_args,
    config: PretrainedConfig | None = None,
    cache_dir: str | os.PathLike | None = None,
    **kwargs,
  ):
    """Creates a model whose encoders have the weights of a checkpoint.

    Args:
      pretrained_model_name_or_path: as of `TFBertModel`; or a folder of `save_pretrained`, of which
        all layers are read.
      *model_args: of the class.
      config: its configuration, by default that beside the weights.
      cache_dir: folder of downloads.
      **kwargs: keys of the configuration; others are those of the class.

    Raises:
      ModelNotFoundError: the model does not exist.
      ValueError: it is of another family, or does not fit.
    """
    path = located(pretrained_model_name_or_path, WEIGHTS_FILES, cache_dir=cache_dir, **kwargs)
    own = without_options(kwargs)
    if config is None:
      config, own = cls.config_class.from_pretrained(path, return_unused_kwargs=True, **own)
    model = cls(config, *model_args, **own)
    model(model.dummy_inputs, training=False)  # creates the variables
    saved = os.path.join(model_files.folder_of(path), _WEIGHTS)
    if filesystem.is_file(saved):
      model.load_weights(saved)
      return model
    for layer in model._flatten_layers():
      if isinstance(layer, BERT):
        weights.load(layer.checkpoint_variables(), path, family=config.model_type)
    return model

  def save_pretrained(self, save_directory: str | os.PathLike, **kwargs) -> None:
    """Writes a folder for `from_pretrained`: the configuration, and the weights of all layers.

    Args:
      save_directory: made if it does not exist.
      **kwargs: arguments about other forms of files; `push_to_hub` is refused.
    """
    refuse_upload(kwargs)
    self.config.save_pretrained(save_directory)
    self.save_weights(os.path.join(save_directory, _WEIGHTS))

  def num_parameters(self, only_trainable: bool = False) -> int:
    """Returns the number of parameters."""
    variables = self.trainable_variables if only_trainable else self.variables
    return sum(int(np.prod(variable.shape)) for variable in variables)
