"""The loop around a model: train, evaluate, predict, and take up again where a run stopped.

`Estimator(model_fn, config, params)` keeps the shape it had in TensorFlow 1, on `tf.function` and
`tf.distribute`. It knows nothing of BERT:

  def model_fn(features, labels, mode, params):
    ...
    return EstimatorSpec(mode, loss=loss, train_op=create_optimizer(loss, ...))

  estimator = Estimator(model_fn, RunConfig(model_dir="out"), {"train_batch_size": 32})
  estimator.train(input_fn, max_steps=100)
  estimator.evaluate(eval_input_fn)

Where the values of the variables come from, in this order:

1. a checkpoint in `model_dir` is resumed: weights, optimizer slots, step, data position, seed;
2. else `EstimatorSpec.init_checkpoint` initialises by name, and says what it found;
3. else they are random, which is said loudly.

A run that was stopped and resumed ends, on CPU, with the same bits as one that never stopped. What
is not a variable (see `training_loop.RunState`) lies in a sidecar of each checkpoint.
"""

import contextlib
import dataclasses
import io
import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from absl import logging
from tensorflow.python.framework import ops

from bert.checkpoints import checkpoint
from bert.io import atomic_files
from bert.model.variables import VariableStore, get_global_step, random_stream, use_store
from bert.training import distribution, loss_scaling, resumption
from bert.training.gradient_accumulation import accumulate
from bert.training.resumption import ResumeMismatchError, RunState
from bert.training.training_loop import (
  EXIT_CODE_SIGTERM,
  EventLog,
  Reported,
  Training,
  TrainingDivergedError,
  has_lost_patience,
)

__all__ = [
  "EXIT_CODE_SIGTERM",
  "Estimator",
  "EstimatorSpec",
  "EvalSpec",
  "ModeKeys",
  "ResumeMismatchError",
  "RunConfig",
  "TrainingDivergedError",
]


class ModeKeys:
  """What a model is built for; the values are those of TensorFlow 1."""

  TRAIN = "train"
  EVAL = "eval"
  PREDICT = "infer"


@dataclasses.dataclass
class EstimatorSpec:
  """What a model_fn returns.

  Attributes:
    mode: one of `ModeKeys`.
    predictions: name -> tensor `[B, ...]`; what `predict` deals out example by example.
    loss: float `[]`, mean over the batch; needed to train and to evaluate.
    train_op: gradients and their application, see `optimization.create_optimizer`.
    eval_metrics: `(metric_fn, {name: tensor [B, ...]})`. The tensors of all batches are joined
      along the first axis (other axes padded with zeros to the longest) and `metric_fn(**arrays)`
      is called once on NumPy arrays; it returns name -> number (or array or text, only logged).
    init_checkpoint: where variables start when `model_dir` holds no checkpoint.
    summaries: name -> scalar tensor, written beside the loss in training. What takes time is given
      as a function that returns the tensor: it is called in a branch of the graph that runs only
      on steps whose values are written or shown.
    progress: names of summaries (or `learning_rate`) that lines of progress show, too.
    rates: name of a speed -> name of the summary that says how much of it an example has. With
      `{"tokens/sec": "tokens_per_example"}` tokens per second are written and shown.
  """

  mode: str
  predictions: dict[str, tf.Tensor] | tf.Tensor | None = None
  loss: tf.Tensor | None = None
  train_op: Any = None
  eval_metrics: tuple[Callable[..., dict], dict[str, tf.Tensor]] | None = None
  init_checkpoint: str | None = None
  summaries: dict[str, tf.Tensor | Callable[[], tf.Tensor]] | None = None
  progress: Sequence[str] = ()
  rates: dict[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class RunConfig:
  """How to run, as opposed to what.

  Attributes:
    model_dir: folder of checkpoints and event files.
    seed: governs initial values, dropout and (through `params["seed"]`) the order of the data.
    save_checkpoints_steps: a checkpoint each so many steps, and at step 0 and the end.
    keep_checkpoint_max: so many of the newest checkpoints stay.
    save_summary_steps: TensorBoard scalars each so many steps.
    log_every_steps: progress lines each so many steps, where there is no progress bar.
    steps_per_loop: steps per call from Python; more saves a little time per step, changes nothing.
    gradient_accumulation_steps: each batch is taken in so many equal parts, one after another, to
      save memory.
    strategy: `tf.distribute` strategy; None for one device.
    fingerprint: JSON-able facts that have to be equal to resume (model shape, vocabulary, labels).
    informative: JSON-able facts whose change is only logged (rate, epochs, batch size).
    show_progress: a progress bar instead of lines; None: when standard error is a terminal.
  """

  model_dir: str
  seed: int = 12345
  save_checkpoints_steps: int = 1000
  keep_checkpoint_max: int = 5
  save_summary_steps: int = 100
  log_every_steps: int = 100
  steps_per_loop: int = 1
  gradient_accumulation_steps: int = 1
  strategy: tf.distribute.Strategy | None = None
  fingerprint: dict[str, Any] = dataclasses.field(default_factory=dict)
  informative: dict[str, Any] = dataclasses.field(default_factory=dict)
  show_progress: bool | None = None

  def __post_init__(self):
    for name in (
      "save_checkpoints_steps",
      "keep_checkpoint_max",
      "save_summary_steps",
      "log_every_steps",
      "steps_per_loop",
      "gradient_accumulation_steps",
    ):
      if getattr(self, name) < 1:
        raise ValueError(f"{name} must be at least 1, but is {getattr(self, name)}.")


@dataclasses.dataclass(frozen=True)
class EvalSpec:
  """Evaluation in the middle of training.

  Attributes:
    input_fn: the evaluation data.
    every_steps: evaluate each so many steps, and at the end.
    metric: the result that decides which checkpoint is best.
    higher_is_better: whether more of `metric` is better.
    patience: stop after so many evaluations in a row without improvement; None: never.
    keep_best: save the best weights under `model_dir/best`.
    steps: at most so many batches each time; None for all.
  """

  input_fn: Callable[[dict], tf.data.Dataset]
  every_steps: int
  metric: str = "eval_accuracy"
  higher_is_better: bool = True
  patience: int | None = None
  keep_best: bool = True
  steps: int | None = None

  def __post_init__(self):
    for name in ("every_steps", "patience", "steps"):
      value = getattr(self, name)
      if value is not None and value < 1:
        raise ValueError(f"EvalSpec.{name} must be at least 1, but is {value}.")


class Estimator:
  """Trains, evaluates and predicts with one model.

  Attributes:
    config: the `RunConfig`.
    params: what `model_fn` and every input_fn receive. `train_batch_size`, `eval_batch_size` and
      `predict_batch_size` reach them as `batch_size`.
    store: the `VariableStore` that holds the model's variables once one of the modes was built.
  """

  def __init__(
    self,
    model_fn: Callable[..., EstimatorSpec],
    config: RunConfig,
    params: dict[str, Any] | None = None,
  ):
    self.config = config
    self.params = dict(params or {})
    self.store = VariableStore(config.seed)
    self._model_fn = model_fn
    self._strategy = config.strategy or tf.distribute.get_strategy()
    self._seed = config.seed
    self.steps_per_loop = self._steps_per_loop()
    self._functions: dict[str, Any] = {}
    self._is_filled = False  # Whether variables hold anything but their initial values.
    self._init_checkpoint: str | None = None
    self._metric_fn: Callable[..., dict] | None = None
    self.reported = Reported()

  # -------------------------------------------------------------------------------------------
  # The three verbs.

  def train(self, input_fn, max_steps: int, eval_spec: EvalSpec | None = None) -> "Estimator":
    """Trains until `global_step` is `max_steps`, from wherever `model_dir` stands.

    Args:
      input_fn: `input_fn(params)` returns a dataset of batches. `params["skip_examples"]` says how
        many examples the run has consumed: the dataset has to begin after them.
      max_steps: steps of the whole run, those before a resumption included.
      eval_spec: evaluates, keeps the best weights and stops early on the way.

    Returns:
      This estimator.

    Raises:
      ResumeMismatchError: `model_dir` holds a checkpoint of another model or task.
      TrainingDivergedError: a loss or a gradient is not finite; the last checkpoint before it
        stays, and the batch is saved beside it.
      atomic_files.FolderInUseError: another process trains in `model_dir`.
      distribution.WorkerLostError: another process of this job has died.
      ValueError: the data or an option is bad.
    """
    if max_steps <= 0:
      raise ValueError(f"Must specify max_steps > 0, given: {max_steps}")
    self._check_batch_size()
    with self._held_model_dir():
      self._train(input_fn, max_steps, eval_spec)
    return self

  def _train(self, input_fn, max_steps: int, eval_spec: EvalSpec | None) -> None:
    """See `train`; the arguments are checked, and `model_dir` is ours alone."""
    newest = self.latest_checkpoint()
    step, state = self._saved_state(newest)
    self._check_workers(max_steps, step)
    self._clean(newest)
    if step >= max_steps:
      logging.info("Skipping training since max_steps has already saved.")
      return
    if has_lost_patience(state, eval_spec):
      logging.info("Skipping training since it has stopped early, at step %d.", step)
      return
    self._seed = state.seed
    dataset, element_spec = self._dataset(input_fn, ModeKeys.TRAIN, state.examples)
    with _clear_data_errors(input_fn):
      iterator = iter(dataset)
      run_steps = self._build_training(iterator, element_spec, is_new=newest is None)
      if newest:
        self._resume(newest)
      else:
        self._initialise()
        self.save(0, state)
      Training(self, run_steps, iterator, step, state, max_steps, eval_spec, input_fn).run()

  def evaluate(
    self,
    input_fn,
    steps: int | None = None,
    checkpoint_path: str | None = None,
    name: str | None = None,
  ) -> dict[str, Any]:
    """Evaluates on all of the data.

    Args:
      input_fn: `input_fn(params)` returns a finite dataset of batches.
      steps: at most so many batches; None for all.
      checkpoint_path: what to evaluate; the newest in `model_dir` by default.
      name: tells several evaluations apart in TensorBoard (`model_dir/eval_<name>`).

    Returns:
      What `metric_fn` returned, and `loss` (the mean over batches of the batch's mean, as in the
      original) and `global_step`.

    Raises:
      ValueError: the data are bad or empty, or model_fn returned no loss.
    """
    dataset, element_spec = self._dataset(input_fn, ModeKeys.EVAL)
    path = checkpoint_path or self.latest_checkpoint()
    with _clear_data_errors(input_fn):
      step_fn = self._build_inference(ModeKeys.EVAL, element_spec, dataset, is_new=path is None)
      self._load(path)
      return self._evaluate(step_fn, dataset, steps, name)

  def predict(self, input_fn, checkpoint_path: str | None = None) -> Iterator[dict[str, Any]]:
    """Yields one dict of NumPy values for each example, in the order of the data.

    Args:
      input_fn: `input_fn(params)` returns a finite dataset of batches.
      checkpoint_path: what to predict with; the newest in `model_dir` by default.
    """
    dataset, element_spec = self._dataset(input_fn, ModeKeys.PREDICT)
    path = checkpoint_path or self.latest_checkpoint()
    with _clear_data_errors(input_fn):
      step_fn = self._build_inference(ModeKeys.PREDICT, element_spec, dataset, is_new=path is None)
      self._load(path)
      for batch in dataset:
        replicas = self._strategy.experimental_local_results(step_fn(batch))
        for row in distribution.gather([_row_of(replica) for replica in replicas]):
          arrays = _arrays_of(row)
          for i in range(int(row["examples"])):
            yield {name: array[i] for name, array in arrays.items()}

  def latest_checkpoint(self) -> str | None:
    """Prefix of the newest complete checkpoint in `model_dir`."""
    return checkpoint.latest(self.config.model_dir)

  def get_variable_names(self) -> list[str]:
    """Names in the newest checkpoint, or of the variables built so far if there is none."""
    newest = self.latest_checkpoint()
    return list(checkpoint.names_and_shapes(newest) if newest else self.store.variables)

  def get_variable_value(self, name: str) -> np.ndarray:
    """Value in the newest checkpoint, or of the variable itself if there is none."""
    newest = self.latest_checkpoint()
    return tf.train.load_variable(newest, name) if newest else self.store.variables[name].numpy()

  def _steps_per_loop(self) -> int:
    """Several replicas return to Python after each step, except on TPUs.

    A collective operation in a loop keeps the shape it first had; batches differ in length.
    """
    is_tpu = isinstance(self._strategy, tf.distribute.TPUStrategy)
    return self.config.steps_per_loop if self._strategy.num_replicas_in_sync == 1 or is_tpu else 1

  # -------------------------------------------------------------------------------------------
  # Data.

  def _input_params(self, mode: str, skip_examples: int = 0) -> dict[str, Any]:
    prefix = {ModeKeys.TRAIN: "train", ModeKeys.EVAL: "eval", ModeKeys.PREDICT: "predict"}[mode]
    params = {**self.params, "seed": self._seed, "skip_examples": skip_examples}
    if f"{prefix}_batch_size" in params:
      params["batch_size"] = params[f"{prefix}_batch_size"]
    return params

  def _dataset(self, input_fn, mode: str, skip_examples: int = 0):
    dataset = input_fn(self._input_params(mode, skip_examples))
    return distribution.distribute_dataset(self._strategy, dataset), dataset.element_spec

  def batch_after(self, input_fn, examples: int, batches: int):
    """A training batch once more, for people to look at: it depends on seed and position alone.

    Args:
      input_fn: of the training.
      examples: how many the run had consumed at some step.
      batches: how many batches after that one.

    Returns:
      Nested arrays; all of the batch, however many replicas share it.
    """
    dataset = input_fn(self._input_params(ModeKeys.TRAIN, examples))
    batch = next(itertools.islice(iter(dataset), batches, None))
    return tf.nest.map_structure(lambda tensor: tensor.numpy(), batch)

  def _check_batch_size(self):
    """A batch has to divide into replicas and micro-batches: else their means weigh unequally."""
    batch_size = self.params.get("train_batch_size")
    replicas, micro = self._strategy.num_replicas_in_sync, self.config.gradient_accumulation_steps
    if batch_size is not None and batch_size % (replicas * micro):
      raise ValueError(
        f"train_batch_size={batch_size} does not divide into {replicas} replica(s) times "
        f"{micro} gradient accumulation step(s)."
      )

  @contextlib.contextmanager
  def _held_model_dir(self):
    """Makes `model_dir`, and keeps a second run out of it. The chief holds it for its workers."""
    if not distribution.is_chief():
      yield
      return
    os.makedirs(self.config.model_dir, exist_ok=True)
    with atomic_files.hold_folder(self.config.model_dir):
      yield

  def _check_workers(self, max_steps: int, step: int) -> None:
    """Refuses workers that were started with other flags, or do not see the chief's checkpoint."""
    facts = {
      "the step to resume from": step,
      "max_steps": max_steps,
      "batch size": self.params.get("train_batch_size"),
      "fingerprint": self.config.fingerprint,
      "informative": self.config.informative,
    }
    distribution.check_equal({**facts, "seed": self.config.seed})

  # -------------------------------------------------------------------------------------------
  # Graphs. One trace per mode creates the variables and compiles the step.

  def _call_model(self, batch, mode: str) -> EstimatorSpec:
    features, labels = batch if isinstance(batch, tuple) else (batch, None)
    # A loss that is a weighted mean has to know whether it sees the batch in parts.
    parts = self.config.gradient_accumulation_steps if mode == ModeKeys.TRAIN else 1
    params = {**self.params, "gradient_accumulation_steps": parts}
    spec = self._model_fn(features, labels, mode, params)
    if mode != ModeKeys.PREDICT and spec.loss is None:
      raise ValueError(f"model_fn returned no loss for mode {mode!r}.")
    if mode == ModeKeys.TRAIN and spec.train_op is None:
      raise ValueError("model_fn returned no train_op for mode 'train'.")
    self._init_checkpoint = spec.init_checkpoint
    return spec

  def _build_training(self, iterator, element_spec, is_new: bool):
    """Returns `run_steps(iterator, count, is_told)`, see `_run_steps`."""

    def trial(batch):
      return self._replica_step(batch, tf.constant(True))

    self._prepare_variables(trial, element_spec, is_new)
    # Tracing creates the variables and runs nothing, so they can be filled before the first step.
    count, is_told = tf.constant(1, tf.int64), tf.constant(True)
    return self._traced(
      ModeKeys.TRAIN, self._run_steps, iterator.element_spec, iterator, count, is_told
    )

  def _build_inference(self, mode: str, element_spec, dataset, is_new: bool = False):
    """Returns `step(batch)` -> dict of the batch's size, its loss and its arrays, per replica."""

    def step(batch):
      return self._inference_step(batch, mode)

    self._prepare_variables(step, element_spec, is_new)
    # Traced with the dataset's own spec, batches of any length share this one function.
    return self._traced(
      mode,
      lambda batch: self._strategy.run(step, args=(batch,)),
      dataset.element_spec,
      dataset.element_spec,
    )

  def _traced(self, mode: str, function, element_spec, *args):
    """The compiled function of a mode; traced again only for data of another type."""
    if mode not in self._functions or self._functions[mode][0] != element_spec:
      # Told that a call creates variables, `tf.function` would trace it twice.
      with tf.variable_creator_scope(_create_unlifted), _custom_gradients_forgotten():
        traced = tf.function(function, autograph=False).get_concrete_function(*args)
      self._functions[mode] = element_spec, traced
    return self._functions[mode][1]

  def _prepare_variables(self, replica_step, element_spec, is_new: bool) -> None:
    """Before the trace that creates variables: forgets old ones, and sees to those of a strategy.

    Replicas trace in threads that take turns, and none of them could create a variable alone. So
    what a trial trace on one device creates is copied into variables of the strategy.
    """
    if is_new and self._is_filled:
      self.store, self._functions = VariableStore(self.config.seed), {}
      self._is_filled = False
    if self.config.strategy is None:
      return
    store, self.store = self.store, VariableStore(self.config.seed)
    try:
      with _custom_gradients_forgotten():
        tf.function(replica_step, autograph=False).get_concrete_function(element_spec)
    finally:
      trial, self.store = self.store, store
    with self._strategy.scope():
      for name, variable in trial.variables.items():
        if name not in store.variables:
          store.variables[name] = tf.Variable(
            variable.read_value(),
            trainable=variable.trainable,
            name=name,
            # All replicas apply the same averaged gradient, so any replica's value is the value.
            aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA,
          )

  def _run_steps(self, iterator, count, is_told):
    """`count` training steps; with `steps_per_loop` 1 without a loop in the graph.

    Args:
      iterator: over batches.
      count: int64 `[]`.
      is_told: bool `[]`, whether all scalars of the last step are wanted, the costly ones, too.

    Returns:
      float32 `[n]` scalars of the last step, int64 `[]` examples, float64 `[rates]` amounts of
      what has a rate in these examples, and int64 `[]` the first bad step or -1.
    """
    if self.steps_per_loop == 1:
      return self._step(next(iterator), is_told)

    def body(done, scalars, examples, amounts, bad_step):
      del scalars
      step = self._step(next(iterator), is_told & tf.equal(done + 1, count))
      scalars, more_examples, more_amounts, bad_step = step
      return done + 1, scalars, examples + more_examples, amounts + more_amounts, bad_step

    zero, none = tf.constant(0, tf.int64), tf.constant(-1, tf.int64)
    vector = tf.TensorShape([None])
    _, *outputs = tf.while_loop(
      lambda done, scalars, examples, amounts, bad_step: (done < count) & (bad_step < 0),
      body,
      # How many amounts there are is not known yet: one zero can be added to any number of them.
      [zero, tf.zeros([0]), zero, tf.zeros([1], tf.float64), none],
      shape_invariants=[zero.shape, vector, zero.shape, vector, none.shape],
      parallel_iterations=1,
    )
    return outputs

  def _step(self, batch, is_told):
    """One step on all replicas: scalars, examples, amounts, and bad step or -1."""
    scalars, examples, step, is_sound = self._strategy.run(
      self._replica_step, args=(batch, is_told)
    )
    if self._strategy.num_replicas_in_sync > 1:
      scalars = self._strategy.reduce(tf.distribute.ReduceOp.MEAN, scalars, axis=None)
      examples = self._strategy.reduce(tf.distribute.ReduceOp.SUM, examples, axis=None)
    # All replicas apply the same gradients and count the same steps.
    step, is_sound = (self._strategy.experimental_local_results(x)[0] for x in (step, is_sound))
    is_good = tf.math.is_finite(scalars[0]) & is_sound
    bad_step = tf.where(is_good, tf.constant(-1, tf.int64), step + 1)
    per_example = tf.gather(scalars, self.reported.rate_indices())
    amounts = tf.cast(per_example, tf.float64) * tf.cast(examples, tf.float64)
    return scalars, examples, amounts, bad_step

  def _replica_step(self, batch, is_told):
    """Forward, backward and update on one replica. Runs inside a trace, in the replica's thread."""
    with use_store(self.store):
      step = tf.identity(get_global_step())
      train_op, gradients, scalars = accumulate(
        lambda part_of_batch, part: self._forward(part_of_batch, part, step, is_told),
        batch,
        self.config.gradient_accumulation_steps,
      )
      gradients = _mean_over_replicas(gradients)
      # Without data there is no step: what does not read the batch, such as the count of steps or
      # the decay of weights, would otherwise run in the very call that finds the data at an end.
      with tf.control_dependencies(tf.nest.flatten(batch)):
        applied = train_op.apply(gradients)
    is_sound, told = applied or (tf.constant(True), {})
    if told:
      # Each replica's thread comes by here, and names them once more.
      names = list(dict.fromkeys([*self.reported.scalars, *told]))
      self.reported = dataclasses.replace(self.reported, scalars=names)
      scalars = tf.concat([scalars, tf.stack(list(told.values()))], axis=0)
    return scalars, _batch_size(batch), step, is_sound

  def _forward(self, batch, part, step, is_told):
    """The model on one part of a replica's batch: its train_op, and float32 `[n]` scalars."""
    context = tf.distribute.get_replica_context()
    replica = tf.cast(context.replica_id_in_sync_group, tf.int64)
    # Each replica and each part draws its own dropout bits; the first of all those of the seed.
    stream = replica * self.config.gradient_accumulation_steps + tf.cast(part, tf.int64)
    with random_stream(self._seed + stream * 1_000_003, step):
      spec = self._call_model(batch, ModeKeys.TRAIN)
      named = {"loss": spec.loss, "learning_rate": spec.train_op.learning_rate}
      named.update(spec.summaries or {})
      named = {
        name: _only_if(is_told, value) if callable(value) else value
        for name, value in named.items()
      }
    self.reported = Reported(list(named), list(spec.progress), dict(spec.rates))
    scalars = tf.stack([tf.cast(value, tf.float32) for value in named.values()])
    return spec.train_op, scalars

  def _inference_step(self, batch, mode: str):
    with use_store(self.store):
      get_global_step()
      spec = self._call_model(batch, mode)
    outputs = {"examples": _batch_size(batch)}
    if mode == ModeKeys.PREDICT:
      is_dict = isinstance(spec.predictions, dict)
      return {**outputs, "arrays": spec.predictions if is_dict else {"output": spec.predictions}}
    self._metric_fn, arrays = spec.eval_metrics or (None, {})
    return {**outputs, "arrays": arrays, "loss": spec.loss}

  # -------------------------------------------------------------------------------------------
  # Values of the variables.

  def _saved_state(self, prefix: str | None) -> tuple[int, RunState]:
    """Step and run state of a checkpoint, or those of a new run."""
    if prefix is None:
      return 0, RunState(seed=self.config.seed)
    resumption.check_same_run(prefix, self.config.fingerprint)
    resumption.log_other_settings(prefix, self.config.informative)
    batch_size = self.params.get("train_batch_size", 0)
    return resumption.saved_run(prefix, batch_size, self.config.seed)

  def _weights(self) -> dict[str, tf.Variable]:
    """Variables of the model itself: neither optimizer slots nor the step."""
    return {
      name: variable
      for name, variable in self.store.variables.items()
      if not checkpoint.is_training_state(name)
    }

  def _resume(self, prefix: str) -> None:
    """Restores every variable; a checkpoint of weights alone gets new slots, with a warning."""
    variables = dict(self.store.variables)
    saved = checkpoint.names_and_shapes(prefix)
    slots = [n for n in variables if checkpoint.is_slot(n)]
    missing = [name for name in slots if name not in saved]
    if missing and len(missing) < len(slots):
      raise ResumeMismatchError(
        f"{prefix} has optimizer slots for some variables only. Missing: "
        f"{checkpoint.abbreviate(missing)}. It was trained with other variables frozen, or is "
        "damaged. Choose another output_dir and give this checkpoint as init_checkpoint."
      )
    if missing:
      logging.warning("%s holds no optimizer slots: Adam starts anew from these weights.", prefix)
    # A run that did not compute in float16 had no loss scale.
    missing += [n for n in loss_scaling.INITIAL_VALUES if n in variables and n not in saved]
    for name in missing:
      variable = variables.pop(name)
      value = tf.constant(loss_scaling.INITIAL_VALUES.get(name, 0), variable.dtype)
      variable.assign(tf.fill(variable.shape, value))
    checkpoint.restore(prefix, variables)
    self._is_filled = True
    logging.info("Resumed from %s.", prefix)

  def _initialise(self) -> None:
    """Fills the variables of a new run."""
    if self._init_checkpoint:
      self._load_weights(checkpoint.find_checkpoint(self._init_checkpoint))
    else:
      logging.warning(
        "NO CHECKPOINT in %s, and no init_checkpoint was given: all %d variables are RANDOM.",
        self.config.model_dir,
        len(self._weights()),
      )

  def _load_weights(self, prefix: str) -> None:
    report = checkpoint.init_from_checkpoint(prefix, self._weights())
    self._is_filled = True
    logging.info("%s", report.summary())
    if report.missing:
      logging.warning("NOT IN %s, hence RANDOM: %s", prefix, ", ".join(report.missing))

  def _load(self, path: str | None) -> None:
    """Fills the variables for evaluation or prediction."""
    if path is None:
      self._initialise()
      return
    prefix = checkpoint.find_checkpoint(path)
    # A checkpoint of this run holds all of the model; a random head would pass for a trained one.
    checkpoint.restore(prefix, self._weights())
    self._is_filled = True
    self.store.variables["global_step"].assign(resumption.step_of(prefix))

  def save(self, step: int, state: RunState) -> None:
    """Saves all variables and `state` as the checkpoint of `step`."""
    config = self.config
    prefix = distribution.on_chief(
      checkpoint.save,
      config.model_dir,
      step,
      self.store.variables,
      self._sidecar(state),
      keep=config.keep_checkpoint_max,
    )
    logging.info("Saved %s.", prefix)

  def _clean(self, newest: str | None) -> None:
    """Removes what a killed run of this folder has left."""
    if not distribution.is_chief():
      return
    best = checkpoint.latest(os.path.join(self.config.model_dir, "best"))
    for prefix, keep in ((newest, self.config.keep_checkpoint_max), (best, 1)):
      if prefix:
        checkpoint.clean(prefix, keep)

  def save_batch(self, step: int, batch) -> str:
    """Saves the batch of a step as `model_dir/diverged_batch-STEP.npz`, and returns its path.

    One array for each feature under its name; `np.load(path, allow_pickle=False)` reads them.
    """
    path = os.path.join(self.config.model_dir, f"diverged_batch-{step}.npz")
    buffer = io.BytesIO()
    np.savez(buffer, **_named_arrays(batch))
    atomic_files.write_bytes(path, buffer.getvalue())
    return path

  def save_best(self, step: int, state: RunState) -> None:
    """Saves the weights, without optimizer slots, as the only checkpoint in `model_dir/best`."""
    tensors = {**self._weights(), "global_step": self.store.variables["global_step"]}
    directory = os.path.join(self.config.model_dir, "best")
    prefix = distribution.on_chief(
      checkpoint.save, directory, step, tensors, self._sidecar(state), keep=1
    )
    logging.info("Best so far: %s.", prefix)

  def _sidecar(self, state: RunState) -> dict[str, Any]:
    return {
      "run": dataclasses.asdict(state),
      "fingerprint": self.config.fingerprint,
      "informative": self.config.informative,
    }

  # -------------------------------------------------------------------------------------------
  # Evaluation on the variables as they are.

  def _evaluate(self, step_fn, dataset, steps, name) -> dict[str, Any]:
    losses, collected = [], []
    for batch in itertools.islice(iter(dataset), steps):
      replicas = self._strategy.experimental_local_results(step_fn(batch))
      rows = distribution.gather([_row_of(replica) for replica in replicas])
      rows = [r for r in rows if int(r["examples"])]  # A short batch may leave one idle.
      losses.append(
        np.average([float(r["loss"]) for r in rows], weights=[int(r["examples"]) for r in rows])
      )
      collected += [_arrays_of(row) for row in rows]
    if not losses:
      raise ValueError("There is nothing to evaluate: the input_fn gave no batch.")
    results = {}
    if self._metric_fn:
      arrays = {k: _concatenate([c[k] for c in collected]) for k in collected[0]}
      results = {k: _plain(value) for k, value in self._metric_fn(**arrays).items()}
    results["loss"] = float(np.mean(losses))
    results["global_step"] = int(self.store.variables["global_step"].numpy())
    self._write_summaries("eval" + (f"_{name}" if name else ""), results)
    return results

  def _write_summaries(self, folder: str, results: dict[str, Any]) -> None:
    with contextlib.closing(EventLog(os.path.join(self.config.model_dir, folder))) as events:
      scalars = {name: value for name, value in results.items() if isinstance(value, float)}
      events.write(results["global_step"], scalars)

  def evaluate_now(self, input_fn, steps: int | None = None) -> dict[str, Any]:
    """Evaluates in the middle of training, on the variables as they are; see `evaluate`."""
    dataset, element_spec = self._dataset(input_fn, ModeKeys.EVAL)
    with _clear_data_errors(input_fn):
      step_fn = self._build_inference(ModeKeys.EVAL, element_spec, dataset)
      return self._evaluate(step_fn, dataset, steps, None)


# ---------------------------------------------------------------------------------------------
# Helpers without state.


def _mean_over_replicas(gradients: list) -> list:
  """Averages gradients over all replicas of a step; None stays None."""
  context = tf.distribute.get_replica_context()
  if context.num_replicas_in_sync == 1:
    return gradients
  # The gradient of a variable that serves twice is a sum without a device, which workers refuse to
  # exchange; a copy has one.
  present = [tf.identity(gradient) for gradient in gradients if gradient is not None]
  averaged = iter(context.all_reduce(tf.distribute.ReduceOp.MEAN, present))
  return [None if gradient is None else next(averaged) for gradient in gradients]


def _only_if(is_told, function):
  """float32 `[]`: what a function of the graph returns, or NaN where it is not wanted."""
  return tf.cond(is_told, lambda: tf.cast(function(), tf.float32), lambda: tf.constant(np.nan))


def _create_unlifted(next_creator, **kwargs):
  return next_creator(**{**kwargs, "experimental_enable_variable_lifting": False})


@contextlib.contextmanager
def _custom_gradients_forgotten():
  """Lets TensorFlow forget the custom gradients that a trace within the block registers.

  It keeps them, and through them the whole graph, as long as the process lives: each training would
  leave one behind. Nobody asks for them any more, as the trace itself has taken its gradients.
  """
  registry = ops.gradient_registry._registry
  before = set(registry)
  try:
    yield
  finally:
    for name in set(registry) - before:
      if name.startswith("CustomGradient-"):
        del registry[name]


@contextlib.contextmanager
def _clear_data_errors(input_fn):
  """Turns TensorFlow's errors about the data into what `input_fn.explain_error` makes of them."""
  try:
    with distribution.clear_errors():
      yield
  except tf.errors.OpError as error:
    explain = getattr(input_fn, "explain_error", lambda error: None)
    clear = explain(error)
    if clear is None:
      raise
    raise clear from None


_ARRAY = "array:"


def _row_of(outputs: dict[str, Any]) -> dict[str, np.ndarray]:
  """What a replica computed on a batch, on one level: its size, its loss, and its arrays."""
  row = {name: value.numpy() for name, value in outputs.items() if name != "arrays"}
  return {**row, **{_ARRAY + name: value.numpy() for name, value in outputs["arrays"].items()}}


def _arrays_of(row: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
  """The arrays that went into `_row_of`.

  Example:
    >>> _arrays_of({"examples": 2, "array:logits": [0.1, 0.2]})
    {'logits': [0.1, 0.2]}
  """
  return {n.removeprefix(_ARRAY): array for n, array in row.items() if n.startswith(_ARRAY)}


def _named_arrays(batch) -> dict[str, np.ndarray]:
  """The arrays of a batch by their place in it.

  Example:
    >>> sorted(_named_arrays(({"ids": 1, "mask": 2}, 3)))
    ['0/ids', '0/mask', '1']
  """
  if isinstance(batch, dict):
    parts = batch.items()
  elif isinstance(batch, tuple):
    parts = enumerate(batch)
  else:
    return {"": distribution.without_objects(batch)}
  return {
    f"{name}/{rest}".strip("/"): array
    for name, part in parts
    for rest, array in _named_arrays(part).items()
  }


def _batch_size(batch) -> tf.Tensor:
  """int64 `[]`: first dimension of any of the features."""
  return tf.shape(tf.nest.flatten(batch)[0], out_type=tf.int64)[0]


def _concatenate(arrays: list[np.ndarray]) -> np.ndarray:
  """Joins arrays along the first axis, other axes padded with zeros to the longest.

  Example:
    >>> _concatenate([np.array([[1, 2]]), np.array([[3, 4, 5]])]).tolist()
    [[1, 2, 0], [3, 4, 5]]
  """
  arrays = [np.atleast_1d(array) for array in arrays]
  longest = np.max([array.shape[1:] for array in arrays], axis=0)
  if longest.size:
    arrays = [
      np.pad(a, [(0, 0), *((0, int(n) - m) for n, m in zip(longest, a.shape[1:], strict=True))])
      for a in arrays
    ]
  return np.concatenate(arrays)


def _plain(value):
  """Python's float for every kind of number; anything else as it is."""
  if isinstance(value, (int, float, np.number)) or (
    isinstance(value, np.ndarray) and not value.ndim
  ):
    return float(value)
  return value
