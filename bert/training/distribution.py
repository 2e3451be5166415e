"""Several devices and machines: division of batches, the writing worker, lost workers.

`create_strategy(name)` makes the `tf.distribute` strategy that `Estimator` runs on:

  one_device     None: one GPU, or the CPU
  mirrored       all GPUs of this machine; without one, its logical CPU devices
  multi_worker   one process on each machine, every one the same program, named in TF_CONFIG
  tpu            a TPU, or a slice of several hosts

The batch size is always that of all devices together. Every worker reads the same batches in the
same order and keeps its own slice of each, so that n workers take the steps of one.

The processes of a multi-worker job run the same lines. One of them, the chief, writes:

  distribution.on_chief(write_features, path, examples)   # the others wait until it is written
  estimator.train(...)                                    # checkpoints and events by the chief

`on_chief`, `barrier`, `gather` and `check_equal` are *collective*: a worker that calls one waits
for all the others to call it, too. Without a multi-worker strategy they cost nothing.

If a worker dies, the others notice by TensorFlow's heartbeats within about ten seconds, and what
they were waiting for ends in a `WorkerLostError`. The job is then started again, as a whole.
"""

import contextlib
import dataclasses
import io
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from absl import logging

from bert.io import start_lines

NAMES = ("one_device", "mirrored", "multi_worker", "tpu")

# Exit code of a process that lost a peer: EX_TEMPFAIL of sysexits.h, "try again later".
EXIT_CODE_WORKER_LOST = 75


class WorkerLostError(ConnectionError):
  """Another process of this job has ended or cannot be reached."""

  exit_code = EXIT_CODE_WORKER_LOST


@dataclasses.dataclass(frozen=True)
class Cluster:
  """The processes of a job."""

  addresses: tuple[str, ...] = ("localhost",)  # `host:port` of each, the chief first
  index: int = 0  # index of this process


@dataclasses.dataclass
class _Job:
  """The job of this process; the strategy is None unless there are several workers."""

  cluster: Cluster = dataclasses.field(default_factory=Cluster)
  strategy: Any = None
  functions: dict[str, Any] = dataclasses.field(default_factory=dict)


_job = _Job()
_mirrored: dict[tuple[str, ...], Any] = {}  # names of devices -> strategy


# ---------------------------------------------------------------------------------------------
# Strategies.


def create_strategy(
  name: str = "one_device",
  tpu_name: str | None = None,
  tpu_zone: str | None = None,
  gcp_project: str | None = None,
):
  """Creates the `tf.distribute.Strategy` with this name; None for one device.

  Args:
    name: one of `NAMES`.
    tpu_name: name or address of the TPU; None for that of this machine.
    tpu_zone: its zone, if not the default one.
    gcp_project: its project, if not the default one.

  Raises:
    ValueError: the name is unknown, TF_CONFIG is missing or wrong, or the TPU cannot be used.
  """
  if name not in NAMES:
    raise ValueError(f"Unknown distribution strategy {name!r}; known: {', '.join(NAMES)}.")
  if name == "tpu":
    return _tpu_strategy(tpu_name, tpu_zone, gcp_project)
  if name == "multi_worker":
    return _job.strategy or _join_cluster()
  if "TF_CONFIG" in os.environ and not _job.strategy:
    logging.warning(
      "TF_CONFIG is set, but the distribution strategy is %s: this process runs alone. Several "
      "machines need multi_worker.",
      name,
    )
  start_lines.let_gpu_memory_grow()
  return _mirrored_strategy() if name == "mirrored" else None


def _mirrored_strategy():
  import tensorflow as tf

  devices = tf.config.list_logical_devices("GPU") or tf.config.list_logical_devices("CPU")
  names = tuple(device.name for device in devices)
  if len(names) == 1:
    logging.warning("mirrored: only one device was found, %s.", names[0])
  if names not in _mirrored:
    # One for all runs of a process: TensorFlow would confuse the collectives of a second strategy
    # with those of the first.
    _mirrored[names] = tf.distribute.MirroredStrategy(list(names))
  return _mirrored[names]


def _tpu_strategy(tpu_name, tpu_zone, gcp_project):
  import tensorflow as tf

  try:
    resolver = tf.distribute.cluster_resolver.TPUClusterResolver(
      tpu=tpu_name, zone=tpu_zone, project=gcp_project
    )
    tf.config.experimental_connect_to_cluster(resolver)
    tf.tpu.experimental.initialize_tpu_system(resolver)
  except (ValueError, OSError, ImportError, RuntimeError, tf.errors.OpError) as error:
    reason = (str(error).splitlines() or [type(error).__name__])[0].partition(" used by {{")[0]
    what = f"The TPU {tpu_name} cannot be used" if tpu_name else "--use_tpu: no TPU was found here"
    raise ValueError(
      f"{what} ({reason:.200}). Name a TPU with --tpu_name, or leave out --use_tpu."
    ) from error
  return tf.distribute.TPUStrategy(resolver)


def _join_cluster():
  """Connects to the other workers of TF_CONFIG; returns when all are connected."""
  import tensorflow as tf

  cluster = cluster_from_environment(os.environ)
  start_lines.let_gpu_memory_grow()
  logging.info(
    "Worker %d of %d at %s, waiting for the others: %s",
    cluster.index,
    len(cluster.addresses),
    cluster.addresses[cluster.index],
    ", ".join(a for i, a in enumerate(cluster.addresses) if i != cluster.index),
  )
  _job.cluster = cluster
  _job.functions.clear()
  try:
    with clear_errors():
      _job.strategy = tf.distribute.MultiWorkerMirroredStrategy()
      barrier()
  except RuntimeError as error:
    if "program startup" not in str(error):
      raise
    raise RuntimeError(
      "multi_worker: create_strategy must be called before TensorFlow computes anything."
    ) from error
  return _job.strategy


def cluster_from_environment(environment: Mapping[str, str]) -> Cluster:
  """Reads TF_CONFIG: the processes of the job, and the index of this one.

  Example:
    >>> config = '{"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "worker", "index": 1}}'
    >>> cluster_from_environment({"TF_CONFIG": config})
    Cluster(addresses=('a:1', 'b:1'), index=1)

  Raises:
    ValueError: it is missing or wrong; the message shows the required form.
  """
  text = environment.get("TF_CONFIG", "")
  try:
    if not text:
      raise ValueError("it is not set")
    config = json.loads(text)
    addresses, kind, index = config["cluster"], config["task"]["type"], config["task"]["index"]
    unknown = sorted(set(addresses) - {"chief", "worker"})
    if unknown:
      raise ValueError(f"jobs are chief and worker, not {', '.join(unknown)}")
    if kind not in addresses or not 0 <= int(index) < len(addresses[kind]):
      raise ValueError(f"the cluster has no {kind} {index}")
    before = len(addresses.get("chief", ())) if kind == "worker" else 0
    everyone = (*addresses.get("chief", ()), *addresses.get("worker", ()))
  except (ValueError, KeyError, TypeError, AttributeError) as error:
    problem = f"{error} is missing" if isinstance(error, KeyError) else error
    raise ValueError(
      f"multi_worker needs the environment variable TF_CONFIG, the same on every machine but for "
      f'the index: {{"cluster": {{"worker": ["HOST:PORT", "HOST:PORT"]}}, "task": {{"type": '
      f'"worker", "index": 0}}}}. Here {problem}: {text!r}.'
    ) from None
  return Cluster(everyone, before + int(index))


# ---------------------------------------------------------------------------------------------
# Communication between workers.


def is_chief() -> bool:
  """Checks whether this process writes the files of its job; true in a single process."""
  return _job.cluster.index == 0


def worker_count() -> int:
  """Counts the processes of this job."""
  return len(_job.cluster.addresses)


def is_collective() -> bool:
  """Checks whether this process meets others in collective calls; a job of one meets itself."""
  return _job.strategy is not None


def on_chief(function: Callable, *args, **kwargs) -> Any:
  """Calls a function on the chief; the other workers wait until it has returned. Collective.

  Its result is every worker's; with several workers it must be JSON-serializable.
  """
  result = function(*args, **kwargs) if is_chief() else None
  return json.loads(gather_bytes(json.dumps(result).encode())[0]) if is_collective() else result


def barrier() -> None:
  """Waits until all workers have called this. Collective."""
  any_worker(False)


def any_worker(flag: bool) -> bool:
  """Checks whether the flag is set on at least one worker. Collective."""
  return any(_gather_integers([int(flag)])) if is_collective() else bool(flag)


def check_equal(facts: Mapping[str, Any]) -> None:
  """Compares JSON-serializable facts of the workers; the ValueError names one. Collective."""
  everyone = [json.loads(text) for text in gather_bytes(json.dumps(dict(facts)).encode())]
  for index, found in enumerate(everyone):
    for name, value in everyone[0].items():
      if found[name] != value:
        raise ValueError(
          f"The workers of this job differ in {name}: {value!r} on worker 0, {found[name]!r} on "
          f"worker {index}. They need equal flags and a shared output_dir."
        )


def gather(rows: Sequence[Mapping[str, np.ndarray]]) -> list[dict[str, np.ndarray]]:
  """Joins the rows of all workers, those of worker 0 first; text is bytes. Collective."""
  if _job.strategy is None:
    return [dict(row) for row in rows]
  buffer = io.BytesIO()
  arrays = {f"{i}/{name}": value for i, row in enumerate(rows) for name, value in row.items()}
  stored_rows: dict[str, Any] = {name: without_objects(a) for name, a in arrays.items()}
  np.savez(buffer, rows=len(rows), **stored_rows)
  joined = []
  for data in gather_bytes(buffer.getvalue()):
    with np.load(io.BytesIO(data), allow_pickle=False) as stored:
      more: list[dict[str, np.ndarray]] = [{} for _ in range(int(stored["rows"]))]
      for key in stored.files:
        if key != "rows":
          i, name = key.split("/", 1)
          more[int(i)][name] = stored[key]
    joined += more
  return joined


def gather_bytes(data: bytes) -> list[bytes]:
  """Gathers the value of each worker, in the order of workers. Collective."""
  if _job.strategy is None:
    return [data]
  sizes = _gather_integers([len(data)])
  # Collectives do not support bytes: they are sent as integers, the last one padded with zeros.
  words = np.frombuffer(data + bytes(-len(data) % 4), np.int32)
  joined = np.asarray(_gather_integers(words), np.int32).tobytes()
  parts, begin = [], 0
  for size in sizes:
    parts.append(joined[begin : begin + size])
    begin += size + -size % 4
  return parts


def without_objects(array: np.ndarray) -> np.ndarray:
  """Converts text in an array to fixed-width bytes, which NumPy stores without pickling.

  Example:
    >>> without_objects(np.array([b"a", b"bc"], object)).dtype
    dtype('S2')
  """
  array = np.asarray(array)
  return array.astype(np.bytes_) if array.dtype == object else array


def _gather_integers(vector: Sequence[int] | np.ndarray) -> np.ndarray:
  """Joins int32 `[n]` of each worker, in the order of the workers."""
  import tensorflow as tf

  strategy = _job.strategy
  replicas = strategy.num_replicas_in_sync // worker_count()

  def replica_fn(vector):
    context = tf.distribute.get_replica_context()
    # One replica of each worker contributes its value.
    size = tf.where(context.replica_id_in_sync_group % replicas == 0, tf.size(vector), 0)
    return context.all_gather(vector[:size], axis=0)

  if "gather" not in _job.functions:
    # Traced once: TensorFlow matches collectives by the order in which they were traced.
    _job.functions["gather"] = tf.function(
      lambda vector: strategy.run(replica_fn, args=(vector,)),
      autograph=False,
      input_signature=[tf.TensorSpec([None], tf.int32)],
    )
  with clear_errors():
    joined = _job.functions["gather"](tf.constant(vector, tf.int32))
    return strategy.experimental_local_results(joined)[0].numpy()


# ---------------------------------------------------------------------------------------------
# Data.


def distribute_dataset(strategy, dataset):
  """Divides each batch of a dataset among all replicas of a strategy.

  With one machine TensorFlow does it. Between machines it chooses whether to divide files
  or examples, and with files the batches differ from those of a single machine. So that no result
  depends on this choice, each machine here reads all batches and keeps its part of each.
  """
  if _input_pipelines(strategy) == 1:
    return strategy.experimental_distribute_dataset(dataset)
  import tensorflow as tf

  def dataset_fn(context):
    count = strategy.num_replicas_in_sync
    local = count // context.num_input_pipelines
    first = local * context.input_pipeline_id
    if local == 1:
      return dataset.map(lambda *batch: _slices(batch, first, count))
    dealt = dataset.flat_map(
      lambda *batch: _in_turn([_slices(batch, i, count) for i in range(first, first + local)])
    )
    if dataset.cardinality() == tf.data.INFINITE_CARDINALITY:
      # Otherwise the workers would exchange before each step whether data remain.
      dealt = dealt.apply(tf.data.experimental.assert_cardinality(tf.data.INFINITE_CARDINALITY))
    return dealt

  return strategy.distribute_datasets_from_function(dataset_fn)


def slice_bounds(size, index: int, count: int):
  """Computes start and end of one replica's part of a batch.

  Example:
    >>> [slice_bounds(10, i, 4) for i in range(4)]
    [(0, 2), (2, 5), (5, 7), (7, 10)]
  """
  return size * index // count, size * (index + 1) // count


def _input_pipelines(strategy) -> int:
  """Counts the machines that read data."""
  if strategy is _job.strategy:
    return worker_count()
  return getattr(strategy.extended, "num_hosts", 1)  # Only TPU strategies have it.


def _slices(batch: tuple, index: int, count: int):
  """Cuts out one replica's part of an element; `Dataset.map` passes components as arguments."""
  import tensorflow as tf

  def part(tensor):
    size = tensor.shape[0] if tensor.shape[0] is not None else tf.shape(tensor)[0]
    begin, end = slice_bounds(size, index, count)
    return tensor[begin:end]

  return tf.nest.map_structure(part, batch if len(batch) > 1 else batch[0])


def _in_turn(elements: list):
  """Creates a dataset of some elements, which may differ in shape."""
  import tensorflow as tf

  dataset = tf.data.Dataset.from_tensors(elements[0])
  for element in elements[1:]:
    dataset = dataset.concatenate(tf.data.Dataset.from_tensors(element))
  return dataset


# ---------------------------------------------------------------------------------------------
# Lost workers.


@contextlib.contextmanager
def clear_errors() -> Iterator[None]:
  """Turns TensorFlow's errors about a dead peer into `WorkerLostError`."""
  import tensorflow as tf

  try:
    yield
  except (tf.errors.OpError, RuntimeError) as error:
    if _job.strategy is None or not _is_about_a_peer(error):
      raise
    raise WorkerLostError(
      f"Another worker of this job ended or cannot be reached, and worker {_job.cluster.index} of "
      f"{worker_count()} cannot continue alone. See the log of that worker. The checkpoints are "
      "intact: start all workers again with the same command, and they resume. "
      f"({_first_line(error)})"
    ) from None


def _is_about_a_peer(error: Exception) -> bool:
  import tensorflow as tf

  kinds = (tf.errors.UnavailableError, tf.errors.AbortedError, tf.errors.DeadlineExceededError)
  texts = ("Collective ops is aborted", "oordination service", "heartbeat")
  return isinstance(error, kinds) or any(text in str(error) for text in texts)


def _first_line(error: Exception) -> str:
  lines = [line for line in str(error).splitlines() if "Collective ops" in line]
  return (lines or str(error).splitlines() or [type(error).__name__])[0][:300]
