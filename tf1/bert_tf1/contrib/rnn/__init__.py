"""`tf.contrib.rnn`: the cells of `tf.nn.rnn_cell`, those of contrib, and bidirectional stacks."""

from bert_tf1.contrib.rnn.block_cells import (
  FusedRNNCell,
  FusedRNNCellAdaptor,
  LSTMBlockCell,
  LSTMBlockFusedCell,
  LSTMBlockWrapper,
  TimeReversedFusedRNN,
)
from bert_tf1.contrib.rnn.cells import (
  CoupledInputForgetGateLSTMCell,
  LayerNormBasicLSTMCell,
  LayerRNNCell,
  NASCell,
)
from bert_tf1.contrib.rnn.cells import linear as _linear
from bert_tf1.contrib.rnn.stacks import stack_bidirectional_dynamic_rnn, stack_bidirectional_rnn
from bert_tf1.errors import unknown_name
from bert_tf1.real import tf

BasicLSTMCell = tf.nn.rnn_cell.BasicLSTMCell
BasicRNNCell = tf.nn.rnn_cell.BasicRNNCell
DeviceWrapper = tf.nn.rnn_cell.DeviceWrapper
DropoutWrapper = tf.nn.rnn_cell.DropoutWrapper
GRUCell = tf.nn.rnn_cell.GRUCell
LSTMCell = tf.nn.rnn_cell.LSTMCell
LSTMStateTuple = tf.nn.rnn_cell.LSTMStateTuple
MultiRNNCell = tf.nn.rnn_cell.MultiRNNCell
RNNCell = tf.nn.rnn_cell.RNNCell
ResidualWrapper = tf.nn.rnn_cell.ResidualWrapper
static_bidirectional_rnn = tf.nn.static_bidirectional_rnn
static_rnn = tf.nn.static_rnn
static_state_saving_rnn = tf.nn.static_state_saving_rnn

__all__ = [
  "BasicLSTMCell",
  "BasicRNNCell",
  "CoupledInputForgetGateLSTMCell",
  "DeviceWrapper",
  "DropoutWrapper",
  "FusedRNNCell",
  "FusedRNNCellAdaptor",
  "GRUCell",
  "LSTMBlockCell",
  "LSTMBlockFusedCell",
  "LSTMBlockWrapper",
  "LSTMCell",
  "LSTMStateTuple",
  "LayerNormBasicLSTMCell",
  "LayerRNNCell",
  "MultiRNNCell",
  "NASCell",
  "RNNCell",
  "ResidualWrapper",
  "TimeReversedFusedRNN",
  "_linear",
  "stack_bidirectional_dynamic_rnn",
  "stack_bidirectional_rnn",
  "static_bidirectional_rnn",
  "static_rnn",
  "static_state_saving_rnn",
]

_GRU = "use tf.nn.rnn_cell.GRUCell; its variables are split otherwise."
_CELL = "use a cell of tf.nn.rnn_cell, or run this script on TensorFlow 1.15."
__getattr__ = unknown_name(
  __name__,
  {
    "GRUBlockCell": _GRU,
    "GRUBlockCellV2": _GRU,
    "InputProjectionWrapper": "use tf.layers.dense on the inputs.",
    "OutputProjectionWrapper": "use tf.layers.dense on the outputs.",
    **dict.fromkeys(
      (
        "AttentionCellWrapper",
        "BidirectionalGridLSTMCell",
        "Conv1DLSTMCell",
        "Conv2DLSTMCell",
        "Conv3DLSTMCell",
        "ConvLSTMCell",
        "EmbeddingWrapper",
        "GLSTMCell",
        "GridLSTMCell",
        "HighwayWrapper",
        "IndRNNCell",
        "IndyGRUCell",
        "IndyLSTMCell",
        "IntersectionRNNCell",
        "PhasedLSTMCell",
        "SRUCell",
        "TimeFreqLSTMCell",
        "UGRNNCell",
      ),
      _CELL,
    ),
  },
)
