"""Models that are loaded to predict with: checkpoints with what belongs to them, and SavedModels.

Both become a `LoadedFunction`: traced once, for batches of any size and length.

  config, tokenizer, prefix = load_model("uncased_L-12_H-768_A-12")
  function = load_graph(build, ["input_ids", "input_mask", "segment_ids"], prefix)
  function({"input_ids": np.array([[101, 102]]), ...})          # what `build` makes of them

Letters in shapes: B = batch size, S = sequence length.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

Arrays = Mapping[str, Any]  # name -> array or tensor


class LoadedFunction:
  """A traced function as `Predictor` takes it.

  Attributes:
    inputs: names of its arguments.
    list_inputs: those of them that take several strings for each item, `[B, any]`.
  """

  def __init__(self, function, inputs: Sequence[str], owner, list_inputs: Sequence[str] = ()):
    """Keeps `owner`, too, which has the variables: a traced function refers to them weakly."""
    self.inputs = tuple(inputs)
    self.list_inputs = tuple(list_inputs)
    self._function = function
    self._owner = owner

  @classmethod
  def of_strings(cls, function, owner) -> "LoadedFunction":
    """A signature whose inputs are strings `[B]`, or `[B, any]`.

    Raises:
      ValueError: it takes something else.
    """
    import tensorflow as tf

    specs = function.structured_input_signature[1]
    for name, spec in specs.items():
      if spec.dtype != tf.string or spec.shape.rank not in (1, 2):
        raise ValueError(f"the input {name} is {spec.dtype.name}, of shape {spec.shape}: no text.")
    lists = [name for name, spec in specs.items() if spec.shape.rank == 2]
    return cls(function, sorted(specs), owner, lists)  # in a file, they have any order

  def __call__(self, batch: Arrays) -> Arrays:
    """Runs the function on NumPy arrays or lists of strings."""
    import tensorflow as tf

    return self._function(**{name: tf.constant(batch[name]) for name in self.inputs})


# ---------------------------------------------------------------------------------------------
# SavedModels.


def load_signature(saved_model: str) -> LoadedFunction:
  """`serving_default` of a task model, whose inputs are strings.

  Raises:
    ValueError: it takes something else.
    OSError: there is no SavedModel.
  """
  import tensorflow as tf
  import tensorflow_text  # noqa: F401  (registers the ops of tokenizers)

  task = os.path.join(saved_model, "task")
  folder = task if tf.saved_model.contains_saved_model(task) else saved_model
  if not tf.saved_model.contains_saved_model(folder):
    raise FileNotFoundError(
      f"{saved_model} holds no SavedModel: --do_export of run_classifier.py and its siblings "
      "writes one, into OUTPUT_DIR/export/task."
    )
  model = load_saved_model(folder)
  try:
    return LoadedFunction.of_strings(model.signatures["serving_default"], owner=model)
  except (KeyError, ValueError) as error:
    raise ValueError(
      f"{folder} does not take texts ({error}): it is no task model. Vectors of an exported "
      "encoder are had by Predictor.from_checkpoint and extract_features.py, masked words by "
      "predict_masked.py."
    ) from None


def load_saved_model(folder: str):
  """What `tf.saved_model.load` gives.

  Raises:
    ValueError: its files are damaged; TensorFlow has an error of another kind for each way.
  """
  import tensorflow as tf
  from google.protobuf.message import DecodeError

  from bert.checkpoints import checkpoint

  failures = (tf.errors.OpError, DecodeError, OSError, ValueError, LookupError, TypeError)
  try:
    return tf.saved_model.load(folder)
  except (*failures, AttributeError, AssertionError, RuntimeError) as error:
    reason = checkpoint.first_line(error)
    raise ValueError(f"The SavedModel {folder} is damaged, or incomplete: {reason:.200}") from None


# ---------------------------------------------------------------------------------------------
# Checkpoints.


def load_model(
  init_checkpoint: str,
  bert_config_file: str | None = None,
  vocab_file: str | None = None,
  do_lower_case: bool | None = None,
  max_seq_length: int = 128,
  special_tokens: Sequence[str] = (),
):
  """Finds what belongs to a checkpoint, and checks that it fits together.

  Args:
    init_checkpoint: a checkpoint's prefix, a folder with one, an exported encoder, or the name of a
      released model, which is then downloaded.
    bert_config_file: by default bert_config.json beside the checkpoint.
    vocab_file: by default vocab.txt beside the checkpoint.
    do_lower_case: True for uncased models; by default what an export says, True for others.
    max_seq_length: what will be asked of the model.
    special_tokens: see `tokenization.FullTokenizer`.

  Returns:
    `(configuration.BertConfig, tokenization.FullTokenizer, prefix of the checkpoint)`.

  Raises:
    ValueError: a file is missing or bad, or they do not belong together.
  """
  from bert import tokenization
  from bert.checkpoints import checkpoint
  from bert.io import download_cache
  from bert.model.configuration import BertConfig

  path = os.fspath(init_checkpoint)
  if download_cache.is_released_name(path) and not os.path.exists(path):
    path = download_cache.download_model(path)
  prefix = checkpoint.find_checkpoint(path)
  folder = path if os.path.isdir(path) else os.path.dirname(path) or "."
  config = BertConfig.from_json_file(
    bert_config_file or beside(folder, "bert_config.json", "config.json")
  )
  do_lower_case = _case_of(prefix, do_lower_case)
  tokenizer = tokenization.FullTokenizer(
    vocab_file or beside(folder, "vocab.txt"), do_lower_case, special_tokens
  )
  largest_id = max(tokenizer.vocab.values())
  if largest_id >= config.vocab_size:
    raise ValueError(
      f"{tokenizer.vocab_file} numbers its tokens up to {largest_id}, but the config of {prefix} "
      f"has vocab_size {config.vocab_size}: they do not belong to the same model."
    )
  check_length(max_seq_length, config.max_position_embeddings)
  return config, tokenizer, prefix


def check_length(max_seq_length: int, max_position_embeddings: int) -> None:
  """Raises a ValueError if sequences could be longer than the model takes, or hold no text."""
  if not 3 <= max_seq_length <= max_position_embeddings:
    raise ValueError(
      f"max_seq_length is {max_seq_length}, but must be from 3 to {max_position_embeddings}, which "
      "is as far as the model knows positions."
    )


def _case_of(prefix: str, do_lower_case: bool | None) -> bool:
  """Whether to lower-case, checked by what an export or the name of a released model says."""
  from bert import tokenization
  from bert.checkpoints import checkpoint

  exported = checkpoint.read_do_lower_case(prefix)
  if do_lower_case is None:
    do_lower_case = True if exported is None else exported
  if exported not in (None, do_lower_case):
    raise ValueError(
      f"do_lower_case is {do_lower_case}, but {prefix} was exported with {exported}."
    )
  tokenization.validate_case_matches_checkpoint(do_lower_case, prefix)
  return do_lower_case


def beside(folder: str, *names: str) -> str:
  """A file of a model's folder, or of an export's; the first of `names` that is there.

  Raises:
    ValueError: there is none.
  """
  for parts in (
    (),
    ("assets",),
    ("assets.extra",),
    ("encoder", "assets"),
    ("encoder", "assets.extra"),
  ):
    for name in names:
      path = os.path.join(folder, *parts, name)
      if os.path.isfile(path):
        return path
  raise ValueError(f"There is no {' or '.join(names)} in {folder}: give its path.")


def load_graph(
  build: Callable[[Arrays], Arrays],
  inputs: Sequence[str],
  prefix: str,
  optional: tuple[str, ...] = (),
) -> LoadedFunction:
  """Traces a graph function once, and gives its variables their values in a checkpoint.

  Args:
    build: makes outputs `[B, ...]` of int32 inputs `[B, S]`; sizes are unknown to it.
    inputs: names of the inputs.
    prefix: the checkpoint's, see `checkpoint.find_checkpoint`.
    optional: beginnings of variables' names that may be missing, since no output depends on them.

  Returns:
    What `Predictor` takes as `compute`.

  Raises:
    CheckpointError: a variable is missing, or has another shape.
  """
  import tensorflow as tf

  from bert.checkpoints import checkpoint
  from bert.model.variables import VariableStore, use_store

  store = VariableStore()

  def build_in_store(**batch):
    with use_store(store):
      return build(batch)

  specs = {name: tf.TensorSpec([None, None], tf.int32, name) for name in inputs}
  # Told that a call creates variables, `tf.function` would trace it twice.
  with tf.variable_creator_scope(_create_unlifted):
    graph = tf.function(build_in_store, autograph=False).get_concrete_function(**specs)
  report = checkpoint.init_from_checkpoint(prefix, store.variables, required_scope="")
  missing = [name for name in report.missing if not name.startswith(optional)]
  if missing:
    raise checkpoint.CheckpointError(
      f"{prefix} lacks {len(missing)} of the model's {len(store.variables)} variables: "
      f"{checkpoint.abbreviate(missing)}. Does bert_config.json belong to it?"
    )

  return LoadedFunction(graph, inputs, owner=store)


def _create_unlifted(next_creator, **kwargs):
  return next_creator(**{**kwargs, "experimental_enable_variable_lifting": False})
