"""`tf.estimator.tpu`: TPUEstimator on the CPU or a GPU.

Scripts around BERT are written for TPUEstimator and ran without a TPU too; that is what is here.
Its settings of TPUs are accepted and do nothing; `use_tpu=True` is refused.
"""

import collections
import inspect

from tensorflow.python.ops import summary_ops_v2

from bert_tf1.errors import NotAvailableError, no_tpu, unknown_name
from bert_tf1.estimator import run_config
from bert_tf1.estimator.estimator import Estimator, loss_logger
from bert_tf1.estimator.inputs_of import accepted_arguments
from bert_tf1.estimator.specs import EstimatorSpec, ModeKeys
from bert_tf1.real import tf

__all__ = ["InputPipelineConfig", "RunConfig", "TPUConfig", "TPUEstimator", "TPUEstimatorSpec"]


class InputPipelineConfig:
  """How input reaches the hosts of a TPU; every value does the same here."""

  PER_SHARD_V1 = 1
  PER_HOST_V1 = 2
  PER_HOST_V2 = 3
  BROADCAST = 4
  SLICED = 5


class TPUConfig(
  collections.namedtuple(
    "TPUConfig",
    [
      "iterations_per_loop",
      "num_shards",
      "num_cores_per_replica",
      "per_host_input_for_training",
      "tpu_job_name",
      "initial_infeed_sleep_secs",
      "input_partition_dims",
      "eval_training_input_configuration",
      "experimental_host_call_every_n_steps",
    ],
  )
):
  """Settings of TPUs, accepted so that scripts run; none has an effect."""

  def __new__(
    cls,
    iterations_per_loop=2,
    num_shards=None,
    num_cores_per_replica=None,
    per_host_input_for_training=True,
    tpu_job_name=None,
    initial_infeed_sleep_secs=None,
    input_partition_dims=None,
    eval_training_input_configuration=InputPipelineConfig.PER_HOST_V1,
    experimental_host_call_every_n_steps=1,
  ):
    """Fills in the defaults of 1.15; True and False are the oldest ways to say how input comes."""
    if isinstance(per_host_input_for_training, bool):
      per_host_input_for_training = (
        InputPipelineConfig.PER_HOST_V1
        if per_host_input_for_training
        else InputPipelineConfig.PER_SHARD_V1
      )
    return super().__new__(
      cls,
      iterations_per_loop,
      num_shards,
      num_cores_per_replica,
      per_host_input_for_training,
      tpu_job_name,
      initial_infeed_sleep_secs,
      input_partition_dims,
      eval_training_input_configuration,
      experimental_host_call_every_n_steps,
    )


class RunConfig(run_config.RunConfig):
  """RunConfig with the arguments that name a TPU: accepted and not used.

  Args:
    tpu_config: TPUConfig.
    evaluation_master, master: addresses of TPUs.
    cluster: TPUClusterResolver.
    **kwargs: of tf.estimator.RunConfig.
  """

  def __init__(self, tpu_config=None, evaluation_master=None, master=None, cluster=None, **kwargs):
    super().__init__(**kwargs)
    if cluster is not None and master is not None:
      raise ValueError("Both cluster and master are set.")
    self.tpu_config = tpu_config or TPUConfig()
    self.cluster = cluster
    self.tpu_master = master
    self.tpu_evaluation_master = evaluation_master

  def replace(self, **changes):
    """See tf.estimator.RunConfig.replace; `tpu_config` may be changed too."""
    tpu_config = changes.pop("tpu_config", self.tpu_config)
    new = super().replace(**changes)
    new.tpu_config = tpu_config
    return new


class TPUEstimatorSpec(
  collections.namedtuple(
    "TPUEstimatorSpec",
    [
      "mode",
      "predictions",
      "loss",
      "train_op",
      "eval_metrics",
      "export_outputs",
      "scaffold_fn",
      "host_call",
      "training_hooks",
      "evaluation_hooks",
      "prediction_hooks",
    ],
  )
):
  """What a model_fn of TPUEstimator returns.

  Attributes:
    eval_metrics: (metric_fn, tensors): metric_fn(*list) or metric_fn(**dict) returns the metrics.
    scaffold_fn: returns a tf.train.Scaffold.
    host_call: (function, tensors), called and run in each step.
    mode, predictions, ...: see tf.estimator.EstimatorSpec.
  """

  def __new__(
    cls,
    mode,
    predictions=None,
    loss=None,
    train_op=None,
    eval_metrics=None,
    export_outputs=None,
    scaffold_fn=None,
    host_call=None,
    training_hooks=None,
    evaluation_hooks=None,
    prediction_hooks=None,
  ):
    """Checks the two pairs of a function and its tensors."""
    _check_host_calls(eval_metrics=eval_metrics, host_call=host_call)
    return super().__new__(
      cls,
      mode,
      predictions,
      loss,
      train_op,
      eval_metrics,
      export_outputs,
      scaffold_fn,
      host_call,
      tuple(training_hooks or ()),
      tuple(evaluation_hooks or ()),
      tuple(prediction_hooks or ()),
    )

  def as_estimator_spec(self) -> EstimatorSpec:
    """Returns the same for tf.estimator.Estimator."""
    hooks = (_HostCall(_called(self.host_call)),) if self.host_call else ()
    return EstimatorSpec(
      mode=self.mode,
      predictions=self.predictions,
      loss=self.loss,
      train_op=self.train_op,
      eval_metric_ops=_called(self.eval_metrics) if self.eval_metrics else None,
      export_outputs=self.export_outputs,
      scaffold=self.scaffold_fn() if self.scaffold_fn else None,
      training_hooks=self.training_hooks + hooks,
      evaluation_hooks=self.evaluation_hooks + hooks,
      prediction_hooks=self.prediction_hooks + hooks,
    )


def _check_host_calls(**calls) -> None:
  for name, call in calls.items():
    if call is None:
      continue
    if not isinstance(call, (tuple, list)) or len(call) != 2 or not callable(call[0]):
      raise ValueError(f"{name} should be a tuple of a function and its tensors, is {call!r}")
    if not isinstance(call[1], (tuple, list, dict)):
      raise ValueError(f"{name}[1] should be tuple or list, or dict of tensors, is {call[1]!r}")
    taken, given = accepted_arguments(call[0]), call[1]
    if isinstance(given, (tuple, list)) and taken and len(given) < _required(call[0]):
      raise RuntimeError(f"In TPUEstimatorSpec.{name}, the function needs more tensors: {taken}")


def _required(function) -> int:
  parameters = inspect.signature(function).parameters.values()
  positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
  return sum(p.kind in positional and p.default is p.empty for p in parameters)


def _called(call):
  function, tensors = call
  return function(**tensors) if isinstance(tensors, dict) else function(*tensors)


class _HostCall(tf.train.SessionRunHook):
  """Runs the ops of a host_call with each step; opens the summary writers, and flushes them."""

  def __init__(self, ops):
    self._ops = ops

  def begin(self):
    self._openings = summary_ops_v2.summary_writer_initializer_op()
    self._flushes = [summary_ops_v2.legacy_raw_flush(op.inputs[0]) for op in self._openings]

  def after_create_session(self, session, coord):
    del coord
    session.run(self._openings)

  def before_run(self, run_context):
    del run_context
    return tf.train.SessionRunArgs(self._ops)

  def end(self, session):
    session.run(self._flushes)


class _ExamplesPerSecond(tf.train.StepCounterHook):
  """Logs and records steps and examples per second."""

  def __init__(self, batch_size, **kwargs):
    super().__init__(**kwargs)
    self._batch_size = batch_size

  def end(self, session):
    """Logs the rate of the steps since the last line: all of them if the run was short."""
    step = session.run(self._global_step_tensor)
    elapsed_time, elapsed_steps = self._timer.update_last_triggered_step(step)
    if elapsed_time and elapsed_steps:
      self._log_and_record(elapsed_steps, elapsed_time, step)

  def _log_and_record(self, elapsed_steps, elapsed_time, global_step):
    steps_per_second = elapsed_steps / elapsed_time
    rates = {
      "global_step/sec": steps_per_second,
      "examples/sec": self._batch_size * steps_per_second,
    }
    for tag, rate in rates.items():
      tf.logging.info("%s: %g", tag, rate)
      if self._summary_writer is not None:
        summary = tf.Summary(value=[tf.Summary.Value(tag=tag, simple_value=rate)])
        self._summary_writer.add_summary(summary, global_step)


class TPUEstimator(Estimator):
  """An Estimator whose batch sizes reach input_fn and model_fn as `params["batch_size"]`.

  Args:
    model_fn, model_dir, config, params, warm_start_from: see tf.estimator.Estimator.
    use_tpu: must be false.
    train_batch_size, eval_batch_size, predict_batch_size: examples in a batch, in each mode.
    batch_axis, eval_on_tpu, export_to_tpu, export_to_cpu, embedding_config_spec,
    export_saved_model_api_version: of TPUs; accepted and not used.

  Raises:
    NotAvailableError: use_tpu is true.
    ValueError: `batch_size` in params.

  Source: tf.contrib.tpu.TPUEstimator of TensorFlow 1.15, with use_tpu=False.
  """

  def __init__(
    self,
    model_fn=None,
    model_dir=None,
    config=None,
    params=None,
    use_tpu=True,
    train_batch_size=None,
    eval_batch_size=None,
    predict_batch_size=None,
    batch_axis=None,
    eval_on_tpu=True,
    export_to_tpu=True,
    export_to_cpu=True,
    warm_start_from=None,
    embedding_config_spec=None,
    export_saved_model_api_version=None,
  ):
    del batch_axis, eval_on_tpu, export_to_tpu, export_to_cpu
    del embedding_config_spec, export_saved_model_api_version
    if use_tpu:
      raise NotAvailableError(f"TPUEstimator(use_tpu=True): {no_tpu()}")
    if config is None or not isinstance(config, RunConfig):
      raise ValueError("`config` must be provided with type `tpu_config.RunConfig`")
    if params is not None and "batch_size" in params:
      raise ValueError(f"['batch_size'] are reserved keys but existed in params {params}.")
    self._batch_sizes = {
      ModeKeys.TRAIN: train_batch_size,
      ModeKeys.EVAL: eval_batch_size,
      ModeKeys.PREDICT: predict_batch_size,
    }
    # Its own hooks log examples per second as well, and the loss, which 1.15 did not show here.
    self._log_every_n_steps = config.log_step_count_steps
    super().__init__(
      model_fn,
      model_dir,
      config.replace(log_step_count_steps=None),
      params if params is not None else {},
      warm_start_from,
    )

  def _create_global_step(self, graph):
    """Returns the step as a resource variable, which only TPUEstimator made of it in 1.15."""
    del graph  # It is the default graph.
    with tf.variable_scope(tf.get_variable_scope(), use_resource=True):
      step = tf.train.create_global_step()
    # An attribute that 1.15 does not know; left out of exports as long as it is the default.
    step.handle.op._set_attr("debug_name", tf.AttrValue(s=b""))
    return step

  def _input_params(self, mode):
    return _with_batch_size(self.params, self._batch_sizes[mode])

  def _model_params(self, mode):
    return _with_batch_size(self.params, self._batch_sizes[mode], use_tpu=False)

  def _call_model_fn(self, features, labels, mode, config) -> EstimatorSpec:
    tf.logging.info("Running %s on CPU", mode)
    spec = super()._call_model_fn(features, labels, mode, config)
    if mode == ModeKeys.TRAIN and self._log_every_n_steps is not None:
      rate = _ExamplesPerSecond(
        self._batch_sizes[mode], output_dir=self.model_dir, every_n_steps=self._log_every_n_steps
      )
      with tf.control_dependencies([spec.train_op]):
        step = tf.train.get_global_step().read_value()  # Counted already, as Estimator shows it.
      loss = loss_logger(spec.loss, step, self._log_every_n_steps)
      spec = spec._replace(training_hooks=(*spec.training_hooks, rate, loss))
    return spec


def _with_batch_size(params, batch_size, **more):
  """Returns a copy of params (a dict, or HParams) with the size of a batch."""
  added = {**({} if batch_size is None else {"batch_size": batch_size}), **more}
  if hasattr(params, "add_hparam"):
    for name, value in added.items():
      if name in params:
        params.set_hparam(name, value)
      else:
        params.add_hparam(name, value)
    return params
  return {**params, **added}


__getattr__ = unknown_name(__name__)
