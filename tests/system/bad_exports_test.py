"""Bad exports, and bad flags of export_hub.py and predict.py: one line that says what to do.

Alone: python -m pytest tests/system/bad_exports_test.py (seconds; nothing is converted)
"""

import json
import shutil
import sys

import onnx
import pytest
import tensorflow as tf

from bert import export_hub, predict
from bert.checkpoints import saving
from bert.exporting import model_folder
from bert.exporting.model_folder import Described
from bert.model import heads
from bert.model.variables import VariableStore, use_store
from bert.modeling import BertModel
from bert.scripts import command_line
from tests.kit import bad_inputs, exports

CONFIG = exports.config(len(exports.VOCAB), num_hidden_layers=1, intermediate_size=16)
FACTS = {"problem_type": "classification", "labels": ["no", "yes"], "task_name": "mrpc"}


@pytest.fixture(scope="module")
def models(tmp_path_factory):
  """`run`, the folder of a run, and `export`, whose models are no models."""
  base = tmp_path_factory.mktemp("models")
  with use_store(VariableStore(seed=3)) as store:
    model = BertModel(CONFIG, False, tf.zeros([1, 1], tf.int32))
    heads.get_classifier_logits(model.get_pooled_output(), 2, False)
  exports.write_model(base / "run", CONFIG, exports.VOCAB, store.variables)
  folder = base / "export"
  (folder / "litert").mkdir(parents=True)
  (folder / "litert" / "model.tflite").write_bytes(b"no model")
  vocab_file = str(base / "run" / "vocab.txt")
  model_folder.write_description(str(folder), Described(CONFIG, vocab_file, True, 16, FACTS, {}))
  return base


@pytest.fixture
def folder(models, tmp_path):
  """A copy of `models`, to be spoiled."""
  shutil.copytree(models, tmp_path, dirs_exist_ok=True)
  (tmp_path / "texts.txt").write_text("the film\n")
  (tmp_path / "empty.txt").write_text(" \n\n")
  return tmp_path


def without(module):
  """An environment in which a package is not installed."""

  def spoil(folder, patch):
    for name in {module, *(name for name in sys.modules if name.startswith(f"{module}."))}:
      patch.setitem(sys.modules, name, None)
    for name in [name for name in sys.modules if name.startswith("bert.predicting.engines.")]:
      patch.delitem(sys.modules, name)

  return spoil


def put(name, content=b""):
  """A file more, or another one; None removes it."""

  def spoil(folder, patch):
    path = folder / name
    if content is None:
      path.unlink()
      return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())

  return spoil


def change_run(**values):
  """Other values in bert_run.json."""

  def spoil(folder, patch):
    path = folder / "export" / model_folder.RUN
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))

  return spoil


def trained(facts, lacks=()):
  """A checkpoint of a run with these facts; without some variables."""

  def spoil(folder, patch):
    with use_store(VariableStore(seed=3)) as store:
      model = BertModel(CONFIG, False, tf.zeros([1, 1], tf.int32))
      heads.get_classifier_logits(model.get_pooled_output(), 2, False)
    kept = {n: v for n, v in store.variables.items() if not n.startswith(tuple(lacks))}
    saving.save(str(folder / "run"), 2, kept, {"fingerprint": facts, "informative": {}})

  return spoil


def of_opset(version):
  """A model of ONNX with another version of its operations, or of another program."""

  def spoil(folder, patch):
    info = [onnx.helper.make_tensor_value_info(name, 1, [None, 2]) for name in ("pixels", "out")]
    nodes = [onnx.helper.make_node("Relu", ["pixels"], ["out"])]
    graph = onnx.helper.make_graph(nodes, "a graph", info[:1], info[1:])
    opset = onnx.helper.make_opsetid("", version)
    model = onnx.helper.make_model(graph, opset_imports=[opset], ir_version=10)
    put("export/onnx/model.onnx", model.SerializeToString())(folder, patch)

  return spoil


def without_onnx_engine(library):
  """The export has a model of ONNX, and an engine for it is not installed."""

  def spoil(folder, patch):
    put("export/onnx/model.onnx")(folder, patch)
    without(library)(folder, patch)

  return spoil


def nothing(folder, patch):
  """Nothing is spoiled."""


EXPORT = {"init_checkpoint": "{}/run", "export_dir": "{}/out", "format": "litert"}
EXPORTS = [
  ("an unknown format", nothing, {"format": "tflite"}, "--format=tflite: must be one or several"),
  ("no format", nothing, {"format": ","}, "--format is empty"),
  (
    "8 bits of a SavedModel",
    nothing,
    {"format": "saved_model", "int8": True},
    "--int8 is for",
  ),
  (
    "texts for a SavedModel",
    nothing,
    {"format": "saved_model", "eval_file": "x"},
    "--eval_file is",
  ),
  (
    "a labelled file that is missing",
    nothing,
    {"eval_file": "{}/dev.tsv"},
    "dev.tsv does not exist",
  ),
  (
    "a labelled file for an encoder",
    nothing,
    {"eval_file": "{}/texts.txt"},
    "was not fine-tuned for a task",
  ),
  (
    "a folder of the user's",
    put("out/notes.txt"),
    {},
    "holds notes.txt, which is not of an export",
  ),
  ("a file as the folder", put("out"), {}, "out is a file: give a folder"),
  (
    "models that would stay",
    put("out/onnx/model.onnx"),
    {},
    "holds onnx/, which this export would not renew. Give --format=litert,onnx",
  ),
  ("a task's SavedModel", put("out/task/saved_model.pb"), {}, "holds task/"),
  ("an encoder that would stay", put("out/encoder/x"), {}, "holds encoder/, which this export"),
  (
    "a task's description",
    nothing,
    {"task_model": True},
    "--task_model is for --format=saved_model",
  ),
  ("texts that are too long", nothing, {"max_seq_length": 33}, "sequence length 33"),
  ("texts that are too short", nothing, {"max_seq_length": 2}, "--max_seq_length=2"),
  ("no checkpoint", nothing, {"init_checkpoint": "{}/nowhere"}, "nowhere"),
  ("no vocabulary", put("run/vocab.txt", None), {}, "--vocab_file"),
  (
    "a task of one's own",
    trained({"task_name": "stars", "head": {}}),
    {},
    "The task 'stars' is not known here",
  ),
  ("labels that are missing", trained({"problem_type": "classification"}), {}, "lacks something"),
  ("a classifier without a pooler", trained(FACTS, ["bert/pooler/"]), {}, "without the pooler"),
  ("a head that is missing", trained(FACTS, ["output_"]), {}, "output_weights"),
  ("no onnx", without("onnx"), {"format": "onnx"}, 'pip install "bert-alive[onnx]"'),
]
PREDICT = {"init_checkpoint": "{}/export", "input_file": "{}/texts.txt", "engine": "litert"}
PREDICTIONS = [
  ("an unknown engine", nothing, {"engine": "tensorrt"}, 'not "tensorrt"'),
  (
    "an engine without a model",
    nothing,
    {"engine": "onnxruntime"},
    "has no model of onnx in float32, but litert/model.tflite. Export it: export_hub.py",
  ),
  ("a precision that is missing", nothing, {"precision": "int8"}, "--format=litert --int8"),
  (
    "a precision that does not exist",
    put("export/onnx/model.onnx"),
    {"engine": "onnxruntime", "precision": "float16"},
    "The precisions of onnx are float32, int8",
  ),
  (
    "TensorFlow for an export",
    nothing,
    {"engine": "tensorflow"},
    "reads checkpoints and SavedModels, but",
  ),
  (
    "another engine for a run",
    trained(FACTS),
    {"init_checkpoint": "{}/run"},
    "export_hub.py --init_checkpoint=",
  ),
  (
    "another engine for vectors of a checkpoint",
    nothing,
    {"init_checkpoint": "{}/run", "task": "vectors"},
    "is no export",
  ),
  (
    "a precision of a run",
    nothing,
    {"init_checkpoint": "{}/run", "engine": "auto", "precision": "int8"},
    "is no export: precision=int8",
  ),
  ("a damaged record of the run", put("export/bert_run.json", b"{"), {}, "bert_run.json is not"),
  ("a record without a length", change_run(max_seq_length=None), {}, "'max_seq_length' is missing"),
  ("a record whose facts are a list", change_run(facts=[]), {}, "'facts' is missing, or is no obj"),
  ("a record without labels", change_run(facts={"problem_type": "x"}), {}, "lacks 'labels'"),
  ("no record of the run", put("export/bert_run.json", None), {}, "bert_run.json is missing"),
  (
    "a task of one's own",
    change_run(facts={"task_name": "stars", "head": {}}),
    {},
    "--plugin=the_task.py",
  ),
  ("no vocabulary", put("export/vocab.txt", None), {}, "has no vocabulary (vocab.txt"),
  (
    "a larger vocabulary",
    put("export/vocab.txt", b"".join(b"%d\n" % i for i in range(20))),
    {},
    "vocab.txt",
  ),
  (
    "a vocabulary of another model",
    change_run(facts={**FACTS, "vocabulary": "1" * 64}),
    {},
    "is not the vocabulary that the model was trained with",
  ),
  ("no configuration", put("export/bert_config.json", None), {}, "bert_config.json is missing"),
  ("a damaged configuration", put("export/bert_config.json", b"[]"), {}, "a JSON object is needed"),
  ("a damaged model", nothing, {}, "model.tflite cannot be read by LiteRT"),
  (
    "a model of onnxruntime that is damaged",
    put("export/onnx/model.onnx", b"no model"),
    {"engine": "onnxruntime"},
    "model.onnx",
  ),
  (
    "a model of another opset",
    of_opset(4000),
    {"engine": "onnxruntime"},
    "onnx/model.onnx",
  ),
  (
    "a model of other inputs",
    of_opset(17),
    {"engine": "onnxruntime"},
    "model.onnx reads pixels (tensor(float)); models of texts read",
  ),
  (
    "a precision of another engine",
    put("export/onnx/model.onnx"),
    {"engine": "openvino", "precision": "int8"},
    "openvino does not compute in precision=int8, but in float32 and bfloat16",
  ),
  (
    "a model of OpenVINO that is damaged",
    put("export/onnx/model.onnx", b"no model"),
    {"engine": "openvino"},
    "model.onnx cannot be read by OpenVINO",
  ),
  (
    "bfloat16 without a model of ONNX",
    nothing,
    {"engine": "auto", "precision": "bfloat16"},
    "has no model of onnx in float32, but litert/model.tflite",
  ),
  ("no openvino", without_onnx_engine("openvino"), {"engine": "openvino"}, "bert-alive[openvino]"),
  (
    "no onnxruntime",
    without_onnx_engine("onnxruntime"),
    {"engine": "onnxruntime"},
    "bert-alive[onnx]",
  ),
  ("no runtime", without("ai_edge_litert"), {}, 'pip install "bert-alive[litert]"'),
  ("masked words", nothing, {"task": "masked_words"}, "cannot do task=masked_words"),
  ("vectors of a classifier", nothing, {"task": "vectors"}, "without vectors. Export the encoder"),
  ("an empty folder", put("empty/x"), {"init_checkpoint": "{}/empty"}, "empty"),
]
ROWS = [
  *((export_hub, EXPORT, *row) for row in EXPORTS),
  *((predict, PREDICT, *row) for row in PREDICTIONS),
]


@pytest.mark.parametrize(
  ("script", "defaults", "spoil", "values", "words"),
  [
    pytest.param(script, defaults, *row, id=f"{script.__name__}: {name}")
    for script, defaults, name, *row in ROWS
  ],
)
def test_the_message_is_one_line(folder, monkeypatch, script, defaults, spoil, values, words):
  spoil(folder, monkeypatch)
  before = sorted(folder.rglob("*"))
  given = {name: value for name, value in {**defaults, **values}.items() if value is not None}
  flags = [f"--{name}={value}".replace("{}/", f"{folder}/") for name, value in given.items()]

  def run(_):
    command_line.run(script.main, script.define_flags, [f"{script.__name__}.py", *flags])

  message = bad_inputs.message_of(run, folder)
  assert words in message, message
  assert sorted(folder.rglob("*")) == before


def test_the_table_is_long():
  assert len(ROWS) >= 45
