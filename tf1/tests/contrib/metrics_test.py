"""`tf.contrib.metrics`: the numbers that TensorFlow 1.15.5 gave for the same batches."""

import numpy as np
import pytest

from bert_tf1.contrib import metrics
from bert_tf1.real import tf

pytestmark = pytest.mark.ci


class Fed:
  """Placeholders of 6 predictions, labels and weights, and three batches to feed."""

  def __init__(self):
    self.predictions = tf.placeholder(tf.float32, [6])
    self.labels = tf.placeholder(tf.int64, [6])
    self.weights = tf.placeholder(tf.float32, [6])
    self.targets = tf.to_float(self.labels)
    self.rounded = tf.round(self.predictions)

  def batches(self):
    random = np.random.RandomState(1)
    for _ in range(3):
      yield {
        self.predictions: random.rand(6),
        self.labels: random.randint(0, 2, [6]),
        self.weights: random.rand(6),
      }

  def run(self, metric) -> tuple[list, list]:
    """What the update op and the value are after each batch."""
    value, update = metric
    updates, values = [], []
    with tf.Session() as session:
      session.run(tf.local_variables_initializer())
      for batch in self.batches():
        updates.append(session.run(update, batch))
        values.append(session.run(value))
    return updates, values


@pytest.fixture
def fed():
  with tf.Graph().as_default():
    yield Fed()


@pytest.mark.parametrize(
  ("make", "expected"),
  [
    (lambda f: metrics.streaming_accuracy(f.rounded, f.labels), [0.6666667, 0.6666667, 0.6111111]),
    (lambda f: metrics.streaming_precision(f.rounded, f.labels), [1.0, 1.0, 0.7142857]),
    (lambda f: metrics.streaming_recall(f.rounded, f.labels), [0.3333333, 0.5, 0.5]),
    (lambda f: metrics.streaming_true_positives(f.rounded, f.labels), [1.0, 4.0, 5.0]),
    (lambda f: metrics.streaming_true_negatives(f.rounded, f.labels), [3.0, 4.0, 6.0]),
    (lambda f: metrics.streaming_false_positives(f.rounded, f.labels), [0.0, 0.0, 2.0]),
    (lambda f: metrics.streaming_false_negatives(f.rounded, f.labels), [2.0, 4.0, 5.0]),
    (
      lambda f: metrics.streaming_accuracy(f.rounded, f.labels, f.weights),
      [0.7411702, 0.7109911, 0.703079],
    ),
    (
      lambda f: metrics.streaming_mean_absolute_error(f.predictions, f.targets),
      [0.5088888, 0.4719868, 0.4814976],
    ),
    (
      lambda f: metrics.streaming_mean_squared_error(f.predictions, f.targets),
      [0.3647814, 0.3041209, 0.3112072],
    ),
    (
      lambda f: metrics.streaming_root_mean_squared_error(f.predictions, f.targets),
      [0.6039714, 0.5514715, 0.5578595],
    ),
    (
      lambda f: metrics.streaming_covariance(f.predictions, f.targets),
      [-0.0053333, 0.0385439, 0.0147546],
    ),
    (
      lambda f: metrics.streaming_pearson_correlation(f.predictions, f.targets),
      [-0.0370977, 0.2922695, 0.1040774],
    ),
    (
      lambda f: metrics.streaming_covariance(f.predictions, f.targets, f.weights),
      [0.0049074, 0.0698194, 0.0408367],
    ),
    (
      lambda f: metrics.streaming_pearson_correlation(f.predictions, f.targets, f.weights),
      [0.0262814, 0.4542983, 0.2563252],
    ),
    (
      lambda f: metrics.streaming_pearson_correlation(f.predictions, f.predictions * 2 + 1),
      [1.0, 1.0000001, 1.0000001],
    ),
    (lambda f: metrics.streaming_auc(f.predictions, f.labels), [0.3333335, 0.6249999, 0.56875]),
    (
      lambda f: metrics.streaming_auc(f.predictions, f.labels, f.weights, 50, curve="PR"),
      [0.5652885, 0.918211, 0.5846971],
    ),
    (lambda f: metrics.streaming_mean(f.predictions), [0.2798146, 0.3720486, 0.4156936]),
    (lambda f: metrics.streaming_mean(f.predictions, f.weights), [0.2614944, 0.4337349, 0.470876]),
    (
      lambda f: metrics.streaming_percentage_less(f.predictions, 0.4, f.weights),
      [0.6520357, 0.351821, 0.3053995],
    ),
    (
      lambda f: metrics.streaming_precision_at_thresholds(f.predictions, f.labels, [0.2, 0.6]),
      [[0.3333333, 0.9999999], [0.7142857, 1.0], [0.5833333, 0.8]],
    ),
    (
      lambda f: metrics.streaming_recall_at_thresholds(
        f.predictions, f.labels, [0.2, 0.6], f.weights
      ),
      [[0.370378, 0.370378], [0.8075148, 0.5566465], [0.8433236, 0.6176088]],
    ),
    (lambda f: metrics.f1_score(f.labels, f.predictions), [0.6666666, 0.8, 0.7142857]),
    (
      lambda f: metrics.f1_score(f.labels, f.predictions, f.weights, 10),
      [0.5826535, 0.8301382, 0.7093635],
    ),
    (lambda f: metrics.f1_score(f.labels, f.rounded), [0.6666666, 0.8, 0.7142857]),
    (lambda f: metrics.count(f.predictions), [6.0, 12.0, 18.0]),
    (lambda f: metrics.count(f.predictions, f.weights), [2.7531881, 5.6962557, 9.3563757]),
  ],
)
def test_streaming(fed, make, expected):
  updates, values = fed.run(make(fed))
  np.testing.assert_allclose(updates, expected, rtol=2e-6, atol=1e-7)
  np.testing.assert_allclose(values, expected, rtol=2e-6, atol=1e-7)


def test_mean_iou(fed):
  values = fed.run(metrics.streaming_mean_iou(fed.rounded, fed.labels, 2))[1]
  np.testing.assert_allclose(values, [0.4666667, 0.5, 0.4391026], rtol=1e-6)


@pytest.mark.parametrize(
  ("weighted", "expected"),
  [(False, [0.333333, 0.4, 0.240964]), (True, [0.409284, 0.463202, 0.4081])],
)
def test_cohen_kappa(fed, weighted, expected):
  classes = tf.cast(fed.rounded, tf.int64)
  weights = fed.weights if weighted else None
  updates, values = fed.run(metrics.cohen_kappa(fed.labels, classes, 2, weights))
  np.testing.assert_allclose(updates, expected, atol=1e-6)
  np.testing.assert_allclose(values, expected, atol=1e-6)


def test_cohen_kappa_where_nothing_can_disagree(fed):
  zeros = tf.zeros([6], tf.int64)
  assert fed.run(metrics.cohen_kappa(zeros, zeros, 2))[1] == [0.0, 0.0, 0.0]


def test_correlation_where_nothing_varies(fed):
  still = metrics.streaming_pearson_correlation(fed.predictions * 0, fed.predictions)
  assert np.isnan(fed.run(still)[1]).all()


def test_concat(fed):
  pairs = tf.reshape(fed.predictions, [2, 3])
  updates, values = fed.run(metrics.streaming_concat(pairs, axis=1))
  assert updates == [3, 6, 9]
  batches = [batch[fed.predictions].reshape(2, 3) for batch in fed.batches()]
  np.testing.assert_allclose(values[2], np.concatenate(batches, axis=1), rtol=1e-6)
  updates, values = fed.run(metrics.streaming_concat(fed.labels, max_size=10))
  assert updates == [6, 10, 10]
  labels = np.concatenate([batch[fed.labels] for batch in fed.batches()])
  assert values[2].tolist() == labels[:10].tolist()


def test_concat_of_batches_of_many_sizes():
  with tf.Graph().as_default(), tf.Session() as session:
    words = tf.placeholder(tf.string, [None])
    value, update = metrics.streaming_concat(words)
    session.run(tf.local_variables_initializer())
    batches = [[f"{batch}.{i}" for i in range(batch * 3 % 7)] for batch in range(12)]
    counted = [session.run(update, {words: batch}) for batch in batches]
    assert counted == np.cumsum([len(batch) for batch in batches]).tolist()
    assert [word.decode() for word in session.run(value)] == [
      word for batch in batches for word in batch
    ]
  assert [variable.op.name for variable in value.graph.get_collection("metric_variables")] == [
    "streaming_concat/array",
    "streaming_concat/size",
  ]


def test_concat_has_its_static_shape_and_refuses(fed):
  value, _ = metrics.streaming_concat(tf.placeholder(tf.float32, [None, 3]))
  assert value.shape.as_list() == [None, 3]
  with pytest.raises(ValueError, match=r"axis = 2 not in \[0, 2\)"):
    metrics.streaming_concat(tf.zeros([2, 3]), axis=2)
  with pytest.raises(ValueError, match="must have statically known size"):
    metrics.streaming_concat(tf.placeholder(tf.float32, [None, None]))


def test_accuracy_of_a_batch(fed):
  whole = tf.cast(fed.rounded, tf.int64)
  plain = metrics.accuracy(whole, fed.labels)
  weighted = metrics.accuracy(whole, fed.labels, fed.weights)
  with tf.Session() as session:
    found = [session.run([plain, weighted], batch) for batch in fed.batches()]
  expected = [[0.6666667, 0.7411702], [0.6666667, 0.6827591], [0.5, 0.6907654]]
  np.testing.assert_allclose(found, expected, rtol=1e-6)
  dtypes = "Dtypes of predictions and labels should match. Given: predictions"
  with pytest.raises(ValueError, match=dtypes):
    metrics.accuracy(fed.predictions, fed.labels)


def test_collections_and_maps(fed):
  mean = metrics.streaming_mean(fed.predictions, None, ["values"], ["updates"])
  f1 = metrics.f1_score(
    fed.labels, fed.rounded, metrics_collections=["values"], updates_collections=["updates"]
  )
  assert tf.get_collection("values") == [mean[0], f1[0]]
  assert tf.get_collection("updates") == [mean[1], f1[1]]
  values, updates = metrics.aggregate_metric_map({"mean": mean, "f1": f1})
  assert (values, updates) == ({"mean": mean[0], "f1": f1[0]}, {"mean": mean[1], "f1": f1[1]})
  assert metrics.aggregate_metrics(mean, f1) == ([mean[0], f1[0]], [mean[1], f1[1]])
  with pytest.raises(ValueError, match="Expected at least one value_tensor/update_op pair"):
    metrics.aggregate_metrics()


def test_a_metric_that_is_elsewhere():
  with pytest.raises(AttributeError, match=r"use tf\.metrics\.recall_at_k with the labels before"):
    metrics.streaming_recall_at_k  # noqa: B018
