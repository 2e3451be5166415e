"""`tf.estimator.RunConfig`: where a run is saved, how often, and with which session."""

import copy
import json
import os
from typing import Any

from tensorflow.python.util import function_utils

from bert_tf1.errors import NotAvailableError
from bert_tf1.real import tf

_NOT_GIVEN = object()
# What `replace` may change, as in 1.15.
_REPLACEABLE = (
  *("model_dir", "tf_random_seed", "save_summary_steps", "save_checkpoints_steps"),
  *("save_checkpoints_secs", "session_config", "keep_checkpoint_max"),
  *("keep_checkpoint_every_n_hours", "log_step_count_steps", "train_distribute", "device_fn"),
  *("protocol", "eval_distribute", "experimental_distribute"),
  *("experimental_max_worker_delay_secs", "session_creation_timeout_secs"),
)


class TaskType:
  """The roles of a process. Here there is one process: the chief."""

  MASTER = "master"
  PS = "ps"
  WORKER = "worker"
  CHIEF = "chief"
  EVALUATOR = "evaluator"


def default_session_config():
  """Returns the session of 1.15: fall back to the CPU, and let Grappler place shape-only ops."""
  config = tf.ConfigProto(allow_soft_placement=True)
  config.graph_options.rewrite_options.meta_optimizer_iterations = 1
  return config


class RunConfig:
  """Settings of an Estimator's runs. One process, on all its cores or its GPU.

  Args:
    model_dir: where checkpoints and summaries are written.
    tf_random_seed: graph-level seed of each graph; None leaves it random.
    save_summary_steps: write summaries every N steps; None or 0 writes none.
    save_checkpoints_steps, save_checkpoints_secs: save a checkpoint every N steps, or seconds (600
      if neither is given); both None saves none.
    session_config: tf.ConfigProto.
    keep_checkpoint_max: how many checkpoints to keep; 0 or None keeps all.
    keep_checkpoint_every_n_hours: one more is kept for each N hours.
    log_step_count_steps: log the loss and steps per second every N steps; None logs neither.
    device_fn: places the ops of each graph, see tf.Graph.device.
    train_distribute, eval_distribute, experimental_distribute: of one replica, which changes
      nothing, or None.
    protocol, experimental_max_worker_delay_secs: of clusters; accepted and not used.
    session_creation_timeout_secs: how long to wait for a session.

  Raises:
    NotAvailableError: a distribution strategy of several replicas, or a cluster in the environment
      variable TF_CONFIG.
    ValueError: a number out of range, or steps and seconds between checkpoints at once.

  Source: tf.estimator.RunConfig of TensorFlow 1.15.
  """

  def __init__(
    self,
    model_dir=None,
    tf_random_seed=None,
    save_summary_steps=100,
    save_checkpoints_steps=_NOT_GIVEN,
    save_checkpoints_secs=_NOT_GIVEN,
    session_config=None,
    keep_checkpoint_max=5,
    keep_checkpoint_every_n_hours=10000,
    log_step_count_steps=100,
    train_distribute=None,
    device_fn=None,
    protocol=None,
    eval_distribute=None,
    experimental_distribute=None,
    experimental_max_worker_delay_secs=None,
    session_creation_timeout_secs=7200,
  ):
    if save_checkpoints_steps is _NOT_GIVEN and save_checkpoints_secs is _NOT_GIVEN:
      save_checkpoints_steps, save_checkpoints_secs = None, 600
    elif save_checkpoints_secs is _NOT_GIVEN:
      save_checkpoints_secs = None
    elif save_checkpoints_steps is _NOT_GIVEN:
      save_checkpoints_steps = None
    cluster = json.loads(os.environ.get("TF_CONFIG") or "{}")
    self._set(
      model_dir=_model_dir(model_dir, cluster),
      tf_random_seed=tf_random_seed,
      save_summary_steps=save_summary_steps,
      save_checkpoints_steps=save_checkpoints_steps,
      save_checkpoints_secs=save_checkpoints_secs,
      session_config=session_config,
      keep_checkpoint_max=keep_checkpoint_max,
      keep_checkpoint_every_n_hours=keep_checkpoint_every_n_hours,
      log_step_count_steps=log_step_count_steps,
      train_distribute=train_distribute,
      device_fn=device_fn,
      protocol=protocol,
      eval_distribute=eval_distribute,
      experimental_distribute=experimental_distribute,
      experimental_max_worker_delay_secs=experimental_max_worker_delay_secs,
      session_creation_timeout_secs=session_creation_timeout_secs,
    )
    if len(cluster.get("cluster", {})) > 1 or len(cluster.get("cluster", {}).get("worker", [])) > 1:
      raise NotAvailableError(
        "TF_CONFIG names a cluster; here an Estimator of 1.x runs in one process. Unset TF_CONFIG."
      )
    self.task_type = cluster.get("task", {}).get("type", TaskType.WORKER)
    self.task_id = int(cluster.get("task", {}).get("index", 0))
    self.cluster_spec = tf.train.ClusterSpec({})
    self.service = cluster.get("service")

  model_dir: str | None
  session_config: Any

  # One process is everything at once.
  master = ""
  evaluation_master = ""
  is_chief = True
  num_ps_replicas = 0
  num_worker_replicas = 1
  global_id_in_cluster = 0

  def _set(self, **settings) -> None:
    _check(settings)
    for name, value in settings.items():
      setattr(self, name, value)

  def replace(self, **changes):
    """Returns a copy with `changes`; giving steps between checkpoints drops seconds, and back.

    Raises:
      ValueError: a setting that cannot be changed, or a value out of range.
    """
    new = copy.copy(self)
    steps, secs = "save_checkpoints_steps", "save_checkpoints_secs"
    if changes.get(steps) is not None and changes.get(secs) is not None:
      raise ValueError(f"`{steps}` and `{secs}` cannot both be set.")
    unknown = sorted(set(changes) - set(_REPLACEABLE))
    if unknown:
      raise ValueError(f"Replacing {unknown[0]} is not supported. Known: {', '.join(_REPLACEABLE)}")
    if changes.get(steps) is not None:
      changes[secs] = None
    elif changes.get(secs) is not None:
      changes[steps] = None
    new._set(**changes)
    return new

  def __str__(self):
    shown = ", ".join(f"{name}: {getattr(self, name)!r}" for name in _REPLACEABLE)
    return f"RunConfig({shown})"


def _model_dir(model_dir, cluster):
  given = cluster.get("model_dir") or None
  if model_dir and given and os.fspath(model_dir) != given:
    raise ValueError(
      f"`model_dir` provided in RunConfig construct, if set, must have the same value as the "
      f"model_dir in TF_CONFIG: {model_dir} and {given}"
    )
  if model_dir == "":
    raise ValueError("model_dir should be non-empty.")
  return os.fspath(model_dir or given) if model_dir or given else None


def _check(settings) -> None:
  """Raises for a setting out of range."""
  if settings.get("save_checkpoints_steps") and settings.get("save_checkpoints_secs"):
    raise ValueError("`save_checkpoints_steps` and `save_checkpoints_secs` cannot both be set.")
  for name in ("train_distribute", "eval_distribute", "experimental_distribute"):
    strategy = settings.get(name)
    if strategy is not None and getattr(strategy, "num_replicas_in_sync", None) != 1:
      raise NotAvailableError(
        f"RunConfig({name}={strategy!r}) is not available: here an Estimator of 1.x runs in "
        "one process, on all its cores or on one GPU. Leave it out."
      )
  for name, lowest in (
    *(("save_summary_steps", 0), ("save_checkpoints_steps", 0), ("save_checkpoints_secs", 0)),
    *(("keep_checkpoint_max", 0), ("keep_checkpoint_every_n_hours", 1e-9)),
    *(("log_step_count_steps", 1), ("session_creation_timeout_secs", 1e-9)),
  ):
    value = settings.get(name)
    if value is not None and value < lowest:
      raise ValueError(f"{name} should be {'> 0' if lowest else '>= 0'}, is {value}")
  device_fn = settings.get("device_fn")
  if device_fn is not None and not (
    callable(device_fn) and function_utils.fn_args(device_fn) == ("op",)
  ):
    raise ValueError('device_fn must be callable with exactly one argument "op".')
  session_config = settings.get("session_config")
  if session_config is not None and not isinstance(session_config, tf.ConfigProto):
    raise ValueError(f"session_config must be instance of ConfigProto, given: {session_config!r}")
  seed = settings.get("tf_random_seed")
  if seed is not None and not isinstance(seed, int):
    raise ValueError(f"tf_random_seed must be integer, given: {seed!r}")
