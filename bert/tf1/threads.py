"""Sessions start no more threads than the machine can use.

Scripts written for large machines ask for a fixed number, such as 1024. Where a container limits
the threads of a process, starting that many aborts it: `pthread_create() failed`.
"""

import functools
import os
from typing import Any

from tensorflow.python.client import session

from bert.tf1.real import tf

_PER_CORE = 4
_FIELDS = ("intra_op_parallelism_threads", "inter_op_parallelism_threads")


def bounded(config: Any) -> Any:
  """Returns the settings of a session with at most a few threads for each core; None as it is.

  Args:
    config: tf.ConfigProto; it is not changed.
  """
  if not isinstance(config, tf.ConfigProto):
    return config
  most = _PER_CORE * (os.cpu_count() or 1)
  asked = {name: getattr(config, name) for name in _FIELDS}
  pools = [pool.num_threads for pool in config.session_inter_op_thread_pool]
  if max(*asked.values(), *pools) <= most:
    return config
  smaller = type(config)()
  smaller.CopyFrom(config)
  for name, number in asked.items():
    setattr(smaller, name, min(number, most))
  for pool in smaller.session_inter_op_thread_pool:
    pool.num_threads = min(pool.num_threads, most)
  _warn(max(*asked.values(), *pools), most)
  return smaller


@functools.cache
def _warn(asked: int, most: int) -> None:
  """Writes one line for all sessions with these numbers."""
  tf.logging.warning(
    "A session asks for %d threads: %d are used, %d for each core.", asked, most, _PER_CORE
  )


def _bound_all_sessions() -> None:
  """Bounds each session of the process, whoever makes it: an Estimator, a Supervisor, a script."""
  start = session.BaseSession.__init__

  @functools.wraps(start)
  def start_bounded(self, target="", graph=None, config=None):
    start(self, target, graph, bounded(config))

  session.BaseSession.__init__ = start_bounded


_bound_all_sessions()
