"""Losses with -100, and training steps in half precision, for every Keras backend.

  trainer = AMPTrainer(dtype="bfloat16", learning_rate=5e-5, max_grad_norm=1.0)
  for batch in create_mlm_dataloader(texts=texts, tokenizer=tokenizer):
    loss = trainer.train_mlm_step(model, batch)
  compute_mlm_loader_loss(model, evaluation_loader)

Models are those of `models.py` and `kit.py`, or any Keras model that takes the inputs
of `data.py` and gives logits.

Letters in shapes: B = batch size, S = sequence length, C = number of classes, V = vocabulary size.
"""

import contextlib
import itertools
import math
from collections.abc import Iterable, Iterator, Mapping

import keras
import numpy as np
from absl import logging
from keras import ops

from bert.keras3.data import IGNORE_INDEX
from bert.keras3.heads import TaskHead
from bert.keras3.optimizer import AdamWeightDecay
from bert.keras3.tasks import SparseCrossentropy

AMP_DTYPES = ("float16", "bfloat16")

# Where the loss scale was halved down to this, about 30 times in a row, no scale would help.
_SMALLEST_SCALE = 2.0**-14


# ---------------------------------------------------------------------------------------------
# Losses.


def compute_mlm_loss(logits, labels, attention_mask=None, ignore_index: int = IGNORE_INDEX):
  """Mean cross-entropy of the tokens that have a label.

  Args:
    logits: float `[B, S, V]`, or a model's output that has them.
    labels: int `[B, S]`, ids; `ignore_index` or any negative number where there is nothing to
      predict.
    attention_mask: `[B, S]`, 0 for padding, which never counts.
    ignore_index: the label that stands for none.

  Returns:
    A float32 scalar tensor of the backend, 0 if no token has a label.

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
  """Mean cross-entropy of the examples, or of tokens, that have a label.

  Args:
    logits: float `[B, C]`, or `[B, S, C]` of tokens, or a model's output that has them.
    labels: int `[B]` or `[B, S]`.
    attention_mask: `[B, S]`, which tokens count. Of whole texts all do.
    ignore_index: the label that stands for none.

  Returns:
    A float32 scalar tensor of the backend, 0 if nothing has a label.
  """
  labels = ops.convert_to_tensor(labels)
  mask = attention_mask if len(labels.shape) == 2 else None
  return compute_mlm_loss(logits, labels, mask, ignore_index)


def logits_of(outputs):
  """The logits among what a model gives."""
  if isinstance(outputs, Mapping):
    return outputs["logits"]
  return getattr(outputs, "logits", outputs)


def compute_mlm_loader_loss(
  model: keras.Model, loader: Iterable, device: str | None = None, num_batches: int | None = None
) -> float:
  """Mean cross-entropy of all tokens of a loader that have a label; batches weigh by theirs.

  Args:
    model: gives logits `[B, S, V]`.
    loader: of `create_mlm_dataloader`, or any batches as dictionaries.
    device: see `on_device`.
    num_batches: how many batches to look at; all by default.

  Raises:
    ValueError: there is no batch, or no token with a label.
  """
  total, count = 0.0, 0
  with on_device(device):
    for batch in itertools.islice(loader, num_batches):
      inputs, labels = split_batch(batch)
      labelled = np.logical_and(labels >= 0, inputs.get("attention_mask", 1))
      logits = predict_logits(model, inputs)[labelled]  # [n, V]: the others need no logarithm
      total += float(cross_entropies(logits, labels[labelled]).sum())
      count += int(labelled.sum())
  if not count:
    raise ValueError("The loader has no token to predict: no batch, or no label but -100.")
  return total / count


def cross_entropies(logits: np.ndarray, labels: np.ndarray) -> np.ndarray:
  """float64 `[n]` of float `[n, C]` and int `[n]`.

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
  """Inputs and labels of a batch: a dictionary with `labels`, or a pair.

  Raises:
    ValueError: there are no labels.
  """
  if isinstance(batch, Mapping):
    if "labels" not in batch:
      raise ValueError(f"The batch has no labels, only {', '.join(batch)}.")
    inputs = {name: value for name, value in batch.items() if name != "labels"}
    return inputs, _as_numpy(batch["labels"])
  inputs, labels = batch
  return dict(inputs), _as_numpy(labels)


def _as_numpy(values) -> np.ndarray:
  return np.asarray(ops.convert_to_numpy(values))


def predict_logits(model: keras.Model, inputs: Mapping) -> np.ndarray:
  """float32 logits of a batch, computed as in `model.predict`."""
  outputs = model.predict_on_batch(dict(inputs))
  return np.asarray(logits_of(outputs), np.float32)


@contextlib.contextmanager
def on_device(device: str | None) -> Iterator[None]:
  """Where to compute.

  Args:
    device: `cpu`; `cuda` or `gpu`, perhaps with a number (`cuda:1`); None leaves it to Keras, which
      takes a GPU if there is one. Without a GPU a warning says so, and the CPU computes.
  """
  name = (device or "").replace("cuda", "gpu")
  if name.startswith("gpu") and not _has_gpu():
    logging.warning("device is %r, but Keras finds no GPU here: the CPU computes.", device)
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
  # Not list_devices("gpu"): without one JAX raises an error.
  return any(name.startswith(("gpu", "cuda")) for name in keras.distribution.list_devices())


# ---------------------------------------------------------------------------------------------
# Steps in half precision.


class AMPTrainer:
  """Trains a model with matrix products in half precision, and weights and sums in float32.

  The loss is multiplied by a scale, and the gradients are divided by it, so that small ones do not
  become 0 in float16. Where a gradient overflows, the step is skipped and the scale halved; after
  `growth_interval` good steps it is doubled (arXiv:1710.03740). bfloat16 has float32's range and
  needs no scale, but steps with infinity or NaN are skipped there, too.

  All of this is Keras's: `keras.mixed_precision` policies and its `LossScaleOptimizer`, around
  `AdamWeightDecay`. After `prepare` a model may as well be trained by `fit`.

  Attributes:
    dtype: `float16` or `bfloat16`.
    skipped_steps: how many steps overflowed.
    model: the model of the first step; None before.
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
    """Makes the trainer.

    Args:
      dtype: of matrix products: `float16` or `bfloat16`.
      learning_rate: a number or a schedule; schedules count batches.
      max_grad_norm: what gradients are scaled down to; None for no limit.
      gradient_accumulation_steps: batches whose mean gradient makes one update.
      initial_scale: of the loss.
      growth_interval: good steps until the scale is doubled.
      jit_compile: as of `model.compile`.
      run_eagerly: as of `model.compile`.
      **optimizer_args: of `AdamWeightDecay`.

    Raises:
      ValueError: the dtype is unknown, or a number out of range.
    """
    if dtype not in AMP_DTYPES:
      raise ValueError(f"dtype is {dtype!r}; known: {', '.join(AMP_DTYPES)}.")
    if gradient_accumulation_steps < 1:
      raise ValueError(
        f"gradient_accumulation_steps is {gradient_accumulation_steps}; at least 1 is needed."
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
        # Keras knows no 1 here.
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
    """What the loss is multiplied by."""
    optimizer = self.optimizer
    return float(optimizer.dynamic_scale if optimizer.built else optimizer.initial_scale)

  def prepare(self, model: keras.Model) -> None:
    """Turns a model's layers to half precision and compiles it; its weights stay float32.

    Raises:
      ValueError: the trainer has another model already, or the model gives probabilities.
    """
    if self.model is model:
      return
    if self.model is not None:
      raise ValueError("This AMPTrainer has a model already; make one trainer for each model.")
    # Not public, but the way Keras itself goes through the layers inside of layers.
    layers = list(model._flatten_layers())
    for layer in layers:
      if isinstance(layer, TaskHead) and layer.spec.output == "probabilities":
        raise ValueError(
          f"The head {layer.name!r} gives probabilities; make it with output='logits'."
        )
    for layer in layers:
      layer.dtype_policy = f"mixed_{self.dtype}"
    model.compile(
      optimizer=self.optimizer,
      loss=SparseCrossentropy(from_logits=True),
      jit_compile=self.jit_compile if not self.run_eagerly else False,
      run_eagerly=self.run_eagerly,
      auto_scale_loss=False,  # it is scaled already
    )
    self.model = model

  def train_mlm_step(self, model: keras.Model, batch) -> float:
    """One step on masked words.

    Args:
      model: gives logits `[B, S, V]`; always the same model.
      batch: of `create_mlm_dataloader`: a dictionary with `labels`, or inputs and labels.

    Returns:
      The loss of the batch before the step.

    Raises:
      FloatingPointError: steps overflowed until no scale was left.
      ValueError: the batch has no labels; see also `prepare`.
    """
    inputs, labels = split_batch(batch)
    if "attention_mask" in inputs:
      labels = np.where(_as_numpy(inputs["attention_mask"]) > 0, labels, IGNORE_INDEX)
    return self._step(model, inputs, labels)

  def train_classification_step(self, model: keras.Model, batch) -> float:
    """One step on labelled texts; as `train_mlm_step`, with logits `[B, C]` and labels `[B]`."""
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
      cause = "the loss itself is no number" if not math.isfinite(loss) else "gradients are none"
      raise FloatingPointError(
        f"{self.skipped_steps} steps were skipped, and the loss scale fell to {self.loss_scale}: "
        f"{cause}. Lower the learning rate, or train in float32."
      )
