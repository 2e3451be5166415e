"""Sessions compute what those of 1.15 computed, on no more threads than the machine can use.

Scripts written for large machines ask for a fixed number of threads, such as 1024. Where a
container limits the threads of a process, starting that many aborts it: `pthread_create() failed`.

TensorFlow of today replaces the LayerNorm of a frozen graph by one operation of oneDNN (the
remapper), which adds 0.001 to the variance and not the graph's epsilon: probabilities of a BERT
change by 1e-4, small vectors by half. It is turned off, unless a script asks for it.
"""

import functools
import os
from typing import Any

from tensorflow.python.client import session

from bert_tf1.real import tf

_PER_CORE = 4
_FIELDS = ("intra_op_parallelism_threads", "inter_op_parallelism_threads")


def like_1_15(config: Any) -> Any:
  """Returns the settings of a session: without the remapper, with a few threads for each core.

  Args:
    config: tf.ConfigProto or None; it is not changed.
  """
  if config is None:
    config = tf.ConfigProto()
  if not isinstance(config, tf.ConfigProto):
    return config
  settings = type(config)()
  settings.CopyFrom(config)
  rewriting = settings.graph_options.rewrite_options
  rewriting.remapping = rewriting.remapping or rewriting.OFF
  _bound_threads(settings)
  return settings


def _bound_threads(settings) -> None:
  """Changes numbers of threads that are too large."""
  most = _PER_CORE * (os.cpu_count() or 1)
  asked = {name: getattr(settings, name) for name in _FIELDS}
  pools = settings.session_inter_op_thread_pool
  largest = max(*asked.values(), *(pool.num_threads for pool in pools))
  if largest <= most:
    return
  for name, number in asked.items():
    setattr(settings, name, min(number, most))
  for pool in pools:
    pool.num_threads = min(pool.num_threads, most)
  _warn(largest, most)


@functools.cache
def _warn(asked: int, most: int) -> None:
  """Writes one line for all sessions with these numbers."""
  tf.logging.warning(
    "A session asks for %d threads: %d are used, %d for each core.", asked, most, _PER_CORE
  )


def _change_all_sessions() -> None:
  """Changes each session of the process, whoever makes it: an Estimator, a Supervisor, a script."""
  start = session.BaseSession.__init__

  @functools.wraps(start)
  def start_like_1_15(self, target="", graph=None, config=None):
    start(self, target, graph, like_1_15(config))

  session.BaseSession.__init__ = start_like_1_15


_change_all_sessions()
