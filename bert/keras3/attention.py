"""Self-attention in Keras 3: the original's and three variants.

| type | difference |
|---|---|
| `multi_head` | none (arXiv:1706.03762) |
| `window` | a token sees only `window_size` tokens to each side (arXiv:2004.05150) |
| `group_query` | several heads share their keys and values (arXiv:2305.13245) |
| `differential` | a head is the difference of two attention maps (arXiv:2410.05258) |

Letters in shapes: B = batch size, F = from-length (queries), T = to-length (keys; equal to F here),
S = either length, N = number of heads, H = size of one head, W = N * H.
"""

from types import SimpleNamespace

import keras
from keras import ops

from bert.keras3.building_blocks import Dropout, SpecLayer, create_dense, register, require_one_of
from bert.keras3.padding import AllRows

ATTENTION_TYPES = ("multi_head", "window", "group_query", "differential")

# Added to the scores of masked tokens. Not -inf: a row with all tokens masked would become NaN.
HIDDEN_SCORE = -10000.0


@register
class SelfAttention(SpecLayer):
  """Multi-head self-attention with its output projection.

  Variables, under the scope it is built in: `self/{query,key,value}` and `output/dense`, each with
  `kernel` and `bias`.
  """

  def __init__(
    self,
    hidden_size: int,
    num_heads: int,
    attention_dropout_rate: float = 0.1,
    use_bias: bool = True,
    initializer_range: float = 0.02,
    n_kv_head: int | None = None,
    window_size: int | None = None,
    name: str = "self",
    **kwargs,
  ):
    """Creates the projections.

    Args:
      hidden_size: W.
      num_heads: N, which must divide W.
      attention_dropout_rate: dropout of the probabilities.
      use_bias: whether the projections have a bias.
      initializer_range: standard deviation of the initial kernels.
      n_kv_head: number of key and value heads, which must divide N; N by default.
      window_size: number of visible tokens on each side; all by default.
      name: name of the layer.
      **kwargs: arguments of `keras.layers.Layer`.

    Raises:
      ValueError: N does not divide W, `n_kv_head` does not divide N, or the window is empty.
    """
    super().__init__(name=name, **kwargs)
    n_kv_head = n_kv_head or num_heads
    if hidden_size % num_heads or num_heads % n_kv_head:
      raise ValueError(
        f"hidden_size {hidden_size} must be a multiple of num_heads {num_heads}, and num_heads a "
        f"multiple of n_kv_head {n_kv_head}."
      )
    if window_size is not None and window_size < 1:
      raise ValueError(f"window_size is {window_size}; it must be at least 1.")
    self.spec = SimpleNamespace(
      hidden_size=hidden_size,
      num_heads=num_heads,
      attention_dropout_rate=attention_dropout_rate,
      use_bias=use_bias,
      initializer_range=initializer_range,
      n_kv_head=n_kv_head,
      window_size=window_size,
    )
    self.head_size = hidden_size // num_heads
    self.query = self._projection("query", hidden_size)
    self.key = self._projection("key", n_kv_head * self.head_size)
    self.value = self._projection("value", n_kv_head * self.head_size)
    self.output_dense = self._projection("dense", hidden_size)
    self.dropout = Dropout(attention_dropout_rate, dtype=self.dtype_policy)

  def _projection(self, name: str, width: int) -> keras.layers.Dense:
    spec = self.spec
    return create_dense(
      width, name, self.dtype_policy, spec.initializer_range, use_bias=spec.use_bias
    )

  def build(self, input_shape):
    """Creates the variables under the original's names."""
    for projection in (self.query, self.key, self.value):
      projection.build(input_shape)
    # In the original `output` is a scope beside `self`, not inside it.
    parent = self.path.rpartition("/")[0]
    with keras.name_scope("output", override_parent=parent):
      self.output_dense.build(input_shape)
    self.built = True

  def call(self, hidden_states, attention_mask=None, training=None, head_mask=None, rows=None):
    """Mixes each vector from all visible ones.

    Args:
      hidden_states: `[B, F, W]`; with `rows` `[1, M, W]`.
      attention_mask: `[B, T]` or `[B, F, T]`, 0 for hidden tokens; none by default.
      training: whether to apply dropout.
      head_mask: float `[N]`, by which the heads' probabilities are multiplied; none by default.
      rows: where the vectors stand in their sequences, if padding was left out.

    Returns:
      The shape of `hidden_states`.
    """
    rows = rows or AllRows()
    query, key, value = (
      rows.restore(part(hidden_states)) for part in (self.query, self.key, self.value)
    )
    batch_size, length = ops.shape(query)[:2]
    hidden_scores = self._hidden_scores(attention_mask, length)
    context = self._attend(
      self._split(query), self._for_all_heads(key), self._for_all_heads(value), hidden_scores
    )
    if head_mask is not None:  # as if the probabilities were multiplied
      context = context * ops.cast(head_mask, context.dtype)[:, None]
    context = ops.reshape(context, (batch_size, length, self.spec.hidden_size))
    return self.output_dense(rows.remove(context))

  def attention_maps(self, hidden_states, attention_mask=None):
    """Computes the attention probabilities `[B, N, F, T]`; arguments as in `call`."""
    query = self._split(self.query(hidden_states))
    key = self._for_all_heads(self.key(hidden_states))
    length = ops.shape(hidden_states)[1]
    return self._maps(query, key, self._hidden_scores(attention_mask, length))

  def _attend(self, query, key, value, hidden_scores):
    """Averages the values by the attention probabilities.

    Args:
      query: `[B, F, N, H]`.
      key: `[B, T, N, H]`.
      value: `[B, T, N, H]`.
      hidden_scores: see `_hidden_scores`.

    Returns:
      `[B, F, N, H]`.
    """
    probs = self.dropout(self._maps(query, key, hidden_scores))
    return ops.einsum("bnft,btnh->bfnh", probs, value)

  def _maps(self, query, key, hidden_scores):
    """Computes the weights of the values: `[B, N, F, T]`."""
    return self._probabilities(query, key, hidden_scores)

  def _probabilities(self, query, key, hidden_scores):
    """Computes `[B, N, F, T]`; the softmax is computed in float32 under every policy."""
    scores = ops.einsum("bfnh,btnh->bnft", query, key)
    scores = ops.cast(scores, "float32") * (1.0 / float(query.shape[-1]) ** 0.5)
    return ops.cast(ops.softmax(scores + hidden_scores, axis=-1), self.compute_dtype)

  def _hidden_scores(self, attention_mask, length):
    """Returns what hides tokens, added to the scores: float32 `[B, 1, 1 or F, T]`, or 0.0."""
    scores = 0.0
    if attention_mask is not None:
      mask = ops.cast(attention_mask, "float32")
      mask = mask[:, None, None, :] if len(mask.shape) == 2 else mask[:, None, :, :]
      scores = (1.0 - mask) * HIDDEN_SCORE
    if self.spec.window_size is not None:
      positions = ops.arange(length, dtype="int32")
      distance = ops.abs(positions[:, None] - positions[None, :])  # [F, T]
      far = ops.cast(distance > self.spec.window_size, "float32")
      scores = scores + far * HIDDEN_SCORE  # not +=: PyTorch would add in place
    return scores

  def _for_all_heads(self, x):
    """Repeats keys or values that heads share: `[B, S, n * H]` to `[B, S, N, H]`."""
    x, shared_by = self._split(x), self.spec.num_heads // self.spec.n_kv_head
    return ops.repeat(x, shared_by, axis=2) if shared_by > 1 else x

  def _split(self, x):
    """Splits vectors into heads: `[B, S, n * H]` to `[B, S, n, H]`."""
    batch_size, length = ops.shape(x)[:2]
    return ops.reshape(x, (batch_size, length, x.shape[-1] // self.head_size, self.head_size))

  def compute_output_spec(
    self, hidden_states, attention_mask=None, training=None, head_mask=None, rows=None
  ):
    """Returns the shape and type of the output."""
    return keras.KerasTensor(hidden_states.shape, self.compute_dtype)


@register
class DifferentialAttention(SelfAttention):
  """The difference of two attention maps, in which common noise cancels.

  Each half of a head's queries and keys makes one map. The second map is subtracted with a learned
  weight `lambda`, which starts at `lambda_init`. Each head's output is normalized and scaled by
  `1 - lambda_init`, so that gradients stay as large as those of ordinary attention.
  """

  def __init__(self, hidden_size: int, num_heads: int, *args, lambda_init: float = 0.8, **kwargs):
    super().__init__(hidden_size, num_heads, *args, **kwargs)
    if self.head_size % 2:
      raise ValueError(f"The head size is {self.head_size}; it must be even to be halved.")
    self.spec.lambda_init = lambda_init
    self.head_norm = keras.layers.RMSNormalization(
      epsilon=1e-5, dtype=self.dtype_policy, name="head_layer_norm"
    )

  def build(self, input_shape):
    """Creates the variables."""
    near_zero = keras.initializers.RandomNormal(stddev=0.1)
    self.lambdas = self.add_weight(
      shape=(4, self.head_size // 2), initializer=near_zero, name="lambda"
    )
    self.head_norm.build((None, None, None, self.head_size))
    super().build(input_shape)

  def _attend(self, query, key, value, hidden_scores):
    context = super()._attend(query, key, value, hidden_scores)
    return self.head_norm(context) * (1.0 - self.spec.lambda_init)

  def _maps(self, query, key, hidden_scores):
    queries, keys = ops.split(query, 2, axis=-1), ops.split(key, 2, axis=-1)
    signal, noise = (
      self._probabilities(q, k, hidden_scores) for q, k in zip(queries, keys, strict=True)
    )
    return signal - self._share() * noise

  def _share(self):
    a, b, c, d = ops.unstack(ops.cast(self.lambdas, "float32"), 4, axis=0)
    share = ops.exp(ops.sum(a * b)) - ops.exp(ops.sum(c * d)) + self.spec.lambda_init
    return ops.cast(share, self.compute_dtype)


def create_attention(spec: SimpleNamespace, dtype) -> SelfAttention:
  """Creates the attention of a `TransformerLayer`.

  Args:
    spec: the arguments of the layer.
    dtype: a Keras dtype policy.

  Raises:
    ValueError: `attention_type` is unknown, or the sizes are inconsistent.
  """
  require_one_of("attention_type", spec.attention_type, ATTENTION_TYPES)
  arguments = {
    "hidden_size": spec.hidden_size,
    "num_heads": spec.num_heads,
    "attention_dropout_rate": spec.attention_dropout_rate,
    "use_bias": spec.use_bias,
    "initializer_range": spec.initializer_range,
    "dtype": dtype,
  }
  if spec.attention_type == "window":
    arguments["window_size"] = spec.window_size
  elif spec.attention_type == "group_query":
    arguments["n_kv_head"] = spec.n_kv_head or max(1, spec.num_heads // 4)
  arguments.update(spec.attention_args or {})
  if spec.attention_type == "differential":
    return DifferentialAttention(lambda_init=spec.lambda_init, **arguments)
  return SelfAttention(**arguments)
