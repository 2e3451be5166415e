"""SavedModels on disk: written whole or not at all, loaded with a single type of error.

load_all("out/model.ckpt-343", model.variables)         # or an error: no value stays random
with written_aside("out/export/task") as folder:
  save(model, folder, {"serving_default": signature}, {"bert_config.json": text})
model = load("out/export/task")
"""

import contextlib
import os
import shutil
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Mapping

import tensorflow as tf
from absl import logging

from bert.checkpoints import bundle_files, load_report, loading, reading
from bert.io import atomic_files, filesystem, vocabulary_kind
from bert.text import tokenizer_kinds


def load_all(prefix: str, variables: Iterable[tf.Variable], optional: tuple[str, ...] = ()) -> None:
  """Assigns to all variables their values in a checkpoint, by name.

  Names that begin with one of `optional` may be missing: no output depends on them.

  Raises:
    CheckpointError: the checkpoint lacks a variable, or has it in another shape.
  """
  wanted = {variable.name.split(":")[0]: variable for variable in variables}
  report = loading.init_from_checkpoint(prefix, wanted, required_scope="")
  missing = [name for name in report.missing if not name.startswith(optional)]
  if missing:
    question = "Does bert_config.json belong to it?"
    if all(name.startswith("bert/pooler/") for name in missing):
      question = "It was saved without the pooler, as models are whose head does not read it."
    raise bundle_files.CheckpointError(
      f"{prefix} lacks {len(missing)} of the model's {len(wanted)} variables: "
      f"{load_report.abbreviate(missing)}. {question}"
    )


@contextlib.contextmanager
def traced_to_save() -> Iterator[None]:
  """Traces functions within the block as `save` needs them.

  Graphs that were traced elsewhere are of another context, and saving traces them all again.
  """
  from tensorflow.python.saved_model import save_context

  with save_context.save_context(tf.saved_model.SaveOptions()):
    yield


def save(root, folder: str, signatures: Mapping, extra: Mapping[str, str]) -> None:
  """Saves a SavedModel, with additional files in `assets.extra/`, TensorFlow's convention.

  The texts of `extra` are by file name.
  """
  with quiet():
    tf.saved_model.save(root, folder, signatures=dict(signatures))
  if extra:
    os.makedirs(os.path.join(folder, "assets.extra"), exist_ok=True)
  for name, text in extra.items():
    atomic_files.write_text(os.path.join(folder, "assets.extra", name), text)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
  """Keeps back what TensorFlow reports while it saves: new names of inputs, its fingerprint."""
  verbosity = logging.get_verbosity()
  logging.set_verbosity(min(verbosity, logging.WARNING))
  try:
    yield
  finally:
    logging.set_verbosity(verbosity)


@contextlib.contextmanager
def written_aside(export_dir: str) -> Iterator[str]:
  """Writes a SavedModel to a folder that becomes `export_dir` once it is whole.

  An OSError says that it cannot be written, or holds something other than a SavedModel.
  """
  filesystem.check_local(export_dir)
  path = os.path.abspath(export_dir)
  if os.path.exists(path) and os.listdir(path) and not tf.saved_model.contains_saved_model(path):
    raise FileExistsError(
      f"{export_dir} exists and is not a SavedModel: remove it, or choose another --export_dir."
    )
  with atomic_files.folder_written_whole(path) as folder:
    try:
      yield folder
    except (tf.errors.OpError, OSError) as error:
      reason = getattr(error, "message", None) or getattr(error, "strerror", None) or error
      raise OSError(f"Cannot write {export_dir}: {reason}") from None


def settings_of_words(vocab_file: str | os.PathLike) -> dict[str, str]:
  """Returns what `extra` of `save` needs so that the words of texts are split as in the graph."""
  kept = tokenizer_kinds.kept_settings(vocab_file)
  return {name: content.decode() for name, content in kept.items()}


def vocabulary_asset(vocab_file: str | os.PathLike, owner) -> tf.saved_model.Asset:
  """Returns a vocabulary as one file, which lives as long as `owner` where it is a copy.

  A ValueError says that a byte-level BPE is bad.
  """
  path = os.fsdecode(vocab_file)
  name = vocabulary_kind.saved_vocabulary_name(path)
  if path.endswith(".json") and os.path.basename(path) != name:
    folder = tempfile.mkdtemp()
    weakref.finalize(owner, shutil.rmtree, folder, ignore_errors=True)
    content = tokenizer_kinds.kept_content(path)
    path = os.path.join(folder, name)
    atomic_files.write_bytes(path, content)
  return tf.saved_model.Asset(path)


def load(folder: str):
  """Loads a SavedModel; a ValueError if damaged, for which TensorFlow has errors of many types."""
  from google.protobuf.message import DecodeError

  failures = (tf.errors.OpError, DecodeError, OSError, ValueError, LookupError, TypeError)
  try:
    return tf.saved_model.load(folder)
  except (*failures, AttributeError, AssertionError, RuntimeError) as error:
    reason = reading.first_line(error)
    raise ValueError(f"The SavedModel {folder} is damaged or incomplete: {reason:.200}") from None
