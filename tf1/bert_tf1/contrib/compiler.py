"""`tf.contrib.compiler`: XLA of parts of a graph (`jit.experimental_jit_scope`, `xla.compile`)."""

from tensorflow.python.compiler.xla import jit, xla

from bert_tf1.errors import unknown_name

__all__ = ["jit", "xla"]

__getattr__ = unknown_name(__name__)
