"""The original's `modeling` as a TensorFlow 1 graph: the same names, variables and numbers.

  config = modeling.BertConfig.from_json_file("bert_config.json")
  model = modeling.BertModel(config, is_training=False, input_ids=input_ids)
  pooled = model.get_pooled_output()

It is what `from bert import modeling` gives a script that runs by `bert-tf1` and has no `bert` of
its own. Variables have the names of the released checkpoints, under the scope `bert`.

Axes in shapes: B batch, S sequence, F and T the sequences attended from and to, N heads, H size of
one head, D hidden size (N * H), V vocabulary. `initializer_range` is the standard deviation of
initial weights, `..._dropout_prob` the probability of setting an entry to 0.
"""

import copy
import dataclasses
import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bert_tf1.contrib import layers
from bert_tf1.real import tf


@dataclasses.dataclass(eq=False)
class BertConfig:
  """Sizes, activation and dropout of a `BertModel`: the content of `bert_config.json`."""

  vocab_size: int | None
  hidden_size: int = 768
  num_hidden_layers: int = 12
  num_attention_heads: int = 12
  intermediate_size: int = 3072
  hidden_act: str | Callable = "gelu"
  hidden_dropout_prob: float = 0.1
  attention_probs_dropout_prob: float = 0.1
  max_position_embeddings: int = 512
  type_vocab_size: int = 16
  initializer_range: float = 0.02  # standard deviation of initial weights

  @classmethod
  def from_dict(cls, json_object: Mapping[str, Any]) -> "BertConfig":
    """A configuration with the entries of `json_object`; further ones become attributes too."""
    config = BertConfig(vocab_size=None)
    vars(config).update(json_object)
    return config

  @classmethod
  def from_json_file(cls, json_file: str) -> "BertConfig":
    """Reads `bert_config.json`."""
    with tf.gfile.GFile(json_file, "r") as reader:
      return cls.from_dict(json.loads(reader.read()))

  def to_dict(self) -> dict[str, Any]:
    """Returns all attributes, copied."""
    return copy.deepcopy(vars(self))

  def to_json_string(self) -> str:
    """Returns all attributes as JSON, sorted by name, ending in a line feed."""
    return json.dumps(self.to_dict(), indent=2, sort_keys=True) + "\n"


class BertModel:
  """The encoder and its pooler, built into the current graph.

  Attributes:
    embedding_table: float32 `[V, D]`, the variable `word_embeddings`.
    embedding_output: float32 `[B, S, D]`, what the first layer reads.
    all_encoder_layers: float32 `[B, S, D]` for each layer.
    sequence_output: float32 `[B, S, D]`, the last layer's.
    pooled_output: float32 `[B, D]`, made of the first token's.
  """

  def __init__(
    self,
    config: BertConfig,
    is_training: bool,
    input_ids: tf.Tensor,
    input_mask: tf.Tensor | None = None,
    token_type_ids: tf.Tensor | None = None,
    use_one_hot_embeddings: bool = False,
    scope: str | None = None,
  ):
    """Builds the graph.

    Args:
      config: it is not changed.
      is_training: apply the configuration's dropout; without it there is none.
      input_ids: int32 `[B, S]`.
      input_mask: int32 `[B, S]`, 1 for a token, 0 for padding; by default all are tokens.
      token_type_ids: int32 `[B, S]`, 1 for the second segment; by default all 0.
      use_one_hot_embeddings: look words up by a matrix product, for TPUs.
      scope: variable scope, by default `bert`.

    Raises:
      ValueError: a tensor has another rank, or heads do not divide the hidden size.
    """
    config = copy.deepcopy(config)
    if not is_training:
      config.hidden_dropout_prob = 0.0
      config.attention_probs_dropout_prob = 0.0
    batch_size, seq_length = get_shape_list(input_ids, expected_rank=2)
    if input_mask is None:
      input_mask = tf.ones([batch_size, seq_length], tf.int32)  # [B, S]
    if token_type_ids is None:
      token_type_ids = tf.zeros([batch_size, seq_length], tf.int32)  # [B, S]

    with tf.variable_scope(scope, default_name="bert"):
      with tf.variable_scope("embeddings"):
        words, self.embedding_table = embedding_lookup(  # [B, S, D], [V, D]
          input_ids,
          config.vocab_size,
          embedding_size=config.hidden_size,
          initializer_range=config.initializer_range,
          use_one_hot_embeddings=use_one_hot_embeddings,
        )
        self.embedding_output = embedding_postprocessor(  # [B, S, D]
          words,
          use_token_type=True,
          token_type_ids=token_type_ids,
          token_type_vocab_size=config.type_vocab_size,
          initializer_range=config.initializer_range,
          max_position_embeddings=config.max_position_embeddings,
          dropout_prob=config.hidden_dropout_prob,
        )
      with tf.variable_scope("encoder"):
        self.all_encoder_layers = transformer_model(  # [B, S, D] each
          self.embedding_output,
          create_attention_mask_from_input_mask(input_ids, input_mask),  # [B, S, S]
          hidden_size=config.hidden_size,
          num_hidden_layers=config.num_hidden_layers,
          num_attention_heads=config.num_attention_heads,
          intermediate_size=config.intermediate_size,
          intermediate_act_fn=get_activation(config.hidden_act),
          hidden_dropout_prob=config.hidden_dropout_prob,
          attention_probs_dropout_prob=config.attention_probs_dropout_prob,
          initializer_range=config.initializer_range,
          do_return_all_layers=True,
        )
      self.sequence_output = self.all_encoder_layers[-1]  # [B, S, D]
      with tf.variable_scope("pooler"):
        first_token = tf.squeeze(self.sequence_output[:, 0:1, :], axis=1)  # [B, D]
        self.pooled_output = _dense(  # [B, D]
          first_token, config.hidden_size, config.initializer_range, tf.tanh
        )

  def get_pooled_output(self) -> tf.Tensor:
    """Returns float32 `[B, D]`: the first token's output, through one more layer with tanh."""
    return self.pooled_output

  def get_sequence_output(self) -> tf.Tensor:
    """Returns float32 `[B, S, D]`: the last layer's output."""
    return self.sequence_output

  def get_all_encoder_layers(self) -> list[tf.Tensor]:
    """Returns float32 `[B, S, D]` for each layer, first to last."""
    return self.all_encoder_layers

  def get_embedding_output(self) -> tf.Tensor:
    """Returns float32 `[B, S, D]`: words, segments and positions, added and normalized."""
    return self.embedding_output

  def get_embedding_table(self) -> tf.Variable:
    """Returns float32 `[V, D]`: the variable `word_embeddings`."""
    return self.embedding_table


# ---------------------------------------------------------------------------------------------
# Activations, dropout, normalization, initial values.


def gelu(x: tf.Tensor) -> tf.Tensor:
  """The Gaussian Error Linear Unit (https://arxiv.org/abs/1606.08415), approximated by tanh."""
  inner = math.sqrt(2 / math.pi) * (x + 0.044715 * tf.pow(x, 3))
  return x * (0.5 * (1.0 + tf.tanh(inner)))


def get_activation(activation_string: str | Callable | None) -> Callable | None:
  """Finds a function by its name: relu, gelu or tanh; None for linear and for no name.

  Raises:
    ValueError: there is no activation of that name.
  """
  if not isinstance(activation_string, str):
    return activation_string
  name = activation_string.lower()
  known = {"": None, "linear": None, "relu": tf.nn.relu, "gelu": gelu, "tanh": tf.tanh}
  if name not in known:
    raise ValueError(f"Unsupported activation: {name}")
  return known[name]


def dropout(input_tensor: tf.Tensor, dropout_prob: float | None) -> tf.Tensor:
  """Sets each entry to 0 with probability `dropout_prob`, and scales the others to make up."""
  if not dropout_prob:
    return input_tensor
  return tf.nn.dropout(input_tensor, keep_prob=1.0 - dropout_prob)


def layer_norm(input_tensor: tf.Tensor, name: str | None = None) -> tf.Tensor:
  """Normalizes the last axis; `beta` and `gamma` lie under `name`, by default `LayerNorm`."""
  return layers.layer_norm(input_tensor, begin_norm_axis=-1, begin_params_axis=-1, scope=name)


def layer_norm_and_dropout(
  input_tensor: tf.Tensor, dropout_prob: float | None, name: str | None = None
) -> tf.Tensor:
  """`layer_norm`, then `dropout`."""
  return dropout(layer_norm(input_tensor, name), dropout_prob)


def create_initializer(initializer_range: float = 0.02) -> Callable:
  """Normal values of this standard deviation; those beyond two of them are drawn again."""
  return tf.truncated_normal_initializer(stddev=initializer_range)


def _dense(x, units: int, initializer_range: float, activation=None, name: str | None = None):
  """[..., C] -> [..., units]."""
  initializer = create_initializer(initializer_range)
  return tf.layers.dense(x, units, activation=activation, kernel_initializer=initializer, name=name)


def get_assignment_map_from_checkpoint(
  tvars: Sequence[tf.Variable], init_checkpoint: str
) -> tuple[dict[str, str], dict[str, int]]:
  """Finds which of `tvars` a checkpoint has, by name; shapes are checked when values are assigned.

  Returns:
    What `tf.train.init_from_checkpoint` expects: name in the checkpoint -> name of the variable.
    And the same names, with and without `:0`, -> 1: to list which variables were initialized.
  """
  names = {variable.name.partition(":")[0] for variable in tvars}
  found = [name for name, _ in tf.train.list_variables(init_checkpoint) if name in names]
  return {name: name for name in found}, {n: 1 for name in found for n in (name, f"{name}:0")}


# ---------------------------------------------------------------------------------------------
# Embeddings.


def embedding_lookup(
  input_ids: tf.Tensor,
  vocab_size: int,
  embedding_size: int = 128,
  initializer_range: float = 0.02,
  word_embedding_name: str = "word_embeddings",
  use_one_hot_embeddings: bool = False,
) -> tuple[tf.Tensor, tf.Variable]:
  """Looks up ids: float32 `[B, S, K * D]`, and the table `[V, D]`.

  Args:
    input_ids: int32 `[B, S]`, or `[B, S, K]` for K ids whose vectors are joined.
    vocab_size: V.
    embedding_size: D.
    initializer_range: see the module.
    word_embedding_name: the variable's name.
    use_one_hot_embeddings: by a matrix product instead of `tf.gather`.
  """
  if input_ids.shape.ndims == 2:
    input_ids = tf.expand_dims(input_ids, -1)  # [B, S, 1]
  table = tf.get_variable(  # [V, D]
    word_embedding_name,
    [vocab_size, embedding_size],
    initializer=create_initializer(initializer_range),
  )
  flat_ids = tf.reshape(input_ids, [-1])  # [B * S * K]
  if use_one_hot_embeddings:
    output = tf.matmul(tf.one_hot(flat_ids, vocab_size), table)  # [B * S * K, D]
  else:
    output = tf.gather(table, flat_ids)  # [B * S * K, D]
  *outer, per_position = get_shape_list(input_ids)
  return tf.reshape(output, [*outer, per_position * embedding_size]), table  # [B, S, K * D]


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
) -> tf.Tensor:
  """Adds embeddings of segments and positions to those of words; then `layer_norm_and_dropout`.

  Args:
    input_tensor: float32 `[B, S, D]`, also what is returned.
    use_token_type: add embeddings of `token_type_ids`, int32 `[B, S]`: rows of the variable
      `token_type_embedding_name`, `[token_type_vocab_size, D]`.
    use_position_embeddings: add the first S rows of the variable `position_embedding_name`,
      `[max_position_embeddings, D]`.

  Raises:
    ValueError: another rank, or segments are to be added and there are none.
  """
  shape = get_shape_list(input_tensor, expected_rank=3)
  _, seq_length, width = shape
  output = input_tensor
  initializer = create_initializer(initializer_range)

  if use_token_type:
    if token_type_ids is None:
      raise ValueError("`token_type_ids` must be specified if`use_token_type` is True.")
    table = tf.get_variable(
      token_type_embedding_name, [token_type_vocab_size, width], initializer=initializer
    )
    # By a product, not `tf.gather`: the clipped norm counts a gathered row once for each use of it.
    one_hot = tf.one_hot(tf.reshape(token_type_ids, [-1]), token_type_vocab_size)  # [B * S, types]
    output += tf.reshape(tf.matmul(one_hot, table), shape)  # [B, S, D]

  if use_position_embeddings:
    if isinstance(seq_length, int) and seq_length > max_position_embeddings:
      raise ValueError(
        f"sequences of {seq_length} are longer than max_position_embeddings "
        f"({max_position_embeddings}) of the model's configuration: lower the maximum length."
      )
    fits = tf.assert_less_equal(seq_length, max_position_embeddings)
    with tf.control_dependencies([fits]):
      table = tf.get_variable(
        position_embedding_name, [max_position_embeddings, width], initializer=initializer
      )
      positions = tf.slice(table, [0, 0], [seq_length, -1])  # [S, D]
      output += tf.reshape(positions, [1, seq_length, width])  # [B, S, D]

  return layer_norm_and_dropout(output, dropout_prob)


# ---------------------------------------------------------------------------------------------
# The encoder.


def create_attention_mask_from_input_mask(from_tensor: tf.Tensor, to_mask: tf.Tensor) -> tf.Tensor:
  """Makes float32 `[B, F, T]`: all of `[B, F, ...]`, padding too, see tokens of int32 `[B, T]`."""
  batch_size, from_length = get_shape_list(from_tensor, expected_rank=[2, 3])[:2]
  to_length = get_shape_list(to_mask, expected_rank=2)[1]
  to_mask = tf.cast(tf.reshape(to_mask, [batch_size, 1, to_length]), tf.float32)  # [B, 1, T]
  return tf.ones([batch_size, from_length, 1], tf.float32) * to_mask  # [B, F, T]


def attention_layer(
  from_tensor: tf.Tensor,
  to_tensor: tf.Tensor,
  attention_mask: tf.Tensor | None = None,
  num_attention_heads: int = 1,
  size_per_head: int = 512,
  query_act: Callable | None = None,
  key_act: Callable | None = None,
  value_act: Callable | None = None,
  attention_probs_dropout_prob: float = 0.0,
  initializer_range: float = 0.02,
  do_return_2d_tensor: bool = False,
  batch_size: int | tf.Tensor | None = None,
  from_seq_length: int | tf.Tensor | None = None,
  to_seq_length: int | tf.Tensor | None = None,
) -> tf.Tensor:
  """Attention of several heads, without the layer that joins them.

  Args:
    from_tensor: float32 `[B, F, C]`, or `[B * F, C]` with the three sizes below.
    to_tensor: float32 `[B, T, C]`, or `[B * T, C]`.
    attention_mask: `[B, F, T]`, 1 where attention is allowed, else 0.
    num_attention_heads, size_per_head: N, H.
    query_act, key_act, value_act: activations of queries, keys and values.
    do_return_2d_tensor: see Returns.
    batch_size, from_seq_length, to_seq_length: B, F, T, for inputs of rank 2.

  Returns:
    float32 `[B, F, N * H]`, or `[B * F, N * H]` with `do_return_2d_tensor`.

  Raises:
    ValueError: ranks differ, or sizes are missing.
  """
  from_shape = get_shape_list(from_tensor, expected_rank=[2, 3])
  to_shape = get_shape_list(to_tensor, expected_rank=[2, 3])
  if len(from_shape) != len(to_shape):
    raise ValueError("The rank of `from_tensor` must match the rank of `to_tensor`.")
  if len(from_shape) == 3:
    batch_size, from_seq_length = from_shape[:2]
    to_seq_length = to_shape[1]
  elif batch_size is None or from_seq_length is None or to_seq_length is None:
    raise ValueError(
      "When passing in rank 2 tensors to attention_layer, the values for `batch_size`, "
      "`from_seq_length`, and `to_seq_length` must all be specified."
    )
  width = num_attention_heads * size_per_head

  def split_heads(x, length):
    x = tf.reshape(x, [batch_size, length, num_attention_heads, size_per_head])
    return tf.transpose(x, [0, 2, 1, 3])  # [B, N, length, H]

  # Ops come in the original's order: a random op's seed is the number of ops before it.
  from_2d = reshape_to_matrix(from_tensor)  # [B * F, C]
  to_2d = reshape_to_matrix(to_tensor)  # [B * T, C]
  query = _dense(from_2d, width, initializer_range, query_act, "query")  # [B * F, N * H]
  key = _dense(to_2d, width, initializer_range, key_act, "key")  # [B * T, N * H]
  value = _dense(to_2d, width, initializer_range, value_act, "value")  # [B * T, N * H]
  query = split_heads(query, from_seq_length)  # [B, N, F, H]
  key = split_heads(key, to_seq_length)  # [B, N, T, H]

  scores = tf.matmul(query, key, transpose_b=True)  # [B, N, F, T]
  scores = tf.multiply(scores, 1.0 / math.sqrt(float(size_per_head)))  # [B, N, F, T]
  if attention_mask is not None:
    mask = tf.cast(tf.expand_dims(attention_mask, 1), tf.float32)  # [B, 1, F, T]
    scores += (1.0 - mask) * -10000.0  # [B, N, F, T]
  probs = dropout(tf.nn.softmax(scores), attention_probs_dropout_prob)  # [B, N, F, T]

  context = tf.matmul(probs, split_heads(value, to_seq_length))  # [B, N, F, H]
  context = tf.transpose(context, [0, 2, 1, 3])  # [B, F, N, H]
  if do_return_2d_tensor:
    return tf.reshape(context, [batch_size * from_seq_length, width])  # [B * F, N * H]
  return tf.reshape(context, [batch_size, from_seq_length, width])  # [B, F, N * H]


def transformer_model(
  input_tensor: tf.Tensor,
  attention_mask: tf.Tensor | None = None,
  hidden_size: int = 768,
  num_hidden_layers: int = 12,
  num_attention_heads: int = 12,
  intermediate_size: int = 3072,
  intermediate_act_fn: Callable | None = gelu,
  hidden_dropout_prob: float = 0.1,
  attention_probs_dropout_prob: float = 0.1,
  initializer_range: float = 0.02,
  do_return_all_layers: bool = False,
) -> tf.Tensor | list[tf.Tensor]:
  """Returns the layers, float32 `[B, S, D]`, under the scopes `layer_0`, `layer_1`, ...

  Args:
    input_tensor: float32 `[B, S, D]`.
    attention_mask: `[B, S, S]`, 1 where attention is allowed, else 0.
    hidden_size, num_attention_heads: D and N, which divides it.
    intermediate_size, intermediate_act_fn: width and activation of the feed-forward layer.
    do_return_all_layers: a list of all layers' outputs instead of the last one's.

  Raises:
    ValueError: sizes do not fit.
  """
  if hidden_size % num_attention_heads:
    raise ValueError(
      f"The hidden size ({hidden_size}) is not a multiple of the number of attention heads "
      f"({num_attention_heads})"
    )
  shape = get_shape_list(input_tensor, expected_rank=3)
  batch_size, seq_length, input_width = shape
  if input_width != hidden_size:
    raise ValueError(
      f"The width of the input tensor ({input_width}) != hidden size ({hidden_size})"
    )

  def add_and_normalize(x, residual):
    x = _dense(x, hidden_size, initializer_range)  # [B * S, D]
    return layer_norm(dropout(x, hidden_dropout_prob) + residual)  # [B * S, D]

  x = reshape_to_matrix(input_tensor)  # [B * S, D]
  outputs = []
  for layer in range(num_hidden_layers):
    with tf.variable_scope(f"layer_{layer}"):
      with tf.variable_scope("attention"):
        with tf.variable_scope("self"):
          context = attention_layer(  # [B * S, D]
            x,
            x,
            attention_mask,
            num_attention_heads=num_attention_heads,
            size_per_head=hidden_size // num_attention_heads,
            attention_probs_dropout_prob=attention_probs_dropout_prob,
            initializer_range=initializer_range,
            do_return_2d_tensor=True,
            batch_size=batch_size,
            from_seq_length=seq_length,
            to_seq_length=seq_length,
          )
        with tf.variable_scope("output"):
          attended = add_and_normalize(context, x)  # [B * S, D]
      with tf.variable_scope("intermediate"):
        intermediate = _dense(  # [B * S, intermediate_size]
          attended, intermediate_size, initializer_range, intermediate_act_fn
        )
      with tf.variable_scope("output"):
        x = add_and_normalize(intermediate, attended)  # [B * S, D]
    outputs.append(x)

  if do_return_all_layers:
    return [reshape_from_matrix(output, shape) for output in outputs]  # [B, S, D] each
  return reshape_from_matrix(x, shape)  # [B, S, D]


# ---------------------------------------------------------------------------------------------
# Shapes.


def get_shape_list(
  tensor: tf.Tensor, expected_rank: int | Sequence[int] | None = None, name: str | None = None
) -> list[int | tf.Tensor]:
  """Returns the shape: a number where it is known now, else a scalar tensor.

  Raises:
    ValueError: the rank is not (one of) `expected_rank`; `name` is the tensor's in the message.
  """
  if expected_rank is not None:
    assert_rank(tensor, expected_rank, name)
  shape = tensor.shape.as_list()
  if None in shape:
    dynamic = tf.shape(tensor)  # [rank]
    shape = [dynamic[axis] if size is None else size for axis, size in enumerate(shape)]
  return shape


def reshape_to_matrix(input_tensor: tf.Tensor) -> tf.Tensor:
  """Reshapes [..., C] -> [product of the others, C]; a ValueError if the rank is below 2."""
  rank = input_tensor.shape.ndims
  if rank < 2:
    raise ValueError(f"Input tensor must have at least rank 2. Shape = {input_tensor.shape}")
  if rank == 2:
    return input_tensor
  return tf.reshape(input_tensor, [-1, input_tensor.shape[-1]])


def reshape_from_matrix(
  output_tensor: tf.Tensor, orig_shape_list: Sequence[int | tf.Tensor]
) -> tf.Tensor:
  """[B * S, C] -> [B, S, C], where `orig_shape_list` begins with B, S and may end in any size."""
  if len(orig_shape_list) == 2:
    return output_tensor
  return tf.reshape(output_tensor, [*orig_shape_list[:-1], get_shape_list(output_tensor)[-1]])


def assert_rank(
  tensor: tf.Tensor, expected_rank: int | Sequence[int], name: str | None = None
) -> None:
  """Checks a tensor's rank; `name` is the tensor's in the message.

  Raises:
    ValueError: the rank is not (one of) `expected_rank`.
  """
  allowed = [expected_rank] if isinstance(expected_rank, int) else expected_rank
  rank = tensor.shape.ndims
  if rank not in allowed:
    raise ValueError(
      f"For the tensor `{name or tensor.name}` in scope `{tf.get_variable_scope().name}`, the "
      f"actual rank `{rank}` (shape = {tensor.shape}) is not equal to the expected rank "
      f"`{expected_rank}`"
    )
