"""The plan of the house, held against the source: who may import whom, and what lies at the root.

Alone: python -m pytest tests/import_graph_test.py (a second; imports nothing of the project)
"""

import shutil

import pytest

from tests.kit.import_graph import (
  circles,
  computed_imports,
  entries,
  import_graph,
  imports_by_name,
  modules,
)
from tests.kit.paths import ROOT

LIBRARIES = {"modeling": "model", "tokenization": "text", "optimization": "training"}
SCRIPTS = {
  *("create_pretraining_data", "run_pretraining", "run_classifier", "run_squad"),
  *("extract_features", "run_ner", "run_swag", "run_similarity"),
  *("run_glue", "create_vocab"),
  *("convert_checkpoint", "export_hub", "predict", "predict_masked", "attention_maps"),
  *("plots", "doctor", "distill", "serve", "report"),
}

# Package -> the packages it may import. docs/design.md says what each is for.
MAY_IMPORT = {
  "io": set(),
  "text": {"io"},
  "clusters": {"io"},
  "checkpoints": {"io"},
  "model": {"io"},
  "tasks": {"io", "text"},
  "training": {"io", "checkpoints", "model"},
  "pretraining": {"io", "text", "clusters"},
  "distillation": {"io", "text", "checkpoints", "model", "tasks", "training", "pretraining"},
  "exporting": {"io", "text", "checkpoints", "model", "tasks"},
  "predicting": {"io", "text", "clusters", "checkpoints", "model", "tasks", "exporting"},
  "serving": {"io", "text", "checkpoints", "model", "tasks", "exporting", "predicting"},
  "keras3": {"io", "text", "checkpoints", "tasks"},
  "transformers": {"io", "text", "checkpoints", "tasks", "keras3"},
  "figures": {"io", "tasks", "checkpoints"},
  "reports": {"io", "text", "checkpoints", "model", "tasks", "predicting", "figures", "checks"},
  "checks": {"io", "text", "checkpoints", "model", "tasks", "training", "pretraining"},
  "scripts": {
    *("io", "text", "checkpoints", "model", "tasks", "training", "pretraining"),
    *("exporting", "predicting", "figures", "checks", "reports", "distillation"),
  },
  "sweeps": {"io", "checkpoints", "tasks", "training", "figures", "scripts"},
  "fine_tuning": {
    *("io", "text", "checkpoints", "model", "tasks", "training", "exporting", "predicting"),
    *("distillation", "scripts"),
  },
  "__main__": {"io"},
}
# Single modules that may be imported although their package may not.
ALSO = {
  # Tables without imports: names of variables; which kind of task has which class elsewhere.
  "checkpoints": {"bert.model.answer_heads", "bert.model.families", "bert.tasks.kinds"},
  "keras3": {
    "bert.model.answer_heads",
    "bert.model.configuration",
    "bert.model.families",
    *("bert.model.kernels", "bert.model.token_rows"),  # on TensorFlow alone, in its steps
    "bert.pretraining.masks",
    "bert.pretraining.random_streams",
  },
  "transformers": {"bert.model.configuration", "bert.model.families"},
}
# Modules named in strings: what few runs need, and the programs of other processes.
BY_NAME = {
  "bert.model.configuration": {"bert.checkpoints.config_files"},  # the readers of all formats
  "bert.optimization": {"bert.keras3.loop_optimizers"},  # `create_optimizer` without a loss
  "bert.sweeps.glue_sweep": {"bert.run_classifier"},
  "bert.__main__": {"bert.scripts.augment_data", "bert.scripts.download"},
}
# Modules that import a name which they compute -> by what the entry is chosen. Nothing else imports
# an entry, so a reader who has no such file or flag needs none.
REGISTRIES = {
  "bert.tasks.kinds": "the task of a run, or of a plug-in that the user names",
  "bert.checkpoints.formats": "the ending of the file, or a mark inside",
  "bert.text.tokenizer_kinds": "the vocabulary file",
  "bert.checks.at_start": "all that lie in its folder: they look on",
  "bert.predicting.engines.registry": "the engine that the user names",
  "bert.scripts.on_request": "a word of the command line",
  "bert.io.downloads": "what is named and is no path: a model or data",
}


def package_of(module: str) -> str | None:
  """The package a module counts as part of; None for a script at the root, and for `bert`."""
  name = module.removeprefix("bert").removeprefix(".").split(".")[0]
  return LIBRARIES.get(name, name if name in MAY_IMPORT else None)


def forbidden_imports(graph) -> list[str]:
  """`module -> module` for each import that the table does not have."""
  found = []
  for module, imports in graph.items():
    package = package_of(module)
    allowed = MAY_IMPORT.get(package, set(MAY_IMPORT) - {"keras3", "transformers"})
    allowed = allowed | {package}
    for imported in imports - {"bert"} - ALSO.get(package, set()):
      is_script = package_of(imported) is None
      if package_of(imported) not in allowed if not is_script else package is not None:
        found.append(f"{module} -> {imported}")
  return sorted(found)


@pytest.fixture(scope="module")
def graph():
  return import_graph()


def test_only_scripts_and_three_libraries_lie_at_the_root():
  assert {path.stem for path in ROOT.glob("*.py")} == SCRIPTS | set(LIBRARIES)


def test_every_package_is_in_the_table():
  packages = {path.parent.name for path in (ROOT / "bert").glob("*/__init__.py")}
  assert packages == set(MAY_IMPORT) - {"__main__"}


def test_imports_run_one_way(graph):
  assert forbidden_imports(graph) == []


def test_imports_by_name_are_listed():
  assert {name: named for name, named in imports_by_name().items() if named} == BY_NAME


def test_registries_are_listed():
  assert computed_imports() == set(REGISTRIES)


def test_no_circles(graph):
  assert circles(graph) == []


def rooms(graph):
  """Package -> the packages that its modules import."""
  found = {}
  for module, imports in graph.items():
    if package := package_of(module):
      found.setdefault(package, set()).update(filter(None, map(package_of, imports)))
  return found


def test_no_circles_of_rooms(graph):
  assert circles(rooms(graph)) == []


def test_package_faces_are_empty():
  for path in (ROOT / "bert").glob("*/__init__.py"):
    if path.parent.name not in ("keras3", "fine_tuning", "transformers"):
      assert len(path.read_text(encoding="utf-8").splitlines()) <= 4, path


@pytest.fixture
def copy(tmp_path):
  """The sources once more, to plant faults in."""
  shutil.copytree(ROOT / "bert", tmp_path / "bert", ignore=shutil.ignore_patterns("__pycache__"))
  for path in ROOT.glob("*.py"):
    shutil.copy(path, tmp_path)
  return tmp_path


def plant(path, line):
  path.write_text(path.read_text(encoding="utf-8") + f"\n\ndef planted():\n  {line}\n")


@pytest.mark.parametrize(
  ("file", "line", "expected"),
  [
    ("bert/io/tables.py", "from bert.training import estimator", "bert.training.estimator"),
    ("bert/io/tables.py", "import bert.tasks.glue", "bert.tasks.glue"),
    ("bert/io/tables.py", "from bert import modeling", "bert.modeling"),
    ("bert/text/corpus.py", "from bert.scripts.result_files import x", "bert.scripts.result_files"),
    ("bert/model/heads.py", "from bert import run_classifier", "bert.run_classifier"),
    ("bert/keras3/layers.py", "from bert.model import heads", "bert.model.heads"),
    ("modeling.py", "from bert.tasks import glue", "bert.tasks.glue"),
    ("run_squad.py", "from bert.keras3 import layers", "bert.keras3.layers"),
  ],
)
def test_a_planted_upward_import_is_found(copy, file, line, expected):
  assert (copy / file).is_file()
  plant(copy / file, line)
  assert [each.split(" -> ")[1] for each in forbidden_imports(import_graph(copy))] == [expected]


def test_a_planted_circle_is_found(copy):
  plant(copy / "bert/io/atomic_files.py", "from bert.io import tables")
  plant(copy / "bert/io/tables.py", "from bert.io import atomic_files")
  assert [
    "bert.io.atomic_files" in circle and "bert.io.tables" in circle
    for circle in circles(import_graph(copy))
  ] == [True]


def test_type_checkers_imports_do_not_count():
  assert import_graph()["bert"] == set()


def test_all_modules_are_seen():
  assert len(modules()) > 100


def test_strings_name_modules_and_registries_name_entries(copy):
  plant(copy / "bert/io/tables.py", 'return "bert.tasks.glue:MnliProcessor"')
  plant(copy / "bert/io/http.py", 'return __import__("bert." + "text")')
  (copy / "bert/text/__init__.py").write_text("import importlib\nimportlib.import_module(name)\n")
  assert imports_by_name(copy)["bert.io.tables"] == {"bert.tasks.glue"}
  assert computed_imports(copy) == {*REGISTRIES, "bert.io.http", "bert.text"}
  assert {"bert.text.offsets", "bert.text.tokenizer"} <= entries(copy)["bert.text"]
