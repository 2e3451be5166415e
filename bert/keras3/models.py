"""Keras 3 models that are loaded and called like those of the transformers library.

  model = BertForSequenceClassification.from_pretrained("bert-base-uncased", num_labels=2)
  logits = model(**tokenizer(texts, padding=True, return_tensors="np")).logits

They are Keras models: `compile`, `fit`, `predict` and `.keras` files work, and losses read the
logits. Weights, including those of the head if present, are loaded from original checkpoints or
from folders that transformers saved.

A model is an encoder and the heads in its class's `heads`; `PretrainedModel` does the rest.

Letters in shapes: B = batch size, S = sequence length, W = width, C = number of labels, N = number
of choices, P = positions to predict, V = vocabulary size.
"""

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import keras
from keras import ops

from bert.checkpoints import loading as weights
from bert.checkpoints import model_source
from bert.checkpoints.load_report import LoadReport
from bert.keras3 import padding
from bert.keras3.building_blocks import register
from bert.keras3.encoder import BERT, gather_inputs
from bert.keras3.heads import (
  EncoderHead,
  MultipleChoiceHead,
  QuestionAnsweringHead,
  TextClassificationHead,
  TokenClassificationHead,
)
from bert.keras3.input_checks import CheckedInputs
from bert.keras3.outputs import (
  BertOutput,
  LogitsOutput,
  PreTrainingOutput,
  SpanOutput,
  with_extras,
)
from bert.keras3.pretraining_heads import MaskedLMHead, NextSentenceHead, ReplacedTokensHead
from bert.keras3.saving import Savable
from bert.keras3.sizes import arguments_from_config
from bert.keras3.tasks import SparseCrossentropy
from bert.keras3.torch_modules import TorchModule
from bert.model.configuration import BertConfig


class PretrainedModel(TorchModule, CheckedInputs, Savable, keras.Model):
  """Base of the models below: an encoder and heads.

  Attributes:
    bert: the encoder.
    heads: attribute of the model -> class of the head in it.
    output_class: the named tuple of the heads' logits.
    is_generator: whether it is the generator of the two models in ELECTRA's checkpoints.
    optional_variables: not reported if missing in a checkpoint.
    layer_arguments: arguments of the constructor that are layers in a saved model.
  """

  heads: ClassVar[Mapping[str, type[EncoderHead]]] = {}
  output_class: ClassVar[Callable[..., Any]] = LogitsOutput
  is_generator = False
  optional_variables: tuple[str, ...] = ()
  layer_arguments: tuple[str, ...] = ("config",)

  def __init__(
    self,
    config: BERT | BertConfig | dict,
    num_labels: int | None = None,
    *,
    head: EncoderHead | None = None,
    **kwargs,
  ):
    """Creates the model, with random weights.

    Args:
      config: the encoder, its `BertConfig`, or a dictionary with the keys of one.
      num_labels: C, for classification models; by default that of the config, or 2.
      head: of a model with one head: this head, instead of a new one.
      **kwargs: arguments of `keras.Model`.

    Raises:
      ValueError: `num_labels` is below 1, `config` is a name, or the encoder's family has no such
        head.
    """
    super().__init__(**kwargs)
    self.bert = _as_bert(config, self.reads_pooler())
    self.num_labels = num_labels or getattr(config, "num_labels", None) or 2
    if self.num_labels < 1:
      raise ValueError(f"num_labels is {num_labels}; it must be at least 1.")
    for name, head_class in self.heads.items():
      setattr(self, name, head or head_class.for_encoder(self.bert, self.num_labels))
    self.build()

  @classmethod
  def reads_pooler(cls) -> bool:
    """Checks whether the encoder needs a pooler; one that is given may have it anyway."""
    return not cls.heads or any(head.reads_pooler for head in cls.heads.values())

  def build(self, input_shape=None):
    """Creates the heads' variables; those of the encoder already exist."""
    del input_shape
    for head in self._heads():
      head.build_for(self.bert)
    self.built = True

  def _heads(self) -> list[EncoderHead]:
    return [getattr(self, name) for name in self.heads]

  def call(
    self,
    input_ids,
    attention_mask=None,
    token_type_ids=None,
    position_ids=None,
    output_hidden_states=None,
    training=None,
    labels=None,
    output_attentions=None,
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
      labels: as the model's loss reads them: int, negative (-100) for no label; for one number per
        text float `[B]`, for any number of classes float `[B, C]`.
      output_attentions: whether to return `attentions`.
    """
    if isinstance(input_ids, Mapping) and "labels" in input_ids:
      input_ids = dict(input_ids)
      labels = input_ids.pop("labels")
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
      loss=None if labels is None else self._loss(found, labels),
      hidden_states=outputs.get("hidden_states") if output_hidden_states else None,
      attentions=outputs.get("attentions"),
    )

  def _encode(self, inputs, **arguments):
    """Calls the encoder; a model may add to the outputs what its heads need."""
    return self.bert(inputs, **self._padding_arguments(), **arguments)

  def _padding_arguments(self) -> dict[str, bool]:
    """Returns what tells the encoder, in a step of `fit`, that no head reads padding."""
    reads_padding = not self.heads or any(head.reads_padding for head in self._heads())
    return {"reads_padding": False} if padding.is_left_out() and not reads_padding else {}

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
    return self.output_class(*(head.score(self.bert, outputs) for head in self._heads()))

  def _loss(self, outputs, labels):
    if not hasattr(outputs, "logits"):
      raise ValueError(f"{type(self).__name__} has no loss for `labels`.")
    return _mean_loss(outputs.logits, labels)

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
    config = weights.read_config(path)
    if cls.is_generator and config.family.has_generator:
      shapes, _ = weights.open_weights(path)
      config = config.generator_config() if weights.has_generator(shapes) else config
    arguments = {**arguments_from_config(config), "add_pooler": cls.reads_pooler(), **overrides}
    model = cls(BERT(**arguments), num_labels=num_labels)
    model.load_pretrained_weights(path)
    return model

  def load_pretrained_weights(
    self, path: str | os.PathLike, skip_mismatch: bool = True
  ) -> LoadReport:
    """Loads encoder and heads from a file; see `BERT.load_pretrained_weights`."""
    variables = self.checkpoint_variables()
    return weights.load(variables, path, skip_mismatch, self.optional_variables)

  def checkpoint_variables(self) -> dict[str, keras.Variable]:
    """Returns the variables by their names in the original's checkpoints."""
    variables = dict(self.bert.checkpoint_variables())
    for head in self._heads():
      variables.update(head.checkpoint_variables())
    return variables

  @property
  def config(self) -> BertConfig:
    """A copy of the encoder's configuration, with `num_labels`."""
    config = self.bert.config
    vars(config).update(num_labels=self.num_labels)
    return config

  def num_parameters(self) -> int:
    """Returns the number of parameters."""
    return self.count_params()

  def get_config(self):
    """Returns the constructor's arguments."""
    bert = keras.saving.serialize_keras_object(self.bert)
    return {**super().get_config(), "config": bert, "num_labels": self.num_labels}

  @classmethod
  def from_config(cls, config, custom_objects=None):
    """Creates the model of a config."""
    layers = {
      name: keras.saving.deserialize_keras_object(config[name], custom_objects)
      for name in cls.layer_arguments
    }
    return cls(**{**config, **layers})


def _as_bert(config, add_pooler: bool) -> BERT:
  if isinstance(config, (str, os.PathLike)):
    raise ValueError(f"The config is {config!r}; models of names and folders: from_pretrained.")
  if isinstance(config, BERT):
    return config
  config = BertConfig.from_dict(config) if isinstance(config, dict) else config
  return BERT(**arguments_from_config(config), add_pooler=add_pooler)


def _mean_loss(logits, labels):
  """Computes the loss that transformers has for this kind of labels: float32 `[]`."""
  labels = ops.convert_to_tensor(labels)
  if logits.shape[-1] == 1 and len(labels.shape) == 1:  # regression
    return ops.mean(ops.square(logits[..., 0] - ops.cast(labels, "float32")))
  if keras.backend.is_float_dtype(labels.dtype):  # any number of classes
    targets = ops.maximum(labels, 0.0)
    return _labelled_mean(ops.binary_crossentropy(targets, logits, from_logits=True), labels)
  return SparseCrossentropy(from_logits=True)(labels, logits)


def _labelled_mean(losses, labels):
  """Averages the losses whose label is not negative; 0 without any."""
  weights = ops.cast(labels >= 0, "float32")
  return ops.divide_no_nan(ops.sum(weights * losses), ops.sum(weights))


def _bare(outputs):
  """Returns the outputs as losses read them: logits, or a dictionary of several outputs."""
  if hasattr(outputs, "logits"):
    return outputs.logits
  return outputs._asdict() if hasattr(outputs, "_asdict") else outputs


@register
class BertModel(PretrainedModel):
  """The encoder without a head; returns a `BertOutput`."""

  def _outputs(self, outputs):
    found = BertOutput(outputs["last_hidden_state"], outputs.get("pooler_output"))
    return with_extras(found, hidden_states=outputs.get("hidden_states"))


@register
class BertForMaskedLM(PretrainedModel):
  """Scores the vocabulary for each token: `logits` `[B, S, V]`. Of ELECTRA it is the generator.

  With `masked_lm_positions`, int `[B, P]`, in a dictionary of inputs, only for the tokens there:
  `[B, P, V]`.
  """

  heads: ClassVar = {"predictions": MaskedLMHead}
  is_generator = True

  def _encode(self, inputs, **arguments):
    positions = None
    if isinstance(inputs, Mapping):
      inputs = dict(inputs)
      positions = inputs.pop("masked_lm_positions", None)
    return {**super()._encode(inputs, **arguments), "masked_lm_positions": positions}


@register
class BertForNextSentencePrediction(PretrainedModel):
  """Predicts whether the second segment follows the first: `logits` `[B, 2]`, class 0 if so."""

  heads: ClassVar = {"seq_relationship": NextSentenceHead}


@register
class BertForPreTraining(PretrainedModel):
  """Has both heads of pre-training; returns a `PreTrainingOutput`."""

  heads: ClassVar = {"predictions": MaskedLMHead, "seq_relationship": NextSentenceHead}
  output_class = PreTrainingOutput

  def call(self, input_ids, *args, training=None, labels=None, next_sentence_label=None, **kwargs):
    """Computes as the base; the loss, of tokens and of sentences, needs both kinds of labels."""
    if (labels is None) != (next_sentence_label is None):
      raise ValueError("The loss of pre-training needs both labels and next_sentence_label.")
    labels = None if labels is None else (labels, next_sentence_label)
    return super().call(input_ids, *args, training=training, labels=labels, **kwargs)

  def _loss(self, outputs, labels):
    return sum(_mean_loss(x, y) for x, y in zip(outputs, labels, strict=True))


@register
class BertForReplacedTokens(PretrainedModel):
  """Predicts which tokens ELECTRA's generator replaced: `logits` `[B, S]`, above 0 where it did.

  Labels are int `[B, S]`: 1 for a replaced token, 0 for the original one, negative for none.
  """

  heads: ClassVar = {"discriminator": ReplacedTokensHead}

  def _loss(self, outputs, labels):
    labels = ops.convert_to_tensor(labels)
    replaced = ops.cast(labels > 0, "float32")
    # The cross-entropy of a sigmoid, for logits of any size.
    logits = outputs.logits
    return _labelled_mean(ops.softplus(logits) - replaced * logits, labels)


@register
class BertForSequenceClassification(PretrainedModel):
  """Predicts a class for each text: `logits` `[B, C]`."""

  heads: ClassVar = {"classifier": TextClassificationHead}


@register
class BertForTokenClassification(PretrainedModel):
  """Predicts a class for each token: `logits` `[B, S, C]`."""

  heads: ClassVar = {"classifier": TokenClassificationHead}


@register
class BertForMultipleChoice(PretrainedModel):
  """Chooses one of N texts: inputs `[B, N, S]`, `logits` `[B, N]`, labels int `[B]`."""

  heads: ClassVar = {"classifier": MultipleChoiceHead}
  # All choices share this bias, so it stays zero; transformers saves it, this project does not.
  optional_variables = ("output_bias",)
  export_rank = 3

  def _encode(
    self, inputs, attention_mask=None, token_type_ids=None, position_ids=None, **arguments
  ):
    inputs = gather_inputs(inputs, attention_mask, token_type_ids, position_ids)
    inputs = {name: x for name, x in inputs.items() if x is not None}
    vectors = inputs.get("inputs_embeds")
    shape = inputs["input_ids"].shape if vectors is None else vectors.shape[:-1]
    if len(shape) != 3:
      raise ValueError(f"Choices must be [B, N, S], N texts for each question, not {list(shape)}.")
    num_choices = ops.shape(inputs["input_ids"] if vectors is None else vectors)[1]
    flat = {
      name: x if name == "head_mask" else ops.reshape(x, (-1, *ops.shape(x)[2:]))  # [B * N, S]
      for name, x in inputs.items()
    }
    return {**super()._encode(flat, **arguments), "num_choices": num_choices}

  def _outputs(self, outputs):
    outputs = dict(outputs)
    num_choices = outputs.pop("num_choices")
    scores = super()._outputs(outputs).logits  # [B * N]
    return LogitsOutput(ops.reshape(scores, (-1, num_choices)))


@register
class BertForQuestionAnswering(PretrainedModel):
  """Scores each token as start and end position of an answer; returns a `SpanOutput`."""

  heads: ClassVar = {"squad": QuestionAnsweringHead}

  def _outputs(self, outputs):
    return SpanOutput(**self.squad(outputs))

  def call(
    self, input_ids, *args, training=None, start_positions=None, end_positions=None, **kwargs
  ):
    """Computes as the base; both positions, int `[B]`, give the loss, the mean of the two ends'."""
    if (start_positions is None) != (end_positions is None):
      raise ValueError("The loss of a span needs both start_positions and end_positions.")
    labels = None if start_positions is None else (start_positions, end_positions)
    return super().call(input_ids, *args, training=training, labels=labels, **kwargs)

  def _loss(self, outputs, labels):
    length = outputs.start_logits.shape[1]
    # A position behind the last token is no label, as in transformers.
    labels = (ops.where(ops.convert_to_tensor(x) < length, x, -1) for x in labels)
    return sum(_mean_loss(x, y) for x, y in zip(outputs, labels, strict=True)) / 2


class ReturnsTensor(PretrainedModel if TYPE_CHECKING else object):  # type: ignore[misc]
  """Base before that of a model: calls return its first output itself, not a named tuple."""

  def _outputs(self, outputs):
    return super()._outputs(outputs)[0]


@register
class MaskedLanguageModel(ReturnsTensor, BertForMaskedLM):
  """Scores the vocabulary for each token: float32 `[B, S, V]`; of `create_bert_with_head`.

  Attributes:
    mlm: its `MaskedLMHead`.
  """

  heads: ClassVar = {"mlm": MaskedLMHead}
  layer_arguments = ("bert", "mlm")

  def __init__(self, bert: BERT, mlm: MaskedLMHead | None = None, **kwargs):
    super().__init__(bert, head=mlm, **kwargs)

  def get_config(self):
    """Returns the constructor's arguments."""
    config = super().get_config()
    del config["num_labels"]
    config["bert"] = config.pop("config")
    return {**config, "mlm": keras.saving.serialize_keras_object(self.mlm)}


AutoModel = BertModel
TFBertModel = BertModel
TFBertForMaskedLM = BertForMaskedLM
TFBertForMultipleChoice = BertForMultipleChoice
TFBertForNextSentencePrediction = BertForNextSentencePrediction
TFBertForQuestionAnswering = BertForQuestionAnswering
TFBertForSequenceClassification = BertForSequenceClassification
TFBertForTokenClassification = BertForTokenClassification
