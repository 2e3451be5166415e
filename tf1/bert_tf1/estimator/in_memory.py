"""`InMemoryEvaluatorHook`: an evaluation every N steps of training, without a checkpoint.

Source: tf.estimator.experimental.InMemoryEvaluatorHook of TensorFlow 1.15.
"""

from collections.abc import Callable
from typing import Any

from bert_tf1.estimator.estimator import Estimator, metrics_of
from bert_tf1.estimator.results import write_summaries
from bert_tf1.estimator.specs import ModeKeys
from bert_tf1.real import tf


class InMemoryEvaluatorHook(tf.train.SessionRunHook):
  """Evaluates before the first step, every N steps and at the end, in a graph of its own.

  Args:
    estimator: the Estimator that trains.
    input_fn: gives the batches to evaluate.
    steps: batches of an evaluation; None until the input ends.
    hooks: SessionRunHooks of the evaluations.
    name: of the evaluation: its summaries go into `eval_NAME`.
    every_n_iter: steps from one evaluation to the next.

  Raises:
    ValueError: `every_n_iter` is not positive.
  """

  def __init__(
    self,
    estimator: Estimator,
    input_fn: Callable[..., Any],
    steps: int | None = None,
    hooks: Any = None,
    name: str | None = None,
    every_n_iter: int = 100,
  ):
    if every_n_iter is None or every_n_iter <= 0:
      raise ValueError(f"invalid every_n_iter={every_n_iter}.")
    self._estimator, self._input_fn, self._steps = estimator, input_fn, steps
    self._hooks, self._name = list(hooks or []), name
    self._timer = tf.train.SecondOrStepTimer(every_steps=every_n_iter)

  def begin(self):
    """Builds the graph that evaluates, and places for the values of its variables."""
    self._timer.reset()
    self._iterations = 0
    self._graph = tf.Graph()
    with self._graph.as_default():
      build_graph = self._estimator._build_graph
      spec, input_hooks = build_graph(self._graph, self._input_fn, ModeKeys.EVAL)
      if spec.scaffold.saver is not None or spec.scaffold.init_fn is not None:
        raise ValueError("InMemoryEvaluator does not support custom saver or init_fn")
      self._all_hooks = [*input_hooks, *self._hooks, *spec.evaluation_hooks]
      self._values, self._update = metrics_of(spec)
      self._values["global_step"] = tf.train.get_global_step()
      variables = {variable.name: variable for variable in tf.global_variables()}
      self._places = {name: tf.placeholder(v.dtype.base_dtype) for name, v in variables.items()}
      self._assign = {name: tf.assign(v, self._places[name]).op for name, v in variables.items()}
      scaffold = tf.train.Scaffold(init_fn=self._fill, copy_from_scaffold=spec.scaffold)
      self._spec = spec._replace(scaffold=scaffold)

  def after_create_session(self, session, coord):
    """Evaluates the model as training finds it."""
    del coord
    if tf.get_collection(tf.GraphKeys.SAVEABLE_OBJECTS):
      raise ValueError("InMemoryEvaluator does not support saveables other than global variables.")
    self._trained = {v.name: v for v in tf.global_variables() if v.name in self._places}
    self._evaluate(session)

  def after_run(self, run_context, run_values):
    """Evaluates if it is time to."""
    del run_values
    self._iterations += 1
    if self._timer.should_trigger_for_step(self._iterations):
      self._evaluate(run_context.session)

  def end(self, session):
    """Evaluates the trained model."""
    self._evaluate(session)

  def _fill(self, scaffold, session) -> None:
    del scaffold
    feed = {self._places[name]: value for name, value in self._now.items()}
    session.run([self._assign[name] for name in self._now], feed)

  def _evaluate(self, session) -> None:
    self._now = session.run(self._trained)
    with self._graph.as_default():
      results = self._estimator._run_evaluation(
        self._spec, self._values, self._update, self._steps, self._all_hooks, None
      )
      write_summaries(self._estimator.eval_dir(self._name), results, None)
    self._timer.update_last_triggered_step(self._iterations)
