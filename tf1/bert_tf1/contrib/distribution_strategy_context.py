"""`tf.contrib.distribution_strategy_context`: the names of 1.11 and 1.12 for `tf.distribute`'s."""

from tensorflow.python.distribute import distribute_lib

from bert_tf1.errors import unknown_name
from bert_tf1.real import tf

get_cross_replica_context = distribute_lib.get_cross_replica_context
get_cross_tower_context = distribute_lib.get_cross_replica_context
get_distribution_strategy = tf.distribute.get_strategy
get_replica_context = tf.distribute.get_replica_context
get_tower_context = tf.distribute.get_replica_context
has_distribution_strategy = tf.distribute.has_strategy
in_cross_replica_context = tf.distribute.in_cross_replica_context
in_cross_tower_context = tf.distribute.in_cross_replica_context

__getattr__ = unknown_name(__name__)
