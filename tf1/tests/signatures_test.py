"""Call forms of 1.x: each gives what TensorFlow 1.15.5 gave for the same line, random ones too."""

import importlib

import numpy as np
import pytest

from bert_tf1 import signatures
from bert_tf1.real import tf

X = np.float32([[0, 0.1], [0.2, 0.3]])
L = np.float32([[0, 1], [1, 0]])


def value_of(make):
  """What a session makes of it, in a graph of its own."""
  with tf.Graph().as_default(), tf.Session() as session:
    tensor = make()
    session.run(tf.global_variables_initializer())
    return session.run(tensor)


@pytest.mark.parametrize(
  ("make", "expected", "dtype"),
  [
    (lambda: tf.nn.dropout(X, 0.5, seed=3), [[0.0, 0.0], [0.4, 0.0]], "float32"),
    (
      lambda: tf.nn.dropout(X, keep_prob=0.7, seed=3),
      [[0.0, 0.1428571], [0.2857143, 0.0]],
      "float32",
    ),
    (lambda: tf.nn.dropout(X, rate=0.3, seed=3), [[0.0, 0.1428571], [0.2857143, 0.0]], "float32"),
    (lambda: tf.nn.dropout(X, 0.5, [2, 1], 5), [[0.0, 0.0], [0.4, 0.6]], "float32"),
    (lambda: tf.nn.softmax(X, dim=0), [[0.450166, 0.450166], [0.549834, 0.549834]], "float32"),
    (
      lambda: tf.nn.log_softmax(X, dim=0),
      [[-0.7981389, -0.7981389], [-0.5981389, -0.5981389]],
      "float32",
    ),
    (lambda: tf.argmax(X, dimension=1), [1, 1], "int64"),
    (lambda: tf.argmin(X, dimension=0), [0, 0], "int64"),
    (lambda: tf.reduce_sum(X, 1, keep_dims=True), [[0.1], [0.5]], "float32"),
    (lambda: tf.reduce_sum(X, reduction_indices=[1]), [0.1, 0.5], "float32"),
    (lambda: tf.reduce_mean(X, 1, True), [[0.05], [0.25]], "float32"),
    (lambda: tf.reduce_max(X, reduction_indices=0, keep_dims=True), [[0.2, 0.3]], "float32"),
    (lambda: tf.reduce_logsumexp(X, 1, keep_dims=True), [[0.7443967], [0.9443967]], "float32"),
    (lambda: tf.count_nonzero(X, reduction_indices=1), [1, 2], "int64"),
    (lambda: tf.expand_dims(X, dim=1), [[[0.0, 0.1]], [[0.2, 0.3]]], "float32"),
    (lambda: tf.squeeze(X[None], squeeze_dims=[0]), [[0.0, 0.1], [0.2, 0.3]], "float32"),
    (lambda: tf.split(X, 2, 1)[0], [[0.0], [0.2]], "float32"),
    (lambda: tf.split(value=X, num_or_size_splits=[1, 1], axis=1)[1], [[0.1], [0.3]], "float32"),
    (lambda: tf.concat([X, X], 1), [[0.0, 0.1, 0.0, 0.1], [0.2, 0.3, 0.2, 0.3]], "float32"),
    (lambda: tf.gather(X, [0], None, "name", 1), [[0.0], [0.2]], "float32"),
    (
      lambda: tf.pad(X, [[1, 0], [0, 1]], constant_values=2.0),
      [[2.0, 2.0, 2.0], [0.0, 0.1, 2.0], [0.2, 0.3, 2.0]],
      "float32",
    ),
    (
      lambda: tf.reverse_sequence(X, [1, 2], seq_dim=1, batch_dim=0),
      [[0.0, 0.1], [0.3, 0.2]],
      "float32",
    ),
    (lambda: tf.where(X[:, 0] > 0.1, X, -X), [[-0.0, -0.1], [0.2, 0.3]], "float32"),
    (lambda: tf.nn.l2_normalize(X, dim=1), [[0.0, 1.0], [0.5547002, 0.8320503]], "float32"),
    (lambda: tf.norm(X, axis=1, keep_dims=True), [[0.1], [0.3605551]], "float32"),
    (
      lambda: tf.nn.softmax_cross_entropy_with_logits(labels=L, logits=X),
      [0.6443967, 0.7443967],
      "float32",
    ),
    (
      lambda: tf.nn.softmax_cross_entropy_with_logits_v2(L, X, dim=0),
      [0.5981389, 0.7981389],
      "float32",
    ),
    (
      lambda: tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[1, 0], logits=X),
      [0.6443967, 0.7443967],
      "float32",
    ),
    (
      lambda: tf.nn.weighted_cross_entropy_with_logits(targets=L, logits=X, pos_weight=2.0),
      [[0.6931472, 1.2887933], [1.1962777, 0.8543553]],
      "float32",
    ),
    (lambda: tf.losses.softmax_cross_entropy(L, X, label_smoothing=0.1), 0.6943967, "float32"),
    (
      lambda: tf.losses.sparse_softmax_cross_entropy([1, 0], X, weights=[1.0, 0.0]),
      0.6443967,
      "float32",
    ),
    (
      lambda: tf.confusion_matrix([1, 0], [1, 1], 2, dtype=tf.int32, weights=[1, 2]),
      [[0, 2], [0, 1]],
      "int32",
    ),
    (
      lambda: tf.sparse_to_dense(sparse_indices=[1, 3], output_shape=[5], sparse_values=1),
      [0, 1, 0, 1, 0],
      "int32",
    ),
    (
      lambda: tf.sparse_reduce_sum(tf.SparseTensor([[0, 1]], [1.0], [2, 3]), reduction_axes=1),
      [1.0, 0.0],
      "float32",
    ),
    (lambda: tf.decode_csv(["1,2.5"], record_defaults=[[0], [0.0]])[1], [2.5], "float32"),
    (
      lambda: tf.multinomial(X, 4, seed=1, output_dtype=tf.int32),
      [[1, 0, 1, 1], [0, 0, 0, 0]],
      "int32",
    ),
    (
      lambda: tf.random_uniform([2, 2], seed=1),
      [[0.2390374, 0.9203995], [0.0505124, 0.4957445]],
      "float32",
    ),
    (lambda: tf.truncated_normal([2], seed=1), [-0.8113182, 1.4845988], "float32"),
    (lambda: tf.log(X + 1), [[0.0, 0.0953102], [0.1823216, 0.2623642]], "float32"),
    (lambda: tf.div([7, -7], 2), [3, -4], "int32"),
    (lambda: tf.mod([7, -7], 3), [1, 2], "int32"),
    (lambda: tf.to_float([1, 2]), [1.0, 2.0], "float32"),
    (lambda: tf.to_int32([1.7]), [1], "int32"),
    (lambda: tf.cond(tf.constant(False), fn1=lambda: 1.0, fn2=lambda: 2.0), 2.0, "float32"),
    (lambda: tf.while_loop(lambda i: i < 4, lambda i: [i + 1], [0], back_prop=False), 4, "int32"),
    (lambda: tf.py_func(lambda a: a * 2, [X], tf.float32), [[0.0, 0.2], [0.4, 0.6]], "float32"),
    (
      lambda: tf.train.exponential_decay(0.1, tf.constant(15, tf.int64), 10, 0.9, staircase=True),
      0.09,
      "float32",
    ),
    (
      lambda: tf.train.polynomial_decay(
        0.1, tf.constant(5), 10, end_learning_rate=0.0, power=1.0, cycle=False
      ),
      0.05,
      "float32",
    ),
    (
      lambda: tf.train.piecewise_constant(tf.constant(5, tf.int64), [3, 10], [0.1, 0.2, 0.3]),
      0.2,
      "float32",
    ),
    (
      lambda: tf.layers.dense(
        X, 2, kernel_initializer=tf.truncated_normal_initializer(stddev=0.02, seed=1)
      ),
      [[0.0001307, 0.0001985], [-0.0028533, 0.0065339]],
      "float32",
    ),
    (
      lambda: tf.layers.dense(X, 2, kernel_initializer=tf.glorot_uniform_initializer(seed=1)),
      [[-0.1101015, -0.0010424], [-0.4581496, 0.2028257]],
      "float32",
    ),
    (lambda: tf.layers.dropout(X, 0.5, training=True, seed=2), [[0.0, 0.2], [0.0, 0.0]], "float32"),
    (
      lambda: tf.get_variable("v", [3], initializer=tf.random_uniform_initializer(-1, 1, seed=1)),
      [-0.5219252, 0.8407991, -0.8989751],
      "float32",
    ),
    (
      lambda: tf.get_variable("v", [3], initializer=tf.uniform_unit_scaling_initializer(seed=1)),
      [-0.9040009, 1.4563068, -1.5570706],
      "float32",
    ),
    (
      lambda: tf.nn.conv1d(
        value=X[None], filters=np.ones((2, 2, 1), np.float32), stride=1, padding="SAME"
      ),
      [[[0.6], [0.5]]],
      "float32",
    ),
    (
      lambda: tf.nn.embedding_lookup_sparse(
        X, tf.SparseTensor([[0, 0], [0, 1]], [1, 0], [1, 2]), None
      ),
      [[0.1, 0.2]],
      "float32",
    ),
  ],
)
def test_numbers(make, expected, dtype):
  found = value_of(make)
  assert found.dtype == dtype
  np.testing.assert_allclose(found, expected, rtol=1e-5, atol=2e-7)


@pytest.mark.parametrize(
  ("make", "expected"),
  [
    (
      lambda: tf.sparse_tensor_to_dense(tf.string_split(["a b c", "d e"]), ""),
      [["a", "b", "c"], ["d", "e", ""]],
    ),
    (lambda: tf.string_split(["a,b,,c"], ",", skip_empty=False).values, ["a", "b", "", "c"]),
    (lambda: tf.string_split(["abc"], delimiter="").values, ["a", "b", "c"]),
    (lambda: tf.substr(["hello"], 1, 3), ["ell"]),
    (lambda: tf.reduce_join([["a", "b"]], reduction_indices=1, keep_dims=True), [["ab"]]),
  ],
)
def test_strings(make, expected):
  assert np.char.decode(value_of(make).astype(bytes)).tolist() == expected


def test_static_shapes_are_those_of_1x():
  with tf.Graph().as_default():
    tensor = tf.placeholder(tf.float32, [None, 2], name="x")
    assert tensor.shape[1].value == 2
    assert tensor.get_shape().as_list() == [None, 2]
    assert repr(tensor.shape[0]) == "Dimension(None)"
    assert "float32_ref" in repr(tf.get_variable("w", [2]))


def test_the_seed_of_the_graph_repeats_a_run():
  def make():
    tf.set_random_seed(7)
    return tf.random_uniform([4])

  assert value_of(make).tolist() == value_of(make).tolist()


@pytest.mark.parametrize(
  ("module", "names"),
  [
    ("estimator", ["estimator", "model_fn"]),
    ("estimator.estimator", ["Estimator"]),
    ("estimator.export.export_output", ["PredictOutput"]),
    ("estimator.inputs.numpy_io", ["numpy_input_fn"]),
    ("estimator.model_fn", ["EstimatorSpec", "ModeKeys"]),
    ("estimator.run_config", ["RunConfig"]),
    ("estimator.training", ["TrainSpec", "train_and_evaluate"]),
    ("framework.ops", ["Tensor", "IndexedSlices", "register_tensor_conversion_function"]),
    ("framework.graph_util", ["convert_variables_to_constants"]),
    ("framework.tensor_shape", ["scalar", "vector", "matrix"]),
    ("layers.normalization", ["BatchNormalization", "batch_normalization"]),
    ("ops.array_ops", ["stack", "unstack"]),
    ("ops.control_flow_ops", ["while_loop", "cond", "case", "Assert"]),
    ("ops.variable_scope", ["variable"]),
    ("ops.variables", ["VariableV1", "RefVariable"]),
    ("training.checkpoint_management", ["latest_checkpoint", "get_checkpoint_state"]),
    ("training.distribute", ["get_replica_context"]),
    ("training.training_ops", ["apply_adam", "resource_apply_adam"]),
  ],
)
def test_names_in_files_of_tensorflow(module, names):
  found = importlib.import_module(f"tensorflow.python.{module}")
  assert [name for name in names if not hasattr(found, name)] == []


def test_what_the_restored_names_do():
  assert signatures.nest.is_sequence([1])
  assert not signatures.nest.is_sequence("text")
  assert signatures.tensor_shape.matrix(2, 3).as_list() == [2, 3]
  assert signatures.tensor_shape.vector(2).as_list() == [2]
  assert signatures.tensor_shape.scalar().as_list() == []
  assert signatures.NAMES["pywrap_tensorflow"].NewCheckpointReader


def test_a_record_takes_the_bools_of_numpy():
  made = signatures.NAMES["train.Int64List"](value=iter([np.bool_(True), False, 3]))
  assert tf.train.Feature(int64_list=made).int64_list.value == [1, 0, 3]
  with pytest.raises(TypeError):
    signatures.NAMES["train.Int64List"](value=["1"])
