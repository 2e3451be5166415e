"""Embeddings of sequences of ids."""

from bert_tf1.contrib import framework
from bert_tf1.real import tf


def embed_sequence(
  ids,
  vocab_size=None,
  embed_dim=None,
  unique=False,
  initializer=None,
  regularizer=None,
  trainable=True,
  scope=None,
  reuse=None,
):
  """Returns the rows of the variable `embeddings` for integer ids [B, T], [B, T, embed_dim].

  Args:
    ids: int32 or int64.
    vocab_size: the number of rows.
    embed_dim: the size of a row.
    unique: look each id up once, and repeat the row.
    initializer: of the variable; the scope's if None.
    regularizer: a function such as `l2_regularizer(0.1)`.
    trainable: add the variable to TRAINABLE_VARIABLES.
    scope: of the variable; "EmbedSequence" if None.
    reuse: use the variable there is in `scope`; the sizes may be None then.

  Raises:
    ValueError: if a size is missing.
  """
  if not (reuse or (vocab_size and embed_dim)):
    raise ValueError(
      "Must specify vocab size and embedding dimension when not reusing. Got "
      f"vocab_size={vocab_size} and embed_dim={embed_dim}"
    )
  with tf.variable_scope(scope, "EmbedSequence", [ids], reuse=reuse):
    embeddings = framework.model_variable(
      "embeddings",
      shape=None if vocab_size is None or embed_dim is None else [vocab_size, embed_dim],
      initializer=initializer,
      regularizer=regularizer,
      trainable=trainable,
    )
    if unique:
      return embedding_lookup_unique(embeddings, ids)
    return tf.nn.embedding_lookup(embeddings, ids)


def embedding_lookup_unique(params, ids, partition_strategy="mod", name=None):
  """Returns the rows of `params` for `ids`, [*ids.shape, D], looking each id up once."""
  with tf.name_scope(name, "EmbeddingLookupUnique", [params, ids]):
    ids = tf.convert_to_tensor(ids)
    unique_ids, places = tf.unique(tf.reshape(ids, [-1]))
    rows = tf.nn.embedding_lookup(params, unique_ids, partition_strategy=partition_strategy)
    rows = tf.gather(rows, places)
    shape = tf.concat([tf.shape(ids), tf.shape(rows)[1:]], 0)
    outputs = tf.reshape(rows, shape)
    outputs.set_shape(ids.shape.concatenate(rows.shape[1:]))
    return outputs
