"""A task lies in its script, its own modules and its row of names: no other code names it.

Its own are the modules of its row, and those that nothing but its own imports. Docstrings and
comments may name tasks.

Alone: python -m pytest tests/tasks/one_place_test.py (seconds; imports no TensorFlow)
"""

import pathlib
import re

import pytest

from bert.tasks import kinds
from tests.kit.import_graph import import_graph, imports_by_name, modules
from tests.kit.paths import ROOT
from tests.kit.source_names import names_in

HOME = "bert/tasks/kinds.py"


def names_of(kind: kinds.Kind) -> tuple[str, ...]:
  return kind.task, kind.head, kind.model, kind.answering, kind.data


# Kind -> `module:Class` of its row.
ROWS = {kind: [name for name in names_of(kind) if name] for kind in kinds.registered().values()}
MODULES = [module for row in ROWS.values() for module in {name.partition(":")[0] for name in row}]
# English words, too: in an identifier they say nothing.
WORDS = ("sentences", "similarity")

# (file, name) -> why it may stand there.
ALLOWED = {
  # Names in files.
  ("bert/model/heads.py", "squad"): "a scope of the original's variables, cls/squad",
  ("bert/checkpoints/transformers_heads.py", "squad"): "a scope of ELECTRA's, task_specific/squad",
  ("bert/checkpoints/keras_model.py", "squad"): "a layer in .keras files, called as that scope",
  ("bert/keras3/heads.py", "squad"): "the same layer",
  ("bert/keras3/answer_beam.py", "squad"): "the same layer",
  ("bert/keras3/models.py", "squad"): "the same layer, an attribute of its model",
  ("bert/predicting/saved_texts.py", "similarity"): "an output of exports, which says: needs pairs",
  # Published tables.
  ("bert/scripts/recipes.py", "squad"): "authors' flags for data sets: SQuAD among those of GLUE",
  ("bert/scripts/recipes.py", "ner"): "authors' flags for data sets",
  # Scripts about one task; a word to newcomers and to type checkers.
  ("run_glue.py", "run_classifier"): "a grid over runs of this script: GLUE's tasks are its own",
  ("bert/sweeps/glue_sweep.py", "run_classifier"): "the program of such a run",
  ("bert/__main__.py", "run_classifier"): "the first command that a newcomer tries",
  **{("bert/__init__.py", kind.script): "modules of the root, for type checkers" for kind in ROWS},
  ("bert/scripts/demonstration.py", "run_classifier"): "what serve.py runs for a newcomer, too",
  # Other things of the same name.
  ("bert/serving/pipelines.py", "sentences"): "a name in requests of huggingface_hub's client",
  ("bert/transformers/pipelines.py", "ner"): "transformers' short name of a pipeline",
  ("bert/exporting/hub_preprocess.py", "sentences"): "an argument of text preprocessors on the Hub",
  ("bert/text/corpus_statistics.py", "sentences"): "the sentences of a corpus",
  ("extract_features.py", "similarity"): "a flag",
  ("bert/predicting/extraction.py", "similarity"): "that flag's value, and a key in what it writes",
  ("extract_features.py", "run_similarity"): "help: vectors whose cosines mean something",
}


def own_modules(kind: kinds.Kind, importers: dict[str, set[str]]) -> set[str]:
  own: set[str] = set()
  more = {name.partition(":")[0] for name in ROWS[kind]}
  while more - own:
    own |= more
    more = {module for module, its_importers in importers.items() if its_importers <= own}
  return own


def named(kind: kinds.Kind, source: str) -> set[str]:
  """What a file names of a task: it, its script, its classes, its modules."""
  names = names_in(source)
  parts = {part for identifier in names.identifiers for part in identifier.split(".")}
  own = {kind.script, *(name.partition(":")[2] for name in ROWS[kind])}
  for module in {name.partition(":")[0] for name in ROWS[kind]}:
    own |= {module.rpartition(".")[2]} if MODULES.count(module) == 1 else set()
  words = {part for each in parts - own for part in each.lower().split("_")} - set(WORDS)
  in_text = re.compile(rf"\b{kind.script}\b")
  return (
    {kind.name for found in (names.strings, words) if kind.name in found}
    | {kind.script for _ in filter(in_text.search, names.strings)}
    | (own & parts)
  )


def places_that_name_a_task(root: pathlib.Path) -> set[tuple[str, str]]:
  """(file below `root`, name)."""
  graph, by_name, importers = import_graph(root), imports_by_name(root), {}
  for module in graph:
    for imported in graph[module] | by_name[module]:
      importers.setdefault(imported, set()).add(module)
  own = {kind: own_modules(kind, importers) for kind in ROWS}
  return {
    (path, name)
    for module, file in modules(root).items()
    if (path := file.relative_to(root).as_posix()) != HOME
    for kind in ROWS
    if module not in own[kind]
    for name in named(kind, file.read_text(encoding="utf-8"))
  }


def test_nothing_else_names_a_task():
  assert places_that_name_a_task(ROOT) == set(ALLOWED)


@pytest.mark.parametrize(
  ("line", "name"),
  [
    ('if head == "swag": pass', "swag"),
    ('heads = {"ner": 1}', "ner"),
    ('raise ValueError(f"{path} is no run of run_squad.py.")', "run_squad"),
    ("from bert import run_similarity", "run_similarity"),
    ("from bert.exporting.tag_model import TagModel", "TagModel"),
    ("from bert.exporting import vector_model", "vector_model"),
    ("isinstance(head, task_heads.ChoiceHead)", "ChoiceHead"),
    ("def read_squad(path): pass", "squad"),
    ('is_pair = facts["task_name"] == "similarity"', "similarity"),
    ('facts.get("task_name", "sentences")', "sentences"),
    ('"""Reads what run_squad.py wrote."""\nfirst = 1  # as in run_ner.py', None),
  ],
)
def test_a_planted_name_is_found(tmp_path, line, name):
  (tmp_path / "planted.py").write_text(f"{line}\n", encoding="utf-8")
  names = {each for _, each in places_that_name_a_task(tmp_path)}
  assert name in names if name else not names
