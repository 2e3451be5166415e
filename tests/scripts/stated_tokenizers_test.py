"""A directory whose files state how texts are split: the same ids from it, its run and its exports.

Alone: python -m pytest -m ci tests/scripts/stated_tokenizers_test.py
"""

import json

import numpy as np
import pytest

from bert import extract_features, run_classifier
from bert.checkpoints import numpy_writer
from bert.model import variable_shapes
from bert.model.configuration import BertConfig
from bert.predicting.predictor import Predictor
from tests.kit import tiny_sentences
from tests.kit.conversions import run_well
from tests.kit.script_runs import Script

VOCAB = [*tiny_sentences.VOCAB, "über", "uber"]
CONFIG = {**tiny_sentences.CONFIG, "vocab_size": len(VOCAB)}
TEXTS = ["Über good", "uber good"]
STATED = {"do_lower_case": True, "strip_accents": False, "tokenize_chinese_chars": True}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
  """A directory of transformers with random weights and an accent in its vocabulary."""
  source = tmp_path_factory.mktemp("model")
  (source / "vocab.txt").write_text("\n".join(VOCAB) + "\n", encoding="utf-8")
  (source / "tokenizer_config.json").write_text(json.dumps(STATED))
  (source / "bert_config.json").write_text(json.dumps(CONFIG))
  shapes = variable_shapes.encoder_shapes(BertConfig.from_dict(CONFIG))
  rng = np.random.RandomState(1)
  numpy_writer.write(
    source / "bert_model.ckpt",
    {name: rng.randn(*shape).astype(np.float32) for name, shape in shapes.items()},
  )
  run_well("to_transformers", init_checkpoint=source, output_dir=source / "there", head="none")
  return source / "there"


def ids_of(predictor):
  return [predictor.processor.featurize(text)[0]["input_ids"] for text in TEXTS]


EXPECTED = [
  [VOCAB.index(token) for token in ("[CLS]", word, "good", "[SEP]")] for word in VOCAB[-2:]
]


@pytest.mark.ci
def test_vectors(folder, tmp_path):
  """Also of a checkpoint that was made of the directory, which states the same."""
  config = json.loads((folder / "tokenizer_config.json").read_text())
  assert {name: config[name] for name in STATED} == STATED
  run_well("from_transformers", init_checkpoint=folder, output_dir=tmp_path / "back")
  (tmp_path / "texts.txt").write_text("\n".join(TEXTS) + "\n", encoding="utf-8")
  for model in (folder, tmp_path / "back"):
    assert ids_of(Predictor.load(str(model), task="vectors", max_seq_length=8)) == EXPECTED
    flags = {"init_checkpoint": model, "input_file": tmp_path / "texts.txt", "layers": "-1"}
    output = tmp_path / f"{model.name}.jsonl"
    Script(extract_features).run_well(**flags, output_file=output, max_seq_length=8)
    lines = list(map(json.loads, output.read_text(encoding="utf-8").splitlines()))
    tokens = [[each["token"] for each in line["features"]] for line in lines]
    assert [[VOCAB.index(token) for token in each] for each in tokens] == EXPECTED


@pytest.mark.ci
def test_a_run_and_its_exports(folder, tmp_path):
  tiny_sentences.write_rows(
    tmp_path,
    "train.csv",
    *(["text_a,label"], *([f"{word} {i},{word}"] for i in "ab" for word in TEXTS)),
  )
  flags = {"task_name": "csv", "data_dir": tmp_path, "init_checkpoint": folder}
  Script(run_classifier).run_well(
    **flags,
    **{"output_dir": tmp_path / "out", "do_train": True, "do_export": True, "max_seq_length": 8},
    **{"train_batch_size": 4, "num_train_epochs": 1.0, "report": False},
  )
  run = Predictor.load(tmp_path / "out")
  assert [each[: len(EXPECTED[0])] for each in ids_of(run)] == EXPECTED
  exported = Predictor.load(str(tmp_path / "out" / "export"))
  for found, expected in zip(exported(TEXTS), run(TEXTS), strict=True):
    np.testing.assert_allclose(found["probabilities"], expected["probabilities"], atol=1e-5)
  run_well("to_transformers", init_checkpoint=tmp_path / "out", output_dir=tmp_path / "there")
  assert ids_of(Predictor.load(tmp_path / "there")) == EXPECTED
