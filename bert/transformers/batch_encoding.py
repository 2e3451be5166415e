"""What a tokenizer returns: a dictionary of lists or tensors that knows where its tokens come from.

batch = tokenizer("It rains.", return_tensors="tf")
batch["input_ids"], batch.input_ids     # the same tensor, [1, S]
batch.tokens(), batch.word_ids()        # of a fast tokenizer
"""

import collections
import importlib.util
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from bert.transformers.encodings import Encoding
from bert.transformers.tokenization_options import TensorType


class TokenSpan(NamedTuple):
  """Tokens `start` to `end` (exclusive)."""

  start: int
  end: int


class CharSpan(NamedTuple):
  """Characters `start` to `end` (exclusive)."""

  start: int
  end: int


class BatchEncoding(collections.UserDict):
  """A dictionary of lists, arrays or tensors; its values are attributes, too.

  Methods such as `word_ids` are for what fast tokenizers return, and raise a ValueError otherwise.
  Where they take a number of a row, it may be left out if there is one row.

  Attributes:
    data: the dictionary.
    encodings: the rows, of a fast tokenizer; else None.
    n_sequences: number of texts in each row, if known.
  """

  def __init__(
    self,
    data: Mapping[str, Any] | None = None,
    encoding: Encoding | Sequence[Encoding] | None = None,
    tensor_type: str | TensorType | None = None,
    prepend_batch_axis: bool = False,
    n_sequences: int | None = None,
  ):
    """Holds `data`, as tensors if `tensor_type` says so.

    Args:
      data: name -> values.
      encoding: the rows.
      tensor_type: see `convert_to_tensors`, as the next.
      prepend_batch_axis: whether `data` is of one row, and tensors shall have a batch dimension.
      n_sequences: number of texts in each row.

    Raises:
      ValueError: see `convert_to_tensors`.
    """
    super().__init__(data)
    self._encodings = [encoding] if isinstance(encoding, Encoding) else encoding
    if n_sequences is None and self._encodings:
      n_sequences = self._encodings[0].n_sequences
    self._n_sequences = n_sequences
    self.convert_to_tensors(tensor_type, prepend_batch_axis)

  @property
  def n_sequences(self) -> int | None:
    """Number of texts in each row; None if not known."""
    return self._n_sequences

  @property
  def is_fast(self) -> bool:
    """Whether a fast tokenizer returned this."""
    return self._encodings is not None

  @property
  def encodings(self) -> Sequence[Encoding] | None:
    """The rows, of a fast tokenizer."""
    return self._encodings

  def __getitem__(self, item: str | int | slice) -> Any:
    """Returns the values of a name, the row of a number, or some rows of all names."""
    if isinstance(item, str):
      return self.data[item]
    if self._encodings is not None:
      return self._encodings[item]
    if isinstance(item, slice):
      return {name: values[item] for name, values in self.data.items()}
    raise KeyError(
      f"{item!r}: what a slow tokenizer returns has names and slices, but no single rows. Use a "
      "fast tokenizer."
    )

  def __getattr__(self, name: str) -> Any:
    data = self.__dict__.get("data", {})
    if name in data:
      return data[name]
    raise AttributeError(f"{type(self).__name__} has no {name!r}; it has {list(data)}.")

  def __getstate__(self):
    return {"data": self.data, "encodings": self._encodings, "n_sequences": self._n_sequences}

  def __setstate__(self, state):
    self.data = state["data"]
    self._encodings = state["encodings"]
    self._n_sequences = state.get("n_sequences")

  # -------------------------------------------------------------------------------------------
  # Where tokens come from.

  def _row(self, method: str, index: int = 0) -> Encoding:
    if not self._encodings:
      raise ValueError(
        f"{method}() is only known of what a fast tokenizer returned: use one of the classes that "
        "end in Fast."
      )
    return self._encodings[index]

  def _row_and_index(self, method: str, first: int, second: int | None) -> tuple[Encoding, int]:
    row, index = (0, first) if second is None else (first, second)
    encoding = self._row(method, row)
    return encoding, index

  def tokens(self, batch_index: int = 0) -> list[str]:
    """Returns the tokens of a row."""
    return self._row("tokens", batch_index).tokens

  def sequence_ids(self, batch_index: int = 0) -> list[int | None]:
    """Returns the text (0 or 1) of each token of a row; None for special ones."""
    return self._row("sequence_ids", batch_index).sequence_ids

  def words(self, batch_index: int = 0) -> list[int | None]:
    """Deprecated: `word_ids`."""
    row = self._row("words", batch_index)
    warnings.warn("BatchEncoding.words() is now word_ids().", FutureWarning, stacklevel=2)
    return row.word_ids

  def word_ids(self, batch_index: int = 0) -> list[int | None]:
    """Returns the number of each token's word in its text; None for special ones."""
    return self._row("word_ids", batch_index).word_ids

  def token_to_sequence(
    self, batch_or_token_index: int, token_index: int | None = None
  ) -> int | None:
    """Returns the text (0 or 1) of a token; None for a special one."""
    row, token = self._row_and_index("token_to_sequence", batch_or_token_index, token_index)
    return row.token_to_sequence(_from_end(token, row))

  def token_to_word(self, batch_or_token_index: int, token_index: int | None = None) -> int | None:
    """Returns the number of a token's word; None for a special one."""
    row, token = self._row_and_index("token_to_word", batch_or_token_index, token_index)
    return row.token_to_word(_from_end(token, row))

  def token_to_chars(
    self, batch_or_token_index: int, token_index: int | None = None
  ) -> CharSpan | None:
    """Returns the characters of a token; None for a special one."""
    row, token = self._row_and_index("token_to_chars", batch_or_token_index, token_index)
    span = row.token_to_chars(_from_end(token, row))
    return CharSpan(*span) if span else None

  def word_to_tokens(
    self, batch_or_word_index: int, word_index: int | None = None, sequence_index: int = 0
  ) -> TokenSpan | None:
    """Returns the tokens of a word of text `sequence_index`; None if it has none."""
    row, word = self._row_and_index("word_to_tokens", batch_or_word_index, word_index)
    span = row.word_to_tokens(word, sequence_index)
    return TokenSpan(*span) if span else None

  def word_to_chars(
    self, batch_or_word_index: int, word_index: int | None = None, sequence_index: int = 0
  ) -> CharSpan:
    """Returns the characters of a word; raises a ValueError if it has no token."""
    row, word = self._row_and_index("word_to_chars", batch_or_word_index, word_index)
    span = row.word_to_chars(word, sequence_index)
    if span is None:
      raise ValueError(f"Text {sequence_index} of the row has no token of a word {word}.")
    return CharSpan(*span)

  def char_to_token(
    self, batch_or_char_index: int, char_index: int | None = None, sequence_index: int = 0
  ) -> int | None:
    """Returns the token that covers a character; None for a blank."""
    row, char = self._row_and_index("char_to_token", batch_or_char_index, char_index)
    return row.char_to_token(char, sequence_index)

  def char_to_word(
    self, batch_or_char_index: int, char_index: int | None = None, sequence_index: int = 0
  ) -> int | None:
    """Returns the number of the word that covers a character."""
    row, char = self._row_and_index("char_to_word", batch_or_char_index, char_index)
    return row.char_to_word(char, sequence_index)

  # -------------------------------------------------------------------------------------------
  # Tensors.

  def convert_to_tensors(
    self, tensor_type: str | TensorType | None = None, prepend_batch_axis: bool = False
  ) -> "BatchEncoding":
    """Converts all values; int32 for `tf` and int64 for `np`, as NumPy and TensorFlow choose.

    Args:
      tensor_type: "tf", "np" or "pt"; None changes nothing.
      prepend_batch_axis: add a batch dimension.

    Raises:
      ValueError: rows have different lengths, or `tensor_type` is unknown.
      ImportError: the library of `tensor_type` is not installed.
    """
    if tensor_type is None:
      return self
    convert, is_tensor = _converter(TensorType(tensor_type))
    for name, values in self.items():
      values = [values] if prepend_batch_axis else values
      if is_tensor(values):
        continue
      try:
        self[name] = convert(values)
      except Exception as error:
        raise ValueError(_why_no_tensor(name)) from error
    return self

  def to(self, device: Any, **unused: Any) -> "BatchEncoding":
    """Moves tensors of PyTorch; those of TensorFlow and NumPy need not be moved."""
    for name, values in self.data.items():
      if hasattr(values, "to") and callable(values.to):
        self.data[name] = values.to(device, **unused)
    return self


def _from_end(index: int, row: Encoding) -> int:
  return index + len(row) if index < 0 else index


def _why_no_tensor(name: str) -> str:
  if name == "overflowing_tokens":
    return (
      "overflowing_tokens have different lengths, so they form no tensor. A fast tokenizer "
      "returns rows of one length instead."
    )
  return (
    f"The rows of {name!r} form no tensor: they have different lengths or are nested too deep. "
    "Pass padding=True and truncation=True for rows of one length."
  )


def _converter(kind: TensorType):
  """Returns a function from lists to a tensor, and one that tells whether something is one."""
  if kind is TensorType.NUMPY:
    return _as_array, lambda values: isinstance(values, np.ndarray)
  if kind is TensorType.TENSORFLOW:
    _need("tensorflow", kind)
    import tensorflow as tf

    return (
      lambda values: tf.constant(values, dtype=None if _has_values(values) else tf.int32),
      tf.is_tensor,
    )
  if kind is TensorType.PYTORCH:
    _need("torch", kind)
    import torch

    return (
      lambda values: torch.as_tensor(np.asarray(values, None if _has_values(values) else np.int64)),
      torch.is_tensor,
    )
  raise ValueError(f"return_tensors={kind.value!r} is not supported; known: 'tf', 'np', 'pt'.")


def _need(name: str, kind: TensorType) -> None:
  if importlib.util.find_spec(name) is None:
    raise ImportError(
      f"return_tensors={kind.value!r} needs {name}, which is not installed; use 'np' or None."
    )


def _has_values(values: Any) -> bool:
  return not _is_all_empty(values)


def _is_all_empty(values: Any) -> bool:
  return isinstance(values, list | tuple) and all(map(_is_all_empty, values))


def _as_array(values: Any) -> np.ndarray:
  is_list = isinstance(values, list | tuple) and len(values) > 0
  is_nested = is_list and isinstance(values[0], list | tuple | np.ndarray)
  if is_nested and len({len(row) for row in values}) > 1:
    return np.asarray([np.asarray(row) for row in values], dtype=object)
  return np.asarray(values, dtype=None if _has_values(values) else np.int64)
