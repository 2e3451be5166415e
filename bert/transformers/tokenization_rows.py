"""Rows of ids: joined with special tokens, cut, padded. What slow tokenizers make their rows with.

tokenizer.prepare_for_model([7, 8], [9], truncation="only_first", max_length=5)
tokenizer.pad([{"input_ids": [101, 102]}, ...], return_tensors="np")
"""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bert.text.sequence_layout import BERT
from bert.transformers.batch_encoding import BatchEncoding
from bert.transformers.tokenization_options import (
  LOGGER,
  Options,
  PaddingStrategy,
  TruncationStrategy,
  check_side,
  longer_by_multiple,
  resolve,
  warn_once,
)


class RowsMixin:
  """The part of `PreTrainedTokenizerBase` that is about rows of ids."""

  model_input_names: list[str]
  model_max_length: int
  padding_side: str
  truncation_side: str
  deprecation_warnings: dict[str, bool]
  # Special tokens are attributes of `SpecialTokensMixin`.
  pad_token: Any
  pad_token_id: Any
  pad_token_type_id: Any
  cls_token_id: Any
  sep_token_id: Any
  all_special_ids: Any

  def num_special_tokens_to_add(self, pair: bool = False) -> int:
    """Counts the special tokens of a row of one text, or of a pair."""
    raise NotImplementedError

  def _options(self, kwargs: dict[str, Any]) -> Options:
    """Takes the arguments of padding and truncation out of `kwargs`."""
    multiple = kwargs.get("pad_to_multiple_of")
    padding, truncation = kwargs.pop("padding", False), kwargs.pop("truncation", None)
    max_length = kwargs.pop("max_length", None)
    # What versions before 4 had instead.
    if kwargs.pop("pad_to_max_length", False) and padding is False:
      _warn_of_old_name("pad_to_max_length", "padding='max_length'")
      padding = "longest" if max_length is None else "max_length"
      if truncation is None and max_length is not None:
        truncation = "longest_first"
    strategy = kwargs.pop("truncation_strategy", None)
    if strategy is not None and not truncation:
      _warn_of_old_name("truncation_strategy", f"truncation={strategy!r}")
      truncation = strategy
    options = resolve(
      padding,
      truncation,
      max_length,
      multiple,
      self.model_max_length,
      self.deprecation_warnings,
      kwargs.get("verbose", True),
    )
    if kwargs.get("padding_side") is not None:
      check_side("padding_side", kwargs["padding_side"])
    if kwargs.get("stride", 0) < 0:
      raise ValueError(f"stride is {kwargs['stride']}; it must be at least 0.")
    if options.pads:
      self._check_padding_token()
    return options

  def _check_padding_token(self) -> None:
    if self.pad_token is None or self.pad_token_id is None or self.pad_token_id < 0:
      raise ValueError(
        f"Rows cannot be padded: this {type(self).__name__} has no pad_token. Set one, such as "
        "tokenizer.pad_token = tokenizer.sep_token, or add one: "
        "tokenizer.add_special_tokens({'pad_token': '[PAD]'})."
      )

  def _warn_if_too_long(self, ids: Sequence[int], max_length: int | None, verbose: bool) -> None:
    if max_length is None and len(ids) > self.model_max_length != 0:
      warn_once(
        self.deprecation_warnings,
        "sequence-length-is-longer-than-the-specified-maximum",
        f"A row has {len(ids)} tokens, more than the {self.model_max_length} that the model takes. "
        "Pass truncation=True to cut such rows.",
        verbose,
      )

  def build_inputs_with_special_tokens(
    self, token_ids_0: list[int], token_ids_1: list[int] | None = None
  ) -> list[int]:
    """Joins ids of one text or two with special tokens; here there are none."""
    return token_ids_0 + (token_ids_1 or [])

  def create_token_type_ids_from_sequences(
    self, token_ids_0: list[int], token_ids_1: list[int] | None = None
  ) -> list[int]:
    """Returns the segment of each token of a row: 0 of the first text, 1 of the second."""
    first = int(self.cls_token_id is not None)
    end = int(self.sep_token_id is not None)
    segments = [0] * (first + len(token_ids_0) + end)
    return segments if token_ids_1 is None else segments + [1] * (len(token_ids_1) + end)

  def get_special_tokens_mask(
    self,
    token_ids_0: list[int],
    token_ids_1: list[int] | None = None,
    already_has_special_tokens: bool = False,
  ) -> list[int]:
    """Returns 1 for each special token of a row, 0 for others.

    Args:
      token_ids_0: ids of the first text, or of a whole row.
      token_ids_1: ids of the second text.
      already_has_special_tokens: whether `token_ids_0` is a whole row.

    Raises:
      ValueError: a whole row has a second text.
    """
    if already_has_special_tokens:
      if token_ids_1 is not None:
        raise ValueError("A row that already has special tokens has no second text.")
      special = set(self.all_special_ids)
      return [int(index in special) for index in token_ids_0]
    first = [0] * len(token_ids_0)
    second = None if token_ids_1 is None else [0] * len(token_ids_1)
    row = self.build_inputs_with_special_tokens(first, second)
    # The texts are the first zeros of the row, one after `cls` and one before `sep`.
    mask = [1] * len(row)
    start = int(len(row) > len(first) + len(second or ()))
    mask[start : start + len(first)] = first
    if second:
      end = len(row) - start
      mask[end - len(second) : end] = second
    return mask

  def prepare_for_model(
    self,
    ids: list[int],
    pair_ids: list[int] | None = None,
    add_special_tokens: bool = True,
    stride: int = 0,
    pad_to_multiple_of: int | None = None,
    padding_side: str | None = None,
    return_tensors: str | None = None,
    return_token_type_ids: bool | None = None,
    return_attention_mask: bool | None = None,
    return_overflowing_tokens: bool = False,
    return_special_tokens_mask: bool = False,
    return_length: bool = False,
    verbose: bool = True,
    prepend_batch_axis: bool = False,
    **kwargs: Any,
  ) -> BatchEncoding:
    """Makes a row of ids of one text or two; arguments as of a call, see `__call__`.

    Raises:
      ValueError: segments without special tokens, or what overflows of "longest_first" of a pair,
        were asked for: neither is defined.
    """
    options = self._options(
      {**kwargs, "pad_to_multiple_of": pad_to_multiple_of, "verbose": verbose, "stride": stride}
    )
    is_pair = pair_ids is not None
    longest_first = options.truncation is TruncationStrategy.LONGEST_FIRST
    if return_token_type_ids and not add_special_tokens:
      raise ValueError(
        "return_token_type_ids=True needs add_special_tokens=True: without them the segments of a "
        "slow tokenizer are not defined."
      )
    if return_overflowing_tokens and longest_first and is_pair:
      raise ValueError(
        "What overflows of a pair cut as 'longest_first' cannot be returned: both texts lose "
        "tokens. Pass truncation='only_first' or 'only_second', or use a fast tokenizer."
      )
    num_special = self.num_special_tokens_to_add(is_pair) if add_special_tokens else 0
    total = len(ids) + len(pair_ids or ()) + num_special
    excess = 0 if options.max_length is None else total - options.max_length
    overflowing: list[int] = []
    if options.truncates and options.max_length and excess > 0:
      ids, pair_ids, overflowing = self.truncate_sequences(
        ids, pair_ids, excess, options.truncation, stride
      )
    row: dict[str, Any] = {}
    if return_overflowing_tokens:
      row["overflowing_tokens"] = overflowing
      row["num_truncated_tokens"] = excess
    if add_special_tokens:
      row["input_ids"] = self.build_inputs_with_special_tokens(ids, pair_ids)
    else:
      row["input_ids"] = ids + (pair_ids or [])
    zeros = [0] * len(row["input_ids"])
    if self._returns("token_type_ids", return_token_type_ids):
      segments_of = self.create_token_type_ids_from_sequences
      row["token_type_ids"] = segments_of(ids, pair_ids) if add_special_tokens else zeros
    if return_special_tokens_mask:
      mask_of = self.get_special_tokens_mask
      row["special_tokens_mask"] = mask_of(ids, pair_ids) if add_special_tokens else list(zeros)
    self._warn_if_too_long(row["input_ids"], options.max_length, verbose)
    has_mask = self._returns("attention_mask", return_attention_mask)
    if not row["input_ids"]:
      row.update({"attention_mask": []} if has_mask else {})
    elif options.pads or has_mask:
      row = self._padded(row, options, pad_to_multiple_of, padding_side, has_mask)
    if return_length:
      row["length"] = len(row["input_ids"])
    return BatchEncoding(row, tensor_type=return_tensors, prepend_batch_axis=prepend_batch_axis)

  def _returns(self, name: str, is_wanted: bool | None) -> bool:
    return name in self.model_input_names if is_wanted is None else is_wanted

  def truncate_sequences(
    self,
    ids: list[int],
    pair_ids: list[int] | None = None,
    num_tokens_to_remove: int = 0,
    truncation_strategy: str | TruncationStrategy = "longest_first",
    stride: int = 0,
  ) -> tuple[list[int], list[int] | None, list[int]]:
    """Cuts the ids of one text or two.

    A text that is too short to lose all of it is left alone, and an error is logged.

    Returns:
      Both, and what was cut off of the one that was cut, with the `stride` tokens beside it.
    """
    if num_tokens_to_remove <= 0:
      return ids, pair_ids, []
    strategy = TruncationStrategy(truncation_strategy)
    if strategy is TruncationStrategy.LONGEST_FIRST and pair_ids is not None:
      room = max(len(ids) + len(pair_ids) - num_tokens_to_remove, 0)
      keep_first, keep_second = BERT.kept_lengths(len(ids), len(pair_ids), room)
      return self._kept(ids, keep_first), self._kept(pair_ids, keep_second), []
    cuts_second = strategy is TruncationStrategy.ONLY_SECOND
    if strategy is TruncationStrategy.DO_NOT_TRUNCATE or (cuts_second and pair_ids is None):
      return ids, pair_ids, []
    target = pair_ids if cuts_second else ids
    assert target is not None
    if len(target) <= num_tokens_to_remove:
      LOGGER.error(
        "%d tokens must go, but the %s text has only %d: nothing was cut. Choose another "
        "truncation than %r.",
        num_tokens_to_remove,
        "second" if cuts_second else "first",
        len(target),
        strategy.value,
      )
      return ids, pair_ids, []
    width = min(len(target), stride + num_tokens_to_remove)
    overflowing = target[:width] if self.truncation_side == "left" else target[-width:]
    kept = self._kept(target, len(target) - num_tokens_to_remove)
    return (ids, kept, overflowing) if cuts_second else (kept, pair_ids, overflowing)

  def _kept(self, ids: list[int], length: int) -> list[int]:
    check_side("truncation_side", self.truncation_side)
    return ids[len(ids) - length :] if self.truncation_side == "left" else ids[:length]

  def pad(
    self,
    encoded_inputs: Any,
    padding: bool | str | PaddingStrategy = True,
    max_length: int | None = None,
    pad_to_multiple_of: int | None = None,
    padding_side: str | None = None,
    return_attention_mask: bool | None = None,
    return_tensors: str | None = None,
    verbose: bool = True,
  ) -> BatchEncoding:
    """Pads rows.

    Args:
      encoded_inputs: a row, rows, or a list of rows: name -> ids, or what a call returned. Arrays
        and tensors are taken, too; the result is then of their kind.
      padding: see `__call__`, as the rest.
      max_length: in tokens.
      pad_to_multiple_of: pad to a multiple of this.
      padding_side: "right" or "left".
      return_attention_mask: whether to return the mask.
      return_tensors: "tf", "np" or "pt".
      verbose: whether to log what is odd.

    Returns:
      The rows, padded: ids, segments, `attention_mask` and `special_tokens_mask`.

    Raises:
      ValueError: there are no ids, or the names have different numbers of rows.
    """
    values = encoded_inputs
    if isinstance(values, list | tuple) and values and isinstance(values[0], Mapping):
      values = {name: [row[name] for row in values] for name in values[0]}
    main = self.model_input_names[0]
    if not isinstance(values, Mapping) or main not in values:
      names = list(values) if isinstance(values, Mapping) else type(values).__name__
      raise ValueError(f"There is no {main!r} to pad, only {names!r:.200}.")
    values = dict(values)
    ids = values[main]
    has_mask = self._returns("attention_mask", return_attention_mask)
    if ids is None or len(ids) == 0:
      return BatchEncoding({**values, **({"attention_mask": []} if return_attention_mask else {})})
    values, kind = _as_lists(values, ids)
    options = self._options(
      {
        **{"padding": padding, "max_length": max_length, "verbose": verbose},
        **{"truncation": False, "padding_side": padding_side},
      }
    )
    if not isinstance(values[main][0], list | tuple):
      row = self._padded(values, options, pad_to_multiple_of, padding_side, has_mask)
      return BatchEncoding(row, tensor_type=return_tensors or kind)
    count = len(values[main])
    if any(len(each) != count for each in values.values()):
      counts = {name: len(each) for name, each in values.items()}
      raise ValueError(f"The names have different numbers of rows: {counts}.")
    if options.padding is PaddingStrategy.LONGEST:
      longest = max(map(len, values[main]))
      options = options._replace(padding=PaddingStrategy.MAX_LENGTH, max_length=longest)
    rows: dict[str, list] = {}
    for index in range(count):
      row = {name: each[index] for name, each in values.items()}
      row = self._padded(row, options, pad_to_multiple_of, padding_side, has_mask)
      for name, value in row.items():
        rows.setdefault(name, []).append(value)
    return BatchEncoding(rows, tensor_type=return_tensors or kind)

  def _padded(
    self,
    row: Mapping[str, Any],
    options: Options,
    multiple: int | None,
    side: str | None,
    has_mask: bool,
  ) -> dict[str, Any]:
    """Pads a row to `options.max_length`, or for LONGEST to its own length and the multiple."""
    row = dict(row)
    main = self.model_input_names[0]
    ids = list(row[main])
    if has_mask and "attention_mask" not in row:
      row["attention_mask"] = [1] * len(ids)
    length = len(ids) if options.padding is PaddingStrategy.LONGEST else options.max_length
    if not options.pads or length is None:
      return row
    missing = longer_by_multiple(length, multiple) - len(ids)
    if missing <= 0:
      return row
    fill = {main: self.pad_token_id, "special_tokens_mask": 1}
    fill["token_type_ids"] = self.pad_token_type_id
    if has_mask:
      fill["attention_mask"] = 0
    is_left = (side or self.padding_side) == "left"
    for name, value in fill.items():
      if name in row:
        padding = [value] * missing
        row[name] = padding + list(row[name]) if is_left else list(row[name]) + padding
    return row


def _warn_of_old_name(old: str, new: str) -> None:
  warnings.warn(f"{old} is an old name: pass {new}.", FutureWarning, stacklevel=5)


class ClsSepRows(RowsMixin):
  """Rows as BERT's: a [CLS] before them, a [SEP] behind each text."""

  def build_inputs_with_special_tokens(
    self, token_ids_0: list[int], token_ids_1: list[int] | None = None
  ) -> list[int]:
    """Joins ids as `[CLS] a [SEP]` or `[CLS] a [SEP] b [SEP]`."""
    row = [self.cls_token_id, *token_ids_0, self.sep_token_id]
    return row if token_ids_1 is None else [*row, *token_ids_1, self.sep_token_id]


def as_list(ids: Any) -> Any:
  """Makes lists and numbers of Python of arrays and tensors."""
  if hasattr(ids, "numpy"):
    ids = ids.numpy()
  if isinstance(ids, np.ndarray | np.generic):
    return ids.tolist()
  if isinstance(ids, list | tuple):
    return list(map(as_list, ids))
  return ids


def _as_lists(values: Mapping[str, Any], ids: Any) -> tuple[dict[str, Any], str | None]:
  """Makes lists of all values; the second is the kind of tensors that `ids` are, if any."""
  first = ids[0]
  while isinstance(first, list | tuple) and first:
    first = first[0]
  if isinstance(first, int | list | tuple):
    return dict(values), None
  module = type(first).__module__.split(".")[0]
  kind = {"numpy": "np", "tensorflow": "tf", "torch": "pt"}.get(module)
  if kind is None:
    raise ValueError(
      f"Rows must be of whole numbers, in lists, arrays or tensors, not {type(first).__name__}: "
      f"{first!r:.80}"
    )
  return {name: as_list(each) for name, each in values.items()}, kind
