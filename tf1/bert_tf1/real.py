"""TensorFlow's own `compat.v1`, switched to 1.x behaviour: what the 1.x face is built on.

Importing this module changes the process: graphs and sessions instead of eager execution, reference
variables, Keras 2 (`tf_keras`) below `tf.layers` and `tf.nn.rnn_cell`.
"""

import logging
import os
import warnings

os.environ["TF_USE_LEGACY_KERAS"] = "1"  # Read once, by the first import of tensorflow.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # The C++ notes tell nothing about the script.

from bert_tf1 import start_lines

with start_lines.hidden():
  import tensorflow.compat.v1 as tf
  from tensorflow.python.util import deprecation

  tf.config.list_physical_devices()

# Advice to move to 2.x, for code that stays on 1.x.
deprecation._PRINT_DEPRECATION_WARNINGS = False
warnings.filterwarnings("ignore", r"`tf\.[\w.]+` is deprecated")
tf.disable_v2_behavior()
# 1.15 wrote each line of the log twice, once as absl does.
logging.getLogger("tensorflow").propagate = False
# Written around each saved checkpoint since 2.0.
logging.getLogger("tensorflow").addFilter(
  lambda record: not str(record.msg).startswith("Calling checkpoint listeners ")
)

__all__ = ["tf"]
