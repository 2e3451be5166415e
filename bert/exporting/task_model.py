"""Fine-tuned models as SavedModels that take text and give answers.

  export_sentence_model("out/export/task", config, "out/model.ckpt-343", "vocab.txt",
                        do_lower_case=True, max_seq_length=128, label_names=["0", "1"])

  import tensorflow_text                                # its ops are needed wherever it is loaded
  model = tf.saved_model.load("out/export/task")
  model(tf.constant(["It rains."]), tf.constant(["It is wet."]))["label"]

The whole way from text to answer is in the graph: the tokens of `tokenization.FullTokenizer`, cut
and packed as `classification.convert_single_example` does it in training, and the fine-tuned
weights.

Spans, tags and choices have modules of their own, which build on `TaskModel`.

Letters in shapes: B = batch size, C = number of labels, (P) = pieces of each text, ragged.
"""

import contextlib
import json
from collections.abc import Mapping, Sequence

import tensorflow as tf
from absl import logging

from bert import tokenization
from bert.checkpoints import checkpoint
from bert.exporting import graph_text, graph_windows, hub_encoder, hub_preprocess
from bert.model import heads, kernels, variables
from bert.modeling import BertConfig, BertModel
from bert.tasks.windows import WindowOptions

Outputs = dict[str, tf.Tensor]


class TaskModel(tf.train.Checkpoint):
  """What all task models are: an encoder with a head, a tokenizer, and where they come from.

  Attributes:
    variables: of encoder and head, by the checkpoint's names.
    trainable_variables: all of them.
    tokenize: as in a preprocess model: string `[B]` -> int32 `[B, (words), (pieces)]`.
    vocab_file: asset.
    do_lower_case: bool variable `[]`.
  """

  def __init__(self, config: BertConfig, vocab_file: str, do_lower_case: bool):
    """Builds the tokenizer; a subclass then traces its graph and calls `_list_variables`.

    Args:
      config: of the model.
      vocab_file: path of the vocabulary.
      do_lower_case: whether the vocabulary is that of an uncased model.
    """
    super().__init__()
    vocab = tokenization.load_vocab(vocab_file)
    preprocessor = hub_preprocess.Preprocessor(vocab_file, do_lower_case)
    self._cls_id, self._sep_id, self._unk_id = (vocab[t] for t in ("[CLS]", "[SEP]", "[UNK]"))
    self._config = config
    self._store = variables.VariableStore()
    self._tokenizer = preprocessor.tokenizer
    self.tokenize = preprocessor.tokenize
    self.vocab_file = tf.saved_model.Asset(vocab_file)
    self.do_lower_case = tf.Variable(do_lower_case, trainable=False, name="do_lower_case")

  def _list_variables(self):
    self.variables = list(self._store.variables.values())
    self.trainable_variables = list(self._store.trainable_variables.values())

  def _pieces(self, texts) -> tf.RaggedTensor:
    """string `[B]` to int32 `[B, (P)]`."""
    return self.tokenize(texts).merge_dims(1, 2)

  @contextlib.contextmanager
  def _building(self):
    """Within the block, variables are this model's, and nothing is built that servers lack."""
    with variables.use_store(self._store), kernels.portable_blocks():
      yield

  def _bert(self, inputs, **options) -> BertModel:
    """The encoder on what `graph_text.join` gives; to call in `_building`."""
    return BertModel(self._config, False, *(inputs[n] for n in hub_encoder.INPUTS), **options)


def string_signature(function, names: Sequence[str]) -> tf.types.experimental.ConcreteFunction:
  """What a server runs: `function` of strings `[B]`, with these names."""

  @tf.function(autograph=False)
  def serve(**texts):
    return function(*(texts[name] for name in names))

  return serve.get_concrete_function(**{n: tf.TensorSpec([None], tf.string, n) for n in names})


def write_task_model(
  export_dir: str,
  model: TaskModel,
  checkpoint_path: str,
  signature: tf.types.experimental.ConcreteFunction,
  extra: Mapping[str, str] | None = None,
) -> None:
  """Writes a task model as a SavedModel with a checkpoint's weights, whole or not at all.

  Args:
    export_dir: the folder; a SavedModel that is there is replaced.
    model: its variables are given their values.
    checkpoint_path: what `checkpoint.find_checkpoint` finds.
    signature: `serving_default`.
    extra: name -> text, files for `assets.extra/`.

  Raises:
    CheckpointError: the checkpoint lacks a variable of the model, or has it in another shape.
    OSError: `export_dir` cannot be written, or holds something else than a SavedModel.
  """
  prefix = checkpoint.find_checkpoint(checkpoint_path)
  hub_encoder.load_all(prefix, {v.name.split(":")[0]: v for v in model.variables})
  extra = {"bert_config.json": model._config.to_json_string(), **(extra or {})}
  with hub_encoder.written_aside(export_dir) as folder:
    hub_encoder.save(model, folder, {"serving_default": signature}, extra)
  logging.info("Exported the fine-tuned model of %s to %s.", prefix, export_dir)


def label_map_json(label_names: Sequence[str]) -> str:
  """label -> number, as `label_map.json` of a run has it."""
  label_map = {label: index for index, label in enumerate(label_names)}
  return json.dumps(label_map, indent=2, ensure_ascii=False) + "\n"


# ---------------------------------------------------------------------------------------------
# One answer for a text or a pair.


class SentenceModel(TaskModel):
  """Classifies texts or pairs of texts, or gives them a score.

  Attributes:
    label_names: string `[C]`.
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
    windows: WindowOptions | None = None,
  ):
    """Builds the graph, with random weights.

    Args:
      config: of the model.
      vocab_file: path of the vocabulary.
      do_lower_case: whether the vocabulary is that of an uncased model.
      max_seq_length: what is longer is cut, or read through windows of that length.
      label_names: C names, in the order of the model's outputs.
      problem_type: see `heads.PROBLEM_TYPES`.
      threshold: from which probability on a label counts as given, for multi_label.
      windows: how to read what is longer; by default it is cut.
    """
    super().__init__(config, vocab_file, do_lower_case)
    self._seq_length = max_seq_length
    self._problem_type = problem_type
    self._threshold = threshold
    self._windows = windows
    self._labels = tuple(label_names)
    self.label_names = tf.Variable(list(label_names), trainable=False, name="label_names")
    strings = tf.TensorSpec([None], tf.string)
    self.__call__.get_concrete_function(strings, strings)  # first: it makes the variables
    self.__call__.get_concrete_function(strings)
    self._list_variables()

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
    pieces = [self._pieces(text) for text in (text_a, text_b)]
    shape = self._cls_id, self._sep_id, self._seq_length
    if self._windows is None:
      return self._answers(self._logits(graph_text.pack(*pieces, *shape)))
    inputs, documents = graph_windows.pack_windows(*pieces, *shape, self._windows)
    logits = graph_windows.pool_logits(
      self._logits(inputs), documents, tf.size(text_a), self._windows.pooling
    )
    return self._answers(logits)

  def _logits(self, inputs):
    """float32 `[B, C]`."""
    with self._building():
      model = self._bert(inputs, only_pooled_output=True)
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

    def serve(*texts):
      outputs = self(*texts)
      if "label_names" in outputs:
        shape = tf.shape(outputs["probabilities"])
        outputs["label_names"] = tf.broadcast_to(outputs["label_names"], shape)
      return outputs

    return string_signature(serve, ("text_a", "text_b") if is_pair else ("text_a",))


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
  windows: WindowOptions | None = None,
) -> None:
  """Writes a `SentenceModel` as a SavedModel, whole or not at all.

  Args:
    export_dir: the folder; a SavedModel that is there is replaced.
    config: of the model.
    checkpoint_path: what `checkpoint.find_checkpoint` finds.
    vocab_file: see `SentenceModel`, also for the rest.
    do_lower_case: whether the vocabulary is that of an uncased model.
    max_seq_length: what is longer is cut, or read through windows of that length.
    label_names: C names.
    problem_type: see `heads.PROBLEM_TYPES`.
    is_pair: whether the signature `serving_default` takes `text_b`.
    windows: how to read what is longer; by default it is cut.

  Raises:
    CheckpointError: the checkpoint lacks a variable of the model, or has it in another shape.
    OSError: `export_dir` cannot be written, or holds something else than a SavedModel.
  """
  model = SentenceModel(
    config,
    vocab_file,
    do_lower_case,
    max_seq_length,
    label_names,
    problem_type,
    windows=windows,
  )
  extra = {"label_map.json": label_map_json(label_names)}
  write_task_model(export_dir, model, checkpoint_path, model.signature(is_pair), extra)
