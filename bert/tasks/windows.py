"""Documents longer than one sequence: read in windows, with one prediction per document.

`run_classifier.py --long_text=windows` does not truncate a long text. It reads the text through
several overlapping windows, and pools their logits into those of the document:

  [CLS] tokens 0 to 125 [SEP]        logits of window 0
  [CLS] tokens 63 to 188 [SEP]       logits of window 1      mean or max: logits of the document
  [CLS] tokens 74 to 199 [SEP]       logits of window 2

A document is one example, with one label, one loss and one line of predictions, in training as in
evaluation. The rules:

* The first window is what `--long_text=truncate` reads. A document that fits has one window.
* Each window begins half a window after the start of the one before. The last one moves
  back so that it is full: in a mean, a short fragment would count as much as a full window.
* Of a pair, the longer text (of two equally long, the first) is read in windows, and each window
  repeats what truncation leaves of the other: all of it, or as much as half a window holds.
* A document is read up to `--max_windows` windows; a warning counts those that are longer.

So all windows of a document have the same mask and the same segments, and a record holds these
once. (Pappagari et al. 2019, arXiv:1910.10781, combine windows with another network; a mean or a
maximum has no weights to learn, so the checkpoint is that of any classifier.)

In TensorFlow, `model/long_documents.py` pools logits.

Letters in shapes: B = documents, S = sequence length, K = windows of a document, padded with zeros.
"""

import collections
import functools
from typing import NamedTuple

import numpy as np
from absl import logging

from bert.tasks.classification import PaddingInputExample
from bert.text.sequence_layout import layout_of

POOLINGS = ("mean", "max")

# A pair needs [CLS], two [SEP], and a token of each text.
MIN_SEQ_LENGTH = 5

# ---------------------------------------------------------------------------------------------
# Options.


class WindowOptions(NamedTuple):
  """How a document is read."""

  # Tokens from the start of a window to that of the next; where windows are smaller, as those of a
  # pair may be, each begins where the one before ends.
  stride: int
  max_windows: int  # K; a longer document is not read to its end
  pooling: str = "mean"  # `mean` or `max`, of the windows' logits


def windows(num_pieces: int, capacity: int, stride: int) -> list[tuple[int, int]]:
  """Returns start and end of each window; the last is moved back, so that all of several are full.

  Example:
    >>> windows(10, 6, 3)
    [(0, 6), (3, 9), (4, 10)]
    >>> windows(5, 6, 3)
    [(0, 5)]
  """
  last = max(num_pieces - capacity, 0)
  return [(start, min(start + capacity, num_pieces)) for start in (*range(0, last, stride), last)]


def facts(options: WindowOptions | None) -> dict:
  """Collects the settings that must be equal to resume a run.

  Example:
    >>> facts(None)
    {'long_text': 'truncate'}
    >>> facts(WindowOptions(63, 8))
    {'long_text': 'windows', 'window_stride': 63, 'max_windows': 8, 'window_pooling': 'mean'}
  """
  if options is None:
    return {"long_text": "truncate"}
  return {
    "long_text": "windows",
    "window_stride": options.stride,
    "max_windows": options.max_windows,
    "window_pooling": options.pooling,
  }


# ---------------------------------------------------------------------------------------------
# Documents -> records -> batches.


class WindowReader:
  """Converts documents to windows, one by one, and counts those that are cut.

  It is also the tokenizer of `classification.convert_single_example`, which makes the first window;
  it keeps the tokens of the last texts, because the other windows need them again.
  """

  def __init__(self, tokenizer, options: WindowOptions):
    """Takes a `tokenization.FullTokenizer`."""
    self.convert_tokens_to_ids = tokenizer.convert_tokens_to_ids
    self.layout = layout_of(tokenizer)
    self._tokenize = functools.lru_cache(maxsize=2)(lambda text: tuple(tokenizer.tokenize(text)))
    self._options = options
    self._counts = collections.Counter()

  def tokenize(self, text: str) -> list[str]:
    """Tokenizes a text; the list belongs to the caller."""
    return list(self._tokenize(text))

  def windows_of(self, example, first) -> dict:
    """Makes `input_ids` int64 `[K, S]`, and `num_windows` of these rows, of an example.

    `first` is the `InputFeatures` of its first window.
    """
    pieces, begin, size = self._text_in_windows(example, first)
    spans = self._spans(len(pieces), size)
    ids = np.zeros([self._options.max_windows, len(first.input_ids)], np.int64)
    ids[: len(spans)] = first.input_ids
    text_ids = self.convert_tokens_to_ids(pieces[: spans[-1][1]])
    for row, (start, end) in zip(ids, spans, strict=False):
      row[begin : begin + size] = text_ids[start:end]
    self._counts["examples"] += 1
    self._counts["windows"] += len(spans)
    self._counts["in several"] += len(spans) > 1
    self._counts["cut"] += spans[-1][1] < len(pieces)
    return {"input_ids": ids, "num_windows": len(spans)}

  def _text_in_windows(self, example, first) -> tuple[list[str], int, int]:
    """Returns the longer text's tokens, and its position and number of tokens in each window."""
    if isinstance(example, PaddingInputExample):
      return [], 0, 0
    pieces_a = self.tokenize(example.text_a)
    pieces_b = self.tokenize(example.text_b) if example.text_b else []
    room = len(first.input_ids) - self.layout.num_special(bool(pieces_b))
    size_a, size_b = self.layout.kept_lengths(len(pieces_a), len(pieces_b), room)
    if len(pieces_b) > len(pieces_a):
      self._counts["other cut"] += size_a < len(pieces_a)
      return pieces_b, self.layout.start_of_second(size_a), size_b
    self._counts["other cut"] += size_b < len(pieces_b)
    return pieces_a, 1, size_a

  def _spans(self, num_pieces: int, size: int) -> list[tuple[int, int]]:
    step = max(min(size, self._options.stride), 1)
    num_read = min(num_pieces, size + (self._options.max_windows - 1) * step)
    return windows(num_read, size, step)

  @property
  def has_truncated(self) -> bool:
    """Whether a document, or the shorter text of a pair, was not read to its end."""
    return bool(self._counts["cut"] or self._counts["other cut"])

  def log_counts(self) -> None:
    """Logs the number of windows, and how many texts are not read to their end."""
    counts = self._counts
    logging.info(
      "%d of %d examples need several windows; there are %d windows.",
      counts["in several"],
      counts["examples"],
      counts["windows"],
    )
    if counts["cut"]:
      logging.warning(
        "%d of %d examples are longer than --max_windows=%d windows: their ends are not read.",
        counts["cut"],
        counts["examples"],
        self._options.max_windows,
      )
    if counts["other cut"]:
      logging.warning(
        "Both texts of %d pairs are too long for a window; the shorter one is cut to half of it.",
        counts["other cut"],
      )


def record_features(features, options: WindowOptions) -> dict:
  """Adapts the features of records without windows to records with windows."""
  import tensorflow as tf

  ids = features["input_ids"]
  return {
    **features,
    "input_ids": tf.io.FixedLenFeature([options.max_windows, *ids.shape], ids.dtype),
    "num_windows": tf.io.FixedLenFeature([], tf.int64),
  }


def window_transform(trim: bool = True):
  """Makes the `transform` of `record_input_fn` that makes batches of records ready for the model.

  It turns `input_ids` int32 `[B, K, S]` into `[B, S, K]`, so that S is the same axis as elsewhere,
  and batches are cut to their longest sequence as usual. `trim` also drops the rows in which no
  document of a batch has a window.
  """
  import tensorflow as tf

  def transform(features, numbers, seed):
    del numbers, seed  # nothing is drawn
    ids = features["input_ids"]
    if trim:
      ids = ids[:, : tf.reduce_max(features["num_windows"])]
    return {**features, "input_ids": tf.transpose(ids, [0, 2, 1])}

  return transform
