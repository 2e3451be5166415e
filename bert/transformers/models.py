"""What the models have in common: calls, losses, training, files, as in transformers 4.

  model = TFBertForSequenceClassification.from_pretrained("a_folder", num_labels=3)
  outputs = model(**tokenizer(texts, padding=True, return_tensors="tf"), labels=labels)
  model.compile(optimizer=AdamWeightDecay(2e-5))     # without a loss: the model's own
  model.fit(dataset)
  model.save_pretrained("another_folder")

The encoder and the heads are those of `bert.keras3`, on the TensorFlow backend. A class of your own
on a family's encoder has the same base, and everything else that it has, but its layers and `call`:

  class Scorer(TFBertPreTrainedModel):
    def __init__(self, config, *inputs, **kwargs):
      super().__init__(config, *inputs, **kwargs)
      self.bert = TFBertMainLayer(config, name="bert")
      self.score = keras.layers.Dense(1, name="score")

    def call(self, inputs, **kwargs):
      return self.score(self.bert(inputs, **kwargs)[0])

  model = Scorer.from_pretrained("a_folder")      # the score starts at random

Letters in shapes: B = batch size, S = sequence length, L = layers, N = heads.
"""

import copy
import functools
import inspect
import logging as python_logging
import os
from collections.abc import Callable, Mapping
from typing import Any

import keras
import tensorflow as tf
from absl import logging

from bert.checkpoints import loading, model_files, transformers_folder, transformers_heads
from bert.families import FAMILIES, form
from bert.families.files import files_of
from bert.io import filesystem
from bert.keras3 import parts
from bert.keras3.input_checks import plain
from bert.keras3.saving import float32
from bert.transformers import losses, tf_datasets
from bert.transformers.call_arguments import (
  ENCODER_INPUTS,
  ON_REQUEST,
  by_name,
  encoder_inputs,
  without_labels,
)
from bert.transformers.configurations import PretrainedConfig
from bert.transformers.folders import WEIGHTS_FILES, located, refuse_upload, without_options
from bert.transformers.main_layers import MAIN_LAYERS, TFMainLayer
from bert.transformers.outputs import ModelOutput, logits_of
from bert.transformers.training import LabelledModel, one_or_all

_OWN_WEIGHTS = "model.weights.h5"
LOGGER = python_logging.getLogger("transformers.modeling_tf_utils")  # so that settings hold


class TFPreTrainedModel(LabelledModel):
  """The base of all models.

  Attributes:
    config: its configuration; changes of sizes have no effect on a model that exists.
    config_class: of that.
    base_model_prefix: the attribute with the encoder.
    head: what it computes: the end of its name, as `ForMaskedLM`; "Model" without a head; empty of
      a class whose layers are its own.
  """

  config: Any = None
  config_class = PretrainedConfig
  base_model_prefix = ""
  main_input_name = "input_ids"
  framework = "tf"
  head = ""

  def __init__(self, config: PretrainedConfig, *inputs, **kwargs):
    """Creates the model with random weights; one whose layers are its own without a layer.

    Args:
      config: its configuration, of this family.
      *inputs: not used.
      **kwargs: `name`, `dtype`; `add_pooling_layer` of a model without a head. Others are those of
        a derived class.

    Raises:
      ValueError: `config` is none of this family, or says what these models do not compute.
    """
    del inputs
    if getattr(config, "model_type", None) != self.config_class.model_type:
      raise ValueError(
        f"{type(self).__name__} needs a {self.config_class.__name__}, not "
        f"{type(config).__name__}. Of a name or folder: {type(self).__name__}.from_pretrained."
      )
    self.config = config
    options = {name: kwargs[name] for name in ("name", "dtype") if name in kwargs}
    if not self.head:
      keras.Model.__init__(self, **options)
      return
    encoder = self.create_encoder(config, kwargs.get("add_pooling_layer", self.reads_pooler))
    super().__init__(encoder, num_labels=config.num_labels, **options)

  def build(self, input_shape=None):
    """Creates the variables of the library's layers; the first call creates those of others."""
    if self.head:
      super().build(input_shape)
    self.built = True

  def dropout_rate(self, kind: str = "") -> float:
    """Returns the rate of dropout before the scores, as the configuration says; see the base."""
    key = files_of(self.config.model_type).transformers.dropout_keys.get(self.head, "")
    rate = getattr(self.config, key, None)
    return super().dropout_rate(kind) if rate is None else rate

  def build_in_name_scope(self) -> None:
    """Does nothing: all variables exist from the start."""

  @classmethod
  def create_encoder(cls, config: PretrainedConfig, add_pooling_layer: bool) -> TFMainLayer:
    """Creates the encoder of a model with this configuration."""
    has_pooler = cls.head == form.ENCODER or FAMILIES[config.model_type].has_pooler
    encoder = MAIN_LAYERS[config.model_type](
      config,
      add_pooling_layer and has_pooler,
      architecture=cls._architecture(config),
      name=cls.base_model_prefix or "bert",
    )
    encoder.add_pooler = add_pooling_layer  # without a layer, the first vector
    return encoder

  @classmethod
  def _architecture(cls, config: PretrainedConfig) -> str:
    """Returns the name of transformers' class for PyTorch."""
    return files_of(config.model_type).transformers.class_prefix + cls.head

  def get_config(self) -> dict:
    """Returns the content of the configuration, for Keras."""
    config = {"name": self.name, "config": self.config.to_dict()}
    return {**config, "parts": parts.described(self)}

  @classmethod
  def from_config(cls, config, custom_objects=None, **kwargs) -> "TFPreTrainedModel":
    """Creates a model with random weights.

    Args:
      config: a configuration, or what `get_config` returned.
      custom_objects: not needed.
      **kwargs: as in the constructor.
    """
    del custom_objects
    if isinstance(config, PretrainedConfig):
      return cls(config, **kwargs)
    model = cls(cls.config_class.from_dict(config["config"]), name=config.get("name"))
    parts.restore(model, config.get("parts", {}))
    return model

  # -------------------------------------------------------------------------------------------
  # Calls.

  def __call__(self, input_ids=None, *args, **kwargs):
    """Computes the outputs; arguments as in `call`, the tensors perhaps in a dictionary.

    A class with a `call` of its own gets the arguments as they are.
    """
    if not self._calls_by_name():
      args = args if input_ids is None else (plain(input_ids), *args)
      return keras.Model.__call__(self, *args, **kwargs)
    first, given = by_name(self._parameters(), input_ids, args, kwargs)
    if unknown := sorted(set(given) - set(self._parameters())):
      raise ValueError(
        f"The following keyword arguments are not supported by this model: {', '.join(unknown)}. "
        f"{type(self).__name__} reads {', '.join(self._parameters())}."
      )
    tensors = {**given, **self._known(first)}
    flags = {name: tensors.pop(name) for name in (*ON_REQUEST, "training") if name in tensors}
    if "labels" in tensors and type(self).loss_of is losses.of_texts:
      losses.check_of_texts(tensors["labels"], self.config.num_labels)
    if not tensors:
      raise ValueError("You have to specify either input_ids or inputs_embeds.")
    shape = getattr(tensors.get("input_ids"), "shape", (None, None))
    if len(shape) < 2:
      raise ValueError(
        f"input_ids is {list(shape)}; it must be [texts, tokens], also for one text."
      )
    return super().__call__(tensors, **flags)

  def check_inputs(self, inputs) -> None:
    """Compares ids with the sizes of the encoder; labels behind them are not looked at."""
    if self._calls_by_name():
      super().check_inputs(without_labels(inputs))

  def call(self, input_ids=None, *args, **kwargs):
    """Computes the model's outputs, and its loss where labels are given.

    Args:
      input_ids: int `[B, S]`; or a dictionary of it and any of the others.
      *args: the others, in order.
      **kwargs: the others: `attention_mask` `[B, S]`, 1 for a token, 0 for padding;
        `token_type_ids` int `[B, S]`, the segments; `position_ids` int `[B, S]`; `head_mask` float
        `[N]` or `[L, N]`, 0 for heads without effect; `inputs_embeds` `[B, S, E]`, instead of
        `input_ids`; `output_attentions`, `output_hidden_states` and, False for a tuple,
        `return_dict`, by default as the configuration says; `training`, whether to apply dropout;
        labels, those of `label_names`.

    Returns:
      The class's output, or a tuple of its values.
    """
    first, given = by_name(self._parameters(), input_ids, args, kwargs)
    inputs = given | first
    attends, states, named = (inputs.pop(n, getattr(self.config, n)) for n in ON_REQUEST)
    training = inputs.pop("training", False)
    right = self.pop_labels(inputs)
    encoded = self._encode(
      inputs, output_attentions=attends, output_hidden_states=states, training=training
    )
    values = self._values(encoded)
    if right is not None and type(self).loss_of is not None:
      values["loss"] = self._own_loss(right, one_or_all(values))
    values |= {name: encoded[name] for name in ("hidden_states", "attentions") if name in encoded}
    output = self.output_type(**{k: v for k, v in values.items() if k in self.output_type.fields})
    return output if named else output.to_tuple()

  call.is_by_name = True  # type: ignore[attr-defined]

  def __init_subclass__(cls, **kwargs):
    """Gives `call` the arguments that this class reads, for those who ask for its signature.

    A `call` of its own says itself what the labels are, as in transformers.
    """
    super().__init_subclass__(**kwargs)
    if cls._calls_by_name():
      cls.call = _with_signature(TFPreTrainedModel.call, cls._parameters())
    elif labels := [name for name in _arguments(cls.call) if _is_label(name)]:
      cls.label_names = tuple(labels)

  def _call_encoder(self, inputs, **arguments):
    return self.bert.encode(inputs, **arguments)

  def _values(self, encoded) -> dict:
    """Computes the outputs of the heads by name, of the encoder's outputs."""
    return dict(zip(logits_of(self.output_type), self._outputs(encoded), strict=True))

  @classmethod
  def _parameters(cls) -> tuple[str, ...]:
    """Lists the arguments of `call` that the model reads, in order."""
    names = (*encoder_inputs(cls.config_class), *ON_REQUEST, *cls.label_names, "training")
    own = () if cls._calls_by_name() else _arguments(cls.call)
    return (*names, *(name for name in own if name not in names))

  def _known(self, inputs: Mapping) -> dict:
    """Leaves out of a dictionary what the model does not read."""
    names = self._parameters()
    for name in set(inputs).difference(names):
      _log_ignored(type(self).__name__, name)
    return {name: value for name, value in inputs.items() if name in names}

  # -------------------------------------------------------------------------------------------
  # Files.

  @classmethod
  def from_pretrained(  # type: ignore[override]
    cls,
    pretrained_model_name_or_path: str | os.PathLike,
    *model_args,
    config: PretrainedConfig | None = None,
    cache_dir: str | os.PathLike | None = None,
    ignore_mismatched_sizes: bool = False,
    output_loading_info: bool = False,
    **kwargs,
  ):
    """Creates a model with the weights of a checkpoint.

    Args:
      pretrained_model_name_or_path: a folder of transformers; a checkpoint of the original; or the
        name of a released model.
      *model_args: of the class.
      config: its configuration, by default that beside the weights.
      cache_dir: folder of downloads.
      ignore_mismatched_sizes: leave weights of other shapes random, with a warning, instead of
        raising an error.
      output_loading_info: return a dictionary of what was not loaded, too.
      **kwargs: keys of the configuration, such as `num_labels`; others are those of the class.
        Arguments about the form of the files (`from_pt`, `use_safetensors`, ...) make no
        difference.

    Raises:
      ModelNotFoundError: the model does not exist.
      ValueError: it is of another family, or does not fit.
    """
    path = located(pretrained_model_name_or_path, WEIGHTS_FILES, cache_dir=cache_dir, **kwargs)
    own = without_options(kwargs)
    if config is None:
      config, own = cls.config_class.from_pretrained(path, return_unused_kwargs=True, **own)
    elif not isinstance(config, PretrainedConfig):
      config = cls.config_class.from_pretrained(config)
    config.name_or_path = os.fsdecode(pretrained_model_name_or_path)
    model = cls(config, *model_args, **own)
    if not cls.head:
      model(model.dummy_inputs, training=False)  # creates the variables
    saved = os.path.join(model_files.folder_of(path), _OWN_WEIGHTS)
    if not cls.head and filesystem.is_file(saved):
      model.load_weights(saved)
      return model
    variables, optional = model.checkpoint_variables(), model.optional_variables
    report = loading.load(variables, path, True, optional, config.model_type, LOGGER.warning)
    if report.mismatched and not ignore_mismatched_sizes:
      first = report.mismatched[0]
      raise ValueError(
        f"{path}: {first}. Give the configuration of the checkpoint, or "
        "ignore_mismatched_sizes=True to leave the variable random."
      )
    if not output_loading_info:
      return model
    return model, {
      "missing_keys": list(report.missing),
      "unexpected_keys": list(report.unexpected),
      "mismatched_keys": [tuple(each) for each in report.mismatched],
      "error_msgs": [],
    }

  def save_pretrained(  # type: ignore[override]
    self, save_directory: str | os.PathLike, saved_model: bool = False, **kwargs
  ) -> None:
    """Writes a folder that transformers reads: `config.json` and `model.safetensors`.

    A model whose layers are its own writes `model.weights.h5`, for its class alone.

    Args:
      save_directory: made if it does not exist.
      saved_model: also write a SavedModel with the signature `serving_default`, in `saved_model/1`.
      **kwargs: arguments about other forms of files; `push_to_hub` is refused.

    Raises:
      ValueError: transformers cannot compute what the model computes.
      OSError: a file cannot be written.
    """
    refuse_upload(kwargs)
    folder = os.path.expanduser(os.fsdecode(save_directory))
    os.makedirs(folder, exist_ok=True)
    if not self.head:
      self.config.save_pretrained(folder)
      self.save_weights(os.path.join(folder, _OWN_WEIGHTS))
      return
    tensors = {
      name: float32(name, variable) for name, variable in self.checkpoint_variables().items()
    }
    labels = [self.config.id2label[index] for index in range(self.num_labels)]
    transformers_folder.write_folder(
      folder,
      self.bert.config.to_dict(),
      tensors,
      None,
      False,
      transformers_heads.Head(self.head, labels),
      self.config.model_type,
    )
    config = copy.copy(self.config)
    config.architectures = [self._architecture(config)]
    config.save_pretrained(folder)
    if saved_model:
      tf.saved_model.save(
        self, os.path.join(folder, "saved_model", "1"), {"serving_default": self.serving}
      )

  def checkpoint_variables(self) -> dict:
    """Returns the variables by their names in the original's checkpoints; not those of others."""
    if self.head:
      return super().checkpoint_variables()
    found = {}
    for layer in self._flatten_layers(include_self=False):
      if hasattr(layer, "checkpoint_variables"):
        found |= layer.checkpoint_variables()
    return found

  @property
  def serving(self):
    """The model as a function of a dictionary of ids, for SavedModels."""

    @tf.function(input_signature=[self.input_signature])
    def serving(inputs):
      return self.serving_output(self(inputs, training=False))

    return serving

  # -------------------------------------------------------------------------------------------
  # Parts.

  @property
  def dummy_inputs(self) -> dict[str, tf.Tensor]:
    """Ids with which the model may be called."""
    ids = tf.constant([[7, 6, 0, 0, 1], [1, 2, 3, 0, 0], [0, 0, 0, 4, 5]], tf.int32)
    return {"input_ids": ids}

  @property
  def input_signature(self) -> dict[str, tf.TensorSpec]:
    """Shapes and types of ids, for `serving`."""
    names = [name for name in ENCODER_INPUTS[:3] if name in self._parameters()]
    shape = (None,) * self.export_rank
    return {name: tf.TensorSpec(shape, tf.int32, name) for name in names}

  def serving_output(self, output: ModelOutput) -> dict[str, tf.Tensor]:
    """Returns what `serving` returns of an output: those of all layers as one tensor."""
    return {k: tf.stack(v) if isinstance(v, tuple) else v for k, v in output.items()}

  def get_lm_head(self):
    """Returns the head that scores the vocabulary; None without one."""
    return getattr(self, "words", None)

  def get_output_embeddings(self):
    """Returns the layer by which the vocabulary is scored: that of the word embeddings, or None."""
    return None if self.get_lm_head() is None else self.get_input_embeddings()

  def get_bias(self) -> dict[str, tf.Variable] | None:
    """Returns the bias of the scores of the vocabulary by name; None without one."""
    head = self.get_lm_head()
    return None if head is None else {"bias": head.output_bias.value}

  def _get_word_embedding_weight(self, layer) -> tf.Variable | None:
    """Returns the table of `get_input_embeddings` or `get_output_embeddings`."""
    return None if layer is None else layer.word_embeddings.value

  def resize_token_embeddings(self, new_num_tokens: int | None = None):
    """Changes the size of the vocabulary; the rows that stay keep their values.

    Compile the model again afterwards.

    Args:
      new_num_tokens: number of tokens; None changes nothing.

    Returns:
      The layer with the word embeddings.

    Raises:
      ValueError: it is not a whole number of at least 1.
    """
    if new_num_tokens is None or new_num_tokens == self.config.vocab_size:
      return self.get_input_embeddings()
    if isinstance(new_num_tokens, bool) or not isinstance(new_num_tokens, int):
      raise ValueError(f"new_num_tokens is {new_num_tokens!r}; a whole number is needed.")
    self.bert.resize_vocabulary(new_num_tokens)
    if self.get_lm_head() is not None:
      self.get_lm_head().resize_vocabulary(new_num_tokens)
    self.config.vocab_size = new_num_tokens
    return self.get_input_embeddings()

  prepare_tf_dataset = tf_datasets.prepare

  @property
  def name_or_path(self) -> str:
    """Where the model was loaded from."""
    return self.config.name_or_path

  @classmethod
  def can_generate(cls) -> bool:
    """Always False: these are encoders."""
    return False


@functools.cache
def _log_ignored(model: str, name: str) -> None:
  logging.warning("%s does not read %r: ignored.", model, name)


def _with_signature(function, names):
  """Copies a method under another signature: `self` and these names, all None by default."""

  @functools.wraps(function)
  def call(self, *args, **kwargs):
    return function(self, *args, **kwargs)

  first = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
  rest = [first.replace(name=name, default=False if name == "training" else None) for name in names]
  call.__signature__ = inspect.Signature([first, *rest])
  return call


def _arguments(function: Callable) -> list[str]:
  return list(inspect.signature(function).parameters)[1:]  # without self


def _is_label(name: str) -> bool:
  return "label" in name or name in ("start_positions", "end_positions")
