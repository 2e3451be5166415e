"""What a user reads on the terminal: no line that only looks like a failure.

Each script runs in a Python of its own, as TensorFlow writes when it is loaded.
Alone: python -m pytest tests/system/quiet_runs_test.py -m ci (a minute)
"""

import os
import re
import subprocess
import sys

import pytest

from tests.kit import tiny_bert, tiny_sentences
from tests.kit.paths import ROOT

pytestmark = pytest.mark.ci

_LOOKS_LIKE_A_FAILURE = re.compile(
  r"cuInit|oneDNN|cuda|absl::InitializeLog|cpu_feature_guard|Traceback|[Dd]eprecat|^[IWEF]0000|"
  r"\bERROR\b|retracing",
  re.MULTILINE,
)


def _log_of(script: str, *words: str, **flags) -> str:
  """What a script writes on standard error."""
  inherited = {k: v for k, v in os.environ.items() if not k.startswith(("TF_", "PYTHON"))}
  done = subprocess.run(
    [sys.executable, str(ROOT / f"{script}.py"), *words, *(f"--{k}={v}" for k, v in flags.items())],
    env={**inherited, "CUDA_VISIBLE_DEVICES": "-1"},
    capture_output=True,
    text=True,
    timeout=600,
    check=False,
  )
  assert done.returncode == 0, done.stderr
  return done.stderr


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> dict:
  return tiny_bert.write(tmp_path_factory.mktemp("model"), tiny_sentences.VOCAB)


@pytest.fixture(scope="module")
def trained(model, tmp_path_factory):
  """A run on own data with ten labels, as the first command of a new user; and its log."""
  folder = tmp_path_factory.mktemp("own")
  for split, count in (("train", 64), ("dev", 20), ("test", 10)):
    rows = [(f"the film was {'abcdefghij'[i % 10]}", f"label {i % 10}") for i in range(count)]
    header = ("text_a", "label") if split != "test" else ("text_a",)
    tiny_sentences.write_rows(folder, f"{split}.tsv", header, *(row[: len(header)] for row in rows))
  flags = {**model, "task_name": "csv", "data_dir": folder, "output_dir": folder / "out"}
  steps = {"do_train": True, "do_eval": True, "do_predict": True}
  return folder / "out", _log_of("run_classifier", **flags, **steps, max_seq_length=32)


def test_a_run_on_own_data_is_quiet(trained):
  _, log = trained
  assert log.count("*** Example ***") == 1
  assert not _LOOKS_LIKE_A_FAILURE.search(log), log


_MODEL = {"init_checkpoint": "{out}"}
_READER = {**_MODEL, "max_seq_length": 32}
_VECTORS = {"input_file": "{tmp}/texts.txt", "layers": -1, "output_file": "{tmp}/vectors.jsonl"}


@pytest.mark.parametrize(
  ("command", "flags"),
  [
    ("doctor", {"output_dir": "{out}"}),
    ("convert_checkpoint inspect", _MODEL),
    pytest.param("export_hub", {**_READER, "export_dir": "{tmp}/hub"}, marks=pytest.mark.slow),
    ("extract_features", {**_READER, **_VECTORS}),
    ("attention_maps", {**_READER, "text": "the film", "output_file": "{tmp}/maps.png"}),
  ],
)
def test_no_line_looks_like_a_failure(trained, tmp_path, command, flags):
  out, _ = trained
  (tmp_path / "texts.txt").write_text("the film was a\n")
  values = {k: str(v).format(out=out, tmp=tmp_path) for k, v in flags.items()}
  log = _log_of(*command.split(), **values)
  assert not _LOOKS_LIKE_A_FAILURE.search(log), log
