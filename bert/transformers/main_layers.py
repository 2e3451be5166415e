"""The encoder in a model, `model.bert`, `model.roberta` and so on, with transformers' names.

  model.bert.encoder.layer[0].trainable = False
  model.bert.embeddings.trainable = False

It is `keras3.BERT`, made of a configuration of transformers.
"""

import dataclasses
from types import SimpleNamespace
from typing import Any, ClassVar

import keras

from bert.checkpoints.families import FILES, files_of
from bert.keras3.building_blocks import create_dense
from bert.keras3.encoder import BERT
from bert.keras3.sizes import arguments_from_config
from bert.transformers.configurations import CONFIGS, PretrainedConfig


class TFMainLayer(BERT):
  """The encoder of a model.

  Attributes:
    config_class: of its configuration.
  """

  config_class: ClassVar[type[PretrainedConfig]] = PretrainedConfig

  def __init__(
    self, config: PretrainedConfig | None = None, add_pooling_layer: bool = True, **kwargs
  ):
    """Creates the encoder with random weights.

    Args:
      config: of the model; without one, the arguments of `keras3.BERT` are in `kwargs`.
      add_pooling_layer: whether there is a pooler, where the family has one.
      **kwargs: arguments of `keras.Model`.

    Raises:
      ValueError: the configuration is of a model that is not here, such as a decoder.
    """
    if config is not None:
      kwargs = {**encoder_arguments(config, kwargs.pop("architecture", None)), **kwargs}
      kwargs["add_pooler"] = add_pooling_layer
    super().__init__(**kwargs)
    # transformers' TensorFlow classes train the vectors of padding, too, and read all segments;
    # by gathering them, which decides the global norm of gradients.
    self.family = dataclasses.replace(
      self.family,
      padding_is_fixed=False,
      has_segments=bool(self.type_vocab_size),
      gathers_segments=True,
    )
    self.embeddings.family = self.family

  def _create_layers(self):
    super()._create_layers()
    if self.add_pooler and files_of(self.model_type).transformers.encoder_has_pooler:
      self.pooler = create_dense(
        self.hidden_size, "dense", self.dtype_policy, self.initializer_range, "tanh"
      )

  @property
  def encoder(self) -> SimpleNamespace:
    """Its layers, as `encoder.layer`."""
    return SimpleNamespace(layer=self.encoder_layers)

  transformer = encoder  # DistilBERT's name

  def get_input_embeddings(self):
    """Returns the layer with the word embeddings."""
    return self.embeddings


def encoder_arguments(config: PretrainedConfig, architecture: str | None = None) -> dict[str, Any]:
  """Returns the arguments of `keras3.BERT` for a configuration.

  Args:
    config: of the model.
    architecture: transformers' class of it, which decides ELECTRA's heads.

  Raises:
    ValueError: a key has a value that these models do not support.
  """
  return arguments_from_config(config.to_original(architecture))


registered = keras.saving.register_keras_serializable("bert.transformers")


def _main_layer(files) -> type[TFMainLayer]:
  name = f"TF{files.transformers.class_prefix}MainLayer"
  values = {
    "config_class": CONFIGS[files.name],
    "__doc__": f"The encoder of models of {files.transformers.class_prefix}; see `TFMainLayer`.",
    "__module__": __name__,
  }
  return registered(type(name, (TFMainLayer,), values))


MAIN_LAYERS = {name: _main_layer(files) for name, files in FILES.items()}
"""`model_type` -> class."""

globals().update({layer.__name__: layer for layer in MAIN_LAYERS.values()})
