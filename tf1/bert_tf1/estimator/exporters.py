"""When `train_and_evaluate` exports: at the end, after each evaluation, or after the best one.

Names, defaults and messages are those of `tf.estimator.*Exporter` in TensorFlow 1.15.5.
"""

import os
from collections.abc import Callable, Mapping
from typing import Any

from tensorflow.python.util import function_utils

from bert_tf1.real import tf

Results = Mapping[str, Any]


class Exporter:
  """Something that exports an Estimator after an evaluation."""

  @property
  def name(self) -> str | None:
    """Name of the folder of these exports, below `model_dir/export`."""
    return None

  def export(
    self,
    estimator: Any,
    export_path: str,
    checkpoint_path: str,
    eval_result: Results,
    is_the_final_export: bool,
  ) -> Any:
    """Exports, or not: returns the path of the export, or None.

    Args:
      estimator: the Estimator.
      export_path: folder of these exports.
      checkpoint_path: the checkpoint that was evaluated.
      eval_result: what `Estimator.evaluate` returned for it.
      is_the_final_export: whether training is over.
    """


class _SavedModelExporter(Exporter):
  """Exports a SavedModel whenever it is asked to."""

  def __init__(
    self,
    name: str,
    serving_input_receiver_fn: Callable[[], Any] | None,
    assets_extra: Mapping[str, str] | None = None,
    as_text: bool = False,
    exports_to_keep: int | None = None,
  ):
    if exports_to_keep is not None and exports_to_keep <= 0:
      raise ValueError(
        f"`exports_to_keep`, if provided, must be a positive number. Got {exports_to_keep}"
      )
    self._name = name
    self._serving_input_receiver_fn = serving_input_receiver_fn
    self._assets_extra = assets_extra
    self._as_text = as_text
    self._exports_to_keep = exports_to_keep

  @property
  def name(self) -> str:
    return self._name

  def export(self, estimator, export_path, checkpoint_path, eval_result, is_the_final_export):
    result = estimator.export_saved_model(
      export_path,
      self._serving_input_receiver_fn,
      assets_extra=self._assets_extra,
      as_text=self._as_text,
      checkpoint_path=checkpoint_path,
    )
    self._remove_oldest(export_path)
    return result

  def _remove_oldest(self, export_path: str) -> None:
    """Keeps the `exports_to_keep` newest folders whose names are times in seconds."""
    if self._exports_to_keep is None:
      return
    folder = tf.compat.as_str_any(export_path)
    names = [name.rstrip("/") for name in tf.gfile.ListDirectory(folder)]
    versions = sorted(name for name in names if len(name) == 10 and name.isdigit())
    for name in versions[: -self._exports_to_keep]:
      path = os.path.join(folder, name)
      try:
        tf.gfile.DeleteRecursively(path)
      except tf.errors.NotFoundError as error:
        tf.logging.warning("Can not delete %s recursively: %s", path, error)


class FinalExporter(_SavedModelExporter):
  """Exports once, when training is over."""

  def __init__(
    self,
    name: str,
    serving_input_receiver_fn: Callable[[], Any],
    assets_extra: Mapping[str, str] | None = None,
    as_text: bool = False,
  ):
    """Args: see `_SavedModelExporter` and `Estimator.export_saved_model`."""
    super().__init__(name, serving_input_receiver_fn, assets_extra, as_text)

  def export(self, estimator, export_path, checkpoint_path, eval_result, is_the_final_export):
    """Exports if training is over."""
    if not is_the_final_export:
      return None
    tf.logging.info("Performing the final export in the end of training.")
    return super().export(estimator, export_path, checkpoint_path, eval_result, is_the_final_export)


class LatestExporter(_SavedModelExporter):
  """Exports after each evaluation and keeps the newest exports."""

  def __init__(
    self,
    name: str,
    serving_input_receiver_fn: Callable[[], Any],
    assets_extra: Mapping[str, str] | None = None,
    as_text: bool = False,
    exports_to_keep: int | None = 5,
  ):
    """Args: as above; `exports_to_keep` None keeps all."""
    super().__init__(name, serving_input_receiver_fn, assets_extra, as_text, exports_to_keep)


def _loss_smaller(best_eval_result: Results, current_eval_result: Results) -> bool:
  """Tells whether the current loss is smaller than the best one."""
  results = {"best_eval_result": best_eval_result, "current_eval_result": current_eval_result}
  for name, result in results.items():
    if not result or "loss" not in result:
      raise ValueError(f"{name} cannot be empty or no loss is found in it.")
  return best_eval_result["loss"] > current_eval_result["loss"]


def _check_compare_fn(compare_fn: Callable[..., bool] | None) -> None:
  if compare_fn is None:
    raise ValueError("`compare_fn` must not be None.")
  expected = ("best_eval_result", "current_eval_result")
  names = function_utils.fn_args(compare_fn)
  for name in expected:
    if name not in names:
      raise ValueError(f"compare_fn ({compare_fn}) must include {name} argument.")
  others = [name for name in names if name not in expected]
  if others:
    raise ValueError(f"compare_fn ({compare_fn}) has following not expected args: {others}")


class BestExporter(_SavedModelExporter):
  """Exports when an evaluation is better than all before, a resumed run's earlier ones included."""

  def __init__(
    self,
    name: str = "best_exporter",
    serving_input_receiver_fn: Callable[[], Any] | None = None,
    event_file_pattern: str | None = "eval/*.tfevents.*",
    compare_fn: Callable[..., bool] = _loss_smaller,
    assets_extra: Mapping[str, str] | None = None,
    as_text: bool = False,
    exports_to_keep: int | None = 5,
  ):
    """Args: as above, and

    event_file_pattern: event files below `model_dir` with the evaluations of earlier runs; None
      to begin anew with each run.
    compare_fn: function of `best_eval_result` and `current_eval_result`, true if the current one
      is better; by default the smaller `loss` is.
    """
    _check_compare_fn(compare_fn)
    super().__init__(name, serving_input_receiver_fn, assets_extra, as_text, exports_to_keep)
    self._compare_fn = compare_fn
    self._event_file_pattern = event_file_pattern
    self._model_dir: str | None = None
    self._best_eval_result: Results | None = None

  def export(self, estimator, export_path, checkpoint_path, eval_result, is_the_final_export):
    """Exports if `eval_result` is the best."""
    if self._model_dir != estimator.model_dir and self._event_file_pattern:
      tf.logging.info("Loading best metric from event files.")
      self._model_dir = estimator.model_dir
      self._best_eval_result = self._best_of(
        os.path.join(estimator.model_dir, self._event_file_pattern)
      )
    if self._best_eval_result is not None and not self._compare_fn(
      best_eval_result=self._best_eval_result, current_eval_result=eval_result
    ):
      return None
    tf.logging.info("Performing best model export.")
    self._best_eval_result = eval_result
    return super().export(estimator, export_path, checkpoint_path, eval_result, is_the_final_export)

  def _best_of(self, event_files: str) -> Results | None:
    """Returns the best evaluation that the event files hold, or None."""
    best = None
    for path in tf.gfile.Glob(event_files):
      for event in tf.train.summary_iterator(path):
        result = {
          value.tag: value.simple_value
          for value in event.summary.value
          if value.HasField("simple_value")
        }
        if result and (best is None or self._compare_fn(best, result)):
          best = result
    return best
