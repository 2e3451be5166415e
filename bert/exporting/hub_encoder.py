"""Encoders as SavedModels for `hub.load` and `hub.KerasLayer`, used as the published ones are.

  export_encoder("out/encoder", config, "out/model.ckpt-343", "vocab.txt", do_lower_case=True)

  encoder = tf.saved_model.load("out/encoder")         # TensorFlow alone is needed
  encoder(inputs)["pooled_output"]                     # inputs: see `Encoder.__call__`
  encoder(inputs, training=True)                       # with dropout
  encoder.mlm({**inputs, "masked_lm_positions": p})    # if the checkpoint has that head

The graph is that of `modeling.BertModel`, and the variables keep the checkpoint's names, so that an
exported folder can be an `--init_checkpoint` again (`finding.find_checkpoint`). The interface of
these objects: https://github.com/tensorflow/hub, docs/reusable_saved_models.md and
docs/common_saved_model_apis/text.md.

Letters in shapes: B = batch size, S = sequence length, W = hidden size, P = masked positions for
each sequence, V = vocabulary size.
"""

import tensorflow as tf
from absl import logging

from bert.checkpoints import finding, reading
from bert.exporting import saved_models
from bert.model import heads, kernels, variables
from bert.model.variable_shapes import has_word_head
from bert.modeling import BertConfig, BertModel, get_shape_list

INPUTS = ("input_word_ids", "input_mask", "input_type_ids")


def int32_inputs(*names: str) -> dict[str, tf.TensorSpec]:
  """Returns name -> int32 `[B, S]`, both sizes unknown."""
  return {name: tf.TensorSpec([None, None], tf.int32, name) for name in names}


# ---------------------------------------------------------------------------------------------
# The objects. Each is a `tf.train.Checkpoint` with plain lists of variables: a SavedModel keeps
# tracked attributes and traced functions, but not the properties of a `tf.Module`.


class Encoder(tf.train.Checkpoint):
  """The root of an encoder's SavedModel.

  Attributes:
    variables: in the order of the original's checkpoints.
    trainable_variables: all of them.
    regularization_losses: none; BERT's weight decay lives in its optimizer.
    vocab_file: asset, to read as `vocab_file.asset_path`.
    do_lower_case: bool variable `[]`.
    mlm: a `MaskedLm`, where `has_mlm`.
  """

  def __init__(
    self,
    config: BertConfig,
    vocab_file: str,
    do_lower_case: bool,
    has_mlm: bool = False,
    store: variables.VariableStore | None = None,
  ):
    """Builds the graphs, with random weights unless `store` has the variables already.

    Args:
      config: sizes, and dropout rates with `training=True`.
      vocab_file: path of the vocabulary.
      do_lower_case: whether the vocabulary is that of an uncased model.
      has_mlm: whether to build the masked language model as well.
      store: the store of the variables, existing or created.
    """
    super().__init__()
    self._config = config
    self._store = store or variables.VariableStore()
    _trace(self.__call__, int32_inputs(*INPUTS))
    for endpoint in (self.with_dropout, self.serve, self.serving_default):
      endpoint.get_concrete_function(int32_inputs(*INPUTS))
    _list_variables(self, self._store)
    self.vocab_file = saved_models.vocabulary_asset(vocab_file, self)
    self.do_lower_case = tf.Variable(do_lower_case, trainable=False, name="do_lower_case")
    if has_mlm:
      self.mlm = MaskedLm(config, self._store)

  @tf.function(autograph=False)
  def __call__(self, inputs, training=False):
    """Encodes.

    Args:
      inputs: dict of int32 `[B, S]`: `input_word_ids`, `input_mask` (1 for a token, 0 for padding)
        and `input_type_ids`.
      training: Python bool, whether to apply dropout.

    Returns:
      Dict of float32: `pooled_output` `[B, W]`, also as `default`;
      `sequence_output` `[B, S, W]`; `encoder_outputs`, a list of `[B, S, W]` for each layer.
    """
    outputs, _ = _encode(self._config, self._store, inputs, training)
    return {**outputs, "default": outputs["pooled_output"]}

  @tf.function(autograph=False)
  def with_dropout(self, inputs):
    """Calls `self(inputs, training=True)`, for callers that name a function.

    Keras 3 is one: `TFSMLayer(export_dir, call_training_endpoint="with_dropout")`.
    """
    return self(inputs, training=True)

  @tf.function(autograph=False)
  def serve(self, inputs):
    """Calls `self(inputs)`: the default endpoint of `keras.layers.TFSMLayer`."""
    return self(inputs)

  @tf.function(autograph=False)
  def serving_default(self, inputs):
    """Calls `serve` by the name of the signature, for `TFSMLayer(..., call_endpoint=...)`.

    Keras calls an endpoint with one argument, which the signature itself does not take. Only the
    outputs of the signature.
    """
    return self._serve(**inputs)

  @tf.function(autograph=False)
  def _serve(self, input_word_ids, input_mask, input_type_ids):
    """Computes the signature `serving_default`, which cannot hold a list."""
    values = (input_word_ids, input_mask, input_type_ids)
    outputs = self(dict(zip(INPUTS, values, strict=True)))
    return {name: outputs[name] for name in ("pooled_output", "sequence_output")}

  @tf.function(autograph=False)
  def serve_examples(self, examples):
    """Computes the signature `serving_examples`: string `[B]`, serialized `tf.train.Example`s.

    Each holds the three inputs as int64 lists of equal length, with or without padding.
    """
    lists = tf.io.RaggedFeature(tf.int64, row_splits_dtype=tf.int64)
    features = tf.io.parse_example(examples, dict.fromkeys(INPUTS, lists))
    lengths = [features[name].row_lengths() for name in INPUTS]
    checks = [
      tf.debugging.assert_equal(
        length,
        lengths[0],
        f"An example's {INPUTS[0]} and {name} differ in length, or one of them is missing.",
      )
      for name, length in zip(INPUTS[1:], lengths[1:], strict=True)
    ]
    with tf.control_dependencies(checks):
      return self._serve(*(tf.cast(features[name].to_tensor(), tf.int32) for name in INPUTS))


class MaskedLm(tf.train.Checkpoint):
  """The encoder with the head for masked words; `Encoder.mlm`.

  Attributes:
    variables: those of the encoder, the same objects, and five of the head.
    trainable_variables: all of them.
    regularization_losses: none.
  """

  def __init__(self, config: BertConfig, store: variables.VariableStore):
    """Builds the graphs; arguments as of `Encoder`."""
    super().__init__()
    self._config = config
    self._store = store
    _trace(self.__call__, int32_inputs(*INPUTS, "masked_lm_positions"))
    _list_variables(self, store)

  @tf.function(autograph=False)
  def __call__(self, inputs, training=False):
    """Encodes and scores words.

    Args:
      inputs: as for `Encoder`, and `masked_lm_positions`, int32 `[B, P]`, padded with zeros.
      training: Python bool, whether to apply dropout.

    Returns:
      What `Encoder` returns, without `default`, and `mlm_logits`, float32 `[B, P, V]`.
    """
    outputs, embedding_table = _encode(self._config, self._store, inputs, training)
    positions = inputs["masked_lm_positions"]
    vectors = heads.gather_indexes(outputs["sequence_output"], positions)  # [B*P, W]
    with variables.use_store(self._store), kernels.portable_blocks():
      logits = heads.masked_lm_logits(self._config, vectors, embedding_table)  # [B*P, V]
    shape = [*get_shape_list(positions), self._config.vocab_size]
    return {**outputs, "mlm_logits": tf.reshape(logits, shape)}


def _encode(config, store, inputs, training):
  """Returns the named outputs of a BertModel, and its embedding table."""
  # No `random_stream` here: dropout then draws its seeds from an operation with a state of its own,
  # so every call of a loaded model gets new random bits, and no seed must be saved.
  with variables.use_store(store), kernels.portable_blocks():
    model = BertModel(config, training, *(inputs[name] for name in INPUTS))
  outputs = {
    "pooled_output": model.get_pooled_output(),
    "sequence_output": model.get_sequence_output(),
    "encoder_outputs": model.get_all_encoder_layers(),
  }
  return outputs, model.get_embedding_table()


def _trace(function, inputs):
  """Traces a function with dropout and without: a SavedModel holds only what was traced."""
  for training in (False, True):
    function.get_concrete_function(inputs, training=training)


def _list_variables(root, store):
  root.variables = list(store.variables.values())
  root.trainable_variables = list(store.trainable_variables.values())
  root.regularization_losses = []


# ---------------------------------------------------------------------------------------------
# Writing.


def export_encoder(
  export_dir: str, config: BertConfig, init_checkpoint: str, vocab_file: str, do_lower_case: bool
) -> None:
  """Writes an encoder's SavedModel, with `.mlm` if the checkpoint has that head.

  Args:
    export_dir: the folder; a SavedModel in it is replaced once the new one is complete.
    config: of the model.
    init_checkpoint: see `finding.find_checkpoint`: prefix, folder, exported encoder.
    vocab_file: the vocabulary; it becomes an asset of the SavedModel.
    do_lower_case: whether the vocabulary is that of an uncased model.

  Raises:
    CheckpointError: the checkpoint does not hold the whole encoder.
    OSError: `export_dir` cannot be written, or holds something other than a SavedModel.
  """
  prefix = finding.find_checkpoint(init_checkpoint)
  has_mlm = has_word_head(config, reading.names_and_shapes(prefix))
  store = variables.VariableStore()
  with saved_models.traced_to_save():
    encoder = Encoder(config, vocab_file, do_lower_case, has_mlm, store)
  saved_models.load_all(prefix, store.variables.values())
  with saved_models.written_aside(export_dir) as folder:
    examples = tf.TensorSpec([None], tf.string, "examples")
    with saved_models.traced_to_save():
      signatures = {
        "serving_default": encoder._serve.get_concrete_function(**int32_inputs(*INPUTS)),
        "serving_examples": encoder.serve_examples.get_concrete_function(examples),
      }
    extra = {"bert_config.json": config.to_json_string()}
    extra |= saved_models.settings_of_words(vocab_file)
    saved_models.save(encoder, folder, signatures, extra)
  logging.info("Exported the encoder of %s%s to %s.", prefix, " with .mlm" * has_mlm, export_dir)
