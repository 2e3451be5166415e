"""Losses with -100, training steps in half precision, and scores, for every Keras backend.

  trainer = AMPTrainer(dtype="bfloat16", learning_rate=5e-5, max_grad_norm=1.0)
  for batch in create_mlm_dataloader(texts=texts, tokenizer=tokenizer):
    loss = trainer.train_mlm_step(model, batch)
  compute_mlm_loader_loss(model, evaluation_loader)

  scores = evaluate_classification_metrics(model, loader, num_classes=2)
  scores["accuracy"], scores["f1"], scores["per_class"]["recall"], scores["confusion_matrix"]

The models are those of `models.py` and `kit.py`, or any Keras model that reads the inputs of
`data.py` and returns logits.

Letters in shapes: B = batch size, S = sequence length, C = number of classes, V = vocabulary size,
N = number of examples.
"""

import contextlib
import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import keras
import numpy as np
from absl import logging
from keras import ops

from bert.keras3.building_blocks import require_one_of
from bert.keras3.data import IGNORE_INDEX
from bert.keras3.heads import TaskHead
from bert.keras3.optimization import AdamWeightDecay
from bert.keras3.tasks import SparseCrossentropy
from bert.tasks import metrics

AMP_DTYPES = ("float16", "bfloat16")
AVERAGES = ("binary", "macro", "micro", "weighted", "none")

# After about 30 successive overflows no smaller loss scale would help.
_SMALLEST_SCALE = 2.0**-14


# ---------------------------------------------------------------------------------------------
# Losses.


def compute_mlm_loss(logits, labels, attention_mask=None, ignore_index: int = IGNORE_INDEX):
  """Computes the mean cross-entropy of the tokens that have a label.

  Args:
    logits: float `[B, S, V]`, or a model's output that contains them.
    labels: int `[B, S]`, ids; `ignore_index` or any negative number for tokens not to predict.
    attention_mask: `[B, S]`, 0 for padding, which never counts.
    ignore_index: the label of tokens without a label.

  Returns:
    A float32 scalar tensor of the backend; 0 if no token has a label.

  Example:
    >>> loss = compute_mlm_loss(np.zeros((1, 3, 4), "float32"), np.array([[2, -100, -100]]))
    >>> round(float(loss), 4)  # log(4)
    1.3863
  """
  labels = ops.cast(ops.convert_to_tensor(labels), "int32")
  labelled = ops.not_equal(labels, ignore_index)
  if attention_mask is not None:
    labelled = ops.logical_and(labelled, ops.convert_to_tensor(attention_mask) > 0)
  return SparseCrossentropy(from_logits=True)(ops.where(labelled, labels, -1), logits_of(logits))


def compute_classification_loss(logits, labels, attention_mask=None, ignore_index=IGNORE_INDEX):
  """Computes the mean cross-entropy of the examples, or of tokens, that have a label.

  Args:
    logits: float `[B, C]`, or `[B, S, C]` for tokens, or a model's output that contains them.
    labels: int `[B]` or `[B, S]`.
    attention_mask: `[B, S]`, 0 for tokens that do not count; ignored for labels of whole texts.
    ignore_index: the label of examples without a label.

  Returns:
    A float32 scalar tensor of the backend; 0 if nothing has a label.
  """
  labels = ops.convert_to_tensor(labels)
  mask = attention_mask if len(labels.shape) == 2 else None
  return compute_mlm_loss(logits, labels, mask, ignore_index)


def logits_of(outputs):
  """Returns the logits in a model's output."""
  if isinstance(outputs, Mapping):
    return outputs["logits"]
  return getattr(outputs, "logits", outputs)


def compute_mlm_loader_loss(
  model: keras.Model, loader: Iterable, device: str | None = None, num_batches: int | None = None
) -> float:
  """Computes the mean cross-entropy over all labelled tokens of a loader.

  Args:
    model: returns logits `[B, S, V]`.
    loader: result of `create_mlm_dataloader`, or any batches as dictionaries.
    device: see `on_device`.
    num_batches: number of batches to evaluate; all by default.

  Raises:
    ValueError: there is no batch, or no labelled token.
  """
  total, count = 0.0, 0
  with on_device(device):
    for batch in itertools.islice(loader, num_batches):
      inputs, labels = split_batch(batch)
      labelled = np.logical_and(labels >= 0, inputs.get("attention_mask", 1))
      logits = predict_logits(model, inputs)[labelled]  # [n, V]
      total += float(cross_entropies(logits, labels[labelled]).sum())
      count += int(labelled.sum())
  if not count:
    raise ValueError("The loader has no token to predict: no batch, or all labels are -100.")
  return total / count


def cross_entropies(logits: np.ndarray, labels: np.ndarray) -> np.ndarray:
  """Computes float64 `[n]` of logits, float `[n, C]`, and labels, int `[n]`.

  Example:
    >>> cross_entropies(np.array([[0.0, 0.0], [0.0, -1000.0]]), np.array([1, 0])).round(4).tolist()
    [0.6931, 0.0]
  """
  logits = logits.astype(np.float64)
  shifted = logits - logits.max(axis=-1, keepdims=True)
  picked = np.take_along_axis(shifted, labels[:, None], axis=-1)[:, 0]
  return np.log(np.exp(shifted).sum(axis=-1)) - picked


# ---------------------------------------------------------------------------------------------
# Batches and devices.


def split_batch(batch) -> tuple[dict[str, np.ndarray], np.ndarray]:
  """Splits a batch into inputs and labels: a dictionary with `labels`, or a pair.

  Raises:
    ValueError: the labels are missing.
  """
  if isinstance(batch, Mapping):
    if "labels" not in batch:
      raise ValueError(f"The batch has no 'labels', only {', '.join(batch)}.")
    inputs = {name: value for name, value in batch.items() if name != "labels"}
    return inputs, _as_numpy(batch["labels"])
  inputs, labels = batch
  return dict(inputs), _as_numpy(labels)


def _as_numpy(values) -> np.ndarray:
  return np.asarray(ops.convert_to_numpy(values))


def predict_logits(model: keras.Model, inputs: Mapping) -> np.ndarray:
  """Computes the float32 logits of a batch, as `model.predict` does."""
  outputs = model.predict_on_batch(dict(inputs))
  return np.asarray(logits_of(outputs), np.float32)


@contextlib.contextmanager
def on_device(device: str | None) -> Iterator[None]:
  """Computes on a device.

  Args:
    device: `cpu`; `cuda` or `gpu`, optionally with a number (`cuda:1`), which falls back to the CPU
      with a warning if there is no GPU; None for Keras's default, a GPU if there is one.
  """
  name = (device or "").replace("cuda", "gpu")
  if name.startswith("gpu") and not _has_gpu():
    logging.warning("device is %r, but Keras finds no GPU; using the CPU.", device)
    name = ""
  if not name:
    yield
    return
  with keras.device(name if ":" in name else f"{name}:0"):
    yield


def _has_gpu() -> bool:
  if keras.backend.backend() == "torch":
    import torch

    return torch.cuda.is_available()
  # Not list_devices("gpu"): without a GPU JAX raises an error.
  return any(name.startswith(("gpu", "cuda")) for name in keras.distribution.list_devices())


# ---------------------------------------------------------------------------------------------
# Steps in half precision.


class AMPTrainer:
  """Trains a model with matrix products in half precision, and weights and sums in float32.

  The loss is multiplied by a scale and the gradients are divided by it, so that small gradients do
  not become 0 in float16. If a gradient overflows, the step is skipped and the scale is halved;
  after `growth_interval` good steps it is doubled (arXiv:1710.03740). bfloat16 has the range of
  float32 and needs no scale, but steps with infinity or NaN are skipped there, too.

  This uses Keras's dtype policies and its `LossScaleOptimizer` around `AdamWeightDecay`. After
  `prepare` a model can also be trained with `fit`.

  Attributes:
    dtype: `float16` or `bfloat16`.
    skipped_steps: number of steps that overflowed.
    model: the model of the first step; None before it.
    optimizer: Keras's `LossScaleOptimizer`.
  """

  def __init__(
    self,
    dtype: str = "float16",
    learning_rate=2e-5,
    max_grad_norm: float | None = 1.0,
    gradient_accumulation_steps: int = 1,
    initial_scale: float = 2.0**15,
    growth_interval: int = 2000,
    jit_compile: bool | str = "auto",
    run_eagerly: bool = False,
    **optimizer_args,
  ):
    """Creates the trainer.

    Args:
      dtype: type of matrix products: `float16` or `bfloat16`.
      learning_rate: a number or a schedule; schedules count batches.
      max_grad_norm: gradients are scaled down to this global norm; None for no limit.
      gradient_accumulation_steps: number of batches whose mean gradient makes one update.
      initial_scale: initial scale of the loss.
      growth_interval: number of good steps after which the scale is doubled.
      jit_compile: as in `model.compile`.
      run_eagerly: as in `model.compile`.
      **optimizer_args: further arguments of `AdamWeightDecay`.

    Raises:
      ValueError: the dtype is unknown, or a number is out of range.
    """
    require_one_of("dtype", dtype, AMP_DTYPES)
    if gradient_accumulation_steps < 1:
      raise ValueError(
        f"gradient_accumulation_steps is {gradient_accumulation_steps}; it must be at least 1."
      )
    self.dtype = dtype
    self.model: keras.Model | None = None
    self.skipped_steps = 0
    self.jit_compile = jit_compile
    self.run_eagerly = run_eagerly
    self.optimizer = keras.optimizers.LossScaleOptimizer(
      AdamWeightDecay(
        learning_rate,
        global_clipnorm=max_grad_norm,
        # Keras accepts only None and at least 2.
        gradient_accumulation_steps=(
          gradient_accumulation_steps if gradient_accumulation_steps > 1 else None
        ),
        **optimizer_args,
      ),
      initial_scale=initial_scale,
      dynamic_growth_steps=growth_interval,
    )

  @property
  def loss_scale(self) -> float:
    """The factor of the loss."""
    optimizer = self.optimizer
    return float(optimizer.dynamic_scale if optimizer.built else optimizer.initial_scale)

  def prepare(self, model: keras.Model) -> None:
    """Sets a model's layers to half precision and compiles it; its weights stay float32.

    Raises:
      ValueError: the trainer already has another model, or the model returns probabilities.
    """
    if self.model is model:
      return
    if self.model is not None:
      raise ValueError("This AMPTrainer already has a model; create one trainer per model.")
    # Not public API, but the method with which Keras itself finds nested layers.
    layers = list(model._flatten_layers())
    for layer in layers:
      if isinstance(layer, TaskHead) and layer.spec.output == "probabilities":
        raise ValueError(
          f"The head {layer.name!r} returns probabilities; create it with output='logits'."
        )
    for layer in layers:
      layer.dtype_policy = f"mixed_{self.dtype}"
    model.compile(
      optimizer=self.optimizer,
      loss=SparseCrossentropy(from_logits=True),
      jit_compile=self.jit_compile if not self.run_eagerly else False,
      run_eagerly=self.run_eagerly,
      auto_scale_loss=False,  # the optimizer scales it already
    )
    self.model = model

  def train_mlm_step(self, model: keras.Model, batch) -> float:
    """Makes a step on masked tokens.

    Args:
      model: returns logits `[B, S, V]`; the same model in every step.
      batch: a dictionary with `labels`, as from `create_mlm_dataloader`, or inputs and labels.

    Returns:
      The loss of the batch before the step.

    Raises:
      FloatingPointError: too many steps overflowed.
      ValueError: the batch has no labels; see also `prepare`.
    """
    inputs, labels = split_batch(batch)
    if "attention_mask" in inputs:
      labels = np.where(_as_numpy(inputs["attention_mask"]) > 0, labels, IGNORE_INDEX)
    return self._step(model, inputs, labels)

  def train_classification_step(self, model: keras.Model, batch) -> float:
    """Makes a step on labelled texts, with logits `[B, C]` and labels `[B]`."""
    inputs, labels = split_batch(batch)
    num_labels = getattr(model, "num_labels", None)
    if num_labels is not None and labels.size and labels.max() >= num_labels:
      raise ValueError(f"A label is {labels.max()}, but the model has {num_labels} labels.")
    return self._step(model, inputs, labels)

  def _step(self, model: keras.Model, inputs: dict, labels: np.ndarray) -> float:
    self.prepare(model)
    scale = self.loss_scale
    loss = float(model.train_on_batch(inputs, labels, return_dict=True)["loss"])
    if self.loss_scale < scale:
      self.skipped_steps += 1
      self._check_scale(loss)
    return loss

  def _check_scale(self, loss: float) -> None:
    if self.loss_scale < _SMALLEST_SCALE:
      cause = "the loss" if not math.isfinite(loss) else "a gradient"
      raise FloatingPointError(
        f"{self.skipped_steps} steps were skipped, and the loss scale fell to {self.loss_scale}: "
        f"{cause} is not finite. Lower the learning rate, or train in float32."
      )


# ---------------------------------------------------------------------------------------------
# Scores of a classifier: `bert/tasks/metrics.py` under the kit's names.


def compute_precision_recall_f1(
  predictions, labels, num_classes: int | None = None, average: str | None = None
) -> dict[str, Any]:
  """Computes precision, recall and F1; 0 where the denominator is 0.

  Args:
    predictions: int `[N]`, classes; or float `[N, C]`, scores of the classes.
    labels: int `[N]`, true classes; examples with a negative label are ignored.
    num_classes: C; by default the largest class plus 1.
    average: `binary`: of class 1; `macro`: mean over the classes that occur; `weighted`: mean
      weighted by the classes' frequencies; `micro`: over all decisions; `none`: a list with one
      number per class. The default is `binary` for two classes, and `macro` for more.

  Returns:
    `precision`, `recall` and `f1`.

  Raises:
    ValueError: the shapes differ, no example has a label, a class is out of range, or `average` is
      unknown.

  Example:
    >>> compute_precision_recall_f1([1, 1, 0, 1], [1, 0, 0, 1])
    {'precision': 0.6666666666666666, 'recall': 1.0, 'f1': 0.8}
    >>> compute_precision_recall_f1([1, 1, 0, 1], [1, 0, 0, 1], average="none")["recall"]
    [0.5, 1.0]
  """
  predictions, labels, num_classes = _checked(predictions, labels, num_classes)
  average = average or ("binary" if num_classes <= 2 else "macro")
  require_one_of("average", average, AVERAGES)
  if average == "none":
    return _per_class(predictions, labels, num_classes)
  if average == "binary" and num_classes > 2:
    raise ValueError(f"average='binary' is for two classes, but there are {num_classes}.")
  functions = {"precision": metrics.precision, "recall": metrics.recall, "f1": metrics.f1}
  return {name: function(labels, predictions, average) for name, function in functions.items()}


def _per_class(predictions, labels, num_classes: int) -> dict[str, list[float]]:
  from sklearn.metrics import precision_recall_fscore_support

  scores = precision_recall_fscore_support(
    labels, predictions, labels=range(num_classes), zero_division=0.0
  )
  return {name: scores[i].tolist() for i, name in enumerate(("precision", "recall", "f1"))}


def compute_confusion_matrix(predictions, labels, num_classes: int | None = None) -> np.ndarray:
  """Counts by true class (row) and predicted class (column): int64 `[C, C]`.

  Arguments and errors as in `compute_precision_recall_f1`.

  Example:
    >>> compute_confusion_matrix([0, 1, 1, 1], [0, 0, 1, 2]).tolist()
    [[1, 1, 0], [0, 1, 0], [0, 1, 0]]
  """
  predictions, labels, num_classes = _checked(predictions, labels, num_classes)
  return metrics.confusion_matrix(labels, predictions, num_classes)


def _checked(predictions, labels, num_classes: int | None) -> tuple[np.ndarray, np.ndarray, int]:
  predictions = np.asarray(keras.ops.convert_to_numpy(predictions))
  labels = np.asarray(keras.ops.convert_to_numpy(labels)).ravel()
  if predictions.dtype.kind == "f":
    predictions = predictions.argmax(axis=-1)
  predictions = predictions.ravel()
  if predictions.shape != labels.shape:
    raise ValueError(f"{predictions.size} predictions, but {labels.size} labels.")
  predictions, labels = metrics.keep_real(labels >= 0, predictions, labels)
  if not labels.size:
    raise ValueError("Nothing to score: no example has a label.")
  largest = int(max(predictions.max(), labels.max()))
  num_classes = num_classes or largest + 1
  if largest >= num_classes:
    raise ValueError(f"The largest class is {largest}, but num_classes is {num_classes}.")
  return predictions, labels, num_classes


def evaluate_classification_metrics(
  model: keras.Model,
  loader: Iterable,
  device: str | None = None,
  num_classes: int | None = None,
  num_batches: int | None = None,
  average: str | None = None,
) -> dict[str, Any]:
  """Scores a classifier.

  Args:
    model: returns logits or probabilities, `[B, C]`, or `[B, S, C]` for tokens.
    loader: result of `create_classification_dataloader`, or any batches with `labels`.
    device: see `on_device`.
    num_classes: C; by default that of the model.
    num_batches: number of batches to evaluate; all by default.
    average: see `compute_precision_recall_f1`.

  Returns:
    `accuracy`, `precision`, `recall`, `f1`, `loss` (mean cross-entropy), `per_class` (lists of
    `precision`, `recall` and `f1`) and `confusion_matrix` (see `compute_confusion_matrix`).

  Raises:
    ValueError: there is no labelled example, or a label is out of the model's range.
  """
  outputs, labels = _collect(model, loader, device, num_batches)
  if num_classes is not None and num_classes != outputs.shape[1]:
    raise ValueError(f"num_classes is {num_classes}, but the model has {outputs.shape[1]}.")
  num_classes = outputs.shape[1]
  predictions, labels, _ = _checked(outputs.argmax(axis=-1), labels, num_classes)
  return {
    "accuracy": metrics.accuracy(labels, predictions),
    **compute_precision_recall_f1(predictions, labels, num_classes, average),
    "loss": float(cross_entropies(_as_logits(outputs), labels).mean()),
    "per_class": _per_class(predictions, labels, num_classes),
    "confusion_matrix": metrics.confusion_matrix(labels, predictions, num_classes),
  }


def _collect(model, loader, device, num_batches) -> tuple[np.ndarray, np.ndarray]:
  """Collects outputs float32 `[N, C]` and labels int `[N]` of the labelled examples."""
  outputs, labels = [], []
  with on_device(device):
    for batch in itertools.islice(loader, num_batches):
      inputs, batch_labels = split_batch(batch)
      labelled = batch_labels >= 0
      outputs.append(predict_logits(model, inputs)[labelled])
      labels.append(batch_labels[labelled])
  if not sum(part.size for part in labels):
    raise ValueError("Nothing to score: the loader has no batch, or no example with a label.")
  return np.concatenate(outputs), np.concatenate(labels)


def _as_logits(outputs: np.ndarray) -> np.ndarray:
  """Returns logits unchanged, and the logarithms of probabilities, which are logits, too."""
  sums = outputs.sum(axis=-1)
  if outputs.min() >= 0 and np.abs(sums - 1).max() < 1e-3:
    return np.log(np.maximum(outputs, np.finfo(np.float32).tiny))
  return outputs
