"""Keras 3 models that are loaded and called like those of the transformers library.

  model = BertForSequenceClassification.from_pretrained("bert-base-uncased", num_labels=2)
  logits = model(**tokenizer(texts, padding=True, return_tensors="np")).logits

They are Keras models: `compile`, `fit`, `predict` and `.keras` files work, and losses read the
logits. Weights, including those of the head if present, are loaded from original checkpoints or
from folders that transformers saved.

Letters in shapes: B = batch size, S = sequence length, W = width, C = number of labels, N = number
of choices, V = vocabulary size.
"""

import os
from collections.abc import Mapping

import keras
from keras import ops

from bert.checkpoints import keras_model, model_source
from bert.checkpoints.load_report import LoadReport
from bert.keras3 import weights
from bert.keras3.encoder import BERT, gather_inputs
from bert.keras3.heads import (
  NextSentenceHead,
  QuestionAnsweringHead,
  TaskHead,
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
from bert.keras3.parts import register
from bert.keras3.saving import Savable
from bert.keras3.sizes import arguments_from_config, family_arguments
from bert.keras3.tasks import SparseCrossentropy
from bert.keras3.torch_modules import TorchModule
from bert.keras3.word_head import (
  MaskedLMHead,
  ReplacedTokensHead,
  create_masked_lm_head,
)
from bert.model.configuration import BertConfig


class PretrainedModel(TorchModule, CheckedInputs, Savable, keras.Model):
  """Base of the models below: an encoder and heads.

  Attributes:
    bert: the encoder.
  """

  head_names: tuple[str, ...] = ()
  reads_pooler = True  # otherwise the encoder has none, unless it is given with one
  is_generator = False  # whether it is the generator of the two models in ELECTRA's checkpoints
  optional_variables: tuple[str, ...] = ()  # not reported if missing in a checkpoint

  def __init__(self, config: BERT | BertConfig | dict, num_labels: int | None = None, **kwargs):
    """Creates the model, with random weights.

    Args:
      config: the encoder, its `BertConfig`, or a dictionary with the keys of one.
      num_labels: C, for classification models; by default that of the config, or 2.
      **kwargs: arguments of `keras.Model`.
    """
    super().__init__(**kwargs)
    self.bert = _as_bert(config, self.reads_pooler)
    self.num_labels = num_labels or getattr(config, "num_labels", None) or 2
    if self.num_labels < 1:
      raise ValueError(f"num_labels is {num_labels}; it must be at least 1.")
    self._create_heads()
    self.build()

  def _create_heads(self):
    """Sets the attributes in `head_names`."""

  def build(self, input_shape=None):
    """Creates the heads' variables; those of the encoder already exist."""
    del input_shape
    vectors, width = (None, None, self.bert.hidden_size), self.bert.hidden_size
    shapes = {"last_hidden_state": vectors, "pooler_output": (None, width)}
    for head in self._heads():
      of_words = isinstance(head, (MaskedLMHead, ReplacedTokensHead))
      head.build(vectors if of_words else shapes)
    self.built = True

  def _heads(self) -> list[keras.layers.Layer]:
    return [getattr(self, name) for name in self.head_names]

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
    outputs = self.bert(
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

  def _loss(self, outputs, labels):
    if not hasattr(outputs, "logits"):
      raise ValueError(f"{type(self).__name__} has no loss for `labels`.")
    return _mean_loss(outputs.logits, labels)

  def _outputs(self, outputs):
    raise NotImplementedError

  def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
    """The compiled loss of the logits."""
    return super().compute_loss(x, y, _bare(y_pred), sample_weight, training)

  def compute_metrics(self, x, y, y_pred, sample_weight=None):
    """The compiled metrics of the logits."""
    return super().compute_metrics(x, y, _bare(y_pred), sample_weight)

  @classmethod
  def from_pretrained(
    cls,
    name_or_path: str | os.PathLike,
    cache_dir: str | os.PathLike | None = None,
    num_labels: int | None = None,
    **overrides,
  ):
    """A model with the weights of a checkpoint.

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
    arguments = {**arguments_from_config(config), "add_pooler": cls.reads_pooler, **overrides}
    model = cls(BERT(**arguments), num_labels)
    model.load_pretrained_weights(path)
    return model

  def load_pretrained_weights(
    self, path: str | os.PathLike, skip_mismatch: bool = True
  ) -> LoadReport:
    """Loads encoder and heads from a file; see `BERT.load_pretrained_weights`."""
    variables = self.checkpoint_variables()
    return weights.load(variables, path, skip_mismatch, self.optional_variables)

  def checkpoint_variables(self) -> dict[str, keras.Variable]:
    """The variables by their names in the original's checkpoints."""
    variables = dict(self.bert.checkpoint_variables())
    for head in self._heads():
      variables.update(head.checkpoint_variables())
    return variables

  @property
  def config(self) -> BertConfig:
    """The encoder's sizes, with `num_labels`; a copy."""
    config = self.bert.config
    vars(config).update(num_labels=self.num_labels)
    return config

  def num_parameters(self) -> int:
    """Number of parameters."""
    return self.count_params()

  def get_config(self):
    """The constructor's arguments."""
    bert = keras.saving.serialize_keras_object(self.bert)
    return {**super().get_config(), "config": bert, "num_labels": self.num_labels}

  @classmethod
  def from_config(cls, config, custom_objects=None):
    """Creates the model of a config."""
    bert = keras.saving.deserialize_keras_object(config["config"], custom_objects)
    return cls(**{**config, "config": bert})


def _as_bert(config, add_pooler: bool) -> BERT:
  if isinstance(config, (str, os.PathLike)):
    raise ValueError(f"The config is {config!r}; models of names and folders: from_pretrained.")
  if isinstance(config, BERT):
    return config
  config = BertConfig.from_dict(config) if isinstance(config, dict) else config
  return BERT(**arguments_from_config(config), add_pooler=add_pooler)


def _mean_loss(logits, labels):
  """The loss that transformers computes for this kind of labels: float32 `[]`."""
  labels = ops.convert_to_tensor(labels)
  if logits.shape[-1] == 1 and len(labels.shape) == 1:  # regression
    return ops.mean(ops.square(logits[..., 0] - ops.cast(labels, "float32")))
  if keras.backend.is_float_dtype(labels.dtype):  # any number of classes
    return ops.mean(ops.binary_crossentropy(labels, logits, from_logits=True))
  return SparseCrossentropy(from_logits=True)(labels, logits)


def _bare(outputs):
  """The outputs as losses read them: logits, or a dictionary of several outputs."""
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
  """Scores every word for each token: `logits` `[B, S, V]`. Of ELECTRA it is the generator."""

  head_names = ("predictions",)
  reads_pooler = False
  is_generator = True

  def _create_heads(self):
    self.predictions = create_masked_lm_head(self.bert)

  def _outputs(self, outputs):
    table = self.bert.embeddings.word_embeddings
    return LogitsOutput(self.predictions(outputs["last_hidden_state"], table))


@register
class BertForNextSentencePrediction(PretrainedModel):
  """Whether the second segment follows the first: `logits` `[B, 2]`, class 0 if it does."""

  head_names = ("seq_relationship",)

  def _create_heads(self):
    self.seq_relationship = _next_sentence_head(self.bert)

  def _outputs(self, outputs):
    return LogitsOutput(self.seq_relationship(outputs))


@register
class BertForReplacedTokens(PretrainedModel):
  """Which words are a generator's, for ELECTRA: `logits` `[B, S]`, above 0 where replaced.

  Labels are int `[B, S]`: 1 for a replaced word, 0 for the original one, negative for none.
  """

  head_names = ("discriminator",)
  reads_pooler = False

  def _create_heads(self):
    if not self.bert.family.has_generator:
      raise ValueError(f"{self.bert.family.title} has no head for replaced words; ELECTRA has.")
    arguments = self.bert.hidden_act, self.bert.initializer_range
    self.discriminator = ReplacedTokensHead(*arguments, name="discriminator")

  def _outputs(self, outputs):
    return LogitsOutput(self.discriminator(outputs["last_hidden_state"]))

  def _loss(self, outputs, labels):
    labels = ops.convert_to_tensor(labels)
    weights = ops.cast(labels >= 0, "float32")
    replaced = ops.cast(labels > 0, "float32")
    # The cross-entropy of a sigmoid, for logits of any size.
    logits = outputs.logits
    losses = ops.softplus(logits) - replaced * logits
    return ops.sum(weights * losses) / ops.maximum(ops.sum(weights), 1.0)


def _next_sentence_head(bert: BERT) -> NextSentenceHead:
  if bert.family.objective not in ("mlm_nsp", "mlm_sop"):
    raise ValueError(
      f"{bert.family.title} has no pairs of sentences in pre-training; its head for words is in "
      "BertForMaskedLM."
    )
  return NextSentenceHead(output="logits", name="seq_relationship", model_type=bert.model_type)


@register
class BertForPreTraining(PretrainedModel):
  """Both heads of pre-training; returns a `PreTrainingOutput`."""

  head_names = ("predictions", "seq_relationship")

  def _create_heads(self):
    self.predictions = create_masked_lm_head(self.bert)
    self.seq_relationship = _next_sentence_head(self.bert)

  def _outputs(self, outputs):
    table = self.bert.embeddings.word_embeddings
    return PreTrainingOutput(
      self.predictions(outputs["last_hidden_state"], table), self.seq_relationship(outputs)
    )

  def call(self, input_ids, *args, training=None, labels=None, next_sentence_label=None, **kwargs):
    """As in the base; the loss is the sum of those of words and sentences, and needs both."""
    if (labels is None) != (next_sentence_label is None):
      raise ValueError("The loss of pre-training needs both labels and next_sentence_label.")
    labels = None if labels is None else (labels, next_sentence_label)
    return super().call(input_ids, *args, training=training, labels=labels, **kwargs)

  def _loss(self, outputs, labels):
    return sum(_mean_loss(x, y) for x, y in zip(outputs, labels, strict=True))


class _Classifier(PretrainedModel):
  """Base of the models whose head is called `classifier`; returns a `LogitsOutput`."""

  head_names = ("classifier",)
  head_class: type[TaskHead] = TextClassificationHead
  num_outputs: int | None = None  # by default `num_labels`

  def _create_heads(self):
    self.classifier = self.head_class(
      self.num_outputs or self.num_labels,
      output="logits",
      dropout_rate=self._dropout_rate(),
      name="classifier",
      **family_arguments(vars(self.bert)),
    )

  def _dropout_rate(self) -> float:
    hidden = keras_model.hidden_layer(self.head_class.task, self.bert.family)
    key = hidden.dropout_key if hidden else None
    return getattr(self.bert, key or "hidden_dropout_prob")

  def _outputs(self, outputs):
    return LogitsOutput(self.classifier(outputs))


@register
class BertForSequenceClassification(_Classifier):
  """A class for each text: `logits` `[B, C]`."""


@register
class BertForTokenClassification(_Classifier):
  """A class for each token: `logits` `[B, S, C]`."""

  head_class = TokenClassificationHead
  reads_pooler = False


class _ChoiceScore(TextClassificationHead):
  """A score for each choice."""

  task = "swag"


@register
class BertForMultipleChoice(_Classifier):
  """Chooses one of N texts: inputs `[B, N, S]`, `logits` `[B, N]`."""

  # All choices share this bias, so it stays zero; transformers saves it, this project does not.
  optional_variables = ("output_bias",)
  head_class = _ChoiceScore
  num_outputs = 1
  export_rank = 3

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
    """Arguments as in the base, with an additional axis; the labels are int `[B]`."""
    if isinstance(input_ids, Mapping) and "labels" in input_ids:
      input_ids = dict(input_ids)
      labels = input_ids.pop("labels")
    inputs = gather_inputs(input_ids, attention_mask, token_type_ids, position_ids)
    shape = inputs["input_ids"].shape
    if len(shape) != 3:
      raise ValueError(f"Choices must be [B, N, S], N texts for each question, not {list(shape)}.")
    _, num_choices, length = ops.shape(inputs["input_ids"])
    flat = {
      name: ops.reshape(x, (-1, length)) for name, x in inputs.items() if x is not None
    }  # [B * N, S]
    scores = super().call(
      flat,
      output_hidden_states=output_hidden_states,
      output_attentions=output_attentions,
      training=training,
    )
    outputs = LogitsOutput(ops.reshape(scores.logits, (-1, num_choices)))
    return with_extras(
      outputs,
      loss=None if labels is None else self._loss(outputs, labels),
      hidden_states=scores.hidden_states,
      attentions=scores.attentions,
    )


@register
class BertForQuestionAnswering(PretrainedModel):
  """Start and end of an answer; returns a `SpanOutput`."""

  head_names = ("squad",)
  reads_pooler = False

  def _create_heads(self):
    self.squad = QuestionAnsweringHead(
      mask_padding=False,
      name="squad",
      model_type=self.bert.model_type,
      dropout_rate=self.bert.qa_dropout or 0.0,
    )

  def _outputs(self, outputs):
    return SpanOutput(**self.squad(outputs))

  def call(
    self, input_ids, *args, training=None, start_positions=None, end_positions=None, **kwargs
  ):
    """As in the base; both positions, int `[B]`, give the loss, the mean of the two ends'."""
    if (start_positions is None) != (end_positions is None):
      raise ValueError("The loss of a span needs both start_positions and end_positions.")
    labels = None if start_positions is None else (start_positions, end_positions)
    return super().call(input_ids, *args, training=training, labels=labels, **kwargs)

  def _loss(self, outputs, labels):
    length = outputs.start_logits.shape[1]
    # A position behind the last token is no label, as in transformers.
    labels = (ops.where(ops.convert_to_tensor(x) < length, x, -1) for x in labels)
    return sum(_mean_loss(x, y) for x, y in zip(outputs, labels, strict=True)) / 2


AutoModel = BertModel
TFBertModel = BertModel
TFBertForMaskedLM = BertForMaskedLM
TFBertForMultipleChoice = BertForMultipleChoice
TFBertForNextSentencePrediction = BertForNextSentencePrediction
TFBertForQuestionAnswering = BertForQuestionAnswering
TFBertForSequenceClassification = BertForSequenceClassification
TFBertForTokenClassification = BertForTokenClassification
