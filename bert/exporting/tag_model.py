"""Tagging as a SavedModel: from texts to words, their positions and labels.

  model = TagModel(config, "vocab.txt", do_lower_case=False, max_seq_length=128,
                   label_names=["O", "B-PER", "I-PER"])
  model.export("out/export/task", "out/model.ckpt-343")

  import tensorflow_text                                # its ops are needed wherever it is loaded
  model = tf.saved_model.load("out/export/task")
  model(tf.constant(["Ada met Charles."]))["tags"]      # ragged: as many as the text has words

The graph implements `tasks/tagging.py`: a word is represented by its first token, a text too long
for the model is read in windows, each word is labelled in the window with most context, and no word
is dropped. Words are separated by blanks, and punctuation and Chinese characters are words of their
own, as BERT's basic tokenizer splits a text; so does `tasks/tag_answers.py`. Labels are the model's
own; run_ner.py then corrects those that violate their scheme.

Letters in shapes: B = batch size, W = words of all texts, P = their tokens, R = windows, S =
sequence length, C = number of labels, (N) = words of each text, ragged.
"""

from collections.abc import Sequence

import tensorflow as tf

from bert.exporting import graph_text, graph_tokenizer
from bert.exporting.task_model import Outputs, TaskModel, string_signature, strings
from bert.io import tokenizer_settings
from bert.model import heads
from bert.modeling import BertConfig


class TagModel(TaskModel):
  """Labels the words of texts."""

  def __init__(
    self,
    config: BertConfig,
    vocab_file: str,
    do_lower_case: bool,
    max_seq_length: int,
    label_names: Sequence[str],
    doc_stride: int | None = None,
  ):
    """Builds the graph, with random weights.

    The other arguments are those of `TaskModel`.

    Args:
      max_seq_length: tokens in a window, [CLS] and [SEP] included.
      doc_stride: number of tokens between the starts of two windows; half a window by default.
    """
    super().__init__(config, vocab_file, do_lower_case, label_names)
    self._cuts_chinese = tokenizer_settings.beside(vocab_file).tokenize_chinese_chars
    self._size = max_seq_length - 2
    self._stride = doc_stride or max(self._size // 2, 1)
    self.__call__.get_concrete_function(tf.TensorSpec([None], tf.string))
    self._list_variables()

  @classmethod
  def options_of_run(cls, run):
    """Returns the labels, and how texts are cut into windows."""
    return {
      "label_names": run.facts["labels"],
      "doc_stride": run.settings.get("doc_stride"),
    }

  @tf.function(autograph=False)
  def __call__(self, text) -> dict[str, tf.RaggedTensor]:
    """Labels each word.

    Args:
      text: string `[B]`, of any length.

    Returns:
      Ragged `[B, (N)]`: `words` and `tags`, string; `starts` and `ends` int32, each word's first
      character in the text and the one after its last; `probabilities` float32, of each tag.
    """
    words = graph_tokenizer.split_basic_words(text, self._cuts_chinese)
    probabilities = tf.nn.softmax(self._logits(words))  # [W, C]
    outputs = {
      "words": words.strings,
      "tags": tf.gather(tf.constant(self._labels), tf.argmax(probabilities, axis=1)),
      "starts": words.char_starts,
      "ends": words.char_starts + words.num_chars,
      "probabilities": tf.reduce_max(probabilities, axis=1),
    }
    return {name: words.by_text(values) for name, values in outputs.items()}

  def signature(self) -> tf.types.experimental.ConcreteFunction:
    """Returns the serving signature: strings `text` to the answers, padded to the longest text.

    Servers do not support ragged tensors. `num_words`, int32 `[B]`, is the length of each row.
    """

    def serve(text) -> Outputs:
      outputs = self(text)
      num_words = tf.cast(outputs["words"].row_lengths(), tf.int32)
      return {**{n: values.to_tensor() for n, values in outputs.items()}, "num_words": num_words}

    return string_signature(serve, strings("text"))

  def _logits(self, words: graph_text.Words):
    """Computes logits: float32 `[W, C]`."""
    pieces = self._word_pieces(words.strings)  # [W, (tokens)]
    # A word of control characters alone has no token, but needs a position for its label.
    is_empty = tf.cast(pieces.row_lengths() == 0, tf.int64)
    pieces = tf.concat([pieces, graph_text.repeated(self._unk_id, is_empty)], axis=1)
    texts = words.by_text(pieces).merge_dims(1, 2)  # [B, (tokens)]
    size, stride = (
      tf.fill(tf.shape(texts.row_lengths()), tf.constant(n, tf.int64))
      for n in (self._size, self._stride)
    )
    windows = graph_text.all_windows(texts.row_lengths(), size, stride, moves_back=True)
    inputs = graph_text.join(windows.cut(texts), None, None, self._frame)
    with self._building():
      model = self._bert(inputs, skip_padding=True)
      scope = heads.task_scope(self._config, "ner", is_tokens=True)
      vectors = model.get_sequence_output()
      logits = heads.get_token_logits(vectors, len(self._labels), False, scope=scope)
    return tf.gather_nd(logits, _owners(windows, texts, pieces.row_starts()))


def _owners(windows: graph_text.Windows, texts: tf.RaggedTensor, first_pieces: tf.Tensor):
  """Finds the window that labels each word, and its first token's position: int64 `[W, 2]`.

  Of the P tokens of all texts, int32 `[B, (tokens)]`, `first_pieces` int64 `[W]` begin a word.
  """
  num_pieces = tf.size(texts.values, tf.int64)
  shows_most = graph_text.shows_most(windows, texts.row_starts(), num_pieces)
  shown = tf.where(shows_most.values)  # [P, 1], as each token is shown most by one window
  places = tf.gather_nd(windows.places(texts.row_starts()).values, shown)
  indices = tf.scatter_nd(places[:, tf.newaxis], shown[:, 0], num_pieces[tf.newaxis])
  indices = tf.gather(indices, first_pieces)
  rows = tf.gather(shows_most.value_rowids(), indices)
  return tf.stack([rows, indices - tf.gather(shows_most.row_starts(), rows) + 1], axis=1)
