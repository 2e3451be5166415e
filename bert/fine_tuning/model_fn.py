"""The `model_fn` of any head: what an `Estimator` trains, evaluates and predicts with."""

from collections.abc import Callable, Mapping
from typing import Any

from bert.model.task_head import Batch, Head, Tensors, model_options


def model_fn_of(
  head: Head,
  bert_config,
  init_checkpoint,
  learning_rate,
  num_train_steps,
  num_warmup_steps,
  use_tpu,
  use_one_hot_embeddings,
  *,
  metric_fn: Callable[..., dict] | None = None,
  optimizer_options: Mapping[str, Any] | None = None,
  dtype: str = "float32",
  distillation=None,
) -> Callable:
  """Returns the `model_fn` of an `estimator.Estimator`.

  Args:
    head: what is computed of a batch.
    bert_config: a `modeling.BertConfig`.
    init_checkpoint: where variables start, or None.
    learning_rate: the peak.
    num_train_steps: steps of the whole run.
    num_warmup_steps: steps of warm-up.
    use_tpu: whether this runs on a TPU.
    use_one_hot_embeddings: look tokens up by a matrix product.
    metric_fn: NumPy arrays of the head's `eval_tensors` by name -> results. Without it an
      evaluation has only the loss.
    optimizer_options: further keywords of `optimization.create_optimizer`.
    dtype: of the matrix products.
    distillation: a `methods.Distillation`, which makes the loss of training; else the head does.
  """

  def model_fn(features, labels, mode, params):
    from bert.optimization import create_optimizer
    from bert.training.estimator import EstimatorSpec, ModeKeys

    del labels  # they travel in features
    if distillation and mode == ModeKeys.TRAIN:
      features = distillation.adapt(features)
    options = model_options(use_one_hot_embeddings, dtype)
    parts = params.get("gradient_accumulation_steps", 1)

    def batch_of(config, is_training):
      return Batch(config, features, is_training, options, parts, mode)

    batch = batch_of(bert_config, mode == ModeKeys.TRAIN)
    outputs = head.outputs(batch)
    spec = EstimatorSpec(mode=mode, init_checkpoint=init_checkpoint)
    if mode == ModeKeys.PREDICT:
      spec.predictions = head.predictions(batch, outputs)
      return spec
    spec.loss, losses = loss, _ = head.loss(batch, outputs)
    if mode == ModeKeys.EVAL:
      if metric_fn:
        tensors = {**head.eval_tensors(batch, outputs, losses), **_rows(head, batch, outputs)}
        spec.eval_metrics = (metric_fn, tensors)
      return spec
    if distillation:
      # A teacher weighs examples; where losses are of tokens, or of no example, it has their mean.
      has_examples = losses is not None and losses.shape.rank == 1
      loss = distillation.teach(
        spec,
        features,
        head.distilled(outputs),
        losses if has_examples else loss,
        lambda config: head.distilled(head.outputs(batch_of(config, False))),
        parts=parts,
      )
    spec.train_op = create_optimizer(
      loss, learning_rate, num_train_steps, num_warmup_steps, use_tpu, **(optimizer_options or {})
    )
    return spec

  return model_fn


def _rows(head: Head, batch: Batch, outputs: Tensors) -> Tensors:
  """Names the rows of a batch and their scores for `evaluation.evaluate`."""
  from bert.training.evaluation import ROW

  names = ("input_ids", "input_mask")
  scores = head.row_scores(batch, outputs)
  if not scores or any(name not in batch.features for name in names):
    return {}
  return {ROW + n: v for n, v in {**{n: batch.features[n] for n in names}, **scores}.items()}
