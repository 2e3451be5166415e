"""Models loaded for prediction: checkpoints with their configuration and vocabulary, SavedModels.

Both become a `LoadedFunction`: traced once, for batches of any size and length.

  config, tokenizer, prefix = load_model("uncased_L-12_H-768_A-12")
  function = load_graph(build, ["input_ids", "input_mask", "segment_ids"], prefix)
  function({"input_ids": np.array([[101, 102]]), ...})          # the outputs of `build`

Letters in shapes: B = batch size, S = sequence length.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from absl import logging

from bert.checkpoints import bundle_files, model_files, model_source
from bert.io import installation, tokenizer_settings
from bert.predicting import saved_texts
from bert.tasks import kinds

Arrays = Mapping[str, Any]  # name -> array or tensor


class LoadedFunction:
  """A traced function in the form that `Predictor` needs.

  Attributes:
    inputs: names of its arguments.
    needs_pairs: whether `text_b` cannot be missing, because the model compares it with `text_a`.
  """

  needs_pairs = False

  def __init__(self, function, inputs: Sequence[str], owner):
    """Also keeps `owner`, which has the variables: a traced function refers to them weakly."""
    self.inputs = tuple(inputs)
    self._function = function
    self._owner = owner

  @classmethod
  def of_strings(cls, function, owner) -> "LoadedFunction":
    """Wraps a signature whose inputs are strings `[B]`; a ValueError for others."""
    import tensorflow as tf

    specs = function.structured_input_signature[1]
    for name, spec in specs.items():
      if spec.dtype != tf.string or spec.shape.rank != 1:
        raise ValueError(f"the input {name} is {spec.dtype.name}, of shape {spec.shape}, not text")
    loaded = cls(function, sorted(specs), owner)  # a SavedModel stores them in any order
    loaded.needs_pairs = saved_texts.compares(function.structured_outputs)
    return loaded

  def __call__(self, batch: Arrays) -> Arrays:
    """Runs the function on NumPy arrays or lists of strings."""
    import tensorflow as tf

    return self._function(**{name: tf.constant(batch[name]) for name in self.inputs})


# ---------------------------------------------------------------------------------------------
# SavedModels.


def load_signature(saved_model: str) -> LoadedFunction:
  """`serving_default` of a task model, whose inputs are strings.

  Raises:
    ValueError: an input is not a string.
    OSError: the folder holds no SavedModel.
  """
  installation.text_operations("An exported task model")  # registers the ops of tokenizers

  from bert.exporting import saved_models

  task = os.path.join(saved_model, "task")
  folder = task if bundle_files.is_saved_model(task) else saved_model
  if not bundle_files.is_saved_model(folder):
    raise FileNotFoundError(
      f"{saved_model} holds no SavedModel: --do_export of {kinds.scripts_in_words()} writes one, "
      "into OUTPUT_DIR/export/task."
    )
  model = saved_models.load(folder)
  if signature := saved_texts.signature(folder):
    saved_texts.check_is_current(folder, signature)
  try:
    return LoadedFunction.of_strings(model.signatures["serving_default"], owner=model)
  except (KeyError, ValueError) as error:
    raise ValueError(
      f"{folder} does not take texts ({error}): it is not a task model. With an exported "
      "encoder, Predictor.from_checkpoint and extract_features.py compute vectors, and "
      "predict_masked.py guesses masked words."
    ) from None


# ---------------------------------------------------------------------------------------------
# Checkpoints.


def load_model(
  init_checkpoint: str,
  bert_config_file: str | None = None,
  vocab_file: str | None = None,
  do_lower_case: bool | None = None,
  max_seq_length: int | None = 128,
  special_tokens: Sequence[str] = (),
):
  """Finds the files that belong to a checkpoint, and checks that they are consistent.

  Args:
    init_checkpoint: a checkpoint's prefix, a folder with one, an exported encoder, or the name of a
      released model, which is then downloaded.
    bert_config_file: by default bert_config.json beside the checkpoint.
    vocab_file: by default vocab.txt or a sentencepiece model beside the checkpoint.
    do_lower_case: True for uncased models; by default as stored with the checkpoint, else True.
    max_seq_length: the longest sequence to predict; None for `readable_length`.
    special_tokens: see `tokenization.FullTokenizer`.

  Returns:
    `(configuration.BertConfig, the tokenizer, prefix of the checkpoint)`.

  Raises:
    ValueError: a file is missing or bad, or they do not belong together.
  """
  from bert import tokenization
  from bert.checkpoints import finding
  from bert.model.configuration import BertConfig

  path = model_source.local_path(init_checkpoint)
  checkpoint = finding.find(path)
  prefix = checkpoint.prefix
  config_file = bert_config_file or model_files.need_config(path)
  config = BertConfig.from_json_file(config_file)
  vocab_file = vocab_file or model_files.need_vocabulary(path)
  if do_lower_case is None:
    stated = tokenizer_settings.beside(vocab_file).do_lower_case
    stored = checkpoint.do_lower_case
    do_lower_case = (stated if stored is None else stored) is not False
  tokenization.validate_case_matches_checkpoint(do_lower_case, prefix)
  model_files.check_case(do_lower_case, checkpoint)
  tokenizer = tokenization.load_tokenizer(vocab_file, do_lower_case, special_tokens)
  model_files.check_vocabulary_size(
    tokenizer.vocab, tokenizer.vocab_file, config.vocab_size, config_file, config.family.name
  )
  trained_with = checkpoint.facts.get("vocabulary")
  if trained_with not in (None, tokenization.vocabulary_hash(tokenizer.vocab)):
    # Not an error: an unused token may have been given a name.
    logging.warning(
      "%s is not the vocabulary that %s was trained with.", tokenizer.vocab_file, prefix
    )
  if max_seq_length is not None:
    check_length(max_seq_length, config.longest_sequence)
  return config, tokenizer, prefix


def readable_length(max_seq_length: int | None, longest: int, default: int = 128) -> int:
  """Returns a length; where it is None, the default, as far as the model can read it."""
  return min(default, longest) if max_seq_length is None else max_seq_length


def check_length(max_seq_length: int, max_position_embeddings: int) -> None:
  """Raises a ValueError for a length that is too large for the model, or below 3."""
  if not 3 <= max_seq_length <= max_position_embeddings:
    raise ValueError(
      f"max_seq_length is {max_seq_length}, but must be from 3 to {max_position_embeddings}, the "
      "number of positions of the model."
    )


def load_graph(
  build: Callable[[Arrays], Arrays],
  inputs: Sequence[str],
  prefix: str,
  optional: tuple[str, ...] = (),
) -> LoadedFunction:
  """Traces a graph function once, and loads its variables from a checkpoint.

  Args:
    build: int32 inputs `[B, S]` of unknown sizes -> outputs `[B, ...]`.
    inputs: names of the inputs.
    prefix: the checkpoint's, see `finding.find_checkpoint`.
    optional: prefixes of variables that may be missing, because no output depends on them.

  Returns:
    The `compute` of a `Predictor`.

  Raises:
    CheckpointError: a variable is missing, or has another shape.
  """
  import tensorflow as tf

  from bert.exporting import saved_models
  from bert.model.variables import FilledStore, traced_once, use_store

  store = FilledStore()

  def build_in_store(**batch):
    with use_store(store):
      return build(batch)

  specs = {name: tf.TensorSpec([None, None], tf.int32, name) for name in inputs}
  # `tf.function` traces a call twice if it lifts the variables that the call creates.
  with traced_once():
    graph = tf.function(build_in_store, autograph=False).get_concrete_function(**specs)
  saved_models.load_all(prefix, store.variables.values(), optional)
  store.finish()
  return LoadedFunction(graph, inputs, owner=store)
