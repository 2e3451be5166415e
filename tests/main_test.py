"""Tests of bert/__main__.py, the command `bert`."""

import ast
import importlib.metadata
import os
import subprocess
import sys

import pytest

import bert
import bert.__main__ as command
from tests.kit import installations
from tests.kit.paths import ROOT


@pytest.fixture
def no_other_distribution(monkeypatch):
  """No distribution beside this one adds words."""
  monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: ())


@pytest.fixture
def added(monkeypatch, tmp_path):
  """A distribution that adds the word `tf1`, and one whose module is gone."""
  (tmp_path / "added_words.py").write_text(
    '"""What the word does.\n\nMore."""\n\n'
    "import sys\n\ndef main(arguments):\n  print(sys.argv, arguments)\n  return 7\n"
  )
  monkeypatch.syspath_prepend(tmp_path)
  entries = [
    importlib.metadata.EntryPoint("tf1", "added_words:main", "bert.commands"),
    importlib.metadata.EntryPoint("gone", "no_such_package.words:main", "bert.commands"),
  ]
  monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: entries)
  monkeypatch.setattr(sys, "argv", sys.argv)


@pytest.mark.parametrize("words", [[], ["--help"], ["-h"], ["help"]])
def test_help_lists_every_word_with_a_line(capsys, words):
  assert command.main(["bert", *words]) == 0
  lines = capsys.readouterr().out.splitlines()
  assert lines[0] == "usage: bert COMMAND [--flag=value ...]"
  listed = dict(line.split(maxsplit=1) for line in lines if line[:3].strip() and line[:2] == "  ")
  assert set(listed) == set(command.words())
  assert all(line.endswith(".") for line in listed.values())
  assert max(map(len, lines)) <= 124


def test_words_are_the_scripts_at_the_root_and_two_more(no_other_distribution):
  scripts = {path.stem for path in ROOT.glob("*.py")} - {"modeling", "tokenization", "optimization"}
  others = {word: f"bert.scripts.{word}" for word in ("augment_data", "download")}
  assert set(command.words()) == scripts | set(others)
  for word, (module, summary, _) in command.words().items():
    assert module == others.get(word, f"bert.{word}")
    path = ROOT / f"{word}.py" if word in scripts else ROOT / f"{module.replace('.', '/')}.py"
    assert summary == ast.get_docstring(ast.parse(path.read_text())).splitlines()[0]


def test_words_of_another_distribution(added, capsys):
  assert command.words()["tf1"].summary == "What the word does."
  assert "gone" not in command.words()
  assert command.main(["bert", "tf1", "--check", "a.py"]) == 7
  assert capsys.readouterr().out == "['bert tf1', '--check', 'a.py'] ['--check', 'a.py']\n"


def test_a_word_of_a_distribution_that_is_not_installed(no_other_distribution, capsys):
  assert command.main(["bert", "tf1", "script.py"]) == 1
  assert capsys.readouterr().err == (
    "ERROR: `bert tf1` needs another package: pip install bert-alive-tf1\n"
  )


@pytest.mark.parametrize(
  ("word", "nearest"),
  [
    ("run_clasifier", "Did you mean `bert run_classifier`?"),
    ("downlaod", "Did you mean `bert download`?"),
    ("zyxw", ""),
    ("modeling", ""),
    ("--task_name=MRPC", ""),
  ],
)
def test_an_unknown_word_names_the_nearest(capsys, word, nearest):
  assert command.main(["bert", word]) == 1
  out, err = capsys.readouterr()
  assert out == ""
  assert f'bert has no command "{word}"' in err
  assert nearest in err
  assert "bert --help" in err


def test_version(capsys):
  assert command.main(["bert", "--version"]) == 0
  assert capsys.readouterr().out.split()[:2] == ["bert-alive", bert.__version__]


@pytest.mark.parametrize("word", ["create_vocab", "create_vocab.py", "download"])
def test_a_word_runs_its_script_under_the_commands_name(tmp_path, word):
  done = installations.checkout().run_command(word, "--help", folder=tmp_path)
  assert done.returncode == 0, done.stderr
  name = word.removesuffix(".py")
  assert done.stdout.startswith(f"usage: bert {name} [--flag=value ...]")


def test_errors_and_hints_name_the_command(tmp_path):
  done = installations.checkout().run_command("download", "--list=x", folder=tmp_path)
  assert done.returncode == 1
  assert done.stderr.splitlines() == [
    'ERROR: Flag --list takes true or false, not "x".',
    "Run `bert download --help` to see every flag.",
  ]


def test_help_imports_no_script_and_no_library():
  code = (
    "import sys; from bert import __main__ as command; command.main(['bert', '--help'])\n"
    "heavy = {'tensorflow', 'numpy', 'absl'} & set(sys.modules)\n"
    "scripts = {f'bert.{word}' for word in command.words()} & set(sys.modules)\n"
    "sys.exit(str(heavy | scripts) if heavy | scripts else 0)"
  )
  subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT, stdout=subprocess.DEVNULL)


@pytest.mark.ci
@pytest.mark.parametrize(
  "words",
  [
    ["run_classifier.py"],
    ["-m", "bert.run_classifier"],
    ["-um", "bert", "run_classifier"],
    ["-c", "import sys; from bert.__main__ import main; sys.exit(main())", "run_classifier"],
  ],
)
def test_ctrl_c_while_a_script_is_imported_is_one_line(tmp_path, words):
  (tmp_path / "numpy.py").write_text("raise KeyboardInterrupt")  # which every script imports
  done = subprocess.run(
    [sys.executable, *words, "--help"],
    env={**os.environ, "PYTHONPATH": str(tmp_path)},
    cwd=ROOT,
    capture_output=True,
    text=True,
    check=False,
  )
  assert done.stderr.split() == ["Interrupted."]
  assert done.returncode != 0


@pytest.mark.parametrize("first", ["absl", "zipfile"])
def test_ctrl_c_before_a_script_imports_anything_else_is_one_line(tmp_path, first):
  """The first import of a script, and that of the command `bert` as pip installs it."""
  (tmp_path / f"{first}.py").write_text("raise KeyboardInterrupt")
  (tmp_path / "bert").write_text("import sys; from bert.__main__ import main; sys.exit(main())")
  script = {"absl": str(ROOT / "run_classifier.py"), "zipfile": str(tmp_path / "bert")}[first]
  done = subprocess.run(
    [sys.executable, script, "--help"],
    env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"},
    capture_output=True,
    text=True,
    check=False,
  )
  assert done.stderr.split() == ["Interrupted."]
  assert done.returncode != 0


@pytest.mark.parametrize("words", [["own.py"], ["-m", "own"], ["-Bm", "own"], ["-mown"]])
def test_a_program_of_the_users_keeps_its_hook(tmp_path, words):
  (tmp_path / "own.py").write_text(
    "import sys, bert; sys.exit(sys.excepthook is not sys.__excepthook__)"
  )
  subprocess.run(
    [sys.executable, *words], env={**os.environ, "PYTHONPATH": str(ROOT)}, cwd=tmp_path, check=True
  )


def test_a_python_without_the_libraries_is_said_in_one_line():
  command = [sys.executable, "-E", "-S", str(ROOT / "doctor.py"), "--help"]  # no site-packages
  done = subprocess.run(command, capture_output=True, text=True, check=False)
  assert done.returncode == 1
  assert done.stderr.startswith(f"ERROR: {sys.executable} has no absl, which this project needs.")
  assert done.stderr.count("\n") == 1
