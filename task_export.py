"""Fine-tuned models as SavedModels that take text and give answers.

  export_sentence_model("out/export/task", config, "out/model.ckpt-343", "vocab.txt",
                        do_lower_case=True, max_seq_length=128, label_names=["0", "1"])

  import tensorflow_text                                # its ops are needed wherever it is loaded
  model = tf.saved_model.load("out/export/task")
  model(tf.constant(["It rains."]), tf.constant(["It is wet."]))["label"]

The whole way from text to answer is in the graph: the tokens of `tokenization.FullTokenizer`, cut
and packed as `examples.convert_single_example` does it in training, and the fine-tuned weights.

Letters in shapes: B = batch size, S = sequence length, C = number of labels, (P) = pieces of each
text, ragged.
"""

import json
from collections.abc import Sequence

import tensorflow as tf
from absl import logging

import checkpoint
import heads
import hub_export
import hub_preprocess
import tokenization
import variables
from modeling import BertConfig, BertModel

Outputs = dict[str, tf.Tensor]


def truncated_lengths(
  lengths_a: tf.Tensor, lengths_b: tf.Tensor, max_length
) -> tuple[tf.Tensor, tf.Tensor]:
  """How many tokens stay of each text so that a pair has at most `max_length`.

  The longer text loses its last token, again and again; of two equally long, the second does.

  Args:
    lengths_a: int64 `[B]`, tokens of the first texts.
    lengths_b: int64 `[B]`, tokens of the second texts.
    max_length: int64 `[B]` or `[]`.

  Returns:
    int64 `[B]`, `[B]`.

  Example:
    >>> [kept.numpy().tolist() for kept in truncated_lengths(
    ...     tf.constant([6, 6, 1], tf.int64), tf.constant([6, 1, 9], tf.int64), 5)]
    [[3, 4, 1], [2, 1, 4]]
  """
  max_length = tf.cast(max_length, tf.int64)
  kept_b = tf.minimum(lengths_b, tf.maximum(max_length // 2, max_length - lengths_a))
  return tf.minimum(lengths_a, max_length - kept_b), kept_b


def pack(
  pieces_a: tf.RaggedTensor, pieces_b: tf.RaggedTensor, cls_id: int, sep_id: int, seq_length: int
) -> dict[str, tf.Tensor]:
  """`[CLS] a [SEP]`, then `b [SEP]` where there is a b, as `examples.convert_single_example` does.

  Args:
    pieces_a: int32 `[B, (P)]`.
    pieces_b: int32 `[B, (P)]`; a text without pieces makes no second segment.
    cls_id: number of [CLS].
    sep_id: number of [SEP].
    seq_length: longest sequence.

  Returns:
    int32 `[B, S]`: `input_word_ids`, `input_mask`, `input_type_ids`; S is that of the longest of
    the batch, as padding only costs time.
  """
  has_b = tf.cast(pieces_b.row_lengths() > 0, tf.int64)  # [B]
  kept_a, kept_b = truncated_lengths(
    pieces_a.row_lengths(), pieces_b.row_lengths(), seq_length - 2 - has_b
  )
  one_each = tf.ones_like(has_b)
  ids = tf.concat(
    [
      _repeated(cls_id, one_each),
      _first(pieces_a, kept_a),
      _repeated(sep_id, one_each),
      _first(pieces_b, kept_b),
      _repeated(sep_id, has_b),
    ],
    axis=1,
  )
  # A batch without texts, too, has a [CLS] column for the model to look at.
  length = tf.maximum(ids.bounding_shape(axis=1), 2)
  word_ids = ids.to_tensor(shape=tf.stack([-1, length]))  # [B, S]
  positions = tf.range(tf.shape(word_ids, tf.int64)[1])[tf.newaxis]  # [1, S]
  is_piece = positions < ids.row_lengths()[:, tf.newaxis]
  is_second = is_piece & (positions >= kept_a[:, tf.newaxis] + 2)
  return {
    "input_word_ids": word_ids,
    "input_mask": tf.cast(is_piece, tf.int32),
    "input_type_ids": tf.cast(is_second, tf.int32),
  }


def _first(pieces, counts):
  """The first pieces of each row, as many as `counts` says."""
  places = tf.ragged.range(pieces.row_lengths()).flat_values
  stays = places < tf.gather(counts, pieces.value_rowids())
  return tf.RaggedTensor.from_row_lengths(tf.boolean_mask(pieces.flat_values, stays), counts)


def _repeated(token_id, counts):
  values = tf.fill([tf.reduce_sum(counts)], tf.constant(token_id, tf.int32))
  return tf.RaggedTensor.from_row_lengths(values, counts)


class SentenceModel(tf.train.Checkpoint):
  """Classifies texts or pairs of texts, or gives them a score.

  Attributes:
    variables: of encoder and head, by the checkpoint's names.
    trainable_variables: all of them.
    label_names: string `[C]`.
    tokenize: as in a preprocess model: string `[B]` -> int32 `[B, (words), (pieces)]`.
    vocab_file: asset.
    do_lower_case: bool variable `[]`.
  """

  def __init__(
    self,
    config: BertConfig,
    vocab_file: str,
    do_lower_case: bool,
    max_seq_length: int,
    label_names: Sequence[str],
    problem_type: str = "classification",
    threshold: float = 0.5,
  ):
    """Builds the graph, with random weights.

    Args:
      config: of the model.
      vocab_file: path of the vocabulary.
      do_lower_case: whether the vocabulary is that of an uncased model.
      max_seq_length: what is longer is cut.
      label_names: C names, in the order of the model's outputs.
      problem_type: see `heads.PROBLEM_TYPES`.
      threshold: from which probability on a label counts as given, for multi_label.
    """
    super().__init__()
    vocab = tokenization.load_vocab(vocab_file)
    self._cls_id, self._sep_id = vocab["[CLS]"], vocab["[SEP]"]
    self._config = config
    self._store = variables.VariableStore()
    self._seq_length = max_seq_length
    self._problem_type = problem_type
    self._threshold = threshold
    self._labels = tuple(label_names)
    self.tokenize = hub_preprocess.Preprocessor(vocab_file, do_lower_case).tokenize
    self.vocab_file = tf.saved_model.Asset(vocab_file)
    self.do_lower_case = tf.Variable(do_lower_case, trainable=False, name="do_lower_case")
    self.label_names = tf.Variable(list(label_names), trainable=False, name="label_names")
    strings = tf.TensorSpec([None], tf.string)
    self.__call__.get_concrete_function(strings, strings)  # first: it makes the variables
    self.__call__.get_concrete_function(strings)
    self.variables = list(self._store.variables.values())
    self.trainable_variables = list(self._store.trainable_variables.values())

  @tf.function(autograph=False)
  def __call__(self, text_a, text_b=None) -> Outputs:
    """Answers.

    Args:
      text_a: string `[B]`.
      text_b: string `[B]`, the second texts; an empty one is none.

    Returns:
      For classification: `label` string `[B]`, `probabilities` float32 `[B, C]`, `label_names`
      string `[C]`. For multi_label the same, where `label` is those given, joined by commas, and
      `labels` bool `[B, C]`. For regression: `score` float32 `[B]`.
    """
    if text_b is None:
      return self(text_a, tf.zeros_like(text_a))  # empty strings
    pieces = [self.tokenize(text).merge_dims(1, 2) for text in (text_a, text_b)]
    inputs = pack(*pieces, self._cls_id, self._sep_id, self._seq_length)
    return self._answers(self._logits(inputs))

  def _logits(self, inputs):
    """float32 `[B, C]`."""
    with variables.use_store(self._store):
      model = BertModel(
        self._config, False, *(inputs[name] for name in hub_export.INPUTS), only_pooled_output=True
      )
      return heads.get_classifier_logits(model.get_pooled_output(), len(self._labels), False)

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

  def signature(self, is_pair: bool) -> tf.types.experimental.ConcreteFunction:
    """What a server runs: strings `text_a`, and `text_b` for pairs, to the answers.

    Servers want one row of every output for each text: `label_names` is `[B, C]` here.
    """
    names = ("text_a", "text_b") if is_pair else ("text_a",)

    @tf.function(autograph=False)
    def serve(**texts):
      outputs = self(*(texts[name] for name in names))
      if "label_names" in outputs:
        shape = tf.shape(outputs["probabilities"])
        outputs["label_names"] = tf.broadcast_to(outputs["label_names"], shape)
      return outputs

    return serve.get_concrete_function(**{n: tf.TensorSpec([None], tf.string, n) for n in names})


def export_sentence_model(
  export_dir: str,
  config: BertConfig,
  checkpoint_path: str,
  vocab_file: str,
  do_lower_case: bool,
  max_seq_length: int,
  label_names: Sequence[str],
  problem_type: str = "classification",
  is_pair: bool = True,
) -> None:
  """Writes a `SentenceModel` as a SavedModel, whole or not at all.

  Args:
    export_dir: the folder; a SavedModel that is there is replaced.
    config: of the model.
    checkpoint_path: what `checkpoint.find_checkpoint` finds.
    vocab_file: see `SentenceModel`, also for the rest.
    do_lower_case: whether the vocabulary is that of an uncased model.
    max_seq_length: what is longer is cut.
    label_names: C names.
    problem_type: see `heads.PROBLEM_TYPES`.
    is_pair: whether the signature `serving_default` takes `text_b`.

  Raises:
    CheckpointError: the checkpoint lacks a variable of the model, or has it in another shape.
    OSError: `export_dir` cannot be written, or holds something else than a SavedModel.
  """
  model = SentenceModel(
    config, vocab_file, do_lower_case, max_seq_length, label_names, problem_type
  )
  prefix = checkpoint.find_checkpoint(checkpoint_path)
  hub_export.load_all(prefix, {v.name.split(":")[0]: v for v in model.variables})
  label_map = {label: index for index, label in enumerate(label_names)}
  with hub_export.written_aside(export_dir) as folder:
    hub_export.save(
      model,
      folder,
      {"serving_default": model.signature(is_pair)},
      {
        "bert_config.json": config.to_json_string(),
        "label_map.json": json.dumps(label_map, indent=2, ensure_ascii=False) + "\n",
      },
    )
  logging.info("Exported the fine-tuned model of %s to %s.", prefix, export_dir)
