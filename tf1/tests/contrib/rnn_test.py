"""`tf.contrib.rnn`: the numbers that TensorFlow 1.15.5 gave for the same graphs."""

import pytest

from bert_tf1.contrib import cudnn_rnn, rnn
from bert_tf1.real import tf
from tests.kit.graphs import describe, waves

pytestmark = [pytest.mark.ci, pytest.mark.usefixtures("graph")]

LENGTHS = [0, 1, 3]


def by_name(tensors) -> dict:
  return {str(place): tensor for place, tensor in enumerate(tf.nest.flatten(tensors))}


CELLS = {
  "lstm": lambda: rnn.LSTMCell(2, use_peepholes=True, num_proj=3, cell_clip=0.5),
  "basic": lambda: rnn.MultiRNNCell([rnn.BasicLSTMCell(2), rnn.GRUCell(2), rnn.BasicRNNCell(2)]),
  "residual": lambda: rnn.ResidualWrapper(rnn.GRUCell(4)),
  "block": lambda: rnn.LSTMBlockCell(2),
  "block_peephole": lambda: rnn.LSTMBlockCell(2, use_peephole=True, cell_clip=0.3),
  "coupled": lambda: rnn.CoupledInputForgetGateLSTMCell(2, use_peepholes=True, num_proj=3),
  "coupled_norm": lambda: rnn.CoupledInputForgetGateLSTMCell(
    2, layer_norm=True, state_is_tuple=False, num_unit_shards=2
  ),
  "layer_norm": lambda: rnn.LayerNormBasicLSTMCell(2),
  "layer_norm_off": lambda: rnn.LayerNormBasicLSTMCell(2, layer_norm=False),
  "nas": lambda: rnn.NASCell(2, num_proj=3, use_bias=True),
}


def run_cell(name: str) -> tuple:
  inputs = tf.placeholder("float32", [None, None, 4])
  results = tf.nn.dynamic_rnn(CELLS[name](), inputs, tf.constant(LENGTHS), dtype=tf.float32)
  return describe(by_name(results), [inputs], {inputs: waves(3, 3, 4)})


# The cells' variables and numbers of 1.15.5, by `describe`.
EXPECTED_CELLS = [
  (
    "lstm",
    {
      "rnn/lstm_cell/kernel": [7, 8],
      "rnn/lstm_cell/bias": [8],
      "rnn/lstm_cell/w_f_diag": [2],
      "rnn/lstm_cell/w_i_diag": [2],
      "rnn/lstm_cell/w_o_diag": [2],
      "rnn/lstm_cell/projection/kernel": [2, 3],
    },
    [-0.00984, -0.52932, 0.15126],
    [0.16269, 0.25873, 0.01459, 0.00702, 0.00825, 0.15314, -0.20321],
  ),
  (
    "basic",
    {
      "rnn/multi_rnn_cell/cell_0/basic_lstm_cell/kernel": [6, 8],
      "rnn/multi_rnn_cell/cell_0/basic_lstm_cell/bias": [8],
      "rnn/multi_rnn_cell/cell_1/gru_cell/gates/kernel": [4, 4],
      "rnn/multi_rnn_cell/cell_1/gru_cell/gates/bias": [4],
      "rnn/multi_rnn_cell/cell_1/gru_cell/candidate/kernel": [4, 2],
      "rnn/multi_rnn_cell/cell_1/gru_cell/candidate/bias": [2],
      "rnn/multi_rnn_cell/cell_2/basic_rnn_cell/kernel": [4, 2],
      "rnn/multi_rnn_cell/cell_2/basic_rnn_cell/bias": [2],
    },
    [-0.17659, -0.5172, -0.23214, -0.35441, -0.24166],
    [0.11184, 0.54507, 0.03282, 0.15498, 0.12279, 1.80743, 1.7002, 2.24128, -0.14231],
  ),
  (
    "residual",
    {
      "rnn/gru_cell/gates/kernel": [8, 8],
      "rnn/gru_cell/gates/bias": [8],
      "rnn/gru_cell/candidate/kernel": [8, 4],
      "rnn/gru_cell/candidate/bias": [4],
    },
    [-1.10603, -0.30537],
    [0.58949, -0.46185, 0.29503, -0.46671, -0.84182],
  ),
  (
    "block",
    {"rnn/lstm_cell/kernel": [6, 8], "rnn/lstm_cell/bias": [8]},
    [0.33799, -0.5172, -0.23214],
    [0.12711, 0.42774, -0.16974],
  ),
  (
    "block_peephole",
    {
      "rnn/lstm_cell/kernel": [6, 8],
      "rnn/lstm_cell/bias": [8],
      "rnn/lstm_cell/w_i_diag": [2],
      "rnn/lstm_cell/w_f_diag": [2],
      "rnn/lstm_cell/w_o_diag": [2],
    },
    [0.32819, -0.49929, -0.21092],
    [0.2393, 0.63871, 0.01336, 0.00438, 0.01824, -0.12143],
  ),
  (
    "coupled",
    {
      "rnn/coupled_input_forget_gate_lstm_cell/W_0": [7, 6],
      "rnn/coupled_input_forget_gate_lstm_cell/B": [6],
      "rnn/coupled_input_forget_gate_lstm_cell/W_F_diag": [2],
      "rnn/coupled_input_forget_gate_lstm_cell/W_O_diag": [2],
      "rnn/coupled_input_forget_gate_lstm_cell/W_P_0": [2, 3],
    },
    [0.00776, -0.1264, 0.03242],
    [0.42335, 0.29786, 0.00138, 0.00173, -0.03443, 0.1205],
  ),
  (
    "coupled_norm",
    {
      "rnn/coupled_input_forget_gate_lstm_cell/W_0": [3, 6],
      "rnn/coupled_input_forget_gate_lstm_cell/W_1": [3, 6],
      "rnn/coupled_input_forget_gate_lstm_cell/B": [6],
      "rnn/coupled_input_forget_gate_lstm_cell/transform/gamma": [2],
      "rnn/coupled_input_forget_gate_lstm_cell/transform/beta": [2],
      "rnn/coupled_input_forget_gate_lstm_cell/forget/gamma": [2],
      "rnn/coupled_input_forget_gate_lstm_cell/forget/beta": [2],
      "rnn/coupled_input_forget_gate_lstm_cell/output/gamma": [2],
      "rnn/coupled_input_forget_gate_lstm_cell/output/beta": [2],
      "rnn/coupled_input_forget_gate_lstm_cell/state/gamma": [2],
      "rnn/coupled_input_forget_gate_lstm_cell/state/beta": [2],
    },
    [0.41828, -0.62547],
    [0.0, -0.0, 0.0, -0.0, -0.0, 0.0, -0.04939, 0.42576, 3.14954, 3.03224, 0.0],
  ),
  (
    "layer_norm",
    {
      "rnn/layer_norm_basic_lstm_cell/kernel": [6, 8],
      "rnn/layer_norm_basic_lstm_cell/input/gamma": [2],
      "rnn/layer_norm_basic_lstm_cell/input/beta": [2],
      "rnn/layer_norm_basic_lstm_cell/transform/gamma": [2],
      "rnn/layer_norm_basic_lstm_cell/transform/beta": [2],
      "rnn/layer_norm_basic_lstm_cell/forget/gamma": [2],
      "rnn/layer_norm_basic_lstm_cell/forget/beta": [2],
      "rnn/layer_norm_basic_lstm_cell/output/gamma": [2],
      "rnn/layer_norm_basic_lstm_cell/output/beta": [2],
      "rnn/layer_norm_basic_lstm_cell/state/gamma": [2],
      "rnn/layer_norm_basic_lstm_cell/state/beta": [2],
    },
    [-0.01519, -1.08076, -0.43946],
    [0.0, 0.0, -0.0, 0.0, -0.0, -0.0, 0.0, -0.03233, 0.4474, 3.01848, 3.09491, 0.0],
  ),
  (
    "layer_norm_off",
    {"rnn/layer_norm_basic_lstm_cell/kernel": [6, 8], "rnn/layer_norm_basic_lstm_cell/bias": [8]},
    [0.33799, -0.5172, -0.23214],
    [0.12711, 0.42774, -0.16974],
  ),
  (
    "nas",
    {
      "rnn/nas_cell/recurrent_kernel": [3, 16],
      "rnn/nas_cell/kernel": [4, 16],
      "rnn/nas_cell/bias": [16],
      "rnn/nas_cell/projection_weights": [2, 3],
    },
    [-0.01345, -0.15925, 0.02334],
    [0.00038, 0.00028, -0.06644, 0.01467, -0.01367],
  ),
]


@pytest.mark.ci
@pytest.mark.parametrize(("name", "variables", "outputs", "gradients"), EXPECTED_CELLS)
def test_cells(name, variables, outputs, gradients):
  result = run_cell(name)

  assert result[0] == variables
  assert list(result[1].values()) == pytest.approx(outputs, abs=2e-5)
  assert result[2] == pytest.approx(gradients, abs=2e-4)


def run_fused(kind: str) -> tuple:
  """Both directions of one kernel per sequence, as in tf_ner's scripts."""
  inputs = tf.placeholder("float32", [None, None, 4])
  peephole = kind == "peephole"
  forward = rnn.LSTMBlockFusedCell(2, use_peephole=peephole, cell_clip=0.3 if peephole else None)
  backward = rnn.TimeReversedFusedRNN(rnn.LSTMBlockFusedCell(2))
  lengths = None if kind == "no_lengths" else tf.constant(LENGTHS)
  results = []
  for cell in (forward, backward):
    start = {"dtype": tf.float32}
    if kind == "states":
      start = {"initial_state": (tf.ones([3, 2]), tf.ones([3, 2]) / 2)}
    results.append(cell(inputs, sequence_length=lengths, **start))
  return describe(by_name(results), [inputs], {inputs: waves(3, 3, 4)})


# The numbers of 1.15.5.
EXPECTED_FUSED = [
  (
    "plain",
    [-0.00981, -0.54289, -0.26936, 0.65626, 0.97647, 0.58571],
    [1.5166, 2.19413, 0.83905, 1.68733, 2.26776],
  ),
  (
    "peephole",
    [0.05764, -0.38916, -0.18154, -0.35028, -0.63409, -0.22179],
    [1.59122, 1.52627, -0.02742, -0.02416, -0.00157, -0.86726, 0.14715, 1.46549],
  ),
  (
    "no_lengths",
    [0.4998, 0.58216, 0.20084, 0.63884, 1.32133, 0.74872],
    [2.39525, 2.74381, -2.9023, 9.25601, 0.11788],
  ),
  (
    "states",
    [-0.38776, 0.47274, 0.30887, -0.85862, 1.07717, 0.42615],
    [0.26538, -0.09051, -1.5475, -2.064, 0.55631],
  ),
]


@pytest.mark.ci
@pytest.mark.parametrize(("kind", "outputs", "gradients"), EXPECTED_FUSED)
def test_an_lstm_by_one_kernel(kind, outputs, gradients):
  variables, numbers, slopes = run_fused(kind)

  kernels = [f"lstm_fused_cell{number}/kernel" for number in ("", "_1")]
  assert [variables[name] for name in kernels] == [[6, 8], [6, 8]]
  assert list(numbers.values()) == pytest.approx(outputs, abs=2e-5)
  assert slopes == pytest.approx(gradients, abs=2e-4)


def test_one_kernel_computes_what_steps_do():
  inputs, lengths = tf.constant(waves(3, 3, 4)), tf.constant(LENGTHS)
  with tf.variable_scope("steps"):
    steps = tf.nn.dynamic_rnn(
      rnn.LSTMCell(2, forget_bias=0.5), inputs, lengths, dtype=tf.float32, time_major=True
    )
  with tf.variable_scope("kernel"):
    cell = rnn.LSTMBlockFusedCell(2, forget_bias=0.5)
    sequence = cell(inputs, dtype=tf.float32, sequence_length=lengths)
  with tf.variable_scope("block"):
    block = rnn.FusedRNNCellAdaptor(rnn.LSTMBlockCell(2, forget_bias=0.5), use_dynamic_rnn=True)
    block = block(inputs, dtype=tf.float32, sequence_length=lengths)
  with tf.Session() as session:
    for variable in tf.global_variables():
      kernel = variable.name.endswith("kernel:0")
      session.run(tf.assign(variable, waves(6, 8) if kernel else waves(8)))
    results = [tf.nest.flatten(result) for result in session.run([steps, sequence, block])]

  for one, other, third in zip(*results, strict=True):
    assert other == pytest.approx(one, abs=1e-6)
    assert third == pytest.approx(one, abs=1e-6)


def run_stack(kind: str) -> tuple:
  inputs = tf.constant(waves(3, 3, 4))
  forward, back = ([rnn.LSTMCell(2), rnn.GRUCell(3)] for _ in range(2))
  if kind == "dynamic":
    results = rnn.stack_bidirectional_dynamic_rnn(
      forward, back, inputs, dtype=tf.float32, sequence_length=tf.constant(LENGTHS)
    )
  else:
    steps = tf.unstack(inputs, axis=1)
    results = rnn.stack_bidirectional_rnn(forward, back, steps, dtype=tf.float32, scope="mine")
  return describe(by_name(results), [inputs])


# The names and numbers of 1.15.5.
EXPECTED_STACKS = [
  (
    "dynamic",
    [
      "stack_bidirectional_rnn/cell_0/bidirectional_rnn/fw/lstm_cell/kernel",
      "stack_bidirectional_rnn/cell_0/bidirectional_rnn/fw/lstm_cell/bias",
      "stack_bidirectional_rnn/cell_0/bidirectional_rnn/bw/lstm_cell/kernel",
      "stack_bidirectional_rnn/cell_0/bidirectional_rnn/bw/lstm_cell/bias",
      "stack_bidirectional_rnn/cell_1/bidirectional_rnn/fw/gru_cell/gates/kernel",
      "stack_bidirectional_rnn/cell_1/bidirectional_rnn/fw/gru_cell/gates/bias",
      "stack_bidirectional_rnn/cell_1/bidirectional_rnn/fw/gru_cell/candidate/kernel",
      "stack_bidirectional_rnn/cell_1/bidirectional_rnn/fw/gru_cell/candidate/bias",
      "stack_bidirectional_rnn/cell_1/bidirectional_rnn/bw/gru_cell/gates/kernel",
      "stack_bidirectional_rnn/cell_1/bidirectional_rnn/bw/gru_cell/gates/bias",
      "stack_bidirectional_rnn/cell_1/bidirectional_rnn/bw/gru_cell/candidate/kernel",
      "stack_bidirectional_rnn/cell_1/bidirectional_rnn/bw/gru_cell/candidate/bias",
    ],
    [-0.19221, 0.39106, 0.24435, 0.27925, -0.5847, -0.19005, -0.36017],
  ),
  (
    "static",
    [
      "mine/cell_0/fw/lstm_cell/kernel",
      "mine/cell_0/fw/lstm_cell/bias",
      "mine/cell_0/bw/lstm_cell/kernel",
      "mine/cell_0/bw/lstm_cell/bias",
      "mine/cell_1/fw/gru_cell/gates/kernel",
      "mine/cell_1/fw/gru_cell/gates/bias",
      "mine/cell_1/fw/gru_cell/candidate/kernel",
      "mine/cell_1/fw/gru_cell/candidate/bias",
      "mine/cell_1/bw/gru_cell/gates/kernel",
      "mine/cell_1/bw/gru_cell/gates/bias",
      "mine/cell_1/bw/gru_cell/candidate/kernel",
      "mine/cell_1/bw/gru_cell/candidate/bias",
    ],
    [2.80675, 3.0026, 2.64511, -0.01626, -0.0346, 0.58948, -0.26988, -0.04584, -0.58672],
  ),
]


@pytest.mark.ci
@pytest.mark.parametrize(("kind", "variables", "outputs"), EXPECTED_STACKS)
def test_layers_of_both_directions(kind, variables, outputs):
  result = run_stack(kind)

  assert list(result[0]) == variables
  assert list(result[1].values()) == pytest.approx(outputs, abs=2e-5)


def test_a_stack_of_unequal_depths_is_an_error():
  with pytest.raises(ValueError, match="must have the same depth"):
    rnn.stack_bidirectional_dynamic_rnn([rnn.GRUCell(2)] * 2, [rnn.GRUCell(2)], None)


def test_dropout_of_inputs_and_outputs_has_a_seed():
  inputs = tf.ones([2, 1, 50])
  cell = rnn.DropoutWrapper(rnn.GRUCell(50), 0.5, 0.5, seed=1)
  outputs, _ = tf.nn.dynamic_rnn(cell, inputs, dtype=tf.float32)
  with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    kept = (session.run(outputs) != 0).mean()

  assert 0.3 < kept < 0.7


def test_the_linear_layer_of_core_rnn_cell():
  with tf.variable_scope("one"):
    result = rnn._linear([tf.constant(waves(2, 3)), tf.constant(waves(2, 1))], 2, bias=True)
  variables, outputs, _ = describe({"result": result})

  assert variables == {"one/kernel": [4, 2], "one/bias": [2]}
  assert outputs["result"] == pytest.approx(-2.00707, abs=2e-5)


def test_cudnns_cell_has_no_forget_bias():
  inputs = tf.constant(waves(2, 4))
  cells = [cudnn_rnn.CudnnCompatibleLSTMCell(2), rnn.LSTMBlockCell(2, forget_bias=0)]
  outputs = [cell(inputs, (tf.ones([2, 2]), tf.ones([2, 2])))[0] for cell in cells]
  with tf.Session() as session:
    for variable in tf.global_variables():
      session.run(tf.assign(variable, waves(*variable.shape.as_list())))
    ours, usual = session.run(outputs)

  assert tf.global_variables()[0].name == "cudnn_compatible_lstm_cell/kernel:0"
  assert ours == pytest.approx(usual)
  with pytest.raises(AttributeError, match=r"use tf\.contrib\.rnn\.LSTMBlockFusedCell"):
    _ = cudnn_rnn.CudnnLSTM
