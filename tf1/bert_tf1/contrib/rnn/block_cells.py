"""LSTMs by one kernel per step or per sequence, and cells that take whole sequences."""

import abc

from bert_tf1.real import tf

_LSTMStateTuple = tf.nn.rnn_cell.LSTMStateTuple


class LSTMBlockCell(tf.nn.rnn_cell.BasicLSTMCell.__base__):
  """An LSTM cell whose step is one kernel; variables are those of `LSTMCell`.

  Source: W. Zaremba et al., "Recurrent Neural Network Regularization",
  https://arxiv.org/abs/1409.2329.
  """

  def __init__(
    self,
    num_units,
    forget_bias=1.0,
    cell_clip=None,
    use_peephole=False,
    dtype=None,
    reuse=None,
    name="lstm_cell",
  ):
    """See `LSTMBlockFusedCell`."""
    super().__init__(_reuse=reuse, dtype=dtype, name=name)
    self._num_units = num_units
    self._settings = _settings(forget_bias, cell_clip, use_peephole)
    self.input_spec = tf.layers.InputSpec(ndim=2)

  @property
  def state_size(self):
    """An `LSTMStateTuple` of sizes."""
    return _LSTMStateTuple(self._num_units, self._num_units)

  @property
  def output_size(self):
    """The number of units."""
    return self._num_units

  def build(self, inputs_shape):
    """Makes the variables for inputs [B, D]; a ValueError if D is not known."""
    input_size = inputs_shape.dims[1].value
    if not input_size:
      raise ValueError(f"Expecting inputs_shape[1] to be set: {inputs_shape}")
    self._weights_of_kernel = _make_weights(
      self, input_size, self._num_units, self._settings["use_peephole"]
    )
    self.built = True

  def call(self, inputs, state):
    """Returns the output [B, units] and the new state."""
    if len(state) != 2:
      raise ValueError("Expecting state to be a tuple with length 2.")
    weights = _with_peepholes(self._weights_of_kernel, self._num_units, inputs.dtype)
    step = tf.raw_ops.LSTMBlockCell(
      x=inputs, cs_prev=state[0], h_prev=state[1], **weights, **self._settings
    )
    return step.h, _LSTMStateTuple(step.cs, step.h)


@tf.RegisterGradient("LSTMBlockCell")
def _gradient_of_lstm_block_cell(op, *gradients):
  """1.15's contrib brought this gradient; TensorFlow has the kernel alone."""
  names = ("x", "cs_prev", "h_prev", "w", "wci", "wcf", "wco", "b")
  given = dict(zip(names, op.inputs, strict=True))
  results = dict(zip(("i", "cs", "f", "o", "ci", "co"), op.outputs[:6], strict=True))
  back = tf.raw_ops.LSTMBlockCellGrad(
    **given,
    **results,
    cs_grad=gradients[1],
    h_grad=gradients[6],
    use_peephole=op.get_attr("use_peephole"),
  )
  x, h = given["x"], given["h_prev"]
  sizes = [x.shape.dims[1].value, given["cs_prev"].shape.dims[1].value]
  x_and_h = tf.matmul(back.dicfo, given["w"], transpose_b=True)
  x_gradient, h_gradient = tf.split(x_and_h, sizes, axis=1)
  w_gradient = tf.matmul(tf.concat([x, h], 1), back.dicfo, transpose_a=True)
  b_gradient = tf.raw_ops.BiasAddGrad(out_backprop=back.dicfo)
  return (
    x_gradient,
    back.cs_prev_grad,
    h_gradient,
    w_gradient,
    back.wci_grad,
    back.wcf_grad,
    back.wco_grad,
    b_gradient,
  )


class FusedRNNCell(abc.ABC):
  """What is called with a whole sequence, [T, B, D], and returns the outputs and the last state."""

  @abc.abstractmethod
  def __call__(
    self, inputs, initial_state=None, dtype=None, sequence_length=None, scope=None
  ) -> tuple:
    """Returns outputs [T, B, units] (a list for a list of inputs [B, D]) and the last state."""


class FusedRNNCellAdaptor(FusedRNNCell):
  """Calls an `RNNCell` step by step: in a loop, or unrolled in the graph."""

  def __init__(self, cell, use_dynamic_rnn=False):
    self._cell = cell
    self._use_dynamic_rnn = use_dynamic_rnn

  def __call__(self, inputs, initial_state=None, dtype=None, sequence_length=None, scope=None):
    """See `FusedRNNCell`."""
    settings = {
      "initial_state": initial_state,
      "dtype": dtype,
      "sequence_length": sequence_length,
      "scope": scope,
    }
    as_list = isinstance(inputs, list)
    if self._use_dynamic_rnn:
      inputs = tf.stack(inputs) if as_list else inputs
      outputs, state = tf.nn.dynamic_rnn(self._cell, inputs, time_major=True, **settings)
      return tf.unstack(outputs) if as_list else outputs, state
    inputs = inputs if as_list else tf.unstack(inputs)
    outputs, state = tf.nn.static_rnn(self._cell, inputs, **settings)
    return outputs if as_list else tf.stack(outputs), state


class TimeReversedFusedRNN(FusedRNNCell):
  """Calls another such cell from the sequence's end to its start; outputs are in order of time."""

  def __init__(self, cell):
    self._cell = cell

  def __call__(self, inputs, initial_state=None, dtype=None, sequence_length=None, scope=None):
    """See `FusedRNNCell`."""
    outputs, state = self._cell(
      self._reverse(inputs, sequence_length),
      initial_state=initial_state,
      dtype=dtype,
      sequence_length=sequence_length,
      scope=scope,
    )
    return self._reverse(outputs, sequence_length), state

  def _reverse(self, steps, lengths):
    if isinstance(steps, list):
      return steps[::-1]
    if lengths is None:
      return tf.reverse_v2(steps, [0])
    return tf.reverse_sequence(steps, lengths, seq_axis=0, batch_axis=1)


class LSTMBlockWrapper(tf.layers.Layer):
  """What LSTMs over whole sequences share; a subclass has `num_units` and `_call_cell`."""

  @property
  @abc.abstractmethod
  def num_units(self) -> int:
    """The number of units."""

  @abc.abstractmethod
  def _call_cell(self, inputs, initial_cell_state, initial_output, dtype, sequence_length):
    """Returns the cell states and the outputs of all steps, both [T, B, units]."""

  def call(self, inputs, initial_state=None, dtype=None, sequence_length=None):
    """Returns the outputs, 0 behind each length, and the state after the last step.

    Args:
      inputs: float [T, B, D], or a list of T of [B, D].
      initial_state: the cell state and the output before the first step, both [B, units]; zeros
        of `dtype` if None.
      dtype: that of the states.
      sequence_length: int32 or int64 [B]; all T steps if None.

    Raises:
      ValueError: if neither state nor type is given.
    """
    as_list = isinstance(inputs, list)
    inputs = tf.stack(inputs) if as_list else inputs
    if not inputs.shape.with_rank(3).dims[2].value:
      raise ValueError(f"Expecting inputs_shape[2] to be set: {inputs.shape}")
    steps, batch_size = (
      size.value or tf.shape(inputs)[i] for i, size in enumerate(inputs.shape.dims[:2])
    )
    if initial_state is None:
      if dtype is None:
        raise ValueError("Either initial_state or dtype needs to be specified")
      zeros = tf.zeros([batch_size, self.num_units], dtype)
      initial_state = zeros, zeros
    elif len(initial_state) != 2:
      raise ValueError("Expecting initial_state to be a tuple with length 2 or None")
    dtype = dtype or initial_state[0].dtype
    if sequence_length is not None:
      sequence_length = tf.convert_to_tensor(sequence_length)
    states, outputs = self._call_cell(
      inputs, initial_state[0], initial_state[1], dtype, sequence_length
    )
    if sequence_length is None:
      last = _LSTMStateTuple(states[-1], outputs[-1])
    else:
      mask = tf.sequence_mask(sequence_length, steps, dtype=dtype)  # [B, T]
      outputs *= tf.expand_dims(tf.transpose(mask), -1)
      rows = tf.range(batch_size, dtype=sequence_length.dtype)
      places = tf.stack([sequence_length, rows], axis=1)
      # The initial state before the first step's: that of a length of 0.
      last = _LSTMStateTuple(
        *(
          tf.gather_nd(tf.concat([tf.expand_dims(before, 0), after], 0), places)
          for before, after in zip(initial_state, (states, outputs), strict=True)
        )
      )
    return tf.unstack(outputs) if as_list else outputs, last


class LSTMBlockFusedCell(LSTMBlockWrapper):
  """An LSTM over a whole sequence by one kernel; variables are those of `LSTMCell`."""

  def __init__(
    self,
    num_units,
    forget_bias=1.0,
    cell_clip=None,
    use_peephole=False,
    reuse=None,
    dtype=None,
    name="lstm_fused_cell",
  ):
    """Describes the layer.

    Args:
      num_units: the number of units.
      forget_bias: added to the forget gate's sums.
      cell_clip: the largest absolute value of the cell state, or None.
      use_peephole: the gates see the cell state, by the variables `w_i_diag` and so on.
      reuse: use the variables there are.
      dtype: of the variables.
      name: of the layer and of the variables' scope.
    """
    super().__init__(_reuse=reuse, name=name, dtype=dtype)
    self._num_units = num_units
    self._settings = _settings(forget_bias, cell_clip, use_peephole)
    self.input_spec = tf.layers.InputSpec(ndim=3)

  @property
  def num_units(self):
    """The number of units."""
    return self._num_units

  def build(self, input_shape):
    """Makes the variables for inputs [T, B, D]."""
    self._weights_of_kernel = _make_weights(
      self, input_shape.dims[2].value, self._num_units, self._settings["use_peephole"]
    )
    self.built = True

  def _call_cell(
    self, inputs, initial_cell_state=None, initial_output=None, dtype=None, sequence_length=None
  ):
    steps = inputs.shape.dims[0].value or tf.shape(inputs)[0]
    longest = steps if sequence_length is None else tf.reduce_max(sequence_length)
    results = tf.raw_ops.BlockLSTM(
      seq_len_max=tf.cast(longest, tf.int64),
      x=inputs,
      cs_prev=initial_cell_state,
      h_prev=initial_output,
      **_with_peepholes(self._weights_of_kernel, self._num_units, dtype),
      **self._settings,
    )
    return results.cs, results.h


def _settings(forget_bias, cell_clip, use_peephole) -> dict:
  """Returns the kernels' settings; a clip of -1 clips nothing."""
  cell_clip = -1 if cell_clip is None else cell_clip
  return {"forget_bias": forget_bias, "cell_clip": cell_clip, "use_peephole": use_peephole}


def _make_weights(layer, input_size: int, num_units: int, use_peephole: bool) -> dict:
  """Makes a layer's variables; returns them under the kernels' names."""
  weights = {
    "w": layer.add_weight("kernel", [input_size + num_units, num_units * 4]),
    "b": layer.add_weight("bias", [num_units * 4], initializer=tf.constant_initializer(0.0)),
  }
  if use_peephole:
    for name, variable in (("wci", "w_i_diag"), ("wcf", "w_f_diag"), ("wco", "w_o_diag")):
      weights[name] = layer.add_weight(variable, [num_units])
  return weights


def _with_peepholes(weights: dict, num_units: int, dtype) -> dict:
  """Returns the weights; the kernels want zeros where there are no peepholes."""
  zeros = dict.fromkeys(("wci", "wcf", "wco"), tf.zeros([num_units], dtype))
  return dict(weights) if "wci" in weights else {**weights, **zeros}
