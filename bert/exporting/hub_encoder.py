"""Encoders as SavedModels for `hub.load` and `hub.KerasLayer`, used as the published ones are.

  export_encoder("out/encoder", config, "out/model.ckpt-343", "vocab.txt", do_lower_case=True)

  encoder = tf.saved_model.load("out/encoder")         # TensorFlow alone is needed
  encoder(inputs)["pooled_output"]                     # inputs: see `Encoder.__call__`
  encoder(inputs, training=True)                       # drops out
  encoder.mlm({**inputs, "masked_lm_positions": p})    # if the checkpoint has that head

The graph is that of `modeling.BertModel`, and the variables keep the checkpoint's names, so that an
exported folder serves as `--init_checkpoint` again (`checkpoint.find_checkpoint`). What an object
offers and why: https://github.com/tensorflow/hub, docs/reusable_saved_models.md and
docs/common_saved_model_apis/text.md.

Letters in shapes: B = batch size, S = sequence length, W = hidden size, P = masked positions for
each sequence, V = vocabulary size.
"""

import contextlib
import os
from collections.abc import Iterator, Mapping

import tensorflow as tf
from absl import logging

from bert.checkpoints import checkpoint
from bert.io import atomic_files
from bert.model import heads, kernels, variables
from bert.modeling import BertConfig, BertModel, get_shape_list

INPUTS = ("input_word_ids", "input_mask", "input_type_ids")

_MLM_VARIABLES = (
  "cls/predictions/transform/dense/kernel",
  "cls/predictions/transform/dense/bias",
  "cls/predictions/transform/LayerNorm/beta",
  "cls/predictions/transform/LayerNorm/gamma",
  "cls/predictions/output_bias",
)


def int32_inputs(*names: str) -> dict[str, tf.TensorSpec]:
  """name -> int32 `[B, S]`, both sizes unknown."""
  return {name: tf.TensorSpec([None, None], tf.int32, name) for name in names}


# ---------------------------------------------------------------------------------------------
# The objects. Each is a `tf.train.Checkpoint` with plain lists of variables: what a SavedModel
# keeps are tracked attributes and traced functions, whereas a `tf.Module`'s properties get lost.


class Encoder(tf.train.Checkpoint):
  """The root of an encoder's SavedModel.

  Attributes:
    variables: in the order of the original's checkpoints.
    trainable_variables: all of them.
    regularization_losses: none; BERT's weight decay lives in its optimizer.
    vocab_file: asset, to read as `vocab_file.asset_path`.
    do_lower_case: bool variable `[]`.
    mlm: a `MaskedLm`, if asked for.
  """

  def __init__(
    self,
    config: BertConfig,
    vocab_file: str,
    do_lower_case: bool,
    has_mlm: bool = False,
    store: variables.VariableStore | None = None,
  ):
    """Builds the graphs; variables are random if `store` does not have them yet.

    Args:
      config: sizes, and dropout rates with `training=True`.
      vocab_file: path of the vocabulary.
      do_lower_case: whether the vocabulary is that of an uncased model.
      has_mlm: whether to build the masked language model, too.
      store: where variables are found or made.
    """
    super().__init__()
    self._config = config
    self._store = store or variables.VariableStore()
    _trace(self.__call__, int32_inputs(*INPUTS))
    self.with_dropout.get_concrete_function(int32_inputs(*INPUTS))
    _list_variables(self, self._store)
    self.vocab_file = tf.saved_model.Asset(vocab_file)
    self.do_lower_case = tf.Variable(do_lower_case, trainable=False, name="do_lower_case")
    if has_mlm:
      self.mlm = MaskedLm(config, self._store)

  @tf.function(autograph=False)
  def __call__(self, inputs, training=False):
    """Encodes.

    Args:
      inputs: dict of int32 `[B, S]`: `input_word_ids`, `input_mask` (1 for a piece, 0 for padding)
        and `input_type_ids`.
      training: Python bool, whether to drop out.

    Returns:
      Dict of float32: `pooled_output` `[B, W]`, which `default` is another name of;
      `sequence_output` `[B, S, W]`; `encoder_outputs`, a list of `[B, S, W]` for each layer.
    """
    outputs, _ = _encode(self._config, self._store, inputs, training)
    return {**outputs, "default": outputs["pooled_output"]}

  @tf.function(autograph=False)
  def with_dropout(self, inputs):
    """`self(inputs, training=True)`, for those who name functions instead of passing `training`.

    Such as Keras 3: `keras.layers.TFSMLayer(export_dir, call_endpoint="__call__",
    call_training_endpoint="with_dropout")`.
    """
    return self(inputs, training=True)

  @tf.function(autograph=False)
  def serve(self, input_word_ids, input_mask, input_type_ids):
    """The signature `serving_default`, which cannot hold a list."""
    values = (input_word_ids, input_mask, input_type_ids)
    outputs = self(dict(zip(INPUTS, values, strict=True)))
    return {name: outputs[name] for name in ("pooled_output", "sequence_output")}

  @tf.function(autograph=False)
  def serve_examples(self, examples):
    """The signature `serving_examples`: string `[B]`, serialized `tf.train.Example`s.

    Each holds the three inputs as int64 lists, all of one length and without padding, or with it.
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
      return self.serve(*(tf.cast(features[name].to_tensor(), tf.int32) for name in INPUTS))


class MaskedLm(tf.train.Checkpoint):
  """The encoder with the head that guesses masked words; `Encoder.mlm`.

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
      inputs: as for `Encoder`, and `masked_lm_positions`, int32 `[B, P]`, filled up with zeros.
      training: Python bool, whether to drop out.

    Returns:
      What `Encoder` does, without `default`, and `mlm_logits`, float32 `[B, P, V]`.
    """
    outputs, embedding_table = _encode(self._config, self._store, inputs, training)
    positions = inputs["masked_lm_positions"]
    vectors = heads.gather_indexes(outputs["sequence_output"], positions)  # [B*P, W]
    with variables.use_store(self._store), kernels.portable_blocks():
      logits = heads.masked_lm_logits(self._config, vectors, embedding_table)  # [B*P, V]
    shape = [*get_shape_list(positions), self._config.vocab_size]
    return {**outputs, "mlm_logits": tf.reshape(logits, shape)}


def _encode(config, store, inputs, training):
  """The named outputs of a BertModel, and its embedding table."""
  # No `random_stream` here: dropout then draws its seeds from an operation with a state of its own,
  # so every call of a loaded model gets fresh bits, and there is no seed to save.
  with variables.use_store(store), kernels.portable_blocks():
    model = BertModel(config, training, *(inputs[name] for name in INPUTS))
  outputs = {
    "pooled_output": model.get_pooled_output(),
    "sequence_output": model.get_sequence_output(),
    "encoder_outputs": model.get_all_encoder_layers(),
  }
  return outputs, model.get_embedding_table()


def _trace(function, inputs):
  """A SavedModel holds only what was traced: once with dropout, once without."""
  for training in (False, True):
    function.get_concrete_function(inputs, training=training)


def _list_variables(root, store):
  root.variables = list(store.variables.values())
  root.trainable_variables = list(store.trainable_variables.values())
  root.regularization_losses = []


# ---------------------------------------------------------------------------------------------
# Writing.


def export_encoder(
  export_dir: str,
  config: BertConfig,
  init_checkpoint: str,
  vocab_file: str,
  do_lower_case: bool,
) -> None:
  """Writes an encoder's SavedModel, with `.mlm` if the checkpoint has that head.

  Args:
    export_dir: the folder; a SavedModel that is there is replaced once the new one is complete.
    config: of the model.
    init_checkpoint: what `checkpoint.find_checkpoint` finds: prefix, folder, exported encoder.
    vocab_file: the vocabulary; it becomes an asset of the SavedModel.
    do_lower_case: whether the vocabulary is that of an uncased model.

  Raises:
    CheckpointError: the checkpoint does not hold the whole encoder.
    OSError: `export_dir` cannot be written, or holds something else than a SavedModel.
  """
  prefix = checkpoint.find_checkpoint(init_checkpoint)
  has_mlm = set(_MLM_VARIABLES) <= set(checkpoint.names_and_shapes(prefix))
  encoder = Encoder(config, vocab_file, do_lower_case, has_mlm)
  names = {variable.name.split(":")[0]: variable for variable in _all_variables(encoder)}
  load_all(prefix, names)
  with written_aside(export_dir) as folder:
    examples = tf.TensorSpec([None], tf.string, "examples")
    signatures = {
      "serving_default": encoder.serve.get_concrete_function(**int32_inputs(*INPUTS)),
      "serving_examples": encoder.serve_examples.get_concrete_function(examples),
    }
    save(encoder, folder, signatures, {"bert_config.json": config.to_json_string()})
  logging.info("Exported the encoder of %s%s to %s.", prefix, " with .mlm" * has_mlm, export_dir)


def _all_variables(encoder):
  return encoder.mlm.variables if hasattr(encoder, "mlm") else encoder.variables


def load_all(prefix: str, wanted: Mapping[str, tf.Variable]) -> None:
  """Initialises variables by name, each of them: what is exported must not be random.

  Raises:
    CheckpointError: the checkpoint lacks a variable, or has it in another shape.
  """
  report = checkpoint.init_from_checkpoint(prefix, wanted, required_scope="")
  if report.missing:
    raise checkpoint.CheckpointError(
      f"{prefix} cannot be exported, {len(report.missing)} of {len(wanted)} variables are not in "
      f"it: {checkpoint.abbreviate(report.missing)}. Does bert_config.json belong to it?"
    )


def save(root, folder: str, signatures: Mapping, extra: Mapping[str, str]) -> None:
  """`tf.saved_model.save`, and files that no graph reads, in `assets.extra/` as is the custom.

  Args:
    root: the trackable object.
    folder: where to.
    signatures: name -> concrete function.
    extra: file name -> text.
  """
  tf.saved_model.save(root, folder, signatures=dict(signatures))
  os.makedirs(os.path.join(folder, "assets.extra"), exist_ok=True)
  for name, text in extra.items():
    atomic_files.write_text(os.path.join(folder, "assets.extra", name), text)


@contextlib.contextmanager
def written_aside(export_dir: str) -> Iterator[str]:
  """`files.folder_written_whole` for a SavedModel: gives a folder, which becomes `export_dir`.

  Raises:
    OSError: it cannot be written, or `export_dir` holds something else than a SavedModel.
  """
  path = os.path.abspath(export_dir)
  if os.path.exists(path) and os.listdir(path) and not tf.saved_model.contains_saved_model(path):
    raise FileExistsError(
      f"{export_dir} is there and is no SavedModel: remove it, or choose another --export_dir."
    )
  with atomic_files.folder_written_whole(path) as folder:
    try:
      yield folder
    except (tf.errors.OpError, OSError) as error:
      reason = getattr(error, "message", None) or getattr(error, "strerror", None) or error
      raise OSError(f"Cannot write {export_dir}: {reason}") from None
