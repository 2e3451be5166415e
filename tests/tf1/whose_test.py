"""Whose module lies in a folder: BERT_TF1_TESTS=1 python -m pytest tests/tf1/whose_test.py"""

from bert.tf1 import whose
from tests.kit.paths import ROOT


def find(name, *folders):
  spec = whose.find_other(name, [str(folder) for folder in folders])
  return spec and (spec.origin or list(spec.submodule_search_locations))


def test_a_folder_bert_counts_if_it_holds_modules(tmp_path):
  package, module = tmp_path / "bert", tmp_path / "bert.py"
  assert find("bert", tmp_path, ROOT) is None  # in ROOT this project's
  package.mkdir()
  (package / "bert_config.json").write_text("{}")
  assert find("bert", ROOT, tmp_path) is None
  module.write_text("")
  assert find("bert", ROOT, tmp_path) == str(module)
  module.unlink()
  (package / "modeling.py").write_text("")
  assert find("bert", ROOT, tmp_path) == [str(package)]
  (package / "__init__.py").write_text("")
  assert find("bert", ROOT, tmp_path) == str(package / "__init__.py")


def test_a_second_checkout_and_a_wheel_are_this_project(tmp_path):
  for folder in ("checkout", "wheel"):
    (tmp_path / folder / "bert" / "tf1").mkdir(parents=True)
    for file in ("bert/__init__.py", "bert/tf1/importing.py", "modeling.py"):
      (tmp_path / folder / file).write_text("")
  (tmp_path / "wheel" / "bert" / "modeling.py").write_text("")
  beside = tmp_path / "wheel" / "modeling.py"  # another distribution's
  assert find("bert", tmp_path / "checkout", tmp_path / "wheel") is None
  assert find("modeling", tmp_path / "checkout", tmp_path / "wheel") == str(beside)
  assert {"bert", "modeling", "run_squad"} <= whose.names()
