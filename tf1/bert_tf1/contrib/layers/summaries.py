"""Summaries of tensors, by their shape, and of collections of them."""

import functools
import re

from bert_tf1.real import tf


def summarize_tensor(tensor, tag=None):
  """Returns a scalar summary of a scalar, else a histogram; None for strings and booleans.

  It is called `tag`, by default the op's name and `_summary`.
  """
  if tensor.dtype.base_dtype in (tf.string, tf.bool):
    return None
  summarize = tf.summary.scalar if tensor.shape.ndims == 0 else tf.summary.histogram
  return summarize(tag or f"{tensor.op.name}_summary", tensor)


def summarize_activation(op):
  """Returns a histogram of a layer's outputs; ReLUs get the fraction of zeros beside it."""
  name, inputs = op.op.name, op.op.inputs
  if op.op.type in ("Relu", "Softplus", "Relu6"):
    _summarize_fraction(f"{name}/zeros", tf.less(inputs[0], tf.cast(0.0, inputs[0].dtype)))
  if op.op.type == "Relu6":
    _summarize_fraction(f"{name}/sixes", tf.greater(inputs[0], tf.cast(6.0, inputs[0].dtype)))
  return tf.summary.histogram(f"{name}/activation", op)


def summarize_tensors(tensors, summarizer=summarize_tensor) -> list:
  """Returns a summary for each of the tensors."""
  return [summarizer(tensor) for tensor in tensors]


def summarize_collection(collection, name_filter=None, summarizer=summarize_tensor) -> list:
  """Returns a summary for each tensor of a collection whose op's name matches the pattern."""
  tensors = tf.get_collection(collection)
  return summarize_tensors(
    [t for t in tensors if name_filter is None or re.match(name_filter, t.op.name)], summarizer
  )


def summarize_activations(name_filter=None, summarizer=summarize_activation) -> list:
  """Returns a summary for each tensor of the collection ACTIVATIONS."""
  return summarize_collection(tf.GraphKeys.ACTIVATIONS, name_filter, summarizer)


summarize_variables = functools.partial(summarize_collection, tf.GraphKeys.GLOBAL_VARIABLES)
summarize_weights = functools.partial(summarize_collection, tf.GraphKeys.WEIGHTS)
summarize_biases = functools.partial(summarize_collection, tf.GraphKeys.BIASES)


def _summarize_fraction(name: str, conditions) -> None:
  tf.summary.scalar(name, tf.reduce_mean(tf.to_float(conditions)))
