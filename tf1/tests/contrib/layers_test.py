"""`tf.contrib.layers`: the numbers that TensorFlow 1.15.5 gave for the same graphs."""

import pytest

from bert_tf1.contrib import framework, layers
from bert_tf1.real import tf
from tests.kit.graphs import describe, waves

pytestmark = pytest.mark.usefixtures("graph")


def images():
  return tf.constant(waves(2, 4, 4, 3))


# Functions of a float [2, 3, 4] whose first two sizes are not known before the graph runs.
LAYERS = {
  "norm_of_bert": lambda x: layers.layer_norm(x, begin_norm_axis=-1, begin_params_axis=-1),
  "norm": lambda x: layers.layer_norm(x, scope="mine", activation_fn=tf.nn.relu),
  "norm_half": lambda x: layers.layer_norm(tf.cast(x, "float16"), begin_norm_axis=2),
  "norm_no_scale": lambda x: layers.layer_norm(x, scale=False, begin_norm_axis=1),
  "dense": lambda x: layers.fully_connected(x, 2),
  "dense_norm": lambda x: layers.fully_connected(x, 2, normalizer_fn=layers.layer_norm),
  "linear": lambda x: layers.linear(x, 2, scope="out", biases_initializer=None),
  "bias": lambda x: layers.bias_add(x, activation_fn=tf.nn.relu),
  "two": lambda x: layers.stack(x, layers.fully_connected, [3, 2], scope="fc"),
  "batch_norm": lambda x: layers.batch_norm(x, scale=True),
  "batch_norm_2d": lambda x: layers.batch_norm(tf.reshape(x, [-1, 4]), updates_collections=None),
  "batch_norm_off": lambda x: layers.batch_norm(x, is_training=False, fused=False),
  "batch_norm_weights": lambda x: layers.batch_norm(x, batch_weights=tf.constant([1.0, 3.0])),
  "instance_norm": lambda x: layers.instance_norm(images()),
  "group_norm": lambda x: layers.group_norm(images(), groups=3),
  "conv1d": lambda x: layers.conv1d(x, 2, 3),
  "conv2d": lambda x: layers.conv2d(images(), 2, [3, 3], stride=2, normalizer_fn=layers.batch_norm),
  "conv2d_transpose": lambda x: layers.conv2d_transpose(images(), 2, 2, activation_fn=None),
  "max_pool": lambda x: layers.max_pool2d(images(), 2),
  "avg_pool": lambda x: layers.avg_pool2d(images(), 3, stride=1, padding="SAME"),
  "embed": lambda x: layers.embed_sequence(tf.constant([[0, 2], [4, 2]]), 5, 3),
  "embed_unique": lambda x: layers.embed_sequence(tf.constant([[0, 2], [4, 2]]), 5, 3, unique=True),
  "maxout": lambda x: layers.maxout(x, 2),
  "softmax": lambda x: layers.softmax(x),
}


def run_layer(name: str) -> tuple:
  inputs = tf.placeholder("float32", [None, None, 4])
  variables, outputs, gradients = describe(
    {"y": LAYERS[name](inputs)}, [inputs], {inputs: waves(2, 3, 4)}
  )
  return variables, outputs["y"], gradients


# The layers' variables, the output's number of 1.15.5 and the gradients', by `describe`.
EXPECTED_LAYERS = [
  (
    "norm_of_bert",
    {"LayerNorm/beta": [4], "LayerNorm/gamma": [4]},
    -2.84681,
    [-0.99128, 14.78764, 1.09048],
  ),
  ("norm", {"mine/beta": [4], "mine/gamma": [4]}, -0.44969, [0.98805, 8.84835, 0.32326]),
  (
    "norm_half",
    {"LayerNorm/beta": [4], "LayerNorm/gamma": [4]},
    -2.84286,
    [-0.99005, 14.74447, 1.08377],
  ),
  ("norm_no_scale", {"LayerNorm/beta": [4]}, 0.41327, [1.67307, -0.40726]),
  (
    "dense",
    {"fully_connected/weights": [4, 2], "fully_connected/biases": [2]},
    -1.71492,
    [2.42756, 3.99884, 0.15014],
  ),
  (
    "dense_norm",
    {
      "fully_connected/weights": [4, 2],
      "fully_connected/LayerNorm/beta": [2],
      "fully_connected/LayerNorm/gamma": [2],
    },
    -1.24934,
    [-0.00389, 5.31605, 5.45777, 0.01445],
  ),
  ("linear", {"out/weights": [4, 2]}, -1.3938, [-0.72063, 0.22445]),
  ("bias", {"BiasAdd/biases": [4]}, -0.41214, [1.75762, -0.82428]),
  (
    "two",
    {
      "fc/fc_1/weights": [4, 3],
      "fc/fc_1/biases": [3],
      "fc/fc_2/weights": [3, 2],
      "fc/fc_2/biases": [2],
    },
    0.20066,
    [0.1893, -2.71021, -2.25624, 6.11455, -0.05512],
  ),
  (
    "batch_norm",
    {
      "BatchNorm/gamma": [4],
      "BatchNorm/beta": [4],
      "BatchNorm/moving_mean": [4],
      "BatchNorm/moving_variance": [4],
    },
    -0.24795,
    [12.11402, -0.38076, 0.00151],
  ),
  (
    "batch_norm_2d",
    {"BatchNorm/beta": [4], "BatchNorm/moving_mean": [4], "BatchNorm/moving_variance": [4]},
    0.39145,
    [-0.38076, 0.00457],
  ),
  (
    "batch_norm_off",
    {"BatchNorm/beta": [4], "BatchNorm/moving_mean": [4], "BatchNorm/moving_variance": [4]},
    -0.28014,
    [-11.69734, -0.87907],
  ),
  (
    "batch_norm_weights",
    {"BatchNorm/beta": [4], "BatchNorm/moving_mean": [4], "BatchNorm/moving_variance": [4]},
    0.48471,
    [0.16576, 0.0966],
  ),
  (
    "instance_norm",
    {"InstanceNorm/beta": [3], "InstanceNorm/gamma": [3]},
    -0.01812,
    [2.43992, 40.76918],
  ),
  ("group_norm", {"GroupNorm/beta": [3], "GroupNorm/gamma": [3]}, -0.01812, [2.43992, 40.76918]),
  (
    "conv1d",
    {"Conv/weights": [3, 4, 2], "Conv/biases": [2]},
    -0.53236,
    [2.02589, 2.72293, -1.17703],
  ),
  (
    "conv2d",
    {
      "Conv/weights": [3, 3, 3, 2],
      "Conv/BatchNorm/beta": [2],
      "Conv/BatchNorm/moving_mean": [2],
      "Conv/BatchNorm/moving_variance": [2],
    },
    -1.15849,
    [5.55207, 11.36681],
  ),
  (
    "conv2d_transpose",
    {"Conv2d_transpose/weights": [2, 2, 2, 3], "Conv2d_transpose/biases": [2]},
    1.03712,
    [58.04556, 11.82844],
  ),
  ("max_pool", {}, -0.41051, []),
  ("avg_pool", {}, -0.09229, []),
  ("embed", {"EmbedSequence/embeddings": [5, 3]}, -0.2154, [0.30632]),
  ("embed_unique", {"EmbedSequence/embeddings": [5, 3]}, -0.2154, [0.30632]),
  ("maxout", {}, 0.48581, [5.40158]),
  ("softmax", {}, 0.24594, [0.30283]),
]


@pytest.mark.parametrize(
  ("name", "variables", "output", "gradients"),
  [
    pytest.param(*row, marks=() if row[0] in ("norm_of_bert", "dense") else pytest.mark.ci)
    for row in EXPECTED_LAYERS
  ],
)
def test_layers(name, variables, output, gradients):
  result = run_layer(name)
  tolerance = 0.02 if name == "norm_half" else 3e-5

  assert result[0] == variables
  assert result[1] == pytest.approx(output, abs=tolerance)
  assert result[2] == pytest.approx(gradients, abs=10 * tolerance)


def run_initializers() -> list:
  draws = [
    layers.xavier_initializer(seed=1)([3, 4]),
    layers.xavier_initializer(uniform=False, seed=1)([3, 4]),
    layers.xavier_initializer_conv2d(seed=1)([2, 2, 3, 4]),
    layers.variance_scaling_initializer(seed=1)([5]),
    layers.variance_scaling_initializer(1.0, "FAN_OUT", uniform=True, seed=1)([2, 3, 4]),
  ]
  _, outputs, _ = describe({str(place): draw for place, draw in enumerate(draws)})
  return list(outputs.values())


def test_initializers_draw_the_same_numbers_from_the_same_seed():
  assert run_initializers() == pytest.approx(
    [-2.07381, -0.64061, -1.79748, -0.3986, -2.46862], abs=2e-5
  )


def test_an_initializer_of_an_unknown_mode_or_of_integers_is_an_error():
  with pytest.raises(TypeError, match="Unknown mode MEAN"):
    layers.variance_scaling_initializer(mode="MEAN")
  with pytest.raises(TypeError, match="non-floating point type"):
    layers.xavier_initializer(dtype=tf.int32)


def test_regularizers():
  weights = tf.constant([[1.0, -2.0], [3.0, 0.0]])  # Absolute values 6, squares 14.
  penalties = [
    layers.l1_regularizer(0.5)(weights),
    layers.l2_regularizer(0.5)(weights),
    layers.l1_l2_regularizer(0.5, 1.0)(weights),
    layers.sum_regularizer([layers.l1_regularizer(0.5), None])(weights),
    layers.apply_regularization(layers.l2_regularizer(0.5), [weights, weights]),
  ]
  with tf.Session() as session:
    assert session.run(penalties) == pytest.approx([3, 3.5, 10, 3, 7])
  assert [p.op.name for p in penalties[:2]] == ["l1_regularizer", "l2_regularizer"]
  assert tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES) == penalties[-1:]
  assert layers.l2_regularizer(0.0)(weights) is None
  assert layers.sum_regularizer([None]) is None


@pytest.mark.parametrize(
  ("call", "message"),
  [
    (lambda: layers.l1_regularizer(1), "scale cannot be an integer: 1"),
    (lambda: layers.l2_regularizer(-1.0), "Setting a scale less than 0 on a regularizer: -1"),
    (lambda: layers.apply_regularization(layers.l2_regularizer(0.1)), "No weights to regularize"),
    (lambda: layers.layer_norm(tf.placeholder("float32")), "has undefined rank"),
    (lambda: layers.layer_norm(tf.zeros([2]), begin_norm_axis=1), "must be < rank"),
    (lambda: layers.fully_connected(tf.zeros([2, 2]), 2.0), "num_outputs type should be one of"),
    (lambda: layers.group_norm(tf.zeros([1, 2, 2, 4]), groups=3), "not commensurate with 3 groups"),
    (lambda: layers.conv1d(tf.zeros([1, 2, 2, 4]), 1, 1), "expects input with rank 3, got 4"),
    (lambda: layers.embed_sequence(tf.zeros([1, 1], "int32"), 3), "Must specify vocab size"),
  ],
)
def test_what_1_15_refuses_is_refused_in_its_words(call, message):
  with pytest.raises(ValueError, match=message):
    call()


def test_variables_are_in_the_collections_of_1_15():
  x = tf.constant(waves(2, 4))
  regularizer = layers.l2_regularizer(0.1)
  layers.fully_connected(
    x,
    2,
    weights_regularizer=regularizer,
    variables_collections={"weights": ["mine"]},
    outputs_collections="outputs",
  )
  layers.batch_norm(x, scope="norm")

  def names(collection):
    return [getattr(item, "name", None) for item in tf.get_collection(collection)]

  dense = ["fully_connected/weights:0", "fully_connected/biases:0"]
  moving = ["norm/moving_mean:0", "norm/moving_variance:0"]
  assert names(tf.GraphKeys.MODEL_VARIABLES) == [*dense, "norm/beta:0", *moving]
  assert names(tf.GraphKeys.TRAINABLE_VARIABLES) == [*dense, "norm/beta:0"]
  assert names("mine") == dense[:1]
  assert tf.get_collection("outputs")[0].aliases == ["fully_connected"]
  assert len(names(tf.GraphKeys.REGULARIZATION_LOSSES)) == 1
  assert names(tf.GraphKeys.UPDATE_OPS) == ["norm/AssignMovingAvg:0", "norm/AssignMovingAvg_1:0"]


def test_outputs_of_a_graph_have_1_15s_names():
  x = tf.zeros([2, 4])
  with tf.variable_scope("bert"):
    assert layers.layer_norm(x).name == "bert/LayerNorm/batchnorm/add_1:0"
    assert layers.fully_connected(x, 2).name == "bert/fully_connected/Relu:0"
    assert layers.linear(x, 2).name == "bert/fully_connected_1/BiasAdd:0"


def test_reuse_of_variables():
  x = tf.zeros([2, 4])
  layers.layer_norm(x, scope="norm")
  layers.layer_norm(x, scope="norm", reuse=True)
  with tf.variable_scope("", reuse=tf.AUTO_REUSE):
    layers.fully_connected(x, 2, scope="dense")
    layers.fully_connected(x, 2, scope="dense")
  assert len(tf.global_variables()) == 4
  with pytest.raises(ValueError, match="already exists"):
    layers.layer_norm(x, scope="norm")


def test_an_arg_scope_gives_a_layer_its_arguments():
  x = tf.zeros([2, 4, 4, 3])
  with framework.arg_scope([layers.conv2d, layers.fully_connected], activation_fn=None):
    assert layers.conv2d(x, 2, 1).op.type == "BiasAdd"
    assert layers.conv2d(x, 2, 1, activation_fn=tf.nn.relu).op.type == "Relu"
    assert layers.repeat(x, 2, layers.conv2d, 2, 1).name.startswith("Repeat/convolution2d_2/")


def test_dropout_scales_what_it_keeps():
  x = tf.ones([1000])
  kept, same = layers.dropout(x, 0.25, seed=1), layers.dropout(x, is_training=False)
  with tf.Session() as session:
    kept, same = session.run([kept, same])

  assert set(kept) == {0, 4}
  assert 0.15 < (kept > 0).mean() < 0.35
  assert set(same) == {1}


def run_training(optimizer: str, **settings) -> list:
  """The variables' numbers after two steps."""
  step = tf.train.get_or_create_global_step()
  # Without biases: their gradient is 0 before a batch norm, and Adam divides what rounding left.
  x = layers.linear(tf.constant(waves(3, 4)), 2, biases_initializer=None)
  x = layers.batch_norm(x, scale=True, decay=0.5)
  loss = tf.reduce_sum((x - 1) ** 2)
  train = layers.optimize_loss(loss, step, 0.1, optimizer, **settings)
  variables = [*tf.global_variables("fully_connected"), *tf.global_variables("BatchNorm")]
  with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for place, variable in enumerate(variables):
      variable.load(waves(*variable.shape.as_list(), start=place) + 1.5, session)
    losses = [session.run(train) for _ in range(2)]
    assert session.run(step) == 2
    return [round(float(value), 5) for value in losses] + [
      round(float(session.run(variable).sum()), 5) for variable in variables
    ]


# The losses of two steps on 1.15.5, and the sums of the variables afterwards.
EXPECTED_TRAINING = [
  ("SGD", {}, [36.84524, 5.89798, 12.5529, 2.44012, 0.64853, 0.97486, 10.10364]),
  ("Adam", {}, [36.84524, 32.884, 11.75388, 4.35131, 3.65076, 0.94774, 9.00049]),
  (
    "Momentum",
    {"clip_gradients": 0.5},
    [36.84524, 35.80146, 12.55368, 4.63695, 3.88286, 0.97489, 10.10533],
  ),
  (
    "SGD",
    {"gradient_multipliers": {"fully_connected/weights:0": 3.0}},
    [36.84524, 5.89798, 12.55124, 2.44012, 0.64853, 0.97478, 10.10017],
  ),
]


@pytest.mark.ci
@pytest.mark.parametrize(("optimizer", "settings", "numbers"), EXPECTED_TRAINING)
def test_a_training_step_in_one_call(optimizer, settings, numbers):
  assert run_training(optimizer, **settings) == pytest.approx(numbers, abs=2e-4)


def test_summaries_of_a_training_step():
  loss = tf.reduce_sum(tf.get_variable("v", [2]))
  step = tf.train.get_or_create_global_step()
  layers.optimize_loss(
    loss, step, 0.1, "SGD", clip_gradients=1.0, summaries=layers.OPTIMIZER_SUMMARIES
  )

  assert sorted(s.name for s in tf.get_collection(tf.GraphKeys.SUMMARIES)) == [
    "OptimizeLoss/global_norm/clipped_gradient_norm:0",
    "OptimizeLoss/global_norm/gradient_norm:0",
    "OptimizeLoss/gradient_norm/v_0:0",
    "OptimizeLoss/gradients/v_0:0",
    "OptimizeLoss/loss:0",
  ]


def test_an_unknown_optimizer_is_an_error():
  loss, step = tf.zeros([]), tf.train.get_or_create_global_step()
  with pytest.raises(ValueError, match=r"should be one of \[Adagrad, Adam, .*you provided Sgd"):
    layers.optimize_loss(loss, step, 0.1, "Sgd")


def test_summaries_by_shape():
  relu = tf.nn.relu(tf.constant([-1.0, 2.0]), name="relu")
  assert layers.summarize_tensor(tf.constant(1.0, name="one")).name == "one_summary:0"
  assert layers.summarize_tensor(tf.constant("text")) is None
  assert layers.summarize_activation(relu).name == "relu/activation:0"
  names = [summary.name for summary in tf.get_collection(tf.GraphKeys.SUMMARIES)]
  assert names == ["one_summary:0", "relu/zeros:0", "relu/activation:0"]


def test_the_names_of_outputs_in_collections():
  layers.collect_named_outputs("points", "net/dense/", tf.zeros([1], name="a"))
  tf.add_to_collection("points", tf.zeros([1], name="b"))

  assert list(layers.convert_collection_to_dict("points")) == ["net/dense", "b"]


def test_a_block_that_1_15_computes_twice():
  block = layers.recompute_grad(lambda x: layers.linear(x, 3, scope="dense"))
  with tf.variable_scope("layer_0"):
    block(tf.zeros([1, 2]))

  assert [v.name for v in tf.global_variables()] == [
    "layer_0/dense/weights:0",
    "layer_0/dense/biases:0",
  ]


def test_a_name_that_is_not_there():
  with pytest.raises(AttributeError, match=r"use tf\.layers\.separable_conv2d"):
    _ = layers.separable_conv2d
