"""The result of a model_fn and the settings of an `Estimator`."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf


class ModeKeys:
  """What a model is built for; the values are those of TensorFlow 1."""

  TRAIN = "train"
  EVAL = "eval"
  PREDICT = "infer"


@dataclasses.dataclass
class EstimatorSpec:
  """The result of a model_fn.

  Attributes:
    mode: one of `ModeKeys`.
    predictions: name -> tensor `[B, ...]`, which `predict` yields example by example.
    loss: float `[]`, mean over the batch; needed to train and to evaluate.
    train_op: gradients and their application, see `optimization.create_optimizer`.
    eval_metrics: `(metric_fn, {name: tensor [B, ...]})`. The tensors of all batches are joined
      along the first axis (other axes padded with zeros to the longest) and `metric_fn(**arrays)`
      is called once on NumPy arrays; it returns name -> number (or array or text, only logged).
    init_checkpoint: initial values of variables if `model_dir` holds no checkpoint.
    summaries: name -> scalar tensor, written beside the loss in training. A value that is costly to
      compute is passed as a function that returns the tensor: it is called in a branch of the graph
      that runs only on steps whose values are written or shown.
    progress: names of summaries (or `learning_rate`) that progress lines show, too.
    rows: of evaluation: name -> tensor `[B, ...]`, which `evaluate` gives to its `on_rows`.
    rates: name of a speed -> name of the summary that holds its amount per example. With
      `{"tokens/sec": "tokens_per_example"}` tokens per second are written and shown, and
      `total_tokens`, of all starts of the run, is written.
    eval_metric_ops: of TensorFlow 1; a ValueError says what to give instead.
  """

  mode: str
  predictions: dict[str, tf.Tensor] | tf.Tensor | None = None
  loss: tf.Tensor | None = None
  train_op: Any = None
  eval_metrics: tuple[Callable[..., dict], dict[str, tf.Tensor]] | None = None
  init_checkpoint: str | None = None
  summaries: dict[str, tf.Tensor | Callable[[], tf.Tensor]] | None = None
  progress: Sequence[str] = ()
  rows: dict[str, tf.Tensor] = dataclasses.field(default_factory=dict)
  rates: dict[str, str] = dataclasses.field(default_factory=dict)
  eval_metric_ops: dataclasses.InitVar[Any] = None

  def __post_init__(self, eval_metric_ops):
    if eval_metric_ops:
      raise ValueError(
        "EstimatorSpec: eval_metric_ops counts batch by batch in a graph of TensorFlow 1. Give "
        "eval_metrics=(metric_fn, tensors), whose metric_fn gets the arrays of the whole data set."
      )


@dataclasses.dataclass(frozen=True)
class RunConfig:
  """The settings of a run that do not change the model.

  Attributes:
    model_dir: folder of checkpoints and event files.
    seed: determines initial values, dropout and (through `params["seed"]`) the order of the data.
    save_checkpoints_steps: save a checkpoint every N steps, and at step 0 and the end.
    keep_checkpoint_max: number of newest checkpoints to keep; 0 keeps all. Of fewer, that of step 0
      is removed with the next one: its weights are those the run began with.
    save_summary_steps: write TensorBoard scalars every N steps.
    log_every_steps: log a progress line every N steps, where no progress bar is shown.
    steps_per_loop: steps per call from Python; more saves a little time per step, and changes no
      result.
    gradient_accumulation_steps: equal parts into which each batch is divided, computed one after
      another to save memory.
    strategy: `tf.distribute` strategy; None for one device.
    fingerprint: JSON-able facts that must be equal to resume (model shape, vocabulary, labels).
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
  fingerprint: dict = dataclasses.field(default_factory=dict)
  informative: dict = dataclasses.field(default_factory=dict)
  show_progress: bool | None = None

  def __post_init__(self):
    _check_at_least_one(
      self,
      "save_checkpoints_steps",
      "save_summary_steps",
      "log_every_steps",
      "steps_per_loop",
      "gradient_accumulation_steps",
    )


@dataclasses.dataclass(frozen=True)
class EvalSpec:
  """Evaluation during training.

  Attributes:
    input_fn: the evaluation data.
    every_steps: evaluate every N steps, and at the end.
    metric: the result that decides which checkpoint is best; of equal ones, the earliest.
    higher_is_better: whether a larger `metric` is better.
    patience: stop after N evaluations in a row without improvement; None: never.
    keep_best: save the best weights under `model_dir/best`.
    steps: number of batches to evaluate on; None for all.
  """

  input_fn: Callable[[dict], tf.data.Dataset]
  every_steps: int
  metric: str = "eval_accuracy"
  higher_is_better: bool = True
  patience: int | None = None
  keep_best: bool = True
  steps: int | None = None

  def __post_init__(self):
    _check_at_least_one(self, "every_steps", "patience", "steps")


def _check_at_least_one(config: RunConfig | EvalSpec, *names: str) -> None:
  for name in names:
    value = getattr(config, name)
    if value is not None and value < 1:
      raise ValueError(f"{type(config).__name__}.{name} must be at least 1, but is {value}.")
