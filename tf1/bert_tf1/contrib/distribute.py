"""`tf.contrib.distribute`: strategies, each on the one device that there is.

An Estimator of 1.x runs here in one process, on all its cores or on one GPU. A script that asks for
`MirroredStrategy` gets one replica and trains; where it asks for more devices a warning says that a
step's batch is one replica's. The remedy is the script's own number of GPUs: 1.
"""

from tensorflow.python.distribute import cross_device_ops as _cross_device_ops
from tensorflow.python.distribute import distribute_lib

from bert_tf1.errors import unknown_name
from bert_tf1.real import tf

CrossDeviceOps = tf.distribute.CrossDeviceOps
DistributionStrategy = tf.distribute.Strategy
ReplicaContext = tf.distribute.ReplicaContext
get_cross_replica_context = distribute_lib.get_cross_replica_context
get_distribution_strategy = tf.distribute.get_strategy
get_loss_reduction = tf.distribute.get_loss_reduction
get_replica_context = tf.distribute.get_replica_context
get_strategy = tf.distribute.get_strategy
has_distribution_strategy = tf.distribute.has_strategy
has_strategy = tf.distribute.has_strategy
in_cross_replica_context = tf.distribute.in_cross_replica_context
require_replica_context = distribute_lib.require_replica_context


class AllReduceCrossDeviceOps(_cross_device_ops.AllReduceCrossDeviceOps):
  """How gradients of several devices are summed; with one device nothing is."""

  def __init__(
    self,
    all_reduce_alg="nccl",
    num_packs=1,
    agg_small_grads_max_bytes=0,
    agg_small_grads_max_group=10,
  ):
    super().__init__(all_reduce_alg, num_packs)


class OneDeviceStrategy(tf.distribute.OneDeviceStrategy):
  """One replica on `device`."""


class MirroredStrategy(OneDeviceStrategy):
  """One replica on the GPU, or on the processor where there is none.

  Args:
    devices: a warning if there is more than one.
    num_gpus: a warning if it is more than 1.
    num_gpus_per_worker: the same.
    cross_device_ops: not used with one device.
    auto_shard_dataset: not used with one device.
    cross_tower_ops: not used with one device.
  """

  def __init__(
    self,
    devices=None,
    num_gpus=None,
    num_gpus_per_worker=None,
    cross_device_ops=None,
    auto_shard_dataset=False,
    cross_tower_ops=None,
  ):
    _warn_of_more(type(self).__name__, len(devices or []) or num_gpus or num_gpus_per_worker or 1)
    super().__init__(_one_device())


class CollectiveAllReduceStrategy(OneDeviceStrategy):
  """One replica, as `MirroredStrategy`."""

  def __init__(self, num_gpus_per_worker=0, communication=None):
    _warn_of_more(type(self).__name__, num_gpus_per_worker)
    super().__init__(_one_device())


class ParameterServerStrategy(OneDeviceStrategy):
  """One replica, as `MirroredStrategy`."""

  def __init__(self, num_gpus_per_worker=0):
    _warn_of_more(type(self).__name__, num_gpus_per_worker)
    super().__init__(_one_device())


def _one_device() -> str:
  return "/gpu:0" if tf.config.experimental.list_physical_devices("GPU") else "/cpu:0"


def _warn_of_more(name: str, devices: int) -> None:
  if devices > 1:
    tf.logging.warning(
      "%s for %d devices: this process trains on one. A step's batch is the script's batch size, "
      "not %d times it; set the number of GPUs to 1 and the batch size to what a step should take.",
      name,
      devices,
      devices,
    )


_ONE_PROCESS = "one process trains here, on all its cores or on one GPU: leave it out."
__getattr__ = unknown_name(
  __name__,
  {
    "DistributeConfig": _ONE_PROCESS,
    "TPUStrategy": "there is no TPU: use tf.contrib.tpu.TPUEstimator with use_tpu=False.",
    "run_standard_tensorflow_server": _ONE_PROCESS,
  },
)
