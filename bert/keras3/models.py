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

from collections.abc import Mapping

import keras
from keras import ops

from bert.keras3 import arrangements
from bert.keras3.building_blocks import Dropout, create_dense, register
from bert.keras3.encoder import gather_inputs, token_places
from bert.keras3.outputs import (
  BertOutput,
  LogitsOutput,
  PreTrainingOutput,
  SpanOutput,
)
from bert.keras3.pretrained_model import PretrainedModel, labelled_mean, mean_loss
from bert.keras3.pretraining_heads import (
  ClassificationHead,
  MaskedLMHead,
  NextSentenceHead,
  ReplacedTokensHead,
  SequenceSummary,
  masked_lm_arguments,
)


@register
class BertModel(PretrainedModel):
  """The encoder without a head; returns a `BertOutput`."""

  def _outputs(self, outputs):
    return BertOutput(outputs["last_hidden_state"], outputs.get("pooler_output"))


class _ScoresWords(PretrainedModel):
  """Base of models that score the vocabulary; `words` is their head."""

  def create_head(self) -> None:
    """Creates `mlm`, or the family's."""
    bert = self.bert
    name, _ = arrangements.MASKED_LM_HEADS[bert.model_type]
    arguments = {**masked_lm_arguments(bert.config), "input_embeddings": bert.embeddings}
    setattr(self, name, MaskedLMHead(**arguments, name="predictions", dtype=self.dtype_policy))
    super().create_head()

  @property
  def words(self) -> MaskedLMHead:
    """The head."""
    return getattr(self, arrangements.MASKED_LM_HEADS[self.bert.model_type][0])

  def score_words(self, outputs):
    """Scores the tokens at `masked_lm_positions` in the encoder's outputs, or all."""
    table = self.bert.embeddings.word_embeddings
    return self.words(outputs["last_hidden_state"], table, outputs.get("masked_lm_positions"))


class _ScoresSentences(PretrainedModel):
  """Base of models that score pairs of segments; `sentences` is their head.

  Attributes:
    sentence_classes: C of it.
  """

  sentence_classes = 2

  def create_head(self) -> None:
    """Creates `nsp`, or the family's.

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
      self.sentence_classes,
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


@register
class BertForMaskedLM(_ScoresWords):
  """Scores the vocabulary for each token: `logits` `[B, S, V]`. Of ELECTRA it is the generator.

  With `masked_lm_positions`, int `[B, P]`, in a dictionary of inputs, only for the tokens there:
  `[B, P, V]`.
  """

  reads_pooler = False
  is_generator = True

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

  def _outputs(self, outputs):
    return LogitsOutput(self.sentences(outputs["pooler_output"]))


@register
class BertForPreTraining(_ScoresWords, _ScoresSentences):
  """Has both heads of pre-training; returns a `PreTrainingOutput`."""

  label_names = ("labels", "next_sentence_label")

  def _outputs(self, outputs):
    return PreTrainingOutput(self.score_words(outputs), self.sentences(outputs["pooler_output"]))

  def _loss(self, outputs, labels, next_sentence_label):
    words, sentences = outputs
    return mean_loss(words, labels) + mean_loss(sentences, next_sentence_label)


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

  def _outputs(self, outputs):
    return LogitsOutput(self.discriminator_predictions(outputs["last_hidden_state"]))

  def _loss(self, outputs, labels):
    labels = ops.convert_to_tensor(labels)
    replaced = ops.cast(labels > 0, "float32")
    # The cross-entropy of a sigmoid, for logits of any size.
    logits = outputs.logits
    return labelled_mean(ops.softplus(logits) - replaced * logits, labels)


class _ScoresTexts(PretrainedModel):
  """Base of models that score a text by one vector.

  Their layers are those of the family in transformers: `dropout` and `classifier`, a dense layer;
  with `pre_classifier` (DistilBERT), `sequence_summary` (ELECTRA) or the encoder's pooler (RoBERTa)
  before it; or all of them in `classifier` (texts of RoBERTa and ELECTRA).

  Attributes:
    kind: `texts` or `choices`.
  """

  kind = "texts"
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
    return sum(mean_loss(x, y) for x, y in zip(outputs, labels, strict=True)) / 2


class ReturnsTensor:
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
