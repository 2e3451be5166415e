"""`tf.estimator.Estimator`: trains, evaluates and predicts with the graph of a model_fn.

Each call builds a graph of its own, restores the newest checkpoint of `model_dir` and runs it in a
monitored session. Files, logged lines and variable names are those of TensorFlow 1.15. On purpose
different: the order of reading and counting the step, see `global_step.py`.
"""

import copy
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from bert_tf1.estimator import saved_model
from bert_tf1.estimator.global_step import count_after_readers
from bert_tf1.estimator.inputs_of import accepted_arguments, call_input_fn, features_and_labels
from bert_tf1.estimator.restoring import check_fits
from bert_tf1.estimator.results import write_summaries
from bert_tf1.estimator.run_config import RunConfig, default_session_config
from bert_tf1.estimator.specs import EstimatorSpec, ModeKeys
from bert_tf1.estimator.warm_start import settings_of, warm_start
from bert_tf1.real import tf

_MODEL_FN_ARGUMENTS = {"features", "labels", "mode", "params", "self", "config"}


class Estimator:
  """A model that is trained, evaluated and asked for predictions by calls.

  Args:
    model_fn: called with those of features, labels, mode, params and config that it names; returns
      an EstimatorSpec.
    model_dir: where checkpoints and summaries are; overrides none of `config`, must agree with it.
    config: RunConfig.
    params: a dict, given to model_fn and input_fn.
    warm_start_from: a checkpoint, a folder of them, or WarmStartSettings.

  Source: tf.estimator.Estimator of TensorFlow 1.15.
  """

  def __init__(self, model_fn, model_dir=None, config=None, params=None, warm_start_from=None):
    self._config = _complete_config(config, model_dir)
    self._model_dir = self._config.model_dir
    self._session_config = self._config.session_config
    tf.logging.info("Using config: %s", self._config)
    if model_fn is None:
      raise ValueError("model_fn must be provided to Estimator.")
    _check_model_fn(model_fn, params)
    self._model_fn = model_fn
    self._params = copy.deepcopy(params or {})
    self._warm_start_settings = settings_of(warm_start_from)

  @property
  def model_dir(self) -> str:
    """The folder of checkpoints and summaries."""
    return self._model_dir

  @property
  def config(self) -> RunConfig:
    """A copy of the settings."""
    return copy.deepcopy(self._config)

  @property
  def params(self) -> dict:
    """A copy of the parameters."""
    return copy.deepcopy(self._params)

  @property
  def model_fn(self) -> Callable:
    """Returns the model_fn bound to params: it takes features, labels, mode and config."""

    def public_model_fn(features, labels, mode, config):
      return self._call_model_fn(features, labels, mode, config)

    return public_model_fn

  def get_variable_names(self) -> list[str]:
    """Returns the names of the variables in the newest checkpoint."""
    return [name for name, _ in tf.train.list_variables(self._trained())]

  def get_variable_value(self, name: str) -> np.ndarray:
    """Returns the value of a variable in the newest checkpoint."""
    return tf.train.load_variable(self._trained(), name)

  def latest_checkpoint(self) -> str | None:
    """Returns the path of the newest checkpoint; None before the first."""
    return tf.train.latest_checkpoint(self._model_dir)

  def eval_dir(self, name: str | None = None) -> str:
    """Returns where the summaries of an evaluation are: `eval`, or `eval_NAME`."""
    return os.path.join(self._model_dir, "eval" if not name else f"eval_{name}")

  def _trained(self) -> str:
    checkpoint = self.latest_checkpoint()
    if not checkpoint:
      raise ValueError(f"Could not find trained model in model_dir: {self._model_dir}.")
    return checkpoint

  # --- train ---

  def train(self, input_fn, hooks=None, steps=None, max_steps=None, saving_listeners=None):
    """Trains from the newest checkpoint on, and returns this Estimator.

    Args:
      input_fn: returns a Dataset or tensors: (features, labels).
      hooks: SessionRunHooks.
      steps: train N steps more; None until the input ends.
      max_steps: train up to step N in all.
      saving_listeners: CheckpointSaverListeners.

    Raises:
      ValueError: both steps and max_steps, or one that is not positive.
    """
    if steps is not None and max_steps is not None:
      raise ValueError("Can not provide both steps and max_steps.")
    _check_positive(steps=steps, max_steps=max_steps)
    hooks = _checked_hooks(hooks)
    if max_steps is not None and self._saved_step() >= max_steps:
      tf.logging.info("Skipping training since max_steps has already saved.")
      return self
    if steps is not None or max_steps is not None:
      hooks.append(tf.train.StopAtStepHook(steps, max_steps))
    with tf.Graph().as_default() as graph, graph.device(self._config.device_fn):
      spec, input_hooks = self._build_graph(graph, input_fn, ModeKeys.TRAIN)
      loss = self._train_graph(graph, spec, input_hooks + hooks, saving_listeners)
    tf.logging.info("Loss for final step: %s.", loss)
    return self

  def _saved_step(self) -> int:
    checkpoint = self.latest_checkpoint()
    if not checkpoint or not tf.train.NewCheckpointReader(checkpoint).has_tensor("global_step"):
      return 0
    return int(tf.train.load_variable(checkpoint, "global_step"))

  def _train_graph(self, graph, spec, hooks, saving_listeners):
    """Runs the steps of a finished graph; returns the last loss."""
    config = self._config
    step = tf.train.get_global_step(graph)
    if self._warm_start_settings:
      warm_start(self._warm_start_settings)
    if not any(summary.op.name == "loss" for summary in tf.get_collection(tf.GraphKeys.SUMMARIES)):
      tf.summary.scalar("loss", spec.loss)
    tf.add_to_collection(tf.GraphKeys.LOSSES, spec.loss)
    hooks = [*hooks, tf.train.NanTensorHook(spec.loss)]
    if config.log_step_count_steps is not None:
      hooks.append(loss_logger(spec.loss, step, config.log_step_count_steps))
    hooks += spec.training_hooks
    count_after_readers(graph, spec.loss)
    if not (spec.scaffold.saver or tf.get_collection(tf.GraphKeys.SAVERS)):
      if self.latest_checkpoint():
        check_fits(self.latest_checkpoint())
      tf.add_to_collection(tf.GraphKeys.SAVERS, self._saver())
    chief_hooks = [
      *self._saver_hooks(spec, [*hooks, *spec.training_chief_hooks], saving_listeners),
      *spec.training_chief_hooks,
    ]
    _remove_unfinished(self._model_dir)
    loss = None
    with tf.train.MonitoredTrainingSession(
      checkpoint_dir=self._model_dir,
      scaffold=spec.scaffold,
      hooks=hooks,
      chief_only_hooks=chief_hooks,
      save_checkpoint_secs=0,  # A hook saves.
      save_summaries_steps=config.save_summary_steps,
      config=self._session_config,
      log_step_count_steps=config.log_step_count_steps,
    ) as session:
      while not session.should_stop():
        _, loss = session.run([spec.train_op, spec.loss])
    if loss is None:
      tf.logging.warning(
        "Training with estimator made no steps. Perhaps input is empty or misspecified."
      )
    return loss

  def _saver(self):
    return tf.train.Saver(
      sharded=True,
      max_to_keep=self._config.keep_checkpoint_max,
      keep_checkpoint_every_n_hours=self._config.keep_checkpoint_every_n_hours,
      defer_build=True,
      save_relative_paths=True,
    )

  def _saver_hooks(self, spec, hooks, saving_listeners) -> list:
    """Returns the hook that saves checkpoints, unless a hook of the caller does."""
    secs, steps = self._config.save_checkpoints_secs, self._config.save_checkpoints_steps
    savers = [hook for hook in hooks if isinstance(hook, tf.train.CheckpointSaverHook)]
    new = []
    if not savers and (secs or steps):
      new = [tf.train.CheckpointSaverHook(self._model_dir, secs, steps, scaffold=spec.scaffold)]
    if saving_listeners:
      if not savers + new:
        raise ValueError(
          "There should be a CheckpointSaverHook to use saving_listeners. Please set one of the "
          "RunConfig.save_checkpoints_steps or RunConfig.save_checkpoints_secs."
        )
      listeners = (savers + new)[0]._listeners
      listeners.extend(x for x in _checked_listeners(saving_listeners) if x not in listeners)
    return new

  # --- evaluate ---

  def evaluate(self, input_fn, steps=None, hooks=None, checkpoint_path=None, name=None):
    """Evaluates a checkpoint.

    Args:
      input_fn: returns a Dataset or tensors: (features, labels).
      steps: batches to evaluate; None until the input ends.
      hooks: SessionRunHooks.
      checkpoint_path: None for the newest; without one the model is evaluated as it begins.
      name: of the evaluation, if there are several: its summaries go into `eval_NAME`.

    Returns:
      The metrics by name, with `loss` and `global_step`.
    """
    _check_positive(steps=steps)
    hooks = _checked_hooks(hooks)
    checkpoint_path = self._checkpoint_to("evaluate", checkpoint_path)
    with tf.Graph().as_default() as graph, graph.device(self._config.device_fn):
      spec, input_hooks = self._build_graph(graph, input_fn, ModeKeys.EVAL)
      if self._warm_start_settings and not checkpoint_path:
        warm_start(self._warm_start_settings)
      values, update = metrics_of(spec)
      values["global_step"] = tf.train.get_global_step(graph)
      results = self._run_evaluation(
        spec, values, update, steps, [*input_hooks, *hooks, *spec.evaluation_hooks], checkpoint_path
      )
      write_summaries(self.eval_dir(name), results, checkpoint_path)
    return results

  def _run_evaluation(self, spec, values, update, steps, hooks, checkpoint_path) -> dict:
    """Updates the metrics batch after batch; returns their values."""
    started = time.time()
    shown = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(started))
    tf.logging.info("Starting evaluation at %s", shown)
    final = tf.train.FinalOpsHook(values)
    with self._session(spec.scaffold, checkpoint_path, [*hooks, final]) as session:
      done = 0
      while not session.should_stop() and done != steps:
        session.run(update)
        done += 1
        if steps and (done == steps or done % max(1, steps // 10) == 0):
          tf.logging.info("Evaluation [%d/%d]", done, steps)
    tf.logging.info("Finished evaluation at %s", time.strftime("%Y-%m-%d-%H:%M:%S", time.gmtime()))
    return final.final_ops_values

  def _checkpoint_to(self, purpose: str, checkpoint_path: str | None) -> str | None:
    """Returns the checkpoint that is asked for, or else the newest; says so if there is none."""
    checkpoint_path = checkpoint_path or self.latest_checkpoint()
    if not checkpoint_path:
      tf.logging.info(
        "Could not find trained model in model_dir: %s, running initialization to %s.",
        self._model_dir,
        purpose,
      )
    return checkpoint_path

  def _session(self, scaffold, checkpoint_path, hooks):
    if checkpoint_path and not (scaffold.saver or tf.get_collection(tf.GraphKeys.SAVERS)):
      check_fits(checkpoint_path)
    creator = tf.train.ChiefSessionCreator(
      scaffold=scaffold, checkpoint_filename_with_path=checkpoint_path, config=self._session_config
    )
    return tf.train.MonitoredSession(session_creator=creator, hooks=hooks)

  # --- predict ---

  def predict(
    self, input_fn, predict_keys=None, hooks=None, checkpoint_path=None, yield_single_examples=True
  ) -> Iterator[Any]:
    """Yields the predictions for each example.

    Args:
      input_fn: returns a Dataset or tensors: features; labels are ignored.
      predict_keys: the names of the predictions to yield; None all.
      hooks: SessionRunHooks.
      checkpoint_path: None for the newest; without one the model predicts as it begins.
      yield_single_examples: False yields whole batches.

    Raises:
      ValueError: predictions of a batch that differ in length, or keys that are not there.
    """
    hooks = _checked_hooks(hooks)
    checkpoint_path = self._checkpoint_to("predict", checkpoint_path)
    with tf.Graph().as_default() as graph, graph.device(self._config.device_fn):
      spec, input_hooks = self._build_graph(graph, input_fn, ModeKeys.PREDICT)
      if self._warm_start_settings and not checkpoint_path:
        warm_start(self._warm_start_settings)
      predictions = _selected(spec.predictions, predict_keys)
      all_hooks = [*input_hooks, *hooks, *spec.prediction_hooks]
      with self._session(spec.scaffold, checkpoint_path, all_hooks) as session:
        while not session.should_stop():
          batch = session.run(predictions)
          if not yield_single_examples:
            yield batch
          elif not isinstance(predictions, dict):
            yield from batch
          else:
            for index in range(_batch_size(batch)):
              yield {name: value[index] for name, value in batch.items()}

  # --- export ---

  def export_saved_model(
    self,
    export_dir_base,
    serving_input_receiver_fn,
    assets_extra=None,
    as_text=False,
    checkpoint_path=None,
    experimental_mode=ModeKeys.PREDICT,
  ):
    """Writes a SavedModel, see `saved_model.export_saved_model`; returns its folder."""
    return saved_model.export_saved_model(
      self,
      export_dir_base,
      serving_input_receiver_fn,
      assets_extra=assets_extra,
      as_text=as_text,
      checkpoint_path=checkpoint_path,
      strip_default_attrs=True,
      mode=experimental_mode,
    )

  def experimental_export_all_saved_models(
    self,
    export_dir_base,
    input_receiver_fn_map,
    assets_extra=None,
    as_text=False,
    checkpoint_path=None,
  ):
    """Writes a SavedModel with graphs of several modes, see `saved_model`; returns its folder."""
    return saved_model.export_all_saved_models(
      self, export_dir_base, input_receiver_fn_map, assets_extra, as_text, checkpoint_path
    )

  def export_savedmodel(
    self,
    export_dir_base,
    serving_input_receiver_fn,
    assets_extra=None,
    as_text=False,
    checkpoint_path=None,
    strip_default_attrs=False,
  ):
    """Returns the older name of `export_saved_model`."""
    return saved_model.export_saved_model(
      self,
      export_dir_base,
      serving_input_receiver_fn,
      assets_extra=assets_extra,
      as_text=as_text,
      checkpoint_path=checkpoint_path,
      strip_default_attrs=strip_default_attrs,
    )

  # --- graphs; the names with an underscore are those that subclasses of 1.15 override ---

  def _build_graph(self, graph: tf.Graph, input_fn, mode: str) -> tuple[EstimatorSpec, list]:
    """Puts input and model of one mode into `graph`, the default one; returns input hooks, too."""
    self._seed(graph)
    self._create_and_assert_global_step(graph)
    features, labels, hooks = self._get_features_and_labels_from_input_fn(input_fn, mode)
    labels = None if mode == ModeKeys.PREDICT else labels
    return self._call_model_fn(features, labels, mode, self.config), hooks

  def _seed(self, graph) -> None:
    if self._config.tf_random_seed is not None:
      graph.seed = self._config.tf_random_seed

  def _create_global_step(self, graph):
    return tf.train.create_global_step(graph)

  def _create_and_assert_global_step(self, graph):
    step = self._create_global_step(graph)
    if step is not None and (step is not tf.train.get_global_step() or not step.dtype.is_integer):
      raise ValueError("_create_global_step must make the graph's global step, an integer.")
    return step

  def _get_features_and_labels_from_input_fn(self, input_fn, mode):
    return features_and_labels(self._call_input_fn(input_fn, mode))

  def _call_input_fn(self, input_fn, mode):
    offered = {"mode": mode, "params": self._input_params(mode), "config": self.config}
    return call_input_fn(input_fn, **offered)

  def _input_params(self, mode):
    """Returns what an input_fn gets as `params`."""
    del mode  # TPUEstimator's depend on it.
    return self.params

  def _model_params(self, mode):
    """Returns what model_fn gets as `params`."""
    del mode
    return self.params

  def _call_model_fn(self, features, labels, mode, config) -> EstimatorSpec:
    """Calls model_fn with the arguments that it names."""
    names = accepted_arguments(self._model_fn)
    offered = {"mode": mode, "params": self._model_params(mode), "config": config}
    arguments = {name: value for name, value in offered.items() if name in names}
    if "labels" in names:
      arguments["labels"] = labels
    elif labels is not None:
      raise ValueError("model_fn does not take labels, but input_fn returns labels.")
    tf.logging.info("Calling model_fn.")
    spec = self._model_fn(features=features, **arguments)
    tf.logging.info("Done calling model_fn.")
    if hasattr(spec, "as_estimator_spec"):  # of a TPUEstimator
      spec = spec.as_estimator_spec()
    if not isinstance(spec, EstimatorSpec):
      raise ValueError(f"model_fn should return an EstimatorSpec, returned {type(spec).__name__}.")
    return spec


def loss_logger(loss, step, every_n_steps: int):
  """Returns a hook that logs the loss of a step with the step's number, counted from 1."""
  return tf.train.LoggingTensorHook({"loss": loss, "step": step}, every_n_iter=every_n_steps)


def _complete_config(config, model_dir) -> RunConfig:
  """`config` with a folder and a session's settings."""
  if config is None:
    config = RunConfig()
    tf.logging.info("Using default config.")
  if not isinstance(config, RunConfig):
    raise ValueError(f"config must be an instance of `RunConfig`, but provided {config!r}.")
  if config.session_config is None:
    config = config.replace(session_config=default_session_config())
  if model_dir is not None:
    model_dir = os.fspath(model_dir)
    if config.model_dir is not None and config.model_dir != model_dir:
      raise ValueError(
        "`model_dir` are set both in constructor and `RunConfig`, but with different values. "
        f"In constructor: '{model_dir}', in `RunConfig`: '{config.model_dir}' "
      )
  model_dir = model_dir or config.model_dir
  if not model_dir:
    model_dir = tempfile.mkdtemp()
    tf.logging.warning("Using temporary folder as model directory: %s", model_dir)
  return config.replace(model_dir=model_dir)


def _remove_unfinished(model_dir: str) -> None:
  """Removes what a killed run left of the checkpoint that it was writing."""
  for path in tf.gfile.Glob(os.path.join(model_dir, "model.ckpt-*_temp*")):
    tf.gfile.DeleteRecursively(path)


def _check_model_fn(model_fn, params) -> None:
  names = accepted_arguments(model_fn)
  if "features" not in names:
    raise ValueError(f"model_fn ({model_fn}) must include features argument.")
  if params is not None and "params" not in names:
    raise ValueError(
      f"model_fn ({model_fn}) does not include params argument, but params ({params}) is passed "
      "to Estimator."
    )
  if params is None and "params" in names:
    tf.logging.warning(
      "Estimator's model_fn (%s) includes params argument, but params are not passed to Estimator.",
      model_fn,
    )
  unknown = sorted(names - _MODEL_FN_ARGUMENTS)
  if unknown:
    raise ValueError(f"model_fn ({model_fn}) has following not expected args: {unknown}")


def _check_positive(**numbers) -> None:
  for name, value in numbers.items():
    if value is not None and value <= 0:
      raise ValueError(f"Must specify {name} > 0, given: {value}")


def _checked_hooks(hooks) -> list:
  hooks = list(hooks or [])
  for hook in hooks:
    if not isinstance(hook, tf.train.SessionRunHook):
      raise TypeError(f"Hooks must be a SessionRunHook, given: {hook!r}")
  return hooks


def _checked_listeners(listeners) -> list:
  for listener in listeners:
    if not isinstance(listener, tf.train.CheckpointSaverListener):
      raise TypeError(
        f"saving_listeners must be a list of CheckpointSaverListener, given: {listener!r}"
      )
  return list(listeners)


def metrics_of(spec: EstimatorSpec) -> tuple[dict, Any]:
  """Returns the values of the metrics by name, with the mean loss, and one op that updates all."""
  metrics = dict(spec.eval_metric_ops)
  if "loss" in metrics:
    raise ValueError("Metric with name 'loss' is not allowed: Estimator has one of that name.")
  if "global_step" in metrics:
    raise ValueError(
      "Metric with name `global_step` is not allowed, because Estimator already defines a default "
      "metric with the same name."
    )
  metrics["loss"] = tf.metrics.mean(spec.loss)
  ordered = sorted(metrics.items())
  return {name: value for name, (value, _) in ordered}, tf.group(*(op for _, (_, op) in ordered))


def _selected(predictions, names):
  if not names:
    return predictions
  if not isinstance(predictions, dict):
    raise ValueError("predict_keys argument is not valid in case of non-dict predictions.")
  chosen = {name: value for name, value in predictions.items() if name in names}
  if not chosen:
    raise ValueError(
      f"Expected to run at least one output from {sorted(predictions)}, provided {names}."
    )
  return chosen


def _batch_size(batch: dict) -> int:
  scalars = sorted(name for name, value in batch.items() if np.ndim(value) == 0)
  if scalars:
    raise ValueError(
      f"Predictions {scalars} are no batches: leave them out of predict_keys, or predict with "
      "yield_single_examples=False."
    )
  sizes = {name: len(value) for name, value in batch.items()}
  if len(set(sizes.values())) > 1:
    raise ValueError(f"Batch length of predictions should be same. It is: {sizes}")
  return next(iter(sizes.values()))
