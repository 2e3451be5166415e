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
from typing import Any, NamedTuple

import keras
from keras import ops

from bert.checkpoints import model_source
from bert.checkpoints.load_report import LoadReport
from bert.keras3 import weights
from bert.keras3.encoder import BERT, gather_inputs
from bert.keras3.heads import (
  MaskedLMHead,
  NextSentenceHead,
  QuestionAnsweringHead,
  TextClassificationHead,
  TokenClassificationHead,
)
from bert.keras3.parts import register
from bert.keras3.sizes import arguments_from_config
from bert.keras3.torch_modules import TorchModule
from bert.model.configuration import BertConfig


class BertOutput(NamedTuple):
  """The output of `BertModel`.

  Attributes:
    last_hidden_state: `[B, S, W]`.
    pooler_output: `[B, W]`.
    hidden_states: the embeddings and each layer's output, or None.
  """

  last_hidden_state: Any
  pooler_output: Any
  hidden_states: Any = None


class LogitsOutput(NamedTuple):
  """The output of models with one head.

  Attributes:
    logits: float32, scores before the softmax.
  """

  logits: Any


class SpanOutput(NamedTuple):
  """The output of `BertForQuestionAnswering`.

  Attributes:
    start_logits: float32 `[B, S]`, scores as the first token of the answer.
    end_logits: float32 `[B, S]`, scores as the last token.
  """

  start_logits: Any
  end_logits: Any


class PreTrainingOutput(NamedTuple):
  """The output of `BertForPreTraining`.

  Attributes:
    prediction_logits: float32 `[B, S, V]`.
    seq_relationship_logits: float32 `[B, 2]`; class 0: the second segment follows the first.
  """

  prediction_logits: Any
  seq_relationship_logits: Any


class PretrainedModel(TorchModule, keras.Model):
  """Base of the models below: an encoder and heads.

  Attributes:
    bert: the encoder.
  """

  head_names: tuple[str, ...] = ()
  optional_variables: tuple[str, ...] = ()  # not reported if missing in a checkpoint

  def __init__(self, config: BERT | BertConfig | dict, num_labels: int = 2, **kwargs):
    """Creates the model, with random weights.

    Args:
      config: the encoder, its `BertConfig`, or a dictionary with the keys of one.
      num_labels: C, for classification models.
      **kwargs: arguments of `keras.Model`.
    """
    super().__init__(**kwargs)
    self.bert = _as_bert(config)
    self.num_labels = num_labels
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
      head.build(vectors if isinstance(head, MaskedLMHead) else shapes)
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
  ):
    """Arguments as in `BERT.call`; the first may be a dictionary of them."""
    outputs = self.bert(
      input_ids,
      attention_mask=attention_mask,
      token_type_ids=token_type_ids,
      position_ids=position_ids,
      output_hidden_states=output_hidden_states,
      training=training,
    )
    return self._outputs(outputs)

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
    num_labels: int = 2,
    **overrides,
  ):
    """A model with the weights of a checkpoint.

    Args:
      name_or_path: a checkpoint of the original or its folder, with `bert_config.json`; a folder
        that transformers saved; or the name of a released model here or in transformers.
      cache_dir: folder of downloads.
      num_labels: C, for classification models.
      **overrides: arguments of `BERT` that replace the configuration's.

    Raises:
      ValueError: the model does not exist, or its files cannot be read.
    """
    path = model_source.local_path(name_or_path, cache_dir)
    config = weights.read_config(path)
    model = cls(BERT(**{**arguments_from_config(config), **overrides}), num_labels)
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


def _as_bert(config) -> BERT:
  if isinstance(config, BERT):
    return config
  config = BertConfig.from_dict(config) if isinstance(config, dict) else config
  return BERT(**arguments_from_config(config))


def _bare(outputs):
  """The outputs as losses read them: logits, or a dictionary of several outputs."""
  if isinstance(outputs, LogitsOutput):
    return outputs.logits
  return outputs._asdict() if hasattr(outputs, "_asdict") else outputs


@register
class BertModel(PretrainedModel):
  """The encoder without a head; returns a `BertOutput`."""

  def _outputs(self, outputs):
    return BertOutput(
      outputs["last_hidden_state"], outputs.get("pooler_output"), outputs.get("hidden_states")
    )


@register
class BertForMaskedLM(PretrainedModel):
  """Scores every word for each token: `logits` `[B, S, V]`."""

  head_names = ("predictions",)

  def _create_heads(self):
    self.predictions = _masked_lm_head(self.bert)

  def _outputs(self, outputs):
    table = self.bert.embeddings.word_embeddings
    return LogitsOutput(self.predictions(outputs["last_hidden_state"], table))


def _masked_lm_head(bert: BERT) -> MaskedLMHead:
  return MaskedLMHead(bert.vocab_size, bert.hidden_act, bert.initializer_range, name="predictions")


@register
class BertForNextSentencePrediction(PretrainedModel):
  """Whether the second segment follows the first: `logits` `[B, 2]`, class 0 if it does."""

  head_names = ("seq_relationship",)

  def _create_heads(self):
    self.seq_relationship = NextSentenceHead(output="logits", name="seq_relationship")

  def _outputs(self, outputs):
    return LogitsOutput(self.seq_relationship(outputs))


@register
class BertForPreTraining(PretrainedModel):
  """Both heads of pre-training; returns a `PreTrainingOutput`."""

  head_names = ("predictions", "seq_relationship")

  def _create_heads(self):
    self.predictions = _masked_lm_head(self.bert)
    self.seq_relationship = NextSentenceHead(output="logits", name="seq_relationship")

  def _outputs(self, outputs):
    table = self.bert.embeddings.word_embeddings
    return PreTrainingOutput(
      self.predictions(outputs["last_hidden_state"], table), self.seq_relationship(outputs)
    )


class _Classifier(PretrainedModel):
  """Base of the models whose head is called `classifier`; returns a `LogitsOutput`."""

  head_names = ("classifier",)
  head_class: type = TextClassificationHead
  num_outputs: int | None = None  # by default `num_labels`

  def _create_heads(self):
    self.classifier = self.head_class(
      self.num_outputs or self.num_labels,
      output="logits",
      dropout_rate=self.bert.hidden_dropout_prob,
      name="classifier",
    )

  def _outputs(self, outputs):
    return LogitsOutput(self.classifier(outputs))


@register
class BertForSequenceClassification(_Classifier):
  """A class for each text: `logits` `[B, C]`."""


@register
class BertForTokenClassification(_Classifier):
  """A class for each token: `logits` `[B, S, C]`."""

  head_class = TokenClassificationHead


@register
class BertForMultipleChoice(_Classifier):
  """Chooses one of N texts: inputs `[B, N, S]`, `logits` `[B, N]`."""

  # All choices share this bias, so it stays zero; transformers saves it, this project does not.
  optional_variables = ("output_bias",)
  num_outputs = 1

  def call(
    self,
    input_ids,
    attention_mask=None,
    token_type_ids=None,
    position_ids=None,
    output_hidden_states=None,
    training=None,
  ):
    """Arguments as in `BERT.call` with an additional axis; the first may be a dictionary."""
    inputs = gather_inputs(input_ids, attention_mask, token_type_ids, position_ids)
    shape = inputs["input_ids"].shape
    if len(shape) != 3:
      raise ValueError(f"Choices must be [B, N, S], N texts for each question, not {list(shape)}.")
    _, num_choices, length = ops.shape(inputs["input_ids"])
    flat = {
      name: ops.reshape(x, (-1, length)) for name, x in inputs.items() if x is not None
    }  # [B * N, S]
    scores = super().call(flat, output_hidden_states=output_hidden_states, training=training)
    return LogitsOutput(ops.reshape(scores.logits, (-1, num_choices)))


@register
class BertForQuestionAnswering(PretrainedModel):
  """Start and end of an answer; returns a `SpanOutput`."""

  head_names = ("squad",)

  def _create_heads(self):
    self.squad = QuestionAnsweringHead(mask_padding=False, name="squad")

  def _outputs(self, outputs):
    return SpanOutput(**self.squad(outputs))


AutoModel = BertModel
TFBertModel = BertModel
TFBertForMaskedLM = BertForMaskedLM
TFBertForMultipleChoice = BertForMultipleChoice
TFBertForNextSentencePrediction = BertForNextSentencePrediction
TFBertForQuestionAnswering = BertForQuestionAnswering
TFBertForSequenceClassification = BertForSequenceClassification
TFBertForTokenClassification = BertForTokenClassification
