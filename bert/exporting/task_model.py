"""The base class of fine-tuned models as SavedModels that read strings.

  model = SentenceModel(config, "vocab.txt", do_lower_case=True, max_seq_length=128,
                        label_names=["0", "1"])         # or another subclass of TaskModel
  model.export("out/export/task", "out/model.ckpt-343")

  import tensorflow_text                                # its ops are needed wherever it is loaded
  model = tf.saved_model.load("out/export/task")
  model(tf.constant(["It rains."]), tf.constant(["It is wet."]))["label"]

The graph holds every step from text to answer: the tokens of `tokenization.FullTokenizer`, cut and
packed as in training, and the fine-tuned weights.

Subclasses: `sentence_model.py`, `vector_model.py`, and `texts_model.py` of custom tasks. They need
a WordPiece vocabulary. Spans, tags, choices and other tokenizers have SavedModels of token ids
(`TokenGraph.save`), whose text is handled in Python.

Letters in shapes: B = batch size, C = number of labels, (P) = tokens of each text, ragged.
"""

import contextlib
import os
import types
from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf
from absl import logging

from bert import tokenization
from bert.checkpoints import finding, label_map
from bert.exporting import graph_text, hub_encoder, hub_preprocess, saved_models
from bert.exporting.model_folder import Described
from bert.model import kernels, variables
from bert.modeling import BertConfig, BertModel

Outputs = dict[str, tf.Tensor]


class TaskModel(tf.train.Checkpoint):
  """An encoder with a head, and the tokenizer of its vocabulary.

  A subclass defines `__call__`, which it traces in its `__init__`, and `signature`.

  Attributes:
    variables: of encoder and head, by the checkpoint's names.
    trainable_variables: all of them.
    tokenize: as in a preprocess model: string `[B]` -> int32 `[B, (words), (tokens)]`.
    vocab_file: asset.
    do_lower_case: bool variable `[]`.
    label_names: string variable `[C]`, of a model with labels.
  """

  # Keywords of `BertModel`; whoever loads a run may choose the dtype, exports are float32.
  _bert_options: Mapping[str, Any] = types.MappingProxyType({})

  def __init__(
    self, config: BertConfig, vocab_file: str, do_lower_case: bool, label_names: Sequence[str] = ()
  ):
    """Builds the tokenizer; a subclass then traces its graph and calls `_list_variables`.

    Args:
      config: of the model.
      vocab_file: path of the vocabulary.
      do_lower_case: whether the vocabulary is that of an uncased model.
      label_names: C names, in the order of the model's outputs.
    """
    super().__init__()
    preprocessor = hub_preprocess.Preprocessor(vocab_file, do_lower_case)
    self._frame = graph_text.Frame.of(tokenization.load_vocab(vocab_file))
    self._config = config
    self._store = variables.VariableStore()
    self.tokenize = preprocessor.tokenize
    self.vocab_file = saved_models.vocabulary_asset(vocab_file, self)
    self._vocab_path = os.fsdecode(vocab_file)
    self.do_lower_case = tf.Variable(do_lower_case, trainable=False, name="do_lower_case")
    self._labels = tuple(label_names)
    if label_names:
      self.label_names = tf.Variable(list(label_names), trainable=False, name="label_names")

  @classmethod
  def from_description(cls, model: Described) -> "TaskModel":
    """Creates the model of a fine-tuned run, with random weights."""
    arguments = {"max_seq_length": model.max_seq_length, **cls.options(model)}
    return cls(model.config, model.vocab_file, model.do_lower_case, **arguments)

  @classmethod
  def options(cls, model: Described) -> dict[str, Any]:
    """Returns the further arguments of this class for a fine-tuned model."""
    raise NotImplementedError

  def signature(self) -> tf.types.experimental.ConcreteFunction:
    """Returns the serving signature: strings to the answers."""
    raise NotImplementedError

  def signatures(self) -> dict[str, tf.types.experimental.ConcreteFunction]:
    """Returns all signatures by name."""
    return {"serving_default": self.signature()}

  @tf.function(autograph=False)
  def serve(self, texts) -> Outputs:
    """Calls the serving signature: the default endpoint of `keras.layers.TFSMLayer`.

    Args:
      texts: the signature's inputs by name; of a signature with one input also that alone.
    """
    signature = self.signature()
    if not isinstance(texts, dict):
      texts = dict.fromkeys(signature.structured_input_signature[1], texts)
    return signature(**texts)

  def load(self, checkpoint_path: str) -> None:
    """Assigns to the variables their values in a checkpoint.

    Raises:
      CheckpointError: the checkpoint lacks a variable, or has it in another shape.
    """
    saved_models.load_all(checkpoint_path, self.variables)

  def export(self, export_dir: str, checkpoint_path: str) -> None:
    """Writes a SavedModel with the weights of a checkpoint, whole or not at all.

    Args:
      export_dir: the folder; a SavedModel in it is replaced.
      checkpoint_path: see `finding.find_checkpoint`.

    Raises:
      CheckpointError: the checkpoint lacks a variable, or has it in another shape.
      OSError: `export_dir` cannot be written, or holds something other than a SavedModel.
    """
    prefix = finding.find_checkpoint(checkpoint_path)
    self.load(prefix)
    extra = {"bert_config.json": self._config.to_json_string()}
    extra |= saved_models.settings_of_words(self._vocab_path)
    if self._labels:
      extra[label_map.NAME] = label_map.to_json(self._labels)
    signatures = self.signatures()
    inputs = signatures["serving_default"].structured_input_signature[1]
    self.serve.get_concrete_function(dict(inputs))
    if len(inputs) == 1:
      self.serve.get_concrete_function(*inputs.values())
    with saved_models.written_aside(export_dir) as folder:
      saved_models.save(self, folder, signatures, extra)
    logging.info("Exported the fine-tuned model of %s to %s.", prefix, export_dir)

  def _list_variables(self):
    self.variables = list(self._store.variables.values())
    self.trainable_variables = list(self._store.trainable_variables.values())

  def _pieces(self, texts) -> tf.RaggedTensor:
    """Tokenizes string `[B]` to int32 `[B, (P)]`."""
    return self.tokenize(texts).merge_dims(1, 2)

  @contextlib.contextmanager
  def _building(self):
    """Makes variables in the block this model's, and ops those that servers have."""
    with variables.use_store(self._store), kernels.portable_blocks():
      yield

  def _bert(self, inputs, **options) -> BertModel:
    """Applies the encoder to results of `graph_text.join`; call it within `_building`."""
    tensors = (inputs[name] for name in hub_encoder.INPUTS)
    return BertModel(self._config, False, *tensors, **{**self._bert_options, **options})


def strings(name: str) -> tf.TensorSpec:
  """Describes an input of a signature: string `[B]`."""
  return tf.TensorSpec([None], tf.string, name)


def string_signature(function, *specs: tf.TensorSpec) -> tf.types.experimental.ConcreteFunction:
  """Creates the signature of `function`, whose arguments have the names of `specs`."""

  @tf.function(autograph=False)
  def serve(**texts):
    return function(*(texts[spec.name] for spec in specs))

  return serve.get_concrete_function(**{spec.name: spec for spec in specs})
