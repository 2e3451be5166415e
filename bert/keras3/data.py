"""Tokens of texts as examples to train on: masked words, labelled texts, pairs of sentences.

  dataset = MLMDataset(texts, tokenizer, mask_probability=0.15)
  dataset[0]                             # input_ids, attention_mask, token_type_ids, labels
  dataset.batch([0, 5, 7], epoch=2)      # the same of several, padded; other masks in each epoch

Nothing here needs a backend; `loaders.py` makes of it what `fit` takes. What is drawn for an
example follows from the seed, the epoch and the example's number alone.

Letters in shapes: B = batch size, S = sequence length, N = number of examples.
"""

from collections.abc import Sequence

import numpy as np

from bert.pretraining import masks as pretraining_masks
from bert.pretraining.random_streams import draw, draw_uniform, stream_key
from bert.text.sentences import split_sentences

IGNORE_INDEX = -100
"""The label of tokens that are not to be predicted."""

_TEXTS_AT_ONCE = 1024  # the tokenizer pads what it encodes together: not all of a large corpus


# ---------------------------------------------------------------------------------------------
# Tokens of many texts, without padding.


class EncodedTexts:
  """Rows of tokens one after the other in one array.

  Attributes:
    ids: int32, the tokens of all rows.
    starts: int64 `[N + 1]`, where each row begins, and where the last one ends.
    first_lengths: int64 `[N]`, how many tokens of a row are of segment 0.
  """

  def __init__(self, ids: Sequence[Sequence[int]], segments: Sequence[Sequence[int]]):
    lengths = np.array([len(row) for row in ids], np.int64)
    self.starts = np.concatenate([[0], np.cumsum(lengths)])
    self.ids = np.fromiter((x for row in ids for x in row), np.int32, self.starts[-1])
    second = np.array([sum(row) for row in segments], np.int64)
    self.first_lengths = lengths - second

  def __len__(self) -> int:
    return len(self.first_lengths)

  @property
  def lengths(self) -> np.ndarray:
    """int64 `[N]`, tokens of each row."""
    return np.diff(self.starts)

  def padded(self, indices: np.ndarray, width: int, pad_id: int) -> dict[str, np.ndarray]:
    """Some rows as arrays: `input_ids`, `attention_mask`, `token_type_ids`, int32 `[B, width]`."""
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
  """Tokenizes texts, each with `[CLS]` and `[SEP]`.

  Args:
    tokenizer: a `BertTokenizer`, or one of the transformers library.
    texts: N texts.
    text_pairs: N second texts, or None.
    max_length: longer rows are cut.

  Raises:
    TypeError: `texts` is one text.
    ValueError: the numbers of texts differ, or no token would be left.
  """
  if isinstance(texts, (str, bytes)):
    raise TypeError("texts is one string; pass a list of texts.")
  if max_length < 3:
    raise ValueError(f"max_length is {max_length}; at least 3 is needed: [CLS], a token, [SEP].")
  texts, pairs = list(texts), None if text_pairs is None else list(text_pairs)
  if pairs is not None and len(pairs) != len(texts):
    raise ValueError(f"There are {len(texts)} texts, but {len(pairs)} text_pairs.")
  ids, segments = [], []
  for start in range(0, len(texts), _TEXTS_AT_ONCE):
    part = slice(start, start + _TEXTS_AT_ONCE)
    arguments = [texts[part]] if pairs is None else [texts[part], pairs[part]]
    encoded = tokenizer(*arguments, truncation=True, max_length=max_length)
    ids.extend(encoded["input_ids"])
    segments.extend(encoded["token_type_ids"])
  return EncodedTexts(ids, segments)


def _special_ids(tokenizer) -> np.ndarray:
  names = ("pad", "unk", "cls", "sep", "mask")
  return np.unique([getattr(tokenizer, f"{name}_token_id") for name in names])


# ---------------------------------------------------------------------------------------------
# Datasets.


class TextDataset:
  """What datasets have in common.

  Attributes:
    width: tokens of the longest row that an epoch can have.
    max_length: what rows were cut to.
    epoch: which epoch's examples `dataset[i]` gives.
  """

  def __init__(self, tokenizer, max_length: int, seed: int = 0):
    if not callable(tokenizer):
      kind = type(tokenizer).__name__
      raise TypeError(f"The tokenizer, a {kind}, cannot be called; get_tokenizer makes one.")
    self.pad_id = tokenizer.pad_token_id
    self.max_length = max_length
    self.seed = seed
    self.epoch = 0
    self.width = 0

  def batch(self, indices: Sequence[int], epoch: int = 0) -> dict[str, np.ndarray]:
    """Examples with padding.

    Args:
      indices: which, int `[B]`.
      epoch: of datasets that draw, what they draw depends on it.

    Returns:
      `input_ids`, `attention_mask`, `token_type_ids`: int32 `[B, width]`; and `labels`.
    """
    raise NotImplementedError

  def __getitem__(self, index: int) -> dict[str, np.ndarray]:
    """One example, without padding."""
    if not -len(self) <= index < len(self):
      raise IndexError(f"Example {index} of {len(self)}.")
    row = {name: value[0] for name, value in self.batch([index % len(self)], self.epoch).items()}
    length = int(row["attention_mask"].sum())
    return {name: value[:length] if value.ndim else value for name, value in row.items()}

  def __len__(self) -> int:
    raise NotImplementedError

  def _keys(self, epoch: int, indices: np.ndarray) -> np.ndarray:
    """uint64 `[B]`, of the examples' random streams in an epoch."""
    return draw(np.array([stream_key(self.seed, epoch)], np.uint64), indices)


class MLMDataset(TextDataset):
  """Texts with masks: what stood there is to be found out from what stands around.

  Of a row's tokens `mask_probability` are chosen, rounded, and one at least. Of those 80% become
  `[MASK]`, 10% a random word, and 10% stay. Special tokens are never chosen, but count.

  `labels`, int32 `[B, S]`, are the chosen tokens as they were, and -100 elsewhere.
  """

  def __init__(
    self,
    texts: Sequence[str],
    tokenizer,
    mask_probability: float = 0.15,
    max_length: int = 512,
    seed: int = 0,
    fresh_masks: bool = True,
  ):
    """Tokenizes the texts.

    Args:
      texts: N texts.
      tokenizer: see `encode`.
      mask_probability: share of tokens to choose.
      max_length: longer rows are cut.
      seed: of what is drawn.
      fresh_masks: whether each epoch has its own masks; False to evaluate on the same ones.

    Raises:
      ValueError: `mask_probability` is not between 0 and 1; see also `encode`.
    """
    super().__init__(tokenizer, max_length, seed)
    if not 0 < mask_probability < 1:
      raise ValueError(f"mask_probability is {mask_probability}; it must be between 0 and 1.")
    self.fresh_masks = fresh_masks
    self.rows = encode(tokenizer, texts, None, max_length)
    self.width = int(self.rows.lengths.max(initial=0))
    self.special_ids = _special_ids(tokenizer)
    self.settings = pretraining_masks.MaskSettings(
      masked_lm_prob=mask_probability,
      max_predictions_per_seq=self.width,
      ngram_max=1,
      mask_id=tokenizer.mask_token_id,
      random_ids=np.setdiff1d(np.arange(tokenizer.vocab_size, dtype=np.int32), self.special_ids),
    )

  def __len__(self) -> int:
    return len(self.rows)

  def batch(self, indices: Sequence[int], epoch: int = 0) -> dict[str, np.ndarray]:
    """See `TextDataset.batch`; `labels` are int32 `[B, width]`."""
    indices = np.asarray(indices)
    rows = self.rows.padded(indices, self.width, self.pad_id)
    ids, is_token = rows["input_ids"], rows["attention_mask"] > 0
    candidates = is_token & ~np.isin(ids, self.special_ids)
    masks = pretraining_masks.draw_masks(
      ids,
      lengths=is_token.sum(axis=1),
      candidates=candidates,
      unit_starts=candidates,  # each token by itself
      keys=self._keys(epoch if self.fresh_masks else 0, indices),
      settings=self.settings,
    )
    labels = np.full_like(ids, IGNORE_INDEX)
    examples, places = np.nonzero(masks.weights)
    labels[examples, masks.positions[examples, places]] = masks.labels[examples, places]
    return {**rows, "input_ids": masks.input_ids, "labels": labels}


class ClassificationDataset(TextDataset):
  """Texts, or pairs of texts, with a label each: `labels`, int32 `[B]`, or float32 if they are."""

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
      max_length: longer rows are cut.
      text_pairs: N second texts, or None.

    Raises:
      ValueError: there are not as many labels as texts, or they are no numbers; see also `encode`.
    """
    super().__init__(tokenizer, max_length)
    self.labels = _as_labels(labels)
    self.rows = encode(tokenizer, texts, text_pairs, max_length)
    self.width = int(self.rows.lengths.max(initial=0))
    if len(self.labels) != len(self.rows):
      raise ValueError(f"There are {len(self.rows)} texts, but {len(self.labels)} labels.")

  def __len__(self) -> int:
    return len(self.rows)

  def batch(self, indices: Sequence[int], epoch: int = 0) -> dict[str, np.ndarray]:
    """See `TextDataset.batch`; `labels` are `[B]`. Nothing is drawn."""
    del epoch
    indices = np.asarray(indices)
    rows = self.rows.padded(indices, self.width, self.pad_id)
    return {**rows, "labels": self.labels[indices]}


def _as_labels(labels) -> np.ndarray:
  array = np.asarray(labels)
  if array.ndim != 1 or (array.size and array.dtype.kind not in "biuf"):
    raise ValueError(
      f"labels need one number for each text, not {labels!r:.80}; number the classes from 0."
    )
  return array.astype(np.float32 if array.dtype.kind == "f" and array.size else np.int32)


class NSPDataset(TextDataset):
  """Pairs of sentences: does the second follow the first?

  For each sentence with a next one there is a pair. In half of them, others in each epoch, the
  second is not the next one but any sentence of another document. `labels`, int32 `[B]`, are 0 for
  the next one, and 1 for a random one, as in the original.
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
      max_length: longer pairs are cut, the longer sentence first.
      seed: of what is drawn.

    Raises:
      ValueError: there are not two documents, or none of them has two sentences.
    """
    super().__init__(tokenizer, max_length, seed)
    if max_length < 5:
      raise ValueError(f"max_length is {max_length}; a pair needs at least 5.")
    documents = [_sentences(document) for document in documents]
    documents = [sentences for sentences in documents if sentences]
    sizes = np.array([len(sentences) for sentences in documents], np.int64)
    if len(documents) < 2 or sizes.max() < 2:
      raise ValueError(
        f"{len(documents)} documents of at most {sizes.max(initial=0)} sentences make no pairs: "
        "two documents are needed, and two sentences in one of them."
      )
    self.special = (tokenizer.cls_token_id, tokenizer.sep_token_id)
    flat = [sentence for sentences in documents for sentence in sentences]
    self.rows = encode(tokenizer, flat, None, max_length)
    self.sizes, self.first_sentences = sizes, np.cumsum(sizes) - sizes
    self.document_of = np.repeat(np.arange(len(sizes)), sizes)
    is_last = np.isin(np.arange(len(flat)), self.first_sentences + sizes - 1)
    self.pairs = np.flatnonzero(~is_last)
    longest = np.sort(self.rows.lengths - 2)[-2:].sum()
    self.width = int(min(max_length, longest + 3))

  def __len__(self) -> int:
    return len(self.pairs)

  def batch(self, indices: Sequence[int], epoch: int = 0) -> dict[str, np.ndarray]:
    """See `TextDataset.batch`; `labels` are int32 `[B]`."""
    first = self.pairs[np.asarray(indices)]
    keys = self._keys(epoch, np.asarray(indices))
    is_random = _uniform(keys, 0) < 0.5
    second = np.where(is_random, self._of_another_document(first, keys), first + 1)
    rows = [self._join(a, b) for a, b in zip(first, second, strict=True)]
    encoded = EncodedTexts([row[0] for row in rows], [row[1] for row in rows])
    padded = encoded.padded(np.arange(len(rows)), self.width, self.pad_id)
    return {**padded, "labels": is_random.astype(np.int32)}

  def _of_another_document(self, first: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """int `[B]`, numbers of sentences."""
    own = self.document_of[first]
    other = (_uniform(keys, 1) * (len(self.sizes) - 1)).astype(np.int64)
    other += other >= own
    within = (_uniform(keys, 2) * self.sizes[other]).astype(np.int64)
    return self.first_sentences[other] + within

  def _join(self, first: int, second: int) -> tuple[list[int], list[int]]:
    """Ids and segments of `[CLS] a [SEP] b [SEP]`."""
    a, b = self._tokens(first), self._tokens(second)
    size_a, size_b = truncated_lengths(len(a), len(b), self.max_length - 3)
    cls_id, sep_id = self.special
    ids = [cls_id, *a[:size_a], sep_id, *b[:size_b], sep_id]
    return ids, [0] * (size_a + 2) + [1] * (size_b + 1)

  def _tokens(self, sentence: int) -> np.ndarray:
    """The ids of a sentence without `[CLS]` and `[SEP]`."""
    return self.rows.ids[self.rows.starts[sentence] + 1 : self.rows.starts[sentence + 1] - 1]


def truncated_lengths(first: int, second: int, limit: int) -> tuple[int, int]:
  """How much of two sequences stays, if the longer loses its last token until both fit.

  Example:
    >>> truncated_lengths(5, 3, 10), truncated_lengths(9, 3, 10), truncated_lengths(9, 9, 9)
    ((5, 3), (7, 3), (5, 4))
  """
  first = min(first, max(limit - second, (limit + 1) // 2))
  return first, min(second, limit - first)


def _uniform(keys: np.ndarray, index: int) -> np.ndarray:
  """Number `index` of each stream, in [0, 1)."""
  return draw_uniform(keys, np.array([index]))  # of a scalar NumPy would warn that it wraps around


def _sentences(document: str | Sequence[str]) -> list[str]:
  found = split_sentences(document) if isinstance(document, str) else list(document)
  return [sentence for sentence in found if sentence.strip()]
