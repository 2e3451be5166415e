"""Who may import whom, and which modules are at the root.

Alone: python -m pytest tests/import_graph_test.py (a second; imports nothing of the project)
"""

import re

import pytest

from tests.kit.import_graph import circles, import_graph, modules
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
  "families": set(),
  "text": {"io"},
  "clusters": {"io"},
  "checkpoints": {"io", "families"},
  "model": {"io", "families"},
  "tasks": {"io", "text"},
  "training": {"io", "families", "checkpoints", "model"},
  "pretraining": {"io", "text", "clusters"},
  "distillation": {
    *("io", "families", "text", "checkpoints", "model", "tasks", "training", "pretraining"),
  },
  "exporting": {"io", "families", "text", "checkpoints", "model", "tasks"},
  "predicting": {"io", "text", "clusters", "checkpoints", "model", "tasks", "exporting"},
  "serving": {"io", "text", "checkpoints", "model", "tasks", "exporting", "predicting"},
  "keras3": {"io", "families", "text", "checkpoints", "tasks"},
  "transformers": {"io", "families", "text", "checkpoints", "tasks", "keras3"},
  "figures": {"io", "tasks", "checkpoints"},
  "reports": {"io", "text", "checkpoints", "model", "tasks", "predicting", "figures", "checks"},
  "checks": {"io", "text", "checkpoints", "model", "tasks", "training", "pretraining"},
  "scripts": {
    *("io", "families", "text", "checkpoints", "model", "tasks", "training", "pretraining"),
    *("exporting", "predicting", "figures", "checks", "reports", "distillation"),
  },
  "sweeps": {"io", "tasks", "training", "reports", "scripts"},
  "fine_tuning": {
    *("io", "text", "checkpoints", "model", "tasks", "training", "exporting", "predicting"),
    *("distillation", "scripts"),
  },
  "__main__": {"io"},
}
# Package or script -> single modules that it may import although their package may not.
ALSO = {
  # Tables without imports: names of variables; which kind of task has which class elsewhere.
  "checkpoints": {"bert.tasks.kinds"},
  "keras3": {
    "bert.model.answer_heads",
    "bert.model.configuration",
    *("bert.model.kernels", "bert.model.token_rows"),  # on TensorFlow alone, in its steps
    "bert.pretraining.masks",
    "bert.pretraining.random_streams",
  },
  "transformers": {"bert.model.configuration"},
  "bert.convert_checkpoint": {"bert.keras3.saving"},  # for a .keras file
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
    for imported in imports - {"bert"} - ALSO.get(package or module, set()):
      is_script = package_of(imported) is None
      if package_of(imported) not in allowed if not is_script else package is not None:
        found.append(f"{module} -> {imported}")
  return sorted(found)


@pytest.fixture(scope="module")
def graph():
  return import_graph()


def test_only_scripts_and_three_libraries_are_at_the_root():
  assert {path.stem for path in ROOT.glob("*.py")} == SCRIPTS | set(LIBRARIES)


def test_every_package_is_in_the_table():
  packages = {path.parent.name for path in (ROOT / "bert").glob("*/__init__.py")}
  assert packages == set(MAY_IMPORT) - {"__main__"}


def test_imports_run_one_way(graph):
  assert forbidden_imports(graph) == []


def test_no_circles(graph):
  assert circles(graph) == []


def test_no_circles_of_packages(graph):
  packages = {}
  for module, imports in graph.items():
    if package := package_of(module):
      packages.setdefault(package, set()).update(filter(None, map(package_of, imports)))
  assert circles(packages) == []


def test_private_tensorflow_is_imported_where_the_design_says_so():
  page = (ROOT / "docs" / "design" / "training.md").read_text(encoding="utf-8")
  found = {
    path.relative_to(ROOT).as_posix().removeprefix("bert/")
    for path in modules().values()
    if re.search(r"(?m)^ *(from|import) tensorflow\.[\w.]*python", path.read_text(encoding="utf-8"))
  }
  assert "training/graphs.py" in found
  assert [path for path in sorted(found) if f"| `{path}` |" not in page] == []
