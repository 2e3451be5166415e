"""A task of one's own as a SavedModel: one text or two, and what its head answers.

  model = TextsModel(config, "vocab.txt", True, 128, task="stars", head={"num_levels": 5})
  model.export("out/export/task", "out/model.ckpt-343")

Texts are cut and packed as in training by `classification.convert_single_example`; what is computed
of them is the head's (`bert/model/task_head.py`).

Letters in shapes: B = batch size.
"""

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from bert import tokenization
from bert.exporting import graph_text, hub_encoder
from bert.exporting.task_model import Outputs, TaskModel, string_signature, strings
from bert.model.task_head import SEQUENCES, Batch
from bert.modeling import BertConfig
from bert.tasks import kinds


class TextsModel(TaskModel):
  """Answers texts, or pairs of texts, with the head of a registered task."""

  def __init__(
    self,
    config: BertConfig,
    vocab_file: str,
    do_lower_case: bool,
    max_seq_length: int,
    task: str,
    head: Mapping[str, Any],
  ):
    """Builds the graph, with random weights.

    The other arguments are those of `TaskModel`.

    Args:
      max_seq_length: longer texts are truncated.
      task: the name of its row in `tasks/kinds.py`.
      head: the values of its head.

    Raises:
      ValueError: the task is not known.
    """
    super().__init__(config, vocab_file, do_lower_case)
    self._seq_length = max_seq_length
    self._head = kinds.find(task).head_class()(**head)
    self._tokens = _tokens_by_id(vocab_file) if self._head.per_token else []
    texts = tf.TensorSpec([None], tf.string)
    self.__call__.get_concrete_function(texts, texts)
    self.__call__.get_concrete_function(texts)
    self._list_variables()

  @classmethod
  def options(cls, model):
    """Returns the task and its head."""
    return {"task": model.facts["task_name"], "head": model.facts["head"]}

  @tf.function(autograph=False)
  def __call__(self, text_a, text_b=None) -> Outputs:
    """Gives the head's `predictions`, `[B, ...]`, of strings `[B]`; an empty `text_b` is no text.

    A head with `per_token` also gives `tokens`, string `[B, S]`, and `num_tokens`, int32 `[B]`.
    """
    text_b = tf.zeros_like(text_a) if text_b is None else text_b
    pieces = self._pieces(text_a), self._pieces(text_b)
    inputs = graph_text.pack(*pieces, self._frame, self._seq_length)
    features = {n: inputs[m] for n, m in zip(SEQUENCES, hub_encoder.INPUTS, strict=True)}
    batch = Batch(self._config, features, options=self._bert_options)
    with self._building():
      answers = self._head.predictions(batch, self._head.outputs(batch))
    if self._head.per_token:
      tokens = tf.gather(tf.constant(self._tokens), features["input_ids"])
      answers = {
        "tokens": tokens,
        "num_tokens": tf.reduce_sum(features["input_mask"], 1),
        **answers,
      }
    return answers

  def signature(self) -> tf.types.experimental.ConcreteFunction:
    """Returns the serving signature: strings `text_a` and `text_b` to the answers."""
    return string_signature(self, strings("text_a"), strings("text_b"))


def _tokens_by_id(vocab_file: str) -> list[str]:
  """Lists the tokens of a vocabulary, each at the place of its id."""
  vocab = tokenization.load_vocab(vocab_file)
  tokens = [""] * (max(vocab.values()) + 1)
  for token, token_id in vocab.items():
    tokens[token_id] = token
  return tokens
