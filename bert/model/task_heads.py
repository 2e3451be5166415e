"""The heads of this project's tasks; `task_head.py` says what a head is.

Their functions lie in `heads.py`, `span_heads.py` and `similarity.py`. Importing this module
imports no TensorFlow.

Letters in shapes: B = batch size, S = sequence length, N = texts of an example, C = classes,
W = hidden size.
"""

import dataclasses

from bert.model.answer_heads import AnswerHead
from bert.model.task_head import SEQUENCES, Head, packing_of


@dataclasses.dataclass(frozen=True)
class SequenceHead(Head):
  """Classes of a sequence, or a number.

  Attributes:
    num_labels: C.
    problem_type: see `heads.PROBLEM_TYPES`.
    label_scale: of a regression that learns labels divided by this.
    task_name: part of the names of an ELECTRA head's variables.
    window_pooling: how the logits of windows become one, see `long_documents.pool_logits`.
  """

  num_labels: int
  problem_type: str = "classification"
  label_scale: float = 1.0
  task_name: str | None = None
  window_pooling: str = "mean"

  def logits_of(self, batch, vectors):
    """float32 `[B, W]`, the pooled output, to `[B, C]`."""
    from bert.model import heads

    return heads.get_classifier_logits(
      vectors,
      self.num_labels,
      batch.is_training,
      scope=heads.task_scope(batch.config, self.task_name),
      hidden=heads.hidden_of(batch.config, "sentences"),
    )

  def outputs(self, batch):
    """Computes `logits`, float32 `[B, C]`, over the windows of each document.

    B counts sequences where several are packed into a row.
    """
    import tensorflow as tf

    from bert.model import long_documents

    features = batch.features
    num_windows = features.get("num_windows")  # int `[B]`; sequences are then `[B, S, windows]`
    packing = packing_of(features)
    inputs = tuple(features[name] for name in SEQUENCES)
    if num_windows is not None:
      is_tpu = batch.options.get("use_one_hot_embeddings", False)
      inputs, documents = long_documents.split_batch(*inputs, num_windows, keep_all=is_tpu)
    # The head reads one vector for each sequence: nothing else needs to be computed.
    model = batch.bert(*inputs, only_pooled_output=not packing, **packing)
    logits = self.logits_of(batch, model.get_pooled_output())
    if num_windows is not None:
      count = tf.shape(num_windows)[0]
      logits = long_documents.pool_logits(logits, documents, count, self.window_pooling)
    return {"logits": logits}

  def _losses(self, batch, outputs):
    from bert.model import heads

    return heads.get_classifier_loss(
      outputs["logits"], batch.features["label_ids"], self.problem_type, self.label_scale
    )

  def loss(self, batch, outputs):
    """Computes the cross-entropy, or the squared error of a regression."""
    return self._losses(batch, outputs)[:2]

  def predictions(self, batch, outputs):
    """Computes `probabilities`, float32 `[B, C]`, or scores `[B, 1]`."""
    return {"probabilities": self._losses(batch, outputs)[2]}

  def eval_tensors(self, batch, outputs, losses):
    """Selects logits of classes, and predictions of the other problem types."""
    is_class = self.problem_type == "classification"
    scores = outputs["logits"] if is_class else self.predictions(batch, outputs)["probabilities"]
    features = {name: batch.features[name] for name in ("label_ids", "is_real_example")}
    return {"outputs": scores, "losses": losses, **features}


@dataclasses.dataclass(frozen=True)
class TokenHead(Head):
  """A label for each token.

  Attributes:
    num_labels: C.
  """

  num_labels: int

  def outputs(self, batch):
    """Computes `logits`, float32 `[B, S, C]`."""
    from bert.model import heads

    vectors = batch.bert().get_sequence_output()
    scope = heads.task_scope(batch.config, "ner")
    logits = heads.get_token_logits(vectors, self.num_labels, batch.is_training, scope=scope)
    return {"logits": logits}

  def loss(self, batch, outputs):
    """Computes the mean over tokens with a label: the first ones of words."""
    from bert.model import heads

    return heads.get_token_loss(outputs["logits"], batch.features["label_ids"], parts=batch.parts)

  def predictions(self, batch, outputs):
    """Computes `probabilities` `[B, S, C]`, and selects `word_mask` `[B, S]`."""
    return {**super().predictions(batch, outputs), "word_mask": batch.features["word_mask"]}

  def eval_tensors(self, batch, outputs, losses):
    """Selects the best labels alone: probabilities of a whole set would fill the memory."""
    import tensorflow as tf

    best = tf.argmax(outputs["logits"], axis=-1, output_type=tf.int32)
    features = {name: batch.features[name] for name in ("label_ids", "word_mask")}
    return {"predictions": best, "losses": losses, **features}


@dataclasses.dataclass(frozen=True)
class ChoiceHead(Head):
  """A score for each of N choices, of which one is right."""

  def outputs(self, batch):
    """Computes `logits`, float32 `[B, N]`; `choice_mask` is 0 for a choice that is padding."""
    from bert.model import heads

    pooled_output = batch.bert(only_pooled_output=True).get_pooled_output()  # [B*N, W]
    logits = heads.get_choice_logits(
      pooled_output,
      batch.features["choice_mask"],
      batch.is_training,
      hidden=heads.hidden_of(batch.config, "choices"),
    )
    return {"logits": logits}

  def loss(self, batch, outputs):
    """Computes the cross-entropy over the choices.

    To choose one of N sequences is to give one of N labels to their row of scores.
    """
    from bert.model import heads

    labels = batch.features["label_ids"]
    return heads.get_classifier_loss(outputs["logits"], labels, "classification")[:2]


@dataclasses.dataclass(frozen=True)
class VectorHead(Head):
  """A vector for each text, compared by cosines.

  Attributes:
    pooling: see `similarity.pool`.
    ranks_in_training: whether training ranks the texts of a batch, instead of comparing cosines
      with scores.
    ranks_in_evaluation: likewise for evaluation.
  """

  pooling: str = "mean"
  ranks_in_training: bool = False
  ranks_in_evaluation: bool = False

  def _ranks(self, batch):
    return self.ranks_in_training if batch.is_training else self.ranks_in_evaluation

  def outputs(self, batch):
    """Computes `vectors`, float32 `[B, N, W]`."""
    import tensorflow as tf

    from bert.model import similarity

    shape = tf.shape(batch.features["input_ids"])
    flat = [-1, shape[2]]
    ids = tf.reshape(batch.features["input_ids"], flat)  # [B*N, S]
    mask = tf.reshape(batch.features["input_mask"], flat)
    # No text is without a token: the mean over none would be NaN.
    mask = tf.maximum(mask, tf.one_hot(0, shape[2], dtype=mask.dtype))
    sequence_output = batch.bert(ids, mask).get_sequence_output()
    vectors = similarity.pool(sequence_output, mask, self.pooling)  # [B*N, W]
    return {"vectors": tf.reshape(vectors, [shape[0], shape[1], batch.config.hidden_size])}

  def cosines(self, vectors):
    """Compares the first two texts of each row: float32 `[B, N, W]` to `[B]`."""
    from bert.model import similarity

    return similarity.cosines(vectors[:, 0], vectors[:, 1])

  def loss(self, batch, outputs):
    """Computes the squared error of the cosines, or the cross-entropy of the ranks."""
    from bert.model import similarity

    vectors = outputs["vectors"]
    if self._ranks(batch):
      return similarity.get_ranking_loss(vectors, batch.features["input_ids"])
    return similarity.get_cosine_loss(self.cosines(vectors), batch.features["score"])

  def predictions(self, batch, outputs):
    """Computes `similarity`, float32 `[B]`; where texts are ranked, selects their vectors, too."""
    import tensorflow as tf

    predictions = {"similarity": self.cosines(outputs["vectors"])}
    if self.ranks_in_evaluation:
      is_text = tf.reduce_max(batch.features["input_mask"], axis=-1)
      predictions |= {"vectors": outputs["vectors"], "is_text": is_text}
    return predictions

  def eval_tensors(self, batch, outputs, losses):
    """Selects cosines and scores, or, where texts are ranked, their vectors."""
    import tensorflow as tf

    tensors = {"losses": losses, "is_real_example": batch.features["is_real_example"]}
    vectors = outputs["vectors"]
    if self._ranks(batch):
      is_text = tf.reduce_max(batch.features["input_mask"], axis=-1)
      return {**tensors, "vectors": vectors, "is_text": is_text}
    return {**tensors, "cosines": self.cosines(vectors), "scores": batch.features["score"]}


@dataclasses.dataclass(frozen=True)
class SpanHead(Head):
  """The beginning and the end of an answer, in windows of a paragraph.

  Attributes:
    answer_head: which of the heads for questions.
    mask_padding: whether padding is no place for an answer; always so but for BERT's own head.
  """

  answer_head: AnswerHead = dataclasses.field(default_factory=AnswerHead)
  mask_padding: bool = False

  def logits_of(self, batch):
    """Computes the scores of BERT's own head.

    Returns:
      `(start_logits, end_logits)`: float32 `[B, S]` each.
    """
    from bert.model import heads

    # The original's softmax covers padding, so what BERT makes of padding is part of the result.
    skip_padding = self.mask_padding and batch.options.get("skip_padding", True)
    vectors = batch.bert(skip_padding=skip_padding).get_sequence_output()
    rate = heads.span_dropout_prob(batch.config) if batch.is_training else 0.0
    input_mask = batch.features["input_mask"] if self.mask_padding else None
    return heads.get_span_logits(vectors, input_mask, dropout_prob=rate)

  def _scores(self, batch):
    """Computes the scores of the other heads, a `span_heads.SpanScores`."""
    from bert.model import span_heads

    features = batch.features
    return span_heads.get_span_scores(
      self.answer_head,
      batch.bert().get_sequence_output(),
      features["input_mask"],
      features["segment_ids"],
      batch.config.initializer_range,
      start_positions=features.get("start_positions"),
      with_beam=batch.mode != "train",
      is_training=batch.is_training,
    )

  def outputs(self, batch):
    """Computes the logits `[B, S]`, and of other heads than BERT's the null score and the beam."""
    if self.answer_head.kind == "bert":
      start_logits, end_logits = self.logits_of(batch)
      return {"start_logits": start_logits, "end_logits": end_logits}
    scores = self._scores(batch)
    outputs = {"start_logits": scores.start_logits, "end_logits": scores.end_logits}
    outputs |= {"null_logit": scores.null_logit, **(scores.beam._asdict() if scores.beam else {})}
    return {name: tensor for name, tensor in outputs.items() if tensor is not None}

  def distilled(self, outputs):
    """Selects both logits."""
    return {name: outputs[name] for name in ("start_logits", "end_logits")}

  def loss(self, batch, outputs):
    """Computes the mean cross-entropy of both places; of BERT's head there is only the mean."""
    import tensorflow as tf

    from bert.model import heads, span_heads

    starts, ends = batch.features["start_positions"], batch.features["end_positions"]
    if self.answer_head.kind == "bert":
      return heads.get_span_loss(outputs["start_logits"], outputs["end_logits"], starts, ends), None
    # ALBERT: of a window without the answer the question has none, either.
    is_impossible = (
      batch.features["is_impossible"] if self.answer_head.reads_impossible else starts == 0
    )
    scores = span_heads.SpanScores(
      outputs["start_logits"], outputs.get("end_logits"), outputs.get("null_logit"), beam=None
    )
    null_weight = self.answer_head.null_weight
    losses = span_heads.get_span_losses(scores, starts, ends, is_impossible, null_weight)
    return tf.reduce_mean(losses), None

  def predictions(self, batch, outputs):
    """Selects what `squad_answers` needs of a window, with its `unique_ids` `[B]`."""
    predictions = {"unique_ids": batch.features["unique_ids"], **outputs}
    if "start_index" in outputs:  # a beam says it all
      del predictions["start_logits"]
      predictions.pop("end_logits", None)
      if "null_logit" not in outputs:  # ELECTRA's null score without its classifier; ends count 0
        predictions["first_logit"] = outputs["start_logits"][:, 0]
    return predictions

  def eval_tensors(self, batch, outputs, losses):
    """Selects the predictions."""
    return self.predictions(batch, outputs)
