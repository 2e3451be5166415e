"""Hooks that end training by what the evaluations so far have recorded.

A hook reads the event files that `Estimator.evaluate` writes: at the first step, and every N
seconds or steps after it. The checkpoint then holds the variable `signal_early_stopping/STOP`.
"""

import collections
import operator
import os
from collections.abc import Callable, Iterator

from bert_tf1.estimator.estimator import Estimator
from bert_tf1.real import tf


def make_early_stopping_hook(
  estimator: Estimator,
  should_stop_fn: Callable[[], bool],
  run_every_secs: float | None = 60,
  run_every_steps: int | None = None,
):
  """Returns a hook that ends training when `should_stop_fn()` says so.

  Args:
    estimator: the Estimator that trains.
    should_stop_fn: asked without arguments.
    run_every_secs: how often it is asked, in seconds; None where `run_every_steps` says it.
    run_every_steps: the same in steps.

  Raises:
    TypeError: `estimator` is none.
    ValueError: both seconds and steps, or neither.
  """
  if not isinstance(estimator, Estimator):
    raise TypeError(f"`estimator` must have type `tf.estimator.Estimator`. Got: {type(estimator)}")
  if run_every_secs is not None and run_every_steps is not None:
    raise ValueError("Only one of `run_every_secs` and `run_every_steps` must be set.")
  return _StopHook(should_stop_fn, tf.train.SecondOrStepTimer(run_every_secs, run_every_steps))


def stop_if_higher_hook(
  estimator,
  metric_name: str,
  threshold: float,
  eval_dir: str | None = None,
  min_steps: int = 0,
  run_every_secs: float | None = 60,
  run_every_steps: int | None = None,
):
  """Returns a hook that ends training once the metric is higher than `threshold`.

  The other arguments are those of `make_early_stopping_hook`.

  Args:
    metric_name: of `eval_metric_ops`, or `loss`.
    threshold: the value to exceed.
    eval_dir: where the evaluations are recorded; None for the estimator's own.
    min_steps: evaluations of earlier steps do not count.
  """
  crossed = _Crossed(metric_name, threshold, operator.gt, "greater than", min_steps)
  return _hook(estimator, crossed, eval_dir, run_every_secs, run_every_steps)


def stop_if_lower_hook(
  estimator,
  metric_name: str,
  threshold: float,
  eval_dir: str | None = None,
  min_steps: int = 0,
  run_every_secs: float | None = 60,
  run_every_steps: int | None = None,
):
  """Returns a hook that ends training once the metric is lower; see `stop_if_higher_hook`."""
  crossed = _Crossed(metric_name, threshold, operator.lt, "less than", min_steps)
  return _hook(estimator, crossed, eval_dir, run_every_secs, run_every_steps)


def stop_if_no_increase_hook(
  estimator,
  metric_name: str,
  max_steps_without_increase: int,
  eval_dir: str | None = None,
  min_steps: int = 0,
  run_every_secs: float | None = 60,
  run_every_steps: int | None = None,
):
  """Returns a hook that ends training when the metric has not risen for N steps of training.

  The arguments are those of `stop_if_higher_hook`.
  """
  stalled = _Stalled(metric_name, max_steps_without_increase, operator.gt, "increase", min_steps)
  return _hook(estimator, stalled, eval_dir, run_every_secs, run_every_steps)


def stop_if_no_decrease_hook(
  estimator,
  metric_name: str,
  max_steps_without_decrease: int,
  eval_dir: str | None = None,
  min_steps: int = 0,
  run_every_secs: float | None = 60,
  run_every_steps: int | None = None,
):
  """Returns a hook that ends training when the metric has not fallen for N steps of training.

  The arguments are those of `stop_if_higher_hook`.
  """
  stalled = _Stalled(metric_name, max_steps_without_decrease, operator.lt, "decrease", min_steps)
  return _hook(estimator, stalled, eval_dir, run_every_secs, run_every_steps)


def read_eval_metrics(eval_dir: str) -> collections.OrderedDict:
  """Returns the recorded metrics, by name, of each step that was evaluated, in order."""
  found: dict[int, dict[str, float]] = collections.defaultdict(dict)
  for event in _events(eval_dir):
    for value in event.summary.value:
      if value.HasField("simple_value"):
        found[event.step][value.tag] = value.simple_value
  return collections.OrderedDict(sorted(found.items()))


def _events(folder: str) -> Iterator:
  if tf.gfile.Exists(folder):
    for path in sorted(tf.gfile.Glob(os.path.join(folder, "*tfevents*"))):
      yield from tf.train.summary_iterator(path)


def _hook(estimator, rule, eval_dir, run_every_secs, run_every_steps):
  folder = eval_dir or (estimator.eval_dir() if isinstance(estimator, Estimator) else "")
  return make_early_stopping_hook(
    estimator, lambda: rule.holds(folder), run_every_secs, run_every_steps
  )


class _Rule:
  """What the recorded values of a metric are asked."""

  def __init__(self, metric_name, limit, is_beyond, word, min_steps):
    self._metric_name, self._limit, self._min_steps = metric_name, limit, min_steps
    self._is_beyond, self._word = is_beyond, word

  def _values(self, eval_dir: str) -> Iterator[tuple[int, float]]:
    """Yields the steps from `min_steps` on that were evaluated, with the metric."""
    for step, metrics in read_eval_metrics(eval_dir).items():
      if step < self._min_steps:
        continue
      if self._metric_name not in metrics:
        raise KeyError(
          f"{eval_dir} has no metric {self._metric_name!r} at step {step}. It has: "
          f"{', '.join(sorted(metrics))}. Give the hook one of these as metric_name."
        )
      yield step, metrics[self._metric_name]


class _Crossed(_Rule):
  """A value beyond a threshold."""

  def holds(self, eval_dir: str) -> bool:
    for step, value in self._values(eval_dir):
      if self._is_beyond(value, self._limit):
        tf.logging.info(
          'At step %s, metric "%s" has value %s which is %s the configured threshold (%s) for '
          "early stopping.",
          *(step, self._metric_name, value, self._word, self._limit),
        )
        return True
    return False


class _Stalled(_Rule):
  """Too many steps without a better value."""

  def holds(self, eval_dir: str) -> bool:
    best = best_step = None
    for step, value in self._values(eval_dir):
      if best is None or self._is_beyond(value, best):
        best, best_step = value, step
      if step - best_step >= self._limit:
        tf.logging.info(
          'No %s in metric "%s" for %s steps, which is greater than or equal to max steps (%s) '
          "configured for early stopping.",
          *(self._word, self._metric_name, step - best_step, self._limit),
        )
        return True
    return False


class _StopHook(tf.train.SessionRunHook):
  """Ends training when it is told to, and says so in the checkpoint."""

  def __init__(self, should_stop_fn, timer):
    self._should_stop_fn, self._timer = should_stop_fn, timer

  def begin(self):
    self._global_step = tf.train.get_global_step()
    with tf.variable_scope("signal_early_stopping", reuse=tf.AUTO_REUSE):
      stop = tf.get_variable(
        "STOP", [], tf.bool, initializer=tf.constant_initializer(False), trainable=False
      )
    self._stop = tf.assign(stop, True)

  def before_run(self, run_context):
    return tf.train.SessionRunArgs(self._global_step)

  def after_run(self, run_context, run_values):
    step = run_values.results
    if not self._timer.should_trigger_for_step(step):
      return
    self._timer.update_last_triggered_step(step)
    if self._should_stop_fn():
      tf.logging.info("Requesting early stopping at global step %d", step)
      run_context.session.run(self._stop)
      run_context.request_stop()
