"""Batches that do not fit into memory, under a limit of the operating system, end in one line.

Alone: python -m pytest tests/system/memory_limit_test.py -m ci (a minute)

With BERT_TEST_GPU_BYTES, the memory of the first GPU, the batches are twice as large as that and
nothing else limits them: `make check-gpu`.
"""

import os
import re
import subprocess
import sys

import pytest

from tests.kit import tiny_bert
from tests.kit.paths import ROOT
from tests.kit.tiny_sentences import VOCAB, write_rows

pytestmark = pytest.mark.ci

# The scores of attention have 512 * 64 * 256 * 256 numbers, 8 GiB; all else is small. (Where the
# product that TensorFlow fuses with its activation finds no memory, its oneDNN kernel crashes.)
_LENGTH = 256
_HEADS = 64
_GPU_BYTES = int(os.environ.get("BERT_TEST_GPU_BYTES", "0"))
_BATCH = 2 * _GPU_BYTES // (4 * _HEADS * _LENGTH**2) if _GPU_BYTES else 512
_LIMIT = None if _GPU_BYTES else 8 << 30
_TEXTS = ["the film was good " * 80, "the film was bad " * 80] * (_BATCH // 2)


@pytest.fixture(scope="module")
def flags(tmp_path_factory) -> list[str]:
  """A tiny model with many heads, its data, and one step of training with a small batch."""
  folder = tmp_path_factory.mktemp("wide")
  sizes = {"hidden_size": 64, "num_attention_heads": _HEADS, "max_position_embeddings": _LENGTH}
  model = tiny_bert.write(folder / "model", VOCAB, num_hidden_layers=2, **sizes)
  for split in ("train", "dev", "test"):
    rows = [(text, text.split()[3]) for text in _TEXTS]
    write_rows(folder / "data", f"{split}.tsv", ("text_a", "label"), *rows)
  values = {
    **model,
    **{"task_name": "csv", "data_dir": folder / "data", "output_dir": folder / "out"},
    **{"max_seq_length": _LENGTH, "train_batch_size": 1, "num_train_epochs": 1 / _BATCH},
  }
  flags = [f"--{name}={value}" for name, value in values.items()]
  done = _run("run_classifier", *flags, "--do_train")
  assert done.returncode == 0, done.stderr
  return flags


def _run(script: str, *flags: str, limit: int | None = None) -> subprocess.CompletedProcess:
  def set_limit():
    import resource

    if limit:
      resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

  return subprocess.run(
    [sys.executable, str(ROOT / f"{script}.py"), *flags, "--noreport"],
    preexec_fn=set_limit,
    env={**os.environ, **({} if _GPU_BYTES else {"CUDA_VISIBLE_DEVICES": "-1"})},
    capture_output=True,
    text=True,
    timeout=600,
    check=False,
  )


@pytest.mark.parametrize(
  ("more", "expected"),
  [
    (["--do_train", f"--train_batch_size={_BATCH}", "--num_train_epochs=9"], "train_batch_size"),
    pytest.param(
      ["--do_eval", f"--eval_batch_size={_BATCH}"], "eval_batch_size", marks=pytest.mark.slow
    ),
    pytest.param(
      ["--do_predict", f"--predict_batch_size={_BATCH}"],
      "predict_batch_size",
      marks=pytest.mark.slow,
    ),
  ],
)
def test_a_batch_that_does_not_fit(flags, more, expected, record_property):
  done = _run("run_classifier", *flags, *more, limit=_LIMIT)
  assert done.returncode == 1, done.stderr
  assert "Traceback" not in done.stderr
  error = done.stderr[done.stderr.index("ERROR: ") :].splitlines()
  assert len(error) == 2, error  # with the hint at --verbose_errors
  assert error[0].startswith("ERROR: Out of memory")
  assert f"Lower {expected}={_BATCH}" in error[0]
  assert not _GPU_BYTES or " on CPU:" not in error[0]
  record_property("note", re.search(rf"Out of memory.* Lower {expected}=\d+", error[0])[0])


@pytest.mark.slow
def test_texts_that_do_not_fit(flags, tmp_path):
  (tmp_path / "texts.txt").write_text("\n".join(_TEXTS))
  settings = dict(flag.removeprefix("--").split("=") for flag in flags)
  done = _run(
    "extract_features",
    f"--input_file={tmp_path}/texts.txt",
    f"--output_file={tmp_path}/vectors.jsonl",
    f"--init_checkpoint={settings['output_dir']}",
    f"--bert_config_file={settings['bert_config_file']}",
    f"--vocab_file={settings['vocab_file']}",
    "--layers=-1",
    f"--max_seq_length={_LENGTH}",
    f"--batch_size={_BATCH}",
    limit=_LIMIT,
  )
  assert done.returncode == 1, done.stderr
  assert "Traceback" not in done.stderr
  assert f"Lower batch_size={_BATCH}" in done.stderr[done.stderr.index("ERROR: Out of mem") :]
