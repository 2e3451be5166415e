"""Batches for `fit`, of rows such as those of the library `datasets`.

dataset = model.prepare_tf_dataset(rows, batch_size=16, shuffle=True, tokenizer=tokenizer)
"""

from collections.abc import Callable, Iterator, Mapping

import numpy as np
import tensorflow as tf

from bert.transformers.training import one_or_named

_LABELS = {"label": "labels", "label_ids": "labels"}


def prepare(
  model,
  dataset,
  batch_size: int = 8,
  shuffle: bool = True,
  tokenizer=None,
  collate_fn: Callable | None = None,
  collate_fn_args: Mapping | None = None,
  drop_remainder: bool | None = None,
  prefetch: bool = True,
) -> tf.data.Dataset:
  """Makes batches of rows: columns that the model does not read are left out, the rest padded.

  Args:
    model: a model of `bert.transformers`.
    dataset: has a length and gives a dictionary for a number: rows of `datasets`, or a list.
    batch_size: B.
    shuffle: whether the rows come in a new order in each epoch.
    tokenizer: pads the rows of a batch to the same length.
    collate_fn: makes a batch of a list of rows instead; such as a data collator.
    collate_fn_args: its further arguments.
    drop_remainder: leave out the last rows if they make no whole batch; by default where `shuffle`.
    prefetch: whether the next batch is made during a step.

  Returns:
    Pairs of inputs by name and labels; a label alone is no dictionary. Inputs alone where the rows
    have no labels.

  Raises:
    ValueError: there are no rows, or the model reads none of their columns.
  """
  if not len(dataset):
    raise ValueError("The data set has no rows.")
  collate = collate_fn or _collator(tokenizer)
  names = _columns(model, dataset[0])
  options = dict(collate_fn_args or {})

  def batch_of(numbers) -> dict[str, np.ndarray]:
    rows = [
      {name: row[old] for old, name in names.items()} for row in (dataset[int(n)] for n in numbers)
    ]
    batch = {_LABELS.get(k, k): np.asarray(v) for k, v in collate(rows, **options).items()}
    return {k: v.astype(np.int64) if v.dtype.kind == "i" else v for k, v in batch.items()}

  total, drops = len(dataset), shuffle if drop_remainder is None else drop_remainder
  sample = batch_of(range(min(total, batch_size)))
  epochs = np.random.default_rng(np.random.randint(2**31))

  def batches() -> Iterator[dict[str, np.ndarray]]:
    order = epochs.permutation(total) if shuffle else np.arange(total)
    for first in range(0, total - batch_size + 1 if drops else total, batch_size):
      yield batch_of(order[first : first + batch_size])

  signature = {n: tf.TensorSpec([None] * x.ndim, x.dtype) for n, x in sample.items()}
  made = tf.data.Dataset.from_generator(batches, output_signature=signature)
  count = total // batch_size if drops else -(-total // batch_size)
  made = made.apply(tf.data.experimental.assert_cardinality(count))
  labels = [name for name in signature if name in model.label_names]
  if labels:
    made = made.map(lambda batch: _split(batch, labels))
  return made.prefetch(tf.data.AUTOTUNE) if prefetch else made


def _collator(tokenizer) -> Callable:
  """Makes batches by padding, or of rows of equal lengths."""
  if tokenizer is None:
    return lambda rows: {name: np.stack([row[name] for row in rows]) for name in rows[0]}
  return lambda rows: tokenizer.pad(rows, return_tensors="np")


def _columns(model, row: Mapping) -> dict[str, str]:
  """Maps the columns that the model reads to its names of them."""
  known = model._parameters()
  names = {name: _LABELS.get(name, name) for name in row}
  names = {old: name for old, name in names.items() if name in known}
  if not set(names.values()) - set(model.label_names):
    raise ValueError(
      f"The model reads none of the columns {', '.join(row)}. Tokenize the texts first."
    )
  return names


def _split(batch, labels):
  inputs = {name: value for name, value in batch.items() if name not in labels}
  return inputs, one_or_named({name: batch[name] for name in labels})
