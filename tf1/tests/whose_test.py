"""Whose module is in a folder."""

from bert_tf1 import whose
from tests.kit.paths import CHECKOUT


def find(name, *folders):
  spec = whose.find_other(name, [str(folder) for folder in folders])
  return spec and (spec.origin or list(spec.submodule_search_locations))


def test_a_folder_bert_counts_if_it_holds_modules(tmp_path):
  package, module = tmp_path / "bert", tmp_path / "bert.py"
  assert find("bert", tmp_path, CHECKOUT) is None  # in CHECKOUT this project's
  package.mkdir()
  (package / "bert_config.json").write_text("{}")
  assert find("bert", CHECKOUT, tmp_path) is None
  module.write_text("")
  assert find("bert", CHECKOUT, tmp_path) == str(module)
  module.unlink()
  (package / "modeling.py").write_text("")
  assert find("bert", CHECKOUT, tmp_path) == [str(package)]
  (package / "__init__.py").write_text("")
  assert find("bert", CHECKOUT, tmp_path) == str(package / "__init__.py")


def test_a_second_checkout_and_a_wheel_are_of_bert_alive(tmp_path):
  for folder in ("checkout", "wheel"):
    (tmp_path / folder / "bert" / "io").mkdir(parents=True)
    for file in ("bert/__init__.py", "bert/io/installation.py", "modeling.py"):
      (tmp_path / folder / file).write_text("")
  (tmp_path / "wheel" / "bert" / "modeling.py").write_text("")
  beside = tmp_path / "wheel" / "modeling.py"  # another distribution's
  assert find("bert", tmp_path / "checkout", tmp_path / "wheel") is None
  assert find("modeling", tmp_path / "checkout", tmp_path / "wheel") == str(beside)
  assert whose.names([]) == {"bert"}
  assert {"bert", "modeling", "run_squad"} <= whose.names([str(tmp_path), str(CHECKOUT)])
  assert whose.names([str(tmp_path / "wheel")]) == {"bert"}
