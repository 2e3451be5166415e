"""`tf.contrib.tensorboard`: the projector, which shows embeddings in TensorBoard."""

import types

from tensorboard.plugins import projector

from bert_tf1.errors import unknown_name

__all__ = ["plugins"]

plugins = types.SimpleNamespace(projector=projector)

__getattr__ = unknown_name(__name__)
