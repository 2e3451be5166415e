"""Cells that 1.15 has in contrib alone: coupled gates, layer normalization, NASNet's cell."""

from typing import Any

from bert_tf1.contrib.layers.normalization import layer_norm
from bert_tf1.real import tf

_LSTMStateTuple = tf.nn.rnn_cell.LSTMStateTuple
# A cell whose variables are made by `build`; 2.21 gives it no public name.
LayerRNNCell: Any = tf.nn.rnn_cell.BasicLSTMCell.__base__


class CoupledInputForgetGateLSTMCell(tf.nn.rnn_cell.RNNCell):
  """An LSTM cell whose input gate is 1 minus its forget gate.

  Source: K. Greff et al., "LSTM: A Search Space Odyssey", https://arxiv.org/abs/1503.04069.
  Variables: `W_0` (one per shard), `B`; `W_F_diag` and `W_O_diag` with peepholes; `W_P_0` with a
  projection; `gamma` and `beta` in `transform`, `forget`, `output` and `state` with
  normalization.
  """

  def __init__(
    self,
    num_units,
    use_peepholes=False,
    initializer=None,
    num_proj=None,
    proj_clip=None,
    num_unit_shards=1,
    num_proj_shards=1,
    forget_bias=1.0,
    state_is_tuple=True,
    activation=tf.tanh,
    reuse=None,
    layer_norm=False,
    norm_gain=1.0,
    norm_shift=0.0,
  ):
    """Describes the cell.

    Args:
      num_units: the number of units.
      use_peepholes: the gates see the cell state.
      initializer: not used, as in 1.15.
      num_proj: the size of the projected output, or None.
      proj_clip: the largest absolute value of the projected output, or None.
      num_unit_shards: the number of variables the weights are split into.
      num_proj_shards: the same for the projection's weights.
      forget_bias: added to the forget gate's sums.
      state_is_tuple: the state is an `LSTMStateTuple`; else [B, units + output size].
      activation: of the input and the cell state.
      reuse: use the variables there are.
      layer_norm: normalize the gates and the cell state; no bias then.
      norm_gain: the first value of `gamma`.
      norm_shift: the first value of `beta`.
    """
    super().__init__(_reuse=reuse)
    del initializer
    self._num_units = num_units
    self._use_peepholes = use_peepholes
    self._num_proj = num_proj
    self._proj_clip = proj_clip
    self._num_unit_shards = num_unit_shards
    self._num_proj_shards = num_proj_shards
    self._forget_bias = forget_bias
    self._state_is_tuple = state_is_tuple
    self._activation = activation
    self._norm = _Norm(norm_gain, norm_shift) if layer_norm else None

  @property
  def state_size(self):
    """The sizes of the cell state and the output, as a tuple or added."""
    sizes = _LSTMStateTuple(self._num_units, self.output_size)
    return sizes if self._state_is_tuple else sum(sizes)

  @property
  def output_size(self):
    """The number of units, or the projection's size."""
    return self._num_proj or self._num_units

  def call(self, inputs, state):
    """Returns the output [B, output size] and the new state."""
    if self._state_is_tuple:
      cell, output = state
    else:
      cell, output = tf.split(state, [self._num_units, self.output_size], axis=1)
    dtype = inputs.dtype
    input_size = inputs.shape.with_rank(2).dims[1].value
    if input_size is None:
      raise ValueError("Could not infer input size from inputs.get_shape()[-1]")
    weights = _sharded_variable(
      "W", [input_size + self.output_size, 3 * self._num_units], dtype, self._num_unit_shards
    )
    bias = tf.get_variable(
      "B", shape=[3 * self._num_units], initializer=tf.zeros_initializer(), dtype=dtype
    )
    sums = tf.matmul(tf.concat([inputs, output], 1), weights)
    sums = sums if self._norm else tf.nn.bias_add(sums, bias)
    new_input, forget, out = tf.split(sums, 3, axis=1)
    if self._norm:
      new_input = self._norm(new_input, "transform")
      forget = self._norm(forget, "forget")
      out = self._norm(out, "output")
    forget = forget + self._forget_bias
    if self._use_peepholes:
      forget_diag = tf.get_variable("W_F_diag", shape=[self._num_units], dtype=dtype)
      output_diag = tf.get_variable("W_O_diag", shape=[self._num_units], dtype=dtype)
      forget = forget + forget_diag * cell
    keep = tf.sigmoid(forget)
    cell = keep * cell + (1 - keep) * self._activation(new_input)
    if self._norm:
      cell = self._norm(cell, "state")
    if self._use_peepholes:
      out = out + output_diag * cell
    output = tf.sigmoid(out) * self._activation(cell)
    if self._num_proj is not None:
      output = tf.matmul(
        output,
        _sharded_variable("W_P", [self._num_units, self._num_proj], dtype, self._num_proj_shards),
      )
      if self._proj_clip is not None:
        output = tf.clip_by_value(output, -self._proj_clip, self._proj_clip)
    if self._state_is_tuple:
      return output, _LSTMStateTuple(cell, output)
    return output, tf.concat([cell, output], 1)


class LayerNormBasicLSTMCell(tf.nn.rnn_cell.RNNCell):
  """An LSTM cell with layer normalization and recurrent dropout.

  Sources: J. Ba et al., https://arxiv.org/abs/1607.06450; S. Semeniuta et al.,
  https://arxiv.org/abs/1603.05118. Variables: `kernel`; `gamma` and `beta` in `input`,
  `transform`, `forget`, `output` and `state`, or `bias` without normalization.
  """

  def __init__(
    self,
    num_units,
    forget_bias=1.0,
    input_size=None,
    activation=tf.tanh,
    layer_norm=True,
    norm_gain=1.0,
    norm_shift=0.0,
    dropout_keep_prob=1.0,
    dropout_prob_seed=None,
    reuse=None,
  ):
    """Describes the cell.

    The other arguments are those of `CoupledInputForgetGateLSTMCell`.

    Args:
      input_size: not used.
      dropout_keep_prob: the probability of keeping an element of the new input.
      dropout_prob_seed: the dropout's seed.
    """
    super().__init__(_reuse=reuse)
    del input_size
    self._num_units = num_units
    self._forget_bias = forget_bias
    self._activation = activation
    self._keep_prob = dropout_keep_prob
    self._seed = dropout_prob_seed
    self._norm = _Norm(norm_gain, norm_shift) if layer_norm else None

  @property
  def state_size(self):
    """An `LSTMStateTuple` of sizes."""
    return _LSTMStateTuple(self._num_units, self._num_units)

  @property
  def output_size(self):
    """The number of units."""
    return self._num_units

  def call(self, inputs, state):
    """Returns the output [B, units] and the new state."""
    cell, output = state
    inputs = tf.concat([inputs, output], 1)
    size = 4 * self._num_units
    kernel = tf.get_variable("kernel", [inputs.shape[-1], size], dtype=inputs.dtype)
    sums = tf.matmul(inputs, kernel)
    if not self._norm:
      sums = tf.nn.bias_add(sums, tf.get_variable("bias", [size], dtype=inputs.dtype))
    gates = tf.split(sums, 4, axis=1)
    if self._norm:
      scopes = ("input", "transform", "forget", "output")
      gates = [self._norm(gate, scope) for gate, scope in zip(gates, scopes, strict=True)]
    take, new_input, forget, out = gates
    new_input = self._activation(new_input)
    if not isinstance(self._keep_prob, float) or self._keep_prob < 1:
      new_input = tf.nn.dropout(new_input, self._keep_prob, seed=self._seed)
    cell = cell * tf.sigmoid(forget + self._forget_bias) + tf.sigmoid(take) * new_input
    if self._norm:
      cell = self._norm(cell, "state")
    output = self._activation(cell) * tf.sigmoid(out)
    return output, _LSTMStateTuple(cell, output)


class NASCell(LayerRNNCell):
  """The recurrent cell of B. Zoph, Q. Le, https://arxiv.org/abs/1611.01578.

  Variables: `recurrent_kernel`, `kernel`; `bias`, `projection_weights` where they are asked for.
  """

  _BRANCHES = 8

  def __init__(self, num_units, num_proj=None, use_bias=False, reuse=None, **kwargs):
    """Describes the cell; `num_proj` is the size of the projected output, or None."""
    super().__init__(_reuse=reuse, **kwargs)
    self._num_units = num_units
    self._num_proj = num_proj
    self._use_bias = use_bias

  @property
  def state_size(self):
    """An `LSTMStateTuple` of sizes."""
    return _LSTMStateTuple(self._num_units, self.output_size)

  @property
  def output_size(self):
    """The number of units, or the projection's size."""
    return self._num_units if self._num_proj is None else self._num_proj

  def build(self, inputs_shape):
    """Makes the variables for inputs [B, D]; a ValueError if D is not known."""
    input_size = tf.dimension_value(tf.TensorShape(inputs_shape).with_rank(2)[1])
    if input_size is None:
      raise ValueError("Could not infer input size from inputs.get_shape()[-1]")
    size = self._BRANCHES * self._num_units
    self.recurrent_kernel = self.add_weight("recurrent_kernel", [self.output_size, size])
    self.kernel = self.add_weight("kernel", [input_size, size])
    if self._use_bias:
      self.bias = self.add_weight("bias", [size], initializer=tf.zeros_initializer())
    if self._num_proj is not None:
      self.projection_weights = self.add_weight(
        "projection_weights", [self._num_units, self._num_proj]
      )
    self.built = True

  def call(self, inputs, state):
    """Returns the output [B, output size] and the new state."""
    cell, output = state
    recurrent = tf.matmul(output, self.recurrent_kernel)
    if self._use_bias:
      recurrent = tf.nn.bias_add(recurrent, self.bias)
    m = tf.split(recurrent, self._BRANCHES, axis=1)
    x = tf.split(tf.matmul(inputs, self.kernel), self._BRANCHES, axis=1)
    first = tf.tanh(tf.sigmoid(x[0] + m[0]) * tf.nn.relu(x[1] + m[1]))
    second = tf.tanh(tf.sigmoid(x[2] + m[2]) + tf.nn.relu(x[3] * m[3]))
    third = tf.tanh(tf.tanh(x[4] + m[4]) * tf.sigmoid(x[5] + m[5]))
    fourth = tf.sigmoid(tf.tanh(x[6] + m[6]) + tf.sigmoid(x[7] + m[7]))
    cell = tf.tanh(first + cell) * second
    output = tf.tanh(cell * tf.tanh(third + fourth))
    if self._num_proj is not None:
      output = tf.matmul(output, self.projection_weights)
    return output, _LSTMStateTuple(cell, output)


def linear(args, output_size, bias, bias_initializer=None, kernel_initializer=None):
  """Returns `[args...] @ kernel + bias`, [B, output_size]: `_linear` of contrib's core_rnn_cell.

  Args:
    args: a float tensor [B, D], D known, or a list of such tensors.
    output_size: an integer.
    bias: whether to add the variable `bias`.
    bias_initializer: zeros if None.
    kernel_initializer: the scope's if None.

  Raises:
    ValueError: if there are no tensors or a size is not known.
  """
  args = list(args) if isinstance(args, list | tuple) else [] if args is None else [args]
  if not args:
    raise ValueError("`args` must be specified")
  shapes = [arg.shape for arg in args]
  for shape in shapes:
    if shape.ndims != 2:
      raise ValueError(f"linear is expecting 2D arguments: {shapes}")
    if shape.dims[1].value is None:
      raise ValueError(f"linear expects shape[1] to be provided for shape {shape}")
  size = sum(shape.dims[1].value for shape in shapes)
  dtype = args[0].dtype
  with tf.variable_scope(tf.get_variable_scope()) as scope:
    kernel = tf.get_variable(
      "kernel", [size, output_size], dtype=dtype, initializer=kernel_initializer
    )
    result = tf.matmul(args[0] if len(args) == 1 else tf.concat(args, 1), kernel)
    if not bias:
      return result
    with tf.variable_scope(scope) as inner_scope:
      inner_scope.set_partitioner(None)
      biases = tf.get_variable(
        "bias",
        [output_size],
        dtype=dtype,
        initializer=bias_initializer or tf.constant_initializer(0.0, dtype=dtype),
      )
    return tf.nn.bias_add(result, biases)


class _Norm:
  """Layer normalization whose first gain and shift are given."""

  def __init__(self, gain: float, shift: float):
    self._gain = gain
    self._shift = shift

  def __call__(self, inputs, scope: str):
    with tf.variable_scope(scope):
      for name, value in (("gamma", self._gain), ("beta", self._shift)):
        tf.get_variable(
          name,
          shape=inputs.shape[-1:],
          initializer=tf.constant_initializer(value),
          dtype=inputs.dtype,
        )
    return layer_norm(inputs, reuse=True, scope=scope)


def _sharded_variable(name: str, shape: list[int], dtype, num_shards: int):
  """Returns variables `NAME_0`, `NAME_1` ... of the rows, at most one each, as one tensor."""
  if num_shards > shape[0]:
    raise ValueError(f"Too many shards: shape={shape}, num_shards={num_shards}")
  rows, more = divmod(shape[0], num_shards)
  shards = [
    tf.get_variable(f"{name}_{i}", [rows + (i < more), *shape[1:]], dtype=dtype)
    for i in range(num_shards)
  ]
  return shards[0] if num_shards == 1 else tf.concat(shards, 0, name=f"{name}/concat")
