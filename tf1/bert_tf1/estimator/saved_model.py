"""SavedModels of an Estimator: a folder named by the time, complete or absent.

Graphs, signatures, collections and files are those of TensorFlow 1.15.5's
`Estimator.export_saved_model`, so that TensorFlow 1 and 2 and Serving load them alike.
"""

import os
from collections.abc import Callable, Mapping
from typing import Any

from tensorflow.python.saved_model.model_utils import export_utils

from bert_tf1.estimator import export_outputs
from bert_tf1.real import tf

PREDICT = "infer"
# The first one's variables are saved: a graph that trains has all that a checkpoint holds.
MODES = ("train", "eval", PREDICT)


def _checkpoint(estimator: Any, checkpoint_path: str | None) -> str:
  """The checkpoint to export: the one named, else the newest, else the one to start from."""
  path = checkpoint_path or tf.train.latest_checkpoint(estimator.model_dir)
  if not path and estimator._warm_start_settings:
    path = estimator._warm_start_settings.ckpt_to_initialize_from
    if tf.gfile.IsDirectory(path):
      path = tf.train.latest_checkpoint(path)
  if not path:
    raise ValueError(f"Couldn't find trained model at {estimator.model_dir}.")
  if not tf.train.checkpoint_exists(path):
    raise ValueError(f"No checkpoint at {path}: give the path without .index or .data.")
  return path


def _restore(saver: Any, session: tf.Session, path: str, mode: str) -> None:
  try:
    saver.restore(session, path)
  except tf.errors.NotFoundError as error:
    raise ValueError(
      "Could not load all requested variables from checkpoint. Please make sure your model_fn "
      "does not expect variables that were not saved in the checkpoint.\n\n"
      f"Encountered error with mode `{mode}` while restoring checkpoint from: `{path}`. "
      f"Full Traceback:\n\n{error}"
    ) from error


def _add_graph(
  builder: tf.saved_model.Builder,
  estimator: Any,
  receiver_fn: Callable[[], Any],
  mode: str,
  checkpoint: str,
  save_variables: bool,
  strip_default_attrs: bool,
) -> None:
  """Builds the graph of one mode, restores the checkpoint into it and adds both."""
  with tf.Graph().as_default():
    tf.train.create_global_step()
    estimator._seed(tf.get_default_graph())
    received = receiver_fn()
    labels = getattr(received, "labels", None)
    spec = estimator._call_model_fn(received.features, labels, mode, estimator.config)
    signatures = export_outputs.signatures(
      received.receiver_tensors,
      getattr(received, "receiver_tensors_alternatives", None),
      export_utils.export_outputs_for_mode(
        mode, spec.export_outputs, spec.predictions, spec.loss, spec.eval_metric_ops
      ),
      serving=mode == PREDICT,
    )
    with tf.Session(config=estimator.config.session_config) as session:
      local_init_op = spec.scaffold.local_init_op
      if local_init_op is None:
        local_init_op = tf.train.Scaffold.default_local_init_op()
      saver = spec.scaffold.saver or tf.train.Saver(sharded=True)
      _restore(saver, session, checkpoint, mode)
      builder._add_train_op(spec.train_op)
      graph = {
        "tags": export_utils.EXPORT_TAG_MAP[mode],
        "signature_def_map": signatures,
        "assets_collection": tf.get_collection(tf.GraphKeys.ASSET_FILEPATHS),
        "main_op": local_init_op,
        "saver": saver,
        "strip_default_attrs": strip_default_attrs,
      }
      if save_variables:
        builder.add_meta_graph_and_variables(session, **graph)
      else:
        builder.add_meta_graph(**graph)


def _copy_extra(assets_extra: Mapping[str, str], folder: bytes) -> None:
  for destination, source in assets_extra.items():
    path = os.path.join(folder, b"assets.extra", os.fsencode(destination))
    tf.gfile.MakeDirs(os.path.dirname(path))
    tf.gfile.Copy(source, path)


def export_all_saved_models(
  estimator: Any,
  export_dir_base: str,
  input_receiver_fn_map: Mapping[str, Callable[[], Any]],
  assets_extra: Mapping[str, str] | None = None,
  as_text: bool = False,
  checkpoint_path: str | None = None,
  strip_default_attrs: bool = True,
) -> bytes:
  """Writes one SavedModel with a graph for each mode; see `export_saved_model`.

  Args:
    input_receiver_fn_map: `tf.estimator.ModeKeys` to the function that makes its receiver.
  """
  checkpoint = _checkpoint(estimator, checkpoint_path)
  modes = [mode for mode in MODES if input_receiver_fn_map.get(mode)]
  if not modes:
    raise ValueError(f"No valid modes for exporting found. Got {input_receiver_fn_map.keys()}.")
  final = export_utils.get_timestamped_export_dir(export_dir_base)
  unfinished = export_utils.get_temp_export_dir(final)
  builder = tf.saved_model.Builder(unfinished)
  try:
    for mode in modes:
      receiver_fn = input_receiver_fn_map[mode]
      _add_graph(
        builder, estimator, receiver_fn, mode, checkpoint, mode == modes[0], strip_default_attrs
      )
    builder.save(as_text)
    _copy_extra(assets_extra or {}, unfinished)
    tf.gfile.Rename(unfinished, final)
  finally:
    if tf.gfile.Exists(unfinished):
      tf.gfile.DeleteRecursively(unfinished)
  return final


def export_saved_model(
  estimator: Any,
  export_dir_base: str,
  serving_input_receiver_fn: Callable[[], Any],
  assets_extra: Mapping[str, str] | None = None,
  as_text: bool = False,
  checkpoint_path: str | None = None,
  strip_default_attrs: bool = True,
  mode: str = PREDICT,
) -> bytes:
  """Writes `export_dir_base/SECONDS`, a SavedModel of a checkpoint.

  Args:
    estimator: gives `model_dir`, `config`, `_call_model_fn(features, labels, mode, config)` and
      `_warm_start_settings`.
    export_dir_base: folder of all exports.
    serving_input_receiver_fn: makes the receiver (`receivers.py`) in the graph.
    assets_extra: path below `assets.extra` to the file to copy there.
    as_text: write `saved_model.pbtxt` instead of `saved_model.pb`.
    checkpoint_path: the checkpoint; None for the newest of `model_dir`.
    strip_default_attrs: leave out attributes that have their default, so that older versions of
      TensorFlow, which may not know them, load the graph.
    mode: which graph of the model.

  Returns:
    The folder's path, as bytes: 1.x returned bytes, and scripts decode them.

  Raises:
    ValueError: if there is no function, no checkpoint, or a variable is missing in it.
  """
  if not serving_input_receiver_fn:
    raise ValueError("An input_receiver_fn must be defined.")
  return export_all_saved_models(
    estimator,
    export_dir_base,
    {mode: serving_input_receiver_fn},
    assets_extra,
    as_text,
    checkpoint_path,
    strip_default_attrs,
  )
