"""The model of questions with a head that searches spans: ELECTRA's, and ALBERT's for SQuAD 2.0.

`run_squad.model_fn_builder` has BERT's own head. Here batches may be padded to any length: padding
competes with no piece of the text.
"""

from bert.model.answer_heads import AnswerHead


def model_fn_builder(
  bert_config,
  init_checkpoint,
  learning_rate,
  num_train_steps,
  num_warmup_steps,
  use_tpu,
  use_one_hot_embeddings,
  *,
  head: AnswerHead,
  metric_fn=None,
  optimizer_options=None,
  dtype="float32",
):
  """Returns the `model_fn` of an `estimator.Estimator`; arguments as in run_squad.py.

  Args, beside those:
    head: which head, `electra` or `albert`.
    metric_fn: of the arrays that `outputs_of` names.
  """

  def model_fn(features, labels, mode, params):
    import tensorflow as tf

    from bert import modeling
    from bert.model import span_heads
    from bert.optimization import create_optimizer
    from bert.training.estimator import EstimatorSpec, ModeKeys

    del labels, params  # labels travel in features
    inputs = [features[name] for name in ("input_ids", "input_mask", "segment_ids")]
    model = modeling.BertModel(
      bert_config,
      mode == ModeKeys.TRAIN,
      *inputs,
      use_one_hot_embeddings=use_one_hot_embeddings,
      dtype=tf.as_dtype(dtype),
      skip_padding=not use_one_hot_embeddings,
    )
    scores = span_heads.get_span_scores(
      head,
      model.get_sequence_output(),
      *inputs[1:],
      bert_config.initializer_range,
      start_positions=features.get("start_positions"),
      with_beam=mode != ModeKeys.TRAIN,
      is_training=mode == ModeKeys.TRAIN,
    )
    outputs = outputs_of(scores, features["unique_ids"])
    spec = EstimatorSpec(mode=mode, predictions=outputs, init_checkpoint=init_checkpoint)
    if mode != ModeKeys.PREDICT:
      starts, ends = features["start_positions"], features["end_positions"]
      # ALBERT: of a window without the answer the question has none, either.
      is_impossible = starts == 0 if head.kind == "albert" else features["is_impossible"]
      losses = span_heads.get_span_losses(scores, starts, ends, is_impossible, head.null_weight)
      spec.loss = tf.reduce_mean(losses)
    if mode == ModeKeys.TRAIN:
      spec.train_op = create_optimizer(
        spec.loss,
        learning_rate,
        num_train_steps,
        num_warmup_steps,
        use_tpu,
        **(optimizer_options or {}),
      )
    elif mode == ModeKeys.EVAL and metric_fn:
      spec.eval_metrics = (metric_fn, outputs)
    return spec

  return model_fn


def outputs_of(scores, unique_ids):
  """Name -> tensor `[B, ...]` of what `WindowScores` needs of a `span_heads.SpanScores`."""
  outputs = {"unique_ids": unique_ids}
  if scores.null_logit is not None:
    outputs["null_logit"] = scores.null_logit
  if scores.beam is None:
    return {**outputs, "start_logits": scores.start_logits, "end_logits": scores.end_logits}
  beam = scores.beam._asdict()
  if scores.null_logit is None:  # ELECTRA's null score without its classifier; ends count 0
    beam["first_logit"] = scores.start_logits[:, 0]
  return {**outputs, **beam}
