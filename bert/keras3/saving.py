"""Writes Keras models for others: as checkpoints of the original, as folders of transformers.

  model.save_pretrained("for_transformers", tokenizer)   # AutoModel...from_pretrained loads it
  model.save_checkpoint("model", tokenizer)              # --init_checkpoint of every script
  save_checkpoint(any_keras_model, "model")              # also of a model of your own

On every backend, without TensorFlow and PyTorch. Outputs stay the same; what the other side cannot
compute is an error that names it. `convert_checkpoint.py from_keras` does it for `.keras` files.
"""

import json
import os
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

from bert.checkpoints import (
  bundle_files,
  keras_model,
  numpy_writer,
  transformers_folder,
  transformers_heads,
)
from bert.io import atomic_files, filesystem

INPUTS = ("input_ids", "attention_mask", "token_type_ids")
CHECKPOINT = "bert_model.ckpt"  # as in the released models
_CONFIG = "bert_config.json"
_ENCODER_ALONE = "Its encoder alone can be saved: give the BERT in the model."


def save_pretrained(
  model: keras.Model, folder: str | os.PathLike, tokenizer=None, labels: Sequence[str] | None = None
) -> None:
  """Writes a folder that transformers loads, of the class for the model's head.

  Args:
    model: a model of `bert.keras3`, or one of your own with a `BERT` and at most one of its heads.
    folder: made if it does not exist; files of an earlier model in it are replaced.
    tokenizer: a `BertTokenizer`, to write vocabulary and case as well.
    labels: of a classifier, names of its C outputs.

  Raises:
    ValueError: transformers and the original cannot compute what the model computes.
    OSError: a file cannot be written.
  """
  described, tensors, facts = contents(model, tokenizer, labels)
  family = described.family.name
  head = transformers_heads.guess_head(tensors, facts)
  try:
    transformers_heads.class_of(head.name, family, tensors, described.config)
  except ValueError as error:
    reason = str(error).partition(" Give --head")[0]
    raise ValueError(f"{model.name}: {reason} {_ENCODER_ALONE}") from None
  folder = _made(folder)
  if tokenizer is not None:
    tokenizer.save_pretrained(folder)
  transformers_folder.write_folder(folder, described.config, tensors, None, False, head, family)


def save_checkpoint(
  model: keras.Model, folder: str | os.PathLike, tokenizer=None, labels: Sequence[str] | None = None
) -> None:
  """Writes a folder like that of a released model, which every script takes.

  Args:
    model: see `save_pretrained`.
    folder: made if it does not exist; a model that this function wrote there is replaced.
    tokenizer: a `BertTokenizer`, to write vocabulary and case as well.
    labels: of a classifier, names of its C outputs; `predict.py` answers with them.

  Raises:
    ValueError: the original cannot compute what the model computes; or the folder holds other
      checkpoints.
    OSError: a file cannot be written.
  """
  described, tensors, facts = contents(model, tokenizer, labels)
  folder = _made(folder)
  indexes = sorted(name for name in os.listdir(folder) if name.endswith(".index"))
  if indexes not in ([], [f"{CHECKPOINT}.index"]):
    raise ValueError(f"{folder} holds other checkpoints ({', '.join(indexes)}). Give a new folder.")
  if tokenizer is not None:
    tokenizer.save_pretrained(folder)
  config = json.dumps(described.config, indent=2) + "\n"
  atomic_files.write_text(os.path.join(folder, _CONFIG), config)
  prefix = os.path.join(folder, CHECKPOINT)
  for path in bundle_files.files_of(prefix):  # the index first: the rest then counts as absent
    os.remove(path)
  numpy_writer.write(prefix, tensors)
  if facts:
    bundle_files.write_sidecar(prefix, {"fingerprint": facts})


class Savable:
  """Base of the models that can be written for others, before Keras's own base."""

  export_rank = 2  # of the inputs

  def export(
    self,
    filepath: str | os.PathLike,
    format: str = "tf_saved_model",
    verbose: bool | None = None,
    input_signature=None,
    **kwargs,
  ) -> None:
    """Exports as `keras.Model.export` does, for batches of any size, also before a first call.

    Args:
      filepath: the folder or file to write.
      format: see `keras.Model.export`; also which backends can write it.
      verbose: see there.
      input_signature: by default the three inputs of a BERT by name, int32 `[B, S]`.
      **kwargs: see there.

    Raises:
      ValueError: a SavedModel is to be written on JAX.
    """
    if keras.backend.backend() == "jax" and format == "tf_saved_model":
      raise ValueError(
        "A SavedModel is written on TensorFlow: save the model as a .keras file here, and load and "
        "export it with KERAS_BACKEND=tensorflow."
      )
    input_signature = self.export_signature() if input_signature is None else input_signature
    super().export(filepath, format, verbose, input_signature, **kwargs)  # type: ignore[misc]

  def export_signature(self) -> list:
    """Returns the default signature of `export`."""
    shape = (None,) * self.export_rank
    return [{name: keras.InputSpec(shape=shape, dtype="int32", name=name) for name in INPUTS}]

  save_pretrained = save_pretrained
  save_checkpoint = save_checkpoint


def _made(folder: str | os.PathLike) -> str:
  """Makes a folder, unless it exists."""
  folder = os.path.expanduser(os.fsdecode(folder))
  filesystem.check_local(folder)
  os.makedirs(folder, exist_ok=True)
  return folder


def contents(
  model: keras.Model, tokenizer=None, labels: Sequence[str] | None = None
) -> tuple[keras_model.KerasModel, dict[str, np.ndarray], dict]:
  """Describes a model; returns its float32 arrays by the original's names and its task's facts.

  The arguments are those of `save_pretrained`.

  Raises:
    ValueError: see `save_pretrained`.
  """
  if not isinstance(model, keras.layers.Layer):
    raise ValueError(
      f"A model of Keras is needed, not {model!r}: keras.models.load_model loads one."
    )
  if tokenizer is not None and not hasattr(tokenizer, "save_pretrained"):
    raise ValueError(f"A BertTokenizer is needed, not {tokenizer!r}.")
  described = describe(model)
  variables = _variables_of(model, described.heads)
  taken = {id(getattr(variable, "variable", variable)) for variable in variables.values()}
  rest = [v.path for v in model.trainable_variables if id(v) not in taken]
  if described.left_out or rest:
    what = "; ".join(described.left_out) or f"the variables {', '.join(rest[:5])}"
    raise ValueError(
      f"{model.name}: the original and transformers have no counterpart of {what}. {_ENCODER_ALONE}"
    )
  tensors = {name: float32(name, variable) for name, variable in variables.items()}
  if "MultipleChoiceHead" in described.heads.values() and not np.any(
    tensors.get("output_bias", True)
  ):
    del tensors["output_bias"]  # all choices would share it, so the original has none
  facts = described.facts
  if bias := keras_model.bias_of_labels(described):
    facts = {**facts, "labels": _labels(labels, len(tensors[bias]))}
  elif labels:
    raise ValueError(f"{model.name} is no classifier: labels are of no use.")
  if tokenizer is not None:
    size = described.config["vocab_size"]
    if tokenizer.vocab_size > size:
      raise ValueError(
        f"The tokenizer has {tokenizer.vocab_size} tokens, the model {size}: they do not belong "
        "together."
      )
    facts = {**facts, "do_lower_case": getattr(tokenizer, "do_lower_case", False)}
  return described, tensors, facts


def describe(model: keras.Model) -> keras_model.KerasModel:
  """Describes a model in the original's terms; errors: `keras_model.describe`."""
  return keras_model.describe(
    keras_model.Layer(_kind(layer), layer.name, _config(layer)) for layer in _layers(model)
  )


def checkpoint_variables(model: keras.Model) -> dict[str, keras.Variable]:
  """Returns the variables of the BERT in a model by the original's names.

  With them come those of its heads, unless the encoder computes what the original does not.

  Raises:
    CheckpointError: the model has no BERT or several.
  """
  encoders = [layer for layer in _layers(model) if _kind(layer) == "BERT"]
  keras_model.check_one_encoder(len(encoders), model.name)
  try:
    heads = describe(model).heads
  except bundle_files.CheckpointError:
    heads = {}
  return _variables_of(model, heads)


def _variables_of(model, heads) -> dict[str, keras.Variable]:
  variables = {}
  for layer in _layers(model):
    is_head = layer.name in heads and hasattr(layer, "checkpoint_variables")
    if _kind(layer) == "BERT" or is_head:
      variables |= layer.checkpoint_variables()
  return variables


def _layers(model) -> list[keras.layers.Layer]:
  """Lists the model and all layers in it, each once."""
  return list(dict.fromkeys((model, *model._flatten_layers())))


def _kind(layer) -> str:
  """Returns the name of a class of `bert.keras3`, perhaps a base; empty for those of others."""
  for layer_class in type(layer).__mro__:
    package, _, name = keras.saving.get_registered_name(layer_class).rpartition(">")
    if package == "bert":
      return name
  return ""


def _config(layer) -> dict:
  return layer.get_config() if _kind(layer) else {}


def float32(name: str, variable: Any) -> np.ndarray:
  """Returns the values of a variable; a ValueError names one that is quantized."""
  if not keras.backend.is_float_dtype(variable.dtype):
    raise ValueError(f"{name} is {variable.dtype}: save the model before model.quantize().")
  return np.asarray(variable.numpy()).astype(np.float32)


def _labels(labels, count: int) -> list[str]:
  if isinstance(labels, str):
    raise ValueError(f"labels is the text {labels!r}; give a list of {count} names.")
  labels = list(labels or (f"LABEL_{index}" for index in range(count)))
  if len(labels) != count or len(set(labels)) != count:
    raise ValueError(f"The model has {count} outputs; labels are {', '.join(map(str, labels))}.")
  return labels
