"""Batches of texts as arrays: rows of ids, cut and joined as the model reads them.

  inputs = encode_batch(tokenizer, ["One text.", "Another one."], max_seq_length=64)
  inputs["input_ids"].shape           # (2, 64)

`tokenization.FullTokenizer` offers it as a method. Several processes can share a large batch: each
gets the tokenizer once, pickled, and returns arrays, which are cheap to send.
"""

import concurrent.futures
import itertools
import multiprocessing
import signal
from collections.abc import Sequence
from typing import Any, NamedTuple

from bert.text.sequence_layout import layout_of

_TEXTS_PER_TASK = 4096  # about 20 ms of work, much longer than sending a task takes

Inputs = dict[str, Any]  # "input_ids", "input_mask", "segment_ids": int32 arrays [B, S]


def encode_batch(
  tokenizer,
  texts: Sequence[str | bytes],
  text_pairs: Sequence[str | bytes | None] | None = None,
  max_seq_length: int | None = None,
  pad_to_longest: bool = False,
  num_workers: int = 1,
) -> Inputs:
  """See `tokenization.FullTokenizer.encode_batch`."""
  texts = _checked(texts, "texts")
  pairs = [None] * len(texts) if text_pairs is None else _checked(text_pairs, "text_pairs")
  if len(pairs) != len(texts):
    raise ValueError(f"Got {len(texts)} texts, but {len(pairs)} text_pairs.")
  tasks = [
    (texts[i : i + _TEXTS_PER_TASK], pairs[i : i + _TEXTS_PER_TASK], max_seq_length)
    for i in range(0, len(texts), _TEXTS_PER_TASK)
  ]
  if min(num_workers, len(tasks)) > 1:
    parts = _rows_by_processes(tokenizer, tasks, min(num_workers, len(tasks)))
  else:
    parts = [_rows(tokenizer, *task) for task in tasks or [([], [], max_seq_length)]]
  length = None if pad_to_longest else max_seq_length
  return _padded(parts, length, layout_of(tokenizer).pad_id)


def _checked(texts, name: str) -> list:
  if isinstance(texts, str | bytes):
    raise ValueError(f"{name} must be a sequence of texts, not one: {texts!r:.80}")
  return list(texts)


class _Rows(NamedTuple):
  """Sequences of different lengths, one after the other; arrays are int32."""

  ids: Any  # `[T]`, all ids
  lengths: Any  # `[B]`, the number of ids of each row
  # `[B]`, the number of ids of segment 0: the first text, with [CLS] and its [SEP].
  first_lengths: Any


def _rows(tokenizer, texts: list, pairs: list, max_seq_length: int | None) -> _Rows:
  import numpy as np  # here, so that tokens alone do not need it

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
  lengths = np.fromiter(map(len, rows), np.int32, len(rows))
  ids = np.fromiter(itertools.chain.from_iterable(rows), np.int32, lengths.sum(dtype=int))
  return _Rows(ids, lengths, np.array(first_lengths, np.int32))


def _cut(layout, first: list[int], second: list[int], max_seq_length: int) -> tuple[list, list]:
  special = layout.num_special(bool(second))
  if max_seq_length < special:
    raise ValueError(f"max_seq_length is {max_seq_length}, but must be at least {special}.")
  keep_first, keep_second = layout.kept_lengths(len(first), len(second), max_seq_length - special)
  return first[:keep_first], second[:keep_second]


def _padded(parts: Sequence[_Rows], length: int | None, pad_id: int) -> Inputs:
  import numpy as np

  ids, lengths, first_lengths = map(np.concatenate, zip(*parts, strict=True))
  length = int(lengths.max(initial=0)) if length is None else length
  position = np.arange(length)
  is_token = position < lengths[:, None]  # [B, S]
  input_ids = np.full(is_token.shape, pad_id, np.int32)
  input_ids[is_token] = ids
  segment_ids = is_token & (position >= first_lengths[:, None])
  return {
    "input_ids": input_ids,
    "input_mask": is_token.astype(np.int32),
    "segment_ids": segment_ids.astype(np.int32),
  }


# ---------------------------------------------------------------------------------------------
# Several processes.

_worker_tokenizer = None


def _rows_by_processes(tokenizer, tasks: list[tuple], num_workers: int) -> list[_Rows]:
  # Spawned, not forked: the caller may have threads, for instance those of TensorFlow.
  context = multiprocessing.get_context("spawn")
  try:
    with concurrent.futures.ProcessPoolExecutor(
      num_workers, context, _start_worker, (tokenizer,)
    ) as executor:
      return list(executor.map(_rows_in_worker, tasks))
  except concurrent.futures.process.BrokenProcessPool:
    raise RuntimeError(
      "A worker process died. Workers import the main module, so call encode_batch with "
      'num_workers only below `if __name__ == "__main__":`. If you do, memory ran out: use fewer '
      "workers."
    ) from None


def _start_worker(tokenizer) -> None:
  global _worker_tokenizer
  signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is handled by the main process alone
  _worker_tokenizer = tokenizer


def _rows_in_worker(task: tuple) -> _Rows:
  return _rows(_worker_tokenizer, *task)
