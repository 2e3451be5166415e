"""The smaller names of tf.contrib against TensorFlow 1.15.5: its results are the literals here."""

import numpy as np
import pytest

from bert_tf1.contrib import crf, framework, layers, mixed_precision, opt, rnn, training
from bert_tf1.real import tf

RANDOM = np.random.RandomState(0)
SCORES = RANDOM.randn(2, 3, 2).astype(np.float32)
TRANSITIONS = RANDOM.randn(2, 2).astype(np.float32)
IMAGE = RANDOM.randn(1, 4, 4, 2).astype(np.float32)
TAGS = np.array([[0, 1, 1], [1, 0, 0]], np.int32)
LENGTHS = np.array([3, 2], np.int32)


def crf_parts():
  scores, transitions, tags, lengths = map(tf.constant, (SCORES, TRANSITIONS, TAGS, LENGTHS))
  return [
    crf.crf_sequence_score(scores, tags, lengths, transitions),
    crf.crf_log_norm(scores, lengths, transitions),
    crf.crf_unary_score(tags, lengths, scores),
    crf.crf_binary_score(tags, lengths, transitions),
  ]


def crf_forward_cell():
  return crf.CrfForwardRnnCell(tf.constant(TRANSITIONS))(SCORES[:, 1], SCORES[:, 0])[1]


def crf_decode_cells():
  cell = crf.CrfDecodeForwardRnnCell(tf.constant(TRANSITIONS))
  pointers, state = cell(tf.constant(SCORES[:, 1]), tf.constant(SCORES[:, 0]))
  best, _ = crf.CrfDecodeBackwardRnnCell(2)(pointers, tf.constant([[1], [0]]))
  return [pointers, state, best]


def one_hot():
  return layers.one_hot_encoding(tf.constant([2, 0]), 3, on_value=2.0)


def lookup_unique():
  table = tf.constant([[1.0, 2.0], [3.0, 4.0]])
  return layers.embedding_lookup_unique(table, tf.constant([[1, 1], [0, 1]]))


def convolutions():
  settings = {"weights_initializer": tf.ones_initializer()}
  image = tf.constant(IMAGE)
  outputs = [
    layers.convolution(image, 2, 3, **settings),
    layers.convolution2d(image, 2, 3, **settings),
    layers.convolution2d_transpose(image, 2, 3, stride=2, **settings),
    layers.convolution1d(image[0], 2, 3, **settings),
    layers.convolution3d(image[tf.newaxis], 2, 3, **settings),
  ]
  assert layers.convolution1d is layers.conv1d
  assert layers.convolution3d is layers.conv3d
  return [tf.reduce_sum(output) for output in outputs]


def clipped_gradients():
  variable = tf.get_variable("v", [2], initializer=tf.zeros_initializer())
  sparse = tf.IndexedSlices(tf.constant([[3.0, 4.0]]), tf.constant([0]))
  pairs = [(tf.constant([3.0, 4.0]), variable), (sparse, variable), (None, variable)]
  clipped = training.clip_gradient_norms(pairs, 1.0)
  assert clipped[2][0] is None
  names = [summary.op.name for summary in training.add_gradients_summaries(pairs[:1])]
  assert names == ["v_gradient", "v_gradient_norm"]
  return [clipped[0][0], clipped[1][0].values]


def after(op, *variables):
  with tf.control_dependencies([op]):
    return [variable.read_value() for variable in variables]


def lars():
  start = tf.constant_initializer([1.0, 2.0])
  plain = tf.get_variable("v", [2], initializer=start)
  skipped = tf.get_variable("bias", [2], initializer=start)
  optimizer = opt.LARSOptimizer(0.1, weight_decay=0.01, skip_list=["bias"])
  loss = tf.reduce_sum(plain * plain + skipped * skipped)
  return after(optimizer.minimize(loss), plain, skipped)


def decoupled_weight_decay():
  class Decayed(opt.DecoupledWeightDecayExtension, tf.train.GradientDescentOptimizer):
    pass

  variable = tf.get_variable("v", [2], initializer=tf.constant_initializer([1.0, 2.0]))
  return after(Decayed(0.5, learning_rate=0.1).minimize(tf.reduce_sum(variable)), variable)


def loss_scale():
  class Two(mixed_precision.LossScaleManager):
    def get_loss_scale(self):
      return tf.constant(2.0)

    def update_loss_scale(self, finite_grads):
      return tf.no_op()

  variable = tf.get_variable("v", [], initializer=tf.ones_initializer())
  plain = tf.train.GradientDescentOptimizer(0.1)
  return after(mixed_precision.LossScaleOptimizer(plain, Two()).minimize(3 * variable), variable)


def fused_cell():
  class Double(rnn.FusedRNNCell):
    def __call__(self, inputs, initial_state=None, dtype=None, sequence_length=None, scope=None):
      return 2 * inputs, inputs[-1]

  assert issubclass(rnn.LSTMBlockFusedCell, rnn.LSTMBlockWrapper)
  return list(rnn.TimeReversedFusedRNN(Double())(tf.constant([[[1.0]], [[2.0]]])))


EXPECTED = {
  crf_parts: [[3.48302, 0.18929], [7.26449, 2.51877], [3.02767, -0.25458], [0.45535, 0.44386]],
  crf_forward_cell: [[3.67456, 4.40125], [1.82467, 1.82658]],
  crf_decode_cells: [
    [[0.0, 0.0], [0.0, 0.0]],
    [[3.50383, 4.12662], [1.60791, 1.48236]],
    [[0.0], [0.0]],
  ],
  one_hot: [[0.0, 0.0, 2.0], [2.0, 0.0, 0.0]],
  lookup_unique: [[[3.0, 4.0], [3.0, 4.0]], [[1.0, 2.0], [3.0, 4.0]]],
  convolutions: [46.24165, 46.24165, 109.14214, 30.6431, 46.24165],
  clipped_gradients: [[0.6, 0.8], [[0.6, 0.8]]],
  lars: [[0.9999, 1.9998], [0.8, 1.6]],
  decoupled_weight_decay: [[0.4, 0.9]],
  loss_scale: [0.7],
  fused_cell: [[[[2.0]], [[4.0]]], [[1.0]]],
}


@pytest.mark.parametrize("build", EXPECTED, ids=lambda build: build.__name__)
def test_results_are_those_of_1_15(build):
  with tf.Graph().as_default(), tf.Session() as session:
    outputs = build()
    session.run(tf.global_variables_initializer())
    values = session.run(outputs)
  expected = EXPECTED[build]
  if not isinstance(outputs, list):
    values, expected = [values], [expected]
  for value, wanted in zip(values, expected, strict=True):
    np.testing.assert_allclose(value, wanted, rtol=1e-5, atol=2e-5)


def test_variables_by_name_are_set_to_values():
  with tf.Graph().as_default(), tf.Session() as session:
    variable = tf.get_variable("v", [2], initializer=tf.zeros_initializer())
    framework.add_model_variable(variable)
    framework.add_model_variable(variable)
    assert framework.get_model_variables() == [variable]
    session.run(*framework.assign_from_values({"v": np.array([1.0, 2.0])}))
    assert session.run(variable).tolist() == [1.0, 2.0]


def test_summaries_are_named_after_tensors():
  with tf.Graph().as_default():
    tensor = tf.constant([1.0, 2.0], name="x")
    tf.add_to_collection(tf.GraphKeys.ACTIVATIONS, tensor)
    tf.add_to_collection("mine", tensor)
    summaries = [
      *layers.summarize_activations(),
      *layers.summarize_collection("mine"),
      *layers.summarize_tensors([tensor]),
    ]
    assert [summary.op.name for summary in summaries] == [
      "x/activation",
      "x_summary",
      "x_summary_1",
    ]


def test_what_layers_are_built_with():
  with tf.Graph().as_default():
    tensor = layers.append_tensor_alias(tf.constant(1.0, name="x"), "block/")
    assert layers.get_tensor_aliases(tensor) == ["block"]
    assert layers.gather_tensors_aliases([tensor, tf.constant(1.0, name="y")]) == ["block", "y"]
    assert layers.get_variable_collections({"bias": ["mine"]}, "bias") == ["mine"]
    assert layers.last_dimension(tf.TensorShape([None, 3])) == 3
    assert layers.n_positive_integers(2, 3) == (3, 3)
    assert layers.smart_cond(True, lambda: 1, lambda: 2) == 1
