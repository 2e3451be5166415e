"""Documents longer than one sequence: read through windows, answered once.

`run_classifier.py --long_text=windows` does not cut a text that is too long. It reads it through
several overlapping windows, and pools their logits into those of the document:

  [CLS] pieces 0 to 125 [SEP]        logits of window 0
  [CLS] pieces 63 to 188 [SEP]       logits of window 1      mean or max: logits of the document
  [CLS] pieces 74 to 199 [SEP]       logits of window 2

A document is one example, with one label, one loss and one line of predictions, in training as in
evaluation. The rules:

* The first window is what `--long_text=truncate` reads. A document that fits has no other.
* Each window begins `--window_stride` pieces behind the one before it. The last one moves back so
  as to be full: in the mean, a fragment would count as much as a page.
* Of a pair, the longer text (of two equally long, the first) is shown in windows, and each window
  repeats what truncation leaves of the other: all of it, or the first half of a window.
* Of a longer document than `--max_windows` windows, the rest is not read, and a warning says so.

All windows of a document thus have the same mask and the same segments, and a record holds these
once. (Pappagari et al. 2019, arXiv:1910.10781, join windows by a network of its own; a mean or a
maximum has no weights to learn, so the checkpoint is that of any classifier.)

Letters in shapes: B = documents, S = sequence length, K = windows of a document, filled up with
zeros, R = real windows of all documents, C = number of labels, (P) = pieces of each text, ragged.
"""

import collections
import functools
from typing import NamedTuple

import numpy as np
from absl import flags, logging

from bert.scripts import command_line, flag_groups
from bert.tasks.classification import PaddingInputExample
from bert.tasks.tagging import windows

FLAGS = flags.FLAGS

POOLINGS = ("mean", "max")

# A pair needs [CLS], two [SEP], and a piece of each text.
_MIN_SEQ_LENGTH = 5

# ---------------------------------------------------------------------------------------------
# Settings.


class WindowOptions(NamedTuple):
  """How a document is read.

  Attributes:
    stride: how many pieces each window begins behind the one before it; where windows are smaller,
      as those of a pair may be, each begins where the one before it ends.
    max_windows: K; what lies behind so many windows is not read.
    pooling: `mean` or `max`, of the windows' logits.
  """

  stride: int
  max_windows: int
  pooling: str = "mean"


def define_flags() -> None:
  """The flags that say what to do with long documents."""
  with flag_groups.flag_group("Long documents"):
    flags.DEFINE_enum(
      "long_text",
      "truncate",
      ["truncate", "windows"],
      "truncate: cut what is longer than --max_seq_length. windows: read it in several windows of "
      "that length, whose logits are pooled.",
    )
    flags.DEFINE_integer(
      "window_stride",
      None,
      "Each window begins so many word pieces behind the one before it. [half a window]",
    )
    flags.DEFINE_enum(
      "window_pooling", "mean", POOLINGS, "How the logits of a document's windows become its own."
    )
    flags.DEFINE_integer(
      "max_windows",
      8,
      "Read at most so many windows of a document. A batch needs the memory of all its windows.",
    )


def check_flags() -> None:
  """Checks what the flags say, and tells of those without effect.

  Raises:
    UsageError: a flag has a value that it cannot have.
  """
  least = {"window_stride": 1, "max_windows": 1}
  if FLAGS.long_text == "truncate":
    reason = "it is for --long_text=windows"
    command_line.explain_ignored_flags(dict.fromkeys([*least, "window_pooling"], reason))
    return
  for name, number in {**least, "max_seq_length": _MIN_SEQ_LENGTH}.items():
    value = FLAGS[name].value
    if value is not None and value < number:
      raise command_line.UsageError(
        f"--{name}={value}: at least {number} is needed with --long_text=windows."
      )


def options_from_flags() -> WindowOptions | None:
  """What the flags say; None to cut long texts."""
  if FLAGS.long_text == "truncate":
    return None
  stride = FLAGS.window_stride or (FLAGS.max_seq_length - 2) // 2
  return WindowOptions(stride, FLAGS.max_windows, FLAGS.window_pooling)


def facts(options: WindowOptions | None) -> dict:
  """What has to be equal to resume a run.

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
  """Turns documents into windows, one by one, and counts what it leaves out.

  To `classification.convert_single_example`, which makes the first window, it is a tokenizer; one
  that remembers, as the same texts are then needed for the other windows.
  """

  def __init__(self, tokenizer, options: WindowOptions):
    """Takes a `tokenization.FullTokenizer`."""
    self.convert_tokens_to_ids = tokenizer.convert_tokens_to_ids
    self._tokenize = functools.lru_cache(maxsize=2)(lambda text: tuple(tokenizer.tokenize(text)))
    self._options = options
    self._counts = collections.Counter()

  def tokenize(self, text: str) -> list[str]:
    """Word pieces, in a list that belongs to the caller."""
    return list(self._tokenize(text))

  def windows_of(self, example, first) -> dict:
    """What replaces `input_ids` in an example's record.

    Args:
      example: `InputExample` or `PaddingInputExample`.
      first: its `InputFeatures`: the first window.

    Returns:
      `input_ids` int64 `[K, S]`, and `num_windows`, how many of these rows are windows.
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
    """The longer text's pieces; its place in each window; how many pieces a window shows of it."""
    if isinstance(example, PaddingInputExample):
      return [], 0, 0
    pieces_a = self.tokenize(example.text_a)
    pieces_b = self.tokenize(example.text_b) if example.text_b else []
    num_second = sum(first.segment_ids)  # text_b [SEP]
    num_first = sum(first.input_mask) - num_second  # [CLS] text_a [SEP]
    size_a, size_b = num_first - 2, max(num_second - 1, 0)
    if len(pieces_b) > len(pieces_a):
      self._counts["other cut"] += size_a < len(pieces_a)
      return pieces_b, num_first, size_b
    self._counts["other cut"] += size_b < len(pieces_b)
    return pieces_a, 1, size_a

  def _spans(self, num_pieces: int, size: int) -> list[tuple[int, int]]:
    step = max(min(size, self._options.stride), 1)
    num_read = min(num_pieces, size + (self._options.max_windows - 1) * step)
    return windows(num_read, size, step)

  def log_counts(self) -> None:
    """Says how many windows there are, and how many texts are not read to their end."""
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
        "Of %d pairs, both texts are too long for a window; the shorter one is cut to half of it.",
        counts["other cut"],
      )


def record_features(features, options: WindowOptions) -> dict:
  """The features of records with windows, made of those without, for `record_input_fn`."""
  import tensorflow as tf

  ids = features["input_ids"]
  return {
    **features,
    "input_ids": tf.io.FixedLenFeature([options.max_windows, *ids.shape], ids.dtype),
    "num_windows": tf.io.FixedLenFeature([], tf.int64),
  }


def window_transform(trim: bool = True):
  """The `transform` of `record_input_fn` that makes batches of records ready for the model.

  It turns `input_ids` int32 `[B, K, S]` into `[B, S, K]`: then S is where it is in all features,
  and batches are cut to their longest sequence as usual.

  Args:
    trim: whether to leave out the rows in which no document of a batch has a window.
  """
  import tensorflow as tf

  def transform(features, numbers, seed):
    del numbers, seed  # nothing is drawn
    ids = features["input_ids"]
    if trim:
      ids = ids[:, : tf.reduce_max(features["num_windows"])]
    return {**features, "input_ids": tf.transpose(ids, [0, 2, 1])}

  return transform


# ---------------------------------------------------------------------------------------------
# In the graph: documents -> windows, logits of windows -> logits of documents.


def split_batch(input_ids, input_mask, segment_ids, num_windows, keep_all: bool = False):
  """The windows of a batch, as sequences of their own.

  Args:
    input_ids: int `[B, S, K]`.
    input_mask: int `[B, S]`, of each window of a document.
    segment_ids: int `[B, S]`, likewise.
    num_windows: int `[B]`, from 1 to K.
    keep_all: whether to keep the rows that only fill up, as TPUs need, for fixed shapes.

  Returns:
    `(inputs, documents)`: int `[R, S]` of ids, mask and segments; and int64 `[R]`, which document
    each window is of, -1 for one that only fills up. With `keep_all`, R is B * K.
  """
  import tensorflow as tf

  from bert import modeling

  ids = tf.transpose(input_ids, [0, 2, 1])  # [B, K, S]
  is_window = tf.sequence_mask(num_windows, tf.shape(ids)[1])  # [B, K]
  if keep_all:
    num_documents, max_windows, seq_length = modeling.get_shape_list(ids, expected_rank=3)
    documents = tf.range(num_documents, dtype=tf.int64)[:, tf.newaxis]
    documents = tf.reshape(tf.where(is_window, documents, -1), [-1])
    masks = [tf.repeat(x, max_windows, axis=0) for x in (input_mask, segment_ids)]
    return (tf.reshape(ids, [-1, seq_length]), *masks), documents
  places = tf.where(is_window)  # [R, 2]
  documents = places[:, 0]
  masks = [tf.gather(x, documents) for x in (input_mask, segment_ids)]
  return (tf.gather_nd(ids, places), *masks), documents


def pool_logits(logits, documents, num_documents, pooling: str):
  """What the windows of each document say together.

  Args:
    logits: float32 `[R, C]`.
    documents: int64 `[R]`; negative for a window that has no say.
    num_documents: int `[]`, B. Each of them has a window.
    pooling: `mean` or `max`.

  Returns:
    float32 `[B, C]`.

  Example:
    >>> import tensorflow as tf
    >>> logits = tf.constant([[1.0, 0.0], [5.0, 2.0], [3.0, 4.0], [9.0, 9.0]])
    >>> documents = tf.constant([0, 1, 1, -1], tf.int64)
    >>> pool_logits(logits, documents, 2, "mean").numpy().tolist()
    [[1.0, 0.0], [4.0, 3.0]]
    >>> pool_logits(logits, documents, 2, "max").numpy().tolist()
    [[1.0, 0.0], [5.0, 4.0]]
  """
  import tensorflow as tf

  pool = {"mean": tf.math.unsorted_segment_mean, "max": tf.math.unsorted_segment_max}[pooling]
  return pool(logits, documents, num_documents)


def pack_windows(
  pieces_a, pieces_b, cls_id: int, sep_id: int, seq_length: int, options: WindowOptions
):
  """The windows of texts or pairs, as `WindowReader` has them, but in the graph.

  Args:
    pieces_a: int32 `[B, (P)]`.
    pieces_b: int32 `[B, (P)]`; a text without pieces makes no second segment.
    cls_id: number of [CLS].
    sep_id: number of [SEP].
    seq_length: longest sequence.
    options: stride and largest number of windows.

  Returns:
    `(inputs, documents)`: see `graph_text.join`, a row for each window; and int64 `[R]`, which pair
    each is of.
  """
  import tensorflow as tf

  from bert.exporting import graph_text

  lengths_a, lengths_b = pieces_a.row_lengths(), pieces_b.row_lengths()
  has_b = lengths_b > 0
  kept_a, kept_b = graph_text.truncated_lengths(
    lengths_a, lengths_b, seq_length - 2 - tf.cast(has_b, tf.int64)
  )
  b_is_longer = lengths_b > lengths_a
  # At least 1: a text without any piece has a window, too.
  sizes = tf.maximum(tf.where(b_is_longer, kept_b, kept_a), 1)
  steps = tf.minimum(sizes, options.stride)
  num_read = tf.clip_by_value(
    tf.maximum(lengths_a, lengths_b), sizes, sizes + (options.max_windows - 1) * steps
  )
  windows = graph_text.all_windows(num_read, sizes, steps, moves_back=True)

  def parts(pieces, kept, is_longer):
    starts = tf.where(tf.gather(is_longer, windows.rows), windows.starts, 0)
    return windows._replace(starts=starts, lengths=tf.gather(kept, windows.rows)).cut(pieces)

  inputs = graph_text.join(
    parts(pieces_a, kept_a, ~b_is_longer),
    parts(pieces_b, kept_b, b_is_longer),
    tf.gather(has_b, windows.rows),
    cls_id,
    sep_id,
  )
  return inputs, windows.rows
