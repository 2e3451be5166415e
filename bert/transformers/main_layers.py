"""The encoder in a model, `model.bert`, `model.roberta` and so on, with transformers' names.

  model.bert.encoder.layer[0].trainable = False
  model.bert.embeddings.trainable = False
  model.bert(ids, attention_mask=mask).last_hidden_state

It is `keras3.BERT`, made of a configuration of transformers.
"""

import dataclasses

import keras
import tensorflow as tf
from keras import ops

from bert.families.files import FILES, files_of
from bert.keras3.encoder import BERT
from bert.keras3.layers import BertEmbeddings
from bert.keras3.pretraining_heads import MaskedLMHead, NextSentenceHead, masked_lm_arguments
from bert.keras3.sizes import arguments_from_config
from bert.transformers.call_arguments import ON_REQUEST, by_name, encoder_inputs
from bert.transformers.configurations import CONFIGS, PretrainedConfig, to_original
from bert.transformers.outputs import TFBaseModelOutput, TFBaseModelOutputWithPooling


class TFEmbeddings(BertEmbeddings):
  """Tables whose gradients have one row for each id, however often it was looked up.

  Keras 3's optimizers square the rows of a sparse gradient before they add those of the same id:
  Adam would take steps that are too long by as much as the root of their number.

  Attributes:
    gives_slices: whether the gradients are sparse, for optimizers that add first, but whose norm
      of gradients is that of all rows.
  """

  gives_slices = False

  def look_up(self, table, ids):
    """Returns the rows of a table `[V, W]` for ids."""
    if self.gives_slices:
      return super().look_up(table, ids)
    return _looked_up(tf.convert_to_tensor(ops.convert_to_tensor(table)), ids)


@tf.custom_gradient
def _looked_up(table, ids):
  rows, width = table.shape

  def gradient(of_vectors):
    of_vectors = tf.reshape(of_vectors, [-1, width])
    return tf.math.unsorted_segment_sum(of_vectors, tf.reshape(ids, [-1]), rows), None

  return tf.gather(table, ids), gradient


class TFMainLayer(BERT):
  """The encoder of a model.

  Attributes:
    config_class: of its configuration.
    own_config: the configuration of the model; None of an encoder alone.
  """

  embeddings_class = TFEmbeddings
  config_class = PretrainedConfig

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
      sizes = arguments_from_config(to_original(config, kwargs.pop("architecture", None)))
      kwargs = {**sizes, **kwargs, "add_pooler": add_pooling_layer}
    super().__init__(**kwargs)
    self.own_config = config
    # transformers' TensorFlow classes train the vectors of padding, too, and read all segments;
    # by gathering them, which decides the global norm of gradients.
    self.family = dataclasses.replace(
      self.family,
      padding_is_fixed=False,
      has_segments=bool(self.type_vocab_size),
      gathers_segments=True,
    )
    self.embeddings.family = self.family

  def __call__(self, input_ids=None, *args, **kwargs):
    """Encodes sequences; arguments as of the models, the tensors perhaps in a dictionary.

    Returns:
      A `TFBaseModelOutput`, of families with a pooler one `WithPooling`; with `return_dict=False` a
      tuple of its values. What else is in a dictionary of inputs is not read.
    """
    names = encoder_inputs(self.config_class)
    first, given = by_name((*names, *ON_REQUEST, "training"), input_ids, args, kwargs)
    named = given.pop("return_dict", None)
    for name in ("output_attentions", "output_hidden_states"):
      given.setdefault(name, getattr(self.own_config, name, False))
    first = {name: value for name, value in first.items() if name in names}
    tensors = {name: given.pop(name) for name in names if name in given} | first
    return super().__call__(tensors, return_dict=named, **given)

  def encode(self, inputs, **arguments) -> dict:
    """Encodes sequences as `keras3.BERT` does: what heads need is in the dictionary, too."""
    return super().__call__(inputs, for_heads=True, **arguments)

  def call(
    self,
    inputs,
    output_hidden_states=None,
    training=None,
    output_attentions=None,
    reads_padding=True,
    return_dict=None,
    for_heads=False,
  ):
    """Encodes sequences; see `__call__`, and for the arguments `BERT.call`."""
    encoded = super().call(
      inputs,
      output_hidden_states=output_hidden_states,
      training=training,
      output_attentions=output_attentions,
      reads_padding=reads_padding,
    )
    return encoded if for_heads else self._as_output(encoded, return_dict)

  def compute_output_spec(self, *args, return_dict=None, for_heads=False, **kwargs):
    """Returns shapes and types of the outputs."""
    encoded = super().compute_output_spec(*args, **kwargs)
    return encoded if for_heads else self._as_output(encoded, return_dict)

  def _as_output(self, encoded, return_dict):
    output_type = TFBaseModelOutput if self.pooler is None else TFBaseModelOutputWithPooling
    output = output_type(**{name: encoded.get(name) for name in output_type.fields})
    return output.to_tuple() if return_dict is False else output

  def _create_layers(self):
    super()._create_layers()
    if self.add_pooler and files_of(self.model_type).transformers.encoder_has_pooler:
      self.pooler = self._create_pooler()


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


@registered
class TFBertMLMHead(MaskedLMHead):
  """Scores the vocabulary for each token: `[B, S, W]` to float32 `[B, S, V]`."""

  def __init__(self, config: PretrainedConfig, input_embeddings: BertEmbeddings, **kwargs):
    """Creates the head.

    Args:
      config: its sizes.
      input_embeddings: those of the encoder, by which words are scored.
      **kwargs: arguments of `keras.layers.Layer`.
    """
    arguments = masked_lm_arguments(to_original(config))
    super().__init__(**arguments, input_embeddings=input_embeddings, **kwargs)


@registered
class TFBertNSPHead(NextSentenceHead):
  """Scores whether the second segment follows the first: `[B, W]` to float32 `[B, 2]`."""

  def __init__(self, config: PretrainedConfig, **kwargs):
    super().__init__(initializer_range=config.initializer_range, **kwargs)
