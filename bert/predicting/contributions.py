"""What each token contributed to an answer: integrated gradients.

  explain = Contributions(run.prefix, run.config, head)
  explained = decoder.explained(item, rows, answer, scores)   # which sum of scores to explain
  explain(rows, explained.weights)                              # -> float32 [S] for each row

Integrated gradients (Sundararajan et al. 2017, https://arxiv.org/abs/1703.01365): the vectors of
the words grow from zero to what they are, positions and segments stay, and the gradients on the way
are averaged. The contributions of all tokens add up to what the words change of the sum.

Letters in shapes: R = rows, S = sequence length, E = width of the vectors of words.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bert.model.task_head import SEQUENCES, Batch, Head

NUM_STEPS = 8
"""Points on the way from zero: the middles of equal parts."""

_ROWS = 8  # in a batch


class Contributions:
  """Computes what tokens contribute to scores, see this module's docstring."""

  def __init__(self, prefix: str, config: Any, head: Head, num_steps: int = NUM_STEPS):
    """Loads nothing yet: the first call does.

    Args:
      prefix: of the checkpoint.
      config: of the model, a `BertConfig`.
      head: of the task.
      num_steps: points on the way; the more, the closer is the sum.
    """
    self._prefix = prefix
    self._config = config
    self._head = head
    self._num_steps = num_steps
    self._function: Any = None

  @property
  def passes(self) -> int:
    """Passes of a row, forward or backward, which takes as long as two."""
    return 3 * self._num_steps

  def flops(self, rows: Sequence[Mapping[str, Any]]) -> float:
    """Estimates the operations for some rows: two for each weight of the layers and token, and
    twice as many again backward.
    """
    tokens = sum(len(row["input_ids"]) for row in rows)
    width, inner = self._config.hidden_size, self._config.intermediate_size
    layers = len(self._config.family.layer_scopes(self._config))
    return 1.0 * self.passes * tokens * layers * (8 * width * width + 4 * width * inner)

  def __call__(
    self, rows: Sequence[Mapping[str, Any]], weights: Sequence[Mapping[str, np.ndarray]]
  ) -> list[np.ndarray]:
    """Explains sums of scores.

    Args:
      rows: of `Decoder.rows`, each by itself.
      weights: for each row, by what its scores count in the sum: name -> array of a score's shape.

    Returns:
      For each row float32 `[S]`: what each token adds to the sum.
    """
    found: list[np.ndarray] = []
    for first in range(0, len(rows), _ROWS):
      found += self._of_batch(rows[first : first + _ROWS], weights[first : first + _ROWS])
    return found

  def _of_batch(self, rows, weights) -> list[np.ndarray]:
    features = {name: _padded([row[name] for row in rows], np.int32) for name in SEQUENCES}
    counts = {name: _padded([each[name] for each in weights], np.float32) for name in weights[0]}
    if self._function is None:
      self._function = _load(self._prefix, self._config, self._head, counts)
    scales = (np.arange(self._num_steps, dtype=np.float32) + 0.5) / self._num_steps
    mean = np.mean([self._function(each, features, counts) for each in scales], axis=0)
    return [each[: len(row["input_ids"])] for each, row in zip(mean, rows, strict=True)]


def _padded(values: Sequence[Any], kind: Any) -> np.ndarray:
  """Stacks arrays whose first axes differ, with zeros behind the shorter ones."""
  arrays = [np.asarray(value, kind) for value in values]
  longest = max(array.shape[0] for array in arrays)
  rest = [(0, 0)] * (arrays[0].ndim - 1)
  return np.stack([np.pad(array, [(0, longest - array.shape[0]), *rest]) for array in arrays])


def _load(prefix: str, config: Any, head: Head, counts: Mapping[str, np.ndarray]):
  """Traces one point on the way, and loads the weights.

  Returns:
    `function(scale, features, counts)` -> NumPy float32 `[R, S]`: gradient times vector of each
    token, where the vectors of all words are multiplied by `scale`.
  """
  import tensorflow as tf

  from bert.exporting import saved_models
  from bert.model import kernels, variables

  class ScaledWords(variables.FilledStore):
    """Gives the table of words multiplied by `scale`."""

    scale: Any = None
    tape: Any = None
    table: Any = None
    scaled: Any = None

    def get_variable(self, name, *args):
      variable = super().get_variable(name, *args)
      if not name.endswith("/word_embeddings"):
        return variable
      if self.scaled is None:
        self.table, self.scaled = variable, variable * self.scale
        self.tape.watch(self.scaled)
      return self.scaled

  store = ScaledWords()

  def contributions(scale, features, counts):
    with tf.GradientTape() as tape:
      store.scale, store.tape = scale, tape
      with variables.use_store(store), kernels.portable_blocks():
        options = {"dtype": tf.float32, "skip_padding": False}
        scores = head.scores(Batch(config, features, options=options))
      total = tf.add_n([tf.reduce_sum(counts[name] * scores[name]) for name in counts])
    slices = tape.gradient(total, store.scaled)  # a row for each token, in the order of the ids
    products = slices.values * tf.gather(store.table, slices.indices)  # [R * S, E]
    return tf.reshape(tf.reduce_sum(products, axis=-1), tf.shape(features["input_ids"]))

  specs = (
    tf.TensorSpec([], tf.float32),
    {name: tf.TensorSpec([None, None], tf.int32) for name in SEQUENCES},
    {n: tf.TensorSpec([None] * each.ndim, tf.float32) for n, each in counts.items()},
  )
  # `tf.function` traces a call twice if it lifts the variables that the call creates.
  with variables.traced_once():
    function = tf.function(contributions, autograph=False).get_concrete_function(*specs)
  saved_models.load_all(prefix, list(store.variables.values()), ())
  store.finish()
  return lambda *args: function(*tf.nest.map_structure(tf.constant, args)).numpy()
