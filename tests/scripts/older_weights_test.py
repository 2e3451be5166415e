"""Scripts and Keras with folders of `tf_model.h5` and `pytorch_model.bin`: as with safetensors.

Alone: python -m pytest tests/scripts/older_weights_test.py (a minute)
"""

import numpy as np
import pytest

from bert import convert_checkpoint, extract_features, keras3, predict, run_classifier
from bert.checkpoints import transformers_folder
from bert.checkpoints.transformers_heads import Head
from bert.model.configuration import BertConfig
from bert.model.variable_shapes import encoder_shapes
from bert.scripts import run_states
from tests.kit import tiny_sentences
from tests.kit.older_weights import FILES_OF_FORMS, copy_folder
from tests.kit.script_runs import Script, assert_same_tensors

pytestmark = pytest.mark.ci
LABELS = ["0", "1"]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
  """The same classifier in all forms, by their names; and the data of a task."""
  folder = tmp_path_factory.mktemp("folders")
  tiny_sentences.write_mrpc(folder)
  (folder / "vocab.txt").write_text("\n".join(tiny_sentences.VOCAB) + "\n")
  config = BertConfig.from_dict(tiny_sentences.CONFIG)
  shapes = {**encoder_shapes(config), "output_weights": (2, config.hidden_size)}
  generator = np.random.default_rng(2)
  tensors = {
    name: generator.normal(name.endswith("gamma"), 0.3, shape).astype(np.float32)
    for name, shape in {**shapes, "output_bias": (2,)}.items()
  }
  (folder / "safetensors").mkdir()
  transformers_folder.write_folder(
    *(folder / "safetensors", config.to_dict(), tensors, str(folder / "vocab.txt"), True),
    Head("ForSequenceClassification", LABELS, "classification"),
  )
  for form in FILES_OF_FORMS:
    copy_folder(folder / "safetensors", folder / form, form)
  return folder


@pytest.fixture(params=FILES_OF_FORMS)
def two(request, folders):
  """The folder with safetensors, and one of another form."""
  return folders / "safetensors", folders / request.param


def outputs(module, two, tmp_path, *words, **values):
  """What a script writes with either folder: name -> content."""
  found = []
  for index, folder in enumerate(two):
    given = {"init_checkpoint": folder, **values}
    out = tmp_path / str(index)
    out.mkdir()
    given = {name: str(value).replace("OUT", str(out)) for name, value in given.items()}
    Script(module).run_well(*words, **given)
    found.append({path.name: path.read_bytes() for path in out.iterdir() if path.is_file()})
  return found


def test_evaluation_and_prediction(two, folders, tmp_path):
  values = {"task_name": "MRPC", "data_dir": folders, "max_seq_length": 16, "output_dir": "OUT"}
  one, other = outputs(run_classifier, two, tmp_path, "--do_eval", "--do_predict", **values)
  for name in ("eval_results.txt", "test_results.tsv"):
    assert one[name] == other[name]


def test_features(two, folders, tmp_path):
  (tmp_path / "texts.txt").write_text("the film was good\nbad ||| film\n")
  values = {"input_file": tmp_path / "texts.txt", "output_file": "OUT/features.jsonl"}
  one, other = outputs(extract_features, two, tmp_path, layers="-1", **values)
  assert one["features.jsonl"] == other["features.jsonl"]


def test_answers(two, tmp_path):
  (tmp_path / "texts.txt").write_text("the film was good\n")
  values = {"input_file": tmp_path / "texts.txt", "output_file": "OUT/answers.jsonl"}
  one, other = outputs(predict, two, tmp_path, **values)
  assert one["answers.jsonl"] == other["answers.jsonl"]


def test_conversion(two, tmp_path):
  outputs(convert_checkpoint, two, tmp_path, "--command=from_transformers", output_dir="OUT/back")
  assert_same_tensors(tmp_path / "0" / "back", tmp_path / "1" / "back")
  error = Script(convert_checkpoint).error_of(
    "--command=strip", init_checkpoint=tmp_path / "0" / "back", output_dir=two[1]
  )
  assert "holds a model already" in error


def test_keras(two):
  logits = []
  for folder in two:
    model = keras3.BertForSequenceClassification.from_pretrained(folder)
    inputs = keras3.BertTokenizer.from_pretrained(folder)(["the film"], return_tensors="np")
    logits.append(np.asarray(model(**inputs).logits))
  assert logits[0].tobytes() == logits[1].tobytes()


def test_a_run_knows_its_weights(two, tmp_path):
  """By their content: other values are other weights, also where the folder stays."""
  one = copy_folder(two[0], tmp_path / "one", two[1].name)
  before = run_states.identity_of_weights(str(one))
  assert before == run_states.identity_of_weights(str(two[1]))
  [weights] = one.glob("*model.*")
  weights.write_bytes(weights.read_bytes()[:-4] + b"1234")
  assert run_states.identity_of_weights(str(one)) != before
