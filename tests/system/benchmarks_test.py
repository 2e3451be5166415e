"""The benchmarks' help, examples and arithmetic; nothing is timed."""

import doctest
import importlib
import subprocess
import sys

import numpy as np
import pytest

from benchmarks import common, pretraining_step
from tests.kit.paths import ROOT

_SHARED = ("common", "http_load")
SCRIPTS = sorted(
  path.name for path in (ROOT / "benchmarks").glob("*.py") if path.stem not in _SHARED
)


@pytest.mark.ci
@pytest.mark.parametrize("script", SCRIPTS)
def test_help_says_what_a_script_does(script):
  done = subprocess.run(
    [sys.executable, str(ROOT / "benchmarks" / script), "--help"], capture_output=True, text=True
  )
  assert done.returncode == 0, done.stderr
  assert "usage" in done.stdout


@pytest.mark.ci
@pytest.mark.parametrize("script", ["common.py", *SCRIPTS])
def test_worked_examples(script):
  module = importlib.import_module(f"benchmarks.{script.removesuffix('.py')}")
  assert not doctest.testmod(module).failed


def test_rows_have_median_spread_ratio_and_share(capsys):
  rows = [
    common.Row("1 x 32", "ours", "ms", [4.0, 2.0, 9.0], flops=8e6, dtype="bfloat16"),
    common.Row("1 x 32", "peer", "ms", [6.0]),
    common.Row("8 x 32", "ours", "tokens/s", [300.0]),
  ]
  ceilings = {"tensorflow": {"bfloat16": 1e10}, "torch": {"bfloat16": 2e9}}
  common.report("name", rows, ["peer"], ceilings, steps=7)
  result = common.last_json(capsys.readouterr().out)
  first, peer, alone = result["results"]
  assert (result["benchmark"], result["steps"]) == ("name", 7)
  assert (first["median"], first["min"], first["max"], first["repeats"]) == (4.0, 2.0, 9.0, 3)
  assert first["times"] == {"peer": 1.5}
  assert first["of_ceiling"] == pytest.approx(0.2)  # 8e6 in 4 ms are 2e9 a second
  assert peer["times"] == {"peer": 1.0}
  assert alone["times"] == {}  # the peer did nothing of that kind


def test_encoder_flops_are_those_of_counting_by_hand():
  config = {"num_hidden_layers": 2, "hidden_size": 4, "intermediate_size": 6}
  products = 0
  for length in (3, 5):
    products += 4 * length * 4 * 4  # query, key, value, output
    products += 2 * length * 4 * 6  # feed-forward, both ways
    products += 2 * length * length * 4  # scores, and the values they weigh
  assert common.encoder_flops(config, [3, 5]) == 2 * 2 * products


def test_pretraining_flops_count_real_tokens_and_masked_words_alone(tmp_path):
  path = tmp_path / "batches.npz"
  mask = np.array([[1, 1, 1, 0], [1, 1, 0, 0]])
  weights = np.array([[1.0, 0.0], [1.0, 1.0]])
  np.savez(path, **{"0/input_mask": mask, "0/masked_lm_weights": weights})
  config = {"num_hidden_layers": 1, "hidden_size": 4, "intermediate_size": 8, "vocab_size": 10}
  words = 3 * 2 * (4 * 4 + 4 * 10)
  expected = 3 * (common.encoder_flops(config, [3, 2]) + words) / 5
  assert pretraining_step.flops_per_token(config, path) == expected


def test_a_page_keeps_what_is_written_by_hand():
  pages = importlib.import_module("benchmarks.all")
  row = {"what": "1 x 32", "system": "ours", "unit": "ms", "median": 4.0, "min": 3.0, "max": 5.0}
  row |= {"times": {"peer": 1.5}, "of_ceiling": 0.25}
  result = {
    "command": "python benchmarks/help_time.py",
    "date": "2020-01-02",
    "machine": {"processor": "a processor", "cores": 2, "load": 0.5},
    "references": ["peer"],
    "ceilings": {"torch": {"float32": 2.5e11}},
    "results": [row],
  }
  page = pages.Page("Measured", "All of it.", ("help_time",))
  by_hand = "\n\n## What was tried\nNothing helped: 0.5 ms.\n"
  text = "# Old\n\n1 ms\n" + pages.MARKER + by_hand
  new = pages.rewritten(text, page, {"help_time": result})
  assert new.endswith(pages.MARKER + by_hand)
  assert "1 ms\n" not in new
  assert "| 1 x 32 | ours | 4 ms | 3-5 | 1.50 | 25% |" in new
