"""Whose package `bert` a script gets that has a folder of this name beside it."""

import os
import subprocess
import sys

import pytest

import bert.tf1
from bert.tf1 import contrib, importing
from tests.kit.paths import ROOT


def test_a_folder_bert_counts_if_it_holds_modules(tmp_path):
  assert importing._own_bert(str(tmp_path)) is None
  assert importing._own_bert(str(ROOT)) is None  # this project's
  (tmp_path / "bert").mkdir()
  (tmp_path / "bert" / "bert_config.json").write_text("{}")
  assert importing._own_bert(str(tmp_path)) is None
  (tmp_path / "bert.py").write_text("")
  assert importing._own_bert(str(tmp_path)) == str(tmp_path / "bert.py")
  (tmp_path / "bert" / "modeling.py").write_text("")
  assert importing._own_bert(str(tmp_path)) == str(tmp_path / "bert")


def test_the_files_of_a_part_hold_its_names(monkeypatch):
  monkeypatch.setattr(importing, "_face", bert.tf1)
  decode = contrib.crf.crf_decode
  assert (
    importing._tensorflow("tensorflow.contrib.crf.python.ops", ("crf",)).crf.crf_decode is decode
  )
  face = importing._tensorflow("tensorflow.contrib.crf.python.ops.crf", None)
  assert face.contrib.crf.python.ops.crf.crf_decode is decode
  with pytest.raises(ImportError, match=r"did you mean tf\.contrib\.crf\.crf_decode"):
    importing._tensorflow("tensorflow.contrib.crf.python.ops.crf", ("crf_decod",))


@pytest.mark.ci
@pytest.mark.parametrize(
  ("file", "printed"),
  [
    ("bert/modeling.py", "own"),  # without an __init__.py, and this project's has one
    ("bert/vocab.txt", "bert.tf1.library.modeling"),
  ],
)
def test_which_bert_a_script_gets(file, printed, tmp_path):
  (tmp_path / "bert").mkdir()
  (tmp_path / file).write_text("import tensorflow as tf\nassert tf.VERSION\n__name__ = 'own'\n")
  (tmp_path / "script.py").write_text("from bert import modeling\nprint(modeling.__name__)\n")
  command = [sys.executable, "-m", "bert.tf1", str(tmp_path / "script.py")]
  environment = {**os.environ, "PYTHONPATH": str(ROOT)}
  done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
  assert done.stdout == f"{printed}\n", done.stderr
