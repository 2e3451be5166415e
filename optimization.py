"""Adam with decoupled weight decay, and its learning rate, as in the original.

Exact by default: no bias correction ("mostly an oversight", google-research/bert#153), decay added
to the update and not to the gradient, a linear warm-up, then a linear decay over the
*whole* run (so the rate drops at the end of the warm-up), gradients clipped to a global norm of
1, rate 0 at step 0. Everything beyond that is a keyword of `create_optimizer`.
"""

import importlib
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import tensorflow as tf
from absl import logging

from bert.model import kernels
from bert.model.variables import current_store, get_global_step, zeros_initializer
from bert.training import loss_scaling
from bert.training.learning_rates import learning_rate_at
from bert.training.variable_groups import check_frozen, is_of_encoder, learning_rate_multipliers

# Variables with one of these in their name do not decay.
NOT_DECAYED = ("LayerNorm", "layer_norm", "bias")


class Applied(NamedTuple):
  """The outcome of applying gradients.

  Attributes:
    is_sound: bool `[]`; False if the gradients are not finite and no smaller loss scale would help,
      so that training must stop.
    scalars: name -> float32 `[]`, to write beside the loss.
  """

  is_sound: tf.Tensor
  scalars: dict[str, tf.Tensor]


class Clipping(NamedTuple):
  """How gradients are clipped; the defaults are the original's.

  Attributes:
    norm: the largest norm that all gradients have together; greater ones are scaled down. 0: none
      is.
    each: every gradient has this limit of its own instead, as in TinyBERT.
    merges_rows: add up the rows of a sparse gradient that belong to the same word before the norm
      is taken, as PyTorch does. The original counts each of them by itself.
  """

  norm: float = 1.0
  each: bool = False
  merges_rows: bool = False


_ORIGINAL_CLIPPING = Clipping()


class TrainOp(NamedTuple):
  """The gradients and the update of one training step; `create_optimizer` returns it.

  The training loop may average `gradients` over replicas and micro-batches before `apply`.

  Attributes:
    gradients: a tensor, `tf.IndexedSlices` or None for each variable.
    variables: the variables that train.
    learning_rate: float32 `[]`, the rate of this step.
    apply: `apply(gradients)` clips, updates variables and slots, increments `global_step`, and
      returns an `Applied`, or None if it does not check whether they are finite.
  """

  gradients: list
  variables: list
  learning_rate: tf.Tensor
  apply: Callable[[Sequence], Applied | None]


def create_optimizer(
  loss: tf.Tensor,
  init_lr: float,
  num_train_steps: int,
  num_warmup_steps: float | None = None,
  use_tpu: bool = False,
  *,
  optimizer: str = "adamw",
  bias_correction: bool = False,
  beta_2: float = 0.999,
  weight_decay: float = 0.01,
  exclude_from_weight_decay: Sequence[str] = NOT_DECAYED,
  clipping: Sequence = _ORIGINAL_CLIPPING,
  schedule: str = "original",
  poly_power: float = 1.0,
  start_warmup_step: int = 0,
  layerwise_lr_decay: float = 1.0,
  layerwise_lr_top_power: int = 0,
  head_learning_rate: float | None = None,
  freeze: Iterable[str] = (),
  loss_factor: float = 1.0,
  scale_loss: bool = False,
) -> TrainOp:
  """Gradients of `loss` and the update with them. Call it inside a `tf.function`.

  Without a loss, as `create_optimizer(init_lr, num_train_steps, num_warmup_steps)` or with a Keras
  model's `parameters()` in place of the loss, it is `bert.keras3.create_optimizer`.

  Args:
    loss: float `[]`.
    init_lr: peak learning rate.
    num_train_steps: steps of the whole run; the rate reaches 0 there.
    num_warmup_steps: steps of linear warm-up; 0 or None for none.
    use_tpu: accepted for the original's signature; the training loop sums over replicas itself.
    optimizer: `adamw` or `lamb` (arXiv:1904.00962).
    bias_correction: divide the moments by `1 - beta^t`, as in the Adam paper.
    beta_2: decay of the second moment.
    weight_decay: see `AdamWeightDecayOptimizer`.
    exclude_from_weight_decay: see there.
    clipping: of gradients, a `Clipping` or its values; to a norm of 1 of all together by default.
    schedule: `original`, `continuous`, `product` or `constant`; see `learning_rate_at`.
    poly_power: power of the schedule's line.
    start_warmup_step: where warm-up starts.
    layerwise_lr_decay: each layer learns at this factor of the layer above it (arXiv:1801.06146).
    layerwise_lr_top_power: the power of it that the top layer has: 0, or 2 as in ELECTRA.
    head_learning_rate: peak rate of variables outside the encoder; `init_lr` by default.
    freeze: variables that do not train; see `variable_groups.frozen_pattern`.
    loss_factor: multiplies the loss that is minimised. The number of examples in a batch makes of
      their mean the sum, whose gradients are then clipped, as in ELECTRA.
    scale_loss: for float16: scale the loss, and skip steps whose gradients are not finite; see
      `loss_scaling`, whose variables this creates.

  Returns:
    A `TrainOp`.

  Raises:
    ValueError: an unknown option, or nothing is left to train.
  """
  del use_tpu
  if not tf.is_tensor(loss):
    keras_optimization = importlib.import_module("bert.keras3.optimization")
    return keras_optimization.create_optimizer(loss, init_lr, num_train_steps, num_warmup_steps)
  store = current_store()
  frozen = check_frozen(freeze, store.trainable_variables)
  trained = {
    name: variable
    for name, variable in store.trainable_variables.items()
    if not any(pattern.search(name) for pattern in frozen)
  }
  if not trained:
    raise ValueError(f"Nothing is left to train: freeze={list(freeze)} covers every variable.")

  global_step = get_global_step()
  # Multipliers are relative to this rate, so the head can learn where the encoder does not.
  peak = init_lr or head_learning_rate or 0.0
  learning_rate = learning_rate_at(
    global_step,
    peak,
    num_train_steps,
    num_warmup_steps,
    schedule,
    poly_power=poly_power,
    start_warmup_step=start_warmup_step,
  )
  head_rate = init_lr if head_learning_rate is None else head_learning_rate
  multipliers = learning_rate_multipliers(
    trained, layerwise_lr_decay, head_rate / peak if peak else 1.0, layerwise_lr_top_power
  )
  if not init_lr:
    multipliers = {name: 0.0 if is_of_encoder(name) else m for name, m in multipliers.items()}
  optimizer_class = _OPTIMIZERS.get(optimizer)
  if optimizer_class is None:
    raise ValueError(f"Unknown optimizer {optimizer!r}; known: {', '.join(sorted(_OPTIMIZERS))}.")
  update = optimizer_class(
    learning_rate=learning_rate,
    weight_decay_rate=weight_decay,
    beta_2=beta_2,
    exclude_from_weight_decay=exclude_from_weight_decay,
    bias_correction=bias_correction,
    learning_rate_multipliers=multipliers,
  )
  scaling = loss_scaling.get_variables() if scale_loss else None
  if loss_factor != 1.0:
    loss *= loss_factor
  gradients = _gradients(loss, list(trained.values()), scaling)

  clipping = Clipping(*clipping)

  def apply(gradients):
    if clipping.merges_rows or clipping.each:
      gradients = [None if g is None else tf.convert_to_tensor(g) for g in gradients]
    factor, is_finite = _clip_factor(gradients, clipping.norm)
    if clipping.each:
      gradients = [_clipped(gradient, clipping.norm) for gradient in gradients]
      factor = tf.where(is_finite, 1.0, factor)

    def apply_all():
      pairs = zip(gradients, trained, strict=True)
      return update.apply_gradients(pairs, scale=factor)

    if scaling is None:
      done, applied = apply_all(), Applied(is_finite, {})
    else:
      done, applied = _apply_if(is_finite, apply_all, scaling)
    with tf.control_dependencies(done):
      global_step.assign_add(1)
    return applied

  return TrainOp(gradients, list(trained.values()), learning_rate, apply)


def _gradients(loss, variables, scaling) -> list:
  """Returns the gradients of a loss, computed from the scaled loss if a `LossScale` is given."""
  if scaling is None:
    return tf.gradients(loss, variables)
  scale = scaling.scale.read_value()
  gradients = tf.gradients(loss * tf.cast(scale, loss.dtype), variables)
  return [_scale(gradient, 1.0 / scale) for gradient in gradients]


def _apply_if(is_finite, apply_all, scaling):
  """Updates variables only if the gradients are finite, bool `[]`, and the loss scale in any case.

  It returns operations, and an `Applied`.
  """
  before = loss_scaling.LossScale(*(variable.read_value() for variable in scaling))
  after = loss_scaling.after_step(before, is_finite)

  def apply_then_true():
    with tf.control_dependencies(apply_all()):
      return tf.constant(True)

  done = [tf.cond(is_finite, apply_then_true, lambda: tf.constant(False))]
  done += [_assign(variable, value) for variable, value in zip(scaling, after, strict=True)]
  scalars = {"loss_scale": after.scale, "skipped_steps": tf.cast(after.skipped_steps, tf.float32)}
  # At the smallest scale, infinite gradients are not an overflow of float16.
  return done, Applied(is_finite | (before.scale > loss_scaling.SMALLEST_SCALE), scalars)


def _clip_factor(gradients, clip_norm=1.0):
  """Computes the factor of `tf.clip_by_global_norm`, and whether all gradients are finite.

  Repeated rows of a sparse gradient count separately, as in the original. The factor, float32 `[]`,
  is NaN if a gradient is not finite.
  """
  norm = tf.linalg.global_norm(gradients)
  is_finite = tf.math.is_finite(norm)
  factor = clip_norm * tf.minimum(1.0 / norm, 1.0 / clip_norm) if clip_norm else 1.0
  return tf.where(is_finite, factor, math.nan), is_finite


def _clipped(gradient, clip_norm: float):
  """Returns a gradient by itself, scaled down to a norm; None stays None."""
  return None if gradient is None else tf.clip_by_norm(gradient, clip_norm)


def _scale(gradient, factor):
  if gradient is None:
    return None
  if isinstance(gradient, tf.IndexedSlices):
    return tf.IndexedSlices(gradient.values * factor, gradient.indices, gradient.dense_shape)
  return gradient * factor


# ---------------------------------------------------------------------------------------------
# The updates.


# From this number of weights on, a compiled update saves more time than compiling takes (1 s).
_MIN_SIZE_TO_COMPILE = 1 << 16


class _State(NamedTuple):
  """The inputs of one variable's update."""

  value: tf.Tensor
  m: tf.Tensor
  v: tf.Tensor
  gradient: tf.Tensor
  learning_rate: tf.Tensor


@kernels.block
def _new_values(update, state, decay, scale, first, second, beta_1, beta_2, epsilon):
  """New (value, m, v) of a variable in one pass over each, instead of fifteen.

  It is compiled once for each shape that occurs, not for each variable.

  Args:
    update: `update(value, direction, decay)` is subtracted, times the learning rate.
    state: a `_State`.
    decay: weight decay.
    scale: factor of all gradients.
    first: corrects the bias of first moments, or 1.
    second: the same of second moments.
    beta_1: decay of first moments.
    beta_2: decay of second moments.
    epsilon: added to the root of second moments.
  """
  gradient = state.gradient * scale
  m = beta_1 * state.m + (1.0 - beta_1) * gradient
  v = beta_2 * state.v + (1.0 - beta_2) * tf.square(gradient)
  direction = (m / first) / (tf.sqrt(v / second) + epsilon)
  step = state.learning_rate * update(state.value, direction, decay)
  return state.value - step, m, v


def _joined(states: Sequence[_State]) -> _State:
  """Joins variables of any shapes and one learning rate into one vector."""

  def vector(tensors):
    return tf.concat([tf.reshape(tensor, [-1]) for tensor in tensors], axis=0)

  return _State(
    value=vector(state.value for state in states),
    m=vector(state.m for state in states),
    v=vector(state.v for state in states),
    gradient=vector(state.gradient for state in states),
    learning_rate=states[0].learning_rate,
  )


def _parted(vector, states: Sequence[_State]) -> list[tf.Tensor]:
  """Takes a vector of `_joined` apart again."""
  shapes = [state.value.shape for state in states]
  parts = tf.split(vector, [shape.num_elements() for shape in shapes])
  return [tf.reshape(part, shape) for part, shape in zip(parts, shapes, strict=True)]


def _adam_update(value, direction, decay):
  return direction + decay * value if decay else direction


def _lamb_update(value, direction, decay):
  """Adam's direction and the decay, scaled to the norm of `value`."""
  update = _adam_update(value, direction, decay)
  length, update_length = tf.norm(value), tf.norm(update)
  both = (length > 0.0) & (update_length > 0.0)
  return update * tf.where(both, length / tf.where(both, update_length, 1.0), 1.0)


class AdamWeightDecayOptimizer:
  """Adam with decoupled weight decay (arXiv:1711.05101), without bias correction by default.

  Slots are variables of the current store, `<name>/adam_m` and `<name>/adam_v`.

  Attributes:
    learning_rate: float or float32 `[]`.
    weight_decay_rate: each step subtracts this share of a variable, times the learning rate.
    beta_1: decay of the first moment.
    beta_2: decay of the second moment.
    epsilon: added to the root of the second moment.
    exclude_from_weight_decay: regular expressions; a variable whose name matches one never decays.
    bias_correction: divide the moments by `1 - beta^t`.
    learning_rate_multipliers: factor of the rate for a variable's name; 1 by default.
  """

  _update_of = staticmethod(_adam_update)

  def __init__(
    self,
    learning_rate,
    weight_decay_rate=0.0,
    beta_1=0.9,
    beta_2=0.999,
    epsilon=1e-6,
    exclude_from_weight_decay=None,
    name="AdamWeightDecayOptimizer",
    *,
    bias_correction=False,
    learning_rate_multipliers=None,
  ):
    self.learning_rate = learning_rate
    self.weight_decay_rate = weight_decay_rate
    self.beta_1 = beta_1
    self.beta_2 = beta_2
    self.epsilon = epsilon
    self.exclude_from_weight_decay = exclude_from_weight_decay or []
    self.name = name
    self.bias_correction = bias_correction
    self.learning_rate_multipliers = learning_rate_multipliers or {}

  def apply_gradients(
    self, grads_and_vars, global_step=None, name=None, *, scale=1.0
  ) -> list[tf.Operation]:
    """Updates variables and slots; `global_step` is left to the caller, as in the original.

    Args:
      grads_and_vars: pairs of a gradient (tensor, `tf.IndexedSlices` or None: skipped) and a
        variable of the current store, or its name.
      global_step: unused; the store's own counts the steps.
      name: unused.
      scale: float32 `[]`, multiplies every gradient.

    Returns:
      The operations that update, for control dependencies.
    """
    del global_step, name
    pairs = [(gradient, _name_of(variable)) for gradient, variable in grads_and_vars]
    pairs = [(tf.convert_to_tensor(g), variable) for g, variable in pairs if g is not None]
    names = [name for _, name in pairs]
    self._log_what_decays(names)
    targets, states = {}, {}
    for gradient, name in pairs:
      variable = current_store().variables[name]
      targets[name] = (variable, *self._slots(name, variable))
      value, m, v = (target.read_value() for target in targets[name])
      states[name] = _State(value, m, v, gradient, self._rate_of(name))
    size = sum(state.value.shape.num_elements() for state in states.values())
    new_values = self._new_values(states, scale, compiled=size >= _MIN_SIZE_TO_COMPILE)
    return [
      _assign(target, value)
      for name in names
      for target, value in zip(targets[name], new_values[name], strict=True)
    ]

  def _new_values(self, states: Mapping[str, _State], scale, compiled: bool) -> dict[str, Sequence]:
    """Computes the new values of all variables, see the function of that name.

    Compiled, those that are small, do not decay and have Adam's update, such as biases, are one
    vector.
    """
    options = scale, *self._corrections(), self.beta_1, self.beta_2, self.epsilon
    adam = AdamWeightDecayOptimizer._update_of
    new_values, joined = {}, {}
    for name, state in states.items():
      decay, update = self._decay_of(name), adam if self._is_excluded(name) else self._update_of
      is_small = state.value.shape.num_elements() < _MIN_SIZE_TO_COMPILE
      if compiled and is_small and not decay and update is adam:
        joined.setdefault(self.learning_rate_multipliers.get(name, 1.0), []).append(name)
      else:
        new_values[name] = _new_values(update, state, decay, *options, compiled=compiled)
    for group in joined.values():
      group_states = [states[name] for name in group]
      vectors = _new_values(adam, _joined(group_states), 0.0, *options, compiled=compiled)
      parts = [_parted(vector, group_states) for vector in vectors]
      new_values.update(zip(group, zip(*parts, strict=True), strict=True))
    return new_values

  def _slots(self, name, variable):
    store = current_store()
    return tuple(
      store.get_variable(
        f"{name}/{slot}", variable.shape.as_list(), zeros_initializer, tf.float32, trainable=False
      )
      for slot in ("adam_m", "adam_v")
    )

  def _corrections(self):
    """`1 - beta_1^t` and `1 - beta_2^t` of this step, or ones without bias correction."""
    if not self.bias_correction:
      return 1.0, 1.0
    t = tf.cast(get_global_step() + 1, tf.float32)
    return 1.0 - self.beta_1**t, 1.0 - self.beta_2**t

  def _rate_of(self, name):
    rate = self.learning_rate * self.learning_rate_multipliers.get(name, 1.0)
    return tf.convert_to_tensor(rate, tf.float32)

  def _decay_of(self, name):
    return self.weight_decay_rate if self._do_use_weight_decay(name) else 0.0

  def _do_use_weight_decay(self, param_name):
    """Tells whether to decay."""
    return bool(self.weight_decay_rate) and not self._is_excluded(param_name)

  def _is_excluded(self, param_name):
    """Tells whether a pattern of `exclude_from_weight_decay` matches anywhere in the name."""
    return any(re.search(pattern, param_name) for pattern in self.exclude_from_weight_decay)

  def _log_what_decays(self, names):
    decayed = sum(self._do_use_weight_decay(name) for name in names)
    logging.info(
      "%s: %d variables, %d with weight decay %g.",
      type(self).__name__,
      len(names),
      decayed,
      self.weight_decay_rate,
    )


class LambOptimizer(AdamWeightDecayOptimizer):
  """Layer-wise adaptive rates for large batches (arXiv:1904.00962), on the same slots.

  The Adam update of each variable is scaled to the norm of the variable, but for those that are
  excluded from weight decay (biases, LayerNorm). As in google-research/albert, all others are also
  scaled where `weight_decay_rate` is 0.
  """

  _update_of = staticmethod(_lamb_update)


def _assign(variable, value):
  return tf.raw_ops.AssignVariableOp(resource=variable.handle, value=value)


def _name_of(variable) -> str:
  """Returns the store's name of a variable; a name is returned unchanged."""
  return variable if isinstance(variable, str) else variable.name.split(":")[0]


_OPTIMIZERS = {"adamw": AdamWeightDecayOptimizer, "lamb": LambOptimizer}
