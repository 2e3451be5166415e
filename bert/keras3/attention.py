"""Self-attention in Keras 3: the original's and two variants.

| type | difference |
|---|---|
| `multi_head` | none (arXiv:1706.03762) |
| `window` | a token sees only `window_size` tokens to each side (arXiv:2004.05150) |
| `group_query` | several heads share their keys and values (arXiv:2305.13245) |

Letters in shapes: B = batch size, F = from-length (queries), T = to-length (keys; equal to F here),
S = either length, N = number of heads, H = size of one head, W = N * H.
"""

from keras import ops

from bert.keras3 import arrangements
from bert.keras3.building_blocks import Dropout, create_dense
from bert.keras3.padding import AllRows

ATTENTION_TYPES = ("multi_head", "window", "group_query")

# Added to the scores of masked tokens. Not -inf: a row with all tokens masked would become NaN.
HIDDEN_SCORE = -10000.0


class Attends(arrangements.Arranged):
  """Base of layers that attend: their projections and what these compute.

  Roles: `query`, `key`, `value`, `attention_dropout`, `attention_output`.
  """

  def create_projections(
    self,
    hidden_size: int,
    num_heads: int,
    dropout_rate: float,
    n_kv_head: int | None = None,
    window_size: int | None = None,
    **dense,
  ) -> None:
    """Creates the sublayers.

    Args:
      hidden_size: W.
      num_heads: N, which must divide W.
      dropout_rate: dropout of the probabilities.
      n_kv_head: number of key and value heads, which must divide N; N by default.
      window_size: number of visible tokens on each side; all by default.
      **dense: arguments of `create_dense`.

    Raises:
      ValueError: N does not divide W, `n_kv_head` does not divide N, or the window is empty.
    """
    n_kv_head = n_kv_head or num_heads
    if hidden_size % num_heads or num_heads % n_kv_head:
      raise ValueError(
        f"hidden_size {hidden_size} must be a multiple of num_heads {num_heads}, and num_heads a "
        f"multiple of n_kv_head {n_kv_head}."
      )
    if window_size is not None and window_size < 1:
      raise ValueError(f"window_size is {window_size}; it must be at least 1.")
    self.head_size = hidden_size // num_heads
    self.heads_per_key = num_heads // n_kv_head
    self.window = window_size
    narrow = n_kv_head * self.head_size
    for role, width in (("query", hidden_size), ("key", narrow), ("value", narrow)):
      self.place(role, create_dense(width, role, self.dtype_policy, **dense))
    self.place("attention_output", create_dense(hidden_size, "dense", self.dtype_policy, **dense))
    self.place("attention_dropout", Dropout(dropout_rate, dtype=self.dtype_policy))

  def attend(self, hidden_states, attention_mask=None, head_mask=None, rows=None):
    """Mixes each vector from all visible ones.

    Args:
      hidden_states: `[B, F, W]`; with `rows` `[1, M, W]`.
      attention_mask: `[B, T]` or `[B, F, T]`, 0 for hidden tokens; none by default.
      head_mask: float `[N]`, by which the heads' probabilities are multiplied; none by default.
      rows: where the vectors stand in their sequences, if padding was left out.

    Returns:
      The shape of `hidden_states`.
    """
    rows = rows or AllRows()
    query, key, value = (
      rows.restore(self.part(role)(hidden_states)) for role in ("query", "key", "value")
    )
    batch_size, length = ops.shape(query)[:2]
    probabilities = self.part("attention_dropout")(self._maps(query, key, attention_mask))
    context = ops.einsum("bnft,btnh->bfnh", probabilities, self._for_all_heads(value))
    if head_mask is not None:  # as if the probabilities were multiplied
      context = context * ops.cast(head_mask, context.dtype)[:, None]
    context = ops.reshape(context, (batch_size, length, hidden_states.shape[-1]))
    return self.part("attention_output")(rows.remove(context))

  def attention_maps(self, hidden_states, attention_mask=None):
    """Computes the attention probabilities `[B, N, F, T]`; arguments as in `attend`."""
    query, key = (self.part(role)(hidden_states) for role in ("query", "key"))
    return self._maps(query, key, attention_mask)

  def _maps(self, query, key, attention_mask):
    """Computes the attention probabilities `[B, N, F, T]` of projections `[B, S, n * H]`.

    The softmax is computed in float32 under every policy.
    """
    length = ops.shape(query)[1]
    scores = ops.einsum("bfnh,btnh->bnft", self._split(query), self._for_all_heads(key))
    scores = ops.cast(scores, "float32") * (1.0 / float(self.head_size) ** 0.5)
    scores = scores + self._hidden_scores(attention_mask, length)
    return ops.cast(ops.softmax(scores, axis=-1), self.compute_dtype)

  def _hidden_scores(self, attention_mask, length):
    """Returns what hides tokens, added to the scores: float32 `[B, 1, 1 or F, T]`, or 0.0."""
    scores = 0.0
    if attention_mask is not None:
      mask = ops.cast(attention_mask, "float32")
      mask = mask[:, None, None, :] if len(mask.shape) == 2 else mask[:, None, :, :]
      scores = (1.0 - mask) * HIDDEN_SCORE
    if self.window is not None:
      positions = ops.arange(length, dtype="int32")
      distance = ops.abs(positions[:, None] - positions[None, :])  # [F, T]
      far = ops.cast(distance > self.window, "float32")
      scores = scores + far * HIDDEN_SCORE  # not +=: PyTorch would add in place
    return scores

  def _for_all_heads(self, x):
    """Repeats keys or values that heads share: `[B, S, n * H]` to `[B, S, N, H]`."""
    x = self._split(x)
    return ops.repeat(x, self.heads_per_key, axis=2) if self.heads_per_key > 1 else x

  def _split(self, x):
    """Splits vectors into heads: `[B, S, n * H]` to `[B, S, n, H]`."""
    batch_size, length = ops.shape(x)[:2]
    return ops.reshape(x, (batch_size, length, x.shape[-1] // self.head_size, self.head_size))
