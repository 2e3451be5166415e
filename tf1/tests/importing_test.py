"""Whose `bert` and `modeling` a script gets that has its own beside it or on its path."""

import os
import subprocess
import sys

import pytest

import bert_tf1
from bert_tf1 import contrib, importing
from tests.kit.paths import CHECKOUT, TF1

# bert-alive comes before what a script appends to the path.
BEFORE_ALL = os.pathsep.join(map(str, (TF1, CHECKOUT)))


def test_the_files_of_a_part_hold_its_names(monkeypatch):
  monkeypatch.setattr(importing, "_face", bert_tf1)
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
    ("bert/modeling.py", "own"),  # without an __init__.py, and bert-alive's has one
    ("bert/vocab.txt", "bert_tf1.library.modeling"),
  ],
)
def test_which_bert_a_script_gets(file, printed, tmp_path):
  (tmp_path / "bert").mkdir()
  (tmp_path / file).write_text("import tensorflow as tf\nassert tf.VERSION\n__name__ = 'own'\n")
  (tmp_path / "script.py").write_text("from bert import modeling\nprint(modeling.__name__)\n")
  command = [sys.executable, "-m", "bert_tf1", str(tmp_path / "script.py")]
  environment = {**os.environ, "PYTHONPATH": BEFORE_ALL}
  done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
  assert done.stdout == f"{printed}\n", done.stderr


@pytest.mark.ci
def test_a_script_s_own_modules_in_folders_that_it_adds(tmp_path):
  for file in ("bert/modeling.py", "flat/optimization.py", "flat/run_squad.py", "run/script.py"):
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_text("import tensorflow as tf\nassert tf.VERSION\n__name__ = 'own'\n")
  (tmp_path / "run" / "script.py").write_text(
    "import sys, os\n"
    "try:\n  from bert import modeling\nexcept ImportError:\n  pass\n"  # the library's, so far
    "sys.path.append('..')\nfrom bert import modeling\n"
    "above = os.path.split(os.path.dirname(os.path.abspath(__file__)))[0]\n"
    "sys.path.append(above + '/flat')\nimport optimization, run_squad, tokenization\n"
    "print(*[m.__name__ for m in (modeling, optimization, run_squad, tokenization)])\n"
    "try:\n  from bert import tokenization\nexcept ImportError:\n  print('none in it')\n"
  )
  command = [sys.executable, "-m", "bert_tf1", "script.py"]
  environment = {**os.environ, "PYTHONPATH": BEFORE_ALL}
  folder = tmp_path / "run"
  done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
  assert done.stdout == "own own own bert_tf1.library.tokenization\nnone in it\n", done.stderr
