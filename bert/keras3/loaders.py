"""Batches of texts for `fit` and for loops, on every Keras backend.

  loader = create_mlm_dataloader(texts=texts, tokenizer=tokenizer, batch_size=8)
  model.fit(loader, epochs=3)       # other masks in each epoch
  for batch in loader: ...          # batch["input_ids"], batch["attention_mask"], batch["labels"]

`loader[i]` is the pair of inputs and labels that Keras wants; going through a loader gives
dictionaries, for loops of one's own. All rows of a loader are padded to one length, so that a step
is compiled once.

Letters in shapes: B = batch size.
"""

from collections.abc import Iterator, Sequence

import keras
import numpy as np

from bert.keras3.data import (
  IGNORE_INDEX,
  ClassificationDataset,
  MLMDataset,
  NSPDataset,
  TextDataset,
)
from bert.pretraining.random_streams import draw, stream_key

PADDINGS = ("longest", "max_length")


class TextLoader(keras.utils.PyDataset):
  """Batches of a dataset, for `fit`, `evaluate`, `predict` and for loops.

  Attributes:
    dataset: where examples come from.
    epoch: the number of the epoch, from 0; decides the order, and what the dataset draws. It goes
      up where an epoch ends.
  """

  def __init__(
    self,
    dataset: TextDataset,
    batch_size: int = 8,
    shuffle: bool = True,
    seed: int = 0,
    padding: str = "longest",
    drop_last: bool = False,
    num_workers: int = 0,
  ):
    """Makes the loader.

    Args:
      dataset: a dataset of this module.
      batch_size: B.
      shuffle: whether each epoch has its own order.
      seed: of the order.
      padding: `longest`: as long as the dataset's longest row; `max_length`: as it may be at most.
      drop_last: leave out a last batch that is not full.
      num_workers: threads that make batches ahead of time in `fit`; 0 for none.

    Raises:
      ValueError: a value is out of range, or unknown.
    """
    super().__init__(workers=max(1, num_workers))
    if batch_size < 1:
      raise ValueError(f"batch_size is {batch_size}; at least 1 is needed.")
    if padding not in PADDINGS:
      raise ValueError(f"padding is {padding!r}; known: {', '.join(PADDINGS)}.")
    self.dataset = dataset
    self.batch_size = batch_size
    self.shuffle = shuffle
    self.seed = seed
    self.padding = padding
    self.drop_last = drop_last
    self.epoch = 0
    self._sorted: tuple[int, np.ndarray] | None = None  # an epoch and its order

  def __len__(self) -> int:
    """Number of batches."""
    full, rest = divmod(len(self.dataset), self.batch_size)
    return full + (rest > 0 and not self.drop_last)

  @property
  def num_batches(self) -> int:
    """Number of batches, for Keras."""
    return len(self)

  def __getitem__(self, index: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Batch number `index` as inputs and labels."""
    inputs = self.batch(index)
    return inputs, inputs.pop("labels")

  def __iter__(self) -> Iterator[dict[str, np.ndarray]]:
    """The batches of one epoch as dictionaries; the next time those of the next epoch."""
    for index in range(len(self)):
      yield self.batch(index)
    self.on_epoch_end()

  def on_epoch_end(self) -> None:
    """Called by Keras."""
    self.epoch += 1

  def batch(self, index: int) -> dict[str, np.ndarray]:
    """Batch number `index` of this epoch; see `TextDataset.batch`."""
    if not 0 <= index < len(self):
      raise IndexError(f"Batch {index} of {len(self)}.")
    indices = self._order()[index * self.batch_size : (index + 1) * self.batch_size]
    arrays = self.dataset.batch(indices, self.epoch)
    if self.padding == "longest":
      return arrays
    return {name: self._widened(name, array) for name, array in arrays.items()}

  def _order(self) -> np.ndarray:
    numbers = np.arange(len(self.dataset))
    if not self.shuffle:
      return numbers
    known = self._sorted
    if known is None or known[0] != self.epoch:
      key = np.array([stream_key(self.seed, self.epoch, 1)], np.uint64)
      known = self._sorted = (self.epoch, np.argsort(draw(key, numbers), kind="stable"))
    return known[1]

  def _widened(self, name: str, array: np.ndarray) -> np.ndarray:
    if array.ndim == 1:
      return array
    filler = {"input_ids": self.dataset.pad_id, "labels": IGNORE_INDEX}.get(name, 0)
    missing = self.dataset.max_length - array.shape[1]
    return np.pad(array, ((0, 0), (0, missing)), constant_values=filler)


def create_mlm_dataloader(
  texts: Sequence[str],
  tokenizer,
  batch_size: int = 8,
  mask_probability: float = 0.15,
  max_length: int = 512,
  shuffle: bool = True,
  seed: int = 0,
  fresh_masks: bool = True,
  **loader_args,
) -> TextLoader:
  """Batches of an `MLMDataset`; `loader_args` are those of `TextLoader`."""
  dataset = MLMDataset(texts, tokenizer, mask_probability, max_length, seed, fresh_masks)
  return TextLoader(dataset, batch_size, shuffle, seed, **loader_args)


def create_classification_dataloader(
  texts: Sequence[str],
  labels: Sequence[int] | Sequence[float],
  tokenizer,
  batch_size: int = 8,
  max_length: int = 512,
  shuffle: bool = True,
  seed: int = 0,
  text_pairs: Sequence[str] | None = None,
  **loader_args,
) -> TextLoader:
  """Batches of a `ClassificationDataset`; `loader_args` are those of `TextLoader`."""
  dataset = ClassificationDataset(texts, labels, tokenizer, max_length, text_pairs)
  return TextLoader(dataset, batch_size, shuffle, seed, **loader_args)


def create_nsp_dataloader(
  documents: Sequence[str] | Sequence[Sequence[str]],
  tokenizer,
  batch_size: int = 8,
  max_length: int = 512,
  shuffle: bool = True,
  seed: int = 0,
  **loader_args,
) -> TextLoader:
  """Batches of an `NSPDataset`; `loader_args` are those of `TextLoader`."""
  dataset = NSPDataset(documents, tokenizer, max_length, seed)
  return TextLoader(dataset, batch_size, shuffle, seed, **loader_args)
