"""Windows of long documents inside a model: documents to sequences, and pooled logits.

  inputs, documents = split_batch(input_ids, input_mask, segment_ids, num_windows)
  logits = pool_logits(logits_of(inputs), documents, batch_size, "mean")    # [B, C]

Records hold windows that `tasks/windows.py`, which has the rules, made in Python.

Letters in shapes: B = documents, S = sequence length, K = windows of a document, padded with zeros,
R = real windows of all documents, C = number of labels.
"""

import tensorflow as tf

from bert.model.token_rows import get_shape_list


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
  """Pools the logits of the windows of each document: float32 `[B, C]`.

  Args:
    logits: float32 `[R, C]`.
    documents: int64 `[R]`; negative for padding.
    num_documents: int `[]`, B. Each has at least one window.
    pooling: `mean` or `max`.

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
