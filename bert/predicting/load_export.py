"""An exported model of token ids on one of its engines: ONNX, LiteRT, or a task's SavedModel.

  model = read("out/export")
  name = choose_engine("out/export")                    # the first that is installed
  engine = load(name, registry.model_file(name, "out/export"))
  engine({"input_ids": ..., "input_mask": ..., "segment_ids": ...})["logits"]

`exporting/model_folder.py` says what lies in the folder. Only SavedModels need TensorFlow.

Letters in shapes: R = rows, S = sequence length, W = hidden size.
"""

import os
from typing import Any

import numpy as np
from absl import logging

from bert.exporting import model_folder
from bert.exporting.model_folder import Described
from bert.io import vocabulary_kind
from bert.predicting import load_run, sentence_vectors
from bert.predicting.engines import registry
from bert.predicting.engines.engine import Arrays, Engine
from bert.tasks import kinds
from bert.tasks.decoding import Decoder


def read(folder: str | os.PathLike, vocab_file: str | None = None) -> Described:
  """Reads what is known of an exported model, beside what it computes.

  Args:
    folder: the export.
    vocab_file: by default that in the folder.

  Raises:
    ValueError: a file is damaged or missing, the vocabulary is another model's, or the task is one
      of a user's own that is not loaded.
  """
  model = model_folder.read(folder, vocab_file)
  _check_vocabulary(model)
  kinds.of_facts(model.facts)  # or a message that names --plugin
  return model


def load(
  engine: str,
  path: str,
  pooling: str | None = None,
  threads: int | None = None,
  **options: Any,
) -> Engine:
  """Loads a model; the vectors of an encoder are pooled.

  Args:
    engine: its name, of `choose_engine`.
    path: of the model, see `registry.model_file`.
    pooling: of the vectors of an encoder; None of a task's model.
    threads: that compute; by default one for each core.
    **options: of the engine.

  Returns:
    The engine, whose outputs are those of `Head.scores`, or `vectors` `[R, W]` of an encoder and of
    a model of sentence vectors.

  Raises:
    MissingExtraError: the engine's package is not installed.
    ValueError: the engine cannot read the model.
  """
  chosen = registry.load(engine, path, threads=threads, **options)
  return PooledEngine(chosen, pooling) if pooling else chosen


def choose_engine(
  folder: str | os.PathLike, engine: str = "auto", precision: str = "float32"
) -> str:
  """Returns the name of the engine that computes an export, for `Predictor`, scripts and server.

  `auto` is the first of `registry.FORMATS` that is installed and has a model of that precision in
  the folder: the same in each process, whatever else the machine does.

  Raises:
    ValueError: there is no such engine, or no such model.
  """
  registry.check_name(engine, ("auto", *registry.NAMES))
  if engine != "auto":
    return engine
  names = candidates(folder, precision)
  rest = f", not {', '.join(names[1:])}" if names[1:] else ""
  logging.info("Engine %s%s computes %s in %s.", names[0], rest, os.fsdecode(folder), precision)
  return names[0]


def _check_vocabulary(model: Described) -> None:
  """Raises a ValueError for a vocabulary that is not the model's."""
  from bert import tokenization

  vocab = tokenization.load_vocab(model.vocab_file)
  known = model.facts.get("vocabulary", "")
  size = vocabulary_kind.size(vocab)
  if size > model.config.vocab_size or known not in ("", tokenization.vocabulary_hash(vocab)):
    raise ValueError(
      f"{model.vocab_file} is not the vocabulary that the model was trained with: it has "
      f"{size} tokens, the model {model.config.vocab_size}."
    )


def is_export(folder: str | os.PathLike) -> bool:
  """Tells whether a folder is an export in one of these formats, perhaps a damaged one."""
  return model_folder.is_model_folder(folder)


def task_folder(saved_model: str | os.PathLike) -> str | None:
  """Finds the task's SavedModel of token ids that `--do_export` wrote: this folder, or its `task`.

  Returns:
    None where there is none: the SavedModel, if there is one, reads strings.
  """
  folders = (os.path.join(saved_model, "task"), os.fsdecode(saved_model))
  return next(filter(is_export, folders), None)


def decoder_of(model: Described, **options: Any) -> Decoder:
  """Makes what is around the engine of an exported model.

  Args:
    model: a fine-tuned one.
    **options: see `load_run.decoder_of`.

  Raises:
    ValueError: an option is unknown, or is of the head, which the export computes; or a length
      cannot be.
  """
  changed = model.kind.decoder_class().head_settings(options)
  if any(model.settings.get(name) != value for name, value in changed.items()):
    raise ValueError(
      f"{', '.join(sorted(options))}: an export computes its head as the run was trained. The "
      "engine tensorflow with the folder of the run can change that."
    )
  try:
    return load_run.decoder_of(model, **options)
  except KeyError as error:
    raise ValueError(
      f"{model_folder.RUN} of the export lacks {error} among its facts. Export the model anew: "
      "export_hub.py."
    ) from None


def check_vectors(folder: str, model: Described, layers: Any) -> None:
  """Raises a ValueError for a model that does not have the vectors of these layers."""
  if not model.is_encoder:
    raise ValueError(
      f"{folder} is the model of a task, without vectors. Export the encoder: "
      "export_hub.py --head=none."
    )
  if layers != -1 and list(layers) != [-1]:
    raise ValueError(f"layers={layers}: an export has the last layer, -1, alone.")


def candidates(folder: str | os.PathLike, precision: str) -> list[str]:
  """Names the engines that are installed and have a model in the folder, at least one.

  Raises:
    ValueError: the folder has no model in that precision.
  """
  has_model = [each.engine for each in registry.models_in(folder) if each.precision == precision]
  if not has_model:  # says what the folder has
    registry.model_file(registry.engine_for(precision), folder, precision)
  installed = [name for name in has_model if registry.is_installed(name)]
  return installed or has_model[:1]  # which says what to install


class PooledEngine:
  """An encoder as an engine of vectors.

  Attributes:
    name: of the engine.
    inputs: see `engine.Engine`.
  """

  def __init__(self, encoder: Engine, pooling: str):
    """Takes an engine that gives `last_hidden_state`, and one of `sentence_vectors.POOLINGS`.

    Raises:
      ValueError: the pooling is unknown.
    """
    if pooling not in sentence_vectors.POOLINGS:
      raise ValueError(f"pooling is {pooling!r}, but must be one of {sentence_vectors.POOLINGS}.")
    self.name, self.inputs = encoder.name, encoder.inputs
    self.device = getattr(encoder, "device", "cpu")
    self._encoder = encoder
    self._pooling = pooling

  def __call__(self, batch: Arrays) -> dict[str, np.ndarray]:
    """Computes `vectors`, float32 `[R, W]`, or `[R, S, W]` where the pooling is `none`."""
    states = self._encoder(batch)["last_hidden_state"]
    if self._pooling == "none":
      return {"vectors": states}
    return {"vectors": pool(states, batch["input_mask"], self._pooling)}


def pool(vectors: np.ndarray, input_mask: np.ndarray, pooling: str) -> np.ndarray:
  """Pools the vectors of tokens, as `model.similarity.pool` does in TensorFlow.

  Args:
    vectors: float32 `[R, S, W]`.
    input_mask: int `[R, S]`.
    pooling: `cls`, `mean` or `max`.

  Returns:
    float32 `[R, W]`.

  Example:
    >>> pool(np.array([[[1.0], [3.0], [9.0]]]), np.array([[1, 1, 0]]), "mean").tolist()
    [[2.0]]
  """
  if pooling == "cls":
    return vectors[:, 0]
  is_token = np.asarray(input_mask, bool)
  if pooling == "max":
    return np.where(is_token[..., None], vectors, np.finfo(vectors.dtype).min).max(axis=1)
  weights = is_token.astype(vectors.dtype)
  total = np.matmul(weights[:, None], vectors)[:, 0]
  return total / weights.sum(axis=1, keepdims=True)
