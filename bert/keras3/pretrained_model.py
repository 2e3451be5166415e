"""The base of the models in `models.py`: an encoder and what its outputs go through.

A derived class creates its layers, computes its outputs of the encoder's, and says which labels its
loss reads; `PretrainedModel` does the rest: calls, losses, steps of training, files.

Letters in shapes: B = batch size, S = sequence length, C = number of labels.
"""

import os
from collections.abc import Mapping
from typing import Any, ClassVar

import keras
import numpy as np
from keras import ops

from bert import families
from bert.checkpoints import keras_model, loading, model_source
from bert.checkpoints.load_report import LoadReport
from bert.keras3 import older_files, padding, parts
from bert.keras3.building_blocks import Transposed, create_dense
from bert.keras3.encoder import BERT
from bert.keras3.input_checks import CheckedInputs
from bert.keras3.outputs import with_extras
from bert.keras3.saving import Savable
from bert.keras3.sizes import arguments_from_config, config_of_weights
from bert.keras3.tasks import SparseCrossentropy
from bert.keras3.torch_modules import TorchModule, register_parameters
from bert.model.configuration import BertConfig


class PretrainedModel(TorchModule, CheckedInputs, Savable, keras.Model):
  """Base of the models below: an encoder and what its outputs go through.

  Attributes:
    bert: the encoder, also under the name of its family: `roberta`, `distilbert` and so on.
    reads_pooler: whether the encoder needs a pooler; one that is given may have it anyway.
    reads_padding: whether an output depends on vectors of padding.
    is_generator: whether it is the generator of the two models in ELECTRA's checkpoints.
    label_names: the arguments of `call` with labels.
    optional_variables: not reported if missing in a checkpoint.
    original: the class in `keras_model` of a head of dense layers; empty of others.
  """

  reads_pooler = True
  reads_padding = True
  is_generator = False
  label_names: ClassVar[tuple[str, ...]] = ("labels",)
  optional_variables: tuple[str, ...] = ()
  original = ""

  def __init__(self, config: BERT | BertConfig | dict, num_labels: int | None = None, **kwargs):
    """Creates the model, with random weights.

    Args:
      config: the encoder, its `BertConfig`, or a dictionary with the keys of one.
      num_labels: C, for classification models; by default that of the config, or 2.
      **kwargs: arguments of `keras.Model`.

    Raises:
      ValueError: `num_labels` is below 1, `config` is a name, or the encoder's family has no such
        model.
    """
    super().__init__(**kwargs)
    self.bert = _as_bert(config, self.reads_pooler)
    self.num_labels = num_labels or getattr(config, "num_labels", None) or 2
    if self.num_labels < 1:
      raise ValueError(f"num_labels is {num_labels}; it must be at least 1.")
    self.create_head()
    self.build()

  def _lock_state(self) -> None:
    """Does nothing: layers can be added and replaced at any time, as in Keras 2."""

  def __setattr__(self, name: str, value: Any) -> None:
    """Sets an attribute; a layer that is replaced is no longer a part of the model."""
    replaced = vars(self).get(name)
    if isinstance(replaced, keras.Layer) and replaced is not value:
      self._tracker.untrack(replaced)
    super().__setattr__(name, value)

  def create_head(self) -> None:
    """Creates the layers behind the encoder.

    Raises:
      ValueError: models of the encoder's family have no such head.
    """

  def build(self, input_shape=None):
    """Creates the variables of these layers; those of the encoder already exist."""
    del input_shape
    for layer in self.layers:
      if not layer.built:
        layer.build((None, None, self.bert.hidden_size))
    self.built = True

  def dropout_rate(self, kind: str = "") -> float:
    """Returns the rate of dropout before the scores.

    Args:
      kind: `texts` or `choices`, for which families have rates of their own.
    """
    hidden = self.bert.family.hidden_layers.get(kind)
    return getattr(self.bert, (hidden and hidden.dropout_key) or "hidden_dropout_prob")

  def create_scores(self, units: int, name: str) -> keras.layers.Dense:
    """Creates a layer of scores: `units` of them."""
    is_glorot = keras_model.is_dense(self.original, self.bert.family)
    initializer_range = None if is_glorot else self.bert.initializer_range
    return create_dense(units, name, self.dtype_policy, initializer_range)

  def dense_layers(self) -> tuple[keras.layers.Layer, keras.layers.Layer | None]:
    """Returns the dense layers of the head: that of the scores, and that before it or None."""
    return self.classifier, None

  def head_variables(self) -> dict:
    """Returns the variables behind the encoder by their names in the original's checkpoints."""
    found: dict = {}
    for layer in self.layers:
      if layer is not self.bert and hasattr(layer, "checkpoint_variables"):
        found |= layer.checkpoint_variables()
    if self.original:
      scores, hidden = self.dense_layers()
      names = keras_model.variable_names(self.original, self.bert.family)
      is_dense = keras_model.is_dense(self.original, self.bert.family)
      kernel = scores.kernel if is_dense else Transposed(scores.kernel)
      found |= zip(names[""], (kernel, scores.bias), strict=True)
      if hidden is not None:
        found |= zip(names["hidden"], (hidden.kernel, hidden.bias), strict=True)
    return found

  def load_own_variables(self, store):
    """Loads a file, perhaps one that was written when layers had other places."""
    if not older_files.read_model(self, store):
      super().load_own_variables(store)

  def call(
    self,
    input_ids,
    attention_mask=None,
    token_type_ids=None,
    position_ids=None,
    output_hidden_states=None,
    training=None,
    output_attentions=None,
    **labels,
  ):
    """Computes the model's outputs, and its loss where labels are given.

    Args:
      input_ids: int `[B, S]`; or a dictionary of this and any of the others. Those that are not
        explained here are as in `BERT.call`.
      attention_mask: `[B, S]`.
      token_type_ids: int `[B, S]`.
      position_ids: int `[B, S]`.
      output_hidden_states: whether to return `hidden_states`.
      training: whether to apply dropout.
      output_attentions: whether to return `attentions`.
      **labels: `label_names`, as the model's loss reads them: int, negative (-100) for no label;
        for one number per text float `[B]`, for any number of classes float `[B, C]`.

    Raises:
      ValueError: some labels are missing, or the model has no loss for them.
    """
    if isinstance(input_ids, Mapping):
      labels |= {name: input_ids[name] for name in self.label_names if name in input_ids}
      input_ids = {name: x for name, x in input_ids.items() if name not in self.label_names}
    outputs = self._encode(
      input_ids,
      attention_mask=attention_mask,
      token_type_ids=token_type_ids,
      position_ids=position_ids,
      output_hidden_states=output_hidden_states,
      output_attentions=output_attentions,
      training=training,
    )
    return with_extras(
      found := self._outputs(outputs),
      loss=self._loss_of_given(found, labels),
      hidden_states=outputs.get("hidden_states"),
      attentions=outputs.get("attentions"),
    )

  def _encode(self, inputs, **arguments):
    """Calls the encoder; a model may add to the outputs what its layers need."""
    if padding.is_left_out() and not self.reads_padding:
      arguments["reads_padding"] = False
    return self._call_encoder(inputs, **arguments)

  def _call_encoder(self, inputs, **arguments):
    return self.bert(inputs, **arguments)

  def train_step(self, *args, **kwargs):
    """Makes a step; see `padding.py` for what is left out of it."""
    with padding.left_out_in_step(self):
      return super().train_step(*args, **kwargs)

  def test_step(self, *args, **kwargs):
    """Evaluates a batch, as `train_step`."""
    with padding.left_out_in_step(self):
      return super().test_step(*args, **kwargs)

  def predict_step(self, *args, **kwargs):
    """Computes the outputs of a batch, as `train_step`."""
    with padding.left_out_in_step(self):
      return super().predict_step(*args, **kwargs)

  def _outputs(self, outputs):
    """Computes the model's output of the encoder's."""
    raise NotImplementedError

  def _loss_of_given(self, outputs, labels: dict):
    given = {name: value for name, value in labels.items() if value is not None}
    if not given:
      return None
    if set(given) != set(self.label_names):
      raise ValueError(
        f"The loss of {type(self).__name__} needs {' and '.join(self.label_names)}; got "
        f"{', '.join(given)}."
      )
    return self._loss(outputs, *(given[name] for name in self.label_names))

  def _loss(self, outputs, labels):
    if not hasattr(outputs, "logits"):
      raise ValueError(f"{type(self).__name__} has no loss for `labels`.")
    return mean_loss(outputs.logits, labels)

  def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
    """Computes the compiled loss of the logits."""
    return super().compute_loss(x, y, _bare(y_pred), sample_weight, training)

  def compute_metrics(self, x, y, y_pred, sample_weight=None):
    """Computes the compiled metrics of the logits."""
    return super().compute_metrics(x, y, _bare(y_pred), sample_weight)

  @classmethod
  def from_pretrained(
    cls,
    name_or_path: str | os.PathLike,
    cache_dir: str | os.PathLike | None = None,
    num_labels: int | None = None,
    **overrides,
  ):
    """Creates a model with the weights of a checkpoint.

    Args:
      name_or_path: a checkpoint of the original or its folder, with `bert_config.json`; a folder
        that transformers saved; or the name of a released model here or in transformers.
      cache_dir: folder of downloads.
      num_labels: C, for classification models; 2 by default.
      **overrides: arguments of `BERT` that replace the configuration's.

    Raises:
      ValueError: the model does not exist, or its files cannot be read.
    """
    path = model_source.local_path(name_or_path, cache_dir)
    config = config_of_weights(path)
    if cls.is_generator and config.family.has_generator:
      shapes, _ = loading.open_weights(path)
      config = config.generator_config() if loading.has_generator(shapes) else config
    arguments = {**arguments_from_config(config), "add_pooler": cls.reads_pooler, **overrides}
    model = cls(BERT(**arguments), num_labels=num_labels)
    model.load_pretrained_weights(path)
    return model

  def load_pretrained_weights(
    self, path: str | os.PathLike, skip_mismatch: bool = True
  ) -> LoadReport:
    """Loads encoder and heads from a file; see `BERT.load_pretrained_weights`."""
    variables = self.checkpoint_variables()
    return loading.load(variables, path, skip_mismatch, self.optional_variables)

  def checkpoint_variables(self) -> dict:
    """Returns the variables by their names in the original's checkpoints."""
    return {**self.bert.checkpoint_variables(), **self.head_variables()}

  @property
  def config(self) -> BertConfig:
    """A copy of the encoder's configuration, with `num_labels`."""
    config = self.bert.config
    vars(config).update(num_labels=self.num_labels)
    return config

  def get_input_embeddings(self):
    """Returns the layer with the word embeddings."""
    return self.bert.embeddings

  def set_input_embeddings(self, value) -> None:
    """Replaces the word embeddings, by which words are scored, too; see `BERT`."""
    self.bert.set_input_embeddings(value)
    words = getattr(self, "words", None)
    if words is not None and words.spec.vocab_size != self.bert.vocab_size:
      words.resize_vocabulary(self.bert.vocab_size)
    register_parameters(self)

  def num_parameters(self, only_trainable: bool = False) -> int:
    """Returns the number of parameters."""
    weights = self.trainable_weights if only_trainable else self.weights
    return sum(int(np.prod(weight.shape)) for weight in weights)

  def get_config(self):
    """Returns the constructor's arguments."""
    config = {"config": keras.saving.serialize_keras_object(self.bert)}
    config |= {"num_labels": self.num_labels, "parts": parts.described(self)}
    return {**super().get_config(), **config}

  @classmethod
  def from_config(cls, config, custom_objects=None):
    """Creates the model of a config, perhaps one that was written before."""
    config = dict(config)
    found = config.pop("parts", {})
    config["config"] = keras.saving.deserialize_keras_object(config["config"], custom_objects)
    model = cls(**config)
    parts.restore(model, found)
    return model


def _named(family: str) -> property:
  """Makes the property with the encoder of models of a family."""

  def encoder(model) -> BERT:
    if model.bert.model_type != family:
      raise AttributeError(f"{type(model).__name__} has a {model.bert.model_type}, not a {family}.")
    return model.bert

  return property(encoder, lambda model, bert: setattr(model, "bert", bert))


for _family in families.FAMILIES:
  if _family != "bert":
    setattr(PretrainedModel, _family, _named(_family))


def _as_bert(config, add_pooler: bool) -> BERT:
  if isinstance(config, (str, os.PathLike)):
    raise ValueError(f"The config is {config!r}; models of names and folders: from_pretrained.")
  if isinstance(config, BERT):
    return config
  config = BertConfig.from_dict(config) if isinstance(config, dict) else config
  return BERT(**arguments_from_config(config), add_pooler=add_pooler)


def mean_loss(logits, labels):
  """Computes the loss that transformers has for this kind of labels: float32 `[]`."""
  labels = ops.convert_to_tensor(labels)
  if logits.shape[-1] == 1 and len(labels.shape) == 1:  # regression
    return ops.mean(ops.square(logits[..., 0] - ops.cast(labels, "float32")))
  if keras.backend.is_float_dtype(labels.dtype):  # any number of classes
    targets = ops.maximum(labels, 0.0)
    return labelled_mean(ops.binary_crossentropy(targets, logits, from_logits=True), labels)
  return SparseCrossentropy(from_logits=True)(labels, logits)


def labelled_mean(losses, labels):
  """Averages the losses whose label is not negative; 0 without any."""
  weights = ops.cast(labels >= 0, "float32")
  return ops.divide_no_nan(ops.sum(weights * losses), ops.sum(weights))


def _bare(outputs):
  """Returns the outputs as losses read them: logits, or a dictionary of several outputs."""
  if hasattr(outputs, "logits"):
    return outputs.logits
  return outputs._asdict() if hasattr(outputs, "_asdict") else outputs
