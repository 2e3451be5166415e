"""One call from a loss to a training op."""

from collections.abc import Callable

from tensorflow.python.ops import control_flow_ops

from bert_tf1.real import tf

OPTIMIZER_CLS_NAMES: dict[str, Callable] = {
  "Adagrad": tf.train.AdagradOptimizer,
  "Adam": tf.train.AdamOptimizer,
  "Ftrl": tf.train.FtrlOptimizer,
  "Momentum": lambda learning_rate: tf.train.MomentumOptimizer(learning_rate, momentum=0.9),
  "RMSProp": tf.train.RMSPropOptimizer,
  "SGD": tf.train.GradientDescentOptimizer,
}

OPTIMIZER_SUMMARIES = [
  "learning_rate",
  "loss",
  "gradients",
  "gradient_norm",
  "global_gradient_norm",
]


def optimize_loss(
  loss,
  global_step,
  learning_rate,
  optimizer,
  gradient_noise_scale=None,
  gradient_multipliers=None,
  clip_gradients=None,
  learning_rate_decay_fn=None,
  update_ops=None,
  variables=None,
  name=None,
  summaries=None,
  colocate_gradients_with_ops=False,
  increment_global_step=True,
):
  """Returns the loss as a tensor that takes one training step when it is computed.

  Args:
    loss: a float scalar.
    global_step: counted by the step; that of the graph if None.
    learning_rate: a float (the variable `learning_rate` is made), a scalar tensor or None.
    optimizer: a name in OPTIMIZER_CLS_NAMES, a subclass of `tf.train.Optimizer`, a function of
      the learning rate (of nothing if that is None) that returns an optimizer, or an optimizer.
    gradient_noise_scale: the size of normal noise that is added to gradients, or None.
    gradient_multipliers: a dict of factors by variable or variable name, or None.
    clip_gradients: the largest global norm, a function of the list of (gradient, variable), or
      None.
    learning_rate_decay_fn: a function of (learning rate, global step), or None.
    update_ops: run before the loss; the collection UPDATE_OPS if None.
    variables: what to train; all trainable ones if None.
    name: of the scope; "OptimizeLoss" if None.
    summaries: names in OPTIMIZER_SUMMARIES; the loss, the learning rate and the global norm of
      the gradients if None.
    colocate_gradients_with_ops: as in `tf.gradients`.
    increment_global_step: count the step.

  Raises:
    ValueError: if an argument is of a type or value that is not listed above.
  """
  loss = tf.convert_to_tensor(loss)
  loss.shape.assert_has_rank(0)
  if global_step is None:
    global_step = tf.train.get_global_step()
  else:
    tf.train.assert_global_step(global_step)
  with tf.variable_scope(name, "OptimizeLoss", [loss, global_step]):
    if update_ops is None:
      update_ops = set(tf.get_collection(tf.GraphKeys.UPDATE_OPS))
    if update_ops:
      loss = control_flow_ops.with_dependencies(list(update_ops), loss)
    rate = _learning_rate(learning_rate)
    summaries = _summaries(summaries)
    if learning_rate is not None and learning_rate_decay_fn is not None:
      if global_step is None:
        raise ValueError("global_step is required for learning_rate_decay_fn.")
      rate = learning_rate_decay_fn(rate, global_step)
      if "learning_rate" in summaries:
        tf.summary.scalar("learning_rate", rate)
    trainer = _trainer(optimizer, rate)
    gradients = trainer.compute_gradients(
      loss,
      tf.trainable_variables() if variables is None else variables,
      colocate_gradients_with_ops=colocate_gradients_with_ops,
    )
    if gradient_noise_scale is not None:
      gradients = [(_noisy(g, gradient_noise_scale), v) for g, v in gradients]
    if gradient_multipliers is not None:
      gradients = [(_multiplied(g, v, gradient_multipliers), v) for g, v in gradients]
      if not gradients:
        raise ValueError(
          "Empty list of (gradient, var) pairs encountered. This is most likely to be caused by "
          "an improper value of gradient_multipliers."
        )
    with_norms = "global_gradient_norm" in summaries or "gradient_norm" in summaries
    if with_norms:
      tf.summary.scalar("global_norm/gradient_norm", _global_norm(gradients))
    gradients = _clipped(gradients, clip_gradients)
    if "loss" in summaries:
      tf.summary.scalar("loss", loss)
    _summarize_gradients(gradients, summaries)
    if clip_gradients is not None and with_norms:
      tf.summary.scalar("global_norm/clipped_gradient_norm", _global_norm(gradients))
    step = global_step if increment_global_step else None
    update = trainer.apply_gradients(gradients, global_step=step, name="train")
    return control_flow_ops.with_dependencies([update], loss)


def _learning_rate(learning_rate):
  """Returns the rate as a tensor or variable; None for None."""
  if learning_rate is None:
    return None
  if isinstance(learning_rate, tf.Tensor) and learning_rate.shape.ndims == 0:
    return learning_rate
  if not isinstance(learning_rate, float):
    raise ValueError(
      f"Learning rate should be 0d Tensor or float. Got {learning_rate} of type "
      f"{type(learning_rate)}"
    )
  if learning_rate < 0.0:
    raise ValueError(f"Invalid learning_rate {learning_rate}.")
  return tf.get_variable(
    "learning_rate", [], trainable=False, initializer=tf.constant_initializer(learning_rate)
  )


def _summaries(summaries) -> list[str]:
  if summaries is None:
    return ["loss", "learning_rate", "global_gradient_norm"]
  for summary in summaries:
    if summary not in OPTIMIZER_SUMMARIES:
      raise ValueError(
        f"Summaries should be one of [{', '.join(OPTIMIZER_SUMMARIES)}], you provided {summary}."
      )
  return summaries


def _trainer(optimizer, rate) -> tf.train.Optimizer:
  """Returns the optimizer that a name, class, function or optimizer stands for."""
  if isinstance(optimizer, tf.train.Optimizer):
    return optimizer
  a_class = isinstance(optimizer, type) and issubclass(optimizer, tf.train.Optimizer)
  if isinstance(optimizer, str) or a_class:
    if rate is None:
      raise ValueError(
        "Learning rate is None, but should be specified if optimizer is "
        f"{'class' if a_class else 'string'} ({optimizer})."
      )
    if not a_class and optimizer not in OPTIMIZER_CLS_NAMES:
      raise ValueError(
        f"Optimizer name should be one of [{', '.join(OPTIMIZER_CLS_NAMES)}], you provided "
        f"{optimizer}."
      )
    return (optimizer if a_class else OPTIMIZER_CLS_NAMES[optimizer])(learning_rate=rate)
  if not callable(optimizer):
    raise ValueError(
      "Unrecognized optimizer: should be string, subclass of Optimizer, instance of subclass of "
      f"Optimizer or function with one argument. Got {optimizer}."
    )
  trainer = optimizer() if rate is None else optimizer(rate)
  if not isinstance(trainer, tf.train.Optimizer):
    raise ValueError(
      f"Unrecognized optimizer: function should return subclass of Optimizer. Got {trainer}."
    )
  return trainer


def _noisy(gradient, scale):
  if gradient is None:
    return None
  sparse = isinstance(gradient, tf.IndexedSlices)
  shape = gradient.dense_shape if sparse else gradient.shape
  return gradient + tf.truncated_normal(shape) * scale


def _multiplied(gradient, variable, multipliers: dict):
  """Multiplies the gradient if the dict has the variable, or its name."""
  by_variable = {getattr(key, "name", key): factor for key, factor in multipliers.items()}
  if gradient is None or variable.name not in by_variable:
    return gradient
  factor = by_variable[variable.name]
  if isinstance(gradient, tf.IndexedSlices):
    return tf.IndexedSlices(gradient.values * factor, gradient.indices, gradient.dense_shape)
  return gradient * tf.cast(factor, gradient.dtype)


def _clipped(gradients: list, clip_gradients) -> list:
  if clip_gradients is None:
    return gradients
  if callable(clip_gradients):
    return clip_gradients(gradients)
  if not isinstance(clip_gradients, float):
    raise ValueError(f"Unknown type {type(clip_gradients)} for clip_gradients")
  values, variables = zip(*gradients, strict=True)
  clipped, _ = tf.clip_by_global_norm(values, clip_gradients)
  return list(zip(clipped, variables, strict=True))


def _global_norm(gradients: list):
  return tf.global_norm([gradient for gradient, _ in gradients])


def _summarize_gradients(gradients: list, summaries: list[str]) -> None:
  for gradient, variable in gradients:
    values = gradient.values if isinstance(gradient, tf.IndexedSlices) else gradient
    if values is None:
      continue
    name = variable.name.replace(":", "_")
    if "gradients" in summaries:
      tf.summary.histogram(f"gradients/{name}", values)
    if "gradient_norm" in summaries:
      tf.summary.scalar(f"gradient_norm/{name}", tf.global_norm([values]))
