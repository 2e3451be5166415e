"""`tf.contrib.util`: values of tensors that are known before a session runs."""

from tensorflow.python.framework import tensor_util

from bert_tf1.errors import unknown_name
from bert_tf1.real import tf

constant_value = tensor_util.constant_value
make_ndarray = tf.make_ndarray
make_tensor_proto = tf.make_tensor_proto

__getattr__ = unknown_name(__name__)
