"""What SECURITY.md promises: nothing given to a program is run, and no name in data is a path.

Alone: python -m pytest tests/system/security_test.py (seconds)

Hostile archives and downloads are in tests/io/download_cache_test.py, damaged checkpoints in
tests/checkpoints/checkpoint_test.py.
"""

import json
import pathlib
import re

import numpy as np
import pytest

from bert import run_ner, run_squad
from bert.checkpoints import label_map, released_models
from bert.io import http
from bert.io.http import DownloadError
from bert.model.configuration import BertConfig
from bert.scripts import result_files
from bert.tasks import conll_files, glue, public_data, squad, squad_answers, squad_features
from bert.tokenization import FullTokenizer
from tests.kit.paths import ROOT

# Ruff's rules find pickle, eval, shells and downloads; these have no rule.
_FORBIDDEN = re.compile(
  r"allow_pickle=True|safe_mode=False|enable_unsafe_deserialization\(|\.extractall\("
)


def test_no_module_runs_what_it_is_given():
  for pattern in ("*.py", "bert/**/*.py", "conformance/*.py"):
    for path in ROOT.glob(pattern):
      assert not _FORBIDDEN.search(path.read_text(encoding="utf-8")), path


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
  label_map.write(str(sandbox), HOSTILE)
  assert written(sandbox) == {"label_map.json"}
  assert label_map.read(str(sandbox)) == HOSTILE


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
  settings = run_ner.NerSettings.of(output_dir=sandbox, separator="tab")
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


@pytest.mark.parametrize("url", ["http://example.com/a", "file:///etc/passwd", "ftp://a/b", "a"])
def test_only_https_is_fetched(tmp_path, url):
  with pytest.raises(DownloadError, match="not https"):
    http.fetch(url, tmp_path / "part")
  assert not list(tmp_path.iterdir())
