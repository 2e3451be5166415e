"""`tf.contrib.tpu`: TPUEstimator, and the small parts of TPUs that run anywhere."""

from bert_tf1.errors import unknown_name
from bert_tf1.estimator.tpu import (
  InputPipelineConfig,
  RunConfig,
  TPUConfig,
  TPUEstimator,
  TPUEstimatorSpec,
)
from bert_tf1.real import tf

__all__ = [
  "CrossShardOptimizer",
  "InputPipelineConfig",
  "RunConfig",
  "TPUConfig",
  "TPUEstimator",
  "TPUEstimatorSpec",
  "bfloat16_scope",
  "cross_replica_sum",
  "initialize_system",
  "shutdown_system",
]

CrossShardOptimizer = tf.tpu.CrossShardOptimizer
bfloat16_scope = tf.tpu.bfloat16_scope
cross_replica_sum = tf.tpu.cross_replica_sum
initialize_system = tf.tpu.initialize_system
shutdown_system = tf.tpu.shutdown_system

__getattr__ = unknown_name(__name__)
