"""Feed-forward networks of a transformer layer in Keras 3: the original's, and its relatives.

With x the input, W1, W2, ... kernels (their biases left out), and act the chosen activation:

| type | output |
|---|---|
| `mlp` | act(x W1) W2, the original |
| `glu` | (sigmoid(x W0) * x W1) W2 (arXiv:1612.08083) |
| `geglu`, `swiglu` | the same with GELU or SiLU instead of the sigmoid (arXiv:2002.05202) |
| `differential` | (act(x W1) - act(x W0)) W2: a path for, a path against |
| `residual` | act(x W1) W2 + x W0: a linear way past the network |
"""

from types import SimpleNamespace

import keras
from keras import ops

from bert.keras3.parts import create_dense, get_activation, register, require_one_of

FFN_TYPES = ("mlp", "swiglu", "geglu", "glu", "differential", "residual")

_GATES = {"swiglu": ops.silu, "geglu": get_activation("gelu"), "glu": ops.sigmoid}


@register
class FeedForward(keras.layers.Layer):
  """One of the networks above, for each vector by itself.

  Variables, under the scope that it is built in: `intermediate/dense` is W1, `output/dense` W2,
  `intermediate/gate` W0.
  """

  def __init__(
    self,
    hidden_size: int,
    intermediate_size: int,
    ffn_type: str = "mlp",
    activation: str = "gelu",
    use_bias: bool = True,
    initializer_range: float = 0.02,
    name: str = "feed_forward",
    **kwargs,
  ):
    """Makes the kernels.

    Args:
      hidden_size: width of input and output.
      intermediate_size: width in between.
      ffn_type: one of `FFN_TYPES`.
      activation: of `mlp`, `differential` and `residual`; the others are named after theirs.
      use_bias: whether the products have a bias.
      initializer_range: standard deviation of the initial kernels.
      name: of the layer.
      **kwargs: of `keras.layers.Layer`.

    Raises:
      ValueError: the type or the activation is unknown.
    """
    super().__init__(name=name, **kwargs)
    require_one_of("ffn_type", ffn_type, FFN_TYPES)
    self.spec = SimpleNamespace(
      hidden_size=hidden_size,
      intermediate_size=intermediate_size,
      ffn_type=ffn_type,
      activation=activation,
      use_bias=use_bias,
      initializer_range=initializer_range,
    )
    self.activation = get_activation(activation)
    self.intermediate = self._dense(intermediate_size, "dense")
    self.output_dense = self._dense(hidden_size, "dense")
    self.gate = None
    if ffn_type != "mlp":
      self.gate = self._dense(hidden_size if ffn_type == "residual" else intermediate_size, "gate")

  def _dense(self, width: int, name: str) -> keras.layers.Dense:
    return create_dense(width, name, self.spec, self.dtype_policy)

  def build(self, input_shape):
    """Creates the variables, under the original's names: neighbours of this layer, not parts."""
    parent = self.path.rpartition("/")[0]
    with keras.name_scope("intermediate", override_parent=parent):
      self.intermediate.build(input_shape)
      if self.gate is not None:
        self.gate.build(input_shape)
    with keras.name_scope("output", override_parent=parent):
      self.output_dense.build((*input_shape[:-1], self.spec.intermediate_size))
    self.built = True

  def call(self, inputs):
    """float `[..., hidden_size]` to the same shape."""
    kind = self.spec.ffn_type
    inner = self.intermediate(inputs)
    if kind in _GATES:
      inner = _GATES[kind](self.gate(inputs)) * inner
    elif kind == "differential":
      inner = self.activation(inner) - self.activation(self.gate(inputs))
    else:
      inner = self.activation(inner)
    output = self.output_dense(inner)
    return output + self.gate(inputs) if kind == "residual" else output

  def compute_output_spec(self, inputs):
    """Shape and type of the output."""
    return keras.KerasTensor(inputs.shape, self.compute_dtype)

  def get_config(self):
    """The constructor's arguments."""
    return {**super().get_config(), **vars(self.spec)}


def create_feed_forward(spec: SimpleNamespace, dtype) -> FeedForward:
  """The feed-forward network of a `TransformerLayer`, whose arguments `spec` holds.

  Raises:
    ValueError: `ffn_type` or the activation is unknown.
  """
  arguments = {
    "hidden_size": spec.hidden_size,
    "intermediate_size": spec.intermediate_size,
    "ffn_type": spec.ffn_type,
    "activation": spec.activation,
    "use_bias": spec.use_bias,
    "initializer_range": spec.initializer_range,
    **(spec.ffn_args or {}),
  }
  return FeedForward(dtype=dtype, **arguments)
