"""The head of questions; `task_head.py` says what a head is.

Its functions lie in `heads.py` and `span_heads.py`. Importing this module imports no TensorFlow.

Letters in shapes: B = batch size, S = sequence length.
"""

import dataclasses

from bert.model.answer_heads import AnswerHead
from bert.model.task_head import Head


@dataclasses.dataclass(frozen=True)
class SpanHead(Head):
  """The beginning and the end of an answer, in windows of a paragraph.

  Attributes:
    answer_head: which of the heads for questions.
    mask_padding: whether padding is no place for an answer; always so but for BERT's own head.
  """

  answer_head: AnswerHead = dataclasses.field(default_factory=AnswerHead)
  mask_padding: bool = False

  token_outputs = ("start_logits", "end_logits")

  @classmethod
  def of_run(cls, facts, settings):
    """Makes the head of a run: its kind is a fact, how padding is treated a setting."""
    return cls(AnswerHead.of_run(facts, settings), settings.get("pad_to_longest", False))

  def logits_of(self, batch):
    """Computes `(start_logits, end_logits)`, float32 `[B, S]` each, of BERT's own head."""
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
    return {name: outputs[name] for name in self.token_outputs}

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

  def row_scores(self, batch, outputs):
    """Selects what `squad_answers.scores_of` takes of a window, but for its id."""
    numbered = dataclasses.replace(batch, features={**batch.features, "unique_ids": None})
    return {
      n: value for n, value in self.predictions(numbered, outputs).items() if n != "unique_ids"
    }
