"""The graphs of a model: training steps, one or several in a loop, and one batch of inference.

One trace per mode creates the variables and compiles the step. Batches of any length share it.
"""

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import tensorflow as tf
from absl import logging
from tensorflow.python.framework import ops

from bert.model.variables import (
  VariableStore,
  get_global_step,
  random_stream,
  traced_once,
  use_store,
)
from bert.training.gradient_accumulation import accumulate
from bert.training.hardware import without_collections
from bert.training.run_config import EstimatorSpec, ModeKeys, RunConfig


@dataclasses.dataclass(frozen=True)
class Model:
  """A model_fn and everything that its graphs depend on."""

  model_fn: Callable[..., EstimatorSpec]  # of the `Estimator`
  config: RunConfig  # how it runs
  params: dict[str, Any]  # passed to model_fn
  strategy: tf.distribute.Strategy  # that of the config, or TensorFlow's for one device
  store: VariableStore  # holds the variables

  @property
  def steps_per_loop(self) -> int:
    """Decides how to call steps: several replicas return to Python after each, except on TPUs.

    A collective operation in a loop keeps the shape it first had; batches differ in length.
    """
    is_tpu = isinstance(self.strategy, tf.distribute.TPUStrategy)
    return self.config.steps_per_loop if self.strategy.num_replicas_in_sync == 1 or is_tpu else 1

  def call(self, batch, mode: str) -> EstimatorSpec:
    """Calls model_fn on the batch of one replica, or on a part of it."""
    features, labels = batch if isinstance(batch, tuple) else (batch, None)
    # A loss that is a weighted mean depends on whether the batch comes in parts.
    parts = self.config.gradient_accumulation_steps if mode == ModeKeys.TRAIN else 1
    params = {**self.params, "gradient_accumulation_steps": parts}
    spec = self.model_fn(features, labels, mode, params)
    if mode != ModeKeys.PREDICT and spec.loss is None:
      raise ValueError(f"model_fn returned no loss for mode {mode!r}.")
    if mode == ModeKeys.TRAIN and spec.train_op is None:
      raise ValueError("model_fn returned no train_op for mode 'train'.")
    return spec


def log_features(element_spec) -> None:
  """Logs names and shapes of a batch's features (alone or with labels), as the original did."""
  features = element_spec[0] if isinstance(element_spec, tuple) else element_spec
  if not isinstance(features, Mapping):
    return
  logging.info("*** Features ***")
  for name in sorted(features):
    logging.info("  name = %s, shape = %s", name, features[name].shape)


@dataclasses.dataclass(frozen=True)
class Reported:
  """The scalars of a training step.

  Attributes:
    scalars: names, in the order in which a step returns the values.
    progress: names of the scalars in progress lines, beside the loss.
    rates: name of a speed -> name of the scalar that holds its amount per example.

  Raises:
    ValueError: a name is not among the scalars.
  """

  scalars: list[str] = dataclasses.field(default_factory=list)
  progress: list[str] = dataclasses.field(default_factory=list)
  rates: dict[str, str] = dataclasses.field(default_factory=dict)

  def __post_init__(self):
    unknown = [n for n in [*self.progress, *self.rates.values()] if n not in self.scalars]
    if unknown:
      raise ValueError(
        f"EstimatorSpec.progress and rates name {', '.join(map(repr, unknown))}, but the scalars "
        f"of a step are {', '.join(self.scalars)}."
      )

  def rate_indices(self) -> np.ndarray:
    """Finds the indices of the rates' scalars: int32 `[rates]`."""
    return np.array([self.scalars.index(name) for name in self.rates.values()], np.int32)


class TrainingGraph:
  """Training steps, compiled.

  Attributes:
    element_spec: type of the data it was traced for.
    init_checkpoint: that of the `EstimatorSpec`.
    reported: names of the scalars that steps return.
    steps_per_loop: maximum number of steps of one call.
    run: `run(iterator, count, with_all_scalars)` runs `count` (int64 `[]`) steps on batches of
      `iterator`. `with_all_scalars` (bool `[]`): whether to compute the costly scalars of the last
      step, too. Returns float32 `[n]` scalars of the last step, int64 `[]` examples, float64
      `[rates]` consumed amounts for each rate, and int64 `[]` the first bad step or -1.
  """

  def __init__(self, model: Model, seed: int, iterator, element_spec):
    """Traces the graph, which creates the variables that do not exist yet.

    Args:
      model: the model.
      seed: of dropout.
      iterator: over batches, distributed.
      element_spec: of the batches before they are distributed.
    """
    self._model = model
    self._seed = seed
    self.steps_per_loop = model.steps_per_loop
    self.element_spec = iterator.element_spec
    # Python values that model_fn returns, known once it is traced.
    self.init_checkpoint: str | None = None
    self.reported = Reported()

    def one_step(store, batch):
      return self._replica_step(store, batch, tf.constant(True))

    _create_for_strategy(model, one_step, element_spec)
    # Tracing runs nothing, so that variables can be filled before the first step.
    count, is_wanted = tf.constant(1, tf.int64), tf.constant(True)
    self.run = _trace(self._run_steps, iterator, count, is_wanted)

  def _run_steps(self, iterator, count, with_all_scalars):
    """See `run`; with `steps_per_loop` 1 the graph has no loop."""
    if self.steps_per_loop == 1:
      return self._step(iterator, with_all_scalars)

    def body(done, scalars, examples, amounts, bad_step):
      del scalars
      step = self._step(iterator, with_all_scalars & tf.equal(done + 1, count))
      scalars, more_examples, more_amounts, bad_step = step
      return done + 1, scalars, examples + more_examples, amounts + more_amounts, bad_step

    zero, none = tf.constant(0, tf.int64), tf.constant(-1, tf.int64)
    vector = tf.TensorShape([None])
    _, *outputs = tf.while_loop(
      lambda done, scalars, examples, amounts, bad_step: (done < count) & (bad_step < 0),
      body,
      # The number of amounts is not known yet: one zero can be added to any number of them.
      [zero, tf.zeros([0]), zero, tf.zeros([1], tf.float64), none],
      shape_invariants=[zero.shape, vector, zero.shape, vector, none.shape],
      parallel_iterations=1,
    )
    return outputs

  def _step(self, iterator, with_all_scalars):
    """Makes a step on all replicas: scalars, examples, amounts, and bad step or -1."""
    strategy = self._model.strategy
    replica_step = functools.partial(self._replica_step, self._model.store)
    scalars, examples, step, is_sound = strategy.run(
      replica_step, args=(next(iterator), with_all_scalars)
    )
    if strategy.num_replicas_in_sync > 1:
      scalars = strategy.reduce(tf.distribute.ReduceOp.MEAN, scalars, axis=None)
      examples = strategy.reduce(tf.distribute.ReduceOp.SUM, examples, axis=None)
    # All replicas apply the same gradients and count the same steps.
    step, is_sound = (strategy.experimental_local_results(x)[0] for x in (step, is_sound))
    is_good = tf.math.is_finite(scalars[0]) & is_sound
    bad_step = tf.where(is_good, tf.constant(-1, tf.int64), step + 1)
    per_example = tf.gather(scalars, self.reported.rate_indices())
    amounts = tf.cast(per_example, tf.float64) * tf.cast(examples, tf.float64)
    return scalars, examples, amounts, bad_step

  def _replica_step(self, store, batch, with_all_scalars):
    """Computes and applies gradients on one replica. Runs inside a trace, in its thread."""
    examples = batch_size(batch)
    with use_store(store):
      step = tf.identity(get_global_step())

      def forward(part_of_batch, part):
        return self._forward(part_of_batch, part, step, with_all_scalars)

      parts = self._model.config.gradient_accumulation_steps
      train_op, gradients, scalars = accumulate(forward, batch, parts)
      gradients = _mean_over_replicas(gradients)
      # Without data no step is made: operations that do not read the batch, such as the count of
      # steps or weight decay, would otherwise run in the very call that finds the data at an end.
      with tf.control_dependencies(tf.nest.flatten(batch)):
        applied = train_op.apply(gradients)
    is_sound, more = applied or (tf.constant(True), {})
    if more:
      # Runs in the thread of each replica, with equal results.
      names = list(dict.fromkeys([*self.reported.scalars, *more]))
      self.reported = dataclasses.replace(self.reported, scalars=names)
      scalars = tf.concat([scalars, tf.stack(list(more.values()))], axis=0)
    return scalars, examples, step, is_sound

  def _forward(self, batch, part, step, with_all_scalars):
    """Calls the model on a micro-batch: its train_op, and float32 `[n]` scalars."""
    context = tf.distribute.get_replica_context()
    replica = tf.cast(context.replica_id_in_sync_group, tf.int64)
    # Each replica and each part draws its own dropout bits; the first of all those of the seed.
    parts = self._model.config.gradient_accumulation_steps
    stream = replica * parts + tf.cast(part, tf.int64)
    with random_stream(self._seed + stream * 1_000_003, step):
      spec = self._model.call(batch, ModeKeys.TRAIN)
      named = {"loss": spec.loss, "learning_rate": spec.train_op.learning_rate}
      named.update(spec.summaries or {})
      named = {
        name: _only_if(with_all_scalars, value) if callable(value) else value
        for name, value in named.items()
      }
    self.init_checkpoint = spec.init_checkpoint
    self.reported = Reported(list(named), list(spec.progress), dict(spec.rates))
    scalars = tf.stack([tf.cast(value, tf.float32) for value in named.values()])
    return spec.train_op, scalars


ROW = "row:"
"""Begins the names of the arrays that are `EstimatorSpec.rows`."""


class InferenceGraph:
  """Evaluation or prediction of one batch, compiled.

  Attributes:
    element_spec: type of the data it was traced for.
    init_checkpoint: that of the `EstimatorSpec`.
    metric_fn: that of the `EstimatorSpec`, or None.
    run: `run(batch)` returns, for each replica, a dictionary of `examples` (int64 `[]`), `arrays`
      (name -> tensor `[B, ...]`) and, in evaluation, `loss`.
  """

  def __init__(self, model: Model, mode: str, dataset, element_spec):
    """Traces the graph, which creates the variables that do not exist yet.

    Args:
      model: the model.
      mode: `EVAL` or `PREDICT`.
      dataset: of batches, distributed.
      element_spec: of the batches before they are distributed.
    """
    self._model = model
    self._mode = mode
    self.element_spec = dataset.element_spec
    self.init_checkpoint: str | None = None
    self.metric_fn: Callable[..., dict] | None = None
    _create_for_strategy(model, self._replica_step, element_spec)
    step = functools.partial(self._replica_step, model.store)
    # Traced with the dataset's own spec, batches of any length share this one function.
    self.run = _trace(lambda batch: model.strategy.run(step, args=(batch,)), dataset.element_spec)

  def _replica_step(self, store, batch):
    with use_store(store):
      get_global_step()
      spec = self._model.call(batch, self._mode)
    self.init_checkpoint = spec.init_checkpoint
    outputs = {"examples": batch_size(batch)}
    if self._mode == ModeKeys.PREDICT:
      is_dict = isinstance(spec.predictions, dict)
      return {**outputs, "arrays": spec.predictions if is_dict else {"output": spec.predictions}}
    self.metric_fn, arrays = spec.eval_metrics or (None, {})
    rows = {ROW + name: tensor for name, tensor in spec.rows.items()}
    return {**outputs, "arrays": {**arrays, **rows}, "loss": spec.loss}


# ---------------------------------------------------------------------------------------------
# Tracing.


def _trace(function, *args):
  with traced_once(), _custom_gradients_forgotten(), without_collections():
    return tf.function(function, autograph=False).get_concrete_function(*args)


def _create_for_strategy(model: Model, replica_step, element_spec) -> None:
  """Creates the variables of a strategy, if the model runs on one.

  Replicas trace in threads that take turns, and none of them could create a variable alone. So a
  trial trace on one device creates variables, which are copied into variables of the strategy.
  """
  if model.config.strategy is None:
    return
  trial = VariableStore(model.config.seed)
  with _custom_gradients_forgotten():
    trial_step = tf.function(lambda batch: replica_step(trial, batch), autograph=False)
    trial_step.get_concrete_function(element_spec)
  with model.strategy.scope():
    for name, variable in trial.variables.items():
      if name not in model.store.variables:
        model.store.variables[name] = tf.Variable(
          variable.read_value(),
          trainable=variable.trainable,
          name=name,
          # All replicas apply the same averaged gradient, so any replica's value is the value.
          aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA,
        )


@contextlib.contextmanager
def _custom_gradients_forgotten() -> Iterator[None]:
  """Removes the custom gradients that a trace within the block registers in TensorFlow.

  Otherwise the registry keeps them, and through them the graph, for the life of the process: a leak
  of one graph per training. They are not needed after the trace, which has computed its gradients.
  """
  registry = ops.gradient_registry._registry
  before = set(registry)
  try:
    yield
  finally:
    for name in set(registry) - before:
      if name.startswith("CustomGradient-"):
        del registry[name]


def _mean_over_replicas(gradients: list) -> list:
  """Averages gradients over all replicas of a step; None stays None."""
  context = tf.distribute.get_replica_context()
  if context.num_replicas_in_sync == 1:
    return gradients
  # The gradient of a variable that is used twice is a sum without a device, which workers cannot
  # exchange; a copy has one.
  present = [tf.identity(gradient) for gradient in gradients if gradient is not None]
  averaged = iter(context.all_reduce(tf.distribute.ReduceOp.MEAN, present))
  return [None if gradient is None else next(averaged) for gradient in gradients]


def _only_if(is_wanted, function):
  """Calls a graph function, or returns NaN where it is not requested: float32 `[]`."""
  return tf.cond(is_wanted, lambda: tf.cast(function(), tf.float32), lambda: tf.constant(np.nan))


def batch_size(batch) -> tf.Tensor:
  """Returns the first dimension of any of the features: int64 `[]`."""
  return tf.shape(tf.nest.flatten(batch)[0], out_type=tf.int64)[0]
