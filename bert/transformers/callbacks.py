"""Metrics of any kind at the end of an epoch, as in transformers.

callback = KerasMetricCallback(metric_fn=compute_metrics, eval_dataset=validation)
model.fit(train, validation_data=validation, callbacks=[callback])
"""

from collections.abc import Callable, Mapping, Sequence

import keras
import numpy as np
import tensorflow as tf

from bert.transformers.folders import refuse_upload
from bert.transformers.losses import IGNORED
from bert.transformers.outputs import ModelOutput, logits_of
from bert.transformers.training import one_or_named


class KerasMetricCallback(keras.callbacks.Callback):
  """Computes a metric of all predictions for a data set after each epoch; it is in the history."""

  def __init__(
    self,
    metric_fn: Callable,
    eval_dataset,
    output_cols: Sequence[str] | None = None,
    label_cols: str | Sequence[str] | None = None,
    batch_size: int | None = None,
  ):
    """Sets what to compute.

    Args:
      metric_fn: of predictions and labels, arrays each (or tuples and dictionaries of arrays where
        there are several): returns numbers by name.
      eval_dataset: batches of inputs and labels; or a pair of arrays, with `batch_size`.
      output_cols: names of the outputs; by default all but loss, states and attentions.
      label_cols: names of the labels, where they are among the inputs; by default the model's.
      batch_size: of arrays.

    Raises:
      ValueError: arrays without a batch size.
    """
    super().__init__()
    if not isinstance(eval_dataset, tf.data.Dataset):
      if batch_size is None:
        raise ValueError("eval_dataset consists of arrays: give a batch_size.")
      eval_dataset = tf.data.Dataset.from_tensor_slices(eval_dataset).batch(batch_size)
    self.metric_fn = metric_fn
    self.eval_dataset = eval_dataset
    self.output_cols = output_cols
    self.label_cols = [label_cols] if isinstance(label_cols, str) else label_cols

  def on_epoch_end(self, epoch: int, logs: dict | None = None) -> None:
    """Predicts, computes, and adds the results to the logs."""
    del epoch
    found, labels = [], []
    for batch in self.eval_dataset:
      inputs, right = self._parts(batch)
      found.append(self._outputs(self.model.predict_on_batch(inputs)))
      labels.append(right)
    both = (keras.tree.map_structure(_joined, *batches) for batches in (found, labels))
    results = self.metric_fn(tuple(both))
    if not isinstance(results, Mapping):
      raise TypeError(f"metric_fn returned {type(results).__name__}; a dictionary is needed.")
    if logs is not None:
      logs.update({name: float(value) for name, value in results.items()})

  def _parts(self, batch):
    inputs, right, _ = keras.utils.unpack_x_y_sample_weight(batch)
    names = self.label_cols or getattr(self.model, "label_names", ("labels",))
    known = {name: part for part in (inputs, right) if isinstance(part, Mapping) for name in part}
    labels = {name: known[name][name] for name in names if name in known}
    if isinstance(inputs, Mapping):
      inputs = {name: value for name, value in inputs.items() if name not in labels}
    right = one_or_named(labels) if labels else right
    if right is None:
      raise ValueError("KerasMetricCallback: eval_dataset has no labels.")
    return inputs, keras.tree.map_structure(np.asarray, right)

  def _outputs(self, outputs):
    if not isinstance(outputs, ModelOutput):
      return outputs
    names = self.output_cols or [name for name in logits_of(type(outputs)) if name in outputs]
    return one_or_named({name: outputs[name] for name in names})


class PushToHubCallback(keras.callbacks.Callback):
  """Is refused: it sends the model to the Hub, and nothing is sent from here."""

  def __init__(self, *args, **kwargs):
    """Raises the error.

    Raises:
      ValueError: always.
    """
    del args, kwargs
    refuse_upload({"push_to_hub": True})


def _joined(*batches) -> np.ndarray:
  """Joins the arrays of batches; where sequences differ in length, they are filled with -100."""
  arrays = list(map(np.asarray, batches))
  if arrays[0].ndim > 1:
    longest = max(array.shape[1] for array in arrays)
    rest = [(0, 0)] * (arrays[0].ndim - 2)
    arrays = [
      np.pad(x, [(0, 0), (0, longest - x.shape[1]), *rest], constant_values=IGNORED) for x in arrays
    ]
  return np.concatenate(arrays)
