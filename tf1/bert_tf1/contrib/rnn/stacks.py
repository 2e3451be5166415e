"""Bidirectional networks of several layers: each gets both directions of the one below."""

from collections.abc import Iterator

from bert_tf1.real import tf


def stack_bidirectional_dynamic_rnn(
  cells_fw,
  cells_bw,
  inputs,
  initial_states_fw=None,
  initial_states_bw=None,
  dtype=None,
  sequence_length=None,
  parallel_iterations=None,
  time_major=False,
  scope=None,
  swap_memory=False,
):
  """Returns the last layer's outputs and every layer's last states.

  Args:
    cells_fw: a list of cells, one per layer, for the way forward.
    cells_bw: as many, for the way back.
    inputs: float [B, T, D], or [T, B, D] with `time_major`.
    initial_states_fw: a list of states, one per layer; zeros if None.
    initial_states_bw: as `initial_states_fw`.
    dtype: of the initial states.
    sequence_length: int32 or int64 [B]; all T steps if None.
    parallel_iterations: as in `tf.while_loop`.
    time_major: T is the first axis.
    scope: of the variables; "stack_bidirectional_rnn" if None.
    swap_memory: as in `tf.while_loop`.

  Returns:
    The outputs of both directions beside each other, [B, T, 2 * units], and the tuples of the
    states on the way forward and back.

  Raises:
    ValueError: if the lists do not fit each other.
  """
  states_fw, states_bw = [], []
  with tf.variable_scope(scope or "stack_bidirectional_rnn"):
    layers = _layers(cells_fw, cells_bw, initial_states_fw, initial_states_bw)
    for i, (cell_fw, cell_bw, state_fw, state_bw) in enumerate(layers):
      with tf.variable_scope(f"cell_{i}"):
        outputs, (state_fw, state_bw) = tf.nn.bidirectional_dynamic_rnn(
          cell_fw,
          cell_bw,
          inputs,
          initial_state_fw=state_fw,
          initial_state_bw=state_bw,
          sequence_length=sequence_length,
          parallel_iterations=parallel_iterations,
          dtype=dtype,
          swap_memory=swap_memory,
          time_major=time_major,
        )
        inputs = tf.concat(outputs, 2)
      states_fw.append(state_fw)
      states_bw.append(state_bw)
  return inputs, tuple(states_fw), tuple(states_bw)


def stack_bidirectional_rnn(
  cells_fw,
  cells_bw,
  inputs,
  initial_states_fw=None,
  initial_states_bw=None,
  dtype=None,
  sequence_length=None,
  scope=None,
):
  """As `stack_bidirectional_dynamic_rnn`, for a list of T inputs [B, D], unrolled in the graph."""
  states_fw, states_bw = [], []
  with tf.variable_scope(scope or "stack_bidirectional_rnn"):
    layers = _layers(cells_fw, cells_bw, initial_states_fw, initial_states_bw)
    for i, (cell_fw, cell_bw, state_fw, state_bw) in enumerate(layers):
      with tf.variable_scope(f"cell_{i}") as cell_scope:
        inputs, state_fw, state_bw = tf.nn.static_bidirectional_rnn(
          cell_fw,
          cell_bw,
          inputs,
          initial_state_fw=state_fw,
          initial_state_bw=state_bw,
          sequence_length=sequence_length,
          dtype=dtype,
          scope=cell_scope,
        )
      states_fw.append(state_fw)
      states_bw.append(state_bw)
  return inputs, tuple(states_fw), tuple(states_bw)


def _layers(cells_fw, cells_bw, states_fw, states_bw) -> Iterator[tuple]:
  """Yields the two cells and the two initial states (or None) of each layer, if lists fit."""
  if not cells_fw:
    raise ValueError("Must specify at least one fw cell for BidirectionalRNN.")
  if not cells_bw:
    raise ValueError("Must specify at least one bw cell for BidirectionalRNN.")
  if not isinstance(cells_fw, list):
    raise ValueError("cells_fw must be a list of RNNCells (one per layer).")
  if not isinstance(cells_bw, list):
    raise ValueError("cells_bw must be a list of RNNCells (one per layer).")
  if len(cells_fw) != len(cells_bw):
    raise ValueError("Forward and Backward cells must have the same depth.")
  for name, states in (("initial_states_fw", states_fw), ("initial_states_bw", states_bw)):
    if states is not None and (not isinstance(states, list) or len(states) != len(cells_fw)):
      raise ValueError(f"{name} must be a list of state tensors (one per layer).")
  none = [None] * len(cells_fw)
  return zip(cells_fw, cells_bw, states_fw or none, states_bw or none, strict=True)
