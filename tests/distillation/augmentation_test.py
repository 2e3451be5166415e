"""TinyBERT's data augmentation against what its original wrote, row for row."""

import gzip
import json
import random
import shutil

import pytest

from bert.distillation import augmentation
from bert.io.tables import DataError
from bert.scripts import augment_data
from tests.kit.script_runs import Script

script = Script(augment_data)


@pytest.fixture(scope="module")
def folder(golden_dir):
  return golden_dir / "tinybert"


@pytest.fixture(scope="module")
def recorded(folder) -> dict:
  with gzip.open(folder / "augmentation.json.gz", "rt", encoding="utf-8") as file:
    return json.load(file)


@pytest.fixture(scope="module")
def model(folder, tmp_path_factory) -> dict:
  """The flags of the recorded model, whose configuration means the erf form of GELU."""
  path = tmp_path_factory.mktemp("model") / "bert_config.json"
  config = json.loads((folder / "teacher" / "config.json").read_text())
  path.write_text(json.dumps({**config, "hidden_act": "gelu_erf"}))
  return {
    "init_checkpoint": str(folder / "teacher"),
    "bert_config_file": str(path),
    "glove_file": str(folder / "glove_standin.txt"),
  }


@pytest.mark.ci
@pytest.mark.parametrize("task", ["MRPC", "CoLA"])
def test_rows_equal_the_original(folder, model, tmp_path, task):
  shutil.copy(folder / f"augment_{task}_train.tsv", tmp_path / "train.tsv")
  out = tmp_path / "train_aug.tsv"
  values = {**model, "task_name": task, "data_dir": tmp_path, "output_file": out, "seed": 2020}
  script.run_well(**values, quotes_as_original=True)
  with gzip.open(folder / f"augment_{task}_train_aug.tsv.gz") as file:
    expected = file.read().decode("utf-8-sig")
  assert out.read_bytes().decode() == expected
  script.run_well(**values)
  plain = out.read_bytes().decode()
  assert "\r" not in plain
  assert plain.count("\n") == expected.count("\n")


@pytest.mark.ci
def test_variants_of_trap_sentences_equal_the_original(model, recorded):
  augmentors = {}
  for entry in recorded["direct"]:
    count, text = entry["M"], entry["sentence"]
    if count not in augmentors:
      augmentors[count] = augment_data.create_augmentor(**model, candidates=count)
    augmentor = augmentors[count]
    augmentor.random, augmentor.replace_prob = random.Random(entry["seed"]), entry["p"]
    found = {str(index): words for index, words in augmentor.candidates(text).items()}
    assert found == entry["candidates"], text
    assert augmentor.variants(text, entry["N"]) == entry["augmented"], text


def test_neighbours_equal_the_original(folder, recorded):
  neighbours = augmentation.Neighbours(augmentation.read_vectors(str(folder / "glove_standin.txt")))
  for entry in recorded["word_distance_M15"]:
    if entry["word"] != "<unk>":
      assert neighbours(entry["word"]) == entry["candidates"], entry["word"]


def test_vectors_may_have_words_with_blanks(tmp_path):
  path = tmp_path / "glove.txt"
  path.write_text("the 1 2\nat name@site 3 4\n", encoding="utf-8")
  assert augmentation.read_vectors(str(path)) == {"the": [1.0, 2.0], "at name@site": [3.0, 4.0]}
  path.write_text("the 1 2\n7 3\n", encoding="utf-8")
  with pytest.raises(DataError, match=r"glove.txt, line 2: .* 2 numbers"):
    augmentation.read_vectors(str(path))
