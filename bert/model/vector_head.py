"""The head of similar texts; `task_head.py` says what a head is.

Its functions lie in `similarity.py`. Importing this module imports no TensorFlow.

Letters in shapes: B = batch size, S = sequence length, N = texts of an example, W = hidden size.
"""

import dataclasses

from bert.model.task_head import Head


@dataclasses.dataclass(frozen=True)
class VectorHead(Head):
  """A vector for each text, compared by cosines."""

  pooling: str = "mean"  # see `similarity.pool`
  # Whether training ranks the texts of a batch, instead of comparing cosines with scores.
  ranks_in_training: bool = False
  ranks_in_evaluation: bool = False  # likewise for evaluation

  @classmethod
  def of_run(cls, facts, settings):
    """Makes the head of a run; ranking matters in training alone."""
    return cls(facts["pooling"])

  def _ranks(self, batch):
    return self.ranks_in_training if batch.is_training else self.ranks_in_evaluation

  def outputs(self, batch):
    """Computes `vectors`, float32 `[B, N, W]`."""
    import tensorflow as tf

    from bert.model import similarity

    shape = tf.shape(batch.features["input_ids"])
    flat = [-1, shape[2]]
    ids = tf.reshape(batch.features["input_ids"], flat)  # [B*N, S]
    mask = tf.reshape(batch.features["input_mask"], flat)
    # No text is without a token: the mean over none would be NaN.
    mask = tf.maximum(mask, tf.one_hot(0, shape[2], dtype=mask.dtype))
    sequence_output = batch.bert(ids, mask).get_sequence_output()
    vectors = similarity.pool(sequence_output, mask, self.pooling)  # [B*N, W]
    return {"vectors": tf.reshape(vectors, [shape[0], shape[1], batch.config.hidden_size])}

  def cosines(self, vectors):
    """Compares the first two texts of each row: float32 `[B, N, W]` to `[B]`."""
    from bert.model import similarity

    return similarity.cosines(vectors[:, 0], vectors[:, 1])

  def loss(self, batch, outputs):
    """Computes the squared error of the cosines, or the cross-entropy of the ranks."""
    from bert.model import similarity

    vectors = outputs["vectors"]
    if self._ranks(batch):
      return similarity.get_ranking_loss(vectors, batch.features["input_ids"])
    return similarity.get_cosine_loss(self.cosines(vectors), batch.features["score"])

  def predictions(self, batch, outputs):
    """Computes `similarity`, float32 `[B]`."""
    return {"similarity": self.cosines(outputs["vectors"])}

  def eval_tensors(self, batch, outputs, losses):
    """Selects cosines and scores, or, where texts are ranked, their vectors."""
    import tensorflow as tf

    tensors = {"losses": losses, "is_real_example": batch.features["is_real_example"]}
    vectors = outputs["vectors"]
    if self._ranks(batch):
      is_text = tf.reduce_max(batch.features["input_mask"], axis=-1)
      return {**tensors, "vectors": vectors, "is_text": is_text}
    return {**tensors, "cosines": self.cosines(vectors), "scores": batch.features["score"]}

  def row_scores(self, batch, outputs):
    """Selects `vectors`, float32 `[R, W]`: a row is one text."""
    import tensorflow as tf

    return {"vectors": tf.reshape(outputs["vectors"], [-1, batch.config.hidden_size])}

  def scores(self, batch):
    """Computes `vectors`, float32 `[R, W]`, of rows that are not `[B, N, S]` yet."""
    import tensorflow as tf

    alone = {name: tf.expand_dims(tensor, 1) for name, tensor in batch.features.items()}
    return {"vectors": self.outputs(dataclasses.replace(batch, features=alone))["vectors"][:, 0]}
