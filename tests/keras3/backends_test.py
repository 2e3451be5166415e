"""The Keras side computes the same on JAX and PyTorch as here, and imports no TensorFlow there.

Run alone: python -m pytest tests/keras3/backends_test.py

Each backend runs in its own process, since Keras cannot change it. A backend that is not installed
is skipped. The environment variable TORCH_PYTHON may name the interpreter of another environment
with PyTorch; `make test-torch` creates one. The other tests of the Keras side run on any backend,
too: KERAS_BACKEND=torch python -m pytest tests/keras3/encoder_test.py
"""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys

import keras
import numpy as np
import pytest

from bert.keras3 import (
  BERT,
  AdamWeightDecay,
  BertForPreTraining,
  BertForSequenceClassification,
  BertForTokenClassification,
  NLPTaskConfig,
  NLPTaskType,
  WarmUpLinearDecay,
  create_bert_with_head,
)
from bert.model.configuration import BertConfig
from tests.kit.keras_models import TINY, numpy_of, random_inputs
from tests.kit.paths import ROOT
from tests.kit.tiny_bert import NO_DROPOUT

ELSEWHERE = {"torch": os.environ.get("TORCH_PYTHON")}
OTHERS = [
  pytest.param(
    name,
    marks=pytest.mark.skipif(
      importlib.util.find_spec(name) is None and not ELSEWHERE.get(name),
      reason=f"{name} is not installed",
    ),
  )
  for name in ("jax", "torch", "tensorflow")
  if name != keras.backend.backend()
]
pytestmark = pytest.mark.ci

# Models of other families: name of the file -> class and configuration.
_SIZES = {
  **dict(vocab_size=40, hidden_size=16, num_hidden_layers=1, num_attention_heads=2),
  **dict(intermediate_size=32, max_position_embeddings=24),
}
FAMILIES = {
  "electra": (BertForTokenClassification, {"embedding_size": 8, "type_vocab_size": 2}),
  "albert": (
    BertForPreTraining,
    dict(embedding_size=8, type_vocab_size=2, num_hidden_layers=2, inner_group_num=2),
  ),
  "roberta": (BertForSequenceClassification, {}),
  "distilbert": (BertForSequenceClassification, {}),
}

# The other process loads, predicts, trains, saves, and prints whether it imported TensorFlow.
OTHER_PROCESS = """
import json, sys
import numpy as np
import keras; from bert import keras3

folder = sys.argv[1]
data = dict(np.load(folder + "/inputs.npz"))
labels = data.pop("labels")
model = keras.models.load_model(folder + "/model.keras")
result = {"predictions": model.predict(data, verbose=0)}
losses = [model.train_on_batch(data, labels, return_dict=True)["loss"] for _ in range(4)]
result["losses"] = np.array([float(loss) for loss in losses])
others = {n: keras.models.load_model(f"{folder}/{n}.keras") for n in json.loads(sys.argv[2])}
for name, other in others.items():
  result[name] = keras.ops.convert_to_numpy(other(data)[0])
result["table"] = keras.ops.convert_to_numpy(model.get_layer("bert").embeddings.word_embeddings)
if len(sys.argv) > 3:
  bert = keras3.BERT.from_checkpoint(sys.argv[3])
  golden = np.load(sys.argv[4])
  outputs = bert({"input_ids": golden["input_ids"], "attention_mask": golden["input_mask"]})
  for name in ("last_hidden_state", "pooler_output"):
    result[name] = keras.ops.convert_to_numpy(outputs[name])
np.savez(folder + "/result.npz", **result)
said = {"backend": keras.backend.backend(), "tensorflow": "tensorflow" in sys.modules}
for name, other in others.items():
  other.save(f"{folder}/{name}_back.keras")  # here Keras itself imports TensorFlow, if it is there
print(json.dumps(said))
"""


def run_on(backend, *arguments):
  """Runs the process above; returns its last printed line and its arrays."""
  environment = {
    **os.environ,
    "KERAS_BACKEND": backend,
    "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "JAX_PLATFORMS": "cpu",
  }
  done = subprocess.run(
    [ELSEWHERE.get(backend) or sys.executable, "-c", OTHER_PROCESS, *map(str, arguments)],
    capture_output=True,
    text=True,
    env=environment,
  )
  assert done.returncode == 0, done.stderr
  said = json.loads(done.stdout.splitlines()[-1])
  assert said["backend"] == backend
  return said, np.load(pathlib.Path(arguments[0]) / "result.npz")


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
  """A folder with a model and inputs, and what this process makes of them."""
  folder = tmp_path_factory.mktemp("backends")
  inputs = random_inputs(4, 12)
  labels = np.array([0, 1, 2, 1])
  keras.utils.set_random_seed(2)
  task = NLPTaskConfig("topic", NLPTaskType.TOPIC_CLASSIFICATION, 3, dropout_rate=0.0)
  model = create_bert_with_head("tiny", task, bert_config_overrides={**TINY, **NO_DROPOUT})
  schedule = WarmUpLinearDecay(1e-2, num_train_steps=10, num_warmup_steps=2)
  # No clipping: TensorFlow's norm of a table's gradient is another one.
  optimizer = AdamWeightDecay(schedule, global_clipnorm=None)
  model.compile(optimizer, "sparse_categorical_crossentropy", jit_compile=False)
  model.save(folder / "model.keras")
  np.savez(folder / "inputs.npz", **inputs, labels=labels)
  predictions = model.predict(inputs, verbose=0)
  losses = [float(model.train_on_batch(inputs, labels)) for _ in range(4)]
  table = numpy_of(model.get_layer("bert").embeddings.word_embeddings)
  expected = {"predictions": predictions, "losses": np.array(losses), "table": table}
  for name, (cls, keys) in FAMILIES.items():
    other = cls(BertConfig.from_dict({**_SIZES, **keys, "model_type": name}), num_labels=3)
    generator = np.random.default_rng(1)
    for variable in other.weights:
      variable.assign(generator.normal(0.1, 0.3, variable.shape))
    other.save(folder / f"{name}.keras")
    expected[name] = numpy_of(other(inputs)[0])
  return folder, expected


@pytest.mark.parametrize("backend", OTHERS)
def test_outputs_and_training_are_the_same(expected, backend):
  folder, here = expected
  said, there = run_on(backend, folder, json.dumps(list(FAMILIES)))
  assert said["tensorflow"] == (backend == "tensorflow")
  for name in here:
    np.testing.assert_allclose(there[name], here[name], rtol=0, atol=1e-5, err_msg=name)
  assert here["losses"][-1] < here["losses"][0]
  inputs = dict(np.load(folder / "inputs.npz"))
  del inputs["labels"]
  for name in FAMILIES:  # saved there, loaded here
    back = keras.models.load_model(folder / f"{name}_back.keras")
    np.testing.assert_allclose(numpy_of(back(inputs)[0]), here[name], atol=1e-6, err_msg=name)


@pytest.mark.slow
@pytest.mark.parametrize("backend", OTHERS)
def test_minilm_is_the_same_and_the_originals(expected, backend, golden_dir, data_dir):
  weights = data_dir / "weights" / "minilm_L-6_H-384_A-12"
  _, there = run_on(backend, expected[0], "[]", weights, golden_dir / "minilm_forward.npz")
  golden = np.load(golden_dir / "minilm_forward.npz")
  bert = BERT.from_checkpoint(weights)
  here = bert({"input_ids": golden["input_ids"], "attention_mask": golden["input_mask"]})
  mask = golden["input_mask"][..., None]
  ours = numpy_of(here["last_hidden_state"])
  np.testing.assert_allclose(there["last_hidden_state"] * mask, ours * mask, rtol=0, atol=1e-5)
  np.testing.assert_allclose(
    there["last_hidden_state"][:, :16] * mask[:, :16],
    golden["sequence_output_first16"] * mask[:, :16],
    rtol=0,
    atol=1e-5,
  )
  np.testing.assert_allclose(there["pooler_output"], golden["pooled_output"], rtol=0, atol=1e-5)


@pytest.mark.slow
def test_snippets_of_documents_on_jax():
  if importlib.util.find_spec("jax") is None or keras.backend.backend() == "jax":
    pytest.skip("jax is not installed, or this process is on it")
  file = "tests/keras3/documents_snippets_test.py"
  done = subprocess.run(
    [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", file],
    capture_output=True,
    text=True,
    cwd=ROOT,
    env={**os.environ, "KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu"},
  )
  assert done.returncode == 0, done.stdout[-5000:]
