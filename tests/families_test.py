"""Files that name a family of models in code, each with its reason.

A family has its rows: `bert/model/families.py`, `bert/checkpoints/families/`, and the tables of
`ALLOWED` below. Everything else asks a property of a row. The methods DistilBERT and TinyBERT are
values of `--method`: they count, where they bear the name of a family.

Alone: python -m pytest tests/families_test.py (seconds; imports nothing of the project)
"""

import pathlib
import re

import pytest

from tests.kit.import_graph import modules
from tests.kit.paths import ROOT
from tests.kit.source_names import names_in

MOST_FILES = 28
# The package and the original are called BERT, so that name says nothing.
FAMILY = re.compile("electra|albert|roberta|distil_?bert", re.IGNORECASE)
# transformers: the names of that library.
HOMES = ("bert/checkpoints/families/", "bert/transformers/")

ALLOWED = {
  "bert/model/families.py": "the rows of what models compute",
  # Algorithms.
  "bert/model/answer_heads.py": "heads for questions, named after their families (--answer_head)",
  "bert/model/span_heads.py": "what the heads of ELECTRA and ALBERT compute",
  "bert/tasks/squad_answers.py": "how these heads decide that there is no answer",
  "bert/scripts/answer_flags.py": "the flags of these heads",
  "bert/training/pretraining_objectives.py": "ELECTRA's objective",
  "bert/scripts/objective_flags.py": "the flags of ELECTRA's generator and of ALBERT's groups",
  "bert/scripts/pretraining_data.py": "ELECTRA's masks",
  "bert/pretraining/electra_masks.py": "ELECTRA's masks",
  "bert/pretraining/electra_examples.py": "the sequences of ELECTRA's own script",
  "bert/pretraining/blocks.py": "calls electra_examples",
  "bert/pretraining/albert_instances.py": "the instances of ALBERT's own script",
  "create_pretraining_data.py": "calls the scripts' own ways to records",
  # Tables by family.
  "bert/pretraining/record_formats.py": "the formats of records",
  "bert/scripts/recipes.py": "the recipes",
  # The method DistilBERT.
  "bert/distillation/distilbert.py": "the method",
  "bert/distillation/students.py": "a BERT's weights as those of a DistilBERT",
  "bert/scripts/student_files.py": "a student of the method is a DistilBERT",
  "bert/scripts/distill_flags.py": "the method's flags",
  "bert/scripts/corpus_distillation.py": "the method's objective",
  # Names that others gave.
  "bert/checkpoints/transformers_heads.py": "ELECTRA's checkpoints hold two models and own heads",
  "bert/checkpoints/transformers_folder.py": "transformers' classes of tokenizers",
  "bert/io/byte_pair_files.py": "the tokenizers library's RobertaProcessing",
  "bert/text/byte_pairs.py": "what installs the library: bert[roberta]",
  "bert/text/sentence_pieces.py": "what installs the library: bert[albert]",
  "bert/scripts/electra_hparams.py": "ELECTRA's --hparams",
  "bert/scripts/command_line.py": "ELECTRA's --hparams, ALBERT's --albert_config_file",
  "bert/scripts/on_request.py": "names the module that reads ELECTRA's --hparams",
}


def named(source: str) -> set[str]:
  """Identifiers, and strings that are no sentences: without a blank, or compared with something."""
  names = names_in(source)
  return names.identifiers | names.compared | set(filter(re.compile(r"\S*$").match, names.strings))


def files_that_name_a_family(root: pathlib.Path) -> set[str]:
  """Paths below `root`; the name of a file counts, too."""
  paths = {path.relative_to(root).as_posix(): path for path in modules(root).values()}
  return {
    name
    for name, path in paths.items()
    if not name.startswith(HOMES)
    and any(map(FAMILY.search, (name, *named(path.read_text(encoding="utf-8")))))
  }


def test_few_files_name_a_family():
  assert files_that_name_a_family(ROOT) == set(ALLOWED)
  assert len(ALLOWED) <= MOST_FILES


@pytest.mark.parametrize(
  "line",
  [
    'if config.family.name == "electra": pass',
    'if drawn_by == "a model of ELECTRA": pass',
    "from bert.model.families import ALBERT",
    "from bert.pretraining import electra_masks",
    'sizes = {"roberta": 2}',
    'scope = f"electra/{name}"',
    "def make(is_distilbert): pass",
    'name.startswith("albert_")',
  ],
)
def test_a_planted_name_is_found(tmp_path, line):
  (tmp_path / "bert").mkdir()
  (tmp_path / "bert" / "planted.py").write_text(f"{line}\n", encoding="utf-8")
  assert files_that_name_a_family(tmp_path) == {"bert/planted.py"}


def test_sentences_may_name_families(tmp_path):
  text = '"""As in ALBERT."""\nraise ValueError("Give a model of ELECTRA.")  # or RoBERTa\n'
  (tmp_path / "planted.py").write_text(text + 'f"{x} is a DistilBERT"\n', encoding="utf-8")
  assert files_that_name_a_family(tmp_path) == set()
