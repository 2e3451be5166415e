"""Windows of long documents as graph functions: documents to windows, and pooled logits.

  inputs, documents = split_batch(input_ids, input_mask, segment_ids, num_windows)
  logits = pool_logits(logits_of(inputs), documents, batch_size, "mean")    # [B, C]

The first two serve training, whose records hold windows made in Python (`tasks/windows.py`, which
has the rules); `pack_windows` makes the same windows of texts, for exported models.

Letters in shapes: B = documents, S = sequence length, K = windows of a document, padded with zeros,
R = real windows of all documents, C = number of labels, (P) = pieces of each text, ragged.
"""

import tensorflow as tf

from bert.exporting import graph_text
from bert.modeling import get_shape_list
from bert.tasks.windows import WindowOptions


def split_batch(input_ids, input_mask, segment_ids, num_windows, keep_all: bool = False):
  """Converts the windows of a batch to sequences.

  Args:
    input_ids: int `[B, S, K]`.
    input_mask: int `[B, S]`, of each window of a document.
    segment_ids: int `[B, S]`, likewise.
    num_windows: int `[B]`, from 1 to K.
    keep_all: whether to keep rows of padding, because TPUs need fixed shapes.

  Returns:
    `(inputs, documents)`: int `[R, S]` of ids, mask and segments; and int64 `[R]`, the document
    of each window, -1 for padding. With `keep_all`, R is B * K.
  """
  ids = tf.transpose(input_ids, [0, 2, 1])  # [B, K, S]
  is_window = tf.sequence_mask(num_windows, tf.shape(ids)[1])  # [B, K]
  if keep_all:
    num_documents, max_windows, seq_length = get_shape_list(ids, expected_rank=3)
    documents = tf.range(num_documents, dtype=tf.int64)[:, tf.newaxis]
    documents = tf.reshape(tf.where(is_window, documents, -1), [-1])
    masks = [tf.repeat(x, max_windows, axis=0) for x in (input_mask, segment_ids)]
    return (tf.reshape(ids, [-1, seq_length]), *masks), documents
  places = tf.where(is_window)  # [R, 2]
  documents = places[:, 0]
  masks = [tf.gather(x, documents) for x in (input_mask, segment_ids)]
  return (tf.gather_nd(ids, places), *masks), documents


def pool_logits(logits, documents, num_documents, pooling: str):
  """Pools the logits of the windows of each document.

  Args:
    logits: float32 `[R, C]`.
    documents: int64 `[R]`; negative for padding.
    num_documents: int `[]`, B. Each has at least one window.
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
  pool = {"mean": tf.math.unsorted_segment_mean, "max": tf.math.unsorted_segment_max}[pooling]
  return pool(logits, documents, num_documents)


def pack_windows(
  pieces_a, pieces_b, cls_id: int, sep_id: int, seq_length: int, options: WindowOptions
):
  """Makes the windows of texts or pairs, the same as `tasks.windows.WindowReader`.

  Args:
    pieces_a: int32 `[B, (P)]`.
    pieces_b: int32 `[B, (P)]`; a text without pieces makes no second segment.
    cls_id: number of [CLS].
    sep_id: number of [SEP].
    seq_length: longest sequence.
    options: stride and largest number of windows.

  Returns:
    `(inputs, documents)`: see `graph_text.join`, a row for each window; and int64 `[R]`, the pair
    of each.
  """
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
