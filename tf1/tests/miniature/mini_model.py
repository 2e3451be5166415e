"""The model of `mini_classifier.py`: a bag of words, with parts that models around BERT have."""

import tensorflow as tf
from tensorflow.contrib import layers as contrib_layers


class BagOfWords:
  """The mean of word vectors, normalized, through one dense layer."""

  def __init__(self, is_training, input_ids, vocab_size, hidden_size, scope=None):
    with tf.variable_scope(scope, default_name="bag"):
      table = tf.get_variable(
        "word_embeddings",
        [vocab_size, hidden_size],
        initializer=tf.truncated_normal_initializer(stddev=0.02),
      )
      words = tf.nn.embedding_lookup(table, input_ids)  # [B, T, H]
      mean = tf.reduce_mean(words, axis=1, keep_dims=True)  # [B, 1, H]
      mean = tf.squeeze(mean, squeeze_dims=[1])  # [B, H]
      normal = contrib_layers.layer_norm(
        inputs=mean, begin_norm_axis=-1, begin_params_axis=-1, scope="LayerNorm"
      )
      if is_training:
        normal = tf.nn.dropout(normal, 0.9)
      self.output = tf.layers.dense(normal, hidden_size, activation=tf.tanh, name="dense")  # [B, H]
