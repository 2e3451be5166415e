"""Examples to batches: what `DataCollator...` classes do, as tensors of TensorFlow or NumPy.

  collate = DataCollatorWithPadding(tokenizer, return_tensors="tf")
  batch = collate([tokenizer("One."), tokenizer("And another one.")])     # [2, S]

Where random numbers are drawn, they are drawn in the same order by the same functions as in
transformers 4: the same seed masks the same words.
"""

import dataclasses
import importlib.util
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from bert.transformers.tokenization_base import PreTrainedTokenizerBase
from bert.transformers.tokenization_options import PaddingStrategy, longer_by_multiple

IGNORED = -100  # the label of what no loss is computed of
_KINDS = ("tf", "np")
_LABELS = ("label", "label_ids", "labels")


def _check_kind(return_tensors: str | None) -> str:
  if return_tensors not in _KINDS:
    what = "PyTorch's tensors ('pt') are not made here" if return_tensors == "pt" else "unknown"
    raise ValueError(f"return_tensors={return_tensors!r}: {what}; use 'tf' or 'np'.")
  if return_tensors == "tf" and importlib.util.find_spec("tensorflow") is None:
    raise ImportError("return_tensors='tf' needs TensorFlow, which is not installed; use 'np'.")
  return return_tensors


# ---------------------------------------------------------------------------------------------
# Rows that are of one length already.


def default_data_collator(features: Sequence[Any], return_tensors: str = "tf") -> dict[str, Any]:
  """Stacks rows of one length; `label` or `label_ids` becomes `labels`.

  Args:
    features: rows, as dictionaries or objects with attributes; texts and None are left out.
    return_tensors: "tf" or "np".

  Returns:
    name -> tensor `[B, ...]`; whole numbers of labels are int64, others float32.

  Raises:
    ValueError: there is no row, rows have different lengths, or `return_tensors` is unknown.
  """
  kind = _check_kind(return_tensors)
  rows = [row if isinstance(row, Mapping) else vars(row) for row in features]
  if not rows:
    raise ValueError("There is no row to make a batch of.")
  name = next((name for name in _LABELS if rows[0].get(name) is not None), None)
  batch = {}
  if name is not None:
    labels = [_as_numpy(row[name]) for row in rows]
    is_whole = np.issubdtype(labels[0].dtype, np.integer) or labels[0].dtype == bool
    batch["labels"] = _stacked("labels", labels, kind, np.int64 if is_whole else np.float32)
  for other, value in rows[0].items():
    if other not in _LABELS and value is not None and not isinstance(value, str):
      batch[other] = _stacked(other, [row[other] for row in rows], kind)
  return batch


def _as_numpy(value: Any) -> np.ndarray:
  return value.numpy() if hasattr(value, "numpy") else np.asarray(value)


def _stacked(name: str, values: list[Any], kind: str, dtype: Any = None) -> Any:
  try:
    if kind == "np":
      return np.stack([np.asarray(_as_numpy(value), dtype) for value in values])
    import tensorflow as tf

    if dtype is None and any(
      isinstance(value, np.ndarray) or tf.is_tensor(value) for value in values
    ):
      return tf.stack(values)
    return tf.convert_to_tensor([_as_list(value) for value in values], dtype)
  except (ValueError, TypeError) as error:
    raise ValueError(
      f"The rows of {name!r} form no tensor: {error}. DataCollatorWithPadding pads rows to one "
      "length."
    ) from None


def _as_list(value: Any) -> Any:
  value = value.numpy() if hasattr(value, "numpy") else value
  return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


@dataclasses.dataclass
class DefaultDataCollator:
  """Does what `default_data_collator` does.

  Attributes:
    return_tensors: "tf" or "np".
  """

  return_tensors: str = "tf"

  def __call__(self, features: Sequence[Any], return_tensors: str | None = None) -> dict[str, Any]:
    """Makes a batch; see `default_data_collator`."""
    return default_data_collator(features, return_tensors or self.return_tensors)


# ---------------------------------------------------------------------------------------------
# Rows that are padded.


@dataclasses.dataclass
class _PaddingCollator:
  """The base of collators that pad rows of a tokenizer.

  Attributes:
    tokenizer: the tokenizer of the rows.
    padding: True or "longest", "max_length", False.
    max_length: in tokens, for "max_length".
    pad_to_multiple_of: pad to a multiple of this.
    return_tensors: "tf" or "np".
  """

  tokenizer: PreTrainedTokenizerBase
  padding: bool | str | PaddingStrategy = True
  max_length: int | None = None
  pad_to_multiple_of: int | None = None
  return_tensors: str = "tf"


class DataCollatorWithPadding(_PaddingCollator):
  """Pads rows with `tokenizer.pad`; `label` or `label_ids` becomes `labels`."""

  def __call__(self, features: Sequence[Mapping[str, Any]]) -> Any:
    """Makes a batch, a `BatchEncoding`.

    Raises:
      ValueError: rows lack ids, or another value differs in length.
    """
    batch = _padded(self, features, _check_kind(self.return_tensors))
    for name in ("label", "label_ids"):
      if name in batch:
        batch["labels"] = batch.pop(name)
    return batch


def _padded(collator: Any, features: Sequence[Any], kind: str | None) -> Any:
  if not features:
    raise ValueError("There is no row to make a batch of.")
  return collator.tokenizer.pad(
    features,
    padding=getattr(collator, "padding", True),
    max_length=getattr(collator, "max_length", None),
    pad_to_multiple_of=collator.pad_to_multiple_of,
    return_tensors=kind,
  )


@dataclasses.dataclass
class DataCollatorForTokenClassification:
  """Pads rows and their labels, one per token.

  Attributes:
    tokenizer: the tokenizer of the rows.
    padding: True or "longest", "max_length", False.
    max_length: in tokens, for "max_length".
    pad_to_multiple_of: pad to a multiple of this.
    label_pad_token_id: the label of padding.
    return_tensors: "tf" or "np".
  """

  tokenizer: PreTrainedTokenizerBase
  padding: bool | str | PaddingStrategy = True
  max_length: int | None = None
  pad_to_multiple_of: int | None = None
  label_pad_token_id: int = IGNORED
  return_tensors: str = "tf"

  def __call__(
    self, features: Sequence[Mapping[str, Any]], return_tensors: str | None = None
  ) -> Any:
    """Makes a batch: of int64 if there are `labels` (or `label`).

    Raises:
      ValueError: rows lack ids, or `return_tensors` is unknown.
    """
    kind = _check_kind(return_tensors or self.return_tensors)
    name = next((name for name in ("label", "labels") if features and name in features[0]), None)
    if name is None:
      return _padded(self, features, kind)
    rows = [{other: row[other] for other in row if other != name} for row in features]
    batch = dict(_padded(self, rows, None))
    length = len(batch["input_ids"][0])
    batch["labels"] = [self._padded_labels(list(row[name]), length) for row in features]
    return {other: _stacked(other, list(values), kind, np.int64) for other, values in batch.items()}

  def _padded_labels(self, labels: list[int], length: int) -> list[int]:
    padding = [self.label_pad_token_id] * (length - len(labels))
    return padding + labels if self.tokenizer.padding_side == "left" else labels + padding


class DataCollatorForMultipleChoice(_PaddingCollator):
  """Pads the choices of rows, which have a list for each, to one length."""

  def __call__(
    self, features: Sequence[Mapping[str, Any]], return_tensors: str | None = None
  ) -> dict[str, Any]:
    """Makes a batch: `[B, N, S]` for N choices, and int64 `labels` `[B]`, of `label` or `labels`.

    Raises:
      ValueError: rows lack ids, or have different numbers of choices.
    """
    kind = _check_kind(return_tensors or self.return_tensors)
    choices = [
      {name: values[i] for name, values in row.items() if name not in _LABELS}
      for row in features
      for i in range(len(row["input_ids"]))
    ]
    size = len(features)
    if not size or len(choices) != size * len(features[0]["input_ids"]):
      raise ValueError("There is no row, or rows have different numbers of choices.")
    flat = {name: np.asarray(value) for name, value in _padded(self, choices, "np").items()}
    batch = {
      name: _stacked(name, list(value.reshape(size, -1, value.shape[-1])), kind, np.int64)
      for name, value in flat.items()
    }
    name = next((name for name in _LABELS if name in features[0]), None)
    if name is not None:
      batch["labels"] = _stacked("labels", [row[name] for row in features], kind, np.int64)
    return batch


# ---------------------------------------------------------------------------------------------
# Masked words.


@dataclasses.dataclass
class DataCollatorForLanguageModeling:
  """Pads rows, and masks random tokens of them, which become `labels`.

  Special tokens are never masked, by `special_tokens_mask` if rows have it.

  Attributes:
    tokenizer: the tokenizer of the rows.
    mlm: whether to mask; else `labels` are the ids, without padding.
    whole_word_mask: not supported.
    mlm_probability: the share of tokens to predict.
    mask_replace_prob: of these, the share that becomes the mask token.
    random_replace_prob: of these, the share that becomes a random token; the rest stays.
    pad_to_multiple_of: pad to a multiple of this.
    tf_experimental_compile: whether XLA compiles the masking.
    return_tensors: "tf" or "np".
    seed: of an own generator of random numbers; by default those of `tf.random` and `np.random`.
  """

  tokenizer: PreTrainedTokenizerBase
  mlm: bool = True
  whole_word_mask: bool = False
  mlm_probability: float | None = 0.15
  mask_replace_prob: float = 0.8
  random_replace_prob: float = 0.1
  pad_to_multiple_of: int | None = None
  tf_experimental_compile: bool = False
  return_tensors: str = "tf"
  seed: int | None = None

  def __post_init__(self):
    """Checks the settings; raises a ValueError if one cannot be."""
    if self.whole_word_mask:
      raise ValueError(
        "whole_word_mask is not supported: create_pretraining_data.py --do_whole_word_mask masks "
        "whole words."
      )
    if self.mlm and self.tokenizer.mask_token is None:
      raise ValueError("The tokenizer has no mask_token; pass mlm=False to mask nothing.")
    for name in ("mlm_probability", "mask_replace_prob", "random_replace_prob"):
      value = getattr(self, name)
      if (value is None and self.mlm) or (value is not None and not 0 <= value <= 1):
        raise ValueError(f"{name} is {value!r}; it must be between 0 and 1.")
    if self.mask_replace_prob + self.random_replace_prob > 1:
      raise ValueError(
        f"mask_replace_prob={self.mask_replace_prob} and "
        f"random_replace_prob={self.random_replace_prob} are more than 1 together."
      )
    self.generator: Any = None
    if self.tf_experimental_compile:
      import tensorflow as tf

      compiled = tf.function(self.tf_mask_tokens, jit_compile=True)
      self.tf_mask_tokens = compiled

  def __call__(self, features: Sequence[Any], return_tensors: str | None = None) -> Any:
    """Makes a batch of rows, or of lists of ids.

    Returns:
      `input_ids` and `labels` int64 `[B, S]`, and what rows had; labels are -100 elsewhere.

    Raises:
      ValueError: rows lack ids, cannot be padded, or `return_tensors` is unknown.
    """
    kind = _check_kind(return_tensors or self.return_tensors)
    batch = self._batch(features, kind)
    special = batch.pop("special_tokens_mask", None)
    if self.mlm:
      special = self._special(batch["input_ids"]) if special is None else special
      mask = self._mask_tf if kind == "tf" else self.numpy_mask_tokens
      batch["input_ids"], batch["labels"] = mask(batch["input_ids"], special)
    else:
      batch["labels"] = self._unpadded(batch["input_ids"], kind)
    return batch

  def _batch(self, features: Sequence[Any], kind: str) -> Any:
    if features and isinstance(features[0], Mapping):
      return _padded(self, features, kind)
    rows = [{"input_ids": np.asarray(_as_numpy(row)).tolist()} for row in features]
    lengths = {len(row["input_ids"]) for row in rows}
    needed = longer_by_multiple(max(lengths, default=0), self.pad_to_multiple_of)
    if lengths == {needed}:
      ids = [row["input_ids"] for row in rows]  # which needs no pad token
    else:
      ids = _padded(self, rows, None)["input_ids"]
    return {"input_ids": _stacked("input_ids", ids, kind, np.int64)}

  def _special(self, ids: Any) -> np.ndarray:
    special = list(set(self.tokenizer.all_special_ids))
    return np.isin(_as_numpy(ids), special)

  def _unpadded(self, ids: Any, kind: str) -> Any:
    pad_id = self.tokenizer.pad_token_id
    if kind == "np":
      return np.where(ids == pad_id, IGNORED, ids) if pad_id is not None else ids.copy()
    import tensorflow as tf

    return tf.where(ids == pad_id, IGNORED, ids) if pad_id is not None else tf.identity(ids)

  def _mask_tf(self, ids: Any, special: Any) -> tuple[Any, Any]:
    import tensorflow as tf

    if self.seed and self.generator is None:
      self.generator = tf.random.Generator.from_seed(self.seed)
    return self.tf_mask_tokens(
      tf.cast(ids, tf.int64),
      special_tokens_mask=tf.cast(special, tf.bool),
      mask_token_id=self.tokenizer.mask_token_id,
      vocab_size=len(self.tokenizer),
    )

  def tf_mask_tokens(
    self, inputs: Any, vocab_size: int, mask_token_id: int, special_tokens_mask: Any
  ) -> tuple[Any, Any]:
    """Masks tokens.

    Args:
      inputs: ids, int64 `[B, S]`.
      vocab_size: random tokens are below.
      mask_token_id: the id of the mask.
      special_tokens_mask: True for tokens that stay, `[B, S]`.

    Returns:
      The ids, and the labels.
    """
    import tensorflow as tf

    shape = tf.shape(inputs)
    random = self.generator or tf.random

    def happens(probability):
      return tf.fill(shape, probability) - random.uniform(shape, 0, 1) >= 0

    masked = happens(float(self.mlm_probability or 0)) & ~special_tokens_mask
    labels = tf.where(masked, inputs, IGNORED)
    replaced = happens(float(self.mask_replace_prob)) & masked
    inputs = tf.where(replaced, tf.cast(mask_token_id, inputs.dtype), inputs)
    if self.mask_replace_prob == 1 or self.random_replace_prob == 0:
      return inputs, labels
    share = self.random_replace_prob / (1 - self.mask_replace_prob)
    is_random = happens(share) & masked & ~replaced
    words = random.uniform(shape, maxval=vocab_size, dtype=inputs.dtype)
    return tf.where(is_random, words, inputs), labels

  def numpy_mask_tokens(self, inputs: np.ndarray, special_tokens_mask: Any) -> tuple[Any, Any]:
    """Masks tokens, see `tf_mask_tokens`."""
    if self.seed and self.generator is None:
      self.generator = np.random.default_rng(self.seed)
    random = self.generator or np.random
    inputs = np.array(inputs)
    probability = np.full(inputs.shape, self.mlm_probability)
    probability[np.asarray(special_tokens_mask, bool)] = 0
    masked = _drawn(random, probability, inputs.shape)
    labels = np.where(masked, inputs, IGNORED)
    replaced = _drawn(random, self.mask_replace_prob, inputs.shape) & masked
    inputs[replaced] = self.tokenizer.mask_token_id
    if self.mask_replace_prob == 1 or self.random_replace_prob == 0:
      return inputs, labels
    share = self.random_replace_prob / (1 - self.mask_replace_prob)
    is_random = _drawn(random, share, inputs.shape) & masked & ~replaced
    integers = self.generator.integers if self.generator else np.random.randint
    inputs[is_random] = integers(0, len(self.tokenizer), is_random.sum(), dtype=np.int64)
    return inputs, labels


def _drawn(random: Any, probability: Any, shape: Iterable[int]) -> np.ndarray:
  return random.binomial(1, probability, size=shape).astype(bool)
