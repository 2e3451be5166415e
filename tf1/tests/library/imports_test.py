"""What `from bert import ...` gives a script or notebook that has no `bert` of its own."""

import sys

import pytest
from absl import flags

from bert_tf1 import whose
from bert_tf1.errors import NotAvailableError
from bert_tf1.library import modeling, optimization, run_classifier, tokenization
from tests.kit.paths import CHECKOUT


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
  assert names["flat"] is names["tokenization"] is tokenization


@pytest.mark.parametrize(
  "line", ["import run_classifier", "from bert import run_classifier", "import bert.run_classifier"]
)
def test_the_classifiers_flags_are_there_and_give_way_to_the_scripts_own(cell, line, monkeypatch):
  values = flags.FlagValues()
  monkeypatch.setattr(run_classifier, "FLAGS", values)
  flags.DEFINE_string("task_name", "mine", "", flag_values=values)
  cell(line)
  flags.DEFINE_integer("max_seq_length", 7, "", flag_values=values)
  values(["script", "--data_dir=here"])
  assert (values.data_dir, values.task_name, values.max_seq_length) == ("here", "mine", 7)
  assert (values.num_train_epochs, values.do_lower_case, values.vocab_file) == (3.0, True, None)


def test_other_names_of_bert_alive_are_there_where_it_is_installed(cell):
  pytest.importorskip("bert.io.installation")
  names = cell(
    "import bert.io.installation\nfrom bert import io, modeling\n"
    "from bert.io.installation import DISTRIBUTION\n"
  )
  assert names["bert"].io is names["io"]
  assert names["DISTRIBUTION"] == "bert-alive"
  assert names["bert"].modeling is names["modeling"] is modeling


def test_other_names_are_refused_where_it_is_not_installed(cell, monkeypatch):
  path = [folder for folder in sys.path if not whose.is_ours(folder, "bert")]
  monkeypatch.setattr(sys, "path", path)
  for code in ("from bert import io", "import bert.io.installation"):
    with pytest.raises(ImportError, match=r"bert\.io.* is not available .* bert has: modeling"):
      cell(code)


def test_scripts_of_the_checkout_are_not_the_script_s_own(cell, monkeypatch, tmp_path):
  monkeypatch.syspath_prepend(CHECKOUT)
  with pytest.raises(ImportError, match=r"run_squad was not found .* set PYTHONPATH"):
    cell("import run_squad")
  (tmp_path / "run_squad.py").write_text("WHOSE = 'own'\n")
  assert cell("import run_squad")["run_squad"].WHOSE == "own"
  del sys.modules["run_squad"]


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


@pytest.mark.parametrize(
  "line",
  [
    "from bert.modeling import no_such_name",
    "from bert import no_such_name",
    "import bert.no_such_name",
    "from bert.no_such_name import x",
    "from modeling import no_such_name",
  ],
)
def test_a_name_of_a_module_that_the_script_may_have_elsewhere(cell, line):
  with pytest.raises(ImportError, match=r"no_such_name.* the original's .* set PYTHONPATH"):
    cell(line)
  with pytest.raises(NotAvailableError, match="set PYTHONPATH"):
    cell("import modeling\nmodeling.no_such_name")
