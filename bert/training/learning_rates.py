"""The learning rate over time: warm-up, then a decay to 0."""

import tensorflow as tf

SCHEDULES = ("original", "continuous", "product", "constant")


def learning_rate_at(
  step,
  init_lr: float,
  num_train_steps: int,
  num_warmup_steps: float | None,
  schedule="original",
  *,
  poly_power: float = 1.0,
  start_warmup_step: int = 0,
) -> tf.Tensor:
  """Computes the learning rate of one step: float32, shape of `step`.

  Args:
    step: number `[]` or any shape; the number of steps finished before this one.
    init_lr: peak rate.
    num_train_steps: where the rate reaches 0, and stays.
    num_warmup_steps: the rate grows linearly from 0 until here; 0 or None for no warm-up. It may
      have a fraction, as in ELECTRA.
    schedule: `original`: after warm-up the line from `init_lr` at step 0 to 0 at the end, so the
      rate falls by `num_warmup_steps / num_train_steps` at once (google-research/bert PR #1374).
      `continuous`: the line from `init_lr` at the end of the warm-up. `product`: the line of
      `original` times `min(1, step / num_warmup_steps)`, so the rate never jumps
      (google-research/electra, model/optimization.py). `constant`: `init_lr` after the warm-up, to
      the end.
    poly_power: the decaying line to this power; `constant` has none.
    start_warmup_step: warm-up starts here. As in ALBERT, rates before it are negative with
      `original` and `product`.

  Raises:
    ValueError: `schedule` is unknown.

  Example:
    >>> [round(float(learning_rate_at(s, 1.0, 10, 2)), 3) for s in (0, 1, 2, 9, 10, 11)]
    [0.0, 0.5, 0.8, 0.1, 0.0, 0.0]
    >>> [round(float(learning_rate_at(s, 1.0, 10, 2, "continuous")), 3) for s in (1, 2, 6, 10)]
    [0.5, 1.0, 0.5, 0.0]
    >>> [round(float(learning_rate_at(s, 1.0, 10, 2, "product")), 3) for s in (0, 1, 2, 9, 10)]
    [0.0, 0.45, 0.8, 0.1, 0.0]
    >>> [float(learning_rate_at(s, 1.0, 10, 2, "constant")) for s in (0, 1, 2, 9)]
    [0.0, 0.5, 1.0, 1.0]
  """
  warmup, total = float(num_warmup_steps or 0), float(num_train_steps)
  step = tf.cast(step, tf.float32)
  position, since_start = tf.minimum(step, total), step - float(start_warmup_step)
  if schedule == "constant":
    share = tf.ones_like(position)
  elif schedule == "continuous":
    share = (total - position) / max(total - warmup, 1.0)
  elif schedule in SCHEDULES:
    share = 1.0 - position / total
  else:
    raise ValueError(f"Unknown schedule {schedule!r}; known: {', '.join(SCHEDULES)}.")
  decayed = init_lr * (share if poly_power == 1.0 else share**poly_power)
  # No warm-up is no division: in TensorFlow 1 the minimum of 1 and 0/0 was 1, today it is NaN.
  if not warmup:
    return decayed
  if schedule == "product":
    return decayed * tf.minimum(1.0, since_start / warmup)
  return tf.where(since_start < warmup, init_lr * (since_start / warmup), decayed)
