"""What an EstimatorSpec, TrainSpec and EvalSpec check, and what they fill in, as in 1.15.5."""

import pytest

from bert_tf1 import estimator as tfe
from bert_tf1.estimator import tpu
from bert_tf1.real import tf

pytestmark = pytest.mark.usefixtures("graph")


def test_predictions_are_the_default_output():
  tensor = tf.constant([1.0])
  spec = tfe.EstimatorSpec("infer", {"a": tensor})
  assert spec.export_outputs["serving_default"].outputs == {"a": tensor}
  named = tfe.EstimatorSpec("infer", tensor, export_outputs={"k": tfe.export.PredictOutput(tensor)})
  assert set(named.export_outputs) == {"k", "serving_default"}


@pytest.mark.parametrize("outputs", [3, {"a": 3}])
def test_what_is_no_output_is_refused(outputs):
  with pytest.raises(TypeError, match="export_outputs"):
    tfe.EstimatorSpec("infer", tf.constant(1.0), export_outputs=outputs)


def test_tensors_of_another_graph_are_refused(graph):
  with tf.Graph().as_default():
    other = tf.constant(2.0)
  mine = tf.constant(1.0)
  for name, fields in (
    ("loss", {"mode": "eval", "loss": other}),
    ("train_op", {"mode": "train", "loss": mine, "train_op": other}),
    (r"predictions\['a'\]", {"mode": "infer", "predictions": {"a": other}}),
    ("eval_metric_ops", {"mode": "eval", "loss": mine, "eval_metric_ops": {"a": (other, mine)}}),
  ):
    with pytest.raises(
      ValueError, match=f'^{name}.* with "Const:0" must be from the default graph'
    ):
      tfe.EstimatorSpec(**fields)


def test_a_metric_of_keras_is_initialized_and_updated():
  metric = tf.keras.metrics.Mean()
  metric.update_state(tf.constant([1.0, 2.0]))
  spec = tfe.EstimatorSpec("eval", loss=tf.constant(0.0), eval_metric_ops={"mean": metric})
  value, update = spec.eval_metric_ops["mean"]
  with tf.Session() as session:
    session.run(tf.local_variables_initializer())
    session.run(update)
    assert session.run(value) == 1.5


def no_input():
  """An input_fn that is never called."""


# As 1.15.5 said it.
@pytest.mark.parametrize(
  ("make", "message"),
  [
    (lambda: tfe.TrainSpec(3), "`input_fn` must be callable, given: 3"),
    (lambda: tfe.TrainSpec(no_input, max_steps=0), "Must specify max_steps > 0, given: 0"),
    (lambda: tfe.TrainSpec(no_input, hooks=[3]), "hooks must be .*SessionRunHook.*, given: 3"),
    (lambda: tfe.EvalSpec(3), "`input_fn` must be callable, given: 3"),
    (lambda: tfe.EvalSpec(no_input, steps=0), "Must specify steps > 0, given: 0"),
    (lambda: tfe.EvalSpec(no_input, name=3), "`name` must be string, given: 3"),
    (lambda: tfe.EvalSpec(no_input, hooks=[3]), "hooks must be .*SessionRunHook.*, given: 3"),
    (lambda: tfe.EvalSpec(no_input, throttle_secs=-1), "Must specify throttle_secs >= 0"),
    (lambda: tfe.EvalSpec(no_input, exporters=3), "must be an Exporter, .*, found 3"),
    (lambda: tfe.EvalSpec(no_input, exporters=[3]), r"must be an Exporter, .*, found \[3\]"),
    (lambda: tfe.EvalSpec(no_input, exporters=tfe.Exporter()), r"Exporters need names.*\[None\]"),
    (
      lambda: tfe.EvalSpec(no_input, exporters=2 * [tfe.FinalExporter("a", no_input)]),
      r"Exporters need names that differ, given: \['a', 'a'\]",
    ),
    (lambda: tfe.RunConfig(""), "model_dir should be non-empty."),
    (lambda: tfe.RunConfig(device_fn=3), "device_fn must be callable with exactly one argument"),
    (lambda: tfe.RunConfig(device_fn=no_input), "device_fn must be callable with exactly one"),
    (lambda: tfe.RunConfig(log_step_count_steps=0), "log_step_count_steps should be > 0"),
    (
      lambda: tfe.RunConfig(keep_checkpoint_every_n_hours=0),
      "keep_checkpoint_every_n_hours should be > 0",
    ),
  ],
)
def test_wrong_settings_say_so(make, message):
  with pytest.raises((TypeError, ValueError), match=message):
    make()


def test_a_device_function_is_called_with_the_op():
  assert tfe.RunConfig(device_fn=lambda op: "/cpu:0").device_fn(None) == "/cpu:0"


def test_no_exporters_are_an_empty_list_of_them():
  assert tfe.EvalSpec(no_input, exporters=[]).exporters == ()
  exporter = tfe.LatestExporter("a", no_input)
  assert tfe.EvalSpec(no_input, exporters=exporter).exporters == (exporter,)


@pytest.mark.parametrize(("given", "kept"), [(True, 2), (False, 1), (3, 3)])
def test_the_oldest_way_to_say_how_input_comes(given, kept):
  assert tpu.TPUConfig(per_host_input_for_training=given).per_host_input_for_training == kept


def test_parameters_that_nobody_gives_are_mentioned(tmp_path, caplog):
  tfe.Estimator(lambda features, params: None, str(tmp_path))
  assert "includes params argument, but params are not passed to Estimator." in caplog.text
