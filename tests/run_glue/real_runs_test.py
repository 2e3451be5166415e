"""One sweep of run_glue.py with the real run_classifier.py, on miniature data."""

import json
import subprocess
import sys
import zipfile

import numpy as np
import pytest

from bert import run_classifier
from bert.scripts import command_line
from tests.kit import tiny_bert
from tests.kit.glue_bench import write
from tests.kit.paths import ROOT

WORDS = (*tiny_bert.SPECIAL_TOKENS, "the", "film", "was", "good", "bad")


LABELS = ("contradiction", "entailment", "neutral")


def write_mnli_and_ax(folder):
  def lines(width, *rows):
    header = [f"column{i}" for i in range(width)]
    header[0] = "index"
    return "".join("\t".join(row) + "\n" for row in [header, *rows])

  def row(i, *labels):
    texts = f"the film was {('good', 'bad')[i % 2]}", "the film " * (i % 3) + "was good"
    return [str(i), *"1234567", *texts, *labels]

  rows = [row(i, LABELS[i % 3]) for i in range(8)]
  for name in ("train", "dev_matched", "dev_mismatched"):
    write(folder / "MNLI" / f"{name}.tsv", lines(11, *rows))
  write(folder / "MNLI" / "test_matched.tsv", lines(10, *map(row, range(5))))
  write(folder / "MNLI" / "test_mismatched.tsv", lines(10, *map(row, range(6))))
  pairs = [f"{i}\tthe film was {('good', 'bad')[i % 2]}\tthe film\n" for i in range(5)]
  write(folder / "AX" / "AX.tsv", "".join(["index\tsentence1\tsentence2\n", *pairs]))


@pytest.mark.ci
def test_the_whole_way_with_the_real_program(tmp_path):
  write_mnli_and_ax(tmp_path / "glue")
  tiny_bert.write(tmp_path, WORDS, max_position_embeddings=16)
  command = [
    *(sys.executable, str(ROOT / "run_glue.py"), f"--glue_dir={tmp_path / 'glue'}"),
    *(f"--vocab_file={tmp_path / 'vocab.txt'}", "--learning_rates=1e-3", "--epochs=1", "--seeds=5"),
    *(f"--bert_config_file={tmp_path / 'bert_config.json'}", f"--output_dir={tmp_path / 'out'}"),
    *("--max_seq_length=16", "--train_batch_size=4", "--", "--warmup_proportion=0"),
  ]
  done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
  assert done.returncode == 0, done.stderr
  run = tmp_path / "out" / "MNLI" / "lr0.001_epochs1_seed5"
  results = json.loads((tmp_path / "out" / "results.json").read_text())
  lines = (run / "eval_results.txt").read_text().splitlines()
  accuracy = float(dict(line.split(" = ") for line in lines)["eval_accuracy"])
  [entry] = results["runs"]
  assert entry["results"]["accuracy m"] == pytest.approx(100 * accuracy)
  assert "global_step = 2" in lines
  summary = json.loads((run / "dev_summary.json").read_text())
  assert entry["collapsed"] == summary["failure"]
  with zipfile.ZipFile(tmp_path / "out" / "submission.zip") as archive:
    sizes = {}
    for name in archive.namelist():
      header, *rows = archive.read(name).decode().splitlines()
      sizes[name] = len(rows)
      assert header == "index\tprediction"
      assert {row.split("\t")[1] for row in rows} <= set(LABELS)
  assert sizes == {"MNLI-m.tsv": 5, "MNLI-mm.tsv": 6, "AX.tsv": 5}
  assert len(list(run.glob("model.ckpt-*.index"))) == 1
  # What predicts AX is MNLI's whole model, its head among it, and not a random one.
  argv = ["run_classifier.py", "--do_predict", "--task_name=AX", f"--output_dir={run}"]
  argv += [f"--data_dir={tmp_path / 'glue' / 'AX'}", "--max_seq_length=16"]
  argv += [word for word in command if word.startswith(("--vocab", "--bert"))]
  with pytest.raises(SystemExit) as left:
    command_line.run(run_classifier.main, run_classifier.define_flags, argv)
  assert left.value.code is None
  files = [folder / "test_results.tsv" for folder in (run, tmp_path / "out" / "AX")]
  np.testing.assert_allclose(*map(np.loadtxt, files), rtol=1e-5)
