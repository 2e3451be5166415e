"""Labels, losses and metrics of the models: what `compile`, `fit` and `evaluate` make of them.

model.compile(AdamWeightDecay(2e-5))                  # without a loss: the model's own
model.fit({"input_ids": ids, "labels": labels})       # or behind the inputs: fit(inputs, labels)
"""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import keras
import numpy as np
import tensorflow as tf
from keras import ops

from bert.keras3.optimization import AdamWeightDecay
from bert.keras3.pretrained_model import PretrainedModel
from bert.transformers import losses
from bert.transformers.main_layers import TFEmbeddings
from bert.transformers.outputs import ModelOutput, logits_of, matched


class LabelledModel(PretrainedModel):
  """Base of the models that know their labels and their loss.

  Attributes:
    config: its configuration.
    label_names: the arguments with labels.
    output_type: class of the outputs.
    loss_of: computes the model's own loss of its labels and logits; None of one without.
  """

  config: Any = None
  label_names: ClassVar[tuple[str, ...]] = ()
  output_type = ModelOutput
  loss_of: ClassVar[Callable[..., Any] | None] = None
  _has_own_loss = False

  @classmethod
  def _calls_by_name(cls) -> bool:
    """Tells whether `call` is that of this library, and not one of a class derived from it."""
    return getattr(cls.call, "is_by_name", False)

  def compile(self, optimizer="rmsprop", loss="auto_with_warning", metrics=None, **kwargs):
    """Prepares for training; without a loss the model's own is minimized.

    Args:
      optimizer: as in `keras.Model.compile`.
      loss: a Keras loss of the logits; by default, or "passthrough", the loss of the model, as for
        its methods `hf_compute_loss` and `compute_loss`.
      metrics: of the logits; of each of them where there are several, unless they are named.
      **kwargs: as there.

    Raises:
      ValueError: one of them is of Keras 2.
    """
    if loss in ("auto_with_warning", "passthrough", self._own_loss, self.compute_loss):
      loss = None
    _refuse_keras_2(optimizer, loss, metrics)
    self._has_own_loss = loss is None
    for layer in self._flatten_layers():
      if isinstance(layer, TFEmbeddings):
        layer.gives_slices = isinstance(optimizer, AdamWeightDecay)
    names = logits_of(self.output_type) if self._calls_by_name() else ["output"]
    loss, metrics = losses.for_outputs(loss, names), losses.metrics_for_outputs(metrics, names)
    super().compile(optimizer=optimizer, loss=loss, metrics=metrics, **kwargs)

  def compile_from_config(self, config):
    """Compiles as a saved model was."""
    self.compile(**keras.saving.deserialize_keras_object(config))
    if self.optimizer is not None and self.built:
      self.optimizer.build(self.trainable_variables)

  # -------------------------------------------------------------------------------------------
  # Labels.

  def given(self, arguments: dict, takes_labels: bool) -> dict:
    """Makes the data among the arguments of `fit` and the like what Keras takes; see the base.

    Raises:
      ValueError: the labels are of the wrong shape.
    """
    arguments = super().given(arguments, takes_labels)
    x, y = arguments.get("x"), arguments.get("y")
    if takes_labels and y is None and isinstance(x, Mapping) and self._calls_by_name():
      x, found = self._split(x, None)
      if found:  # so that class_weight finds them
        y = one_or_named(found)
        arguments |= {"x": x, "y": y}
    if type(self).loss_of is losses.of_texts and isinstance(y, np.ndarray) and self._has_own_loss:
      losses.check_of_texts(y, self.config.num_labels)
    return arguments

  def train_step(self, data):
    """Makes a step; labels may be in the dictionary of inputs or behind it."""
    return super().train_step(self._with_labels(data))

  def test_step(self, data):
    """Evaluates a batch; see `train_step`."""
    return super().test_step(self._with_labels(data))

  def _with_labels(self, data):
    """Makes (x, y, weights) in which the labels are where the loss reads them.

    A class with a `call` of its own gets its data as they are; with the model's own loss the labels
    are added to a dictionary of inputs, as in transformers.
    """
    x, y, sample_weight = keras.utils.unpack_x_y_sample_weight(data)
    if not self._calls_by_name():
      if self._has_own_loss and isinstance(x, Mapping):
        x = {**x, **self._by_label(y)}
      return x, y, sample_weight
    x, found = self._split(x if isinstance(x, Mapping) else {"input_ids": x}, y)
    if self._has_own_loss and (len(found) < len(self.label_names) or not found):
      raise ValueError(
        f"{type(self).__name__} was compiled without a loss, so the data need "
        f"{', '.join(self.label_names) or 'a loss: it has none of its own'}."
      )
    return x, one_or_named(found) if found else y, sample_weight

  def _split(self, x: Mapping, y) -> tuple[dict, dict]:
    """Splits labels off the inputs; returns the rest, and all labels by name, also those of `y`."""
    found = {**x, **self._by_label(y)}
    labels = {name: found[name] for name in self.label_names if name in found}
    return {name: value for name, value in x.items() if name not in self.label_names}, labels

  def _by_label(self, y) -> dict:
    """Names labels; empty where they are none of the model's own."""
    if isinstance(y, Mapping):
      return dict(y) if set(y) <= set(self.label_names) else {}
    several = y if isinstance(y, (list, tuple)) else [y]
    has_labels = self.label_names and y is not None
    return dict(zip(self.label_names, several, strict=True)) if has_labels else {}

  def pop_labels(self, inputs: dict):
    """Takes labels out of the inputs: one, or all of several where all are there."""
    found = [inputs.pop(name, None) for name in self.label_names]
    if not found or any(each is None for each in found):
      return None
    return found[0] if len(found) == 1 else tuple(found)

  # -------------------------------------------------------------------------------------------
  # Losses.

  @property
  def hf_compute_loss(self) -> Callable[[Any, Any], Any]:
    """The model's own loss of labels and logits, or of several of both in dictionaries.

    That of another base, such as `TFTokenClassificationLoss`, where the model has none.
    """
    return super().hf_compute_loss if type(self).loss_of is None else self._own_loss

  def _own_loss(self, labels, logits, weights=None):
    names = self.label_names
    labels, weights = (
      one_or_all({name: value.get(name) for name in names}) if isinstance(value, Mapping) else value
      for value in (labels, weights)
    )
    if len(names) > 1 and not isinstance(weights, tuple):
      weights = (weights,) * len(names)
    return type(self).loss_of(labels, logits, weights)

  def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
    """Computes the model's own loss, or the compiled one of its logits.

    Raises:
      ValueError: a `call` that is not the library's returned no loss.
    """
    if not self._has_own_loss:
      y, y_pred = matched(y, y_pred)
      return keras.Model.compute_loss(self, x, y, y_pred, sample_weight, training)
    if self._calls_by_name():
      logits = one_or_all({name: y_pred[name] for name in logits_of(type(y_pred))})
      loss = self._own_loss(y, logits, sample_weight)
    elif isinstance(y_pred, Mapping) and "loss" in y_pred:
      loss = y_pred["loss"] * (1.0 if sample_weight is None else sample_weight)
    else:
      raise ValueError(
        f"{type(self).__name__}.call returned no loss: compile the model with loss=..., or return "
        "an output with `loss`."
      )
    loss = ops.mean(loss)
    return loss + sum(self.losses) if self.losses else loss

  def compute_metrics(self, x, y, y_pred, sample_weight=None):
    """Computes the compiled metrics of the logits."""
    y, y_pred = matched(y, y_pred)
    if isinstance(y, Mapping) and isinstance(sample_weight, Mapping):  # by label, as y was
      weights_of = zip(y, self.label_names, strict=True)
      sample_weight = {name: sample_weight.get(label) for name, label in weights_of}
    return keras.Model.compute_metrics(self, x, y, y_pred, sample_weight)


def one_or_all(values: Mapping):
  """Returns a value alone, or a tuple of several."""
  found = tuple(values.values())
  return found[0] if len(found) == 1 else found


def one_or_named(values: dict):
  """Returns a value alone, or several by name."""
  return next(iter(values.values())) if len(values) == 1 else values


def _refuse_keras_2(*values) -> None:
  """Raises a ValueError for optimizers, losses and metrics of Keras 2."""
  for value in tf.nest.flatten(values):
    if type(value).__module__.startswith("tf_keras."):
      raise ValueError(
        f"{type(value).__name__} is of Keras 2, these models are of Keras 3. Take "
        "TF_USE_LEGACY_KERAS out of the environment, so that tf.keras is Keras 3."
      )
