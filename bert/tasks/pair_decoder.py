"""The similarity of two texts, from the vector of each.

Letters in shapes: W = hidden size.
"""

from typing import ClassVar

import numpy as np

from bert.tasks.decoding import Decoder, Explained
from bert.tasks.shown import Numbers

# As `tf.math.l2_normalize`: the vector 0 stays 0.
_LEAST_SQUARE = np.float32(1e-12)


class PairDecoder(Decoder):
  """A row for each of both texts; `similarity` is the cosine of the angle between their vectors."""

  title: ClassVar = "Sentence similarity"
  needs_pairs: ClassVar = True
  display = "similarity"

  @classmethod
  def facts_of_outputs(cls, outputs, label_names):
    """Recognises the similarity."""
    del label_names
    return {} if "similarity" in outputs else None

  def rows(self, item):
    """Makes the rows of both texts."""
    return [self._row(item[name]) for name in self.inputs]

  def decode(self, item, rows, scores):
    """Compares the vectors, float32 `[W]`."""
    one, other = (_normalized(each["vectors"]) for each in scores)
    return {"similarity": float(np.sum(one * other))}

  def predictions(self, answer, scores, raw_scores=False):
    """Lists the similarity, which is called so."""
    return [{"label": "similarity", "score": answer["similarity"]}]

  def relevance(self, answer, scores):
    """Returns the similarity."""
    return answer["similarity"]

  def explained(self, item, rows, answer, scores):
    """Explains the similarity, as far as it follows each of the vectors."""
    vectors = [each["vectors"] for each in scores]
    one, other = map(_normalized, vectors)
    similarity = np.sum(one * other)
    sides = [(other - similarity * one, vectors[0]), (one - similarity * other, vectors[1])]
    weights = [{"vectors": side / max(np.linalg.norm(v), 1e-12)} for side, v in sides]
    return Explained("the similarity", weights)

  def shown(self):
    """Compares the similarity with the right one."""
    return Numbers("similarity")


def _normalized(vector: np.ndarray) -> np.ndarray:
  return vector / np.sqrt(np.maximum(np.sum(np.square(vector)), _LEAST_SQUARE))
