"""The model of questions with a head that searches spans: ELECTRA's, and ALBERT's for SQuAD 2.0.

`run_squad.py` has BERT's own head, and the `model_fn` of all. Here batches may be padded to any
length: padding competes with no token of the text.
"""

from bert.model.answer_heads import AnswerHead


def outputs_and_loss(
  bert_config,
  features,
  mode,
  use_one_hot_embeddings,
  is_training,
  *,
  head: AnswerHead,
  dtype="float32",
):
  """Builds the predictions of a model with such a head, and its loss.

  Args:
    bert_config: a `modeling.BertConfig`.
    features: of windows, `[B, S]` and `[B]`.
    mode: one of `estimator.ModeKeys`.
    use_one_hot_embeddings: look words up by a matrix product.
    is_training: whether to drop out.
    head: which head, `electra` or `albert`.
    dtype: of the matrix products.

  Returns:
    What `outputs_of` names, and float32 `[]`, None in prediction.
  """
  import tensorflow as tf

  from bert import modeling
  from bert.model import span_heads
  from bert.training.estimator import ModeKeys

  input_mask, segment_ids = features["input_mask"], features["segment_ids"]
  model = modeling.BertModel(
    bert_config,
    is_training,
    features["input_ids"],
    input_mask,
    segment_ids,
    use_one_hot_embeddings=use_one_hot_embeddings,
    dtype=tf.as_dtype(dtype),
    skip_padding=not use_one_hot_embeddings,
  )
  scores = span_heads.get_span_scores(
    head,
    model.get_sequence_output(),
    input_mask,
    segment_ids,
    bert_config.initializer_range,
    start_positions=features.get("start_positions"),
    with_beam=mode != ModeKeys.TRAIN,
    is_training=is_training,
  )
  outputs = outputs_of(scores, features["unique_ids"])
  if mode == ModeKeys.PREDICT:
    return outputs, None
  starts, ends = features["start_positions"], features["end_positions"]
  # ALBERT: of a window without the answer the question has none, either.
  is_impossible = features["is_impossible"] if head.reads_impossible else starts == 0
  losses = span_heads.get_span_losses(scores, starts, ends, is_impossible, head.null_weight)
  return outputs, tf.reduce_mean(losses)


def outputs_of(scores, unique_ids):
  """Returns what `WindowScores` needs of a `span_heads.SpanScores`: name -> tensor `[B, ...]`."""
  outputs = {"unique_ids": unique_ids}
  if scores.null_logit is not None:
    outputs["null_logit"] = scores.null_logit
  if scores.beam is None:
    return {**outputs, "start_logits": scores.start_logits, "end_logits": scores.end_logits}
  beam = scores.beam._asdict()
  if scores.null_logit is None:  # ELECTRA's null score without its classifier; ends count 0
    beam["first_logit"] = scores.start_logits[:, 0]
  return {**outputs, **beam}
