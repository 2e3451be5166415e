"""`warm_start_from`: the values that a new model begins with."""

import collections
import os

from bert_tf1.real import tf


class WarmStartSettings(
  collections.namedtuple(
    "WarmStartSettings",
    [
      "ckpt_to_initialize_from",
      "vars_to_warm_start",
      "var_name_to_vocab_info",
      "var_name_to_prev_var_name",
    ],
  )
):
  """Which variables begin with values of another checkpoint.

  Args:
    ckpt_to_initialize_from: a checkpoint, or a folder of checkpoints.
    vars_to_warm_start: a regular expression (or a list) of names; `.*` all trainable variables,
      None only those that the two last arguments name.
    var_name_to_vocab_info: variable name -> tf.train.VocabInfo.
    var_name_to_prev_var_name: variable name -> its name in that checkpoint.
  """

  def __new__(
    cls,
    ckpt_to_initialize_from,
    vars_to_warm_start=".*",
    var_name_to_vocab_info=None,
    var_name_to_prev_var_name=None,
  ):
    """Raises ValueError for an empty path."""
    if not ckpt_to_initialize_from:
      raise ValueError("`ckpt_to_initialize_from` MUST be set in WarmStartSettings")
    return super().__new__(
      cls,
      ckpt_to_initialize_from,
      vars_to_warm_start,
      var_name_to_vocab_info or {},
      var_name_to_prev_var_name or {},
    )


def settings_of(warm_start_from) -> WarmStartSettings | None:
  """Reads `warm_start_from`: settings, or a path of a checkpoint, its folder or a SavedModel."""
  if warm_start_from is None or isinstance(warm_start_from, WarmStartSettings):
    return warm_start_from
  if not isinstance(warm_start_from, (str, bytes, os.PathLike)):
    raise ValueError(
      f"warm_start_from must be a string or a WarmStartSettings, instead got {warm_start_from!r}"
    )
  path = tf.compat.as_str_any(os.fspath(warm_start_from))
  if tf.gfile.Exists(os.path.join(path, "saved_model.pb")):
    path = os.path.join(path, "variables", "variables")
  return WarmStartSettings(path)


def warm_start(settings: WarmStartSettings) -> None:
  """Makes the variables of the current graph begin with the values that `settings` name."""
  tf.logging.info("Warm-starting with WarmStartSettings: %s", settings)
  tf.train.warm_start(*settings)
