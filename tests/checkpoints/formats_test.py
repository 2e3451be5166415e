"""The registry of checkpoint formats: which file is of which, and one that only this test knows."""

import os
import pathlib
import sys
import types

import numpy as np
import pytest

from bert.checkpoints import finding, formats, loading, model_source, reading
from tests.kit.small_checkpoints import save, values_of, variables_of


class Sheet:
  """Weights in a made-up format: names and numbers, one line each."""

  def __init__(self, path):
    lines = pathlib.Path(path).read_text(encoding="utf-8").splitlines()
    rows = [line.split("\t") for line in lines]
    self._values = {name: np.array(numbers(text), np.float32) for name, text in rows}
    self.contents = {name: (value.shape, value.dtype) for name, value in self._values.items()}

    self.do_lower_case = False

  def read(self, name):
    return self._values[name]


def numbers(text):
  return [float(number) for number in text.split()]


@pytest.fixture
def sheets(monkeypatch):
  """The format `.sheet`, which is one module and one row."""
  module = types.ModuleType("sheet")
  module.open_weights = Sheet
  module.read_facts = lambda path: {"task_name": "sheets", "do_lower_case": False}
  monkeypatch.setitem(sys.modules, "sheet", module)
  monkeypatch.setitem(formats._WEIGHTS, ".sheet", "sheet")


def test_a_format_is_a_module_and_a_row(sheets, tmp_path):
  path = tmp_path / "model.sheet"
  path.write_text("bert/pooler/dense/bias\t1 2\nglobal_step\t3\n", encoding="utf-8")
  assert model_source.identify(path).kind is model_source.Kind.FILE
  checkpoint = finding.find(path)
  assert checkpoint.contents["bert/pooler/dense/bias"][0] == [2]
  assert checkpoint.do_lower_case is False
  assert checkpoint.facts["task_name"] == "sheets"
  assert checkpoint.state == {}
  assert reading.read_tensors(str(path), ["global_step"])["global_step"] == [3]
  variables = variables_of({"bert/pooler/dense/bias": np.zeros(2, np.float32)})
  assert not loading.init_from_checkpoint(checkpoint, variables).missing
  assert variables["bert/pooler/dense/bias"].numpy().tolist() == [1, 2]


def test_formats_are_known_by_endings(tmp_path):
  names = ("model.safetensors", "tf_model.h5", "pytorch_model.bin")
  for name in (*names, *(f"{name}.index.json" for name in names), "a.keras", "a.pt", "a.pth"):
    assert formats.is_file_of_others(name)
  for name in ("model.ckpt-20", "model.ckpt-20.index", "tokenizer.json", "keras/model"):
    assert formats.of(name) is None
  assert formats.of(save(tmp_path, 1)) is None
  assert set(reading.open_checkpoint(save(tmp_path, 2)).contents) == set(values_of(2))


def test_a_checkpoint_may_be_called_as_other_formats_are(tmp_path):
  saved = save(tmp_path, 1)
  for suffix in (".index", ".data-00000-of-00001"):
    os.rename(saved + suffix, tmp_path / f"model.bin{suffix}")
  found = finding.find(tmp_path / "model.bin")
  assert set(found.contents) == set(values_of(1))


def test_folders_of_others_are_known_by_their_names(tmp_path):
  assert formats.find_weights(str(tmp_path)) is None
  (tmp_path / "training_args.bin").touch()
  assert formats.find_weights(str(tmp_path)) is None
  for name in (  # each comes before those that are there already
    *("pytorch_model.bin.index.json", "pytorch_model.bin", "tf_model.h5.index.json", "tf_model.h5"),
    *("model.safetensors.index.json", "model.safetensors"),
  ):
    (tmp_path / name).touch()
    assert formats.find_weights(str(tmp_path)) == str(tmp_path / name)
