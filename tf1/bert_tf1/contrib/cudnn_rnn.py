"""`tf.contrib.cudnn_rnn`: the cell that steps through weights of cuDNN; its layers are not here."""

from bert_tf1.contrib.rnn import LSTMBlockCell
from bert_tf1.errors import unknown_name


class CudnnCompatibleLSTMCell(LSTMBlockCell):
  """`LSTMBlockCell` without a forget bias, under cuDNN's scope."""

  def __init__(self, num_units, reuse=None):
    super().__init__(num_units, forget_bias=0, reuse=reuse, name="cudnn_compatible_lstm_cell")


__getattr__ = unknown_name(
  __name__,
  {
    "CudnnCompatibleGRUCell": "use tf.nn.rnn_cell.GRUCell; its weights are others.",
    "CudnnGRU": "use tf.nn.dynamic_rnn with tf.nn.rnn_cell.GRUCell; it runs without a GPU too.",
    "CudnnLSTM": "use tf.contrib.rnn.LSTMBlockFusedCell; it runs without a GPU too.",
  },
)
