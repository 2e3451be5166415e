"""SavedModels of an Estimator: signatures and files as TensorFlow 1.15.5 wrote them.

The literals are what 1.15.5 exported from the same model; 1.15.5 and 2.21 loaded these exports and
gave the same outputs.
"""

import os
import subprocess
import sys

import pytest

from bert_tf1.estimator import Estimator, EstimatorSpec, ModeKeys, export
from bert_tf1.estimator.receivers import build_raw_supervised_input_receiver_fn
from bert_tf1.real import tf

SPEC = {"x": tf.FixedLenFeature([3], tf.float32)}
WEIGHTS = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
  """A folder with a vocabulary and a checkpoint of step 7."""
  folder = tmp_path_factory.mktemp("exports")
  (folder / "vocab.txt").write_text("zero\none\n")
  with tf.Graph().as_default():
    tf.train.create_global_step()
    tf.get_variable("m/w", [3, 2], initializer=tf.constant_initializer(WEIGHTS))
    with tf.Session() as session:
      session.run(tf.global_variables_initializer())
      tf.train.Saver().save(session, str(folder / "model" / "model.ckpt"), global_step=7)
  return folder


def outputs_of(logits, classes) -> dict:
  scores = tf.nn.softmax(logits)
  return {
    "serving_default": export.PredictOutput({"logits": logits}),
    "classify": export.ClassificationOutput(scores=scores, classes=classes),
    "scores": export.ClassificationOutput(scores=scores),
    "reg": export.RegressionOutput(logits[:, :1]),
  }


def estimator(folder, chosen=None, names=("m/w",)) -> Estimator:
  """A linear model; `chosen` are names of its outputs, None for the predictions alone."""

  def model_fn(features, labels, mode):
    weights, *_ = [tf.get_variable(name, [3, 2]) for name in names]
    logits = tf.matmul(features["x"], weights)
    words = tf.lookup.StaticHashTable(
      tf.lookup.TextFileInitializer(
        str(folder / "vocab.txt"),
        *(tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER),
        *(tf.string, tf.lookup.TextFileIndex.WHOLE_LINE),
      ),
      "UNK",
    )
    classes = words.lookup(tf.argmax(logits, 1))
    outputs = outputs_of(logits, classes[:, tf.newaxis])
    loss = train_op = None
    if mode != ModeKeys.PREDICT:
      loss = tf.reduce_mean(tf.square(logits - labels))
      step = tf.train.get_global_step()
      train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, step)
    return EstimatorSpec(
      mode,
      {"logits": logits, "cls": classes},
      loss,
      train_op,
      export_outputs=None if chosen is None else {name: outputs[name] for name in chosen},
    )

  return Estimator(model_fn, str(folder / "model"))


ALL = ("serving_default", "classify", "scores", "reg")


def raw():
  x = tf.placeholder(tf.float32, [None, 3], name="x")
  return export.ServingInputReceiver({"x": x}, {"x": x})


def with_alternatives():
  parsed = export.build_parsing_serving_input_receiver_fn(SPEC)()
  alternatives = {"raw": parsed.features, "one": parsed.features["x"]}
  return export.ServingInputReceiver(parsed.features, parsed.receiver_tensors, alternatives)


def signatures(path: bytes, tags=("serve",)) -> dict:
  """Name to (method, inputs, outputs) of an export, after its tables have been filled."""
  with tf.Graph().as_default(), tf.Session() as session:
    loaded = tf.saved_model.loader.load(session, list(tags), path.decode())
    assert tf.global_variables()[0].op.name in ("global_step", "m/w")
  return {
    name: (
      signature.method_name.removeprefix("tensorflow/serving/"),
      {key: info.name for key, info in signature.inputs.items()},
      sorted(signature.outputs),
    )
    for name, signature in loaded.signature_def.items()
  }


def test_examples_have_a_signature_per_output(folder):
  receiver = export.build_parsing_serving_input_receiver_fn(SPEC)
  path = estimator(folder, ALL).export_saved_model(str(folder / "parse"), receiver)
  fed = "input_example_tensor:0"
  assert signatures(path) == {
    "serving_default": ("predict", {"examples": fed}, ["logits"]),
    "classify": ("classify", {"inputs": fed}, ["classes", "scores"]),
    "scores": ("classify", {"inputs": fed}, ["scores"]),
    "reg": ("regress", {"inputs": fed}, ["outputs"]),
  }


def test_features_have_those_signatures_that_can_be_served(folder):
  path = estimator(folder, ALL).export_savedmodel(str(folder / "raw"), raw)
  assert signatures(path) == {"serving_default": ("predict", {"x": "x:0"}, ["logits"])}


def test_alternatives_have_signatures_of_their_own(folder):
  path = estimator(folder, ALL).export_saved_model(str(folder / "alt"), with_alternatives)
  found = signatures(path)
  parsed = "ParseExample/ParseExample:0"
  assert set(found) == {*ALL, "raw:serving_default", "one:serving_default"}
  assert found["raw:serving_default"] == ("predict", {"x": parsed}, ["logits"])
  assert found["one:serving_default"] == ("predict", {"input": parsed}, ["logits"])


def test_predictions_are_the_default_output(folder):
  path = estimator(folder).export_saved_model(str(folder / "default"), raw)
  assert signatures(path) == {"serving_default": ("predict", {"x": "x:0"}, ["cls", "logits"])}


def test_a_sole_output_is_the_default_too(folder):
  receiver = export.build_parsing_serving_input_receiver_fn(SPEC, 4)
  path = estimator(folder, ["reg"]).export_saved_model(str(folder / "sole"), receiver)
  regress = ("regress", {"inputs": "input_example_tensor:0"}, ["outputs"])
  assert signatures(path) == {"reg": regress, "serving_default": regress}


def test_several_outputs_need_a_default(folder):
  with pytest.raises(ValueError, match=r"Multiple .*export_outputs.* were provided, but none"):
    estimator(folder, ["reg", "scores"]).export_saved_model(str(folder / "none"), raw)


def files_of(path: bytes) -> set[str]:
  return {
    os.path.relpath(os.path.join(where, name), path.decode())
    for where, _, names in os.walk(path.decode())
    for name in names
  }


def test_files_are_those_of_1x_and_the_folder_is_a_time(folder):
  path = estimator(folder).export_saved_model(
    str(folder / "files"), raw, {"a/b.txt": str(folder / "vocab.txt")}, as_text=True
  )
  assert isinstance(path, bytes)  # As in 1.x: scripts decode it.
  assert len(os.path.basename(path)) == 10
  assert int(os.path.basename(path)) > 0
  assert files_of(path) == {
    "saved_model.pbtxt",
    "assets/vocab.txt",
    "assets.extra/a/b.txt",
    "variables/variables.index",
    "variables/variables.data-00000-of-00001",
  }
  assert os.listdir(folder / "files") == [os.path.basename(path).decode()]


def test_the_graph_computes_from_the_checkpoint_and_fills_its_tables(folder):
  path = estimator(folder).export_saved_model(str(folder / "compute"), raw)
  with tf.Graph().as_default(), tf.Session() as session:
    loaded = tf.saved_model.loader.load(session, ["serve"], path.decode())
    outputs = loaded.signature_def["serving_default"].outputs
    found = session.run({k: v.name for k, v in outputs.items()}, {"x:0": [[1, 1, 1]]})
  assert found["logits"].tolist() == [[9.0, 12.0]]
  assert found["cls"].tolist() == [b"one"]


LOAD = """
import sys, tensorflow as tf
example = tf.train.Example()
example.features.feature["x"].float_list.value.extend([1.0, 1.0, 1.0])
call = tf.saved_model.load(sys.argv[1]).signatures["serving_default"]
print(call(examples=tf.constant([example.SerializeToString()]))["logits"].numpy().tolist())
"""


@pytest.mark.ci
def test_tensorflow_2_loads_it(folder):
  receiver = export.build_parsing_serving_input_receiver_fn(SPEC)
  path = estimator(folder, ALL).export_saved_model(str(folder / "loaded"), receiver)
  command = [sys.executable, "-c", LOAD, path.decode()]
  done = subprocess.run(command, capture_output=True, text=True, check=True)
  assert done.stdout == "[[9.0, 12.0]]\n"


def test_graphs_that_train_and_evaluate_share_the_variables(folder):
  with tf.Graph().as_default():
    features, labels = {"x": tf.zeros([2, 3], name="x")}, tf.zeros([2, 2], name="y")
    supervised = build_raw_supervised_input_receiver_fn(features, labels)
  path = estimator(folder).experimental_export_all_saved_models(
    str(folder / "modes"), {"train": supervised, "eval": supervised, "infer": raw}
  )
  inputs = {"x": "x:0", "label": "y:0"}
  outputs = ["loss", "predictions/cls", "predictions/logits"]
  train = signatures(path, ["train"])["train"]
  assert train == ("tensorflow/supervised/training", inputs, outputs)
  evaluation = signatures(path, ["eval"])["eval"]
  assert evaluation == ("tensorflow/supervised/eval", inputs, outputs)
  assert set(signatures(path)) == {"serving_default"}


def test_a_signature_that_needs_more_than_its_inputs_is_written_and_named(folder, caplog):
  def needs_more():
    more = tf.placeholder(tf.float32, [None, 3], name="more")
    received = raw()
    return export.ServingInputReceiver({"x": more}, received.receiver_tensors)

  path = estimator(folder).export_saved_model(str(folder / "more"), needs_more)
  assert set(signatures(path)) == {"serving_default"}
  assert "dependency on `more`" in caplog.text


def test_what_fails_leaves_no_folder(folder):
  base = folder / "failed"
  with pytest.raises(ValueError, match=r"(?s)Could not load all requested variables.*m/new"):
    estimator(folder, names=("m/w", "m/new")).export_saved_model(str(base), raw)
  with pytest.raises(tf.errors.NotFoundError, match="absent"):
    estimator(folder).export_saved_model(str(base), raw, {"a": str(folder / "absent")})
  assert os.listdir(base) == []


def test_without_a_checkpoint_or_a_receiver_nothing_is_exported(folder, tmp_path):
  with pytest.raises(ValueError, match=r"^An input_receiver_fn must be defined.$"):
    estimator(folder).export_saved_model(str(tmp_path), None)
  checkpoint = str(folder / "model" / "model.ckpt-8")
  with pytest.raises(ValueError, match=r"^No checkpoint at .*ckpt-8"):
    estimator(folder).export_saved_model(str(tmp_path), raw, checkpoint_path=checkpoint)
  empty = Estimator(lambda features: None, str(tmp_path / "empty"))
  with pytest.raises(ValueError, match=f"^Couldn't find trained model at {empty.model_dir}.$"):
    empty.export_saved_model(str(tmp_path), raw)
  with pytest.raises(ValueError, match=r"^No valid modes for exporting found"):
    estimator(folder).experimental_export_all_saved_models(str(tmp_path), {"else": raw})
  assert os.listdir(tmp_path) == []


def test_a_model_starts_from_an_export(folder, tmp_path):
  exported = estimator(folder).export_saved_model(str(tmp_path / "first"), raw)
  new = Estimator(estimator(folder)._model_fn, str(tmp_path / "new"), warm_start_from=exported)
  results = new.evaluate(lambda: ({"x": tf.ones([1, 3])}, tf.zeros([1, 2])), steps=1)
  assert results["loss"] == (9.0**2 + 12.0**2) / 2


def test_a_model_that_starts_from_another_exports_that_one(folder, tmp_path):
  other = Estimator(
    estimator(folder)._model_fn, str(tmp_path / "new"), warm_start_from=str(folder / "model")
  )
  assert set(signatures(other.export_saved_model(str(tmp_path / "out"), raw))) == {
    "serving_default"
  }
