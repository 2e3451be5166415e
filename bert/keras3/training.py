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
from collections.abc import Iterable, Iterator, Mapping

import keras
import numpy as np
from absl import logging
from keras import ops

from bert.keras3.building_blocks import require_one_of
from bert.keras3.data import IGNORE_INDEX
from bert.keras3.heads import TaskHead
from bert.keras3.optimization import AdamWeightDecay
from bert.keras3.tasks import SparseCrossentropy

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
  return SparseCrossentropy(from_logits=True)(ops.where(labelled, labels, -1), _logits(logits))


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


def _logits(outputs):
  """Returns the logits in a model's output."""
  if isinstance(outputs, Mapping):
    return outputs["logits"]
  return getattr(outputs, "logits", outputs)


def compute_mlm_loader_loss(
  model: keras.Model, loader: Iterable, device: str | None = None
) -> float:
  """Computes the mean cross-entropy over all labelled tokens of a loader.

  Args:
    model: returns logits `[B, S, V]`.
    loader: result of `create_mlm_dataloader`, or any batches as dictionaries.
    device: see `on_device`.

  Raises:
    ValueError: there is no batch, or no labelled token.
  """
  total, count = 0.0, 0
  for inputs, labels, logits in _predictions(model, loader, device):
    labelled = np.logical_and(labels >= 0, inputs.get("attention_mask", 1))
    if number := int(labelled.sum()):
      # Of the labelled tokens alone: the vocabulary is large.
      total += number * float(compute_mlm_loss(logits[labelled], labels[labelled]))
      count += number
  if not count:
    raise ValueError("The loader has no token to predict: no batch, or all labels are -100.")
  return total / count


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
    return inputs, ops.convert_to_numpy(batch["labels"])
  inputs, labels = batch
  return dict(inputs), ops.convert_to_numpy(labels)


def _predictions(model, loader, device):
  """Yields inputs, labels and float32 outputs of each batch."""
  with on_device(device):
    for batch in loader:
      inputs, labels = split_batch(batch)
      yield inputs, labels, np.asarray(_logits(model.predict_on_batch(inputs)), np.float32)


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
  not become 0 in float16. If a gradient overflows, the step is skipped and the scale is halved
  (arXiv:1710.03740). bfloat16 has the range of float32 and needs no scale, but steps with infinity
  or NaN are skipped there, too.

  This uses Keras's dtype policies and its `LossScaleOptimizer` around `AdamWeightDecay`. After
  `prepare` a model can also be trained with `fit`.

  Attributes:
    dtype: `float16` or `bfloat16`.
    model: the model of the first step; None before it.
    optimizer: Keras's `LossScaleOptimizer`; its `dynamic_scale` is the factor of the loss.
  """

  def __init__(
    self,
    dtype: str = "float16",
    learning_rate=2e-5,
    max_grad_norm: float | None = 1.0,
    gradient_accumulation_steps: int = 1,
    jit_compile: bool | str = "auto",
    **optimizer_args,
  ):
    """Creates the trainer.

    Args:
      dtype: type of matrix products: `float16` or `bfloat16`.
      learning_rate: a number or a schedule; schedules count batches.
      max_grad_norm: gradients are scaled down to this global norm; None for no limit.
      gradient_accumulation_steps: number of batches whose mean gradient makes one update.
      jit_compile: as in `model.compile`.
      **optimizer_args: further arguments of `AdamWeightDecay`.

    Raises:
      ValueError: the dtype is unknown, or a number is out of range.
    """
    require_one_of("dtype", dtype, ("float16", "bfloat16"))
    self.dtype = dtype
    self.model: keras.Model | None = None
    self.jit_compile = jit_compile
    if gradient_accumulation_steps != 1:  # which Keras does not accept
      optimizer_args["gradient_accumulation_steps"] = gradient_accumulation_steps
    self.optimizer = keras.optimizers.LossScaleOptimizer(
      AdamWeightDecay(learning_rate, global_clipnorm=max_grad_norm, **optimizer_args)
    )

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
      jit_compile=self.jit_compile,
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
      ValueError: the batch has no labels; see also `prepare`.
    """
    inputs, labels = split_batch(batch)
    if "attention_mask" in inputs:
      mask = ops.convert_to_numpy(inputs["attention_mask"])
      labels = np.where(mask > 0, labels, IGNORE_INDEX)
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
    return float(model.train_on_batch(inputs, labels, return_dict=True)["loss"])


# ---------------------------------------------------------------------------------------------
# Scores of a classifier: scikit-learn's.


def compute_precision_recall_f1(
  predictions, labels, num_classes: int | None = None, average: str | None = None
) -> dict:
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
  from sklearn.metrics import precision_recall_fscore_support

  predictions, labels, num_classes = _checked(predictions, labels, num_classes)
  average = average or ("binary" if num_classes <= 2 else "macro")
  per_class = average == "none"
  scores = precision_recall_fscore_support(
    labels,
    predictions,
    labels=range(num_classes) if per_class else None,
    average=None if per_class else average,
    zero_division=0.0,
  )
  names = ("precision", "recall", "f1")
  return {name: np.asarray(score).tolist() for name, score in zip(names, scores, strict=False)}


def compute_confusion_matrix(predictions, labels, num_classes: int | None = None) -> np.ndarray:
  """Counts by true class (row) and predicted class (column): int64 `[C, C]`.

  Arguments and errors as in `compute_precision_recall_f1`.

  Example:
    >>> compute_confusion_matrix([0, 1, 1, 1], [0, 0, 1, 2]).tolist()
    [[1, 1, 0], [0, 1, 0], [0, 1, 0]]
  """
  from sklearn.metrics import confusion_matrix

  predictions, labels, num_classes = _checked(predictions, labels, num_classes)
  return confusion_matrix(labels, predictions, labels=range(num_classes))


def _checked(predictions, labels, num_classes: int | None) -> tuple[np.ndarray, np.ndarray, int]:
  predictions, labels = ops.convert_to_numpy(predictions), ops.convert_to_numpy(labels).ravel()
  if predictions.dtype.kind == "f":
    predictions = predictions.argmax(axis=-1)
  predictions = predictions.ravel()
  if predictions.shape != labels.shape:
    raise ValueError(f"{predictions.size} predictions, but {labels.size} labels.")
  predictions, labels = predictions[labels >= 0], labels[labels >= 0]
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
  average: str | None = None,
) -> dict:
  """Scores a classifier.

  Args:
    model: returns logits or probabilities, `[B, C]`, or `[B, S, C]` for tokens.
    loader: result of `create_classification_dataloader`, or any batches with `labels`.
    device: see `on_device`.
    num_classes: C; by default that of the model.
    average: see `compute_precision_recall_f1`.

  Returns:
    `accuracy`, `precision`, `recall`, `f1`, `per_class` (lists of `precision`, `recall` and `f1`)
    and `confusion_matrix` (see `compute_confusion_matrix`).

  Raises:
    ValueError: there is no labelled example, or a label is out of the model's range.
  """
  batches = [
    (y.ravel(), x.reshape(-1, x.shape[-1])) for _, y, x in _predictions(model, loader, device)
  ]
  if not batches:
    raise ValueError("Nothing to score: the loader has no batch.")
  labels, scores = (np.concatenate(parts) for parts in zip(*batches, strict=True))
  if num_classes not in (None, scores.shape[1]):
    raise ValueError(f"num_classes is {num_classes}, but the model has {scores.shape[1]}.")
  predictions, labels, num_classes = _checked(scores, labels, scores.shape[1])
  return {
    "accuracy": float((predictions == labels).mean()),
    **compute_precision_recall_f1(predictions, labels, num_classes, average),
    "per_class": compute_precision_recall_f1(predictions, labels, num_classes, "none"),
    "confusion_matrix": compute_confusion_matrix(predictions, labels, num_classes),
  }
