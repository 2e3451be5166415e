"""Word, segment and position embeddings; `modeling.py` has these functions, as in the original.

Letters in shapes: B = batch size, S = sequence length, V = words, E = width of the embeddings.
"""

import tensorflow as tf

from bert.families import LAYER_NORM_EPSILON
from bert.model import kernels
from bert.model.configuration import BertConfig
from bert.model.layers import create_initializer, layer_norm_and_dropout
from bert.model.token_rows import TokenRows, get_shape_list
from bert.model.variables import get_variable


def embedding_lookup(
  input_ids: tf.Tensor,
  vocab_size: int,
  embedding_size: int = 128,
  initializer_range: float = 0.02,
  word_embedding_name: str = "word_embeddings",
  use_one_hot_embeddings: bool = False,
  *,
  padding_id: int | None = None,
):
  """Looks up embeddings of tokens: float32 `[B, S, E * I]`, and the table, float32 `[V, E]`.

  Args:
    input_ids: int `[B, S]` or `[B, S, I]`, I inputs for each position.
    vocab_size: V, rows of the table.
    embedding_size: E, columns of the table.
    initializer_range: standard deviation of the initial table.
    word_embedding_name: name of the table.
    use_one_hot_embeddings: by a matrix product instead of a gather.
    padding_id: a word whose row gets no gradient from here, as PyTorch's `padding_idx`.
  """
  if input_ids.shape.rank == 2:
    input_ids = tf.expand_dims(input_ids, 2)
  table = get_variable(
    word_embedding_name, [vocab_size, embedding_size], create_initializer(initializer_range)
  )
  flat_ids = tf.reshape(input_ids, [-1])
  if use_one_hot_embeddings:
    output = tf.matmul(tf.one_hot(flat_ids, depth=vocab_size), table)
  else:
    # The variable itself, not a copy of its value, so that the gradient stays sparse.
    output = tf.gather(table, flat_ids)
  if padding_id is not None:
    is_padding = tf.equal(flat_ids, padding_id)[:, tf.newaxis]
    output = tf.where(is_padding, tf.stop_gradient(output), output)
  batch_size, seq_length, num_inputs = get_shape_list(input_ids)
  return tf.reshape(output, [batch_size, seq_length, num_inputs * embedding_size]), table


def embedding_postprocessor(
  input_tensor: tf.Tensor,
  use_token_type: bool = False,
  token_type_ids: tf.Tensor | None = None,
  token_type_vocab_size: int = 16,
  token_type_embedding_name: str = "token_type_embeddings",
  use_position_embeddings: bool = True,
  position_embedding_name: str = "position_embeddings",
  initializer_range: float = 0.02,
  max_position_embeddings: int = 512,
  dropout_prob: float = 0.1,
  *,
  position_ids: tf.Tensor | None = None,
  rows: TokenRows | None = None,
  gather_segments: bool = False,
  padding_position: int | None = None,
  epsilon: float = LAYER_NORM_EPSILON,
) -> tf.Tensor:
  """Adds segment and position embeddings to word embeddings; applies LayerNorm and dropout.

  Args:
    input_tensor: float32 `[B, S, W]`.
    use_token_type: whether to add segment embeddings.
    token_type_ids: int `[B, S]`; an id past the table adds nothing, as in the original.
    token_type_vocab_size: rows of the segment table.
    token_type_embedding_name: its name.
    use_position_embeddings: whether to add position embeddings.
    position_embedding_name: name of their table.
    initializer_range: standard deviation of initial weights.
    max_position_embeddings: rows of the position table; the longest possible S.
    dropout_prob: of the sum.
    position_ids: int `[B, S]`, rows of the position table; the first S for every sequence by
      default.
    rows: the positions to normalise; all by default. Others become 0.
    gather_segments: look segments up by a gather, which has a sparse gradient; then an id past the
      table is an error.
    padding_position: a row of the position table that gets no gradient.
    epsilon: of the LayerNorm.

  Returns:
    float32 `[B, S, W]`.

  Raises:
    ValueError: `token_type_ids` are required and missing, or S is too long.
    tf.errors.InvalidArgumentError: the same for an S known only at run time.
  """
  batch_size, seq_length, width = get_shape_list(input_tensor, expected_rank=3)
  output = input_tensor

  if use_token_type:
    if token_type_ids is None:
      raise ValueError("`token_type_ids` must be given if `use_token_type` is True.")
    token_type_table = get_variable(
      token_type_embedding_name,
      [token_type_vocab_size, width],
      create_initializer(initializer_range),
    )
    if gather_segments:
      output += tf.gather(token_type_table, token_type_ids)  # [B, S, W]
    else:
      # A product with one-hot rows: faster than a gather from so small a table.
      one_hot_ids = tf.one_hot(token_type_ids, depth=token_type_vocab_size)  # [B, S, types]
      output += tf.matmul(one_hot_ids, token_type_table)

  if use_position_embeddings:
    position_table = get_variable(
      position_embedding_name,
      [max_position_embeddings, width],
      create_initializer(initializer_range),
    )
    if position_ids is None:
      check_length(seq_length, max_position_embeddings)
      output += position_table[:seq_length]  # [S, W] for every sequence
    else:
      table = tf.convert_to_tensor(position_table)
      output += kernels.gather_rows(table, position_ids, padding_position)

  rows = rows or TokenRows(batch_size, seq_length)
  return rows.restore(layer_norm_and_dropout(rows.remove(output), dropout_prob, epsilon=epsilon))


def positions_of(input_ids: tf.Tensor, config: BertConfig) -> tf.Tensor:
  """Returns rows of the position table where padding has one of its own, as in RoBERTa.

  Args:
    input_ids: int `[B, S]`.
    config: of the model.

  Returns:
    int32 `[B, S]`: `pad_token_id` for padding, from `pad_token_id` + 1 on for others.

  Raises:
    ValueError, tf.errors.InvalidArgumentError: S is too long.
  """
  check_length(get_shape_list(input_ids)[1], config.longest_sequence)
  is_token = tf.cast(input_ids != config.pad_token_id, tf.int32)
  return tf.cumsum(is_token, axis=1) * is_token + config.pad_token_id


def check_length(seq_length, longest: int) -> None:
  """Refuses more tokens than the model's longest sequence has positions for.

  Raises:
    ValueError, tf.errors.InvalidArgumentError: it has not.
  """
  message = (
    f"The sequence is longer than the {longest} positions of the model (max_position_embeddings)."
  )
  if not isinstance(seq_length, int):
    tf.debugging.assert_less_equal(seq_length, longest, message=message)
  elif seq_length > longest:
    raise ValueError(f"{message} It has {seq_length}.")
