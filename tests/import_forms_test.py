"""Every form of import, in a checkout and as installed from a wheel and in editable mode.

Alone: python -m pytest tests/import_forms_test.py (default tier: the checkout; -m ci: installed)

Each form is a program that runs in a Python of its own, in an empty folder or in one that holds
modules with the names of ours.
"""

import pathlib

import pytest

import bert
from tests.kit import installations
from tests.kit.paths import ROOT, SAMPLES

# The program's folder holds a foreign `tokenization.py` and `modeling.py`, or nothing.
FOREIGN = 'WHOSE = "the caller\'s"\n'

SAME = """
import bert.tokenization
from bert import tokenization as by_from
from bert.tokenization import FullTokenizer
assert bert.tokenization is by_from, "two objects"
assert by_from.FullTokenizer is FullTokenizer
"""

SPAWN = """
import multiprocessing
import sys
from bert import tokenization

def inspect(tokenizer):
  import bert.tokenization
  assert type(tokenizer) is bert.tokenization.BasicTokenizer, type(tokenizer)
  {in_worker}
  return tokenizer.tokenize("Some text.")

if __name__ == "__main__":
  with multiprocessing.get_context("spawn").Pool(1) as pool:
    done = pool.apply(inspect, (tokenization.BasicTokenizer(),))
  assert done == ["some", "text", "."], done
  {in_worker}
"""

OWN_TOKENIZATION = """import tokenization as theirs
  assert theirs.WHOSE == "the caller's"
  assert sys.modules["tokenization"] is theirs
"""

# Name -> a program.
FORMS = {
  "from_bert_import_original": """
from bert import modeling, tokenization, optimization
from bert import run_classifier, run_squad, extract_features
assert modeling.BertModel and tokenization.FullTokenizer and optimization.create_optimizer
assert run_classifier.MrpcProcessor and run_squad.SquadExample
""",
  "import_bert_module": "import bert.tokenization; assert bert.tokenization.FullTokenizer" + SAME,
  "from_bert_import_module": "from bert import tokenization" + SAME,
  "from_module_import_name": "from bert.tokenization import FullTokenizer" + SAME,
  "import_costs_nothing": """
import sys
before = set(sys.modules)
import bert
assert bert.__version__
heavy = {name.partition(".")[0] for name in set(sys.modules) - before}
assert not heavy & {"tensorflow", "numpy", "absl", "modeling", "typing"}, heavy
assert not [name for name in sys.modules if name.startswith("bert.")]
""",
  "runpy": """
import runpy
before = runpy.run_module("bert.create_vocab", run_name="other")
from bert import create_vocab
after = runpy.run_module("bert.create_vocab", run_name="other")
for found in (before, after):
  assert found["__name__"] == "other"
  assert found["define_flags"].__code__.co_filename == create_vocab.__file__
""",
  "reload": """
import importlib
from bert import tokenization
assert importlib.reload(tokenization) is tokenization
import bert
assert importlib.reload(bert) is bert
assert bert.tokenization is tokenization
"""
  + SAME,
  "pickle": """
import pickle
from bert import tokenization
again = pickle.loads(pickle.dumps(tokenization.BasicTokenizer(do_lower_case=False)))
assert type(again) is tokenization.BasicTokenizer
""",
  "spawn": SPAWN.format(in_worker="pass"),
}
IN_CHECKOUT = {
  "flat_first": """
import tokenization
import bert.tokenization
from bert import tokenization as by_from
assert tokenization is bert.tokenization is by_from
assert tokenization.__spec__.name == "tokenization"
""",
  "flat_runpy": """
import runpy
from bert import create_vocab
assert runpy.run_module("create_vocab", run_name="other")["__name__"] == "other"
""",
  "flat_last": """
from bert import tokenization as by_from
import tokenization
assert tokenization is by_from
""",
}
BESIDE_FOREIGN_MODULES = {
  "foreign_first": """
import tokenization
from bert import tokenization as ours
import modeling
assert tokenization.WHOSE == modeling.WHOSE == "the caller's"
assert ours is not tokenization and ours.FullTokenizer
"""
  + SAME,
  "foreign_last": """
from bert import tokenization as ours
import tokenization
assert tokenization.WHOSE == "the caller's"
assert ours.__name__ == "bert.tokenization"
assert ours.BasicTokenizer().tokenize("Some text.") == ["some", "text", "."]
""",
  "foreign_in_spawned_workers": SPAWN.format(in_worker=OWN_TOKENIZATION),
  "foreign_pickle": FORMS["pickle"],
  "foreign_reload": FORMS["reload"],
}


@pytest.fixture
def foreign_folder(tmp_path):
  folder = tmp_path / "foreign"
  folder.mkdir()
  for name in ("modeling", "tokenization", "run_classifier", "tables"):
    (folder / f"{name}.py").write_text(FOREIGN)
  return folder


def check(installation, program, folder):
  (folder / "program.py").write_text(program)
  done = installation.run("program.py", folder=folder)
  assert done.returncode == 0, done.stderr


@pytest.mark.ci
@pytest.mark.parametrize("name", [*FORMS, *IN_CHECKOUT])
def test_a_form_in_a_checkout(name, tmp_path):
  check(installations.checkout(), (FORMS | IN_CHECKOUT)[name], tmp_path)


@pytest.mark.parametrize("name", BESIDE_FOREIGN_MODULES)
def test_a_form_beside_foreign_modules(name, foreign_folder):
  check(installations.checkout(), BESIDE_FOREIGN_MODULES[name], foreign_folder)


@pytest.mark.parametrize("module", ["bert", "bert.run_classifier"])
def test_python_m(module, foreign_folder):
  done = installations.checkout().run("-m", module, "--help", folder=foreign_folder)
  assert done.returncode == 0, done.stderr
  expected = "usage: bert COMMAND" if module == "bert" else f"usage: python -m {module} [--flag"
  assert done.stdout.startswith(expected)


def test_type_checkers_see_every_root_module():
  source = (ROOT / "bert" / "__init__.py").read_text()
  for path in ROOT.glob("*.py"):
    assert f"  import {path.stem} as {path.stem}\n" in source, path
  assert source.count("\n  import ") == len(list(ROOT.glob("*.py")))


# ---------------------------------------------------------------------------------------------
# Installed.


@pytest.fixture(scope="module", params=installations.KINDS)
def installation(request, tmp_path_factory):
  return installations.installed(request.param, tmp_path_factory)


def is_editable(installation) -> bool:
  return "bert" not in installation.names()


@pytest.mark.ci
@pytest.mark.parametrize("name", [*FORMS, *BESIDE_FOREIGN_MODULES])
def test_a_form_installed(installation, name, tmp_path, foreign_folder):
  folder = tmp_path if name in FORMS else foreign_folder
  check(installation, (FORMS | BESIDE_FOREIGN_MODULES)[name], folder)


@pytest.mark.ci
def test_names_in_site_packages(installation):
  metadata = f"bert_alive-{bert.__version__}.dist-info"
  packages = ["_bert_alive.pth"] if is_editable(installation) else ["bert"]
  assert installation.names() == sorted([*packages, metadata])


@pytest.mark.ci
def test_flat_names_are_those_of_a_checkout_only(installation, tmp_path):
  done = installation.run("-c", "import tokenization", folder=tmp_path)
  assert (done.returncode == 0) == is_editable(installation)


@pytest.mark.ci
def test_the_package_finds_its_samples_and_requirements(installation, tmp_path):
  code = "from bert.io import installation as i; print(i.SAMPLES); print(i.requirements())"
  done = installation.run("-c", code, folder=tmp_path)
  samples, requirements = done.stdout.splitlines()
  expected = [path for path in SAMPLES.rglob("*.*") if ".py" not in path.suffix]
  for path in expected:
    assert (pathlib.Path(samples) / path.relative_to(SAMPLES)).read_bytes() == path.read_bytes()
  assert "3.10" in requirements
  assert "tensorflow" in requirements


@pytest.mark.ci
def test_the_command(installation, foreign_folder):
  done = installation.run_command("--version", folder=foreign_folder)
  assert done.stdout.split()[:2] == ["bert-alive", bert.__version__]
  listed = installation.run_command("--help", folder=foreign_folder).stdout
  assert "run_classifier" in listed
  done = installation.run_command("run_classifier", "--help", folder=foreign_folder)
  assert done.stdout.startswith("usage: bert run_classifier [--flag=value ...]")


@pytest.mark.ci
def test_the_command_starts_workers_beside_foreign_modules(installation, foreign_folder):
  command = (
    f"create_pretraining_data --input_file={SAMPLES / 'sample_text.txt'} --num_workers=2 "
    f"--vocab_file={SAMPLES / 'vocab.txt'} --output_file=records.tfrecord"
  )
  done = installation.run_command(*command.split(), folder=foreign_folder)
  assert done.returncode == 0, done.stderr
  assert (foreign_folder / "records.tfrecord").stat().st_size > 0


@pytest.mark.ci
def test_the_command_in_a_folder_with_another_bert(installation, tmp_path):
  (tmp_path / "bert").mkdir()
  (tmp_path / "bert" / "__init__.py").write_text("raise ImportError('another bert')\n")
  for name in ("a.txt", "b.txt"):  # one for each worker, which imports `bert` by its name
    (tmp_path / name).write_text("a text of words\n" * 30)
  done = installation.run_command(
    *("create_vocab", "--input_file=a.txt,b.txt", "--output_file=vocab.txt", "--vocab_size=40"),
    "--num_workers=2",
    folder=tmp_path,
  )
  assert done.returncode == 0, done.stderr


@pytest.mark.ci
def test_a_namesake_in_the_same_folder_is_named_at_import(tmp_path_factory, tmp_path):
  installation = installations.installed("wheel", tmp_path_factory)
  other = installation.site_packages / "bert_tensorflow-1.0.4.dist-info"
  other.mkdir()
  (other / "METADATA").write_text("Metadata-Version: 2.1\nName: bert-tensorflow\nVersion: 1.0.4\n")
  (other / "top_level.txt").write_text("bert\n")
  code = "import bert; from bert.io import installation; print(installation.namesakes())"
  done = installation.run("-c", code, folder=tmp_path)
  assert "bert_tensorflow-1.0.4.dist-info" in done.stderr
  assert "pip uninstall bert-tensorflow bert-alive" in done.stderr
  assert done.stdout == "['bert-tensorflow']\n"
