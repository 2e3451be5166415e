"""What code around transformers' models takes from its `modeling_tf_utils` and `activations_tf`.

class Scorer(TFBertPreTrainedModel, TFSequenceClassificationLoss):
  @unpack_inputs
  def call(self, input_ids=None, attention_mask=None, labels=None, training=False): ...
"""

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import keras
import tensorflow as tf

from bert.keras3.building_blocks import ACTIVATIONS, gelu_erf
from bert.transformers import losses
from bert.transformers.call_arguments import by_name
from bert.transformers.configurations import AutoConfig

ACT2FN = {**ACTIVATIONS, "gelu": gelu_erf, "sigmoid": keras.activations.sigmoid}
"""transformers' name -> function."""

TFModelInputType = Any  # what a model is called with, in annotations

__all__ = ["ACT2FN", "TFModelInputType"]


def get_tf_activation(activation_string: str) -> Callable:
  """Returns an activation by transformers' name.

  Raises:
    KeyError: there is none of this name.
  """
  if activation_string not in ACT2FN:
    raise KeyError(f"There is no activation {activation_string!r}: {', '.join(ACT2FN)}.")
  return ACT2FN[activation_string]


def shape_list(tensor) -> list:
  """Returns a shape: a number where it is known, otherwise a tensor."""
  if isinstance(tensor, keras.KerasTensor):
    return list(tensor.shape)
  tensor = tf.convert_to_tensor(tensor)
  if tensor.shape.rank is None:
    return tf.shape(tensor)
  sizes = tf.shape(tensor)
  return [sizes[axis] if size is None else size for axis, size in enumerate(tensor.shape)]


def stable_softmax(logits, axis: int | None = None, name: str | None = None):
  """Returns the softmax: TensorFlow's own."""
  return tf.nn.softmax(logits, axis=axis, name=name)


def get_initializer(initializer_range: float = 0.02) -> keras.initializers.Initializer:
  """Returns the initializer of weights: a truncated normal distribution of this deviation."""
  return keras.initializers.TruncatedNormal(stddev=initializer_range)


def unpack_inputs(function: Callable) -> Callable:
  """Decorates `call`: a dictionary or list of tensors as its first argument becomes arguments."""
  names = list(inspect.signature(function).parameters)[1:]  # without self

  @functools.wraps(function)
  def call(self, inputs=None, *args, **kwargs):
    first, given = by_name(names, inputs, args, kwargs)
    return function(self, **{n: x for n, x in first.items() if n in names}, **given)

  return call


def keras_serializable(cls: type[Any]) -> type[Any]:
  """Decorates a layer made of a configuration: Keras saves it with that."""
  init = cls.__init__

  def constructor(self, config, *args, **kwargs):
    if isinstance(config, Mapping):
      config = AutoConfig.for_model(**config)
    init(self, config, *args, **kwargs)
    self._own_config = config

  def get_config(self) -> dict:
    return {**super(cls, self).get_config(), "config": self._own_config.to_dict()}

  cls.__init__, cls.get_config = constructor, get_config
  return keras.saving.register_keras_serializable()(cls)


# ---------------------------------------------------------------------------------------------
# Losses as base classes.


def _of(name: str, loss: Callable) -> type[Any]:
  def hf_compute_loss(self, labels, logits):
    """Computes the loss of labels and logits."""
    del self
    return loss(labels, logits)

  members = {"hf_compute_loss": hf_compute_loss, "__module__": __name__, "__doc__": loss.__doc__}
  return type(name, (), members)


TFSequenceClassificationLoss = _of("TFSequenceClassificationLoss", losses.of_texts)
TFMultipleChoiceLoss = _of("TFMultipleChoiceLoss", losses.of_texts)
TFTokenClassificationLoss = _of("TFTokenClassificationLoss", losses.of_tokens)
TFMaskedLanguageModelingLoss = _of("TFMaskedLanguageModelingLoss", losses.of_masked_words)
TFNextSentencePredictionLoss = _of("TFNextSentencePredictionLoss", losses.of_sentences)
TFQuestionAnsweringLoss = _of("TFQuestionAnsweringLoss", losses.of_spans)
