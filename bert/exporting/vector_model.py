"""Sentence vectors as a SavedModel: from texts to vectors, and from pairs of texts to a cosine.

  model = VectorModel(config, "vocab.txt", do_lower_case=True, max_seq_length=64, pooling="mean")
  model.export("out/export/task", "out/model.ckpt-1440")

  import tensorflow_text                                # its ops are needed wherever it is loaded
  model = tf.saved_model.load("out/export/task")
  model(tf.constant(["It rains."]), tf.constant(["It is wet."]))["similarity"]
  model.encode(tf.constant(["It rains."]))["vector"]

The graph implements `tasks/similarity.py` and the model of `run_similarity.py`.

Letters in shapes: B = batch size, W = hidden size, (P) = tokens of each text, ragged.
"""

import tensorflow as tf

from bert.exporting import graph_text
from bert.exporting.task_model import Outputs, TaskModel, string_signature, strings
from bert.model import similarity
from bert.modeling import BertConfig


class VectorModel(TaskModel):
  """Encodes texts as vectors, and compares texts by the cosine of their vectors."""

  def __init__(
    self,
    config: BertConfig,
    vocab_file: str,
    do_lower_case: bool,
    max_seq_length: int,
    pooling: str = "mean",
  ):
    """Builds the graph, with random weights.

    The other arguments are those of `TaskModel`.

    Args:
      max_seq_length: longer texts are truncated.
      pooling: see `similarity.pool`.
    """
    super().__init__(config, vocab_file, do_lower_case)
    self._seq_length = max_seq_length
    self._pooling = pooling
    texts = tf.TensorSpec([None], tf.string)
    self.encode.get_concrete_function(texts)  # first: it creates the variables
    self.__call__.get_concrete_function(texts, texts)
    self._list_variables()

  @classmethod
  def options(cls, model):
    """Returns the pooling."""
    return {"pooling": model.facts["pooling"]}

  @tf.function(autograph=False)
  def __call__(self, text_a, text_b) -> Outputs:
    """Compares texts.

    Args:
      text_a: string `[B]`.
      text_b: string `[B]`.

    Returns:
      `similarity` float32 `[B]`: the cosine of the two vectors, from -1 to 1.
    """
    vectors = self.encode(tf.concat([text_a, text_b], axis=0))["vector"]  # [2*B, W]
    num_rows = tf.size(text_a)
    return {"similarity": similarity.cosines(vectors[:num_rows], vectors[num_rows:])}

  @tf.function(autograph=False)
  def encode(self, text) -> Outputs:
    """Encodes texts.

    Args:
      text: string `[B]`.

    Returns:
      `vector` float32 `[B, W]`, of any length.
    """
    pieces = self._pieces(text)
    kept = tf.minimum(pieces.row_lengths(), self._seq_length - 2)
    pieces = graph_text.first_pieces(pieces, kept)
    inputs = graph_text.join(pieces, None, None, self._frame)
    with self._building():
      vectors = self._bert(inputs, skip_padding=True).get_sequence_output()
      return {"vector": similarity.pool(vectors, inputs["input_mask"], self._pooling)}

  def signature(self) -> tf.types.experimental.ConcreteFunction:
    """Returns the serving signature: strings `text_a` and `text_b` to their similarity."""
    return string_signature(self, strings("text_a"), strings("text_b"))

  def signatures(self) -> dict[str, tf.types.experimental.ConcreteFunction]:
    """Returns that signature, and `vectors`: strings `text` to their vectors."""
    return {**super().signatures(), "vectors": string_signature(self.encode, strings("text"))}
