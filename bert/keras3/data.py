"""Training data from texts: masked tokens, labelled texts, pairs of sentences; and their batches.

  dataset = MLMDataset(texts, tokenizer, mask_probability=0.15)
  dataset[0]                             # input_ids, attention_mask, token_type_ids, labels
  dataset.batch([0, 5, 7], epoch=2)      # several, padded; each epoch has other masks

  loader = create_mlm_dataloader(texts=texts, tokenizer=tokenizer, batch_size=8)
  model.fit(loader, epochs=3)
  for batch in loader: ...               # batch["input_ids"], batch["attention_mask"], ...

The tokenizer is one of transformers, or of this project, such as `tokenization.FullTokenizer`.
The random choices for an example depend only on the seed, the epoch and the example's number.
`loader[i]` is the pair of inputs and labels that Keras reads; iterating over a loader gives
dictionaries, for custom loops. All batches of a loader have one width, so a step is compiled once.

Letters in shapes: B = batch size, S = sequence length, N = number of examples.
"""

import functools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import keras
import numpy as np

from bert.io import vocabulary_kind
from bert.pretraining.masks import MaskSettings, draw_masks
from bert.pretraining.random_streams import draw, draw_uniform, stream_key
from bert.text.sentences import split_sentences
from bert.text.sequence_layout import BERT
from bert.text.tokenizer import Tokenizer

IGNORE_INDEX = -100
"""The label of tokens that are not predicted."""


# ---------------------------------------------------------------------------------------------
# Tokens of many texts, without padding.


class EncodedTexts:
  """Rows of tokens, concatenated into one array.

  Attributes:
    ids: int32, the tokens of all rows.
    starts: int64 `[N + 1]`, the start of each row, and the end of the last one.
    first_lengths: int64 `[N]`, number of tokens of segment 0 in each row.
  """

  def __init__(self, ids: Sequence[Sequence[int]], first_lengths: Sequence[int]):
    self.starts = np.cumsum([0, *map(len, ids)])
    self.ids = np.fromiter((x for row in ids for x in row), np.int32, self.starts[-1])
    self.first_lengths = np.array(first_lengths, np.int64)

  def __len__(self) -> int:
    return len(self.first_lengths)

  @property
  def lengths(self) -> np.ndarray:
    """int64 `[N]`, number of tokens in each row."""
    return np.diff(self.starts)

  def padded(self, indices: np.ndarray, width: int, pad_id: int) -> dict[str, np.ndarray]:
    """Pads rows: `input_ids`, `attention_mask`, `token_type_ids`, int32 `[B, width]` each."""
    columns = np.arange(width)
    is_token = columns < self.lengths[indices][:, None]
    places = np.where(is_token, self.starts[indices][:, None] + columns, 0)
    ids = self.ids[places] if len(self.ids) else places
    is_second = is_token & (columns >= self.first_lengths[indices][:, None])
    return {
      "input_ids": np.where(is_token, ids, pad_id).astype(np.int32),
      "attention_mask": is_token.astype(np.int32),
      "token_type_ids": is_second.astype(np.int32),
    }


def encode(
  tokenizer, texts: Sequence[str], text_pairs: Sequence[str] | None, max_length: int
) -> EncodedTexts:
  """Tokenizes texts and adds `[CLS]` and `[SEP]`.

  Args:
    tokenizer: one of transformers, or of this project.
    texts: N texts.
    text_pairs: N second texts, or None.
    max_length: longer rows are truncated.

  Raises:
    TypeError: `texts` is a string.
    ValueError: the numbers of texts differ, or `max_length` leaves no token.
  """
  if isinstance(texts, (str, bytes)):
    raise TypeError("texts is a string; pass a list of strings.")
  if max_length < 3:
    raise ValueError(f"max_length is {max_length}; it must be at least 3: [CLS], a token, [SEP].")
  texts, pairs = list(texts), None if text_pairs is None else list(text_pairs)
  if pairs is not None and len(pairs) != len(texts):
    raise ValueError(f"{len(texts)} texts, but {len(pairs)} text_pairs.")
  if isinstance(tokenizer, Tokenizer):
    rows = [
      tokenizer.encode_batch([text], [pair], max_length, pad_to_longest=True)
      for text, pair in zip(texts, pairs or [None] * len(texts), strict=True)
    ]
    ids = [row["input_ids"][0] for row in rows]
    return EncodedTexts(ids, [np.sum(row["segment_ids"] == 0) for row in rows])
  encoded = tokenizer(texts, pairs, truncation=True, max_length=max_length) if texts else {}
  ids = encoded.get("input_ids", [])
  segments = encoded.get("token_type_ids")
  if segments is None:  # as of RoBERTa and DistilBERT
    return EncodedTexts(ids, [len(row) for row in ids])
  return EncodedTexts(ids, [row.count(0) for row in segments])


class SpecialIds(NamedTuple):
  """Ids of a tokenizer's special tokens."""

  pad: int
  cls: int
  sep: int
  mask: int
  all: np.ndarray  # these and others, such as that of unknown words: int `[?]`


def special_ids(tokenizer) -> SpecialIds:
  """Returns the ids of the special tokens; for `tokenizer` see `encode`.

  Raises:
    TypeError: it is not a tokenizer.
  """
  if isinstance(tokenizer, Tokenizer):
    layout, ids = tokenizer.layout, tokenizer.vocab
    every = np.array(vocabulary_kind.special_ids(ids))
    return SpecialIds(layout.pad_id, ids[layout.cls], ids[layout.sep], ids[layout.mask], every)
  if not hasattr(tokenizer, "all_special_ids"):
    raise TypeError(f"A tokenizer of transformers or a FullTokenizer is needed, not {tokenizer!r}.")
  return SpecialIds(
    tokenizer.pad_token_id,
    tokenizer.cls_token_id,
    tokenizer.sep_token_id,
    tokenizer.mask_token_id,
    np.array(tokenizer.all_special_ids),
  )


# ---------------------------------------------------------------------------------------------
# Datasets.


class TextDataset:
  """Base class of the datasets.

  Attributes:
    rows: the encoded texts.
    width: number of tokens in the longest possible row.
    special: the special tokens.
    epoch: the epoch from which `dataset[i]` takes examples.
  """

  def __init__(self, tokenizer, texts, text_pairs=None, max_length=512, seed=0):
    self.special = special_ids(tokenizer)
    self.rows = encode(tokenizer, texts, text_pairs, max_length)
    self.width = int(self.rows.lengths.max(initial=0))
    self.seed = seed
    self.epoch = 0

  def batch(self, indices: Sequence[int] | np.ndarray, epoch: int = 0) -> dict[str, np.ndarray]:
    """Returns examples with padding.

    Args:
      indices: numbers of the examples, int `[B]`.
      epoch: determines the random choices, in datasets that make any.

    Returns:
      `input_ids`, `attention_mask`, `token_type_ids`: int32 `[B, width]`; and `labels`.
    """
    raise NotImplementedError

  def __getitem__(self, index: int) -> dict[str, np.ndarray]:
    """Returns one example, without padding."""
    if not -len(self) <= index < len(self):
      raise IndexError(f"Example {index} of {len(self)}.")
    row = {name: value[0] for name, value in self.batch([index % len(self)], self.epoch).items()}
    length = int(row["attention_mask"].sum())
    return {name: value[:length] if value.ndim else value for name, value in row.items()}

  def __len__(self) -> int:
    return len(self.rows)

  def _keys(self, epoch: int, indices: np.ndarray) -> np.ndarray:
    """Returns the keys of the examples' random streams in an epoch: uint64 `[B]`."""
    return draw(np.array([stream_key(self.seed, epoch)], np.uint64), indices)


class MLMDataset(TextDataset):
  """Texts with masked tokens, for masked language modeling.

  In each row a share `mask_probability` of the tokens is chosen, rounded, but at least one. 80% of
  them become `[MASK]`, 10% a random word, and 10% stay. Special tokens count in the share but are
  never chosen.

  `labels`, int32 `[B, S]`, are the original ids of the chosen tokens, and -100 elsewhere.
  """

  def __init__(
    self,
    texts: Sequence[str],
    tokenizer,
    mask_probability: float = 0.15,
    max_length: int = 512,
    seed: int = 0,
  ):
    """Tokenizes the texts.

    Args:
      texts: N texts.
      tokenizer: see `encode`.
      mask_probability: share of tokens to choose.
      max_length: longer rows are truncated.
      seed: seed of the random choices.

    Raises:
      ValueError: `mask_probability` is not between 0 and 1; see also `encode`.
    """
    if not 0 < mask_probability < 1:
      raise ValueError(f"mask_probability is {mask_probability}; it must be between 0 and 1.")
    super().__init__(tokenizer, texts, None, max_length, seed)
    vocab = tokenizer.vocab if isinstance(tokenizer, Tokenizer) else tokenizer
    self.settings = MaskSettings(
      masked_lm_prob=mask_probability,
      max_predictions_per_seq=self.width,
      ngram_max=1,
      mask_id=self.special.mask,
      random_ids=np.setdiff1d(np.arange(len(vocab), dtype=np.int32), self.special.all),
    )

  def batch(self, indices: Sequence[int] | np.ndarray, epoch: int = 0) -> dict[str, np.ndarray]:
    """Masks and pads examples; `labels` are int32 `[B, width]`."""
    indices = np.asarray(indices)
    rows = self.rows.padded(indices, self.width, self.special.pad)
    ids, is_token = rows["input_ids"], rows["attention_mask"] > 0
    candidates = is_token & ~np.isin(ids, self.special.all)
    masks = draw_masks(
      ids,
      lengths=is_token.sum(axis=1),
      candidates=candidates,
      unit_starts=candidates,  # each token is a unit
      keys=self._keys(epoch, indices),
      settings=self.settings,
    )
    labels = np.full_like(ids, IGNORE_INDEX)
    examples, places = np.nonzero(masks.weights)
    labels[examples, masks.positions[examples, places]] = masks.labels[examples, places]
    return {**rows, "input_ids": masks.input_ids, "labels": labels}


class ClassificationDataset(TextDataset):
  """Labelled texts or pairs of texts; `labels` are int32 `[B]`, or float32 for regression."""

  def __init__(
    self,
    texts: Sequence[str],
    labels: Sequence[int] | Sequence[float],
    tokenizer,
    max_length: int = 512,
    text_pairs: Sequence[str] | None = None,
  ):
    """Tokenizes the texts.

    Args:
      texts: N texts.
      labels: N class numbers from 0; or floats, for regression.
      tokenizer: see `encode`.
      max_length: longer rows are truncated.
      text_pairs: N second texts, or None.

    Raises:
      ValueError: the numbers of labels and texts differ, or labels are not numeric; see also
        `encode`.
    """
    self.labels = _as_labels(labels)
    super().__init__(tokenizer, texts, text_pairs, max_length)
    if len(self.labels) != len(self.rows):
      raise ValueError(f"{len(self.rows)} texts, but {len(self.labels)} labels.")

  def batch(self, indices: Sequence[int] | np.ndarray, epoch: int = 0) -> dict[str, np.ndarray]:
    """Pads examples; `labels` are `[B]`, the same in every epoch."""
    del epoch
    indices = np.asarray(indices)
    rows = self.rows.padded(indices, self.width, self.special.pad)
    return {**rows, "labels": self.labels[indices]}


def _as_labels(labels) -> np.ndarray:
  array = np.asarray(labels)
  if array.ndim != 1 or (array.size and array.dtype.kind not in "biuf"):
    raise ValueError(
      f"labels must be one number per text, not {labels!r:.80}; number the classes from 0."
    )
  return array.astype(np.float32 if array.dtype.kind == "f" and array.size else np.int32)


class NSPDataset(TextDataset):
  """Pairs of sentences, for next sentence prediction.

  Every sentence that has a next sentence in its document gives a pair. In half of the pairs, other
  ones in each epoch, the second sentence is replaced by a random one of another document. `labels`,
  int32 `[B]`, are 0 for the next sentence and 1 for a random one, as in the original.
  """

  def __init__(
    self,
    documents: Sequence[str] | Sequence[Sequence[str]],
    tokenizer,
    max_length: int = 512,
    seed: int = 0,
  ):
    """Tokenizes the documents.

    Args:
      documents: lists of sentences; or texts, which are split into sentences
        (`bert/text/sentences.py`).
      tokenizer: see `encode`.
      max_length: longer pairs are truncated, the longer sentence first.
      seed: seed of the random choices.

    Raises:
      ValueError: there are fewer than two documents, or none has two sentences.
    """
    if max_length < 5:
      raise ValueError(f"max_length is {max_length}; it must be at least 5 for a pair.")
    documents = [_sentences(document) for document in documents]
    documents = [sentences for sentences in documents if sentences]
    sizes = np.array([len(sentences) for sentences in documents], np.int64)
    if len(documents) < 2 or sizes.max() < 2:
      raise ValueError(
        f"{len(documents)} documents of at most {sizes.max(initial=0)} sentences make no pairs: "
        "pass at least two documents, one of them with two sentences."
      )
    flat = [sentence for sentences in documents for sentence in sentences]
    super().__init__(tokenizer, flat, None, max_length, seed)
    self.sizes, self.first_sentences = sizes, np.cumsum(sizes) - sizes
    self.document_of = np.repeat(np.arange(len(sizes)), sizes)
    self.pairs = np.flatnonzero(np.diff(self.document_of) == 0)
    self.max_length = max_length
    longest = np.sort(self.rows.lengths - 2)[-2:].sum()
    self.width = int(min(max_length, longest + 3))

  def __len__(self) -> int:
    return len(self.pairs)

  def batch(self, indices: Sequence[int] | np.ndarray, epoch: int = 0) -> dict[str, np.ndarray]:
    """Pairs sentences and pads the pairs; `labels` are int32 `[B]`."""
    first = self.pairs[np.asarray(indices)]
    keys = self._keys(epoch, np.asarray(indices))
    is_random = _uniform(keys, 0) < 0.5
    second = np.where(is_random, self._of_another_document(first, keys), first + 1)
    joined = [self._join(a, b) for a, b in zip(first, second, strict=True)]
    rows = EncodedTexts([ids for ids, _ in joined], [length for _, length in joined])
    padded = rows.padded(np.arange(len(rows)), self.width, self.special.pad)
    return {**padded, "labels": is_random.astype(np.int32)}

  def _of_another_document(self, first: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """Draws indices of sentences of other documents: int `[B]`."""
    own = self.document_of[first]
    other = (_uniform(keys, 1) * (len(self.sizes) - 1)).astype(np.int64)
    other += other >= own
    within = (_uniform(keys, 2) * self.sizes[other]).astype(np.int64)
    return self.first_sentences[other] + within

  def _join(self, first: int, second: int) -> tuple[list[int], int]:
    """Returns the ids of `[CLS] a [SEP] b [SEP]`, and how many of them are of `[CLS] a [SEP]`."""
    a, b = self._tokens(first), self._tokens(second)
    size_a, size_b = BERT.kept_lengths(len(a), len(b), self.max_length - 3)
    cls_id, sep_id = self.special.cls, self.special.sep
    return [cls_id, *a[:size_a], sep_id, *b[:size_b], sep_id], size_a + 2

  def _tokens(self, sentence: int) -> np.ndarray:
    """Returns the ids of a sentence without `[CLS]` and `[SEP]`."""
    return self.rows.ids[self.rows.starts[sentence] + 1 : self.rows.starts[sentence + 1] - 1]


def _uniform(keys: np.ndarray, index: int) -> np.ndarray:
  """Draws number `index` of each stream, in [0, 1)."""
  return draw_uniform(keys, np.array([index]))  # with a scalar NumPy would warn of the overflow


def _sentences(document: str | Sequence[str]) -> list[str]:
  found = split_sentences(document) if isinstance(document, str) else list(document)
  return [sentence for sentence in found if sentence.strip()]


# ---------------------------------------------------------------------------------------------
# Batches.


class TextLoader(keras.utils.PyDataset):
  """Batches of a dataset, for `fit`, `evaluate`, `predict` and custom loops.

  Attributes:
    dataset: the source of the examples.
    epoch: number of the epoch, from 0; determines the order and the dataset's random choices. It
      increases at the end of each epoch.
  """

  def __init__(
    self,
    dataset: TextDataset,
    batch_size: int = 8,
    shuffle: bool = True,
    seed: int = 0,
    **kwargs,
  ):
    """Creates the loader.

    Args:
      dataset: a dataset of this module.
      batch_size: B.
      shuffle: whether each epoch has its own order.
      seed: seed of the order.
      **kwargs: arguments of `keras.utils.PyDataset`, such as `workers`.

    Raises:
      ValueError: `batch_size` is below 1.
    """
    super().__init__(**kwargs)
    if batch_size < 1:
      raise ValueError(f"batch_size is {batch_size}; it must be at least 1.")
    self.dataset = dataset
    self.batch_size = batch_size
    self.shuffle = shuffle
    self.seed = seed
    self.epoch = 0

  def __len__(self) -> int:
    """Returns the number of batches."""
    return -(-len(self.dataset) // self.batch_size)

  def __getitem__(self, index: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Returns batch number `index` as inputs and labels."""
    inputs = self.batch(index)
    return inputs, inputs.pop("labels")

  def __iter__(self) -> Iterator[dict[str, np.ndarray]]:
    """Yields the batches of one epoch as dictionaries; each iteration is a new epoch."""
    for index in range(len(self)):
      yield self.batch(index)
    self.on_epoch_end()

  def on_epoch_end(self) -> None:
    """Begins a new epoch; Keras calls this."""
    self.epoch += 1

  def batch(self, index: int) -> dict[str, np.ndarray]:
    """Returns batch number `index` of this epoch; see `TextDataset.batch`."""
    if not 0 <= index < len(self):
      raise IndexError(f"Batch {index} of {len(self)}.")
    count = len(self.dataset)
    order = _shuffled(count, self.seed, self.epoch) if self.shuffle else np.arange(count)
    indices = order[index * self.batch_size : (index + 1) * self.batch_size]
    return self.dataset.batch(indices, self.epoch)


@functools.lru_cache(maxsize=8)  # read for each batch of an epoch
def _shuffled(count: int, seed: int, epoch: int) -> np.ndarray:
  key = np.array([stream_key(seed, epoch, 1)], np.uint64)
  return np.argsort(draw(key, np.arange(count)), kind="stable")


def create_mlm_dataloader(
  texts: Sequence[str],
  tokenizer,
  batch_size: int = 8,
  mask_probability: float = 0.15,
  max_length: int = 512,
  shuffle: bool = True,
  seed: int = 0,
  **loader_args,
) -> TextLoader:
  """Creates batches of an `MLMDataset`; `loader_args` are further arguments of `TextLoader`."""
  dataset = MLMDataset(texts, tokenizer, mask_probability, max_length, seed)
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
  """Creates batches of a `ClassificationDataset`; `loader_args` are those of `TextLoader`."""
  dataset = ClassificationDataset(texts, labels, tokenizer, max_length, text_pairs)
  return TextLoader(dataset, batch_size, shuffle, seed, **loader_args)
