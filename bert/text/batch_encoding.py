"""Batches of texts as arrays: rows of ids, cut and joined as the model reads them.

  inputs = encode_batch(tokenizer, ["One text.", "Another one."], max_seq_length=64)
  inputs["input_ids"].shape           # (2, 64)

`tokenization.FullTokenizer` offers it as a method.
"""

import itertools
from collections.abc import Sequence
from typing import Any

from bert.text.sequence_layout import Layout, layout_of

Inputs = dict[str, Any]  # "input_ids", "input_mask", "segment_ids": int32 arrays [B, S]


def encode_batch(
  tokenizer,
  texts: Sequence[str | bytes],
  text_pairs: Sequence[str | bytes | None] | None = None,
  max_seq_length: int | None = None,
  pad_to_longest: bool = False,
) -> Inputs:
  """See `tokenization.FullTokenizer.encode_batch`."""
  texts = _checked(texts, "texts")
  pairs = [None] * len(texts) if text_pairs is None else _checked(text_pairs, "text_pairs")
  if len(pairs) != len(texts):
    raise ValueError(f"Got {len(texts)} texts, but {len(pairs)} text_pairs.")
  layout = layout_of(tokenizer)
  cls_id, sep_id = tokenizer.convert_tokens_to_ids([layout.cls, layout.sep])
  between = [sep_id] * layout.separators
  firsts = tokenizer.texts_to_ids(texts)
  seconds = tokenizer.texts_to_ids([pair or "" for pair in pairs])
  rows, first_lengths = [], []
  for first, second in zip(firsts, seconds, strict=True):
    is_pair = bool(second)  # also if the second text is cut to nothing: it keeps its [SEP]
    if max_seq_length is not None:
      first, second = _cut(layout, first, second, max_seq_length)
    row = [cls_id, *first, *between, *second, sep_id] if is_pair else [cls_id, *first, sep_id]
    first_lengths.append(len(first) + 2 if layout.has_segments else len(row))
    rows.append(row)
  return _padded(rows, first_lengths, None if pad_to_longest else max_seq_length, layout.pad_id)


def _checked(texts, name: str) -> list:
  if isinstance(texts, str | bytes):
    raise ValueError(f"{name} must be a sequence of texts, not one: {texts!r:.80}")
  return list(texts)


def _cut(layout: Layout, first: list[int], second: list[int], max_seq_length: int) -> tuple:
  special = layout.num_special(bool(second))
  if max_seq_length < special:
    raise ValueError(f"max_seq_length is {max_seq_length}, but must be at least {special}.")
  keep_first, keep_second = layout.kept_lengths(len(first), len(second), max_seq_length - special)
  return first[:keep_first], second[:keep_second]


def _padded(
  rows: list[list[int]], first_lengths: list[int], length: int | None, pad_id: int
) -> Inputs:
  """Makes arrays of rows; `first_lengths` count the ids of the first text, [CLS] and [SEP] too."""
  import numpy as np  # here, so that tokens alone do not need it

  lengths = np.fromiter(map(len, rows), np.int32, len(rows))
  length = int(lengths.max(initial=0)) if length is None else length
  position = np.arange(length)
  is_token = position < lengths[:, None]  # [B, S]
  input_ids = np.full(is_token.shape, pad_id, np.int32)
  input_ids[is_token] = np.fromiter(
    itertools.chain.from_iterable(rows), np.int32, lengths.sum(dtype=int)
  )
  segment_ids = is_token & (position >= np.array(first_lengths, np.int32)[:, None])
  return {
    "input_ids": input_ids,
    "input_mask": is_token.astype(np.int32),
    "segment_ids": segment_ids.astype(np.int32),
  }
