"""Task heads as graph functions, on top of `BertModel`, with the original's variables.

Letters in shapes: B = batch size, S = sequence length, W = hidden size, P = masked positions for
each sequence, V = vocabulary size, C = number of labels.
"""

from typing import NamedTuple

import tensorflow as tf

from bert import families
from bert.model import kernels
from bert.model.configuration import BertConfig
from bert.model.layers import (
  create_initializer,
  dense,
  dropout,
  get_activation,
  layer_norm,
  product,
)
from bert.model.token_rows import get_shape_list
from bert.model.variables import get_variable, variable_scope, zeros_initializer

# ---------------------------------------------------------------------------------------------
# Pre-training: masked tokens, next sentence.


def gather_indexes(sequence_tensor: tf.Tensor, positions: tf.Tensor) -> tf.Tensor:
  """Gathers the vectors at some positions of each sequence.

  Args:
    sequence_tensor: float `[B, S, W]`.
    positions: int `[B, P]`.

  Returns:
    float `[B * P, W]`.
  """
  vectors = tf.gather(sequence_tensor, positions, batch_dims=1)  # [B, P, W]
  return tf.reshape(vectors, [-1, sequence_tensor.shape[-1]])


def get_masked_lm_output(
  bert_config: BertConfig,
  input_tensor: tf.Tensor,
  output_weights: tf.Tensor,
  positions: tf.Tensor,
  label_ids: tf.Tensor,
  label_weights: tf.Tensor,
  dtype: tf.DType = tf.float32,
  *,
  compiled: bool = False,
  parts: int = 1,
):
  """Loss and log-probabilities of the masked tokens.

  Args:
    bert_config: sizes of the model.
    input_tensor: float32 `[B, S, W]`, the last layer.
    output_weights: float32 `[V, E]`: the word embeddings serve as output weights too.
    positions: int `[B, P]`, where words are masked.
    label_ids: int `[B, P]`, the original words.
    label_weights: float32 `[B, P]`, 1 for a masked word, 0 for padding.
    dtype: of the matrix products.
    compiled: whether to compile the loss, which is faster in training.
    parts: of the batch, over which gradients are accumulated; see `loss_divisor`.

  Returns:
    `(loss, per_example_loss, log_probs)`: float32 `[]`, `[B * P]`, `[B * P, V]`. The loss is the
    mean over masked tokens.
  """
  input_tensor = gather_indexes(input_tensor, positions)  # [B*P, W]
  scores, bias = _masked_lm_scores(bert_config, input_tensor, output_weights, dtype)
  label_ids = tf.reshape(label_ids, [-1])
  label_weights = tf.reshape(label_weights, [-1])
  with kernels.compile_blocks(compiled):
    per_example_loss = kernels.cross_entropy(scores, bias, label_ids)
  weight = loss_divisor(label_weights, tf.shape(positions)[0], parts)
  # The epsilon keeps a batch without any masked word from dividing by zero.
  weight += bert_config.family.epsilon_of_words
  loss = tf.reduce_sum(label_weights * per_example_loss) / weight
  return loss, per_example_loss, tf.nn.log_softmax(tf.cast(scores, tf.float32) + bias)


def masked_lm_logits(
  bert_config: BertConfig,
  input_tensor: tf.Tensor,
  output_weights: tf.Tensor,
  dtype: tf.DType = tf.float32,
) -> tf.Tensor:
  """Scores of every word for some vectors: float32 `[M, W]` to `[M, V]`."""
  scores, bias = _masked_lm_scores(bert_config, input_tensor, output_weights, dtype)
  return tf.cast(scores, tf.float32) + bias


def _masked_lm_scores(bert_config, input_tensor, output_weights, dtype):
  """Scores words, `[M, V]` of type `dtype`, without their bias; returns it, too: float32 `[V]`."""
  family = bert_config.family
  # One more non-linear layer, used in pre-training only.
  with variable_scope(family.masked_lm_transform):
    input_tensor = dense(
      input_tensor,
      bert_config.embedding_width,
      "dense",
      bert_config.initializer_range,
      get_activation(bert_config.hidden_act),
      dtype,
    )
    input_tensor = layer_norm(input_tensor, epsilon=bert_config.norm_epsilon)
  with variable_scope(family.masked_lm):
    output_bias = get_variable("output_bias", [bert_config.vocab_size], zeros_initializer)
  scores = product(input_tensor, output_weights, dtype, transpose_b=True)
  return scores, tf.convert_to_tensor(output_bias)


def get_next_sentence_output(bert_config: BertConfig, input_tensor: tf.Tensor, labels: tf.Tensor):
  """Loss and log-probabilities of "the second part follows the first".

  Args:
    bert_config: sizes of the model.
    input_tensor: float32 `[B, W]`, the pooled output.
    labels: int `[B]` or `[B, 1]`; 0 is the next sentence, 1 a random one.

  Returns:
    `(loss, per_example_loss, log_probs)`: float32 `[]`, `[B]`, `[B, 2]`.
  """
  with variable_scope("cls"), variable_scope("seq_relationship"):
    logits = _linear(input_tensor, 2, bert_config.initializer_range)
  labels = tf.reshape(labels, [-1])
  per_example_loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
  return tf.reduce_mean(per_example_loss), per_example_loss, tf.nn.log_softmax(logits)


# ---------------------------------------------------------------------------------------------
# One decision for a whole sequence.

PROBLEM_TYPES = ("classification", "regression", "multi_label")


# What tasks are called in the names of variables of ELECTRA, where GLUE has other names. A model of
# MNLI answers all three of its sets.
_TASKS_IN_SCOPES = {
  **dict.fromkeys(("sst-2", "sst2"), "sst"),
  **dict.fromkeys(("sts-b", "stsb"), "sts"),
  **dict.fromkeys(("mnli-mm", "ax"), "mnli"),
}


def task_scope(
  bert_config: BertConfig, task_name: str | None, *, is_tokens: bool = False
) -> str | None:
  """Names the scope of a head's variables; None for families whose heads have none.

  Args:
    bert_config: of the model.
    task_name: free.
    is_tokens: whether the head scores tokens: it has the same variables in transformers.

  Example:
    >>> electra = BertConfig.from_dict({"model_type": "electra", "vocab_size": 9})
    >>> task_scope(electra, "SST-2"), task_scope(BertConfig(9), "SST-2")
    ('task_specific/sst', None)
  """
  if not bert_config.family.has_task_scopes or (bert_config.transformers_heads and not is_tokens):
    return None
  name = (task_name or "task").lower().replace("_", "-")
  return f"task_specific/{_TASKS_IN_SCOPES.get(name, name)}"


class Hidden(NamedTuple):
  """The layer between a sequence's vector and its scores, with the numbers of a model."""

  layer: families.HiddenLayer  # of the family
  initializer_range: float  # standard deviation of the initial kernel
  dropout_prob: float | None  # of its own; None for that of the head


def hidden_of(bert_config: BertConfig, scored: str) -> Hidden | None:
  """Finds the layer before the scores of `texts` or of `choices`; None without one.

  Example:
    >>> config = BertConfig.from_dict({"model_type": "distilbert", "vocab_size": 9})
    >>> hidden_of(config, "texts").layer.scope, hidden_of(BertConfig(9), "texts")
    ('pre_classifier', None)
  """
  activation = getattr(bert_config, "classifier_activation", None)
  if activation and scored == "texts":
    return Hidden(families.HiddenLayer("", activation, drops_input=False), 0.0, 0.0)
  layer = bert_config.family.hidden_layers.get(scored)
  if layer is None or not getattr(bert_config, "transformers_heads", True):
    return None
  rate = getattr(bert_config, layer.dropout_key) if layer.dropout_key else None
  return Hidden(layer, bert_config.initializer_range, rate)


def _through_hidden(vectors, hidden: Hidden | None, is_training: bool, dropout_prob: float):
  """Computes what the scores are made of, float32 `[B, W]`, dropped out in training."""
  if hidden is not None:
    layer, width = hidden.layer, vectors.shape[-1]
    if is_training and layer.drops_input:
      vectors = dropout(vectors, dropout_prob)
    activation = get_activation(layer.activation)
    if layer.scope:
      vectors = dense(vectors, width, layer.scope, hidden.initializer_range, activation)
    else:
      vectors = activation(vectors)
    dropout_prob = dropout_prob if hidden.dropout_prob is None else hidden.dropout_prob
  return dropout(vectors, dropout_prob) if is_training else vectors


def get_classifier_logits(
  pooled_output: tf.Tensor,
  num_labels: int,
  is_training: bool,
  dropout_prob: float = 0.1,
  *,
  scope: str | None = None,
  hidden: Hidden | None = None,
) -> tf.Tensor:
  """Scores of the labels, variables `output_weights` and `output_bias` without a scope.

  Args:
    pooled_output: float32 `[B, W]`.
    num_labels: C; 1 for regression.
    is_training: whether to drop out.
    dropout_prob: of the pooled output, in training only.
    scope: of `task_scope`. With one, variables are `<scope>/dense/{kernel,bias}`, and the kernel
      starts as Glorot's.
    hidden: of `hidden_of`.

  Returns:
    float32 `[B, C]`.
  """
  pooled_output = _through_hidden(pooled_output, hidden, is_training, dropout_prob)
  return _labels(pooled_output, num_labels, scope)


def get_classifier_loss(logits: tf.Tensor, labels: tf.Tensor, problem_type: str):
  """Loss and prediction of a sequence head.

  Args:
    logits: float32 `[B, C]`.
    labels: int `[B]` for classification; float `[B]` for regression; int `[B, C]` of 0 and 1 for
      multi_label.
    problem_type: `classification` (cross-entropy), `regression` (squared error) or `multi_label`
      (a binary cross-entropy for each label, averaged).

  Returns:
    `(loss, per_example_loss, probabilities)`: float32 `[]`, `[B]` and `[B, C]`. For regression
    the last is the predicted score itself.

  Raises:
    ValueError: `problem_type` is unknown.
  """
  if problem_type == "classification":
    per_example_loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
    probabilities = tf.nn.softmax(logits)
  elif problem_type == "regression":
    labels = tf.cast(tf.reshape(labels, [-1]), tf.float32)
    per_example_loss = tf.square(logits[:, 0] - labels)
    probabilities = logits
  elif problem_type == "multi_label":
    entropy = tf.nn.sigmoid_cross_entropy_with_logits(tf.cast(labels, tf.float32), logits)
    per_example_loss = tf.reduce_mean(entropy, axis=-1)
    probabilities = tf.sigmoid(logits)
  else:
    raise ValueError(f"Unknown problem type {problem_type!r}; known: {', '.join(PROBLEM_TYPES)}.")
  return tf.reduce_mean(per_example_loss), per_example_loss, probabilities


# ---------------------------------------------------------------------------------------------
# The span of an answer.


def span_dropout_prob(bert_config: BertConfig) -> float:
  """Finds the dropout before the scores of start and end, in training; BERT has none."""
  return bert_config.qa_dropout if "qa_dropout" in bert_config.family.keys else 0.0


def get_span_logits(
  sequence_output: tf.Tensor, input_mask: tf.Tensor | None = None, *, dropout_prob: float = 0.0
) -> tuple[tf.Tensor, tf.Tensor]:
  """Scores of each position as the start and as the end of an answer.

  Args:
    sequence_output: float32 `[B, S, W]`, the last layer.
    input_mask: int `[B, S]`; where it is 0 no answer can begin or end. By default padding competes
      with the text, as in the original, so its amount changes the loss.
    dropout_prob: of the last layer.

  Returns:
    `(start_logits, end_logits)`: float32 `[B, S]` each.
  """
  sequence_output = dropout(sequence_output, dropout_prob)
  batch_size, seq_length, width = get_shape_list(sequence_output, expected_rank=3)
  with variable_scope("cls"), variable_scope("squad"):
    logits = _linear(tf.reshape(sequence_output, [-1, width]), 2, 0.02)  # [B*S, 2]
  logits = tf.reshape(logits, [batch_size, seq_length, 2])
  if input_mask is not None:
    # Not -inf: the softmax of a sequence without any token would be NaN.
    logits = tf.where(tf.cast(tf.expand_dims(input_mask, -1), tf.bool), logits, -10000.0)
  return logits[..., 0], logits[..., 1]


def get_span_loss(
  start_logits: tf.Tensor,
  end_logits: tf.Tensor,
  start_positions: tf.Tensor,
  end_positions: tf.Tensor,
) -> tf.Tensor:
  """Averages the cross-entropies of start and end.

  Args:
    start_logits: float32 `[B, S]`.
    end_logits: float32 `[B, S]`.
    start_positions: int `[B]`.
    end_positions: int `[B]`.

  Returns:
    float32 `[]`.
  """
  start_losses = tf.nn.sparse_softmax_cross_entropy_with_logits(start_positions, start_logits)
  end_losses = tf.nn.sparse_softmax_cross_entropy_with_logits(end_positions, end_logits)
  return (tf.reduce_mean(start_losses) + tf.reduce_mean(end_losses)) / 2.0


# ---------------------------------------------------------------------------------------------
# A decision for each token; one choice among several sequences.


def get_token_logits(
  sequence_output: tf.Tensor,
  num_labels: int,
  is_training: bool,
  dropout_prob: float = 0.1,
  *,
  scope: str | None = None,
) -> tf.Tensor:
  """Scores of the labels of each token; variables as in `get_classifier_logits`.

  Args:
    sequence_output: float32 `[B, S, W]`, the last layer.
    num_labels: C.
    is_training: whether to drop out.
    dropout_prob: of the last layer, in training only; ELECTRA's head has none.
    scope: see there.

  Returns:
    float32 `[B, S, C]`.
  """
  batch_size, seq_length, width = get_shape_list(sequence_output, expected_rank=3)
  if is_training and not scope:
    sequence_output = dropout(sequence_output, dropout_prob)
  logits = _labels(tf.reshape(sequence_output, [-1, width]), num_labels, scope)  # [B*S, C]
  return tf.reshape(logits, [batch_size, seq_length, num_labels])


def get_token_loss(
  logits: tf.Tensor, labels: tf.Tensor, *, parts: int = 1
) -> tuple[tf.Tensor, tf.Tensor]:
  """Computes the cross-entropy of the tokens that have a label.

  Args:
    logits: float32 `[B, S, C]`.
    labels: int `[B, S]`; negative for a token without a label, which has weight 0.
    parts: of the batch, over which gradients are accumulated; see `loss_divisor`.

  Returns:
    `(loss, per_token_loss)`: float32 `[]`, the mean over the tokens with a label, and `[B, S]`, 0
    elsewhere.
  """
  weights = tf.cast(labels >= 0, tf.float32)
  per_token_loss = weights * tf.nn.sparse_softmax_cross_entropy_with_logits(
    tf.maximum(labels, 0), logits
  )
  # A batch without any label has the loss 0.
  weight = loss_divisor(weights, tf.shape(labels)[0], parts)
  return tf.math.divide_no_nan(tf.reduce_sum(per_token_loss), weight), per_token_loss


def get_choice_logits(
  pooled_output: tf.Tensor,
  choice_mask: tf.Tensor,
  is_training: bool,
  dropout_prob: float = 0.1,
  *,
  hidden: Hidden | None = None,
) -> tf.Tensor:
  """Scores of several sequences to choose from (Devlin et al. 2018, section 4.4).

  The only variable is a vector, `output_weights`: a bias would be the same for all choices.

  Args:
    pooled_output: float32 `[B * N, W]`, the N choices of a question one after the other.
    choice_mask: int `[B, N]`; 0 for a choice that is padding.
    is_training: whether to drop out.
    dropout_prob: of the pooled output, in training only.
    hidden: of `hidden_of`.

  Returns:
    float32 `[B, N]`.
  """
  pooled_output = _through_hidden(pooled_output, hidden, is_training, dropout_prob)
  width = get_shape_list(pooled_output, expected_rank=2)[1]
  weights = get_variable("output_weights", [1, width], create_initializer(0.02))
  logits = tf.reshape(tf.matmul(pooled_output, weights, transpose_b=True), tf.shape(choice_mask))
  # Not -inf: a row of padding has no choice, and its softmax would be NaN.
  return tf.where(tf.cast(choice_mask, tf.bool), logits, -10000.0)


# ---------------------------------------------------------------------------------------------
# Shared.


def replica_mean(tensor: tf.Tensor) -> tf.Tensor:
  """Averages a tensor over all replicas of a distributed step; elsewhere it is unchanged."""
  context = tf.distribute.get_replica_context()
  if context is None or context.num_replicas_in_sync == 1:
    return tensor
  return context.all_reduce(tf.distribute.ReduceOp.MEAN, tensor)


def loss_divisor(weights: tf.Tensor, num_examples: tf.Tensor, parts: int) -> tf.Tensor:
  """Computes the divisor of the sum of weighted losses: float32 `[]`.

  Each replica computes the loss of its share of the batch, and the mean over replicas, weighted by
  their numbers of examples, is minimised. For that to be the mean over all words of the batch, each
  replica divides by its share (by number of examples) of the weight of the whole batch.

  Gradient accumulation computes the parts of a batch in a loop, inside which replicas cannot
  communicate: each part then divides by its own weight.
  """
  weight = tf.reduce_sum(weights)
  if parts > 1:
    return weight
  num_examples = tf.cast(num_examples, tf.float32)
  means = replica_mean(tf.stack([weight, num_examples]))
  return means[0] * tf.math.divide_no_nan(num_examples, means[1])


def _labels(input_tensor, num_labels, scope):
  """Maps float32 `[M, W]` to `[M, num_labels]`; see `get_classifier_logits` for `scope`."""
  if not scope:
    return _linear(input_tensor, num_labels, 0.02)
  with variable_scope(scope):
    return dense(input_tensor, num_labels, "dense", initializer_range=None)


def _linear(input_tensor, num_outputs, initializer_range):
  """Maps float32 `[B, W]` to `[B, num_outputs]`; the original keeps these weights transposed."""
  width = get_shape_list(input_tensor, expected_rank=2)[1]
  weights = get_variable(
    "output_weights", [num_outputs, width], create_initializer(initializer_range)
  )
  bias = get_variable("output_bias", [num_outputs], zeros_initializer)
  return tf.matmul(input_tensor, weights, transpose_b=True) + bias
