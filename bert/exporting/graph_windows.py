"""Windows of long documents as a graph function, for exported models that read texts.

The same windows as `tasks/windows.py`, which has the rules, makes in Python for training;
`model/long_documents.py` pools their logits.

Letters in shapes: B = documents, R = windows of all documents, (P) = tokens of each text, ragged.
"""

import tensorflow as tf

from bert.exporting import graph_text
from bert.tasks.windows import WindowOptions


def pack_windows(
  pieces_a, pieces_b, frame: graph_text.Frame, seq_length: int, options: WindowOptions
):
  """Makes the windows of texts or pairs, the same as `tasks.windows.WindowReader`.

  The other arguments are those of `graph_text.pack`.

  Args:
    options: stride and largest number of windows.

  Returns:
    `(inputs, documents)`: see `graph_text.join`, a row for each window; and int64 `[R]`, the pair
    of each.
  """
  lengths_a, lengths_b = pieces_a.row_lengths(), pieces_b.row_lengths()
  has_b = lengths_b > 0
  kept_a, kept_b = graph_text.truncated_lengths(
    lengths_a, lengths_b, seq_length - frame.num_special(has_b), frame.layout
  )
  b_is_longer = lengths_b > lengths_a
  # At least 1: a text without any token has a window, too.
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
    frame,
  )
  return inputs, windows.rows
