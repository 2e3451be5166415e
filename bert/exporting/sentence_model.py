"""Classification and regression as a SavedModel: one answer for a text or a pair.

  model = SentenceModel(config, "vocab.txt", do_lower_case=True, max_seq_length=128,
                        label_names=["0", "1"])
  model.export("out/export/task", "out/model.ckpt-343")

Texts are truncated and packed as in training by `classification.convert_single_example`.

Letters in shapes: B = batch size, C = number of labels.
"""

from collections.abc import Sequence

import tensorflow as tf

from bert.exporting import graph_text
from bert.exporting.task_model import Outputs, TaskModel, string_signature, strings
from bert.model import heads
from bert.modeling import BertConfig


class SentenceModel(TaskModel):
  """Classifies texts or pairs of texts, or scores them."""

  def __init__(
    self,
    config: BertConfig,
    vocab_file: str,
    do_lower_case: bool,
    max_seq_length: int,
    label_names: Sequence[str],
    problem_type: str = "classification",
    threshold: float = 0.5,
    is_pair: bool = True,
    task_name: str | None = None,
  ):
    """Builds the graph, with random weights.

    The other arguments are those of `TaskModel`.

    Args:
      max_seq_length: longer texts are truncated.
      problem_type: see `heads.PROBLEM_TYPES`.
      threshold: for multi_label, the minimum probability of a predicted label.
      is_pair: whether the signature takes `text_b`.
      task_name: that of the run; part of the names of an ELECTRA head's variables.
    """
    super().__init__(config, vocab_file, do_lower_case, label_names)
    self._seq_length = max_seq_length
    self._problem_type = problem_type
    self._threshold = threshold
    self._is_pair = is_pair
    self._head = {
      "scope": heads.task_scope(config, task_name),
      "hidden": heads.hidden_of(config, "texts"),
    }
    texts = tf.TensorSpec([None], tf.string)
    self.__call__.get_concrete_function(texts, texts)  # first: it creates the variables
    self.__call__.get_concrete_function(texts)
    self._list_variables()

  @classmethod
  def options(cls, model):
    """Returns the labels, and what the head is."""
    facts, example = model.facts, model.settings.get("example")
    return {
      "label_names": facts["labels"],
      "problem_type": facts["problem_type"],
      "task_name": facts.get("task_name"),
      # Without an example of the run's data, a second text is allowed: it may be empty.
      "is_pair": example is None or "text_b" in example,
    }

  @tf.function(autograph=False)
  def __call__(self, text_a, text_b=None) -> Outputs:
    """Predicts labels or scores.

    Args:
      text_a: string `[B]`.
      text_b: string `[B]`, the second texts; an empty string is no text.

    Returns:
      For classification: `label` string `[B]`, `probabilities` float32 `[B, C]`, `label_names`
      string `[C]`. For multi_label also `labels` bool `[B, C]`, and `label` has the predicted ones
      joined by commas. For regression: `score` float32 `[B]`.
    """
    if text_b is None:
      return self(text_a, tf.zeros_like(text_a))  # empty strings
    pieces_a, pieces_b = self._pieces(text_a), self._pieces(text_b)
    inputs = graph_text.pack(pieces_a, pieces_b, self._frame, self._seq_length)
    return self._answers(self._logits(inputs))

  def _logits(self, inputs):
    """Computes logits: float32 `[B, C]`."""
    with self._building():
      model = self._bert(inputs, only_pooled_output=True)
      vectors = model.get_pooled_output()
      return heads.get_classifier_logits(vectors, len(self._labels), False, **self._head)

  def _answers(self, logits) -> Outputs:
    if self._problem_type == "regression":
      return {"score": logits[:, 0]}
    names = tf.constant(self._labels)
    if self._problem_type == "multi_label":
      probabilities = tf.sigmoid(logits)
      given = probabilities >= self._threshold  # [B, C]
      rows = tf.ragged.boolean_mask(tf.broadcast_to(names, tf.shape(given)), given)
      answers = {"label": tf.strings.reduce_join(rows, axis=1, separator=","), "labels": given}
    else:
      probabilities = tf.nn.softmax(logits)
      answers = {"label": tf.gather(names, tf.argmax(logits, axis=1))}
    return {**answers, "probabilities": probabilities, "label_names": names}

  def signature(self) -> tf.types.experimental.ConcreteFunction:
    """Returns the serving signature: strings `text_a`, and `text_b` for pairs, to the answers.

    Servers need one row of every output for each text: `label_names` is `[B, C]` here.
    """

    def serve(*texts):
      outputs = self(*texts)
      if "label_names" in outputs:
        shape = tf.shape(outputs["probabilities"])
        outputs["label_names"] = tf.broadcast_to(outputs["label_names"], shape)
      return outputs

    names = ("text_a", "text_b") if self._is_pair else ("text_a",)
    return string_signature(serve, *map(strings, names))
