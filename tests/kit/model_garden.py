"""Small encoders with the names and shapes of the TensorFlow Model Garden's."""

import pathlib

import numpy as np
import tensorflow as tf

from bert.checkpoints import model_garden, numpy_reader

SIZES = {
  **dict(vocab_size=30, hidden_size=8, num_hidden_layers=2, num_attention_heads=2),
  **dict(intermediate_size=16, max_position_embeddings=12, type_vocab_size=2),
}
BATCH = {
  "input_word_ids": np.array([[2, 5, 6, 3, 7, 3, 0, 0], [2, 9, 8, 7, 6, 5, 4, 3]], np.int32),
  "input_mask": np.array([[1] * 6 + [0] * 2, [1] * 8], np.int32),
  "input_type_ids": np.array([[0, 0, 0, 0, 1, 1, 0, 0], [0, 0, 0, 0, 0, 0, 1, 1]], np.int32),
}


def encoder():
  """A functional model: `BATCH` -> `sequence_output` and `pooled_output`, of random weights."""
  import tf_keras

  layers, width = tf_keras.layers, SIZES["hidden_size"]

  class Table(layers.Layer):
    """Rows of a table: of ids, or without `looks_up` of positions."""

    def __init__(self, rows, looks_up=True, **options):
      super().__init__(**options)
      self.rows, self.looks_up = rows, looks_up

    def build(self, _):
      self.embeddings = self.add_weight("embeddings", [self.rows, width], tf.float32)

    def call(self, ids):
      return tf.gather(self.embeddings, ids if self.looks_up else tf.range(tf.shape(ids)[1]))

  class Block(layers.Layer):
    """A layer of the encoder, normalized after each part."""

    def build(self, _):
      heads = SIZES["num_attention_heads"]
      self.attention = layers.MultiHeadAttention(heads, width // heads, name="self_attention")
      self.attention_norm = _norm("self_attention_layer_norm")
      self.inner = _einsum(SIZES["intermediate_size"], "intermediate")
      self.outer = _einsum(width, "output")
      self.output_norm = _norm("output_layer_norm")

    def call(self, inputs):
      values, mask = inputs
      values = self.attention_norm(values + self.attention(values, values, attention_mask=mask))
      inner = tf_keras.activations.gelu(self.inner(values), approximate=True)
      return self.output_norm(values + self.outer(inner))

  def _norm(name):
    return layers.LayerNormalization(epsilon=1e-12, name=name)

  def _einsum(size, name):
    return layers.EinsumDense("abc,cd->abd", (None, size), bias_axes="d", name=name)

  ids, mask, types = (layers.Input([None], dtype=tf.int32, name=name) for name in BATCH)
  values = Table(SIZES["vocab_size"], name="word_embeddings")(ids)
  positions = SIZES["max_position_embeddings"]
  values += Table(positions, looks_up=False, name="position_embedding")(ids)
  values += Table(SIZES["type_vocab_size"], name="type_embeddings")(types)
  values = _norm("embeddings/layer_norm")(values)
  for number in range(SIZES["num_hidden_layers"]):
    values = Block(name=f"transformer/layer_{number}")([values, mask[:, tf.newaxis, :]])
  pooled = layers.Dense(width, "tanh", name="pooler_transform")(values[:, 0])
  model = tf_keras.Model([ids, mask, types], {"sequence_output": values, "pooled_output": pooled})
  random = np.random.default_rng(3)
  for variable in model.variables:
    variable.assign(random.normal(0.2, 0.3, variable.shape).astype(np.float32))
  return model


def write(prefix: str, tensors, config) -> None:
  """Writes tensors of the original's names as a checkpoint with the garden's names and shapes."""
  family, heads = config.family, config.num_attention_heads
  is_projected = f"bert/{family.projection}/kernel" in tensors
  names = {ours: theirs for theirs, ours in model_garden.HEADS.items()}
  names |= model_garden.names_of(family, family.count_own_layers(config), is_projected)
  variables = [
    tf.Variable(_as_there(name, values, heads), name=names[name])
    for name, values in tensors.items()
    if name in names
  ]
  tf.train.Checkpoint(all=variables).write(str(prefix))


def _as_there(name: str, values: np.ndarray, heads: int) -> np.ndarray:
  axis = model_garden.axis_of_heads(name)
  if axis is None:
    return values.T if model_garden.is_output(name) else values
  shape = values.shape
  return values.reshape(*shape[:axis], heads, shape[axis] // heads, *shape[axis + 1 :])


def save_as_on_hub(checkpoint: str, folder: pathlib.Path, vocab_file: pathlib.Path) -> None:
  """Writes a checkpoint's variables as a SavedModel, with what those of TensorFlow Hub have."""
  reader = tf.train.load_checkpoint(checkpoint)
  keys = numpy_reader.CheckpointReader(checkpoint).variable_keys()
  model = tf.Module()
  model.variables_here = [
    tf.Variable(reader.get_tensor(every[0]), name=name)
    for name, every in keys.items()
    if name != "save_counter"
  ]
  model.vocab_file = tf.saved_model.Asset(str(vocab_file))
  model.do_lower_case = tf.Variable(True, trainable=False)
  tf.saved_model.save(model, str(folder))
