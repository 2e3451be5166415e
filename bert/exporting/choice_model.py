"""Multiple choice as a SavedModel: from a text and its possible continuations to the choice.

  model = ChoiceModel(config, "vocab.txt", do_lower_case=True, max_seq_length=80)
  model.export("out/export/task", "out/model.ckpt-343")

  import tensorflow_text                                # its ops are needed wherever it is loaded
  model = tf.saved_model.load("out/export/task")
  model(tf.constant(["She sings."]), tf.constant([["The crowd claps.", "A car honks."]]))["choice"]

The graph implements `tasks/multiple_choice.py`. A choice is `sent2`, a space and an ending.

Letters in shapes: B = batch size, N = choices of the question with most of them.
"""

import tensorflow as tf

from bert.exporting import graph_text
from bert.exporting.task_model import Outputs, TaskModel, string_signature, strings
from bert.model import heads
from bert.modeling import BertConfig


class ChoiceModel(TaskModel):
  """Chooses the continuation of a text."""

  def __init__(self, config: BertConfig, vocab_file: str, do_lower_case: bool, max_seq_length: int):
    """Builds the graph, with random weights.

    The other arguments are those of `TaskModel`.

    Args:
      max_seq_length: of a text with a choice; the longer of the two is cut.
    """
    super().__init__(config, vocab_file, do_lower_case)
    self._seq_length = max_seq_length
    self.__call__.get_concrete_function(strings("context"), strings("choices", rank=2))
    self._list_variables()

  @classmethod
  def options_of_run(cls, run):
    """Returns none: the length says it all."""
    return {}

  @tf.function(autograph=False)
  def __call__(self, context, choices) -> Outputs:
    """Chooses a continuation for each text.

    Args:
      context: string `[B]`.
      choices: string `[B, N]`; rows with fewer choices are padded with empty strings.

    Returns:
      `choice` int32 `[B]`, the number of the best one; `probabilities` float32 `[B, N]`.
    """
    rows = tf.repeat(tf.range(tf.size(context)), tf.shape(choices)[1])  # [B*N]
    inputs = graph_text.pack(
      tf.gather(self._pieces(context), rows),
      self._pieces(tf.reshape(choices, [-1])),
      self._frame,
      self._seq_length,
    )
    choice_mask = tf.cast(choices != "", tf.int32)
    with self._building():
      pooled_output = self._bert(inputs, only_pooled_output=True).get_pooled_output()
      hidden = heads.hidden_of(self._config, "choices")
      logits = heads.get_choice_logits(pooled_output, choice_mask, is_training=False, hidden=hidden)
    return {
      "choice": tf.argmax(logits, axis=1, output_type=tf.int32),
      "probabilities": tf.nn.softmax(logits),
    }

  def signature(self) -> tf.types.experimental.ConcreteFunction:
    """Returns the serving signature: `context` and `choices` to the answers."""
    return string_signature(self, strings("context"), strings("choices", rank=2))
