"""The loop around a model: train, evaluate, predict, and resume a run where it stopped.

`Estimator(model_fn, config, params)` has the interface of TensorFlow 1, on `tf.function` and
`tf.distribute`. It is independent of BERT:

  def model_fn(features, labels, mode, params):
    ...
    return EstimatorSpec(mode, loss=loss, train_op=create_optimizer(loss, ...))

  estimator = Estimator(model_fn, RunConfig(model_dir="out"), {"train_batch_size": 32})
  estimator.train(input_fn, max_steps=100)
  estimator.evaluate(eval_input_fn)

Where the values of the variables come from, in this order:

1. a checkpoint in `model_dir` is resumed: weights, optimizer slots, step, data position, seed;
2. else `EstimatorSpec.init_checkpoint` initialises by name, and logs what it found;
3. else they are random, with a warning.

A run that was stopped and resumed ends, on CPU, with the same bits as one that never stopped. State
other than variables (see `resumption.RunState`) is stored in a sidecar of each checkpoint.
"""

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf
from absl import logging

from bert.checkpoints import finding, reading
from bert.io import atomic_files
from bert.model.variables import VariableStore
from bert.training import distribution, evaluation, resumption
from bert.training.best_checkpoint import BestCheckpointTracker
from bert.training.graphs import InferenceGraph, Model, TrainingGraph, log_features
from bert.training.model_variables import ModelVariables
from bert.training.resumption import ResumeMismatchError, RunState
from bert.training.run_config import EstimatorSpec, EvalSpec, ModeKeys, RunConfig
from bert.training.training_data import TrainingData, explained_errors
from bert.training.training_loop import EXIT_CODE_SIGTERM, Training, TrainingDivergedError

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


class Estimator:
  """Trains, evaluates and predicts with one model.

  Attributes:
    config: the `RunConfig`.
    params: passed to `model_fn` and every input_fn. `train_batch_size`, `eval_batch_size` and
      `predict_batch_size` reach them as `batch_size`; model_fn also receives
      `gradient_accumulation_steps`, the number of parts in which it sees a training batch.
    trained_steps: steps that the last call of `train` made; 0 where there was nothing left to do.
  """

  def __init__(
    self,
    model_fn: Callable[..., EstimatorSpec],
    config: RunConfig,
    params: dict[str, Any] | None = None,
  ):
    self.config = config
    self.params = dict(params or {})
    self._model_fn = model_fn
    self._strategy = config.strategy or tf.distribute.get_strategy()
    self._seed = config.seed
    self._variables = ModelVariables(config)
    self._graphs: dict[str, TrainingGraph | InferenceGraph] = {}  # by mode
    self._evaluation_logs = evaluation.EvaluationLogs()
    self.trained_steps = 0

  @property
  def store(self) -> VariableStore:
    """Returns the model's variables, once one of the modes was built."""
    return self._variables.store

  def train(self, input_fn, max_steps: int, eval_spec: EvalSpec | None = None) -> "Estimator":
    """Trains until `global_step` is `max_steps`, from the newest checkpoint of `model_dir` on.

    Args:
      input_fn: `input_fn(params)` returns a dataset of batches. `params["skip_examples"]` is the
        number of examples the run has consumed: the dataset must begin after them.
      max_steps: steps of the whole run, those before a resumption included.
      eval_spec: evaluation during training, best weights, early stopping.

    Returns:
      This estimator.

    Raises:
      ResumeMismatchError: `model_dir` holds a checkpoint of another model or task.
      TrainingDivergedError: a loss or a gradient is not finite; the last checkpoint before it
        stays, and the batch is saved beside it.
      atomic_files.FolderInUseError: another process trains in `model_dir`.
      distribution.WorkerLostError: another process of this job has died.
      out_of_memory.OutOfMemoryError: the message says what to lower.
      ValueError: the data or an option is bad.
    """
    if max_steps <= 0:
      raise ValueError(f"Must specify max_steps > 0, given: {max_steps}")
    self._check_batch_size()
    self.trained_steps = 0
    with self._held_model_dir():
      self._train(input_fn, max_steps, eval_spec)
    return self

  def _train(self, input_fn, max_steps: int, eval_spec: EvalSpec | None) -> None:
    """See `train`; called with checked arguments and with `model_dir` locked."""
    newest = self.latest_checkpoint()
    step, state = self._saved_state(newest)
    self._check_workers(max_steps, step)
    self._variables.clean(newest)
    if step >= max_steps:
      logging.info("Skipping training since max_steps has already saved.")
      return
    self._start_over(is_new=newest is None)
    variables = self._variables
    tracker = (
      BestCheckpointTracker(eval_spec, self._evaluate_now, variables.save_best)
      if eval_spec
      else None
    )
    if tracker and tracker.has_lost_patience(state):
      logging.info("Skipping training since it has stopped early, at step %d.", step)
      return
    keeps_best = eval_spec is not None and eval_spec.keep_best
    state.left_best = state.best_value is not None and not keeps_best
    self._seed = state.seed
    with explained_errors(input_fn, self._how_to_save_memory(ModeKeys.TRAIN)):
      params = self._input_params(ModeKeys.TRAIN)
      data = TrainingData(input_fn, params, state.examples, self._strategy)
      with self.store.drawing_later():
        graph = self._graph(ModeKeys.TRAIN, data.iterator, data.element_spec)
      if newest:
        variables.resume(newest)
      else:
        variables.initialise(graph.init_checkpoint, is_training=True)
      training = Training(self.config, graph, data, variables, tracker)
      training.run(step, max_steps, state, is_saved=bool(newest))
      self.trained_steps = int(variables.global_step.numpy()) - step

  def evaluate(
    self,
    input_fn,
    steps: int | None = None,
    checkpoint_path: str | None = None,
    name: str | None = None,
    on_rows: evaluation.OnRows | None = None,
  ) -> dict[str, Any]:
    """Evaluates on all of the data.

    Args:
      input_fn: `input_fn(params)` returns a finite dataset of batches.
      steps: number of batches to evaluate on; None for all.
      checkpoint_path: the checkpoint to evaluate; the newest in `model_dir` by default.
      name: separates several evaluations in TensorBoard (`model_dir/eval_<name>`).
      on_rows: see `evaluation.evaluate`.

    Returns:
      The result of `metric_fn`, and `loss` (the mean over batches of the batch's mean, as in the
      original) and `global_step`.

    Raises:
      ValueError: the data are bad or empty, or model_fn returned no loss.
    """
    with self._loaded(ModeKeys.EVAL, input_fn, checkpoint_path) as (graph, dataset):
      return self._evaluate(graph, dataset, steps, name, on_rows)

  def predict(self, input_fn, checkpoint_path: str | None = None) -> Iterator[dict[str, Any]]:
    """Yields one dict of NumPy values for each example, in the order of the data.

    Args:
      input_fn: `input_fn(params)` returns a finite dataset of batches.
      checkpoint_path: the checkpoint to predict with; the newest in `model_dir` by default.
    """
    with self._loaded(ModeKeys.PREDICT, input_fn, checkpoint_path) as (graph, dataset):
      yield from evaluation.predictions(graph, dataset, self._strategy)

  def latest_checkpoint(self) -> str | None:
    """Finds the prefix of the newest complete checkpoint in `model_dir`."""
    return finding.latest(self.config.model_dir)

  def get_variable_names(self) -> list[str]:
    """Returns names in the newest checkpoint, or else those of the variables built so far."""
    newest = self.latest_checkpoint()
    return list(reading.names_and_shapes(newest) if newest else self.store.variables)

  def get_variable_value(self, name: str) -> np.ndarray:
    """Returns a value in the newest checkpoint, or else that of the variable itself."""
    newest = self.latest_checkpoint()
    return tf.train.load_variable(newest, name) if newest else self.store.variables[name].numpy()

  # -------------------------------------------------------------------------------------------
  # Before training.

  def _check_batch_size(self) -> None:
    """Checks that replicas and micro-batches are of equal size: else means have unequal weights."""
    batch_size = self.params.get("train_batch_size")
    replicas, parts = self._strategy.num_replicas_in_sync, self.config.gradient_accumulation_steps
    if batch_size is not None and batch_size % (replicas * parts):
      raise ValueError(
        f"train_batch_size={batch_size} does not divide into {replicas} replica(s) times "
        f"{parts} gradient accumulation step(s)."
      )

  @contextlib.contextmanager
  def _held_model_dir(self) -> Iterator[None]:
    """Creates and locks `model_dir`; only the chief of a job locks it."""
    if not distribution.is_chief():
      yield
      return
    os.makedirs(self.config.model_dir, exist_ok=True)
    with atomic_files.hold_folder(self.config.model_dir):
      yield

  def _check_workers(self, max_steps: int, step: int) -> None:
    """Refuses workers that have other flags or do not see the chief's checkpoint."""
    facts = {
      "the step to resume from": step,
      "max_steps": max_steps,
      "batch size": self.params.get("train_batch_size"),
      "fingerprint": self.config.fingerprint,
      "informative": self.config.informative,
    }
    distribution.check_equal({**facts, "seed": self.config.seed})

  def _saved_state(self, prefix: str | None) -> tuple[int, RunState]:
    """Reads step and run state of a checkpoint, or creates those of a new run."""
    if prefix is None:
      return 0, RunState(seed=self.config.seed)
    resumption.check_same_run(prefix, self.config.fingerprint)
    resumption.log_other_settings(prefix, self.config.informative)
    batch_size = self.params.get("train_batch_size", 0)
    return resumption.saved_run(prefix, batch_size, self.config.seed)

  # -------------------------------------------------------------------------------------------
  # Data, graphs and variables of a mode.

  def _batch_size_name(self, mode: str) -> str:
    """Returns the name of the parameter that sets the batch size of a mode."""
    name = {ModeKeys.TRAIN: "train", ModeKeys.EVAL: "eval", ModeKeys.PREDICT: "predict"}[mode]
    # A script that has no batch size of its own for evaluation uses that of prediction.
    if mode == ModeKeys.EVAL and "eval_batch_size" not in self.params:
      name = "predict"
    return f"{name}_batch_size"

  def _input_params(self, mode: str) -> dict[str, Any]:
    params = {**self.params, "seed": self._seed, "skip_examples": 0}
    name = self._batch_size_name(mode)
    if name in params:
      params["batch_size"] = params[name]
    return params

  def _how_to_save_memory(self, mode: str) -> str:
    """Names what to lower where the memory does not suffice, for the message."""
    name = self._batch_size_name(mode)
    parts = self.config.gradient_accumulation_steps
    in_parts = f", raise gradient_accumulation_steps={parts} (each batch in N parts)"
    return (
      f"Lower {name}={self.params.get(name)}{in_parts if mode == ModeKeys.TRAIN else ''} or lower "
      f"max_seq_length. The checkpoints in {self.config.model_dir} are intact."
    )

  def _start_over(self, is_new: bool) -> None:
    """Discards previously loaded values, for a run that starts from scratch."""
    if is_new and self._variables.is_filled:
      self._variables, self._graphs = ModelVariables(self.config), {}

  def _graph(self, mode: str, data, element_spec) -> Any:
    """Compiles the steps of a mode; traces again only for data of another type.

    `data` is distributed: an iterator to train, else a dataset; `element_spec` is of its batches
    before.
    """
    if not self._graphs:
      log_features(element_spec)
    if mode not in self._graphs or self._graphs[mode].element_spec != data.element_spec:
      model = Model(self._model_fn, self.config, self.params, self._strategy, self.store)
      if mode == ModeKeys.TRAIN:
        self._graphs[mode] = TrainingGraph(model, self._seed, data, element_spec)
      else:
        self._graphs[mode] = InferenceGraph(model, mode, data, element_spec)
    return self._graphs[mode]

  def _inference(self, mode: str, input_fn):
    """Builds graph and data of evaluation or prediction."""
    dataset = input_fn(self._input_params(mode))
    distributed = distribution.distribute_dataset(self._strategy, dataset)
    return self._graph(mode, distributed, dataset.element_spec), distributed

  @contextlib.contextmanager
  def _loaded(self, mode: str, input_fn, path: str | None):
    """Builds graph and data of evaluation or prediction, with the variables of a checkpoint."""
    newest = None if path else self.latest_checkpoint()
    self._start_over(is_new=not (path or newest))
    with explained_errors(input_fn, self._how_to_save_memory(mode)):
      with self.store.drawing_later():
        graph, dataset = self._inference(mode, input_fn)
      load = self._variables.load if path else self._load_newest
      load(path or newest, graph.init_checkpoint)
      yield graph, dataset

  def _load_newest(self, path: str | None, init_checkpoint: str | None) -> None:
    """Loads the newest checkpoint.

    A training in the same folder removes old ones: if it does so between the moment when `path` was
    found and that when it is read, a newer one takes its place.
    """
    try:
      self._variables.load(path, init_checkpoint)
    except (OSError, ValueError, tf.errors.OpError):
      newest = self.latest_checkpoint()
      if newest in (None, path):
        raise
      logging.info("%s is no longer the newest; reading %s.", path, newest)
      self._load_newest(newest, init_checkpoint)

  def _evaluate(
    self, graph, dataset, steps: int | None, name: str | None, on_rows=None
  ) -> dict[str, Any]:
    results = evaluation.evaluate(graph, dataset, self._strategy, steps, on_rows)
    results["global_step"] = int(self._variables.global_step.numpy())
    folder = "eval" + (f"_{name}" if name else "")
    self._evaluation_logs.write(os.path.join(self.config.model_dir, folder), results)
    return results

  def _evaluate_now(self, spec: EvalSpec) -> dict[str, Any]:
    """Evaluates the current variables during training; see `evaluate`."""
    with explained_errors(spec.input_fn, self._how_to_save_memory(ModeKeys.EVAL)):
      graph, dataset = self._inference(ModeKeys.EVAL, spec.input_fn)
      return self._evaluate(graph, dataset, spec.steps, None)
