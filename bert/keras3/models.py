"""Keras 3 models that are loaded and called like those of the transformers library.

  model = BertForSequenceClassification.from_pretrained("bert-base-uncased", num_labels=2)
  logits = model(**tokenizer(texts, padding=True, return_tensors="np")).logits

They are Keras models: `compile`, `fit`, `predict` and `.keras` files work, and losses read the
logits. Weights, including those of the head if present, are loaded from original checkpoints or
from folders that transformers saved.

A model is an encoder, `bert`, and layers under the names that transformers 4's TensorFlow classes
give them: `dropout`, `classifier`, `qa_outputs`, `mlm` and so on; `PretrainedModel` does the rest.

Letters in shapes: B = batch size, S = sequence length, W = width, C = number of labels, N = number
of choices, P = positions to predict, V = vocabulary size.
"""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import keras
import numpy as np
from keras import ops

from bert import families
from bert.checkpoints import keras_model, loading, model_source
from bert.checkpoints.load_report import LoadReport
from bert.keras3 import arrangements, older_files, padding, parts
from bert.keras3.building_blocks import Dropout, Transposed, create_dense, register
from bert.keras3.encoder import BERT, gather_inputs, token_places
from bert.keras3.input_checks import CheckedInputs
from bert.keras3.outputs import (
  BertOutput,
  LogitsOutput,
  PreTrainingOutput,
  SpanOutput,
  with_extras,
)
from bert.keras3.pretraining_heads import (
  ClassificationHead,
  MaskedLMHead,
  NextSentenceHead,
  ReplacedTokensHead,
  SequenceSummary,
  masked_lm_arguments,
)
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
    older_name: of its layer of scores in files that were written before.
  """

  reads_pooler: ClassVar[bool] = True
  reads_padding: bool = True
  is_generator = False
  label_names: ClassVar[tuple[str, ...]] = ("labels",)
  optional_variables: tuple[str, ...] = ()
  original: ClassVar[str] = ""
  older_name: ClassVar[str] = "classifier"

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

  def head_variables(self) -> dict[str, Any]:
    """Returns the variables behind the encoder by their names in the original's checkpoints."""
    found: dict[str, Any] = {}
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

  def older_heads(self) -> list[tuple[keras.layers.Layer, bool, tuple[str, ...]]]:
    """Lists layers, whether their matrix was transposed in files, and their places there."""
    if not self.original:
      return []
    scores, hidden = self.dense_layers()
    transposed = not keras_model.is_dense(self.original, self.bert.family)
    layers = ((scores, transposed, self.older_name), (hidden, False, f"{self.older_name}/hidden"))
    return [(layer, turned, (name,)) for layer, turned, name in layers if layer is not None]

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

  def _loss_of_given(self, outputs, labels: dict[str, Any]):
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

  def checkpoint_variables(self) -> dict[str, Any]:
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
    return BertOutput(outputs["last_hidden_state"], outputs.get("pooler_output"))


class _ScoresWords(PretrainedModel):
  """Base of models that score the vocabulary; `words` is their head."""

  def create_words(self) -> None:
    """Creates the head under the family's name."""
    bert = self.bert
    name, _ = arrangements.MASKED_LM_HEADS[bert.model_type]
    arguments = {**masked_lm_arguments(bert.config), "input_embeddings": bert.embeddings}
    setattr(self, name, MaskedLMHead(**arguments, name="predictions", dtype=self.dtype_policy))

  @property
  def words(self) -> MaskedLMHead:
    """The head."""
    return getattr(self, arrangements.MASKED_LM_HEADS[self.bert.model_type][0])

  def older_heads(self):
    """Lists the head; see the base."""
    return [*super().older_heads(), (self.words, False, ("masked_lm_head",))]

  def score_words(self, outputs):
    """Scores the tokens at `masked_lm_positions` in the encoder's outputs, or all."""
    table = self.bert.embeddings.word_embeddings
    return self.words(outputs["last_hidden_state"], table, outputs.get("masked_lm_positions"))


class _ScoresSentences(PretrainedModel):
  """Base of models that score pairs of segments; `sentences` is their head."""

  def create_sentences(self, units: int = 2) -> None:
    """Creates the head under the family's name.

    Raises:
      ValueError: the family has none.
    """
    bert = self.bert
    if bert.model_type not in arrangements.SENTENCE_HEADS:
      raise ValueError(
        f"{bert.family.title} has no pairs of sentences in pre-training; its head for words is in "
        "BertForMaskedLM."
      )
    name, _ = arrangements.SENTENCE_HEADS[bert.model_type]
    head = NextSentenceHead(
      units,
      self.dropout_rate("sentences"),
      bert.initializer_range,
      bert.model_type,
      name="seq_relationship",
      dtype=self.dtype_policy,
    )
    setattr(self, name, head)

  def dropout_rate(self, kind: str = "") -> float:
    """Returns the rate of dropout before the scores; there is none before those of pairs."""
    return 0.0 if kind == "sentences" else super().dropout_rate(kind)

  @property
  def sentences(self) -> NextSentenceHead:
    """The head."""
    return getattr(self, arrangements.SENTENCE_HEADS[self.bert.model_type][0])

  def older_heads(self):
    """Lists the head; see the base."""
    names = ("next_sentence_head", "sentence_order_head")
    return [*super().older_heads(), (self.sentences.part("scores"), True, names)]


@register
class BertForMaskedLM(_ScoresWords):
  """Scores the vocabulary for each token: `logits` `[B, S, V]`. Of ELECTRA it is the generator.

  With `masked_lm_positions`, int `[B, P]`, in a dictionary of inputs, only for the tokens there:
  `[B, P, V]`.
  """

  reads_pooler = False
  is_generator = True

  def create_head(self) -> None:
    """Creates `mlm`, or the family's."""
    self.create_words()

  def _encode(self, inputs, **arguments):
    positions = None
    if isinstance(inputs, Mapping):
      inputs = dict(inputs)
      positions = inputs.pop("masked_lm_positions", None)
    return {**super()._encode(inputs, **arguments), "masked_lm_positions": positions}

  def _outputs(self, outputs):
    return LogitsOutput(self.score_words(outputs))


@register
class BertForNextSentencePrediction(_ScoresSentences):
  """Predicts whether the second segment follows the first: `logits` `[B, 2]`, class 0 if so."""

  reads_padding = False

  def create_head(self) -> None:
    """Creates `nsp`."""
    self.create_sentences()

  def _outputs(self, outputs):
    return LogitsOutput(self.sentences(outputs["pooler_output"]))


@register
class BertForPreTraining(_ScoresWords, _ScoresSentences):
  """Has both heads of pre-training; returns a `PreTrainingOutput`."""

  label_names = ("labels", "next_sentence_label")

  def create_head(self) -> None:
    """Creates `mlm` and `nsp`, or ALBERT's `predictions` and `sop_classifier`."""
    self.create_words()
    self.create_sentences()

  def _outputs(self, outputs):
    return PreTrainingOutput(self.score_words(outputs), self.sentences(outputs["pooler_output"]))

  def _loss(self, outputs, labels, next_sentence_label):
    words, sentences = outputs
    return _mean_loss(words, labels) + _mean_loss(sentences, next_sentence_label)


@register
class BertForReplacedTokens(PretrainedModel):
  """Predicts which tokens ELECTRA's generator replaced: `logits` `[B, S]`, above 0 where it did.

  Labels are int `[B, S]`: 1 for a replaced token, 0 for the original one, negative for none.
  """

  reads_pooler = False

  def create_head(self) -> None:
    """Creates `discriminator_predictions`."""
    bert = self.bert
    if not bert.family.has_generator:
      raise ValueError(f"{bert.family.title} has no head for replaced words; ELECTRA has.")
    self.discriminator_predictions = ReplacedTokensHead(
      bert.hidden_act, bert.initializer_range, name="discriminator", dtype=self.dtype_policy
    )

  def older_heads(self):
    """Lists the layers of the head; see the base."""
    head = self.discriminator_predictions
    dense = (head.dense, False, ("discriminator/dense",))
    return [dense, (head.dense_prediction, False, ("discriminator/output_dense",))]

  def _outputs(self, outputs):
    return LogitsOutput(self.discriminator_predictions(outputs["last_hidden_state"]))

  def _loss(self, outputs, labels):
    labels = ops.convert_to_tensor(labels)
    replaced = ops.cast(labels > 0, "float32")
    # The cross-entropy of a sigmoid, for logits of any size.
    logits = outputs.logits
    return _labelled_mean(ops.softplus(logits) - replaced * logits, labels)


class _ScoresTexts(PretrainedModel):
  """Base of models that score a text by one vector.

  Their layers are those of the family in transformers: `dropout` and `classifier`, a dense layer;
  with `pre_classifier` (DistilBERT), `sequence_summary` (ELECTRA) or the encoder's pooler (RoBERTa)
  before it; or all of them in `classifier` (texts of RoBERTa and ELECTRA).

  Attributes:
    kind: `texts` or `choices`.
  """

  kind: ClassVar[str] = "texts"
  original = "TextClassificationHead"
  reads_padding = False

  @property
  def hidden_scope(self) -> str | None:
    """The scope of the layer before the scores; empty for an activation alone, None without."""
    hidden = self.bert.family.hidden_layers.get(self.kind)
    return None if hidden is None else hidden.scope

  def create_classifier(self, units: int) -> None:
    """Creates the layers, for `units` scores."""
    bert, policy, scope = self.bert, self.dtype_policy, self.hidden_scope
    rate, width = self.dropout_rate(self.kind), bert.hidden_size
    activation = None if scope is None else bert.family.hidden_layers[self.kind].activation
    arguments = {"initializer_range": bert.initializer_range, "dtype": policy}
    if scope == "classifier/dense":
      self.classifier = ClassificationHead(
        width, units, activation, rate, name="classifier", **arguments
      )
      return
    if scope == "roberta/pooler/dense":
      bert.require_pooler()
    self.dropout = Dropout(0.0 if scope == "" else rate, dtype=policy)
    if scope == "pre_classifier":
      pre_classifier = create_dense(width, scope, activation=activation, **arguments)
    if scope == "sequence_summary":
      self.dropout.rate = 0.0  # the summary has its own
      self.sequence_summary = SequenceSummary(width, activation, rate, name=scope, **arguments)
    # Before the layer that precedes it, as in the state of optimizers in files.
    self.classifier = self.create_scores(units, "classifier")
    if scope == "pre_classifier":
      self.pre_classifier = pre_classifier
    self.activation = keras.layers.Activation(activation, dtype=policy) if scope == "" else None

  def score_texts(self, outputs, training=None):
    """Computes `[B, units]` of the encoder's outputs."""
    if self.hidden_scope == "classifier/dense":  # perhaps replaced by the user
      return ops.cast(self.classifier(outputs["last_hidden_state"]), "float32")
    if hasattr(self, "sequence_summary"):
      vector = self.sequence_summary(outputs["last_hidden_state"])
    else:
      vector = outputs["pooler_output"]
    for layer in (getattr(self, "pre_classifier", None), self.activation):
      vector = vector if layer is None else layer(vector)
    return ops.cast(self.classifier(self.dropout(vector)), "float32")

  def dense_layers(self):
    """Returns the layers; see the base."""
    if isinstance(self.classifier, ClassificationHead):
      return self.classifier.out_proj, self.classifier.dense
    if hasattr(self, "sequence_summary"):
      return self.classifier, self.sequence_summary.summary
    if self.hidden_scope == "roberta/pooler/dense":
      return self.classifier, self.bert.pooler.dense
    return self.classifier, getattr(self, "pre_classifier", None)


@register
class BertForSequenceClassification(_ScoresTexts):
  """Predicts a class for each text: `logits` `[B, C]`."""

  def create_head(self) -> None:
    """Creates `dropout`, `classifier` and what the family has beside them."""
    self.create_classifier(self.num_labels)

  def _outputs(self, outputs):
    return LogitsOutput(self.score_texts(outputs))


@register
class BertForTokenClassification(PretrainedModel):
  """Predicts a class for each token: `logits` `[B, S, C]`."""

  reads_pooler = False
  original = "TokenClassificationHead"

  def create_head(self) -> None:
    """Creates `dropout` and `classifier`."""
    self.dropout = Dropout(self.dropout_rate(), dtype=self.dtype_policy)
    self.classifier = self.create_scores(self.num_labels, "classifier")

  def _outputs(self, outputs):
    logits = self.classifier(self.dropout(outputs["last_hidden_state"]))
    return LogitsOutput(ops.cast(logits, "float32"))


@register
class BertForMultipleChoice(_ScoresTexts):
  """Chooses one of N texts: inputs `[B, N, S]`, `logits` `[B, N]`, labels int `[B]`."""

  kind = "choices"
  original = "MultipleChoiceHead"
  # All choices share this bias, so it stays zero; transformers saves it, this project does not.
  optional_variables = ("output_bias",)
  export_rank = 3

  def create_head(self) -> None:
    """Creates `dropout`, `classifier` and what the family has beside them."""
    self.create_classifier(1)

  def _encode(
    self, inputs, attention_mask=None, token_type_ids=None, position_ids=None, **arguments
  ):
    inputs = gather_inputs(inputs, attention_mask, token_type_ids, position_ids)
    ids = token_places(inputs)
    if len(ids.shape) != 3:
      raise ValueError(
        f"Choices must be [B, N, S], N texts for each question, not {list(ids.shape)}."
      )
    flat = {
      name: x if name == "head_mask" else ops.reshape(x, (-1, *ops.shape(x)[2:]))  # [B * N, S]
      for name, x in inputs.items()
      if x is not None
    }
    return {**super()._encode(flat, **arguments), "num_choices": ops.shape(ids)[1]}

  def _outputs(self, outputs):
    scores = self.score_texts(outputs)  # [B * N, 1]
    return LogitsOutput(ops.reshape(scores, (-1, outputs["num_choices"])))


@register
class BertForQuestionAnswering(PretrainedModel):
  """Scores each token as start and end position of an answer; returns a `SpanOutput`."""

  reads_pooler = False
  label_names = ("start_positions", "end_positions")
  original = "QuestionAnsweringHead"
  older_name = "question_answering_head"

  def create_head(self) -> None:
    """Creates `qa_outputs`, and `dropout` before it."""
    self.dropout = Dropout(self.bert.qa_dropout or 0.0, dtype=self.dtype_policy)
    self.qa_outputs = self.create_scores(2, "qa_outputs")

  def dense_layers(self):
    """Returns `qa_outputs`; see the base."""
    return self.qa_outputs, None

  def _outputs(self, outputs):
    scores = self.qa_outputs(self.dropout(outputs["last_hidden_state"]))
    scores = ops.cast(scores, "float32")
    return SpanOutput(scores[..., 0], scores[..., 1])

  def _loss(self, outputs, start_positions, end_positions):
    length = outputs.start_logits.shape[1]
    # A position behind the last token is no label, as in transformers.
    labels = (
      ops.where(ops.convert_to_tensor(x) < length, x, -1) for x in (start_positions, end_positions)
    )
    return sum(_mean_loss(x, y) for x, y in zip(outputs, labels, strict=True)) / 2


class ReturnsTensor(PretrainedModel if TYPE_CHECKING else object):  # type: ignore[misc]
  """Base before that of a model: calls return its first output itself, not a named tuple."""

  def _outputs(self, outputs):
    return super()._outputs(outputs)[0]


@register
class MaskedLanguageModel(ReturnsTensor, BertForMaskedLM):
  """Scores the vocabulary for each token: float32 `[B, S, V]`; of `create_bert_with_head`."""

  @classmethod
  def from_config(cls, config, custom_objects=None):
    """Creates the model of a config, perhaps one with other names for its layers."""
    config = {name: value for name, value in config.items() if name != "mlm"}
    config["config"] = config.pop("bert", None) or config["config"]
    return super().from_config(config, custom_objects)


AutoModel = BertModel
