"""Exported folders in the programs that they are for, held against vectors of TensorFlow.

Alone: python -m pytest -m slow tests/exporting/other_programs_test.py
It needs BERT_PEER_PYTHON, an interpreter with onnxruntime and tokenizers, and for one test with
sentence-transformers and optimum-onnx; and BERT_TRANSFORMERS_JS, a folder in which
`npm install --ignore-scripts @huggingface/transformers` was called, beside `node`.
"""

import json
import os
import pathlib
import subprocess

import numpy as np
import pytest
import tensorflow as tf

from bert import export_hub
from bert.model.variables import VariableStore, use_store
from bert.modeling import BertModel
from bert.predicting.predictor import Predictor
from tests.kit import exports
from tests.kit.script_runs import Script

pytestmark = pytest.mark.slow
TEXTS = ["The film was good.", "bad film, bad"]

ONNXRUNTIME = """
import json, sys
import numpy as np, onnxruntime, tokenizers
folder = sys.argv[1]
session = onnxruntime.InferenceSession(f"{folder}/onnx/model.onnx")
tokenizer = tokenizers.Tokenizer.from_file(f"{folder}/tokenizer.json")
vectors = []
for text in json.loads(sys.argv[2]):
  found = tokenizer.encode(text)
  lists = {"input_ids": found.ids, "attention_mask": found.attention_mask}
  lists["token_type_ids"] = found.type_ids
  states, _ = session.run(None, {name: np.array([ids], np.int64) for name, ids in lists.items()})
  vectors.append(states[0].mean(0).tolist())
print(json.dumps(vectors))
"""
SENTENCE_TRANSFORMERS = """
import json, sys
try:
  import optimum.onnxruntime
except ImportError:
  sys.exit("skip")
from sentence_transformers import SentenceTransformer
options = {"provider": "CPUExecutionProvider", "file_name": "onnx/model.onnx"}
model = SentenceTransformer(sys.argv[1], backend="onnx", model_kwargs=options)
print(json.dumps(model.encode(json.loads(sys.argv[2])).tolist()))
"""
TRANSFORMERS_JS = """
import { env, pipeline } from "@huggingface/transformers";
env.localModelPath = process.argv[2];
env.allowRemoteModels = false;
const run = await pipeline("feature-extraction", process.argv[3], { dtype: process.argv[5] });
const found = await run(JSON.parse(process.argv[4]), { pooling: "mean" });
console.log(JSON.stringify(found.tolist()));
"""


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
  """An encoder for ONNX, in 8 bits, too, and the vectors that TensorFlow gives."""
  base = tmp_path_factory.mktemp("models")
  # Wide enough for weights of 8 bits.
  sizes = {"hidden_size": 32, "intermediate_size": 64, "initializer_range": 0.1}
  config = exports.config(len(exports.VOCAB), **sizes)
  with use_store(VariableStore(seed=3)) as store:
    BertModel(config, False, tf.zeros([1, 1], tf.int32))
  model = exports.write_model(base / "model", config, exports.VOCAB, store.variables)
  flags = {"init_checkpoint": model, "export_dir": base / "export", "max_seq_length": 32}
  Script(export_hub).run_well(**flags, format="onnx", int8=True)
  return base / "export", np.array(Predictor.load(model, task="vectors", max_seq_length=32)(TEXTS))


def vectors_of(*command):
  environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
  done = subprocess.run(
    [*map(str, command)], capture_output=True, text=True, check=False, cwd="/", env=environment
  )
  if done.stderr.strip() == "skip":
    pytest.skip("optimum-onnx is not there")
  assert done.returncode == 0, done.stderr
  return np.array(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize("program", [ONNXRUNTIME, SENTENCE_TRANSFORMERS])
def test_in_python(exported, program):
  python = os.environ.get("BERT_PEER_PYTHON")
  if not python:
    pytest.skip("BERT_PEER_PYTHON is not set")
  folder, expected = exported
  found = vectors_of(python, "-c", program, folder, json.dumps(TEXTS))
  np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize(("dtype", "tolerance"), [("fp32", 1e-5), ("q8", 0.1)])
def test_in_javascript(exported, dtype, tolerance):
  modules = os.environ.get("BERT_TRANSFORMERS_JS")
  if not modules:
    pytest.skip("BERT_TRANSFORMERS_JS is not set")
  folder, expected = exported
  program = pathlib.Path(modules) / "bert_export_test.mjs"
  program.write_text(TRANSFORMERS_JS)
  arguments = (f"{folder.parent}/", folder.name, json.dumps(TEXTS), dtype)
  found = vectors_of("node", program, *arguments)
  np.testing.assert_allclose(found, expected, atol=tolerance)
