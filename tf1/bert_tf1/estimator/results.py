"""The results of an evaluation: as a line of the log, and as summaries."""

from typing import Any

import numpy as np

from bert_tf1.real import tf


def as_text(results: dict[str, Any]) -> str:
  """Results as 1.15 logged them: `accuracy = 0.5, loss = 0.7`."""
  return ", ".join(
    f"{name} = {value!s}" for name, value in sorted(results.items()) if not isinstance(value, bytes)
  )


def write_summaries(folder: str, results: dict[str, Any], checkpoint: str | None) -> None:
  """Logs the results, with `global_step`, and writes them into the event file of `folder`.

  They are numbers, arrays, or a serialized tf.Summary.
  """
  step = results["global_step"]
  tf.logging.info("Saving dict for global step %d: %s", step, as_text(results))
  summary = tf.Summary()
  for name, value in results.items():
    if name != "global_step" and value is not None:
      _add(summary, name, value)
  writer = tf.summary.FileWriterCache.get(folder)
  writer.add_summary(summary, step)
  if checkpoint:
    tf.logging.info("Saving 'checkpoint_path' summary for global step %d: %s", step, checkpoint)
    text = tf.make_tensor_proto(checkpoint, dtype=tf.string)
    path = tf.Summary(value=[tf.Summary.Value(tag="checkpoint_path", tensor=text)])
    writer.add_summary(path, step)
  writer.flush()


def _add(summary, name: str, value: Any) -> None:
  if isinstance(value, bytes):
    try:
      nested = tf.Summary.FromString(value)
    except Exception:  # protobuf's DecodeError has no public name that all its versions share
      tf.logging.warn("Skipping summary for %s, cannot parse string to Summary.", name)
      return
    for index, part in enumerate(nested.value):
      part.tag = f"{name}/{index}"
    summary.value.extend(nested.value)
  elif isinstance(value, np.ndarray):
    tensor = summary.value.add(tag=name, node_name=name).tensor
    tensor.CopyFrom(tf.make_tensor_proto(value))
  elif isinstance(value, (int, float, np.integer, np.floating)):
    summary.value.add(tag=name, simple_value=float(value))
  else:
    tf.logging.warn("Skipping summary for %s: it is neither a number nor a Summary.", name)
