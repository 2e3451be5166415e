"""What `from bert import ...` gives a script or notebook that has no `bert` of its own."""

import builtins
import importlib

import pytest

import bert.tf1
from bert import tokenization
from bert.tf1.errors import NotAvailableError
from bert.tf1.library import modeling, optimization, run_classifier


@pytest.fixture
def cell(monkeypatch, tmp_path):
  """Runs code as a notebook's cell does; returns its names."""
  monkeypatch.setattr(builtins, "__import__", builtins.__import__)
  monkeypatch.setattr(importlib, "import_module", importlib.import_module)
  bert.tf1.install(str(tmp_path))

  def run(code):
    names = {"__name__": "__main__"}
    exec(code, names)
    return names

  return run


def test_the_names_of_the_package_bert_tensorflow(cell):
  names = cell(
    "import bert\n"
    "from bert import modeling as m, run_classifier, tokenization\n"
    "from bert.optimization import create_optimizer\n"
    "import bert.modeling\n"
    "import tokenization as flat, importlib\n"
    "by_name = importlib.import_module('bert.run_classifier')\n"
    "features = bert.run_classifier.convert_examples_to_features\n"
  )
  assert names["m"] is names["bert"].modeling is modeling
  assert names["run_classifier"] is names["by_name"] is run_classifier
  assert names["create_optimizer"] is optimization.create_optimizer
  assert names["features"] is run_classifier.convert_examples_to_features
  assert names["flat"] is names["tokenization"]
  assert names["tokenization"].FullTokenizer is tokenization.FullTokenizer


def test_other_names_of_this_package_stay(cell):
  names = cell(
    "import bert.tf1\nfrom bert import tf1, modeling\n"
    "from bert.tf1.errors import NotAvailableError\n"
  )
  assert names["bert"].tf1 is names["tf1"] is bert.tf1
  assert names["modeling"] is modeling
  assert names["NotAvailableError"] is NotAvailableError


def test_what_has_no_twin_says_what_to_do(cell):
  for code in ("from bert import run_squad", "import bert.run_squad"):
    with pytest.raises(ImportError, match=r"Put the original's run_squad\.py beside your script"):
      cell(code)
  for code in (
    "from bert.run_classifier_with_tfhub import create_model",
    "from tensorflow_hub import Module",
  ):
    with pytest.raises(ImportError, match=r"hub\.Module.* --init_checkpoint"):
      cell(code)
  for code in (
    "from bert import run_classifier_with_tfhub as r\nr.model_fn_builder\n",
    "import tensorflow_hub as hub\nassert hub.load and hub.__version__\nhub.Module('x')\n",
  ):
    with pytest.raises(NotAvailableError, match=r"hub\.Module.* --init_checkpoint"):
      cell(code)
  with pytest.raises(ImportError, match="no_such_name"):
    cell("from bert.modeling import no_such_name")
