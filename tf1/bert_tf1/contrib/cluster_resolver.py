"""`tf.contrib.cluster_resolver`: finding TPUs, of which there are none here."""

from bert_tf1 import errors
from bert_tf1.errors import NotAvailableError, unknown_name
from bert_tf1.real import tf

SimpleClusterResolver = tf.distribute.cluster_resolver.SimpleClusterResolver


class TPUClusterResolver:
  """Refuses to look for a TPU: scripts make one only where they are told to use it.

  Raises:
    NotAvailableError: always.
  """

  def __init__(self, tpu=None, zone=None, project=None, **kwargs):
    del zone, project, kwargs
    raise NotAvailableError(f"TPUClusterResolver({tpu!r}): {errors.no_tpu()}")


__getattr__ = unknown_name(__name__)
