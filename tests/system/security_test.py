"""What SECURITY.md promises: nothing given to a program is run, and no name in data is a path.

Alone: python -m pytest tests/system/security_test.py (seconds)

Hostile archives and downloads are in tests/io/download_cache_test.py, damaged checkpoints in
tests/checkpoints/checkpoint_test.py.
"""

import ast
import json
import pathlib
from collections.abc import Iterator

import numpy as np
import pytest

from bert import run_ner, run_squad
from bert.checkpoints import released_models
from bert.io import archives, http
from bert.io.http import DownloadError
from bert.model.configuration import BertConfig
from bert.scripts import command_line, flag_groups, result_files, run_files, run_settings
from bert.tasks import conll_files, glue, public_data, squad, squad_answers, squad_features
from bert.tokenization import FullTokenizer
from tests.kit.paths import ROOT

MODULES = sorted(
  path for pattern in ("*.py", "bert/**/*.py", "conformance/*.py") for path in ROOT.glob(pattern)
)

# ---------------------------------------------------------------------------------------------
# No module runs what it is given. Only the syntax tree counts, not comments and texts.

# Formats that name functions to call while they are read.
_MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "shelve", "marshal", "joblib", "imp"}
# Only this module pickles: through a socket without a name, between processes of one program.
_PICKLERS = {"bert/serving/worker.py": {"pickle"}}
_BUILTINS = {"eval", "exec", "compile", "__import__"}
_CALLS = {
  "os.system": "a shell",
  "os.popen": "a shell",
  "tempfile.mktemp": "a name that another process may take",
  "yaml.load": "objects by name",
  "yaml.unsafe_load": "objects by name",
  "torch.load": "pickle",
  "ssl._create_unverified_context": "no certificate is checked",
  "enable_unsafe_deserialization": "lambdas of a .keras file would run",
  "extractall": "an archive may write anywhere; use archives.unpack",
}
_KEYWORDS = {("allow_pickle", True), ("shell", True), ("safe_mode", False)}
# Only this module fetches: it allows https alone, and sizes up to a limit.
_FETCHERS = {"bert/io/http.py"}
_FETCHING = {"urlopen", "urlretrieve"}


def forbidden(source: str, name: str = "module.py") -> Iterator[str]:
  """`line: what` for everything in a module that could run what it reads."""
  for node in ast.walk(ast.parse(source)):
    for what in _forbidden_in(node, name):
      yield f"{name}:{node.lineno}: {what}"


def _forbidden_in(node: ast.AST, name: str) -> Iterator[str]:
  if isinstance(node, (ast.Import, ast.ImportFrom)):
    imported = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
    imported += [alias.name for alias in node.names]
    refused = _MODULES - _PICKLERS.get(name, set())
    yield from (f"import {each}" for each in imported if each.split(".")[0] in refused)
    yield from (f"import {each}" for each in imported if each in {"mktemp", "system", "popen"})
  if not isinstance(node, ast.Call):
    return
  called = ast.unparse(node.func)
  if called in _BUILTINS:
    yield called
  for call, why in _CALLS.items():
    if called == call or called.endswith(f".{call}"):
      yield f"{called}: {why}"
  if called.split(".")[-1] in _FETCHING and name not in _FETCHERS:
    yield f"{called}: downloads belong to bert/io/http.py"
  for keyword in node.keywords:
    value = keyword.value.value if isinstance(keyword.value, ast.Constant) else None
    if (keyword.arg, value) in _KEYWORDS:
      yield f"{keyword.arg}={value}"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_module_runs_what_it_is_given(path):
  name = path.relative_to(ROOT).as_posix()
  assert list(forbidden(path.read_text(encoding="utf-8"), name)) == []


def test_there_are_modules_to_scan():
  assert len(MODULES) > 100


@pytest.mark.parametrize(
  "source",
  [
    "import pickle",
    "import joblib as j",
    "def f():\n  from dill import loads",
    "from os import system",
    "x = eval('1')",
    "exec(open('a').read())",
    "compile(text, 'a', 'exec')",
    "__import__(name)",
    "import numpy as np\nnp.load(path, allow_pickle=True)",
    "subprocess.run(command, shell=True)",
    "os.system('rm')",
    "tempfile.mktemp()",
    "yaml.load(text)",
    "torch.load(path)",
    "tarfile.open(path).extractall(folder)",
    "zipfile.ZipFile(path).extractall()",
    "keras.saving.load_model(path, safe_mode=False)",
    "keras.config.enable_unsafe_deserialization()",
    "urllib.request.urlopen(url)",
  ],
)
def test_the_scan_finds_what_it_looks_for(source):
  assert len(list(forbidden(source))) == 1


@pytest.mark.parametrize(
  "source",
  [
    "# eval(x) and pickle",
    "'''Never pickle.load, exec() or os.system.'''",
    "model.evaluate(x); re.compile('a'); estimator.eval(x)",
    "np.load(path, allow_pickle=False)",
    "subprocess.run([a, b])",
    "yaml.safe_load(text)",
  ],
)
def test_the_scan_finds_nothing_else(source):
  assert list(forbidden(source)) == []


# ---------------------------------------------------------------------------------------------
# No name that comes from data becomes a path.

HOSTILE = [
  "../../escaped",
  "/escaped_from_bert",
  "..\\..\\escaped",
  "C:\\escaped",
  "%2e%2e%2fescaped",
  "~/escaped",
  "$HOME/escaped",
  "line\nescaped",
  "column\tescaped\r",
  "file://escaped",
  ".",
  "",
]


@pytest.fixture
def sandbox(tmp_path, monkeypatch) -> pathlib.Path:
  """The output folder; two folders above it are watched, too."""
  folder = tmp_path / "a" / "b" / "out"
  folder.mkdir(parents=True)
  monkeypatch.chdir(tmp_path / "a" / "b")
  monkeypatch.setenv("HOME", str(tmp_path / "a"))
  return folder


def written(sandbox) -> set[str]:
  """All files in the output folder and around it, none of which may be elsewhere."""
  paths = [path for path in sandbox.parents[2].rglob("*") if path.is_file()]
  assert all(path.parent == sandbox for path in paths), paths
  assert not pathlib.Path("/escaped_from_bert").exists()
  return {path.name for path in paths}


def test_ids_and_labels_of_predictions_stay_in_their_fields(sandbox):
  probabilities = [np.full(len(HOSTILE), 1 / len(HOSTILE), np.float32)] * len(HOSTILE)
  result_files.write_predictions(
    str(sandbox), "", HOSTILE, probabilities, HOSTILE, problem_type="classification"
  )
  assert written(sandbox) == {"predictions.tsv", "test_results.tsv"}
  rows = (sandbox / "predictions.tsv").read_bytes().decode().removesuffix("\n").split("\n")
  assert len(rows) == 1 + len(HOSTILE)
  assert {row.count("\t") for row in rows} == {1 + len(HOSTILE)}
  assert "\r" not in "".join(rows)


def test_a_label_map_gives_back_any_label(sandbox):
  run_files.write_label_map(str(sandbox), HOSTILE)
  assert written(sandbox) == {"label_map.json"}
  assert run_files.read_label_map(str(sandbox)) == HOSTILE


def test_ids_of_questions_stay_in_json(sandbox):
  ids = [name for name in HOSTILE if name]
  questions = [{"id": name, "question": "who"} for name in ids]
  data = {
    "data": [{"title": "../../escaped", "paragraphs": [{"context": "a b", "qas": questions}]}]
  }
  source = sandbox / "test.json"
  source.write_text(json.dumps(data))
  vocab = sandbox / "vocab.txt"
  vocab.write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "who", "a", "b"]))
  examples = squad.read_squad_examples(str(source), is_training=False)
  windows = []
  squad_features.convert_examples_to_features(
    examples, FullTokenizer(str(vocab)), 8, 4, 4, False, windows.append
  )
  logits = [float(number) for number in range(8)]
  results = [run_squad.RawResult(window.unique_id, logits, logits) for window in windows]
  names = ["predictions.json", "nbest_predictions.json", "null_odds.json", "detailed.jsonl"]
  *paths, detailed = [str(sandbox / name) for name in names]
  squad_answers.write_predictions(
    examples,
    windows,
    results,
    2,
    3,
    True,
    *paths,
    version_2_with_negative=True,
    output_detailed_file=detailed,
  )
  assert written(sandbox) == {"test.json", "vocab.txt", *names}
  assert set(json.loads((sandbox / "predictions.json").read_text())) == set(ids)


def test_words_and_types_of_entities_stay_in_their_columns(sandbox):
  words = [name.replace("\n", "_").replace("\t", "_") or "x" for name in HOSTILE]
  source = sandbox / "test.conll"
  source.write_bytes("".join(f"{word}\tB-{word}\n" for word in words).encode())
  test = conll_files.read_conll(str(source), conll_files.ConllFormat(separator="tab"))
  [example] = test.examples
  with flag_groups.defined_flags(run_ner.define_flags):
    command_line.parse(["run_ner.py", f"--output_dir={sandbox}", "--separator=tab"])
    settings = run_settings.from_flags()
    tagging = run_ner.Tagging(settings, BertConfig(vocab_size=4), tokenizer=None)
    tagging.files["test"] = test
    certainties = np.ones(len(example.words), np.float32)
    tagging._write_predictions([example], [example.labels], [certainties])
  assert written(sandbox) == {"test.conll", "predictions.conll", "predictions.jsonl"}
  lines = (sandbox / "predictions.conll").read_bytes().decode().removesuffix("\n").split("\n")
  assert len(lines) == len(source.read_bytes().decode().removesuffix("\n").split("\n"))
  [described] = (sandbox / "predictions.jsonl").read_bytes().decode().splitlines()
  assert len(json.loads(described)["entities"]) == len(words)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_task_or_model_is_one_of_a_list(sandbox, name):
  with pytest.raises(ValueError, match="Task not found"):
    glue.create_processor(name)
  with pytest.raises(DownloadError):
    released_models.download_model(name, cache_dir=sandbox)
  with pytest.raises(DownloadError):
    public_data.download_task_data(name, cache_dir=sandbox)
  assert written(sandbox) == set()


@pytest.mark.parametrize("name", ["../x", "/x", "a/../../x", "..\\x", "C:x", "a\0b", ""])
def test_members_of_archives_stay_below_their_folder(name):
  with pytest.raises(DownloadError, match="outside"):
    archives._checked_name(name)


@pytest.mark.parametrize("url", ["http://example.com/a", "file:///etc/passwd", "ftp://a/b", "a"])
def test_only_https_is_fetched(tmp_path, url):
  with pytest.raises(DownloadError, match="not https"):
    http.fetch(url, tmp_path / "part")
  assert not list(tmp_path.iterdir())
