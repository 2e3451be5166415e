"""What a model_fn returns: `tf.estimator.EstimatorSpec`, and the modes it is called in."""

import collections

from bert_tf1.estimator.export_outputs import checked
from bert_tf1.real import tf


class ModeKeys:
  """The modes of an Estimator: the values a model_fn gets as `mode`."""

  TRAIN = "train"
  EVAL = "eval"
  PREDICT = "infer"


# What a spec must have in each mode.
_REQUIRED = {
  ModeKeys.TRAIN: ("loss", "train_op"),
  ModeKeys.EVAL: ("loss",),
  ModeKeys.PREDICT: ("predictions",),
}


class EstimatorSpec(
  collections.namedtuple(
    "EstimatorSpec",
    [
      "mode",
      "predictions",
      "loss",
      "train_op",
      "eval_metric_ops",
      "export_outputs",
      "training_chief_hooks",
      "training_hooks",
      "scaffold",
      "evaluation_hooks",
      "prediction_hooks",
    ],
  )
):
  """The tensors and ops of one mode of a model.

  Attributes:
    mode: one of ModeKeys.
    predictions: a tensor or a dict of tensors; required to predict.
    loss: float scalar; required to train and to evaluate.
    train_op: the op that trains one step; required to train.
    eval_metric_ops: name -> (value tensor, update op), or a metric of Keras 2.
    export_outputs: name -> ExportOutput, the signatures of an exported model.
    training_chief_hooks, training_hooks, evaluation_hooks, prediction_hooks: SessionRunHooks.
    scaffold: tf.train.Scaffold.

  Source: tf.estimator.EstimatorSpec of TensorFlow 1.15.
  """

  def __new__(
    cls,
    mode,
    predictions=None,
    loss=None,
    train_op=None,
    eval_metric_ops=None,
    export_outputs=None,
    training_chief_hooks=None,
    training_hooks=None,
    scaffold=None,
    evaluation_hooks=None,
    prediction_hooks=None,
  ):
    """Checks what the mode needs.

    Raises:
      ValueError: something that the mode needs is missing, or the loss is not a scalar.
      TypeError: a tensor, op or hook is none.
    """
    if mode not in _REQUIRED:
      raise ValueError(f"Unknown mode {mode!r}: use tf.estimator.ModeKeys.TRAIN, EVAL or PREDICT.")
    given = {"predictions": predictions, "loss": loss, "train_op": train_op}
    for name in _REQUIRED[mode]:
      if given[name] is None:
        raise ValueError(f"Missing {name}: the model_fn must return it in mode {mode!r}.")
    return super().__new__(
      cls,
      mode=mode,
      predictions=_checked_predictions({} if predictions is None else predictions, mode),
      loss=_scalar(loss),
      train_op=_checked_op("train_op", train_op),
      eval_metric_ops=_checked_metrics(eval_metric_ops),
      export_outputs=(
        checked(export_outputs, predictions) if mode == ModeKeys.PREDICT else export_outputs
      ),
      training_chief_hooks=checked_hooks(training_chief_hooks),
      training_hooks=checked_hooks(training_hooks),
      scaffold=_checked_scaffold(scaffold),
      evaluation_hooks=checked_hooks(evaluation_hooks),
      prediction_hooks=checked_hooks(prediction_hooks),
    )

  def _replace(self, **changes):
    """Returns a copy with `changes`; the mode stays."""
    if changes.get("mode", self.mode) != self.mode:
      raise ValueError("mode of EstimatorSpec cannot be changed.")
    return EstimatorSpec(**{**self._asdict(), **changes})


def _checked_predictions(predictions, mode):
  if mode == ModeKeys.PREDICT:
    values = predictions if isinstance(predictions, dict) else {"predictions": predictions}
    for name, value in values.items():
      if not tf.is_tensor(value):
        raise TypeError(f"predictions[{name!r}] must be a tensor, given: {value!r}")
      _check_graph(f"predictions[{name!r}]", value)
  return predictions


def _scalar(loss):
  """Returns the loss without dimensions of size 1."""
  if loss is None:
    return None
  if not tf.is_tensor(loss):
    raise TypeError(f"loss must be a tensor, given: {loss!r}")
  if loss.shape.num_elements() not in (None, 1):
    raise ValueError(f"Loss must be scalar, given: {loss}")
  _check_graph("loss", loss)
  return loss if loss.shape.rank == 0 else tf.reshape(loss, [])


def _checked_op(name, op):
  if op is not None and not (tf.is_tensor(op) or isinstance(op, (tf.Operation, tf.Variable))):
    raise TypeError(f"{name} must be Operation or Tensor, given: {op!r}")
  if op is not None:
    _check_graph(name, op)
  return op


def _check_graph(name, value) -> None:
  if value.graph is not tf.get_default_graph():
    raise ValueError(
      f'{name} with "{value.name}" must be from the default graph: create it within the model_fn '
      "that returns it."
    )


def _checked_metrics(metrics):
  """Metrics as name -> (value, update op)."""
  if metrics is None:
    return {}
  if not isinstance(metrics, dict):
    raise TypeError(f"eval_metric_ops must be a dict, given: {metrics!r}")
  checked = {}
  for name, metric in metrics.items():
    if hasattr(metric, "result") and hasattr(metric, "updates"):  # a Keras metric, already called
      for (
        variable
      ) in metric.variables:  # In no collection yet, so that nothing would initialize it.
        tf.add_to_collection(tf.GraphKeys.LOCAL_VARIABLES, variable)
      metric = (metric.result(), tf.group(*metric.updates))
    if not isinstance(metric, tuple) or len(metric) != 2:
      raise TypeError(
        "Values of eval_metric_ops must be (metric_value, update_op) tuples, "
        f"given: {metric!r} for key: {name}"
      )
    if not callable(metric[0]):
      _checked_op(f"eval_metric_ops[{name!r}]", metric[0])
      _checked_op(f"eval_metric_ops[{name!r}]", metric[1])
    checked[name] = metric
  return checked


def checked_hooks(hooks) -> tuple:
  """Returns the hooks as a tuple; raises TypeError for one that is none."""
  hooks = tuple(hooks or ())
  for hook in hooks:
    if not isinstance(hook, tf.train.SessionRunHook):
      raise TypeError(f"All hooks must be SessionRunHook instances, given: {hook!r}")
  return hooks


def _checked_scaffold(scaffold):
  scaffold = scaffold or tf.train.Scaffold()
  if not isinstance(scaffold, tf.train.Scaffold):
    raise TypeError(f"scaffold must be tf.train.Scaffold. Given: {scaffold!r}")
  return scaffold
