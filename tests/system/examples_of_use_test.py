"""The examples that use exports, run as users run them, on a tiny exported model.

Run alone: python -m pytest tests/system/examples_of_use_test.py (about a minute)
"""

import ast
import functools
import pathlib
import subprocess
import sys

import pytest
import tensorflow as tf

from bert import tokenization
from bert.checkpoints import saving
from bert.exporting import hub_encoder, hub_preprocess, sentence_model
from bert.model.variables import VariableStore, get_variable, use_store
from bert.modeling import BertConfig, BertModel
from tests.kit import example_runs, tiny_bert
from tests.kit.paths import SAMPLES

pytestmark = pytest.mark.ci


@pytest.fixture
def output_of(forked_python):
  """Runs an example and returns what it prints."""
  return functools.partial(example_runs.output_of, forked_python)


LAYERS, WIDTH = 2, 16


def export(folder: pathlib.Path, vocab_file: pathlib.Path) -> pathlib.Path:
  """Writes preprocess/, encoder/ and task/ of a random model."""
  config = BertConfig(
    **tiny_bert.sizes(
      len(tokenization.load_vocab(vocab_file)), WIDTH, LAYERS, 16, 128, type_vocab_size=2
    )
  )
  with use_store(VariableStore(seed=1)) as store:
    BertModel(config, False, tf.zeros([1, 1], tf.int32))
    get_variable("output_weights", [2, WIDTH])
    get_variable("output_bias", [2])
  (folder / "model").mkdir()
  prefix = saving.save(str(folder / "model"), 1, store.variables, {})
  vocab_file = str(vocab_file)
  hub_preprocess.export_preprocess(str(folder / "preprocess"), vocab_file)
  hub_encoder.export_encoder(str(folder / "encoder"), config, prefix, vocab_file, True)
  model = sentence_model.SentenceModel(config, vocab_file, True, 64, ["no", "yes"])
  model.export(str(folder / "task"), prefix)
  return folder


@pytest.fixture(scope="module")
def exported(tmp_path_factory) -> pathlib.Path:
  return export(tmp_path_factory.mktemp("export"), SAMPLES / "vocab.txt")


@pytest.mark.slow
def test_the_calls_of_the_notebook(output_of, data_dir, tmp_path):
  """With the vocabulary of the original, what the notebook shows but for the model's size."""
  folder = export(tmp_path, data_dir / "vocab/uncased_vocab.txt")
  lines = output_of("hub_layers.py", folder, needs_project=False).splitlines()
  assert set_of_keys(lines[0]) == {"input_word_ids", "input_mask", "input_type_ids"}
  text = "\n".join(lines)
  assert "[[ 101 2023 2003 1037 12403 2213 5653 102 0 0 " in " ".join(text.split())
  assert text.count("shape=(2, 128), dtype=int32") == 3
  [keys] = [line for line in lines[1:] if line.startswith("dict_keys")]
  assert set_of_keys(keys) == {"encoder_outputs", "pooled_output", "default", "sequence_output"}
  after = lines[lines.index(keys) + 1 :]
  assert after[0] == str(LAYERS)
  assert "False" not in text
  assert after[-2:] == [f"(2, 128, {WIDTH})", f"(2, {WIDTH})"]
  mask = tf.saved_model.load(str(folder / "preprocess"))(
    tf.constant(["This is a spam mail", "Computers are not unique to computers"])
  )["input_mask"]
  assert mask.dtype == tf.int32
  assert tf.reduce_sum(mask, axis=1).numpy().tolist() == [8, 8]


def set_of_keys(line: str) -> set[str]:
  return set(ast.literal_eval(line.removeprefix("dict_keys(").removesuffix(")")))


@pytest.mark.slow
def test_a_layer_of_keras_3_trains_the_encoder(output_of, exported):
  *_, last = output_of("keras3_layer.py", exported, needs_project=False).splitlines()
  variables = 5 + 16 * LAYERS + 2
  assert last == f"{variables} of {variables} variables of the encoder were trained."


def test_a_task_model_answers_strings(output_of, exported):
  output = output_of("serve_task_model.py", exported / "task", needs_project=False)
  assert output.count("(no 0.") == 2
  assert set_of_keys(output.splitlines()[-1]) == {"label", "probabilities", "label_names"}


@pytest.mark.slow
def test_keras_layers_are_fine_tuned_and_outlive_the_export(output_of, tmp_path):
  folder = tmp_path / "export"
  folder.mkdir()
  export(folder, SAMPLES / "vocab.txt")
  for name in ("train.tsv", "dev.tsv"):
    with open(SAMPLES / "MRPC" / name, encoding="utf-8") as source:
      rows = source.readlines()[:65]
    (tmp_path / name).write_text("".join(rows), encoding="utf-8")
  output = output_of(
    "fine_tune_keras_layer.py",
    f"--export_dir={folder}",
    f"--data_dir={tmp_path}",
    f"--output_dir={tmp_path / 'tuned'}",
    "--epochs=1",
    "--seq_length=32",
    needs_project=False,
  )
  assert "eval_accuracy = 0." in output
  folder.rename(tmp_path / "gone")
  code = """
import sys, tensorflow as tf, tensorflow_hub, tensorflow_text, tf_keras
model = tf_keras.models.load_model(sys.argv[1], compile=False)
print(model([tf.constant(["a"]), tf.constant(["b"])]).shape)
"""
  done = subprocess.run(
    [sys.executable, "-c", code, str(tmp_path / "tuned")], capture_output=True, text=True
  )
  assert done.stdout.splitlines()[-1:] == ["(1, 2)"], done.stderr[-3000:]
