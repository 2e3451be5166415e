"""The benchmarks' own arithmetic, parsing and tables; nothing is timed."""

import doctest
import importlib.util
import json
import subprocess
import sys

import numpy as np
import pytest

from benchmarks import (
  batch_invariance,
  ceiling,
  common,
  encoder_inference,
  fine_tuning,
  pretraining_step,
)
from tests.kit.paths import ROOT

_SHARED = ("common", "http_load")
SCRIPTS = sorted(
  path.name for path in (ROOT / "benchmarks").glob("*.py") if path.stem not in _SHARED
)


def _load(path):
  """A module by its path: `all` would hide a builtin, and workers are no package."""
  spec = importlib.util.spec_from_file_location(path.stem, path)
  module = importlib.util.module_from_spec(spec)
  spec.loader.exec_module(module)
  return module


bench_all = _load(ROOT / "benchmarks" / "all.py")


# ---------------------------------------------------------------------------------------------
# Scripts.


@pytest.mark.ci
@pytest.mark.parametrize("script", SCRIPTS)
def test_help_says_what_a_script_does(script):
  done = subprocess.run(
    [sys.executable, str(ROOT / "benchmarks" / script), "--help"], capture_output=True, text=True
  )
  assert done.returncode == 0, done.stderr
  assert "usage" in done.stdout


@pytest.mark.parametrize(
  "module",
  [
    bench_all,
    batch_invariance,
    common,
    fine_tuning,
    pretraining_step,
  ],
  ids=lambda module: module.__name__,
)
def test_worked_examples(module):
  failed, tried = doctest.testmod(module)
  assert tried
  assert not failed


@pytest.mark.parametrize("script", ["encoder_inference.py", "pretraining_step.py"])
def test_without_peers_a_script_says_how_to_get_them(script, tmp_path):
  flags = {
    "encoder_inference.py": [f"--weights={ROOT}/samples"],
    "pretraining_step.py": ["--corpus=c", "--vocab_file=v"],
  }[script]
  done = subprocess.run(
    [sys.executable, str(ROOT / "benchmarks" / script), *flags, f"--peer_python={tmp_path}/python"],
    capture_output=True,
    text=True,
  )
  assert done.returncode == 1
  assert "make bench-setup" in done.stderr


def test_all_runs_scripts_that_are_there_with_flags_they_know():
  for name, flags in bench_all.COMMANDS.items():
    source = (ROOT / "benchmarks" / f"{name}.py").read_text("utf-8")
    own = flags[: flags.index("--")] if "--" in flags else flags
    for flag in (part for part in own if part.startswith("--")):
      option = flag.split("=")[0]
      defined_by = {"--weights": "add_weights_flag"}.get(option, "add_peer_flags")
      shared = option in ("--peer_python", "--repeats", "--weights") and defined_by in source
      assert shared or f'"{option}"' in source, f"{name}.py has no {option}"


# ---------------------------------------------------------------------------------------------
# Turns and rows.


def test_systems_take_turns():
  order = []
  systems = {name: lambda name=name: order.append(name) or len(order) for name in "abc"}
  values = common.take_turns(systems, 2)
  assert order == list("abcabc")
  assert values == {"a": [1, 4], "b": [2, 5], "c": [3, 6]}


def test_rows_have_median_spread_ratio_and_share():
  rows = [
    common.Row("1 x 32", "ours", "ms", [4.0, 2.0, 9.0], flops=8e6, dtype="bfloat16"),
    common.Row("1 x 32", "peer", "ms", [6.0]),
    common.Row("8 x 32", "ours", "ms", [5.0]),
  ]
  first, peer, alone = common.summarise(rows, ["peer"], {"bfloat16": 1e10})
  assert (first["median"], first["min"], first["max"], first["repeats"]) == (4.0, 2.0, 9.0, 3)
  assert first["times"] == {"peer": 1.5}
  assert first["of_ceiling"] == pytest.approx(0.2)  # 8e6 in 4 ms are 2e9 a second
  assert peer["times"] == {"peer": 1.0}
  assert "of_ceiling" not in peer
  assert alone["times"] == {}  # the peer did nothing of that kind


def test_a_speed_is_better_when_larger_and_counts_for_the_ceiling():
  ours = common.Row("train", "ours", "tokens/s", [300.0], flops=2e6)
  peer = common.Row("train", "peer", "tokens/s", [200.0])
  assert ours.times(peer) == 1.5
  assert peer.times(ours) == pytest.approx(2 / 3)
  assert ours.flops_per_second() == pytest.approx(6e8)


def test_the_report_ends_with_json_that_can_be_read_again(capsys):
  rows = [common.Row("a", "ours", "s", [1.0, 2.0, 4.0]), common.Row("a", "peer", "s", [3.0])]
  ceilings = {"tensorflow": {"float32": 3e9}, "torch": {"float32": 2e9}}
  common.report("name", rows, ["peer"], ceilings, steps=7)
  out = capsys.readouterr().out
  result = common.last_json(out)
  assert out.splitlines()[-1].startswith("{")
  assert (result["benchmark"], result["steps"]) == ("name", 7)
  assert result["results"][0]["times"] == {"peer": 1.5}
  assert "times peer" in out
  assert "1-4" in out


def test_ceilings_are_those_of_the_best_library():
  ceilings = {"tensorflow": {"float32": 5.0, "bfloat16": 1.0}, "torch": {"float32": 4.0}}
  assert common.best_ceiling(ceilings) == {"float32": 5.0, "bfloat16": 1.0}


def test_encoder_flops_are_those_of_counting_by_hand():
  config = {"num_hidden_layers": 2, "hidden_size": 4, "intermediate_size": 6}
  products = 0
  for length in (3, 5):
    products += 4 * length * 4 * 4  # query, key, value, output
    products += 2 * length * 4 * 6  # feed-forward, both ways
    products += 2 * length * length * 4  # scores, and the values they weigh
  assert common.encoder_flops(config, [3, 5]) == 2 * 2 * products


# ---------------------------------------------------------------------------------------------
# Commands and logs.


def test_a_commands_lines_of_progress_are_timed():
  code = (
    "import time\nfor i in 1, 2, 3: print(f'x] step {i}/3, loss', flush=True)\nprint('{\"a\": 1}')"
  )
  done = common.run_command([sys.executable, "-c", code])
  assert [step for step, _ in done.steps] == [1, 2, 3]
  times = [seconds for _, seconds in done.steps]
  assert 0 < times[0] <= times[1] <= times[2] <= done.seconds
  assert done.first_step_seconds() == times[0]
  assert common.last_json(done.log) == {"a": 1}


def test_a_command_that_fails_ends_the_benchmark_with_what_it_said():
  with pytest.raises(SystemExit, match="no such luck"):
    common.run_command([sys.executable, "-c", "import sys; sys.exit('no such luck')"])


def test_without_a_json_line_there_is_no_result():
  with pytest.raises(ValueError, match="No JSON line"):
    common.last_json("nothing\n{broken\n")


def test_speeds_of_a_run_leave_out_the_first_tenth_where_they_say_so():
  steps = [(step, 10.0 if step == 1 else 10.0 + 0.5 * step) for step in range(1, 41)]
  found = fine_tuning.speeds(common.Finished("", 60.0, steps), training_s=40.0, steps=40)
  assert found["examples_per_second"] == 32.0
  assert found["later_examples_per_second"] == pytest.approx(64.0)
  assert (found["first_step_s"], found["command_s"]) == (10.0, 60.0)


def test_rows_of_fine_tuning_have_a_value_for_each_seed():
  run = {"examples_per_second": 2.0, "later_examples_per_second": 3.0, "training_s": 4.0}
  run |= {"first_step_s": 5.0, "command_s": 6.0, "eval_accuracy": 0.75}
  runs = {"ours --fast": [run, {**run, "command_s": 8.0, "eval_accuracy": 0.25}]}
  rows = fine_tuning.to_rows(runs, flops=1e9)
  assert {row.what: row.median for row in rows}["command"] == 7.0
  assert rows[0].dtype == "bfloat16"
  assert fine_tuning._scores(runs["ours --fast"]) == {
    "eval_accuracy": {"mean": 0.5, "min": 0.25, "max": 0.75}
  }


def test_the_speed_of_pretraining_is_that_of_the_last_line():
  log = (
    "step 20/40, loss 9.5, 11.0 tokens/s, x\nstep 40/40, loss 9.1, 2811.5 tokens/s, 00:00 left\n"
  )
  assert pretraining_step.tokens_per_second(log) == 2811.5


def test_a_workers_answers_are_not_disturbed_by_what_libraries_print(tmp_path, monkeypatch):
  script = tmp_path / "worker.py"
  script.write_text(
    f"import os, sys\nsys.path.insert(0, {str(common.WORKERS)!r})\n"
    "from serving import serve\n"
    "def double(x):\n  print('noise')\n  os.system('echo more noise')\n  return 2 * x\n"
    "serve({'double': double, 'fail': lambda: 1 / 0})\n"
  )
  monkeypatch.setattr(common, "WORKERS", tmp_path)
  with common.Worker(sys.executable, "worker.py") as worker:
    assert worker.ask("double", x=21) == 42
    assert worker.ask("double", x="ab") == "abab"
    with pytest.raises(SystemExit, match="ZeroDivisionError"):
      worker.ask("fail")


# ---------------------------------------------------------------------------------------------
# Numbers that go into the comparison.


def test_pretraining_flops_count_real_tokens_and_masked_words_alone(tmp_path):
  path = tmp_path / "batches.npz"
  mask = np.array([[1, 1, 1, 0], [1, 1, 0, 0]])
  weights = np.array([[1.0, 0.0], [1.0, 1.0]])
  np.savez(path, **{"0/input_mask": mask, "0/masked_lm_weights": weights})
  config = {"num_hidden_layers": 1, "hidden_size": 4, "intermediate_size": 8, "vocab_size": 10}
  words = 3 * 2 * (4 * 4 + 4 * 10)
  expected = 3 * (common.encoder_flops(config, [3, 2]) + words) / 5
  assert pretraining_step.flops_per_token(config, path) == expected


def test_inputs_are_the_same_each_time_and_padding_is_zero():
  inputs = _load(common.WORKERS / "encoder_inputs.py")
  first, again = (inputs.make_inputs(4, 8, 100, padded=True) for _ in range(2))
  for one, other in zip(first, again, strict=True):
    np.testing.assert_array_equal(one, other)
  ids, mask, segments = first
  assert mask.sum(axis=1).tolist() == [8, 6, 8, 6]
  assert not ids[mask == 0].any()
  assert not segments[mask == 0].any()
  assert ids.max() < 100


def test_shapes_are_batch_by_length():
  assert encoder_inference._shape("8x128") == (8, 128)


def test_the_best_call_is_the_fastest_one(monkeypatch):
  times = iter([0.0, 1.0, 1.5, 1.6, 1.8, 1.9, 5.0, 9.9])
  monkeypatch.setattr(ceiling.time, "perf_counter", lambda: next(times))
  # Two calls: from 1.5 to 1.6, and from 1.9 to 5.0; the other readings ask whether time is up.
  assert ceiling.best(lambda: None, seconds=5.0) == pytest.approx(0.1)


# ---------------------------------------------------------------------------------------------
# The pages.

PAGE = bench_all.Page("Measured", "All of it.", ("help_time",))


def _result():
  row = {"what": "1 x 32", "system": "ours", "unit": "ms", "median": 4.0, "min": 3.0, "max": 5.0}
  row |= {"times": {"peer": 1.5}, "of_ceiling": 0.25}
  machine = {"processor": "a processor", "cores": 2, "load": 0.5}
  return {
    "command": "python benchmarks/help_time.py",
    "date": "2020-01-02",
    "machine": machine,
    "references": ["peer"],
    "ceilings": {"torch": {"float32": 2.5e11}},
    "results": [row],
    "scores": {"ours": {"eval_accuracy": {"mean": 0.5, "min": 0.25, "max": 0.75}, "loss": {}}},
  }


def test_a_page_keeps_what_is_written_by_hand():
  by_hand = "\n\n## What was tried\nNothing helped: 0.5 ms.\n"
  text = "# Old\n\n1 ms\n" + bench_all.MARKER + by_hand
  new = bench_all.rewritten(text, PAGE, {"help_time": _result()})
  assert new.endswith(bench_all.MARKER + by_hand)
  assert "1 ms\n" not in new
  assert "| 1 x 32 | ours | 4 ms | 3-5 | 1.50 | 25% |" in new
  assert "| ours | eval_accuracy | 0.5000 | 0.2500-0.7500 |" in new
  assert "python benchmarks/help_time.py" in new
  assert bench_all.rewritten(new, PAGE, {"help_time": _result()}) == new


def test_a_page_without_the_line_is_not_touched(tmp_path):
  page = tmp_path / "training.md"
  page.write_text("# Mine\n")
  with pytest.raises(ValueError, match=r"training\.md lacks the line"):
    bench_all.write_pages(tmp_path, {})
  assert page.read_text() == "# Mine\n"


def test_every_script_has_its_page():
  scripts = [name for page in bench_all.DOCUMENTS.values() for name in page.scripts]
  assert sorted(scripts) == sorted(bench_all.COMMANDS)


def test_the_pages_are_those_of_the_newest_results():
  results = bench_all.read_results(ROOT / "docs" / "benchmarks.json")
  for name, page in bench_all.DOCUMENTS.items():
    text = (bench_all.PAGES / f"{name}.md").read_text("utf-8")
    assert bench_all.rewritten(text, page, results) == text


def test_results_in_another_form_become_a_table_of_their_numbers():
  result = {"command": "c", "date": "d", "texts": 10, "speeds": {"ours": 2.0, "name": "x"}}
  text = bench_all.section("help_time", result)
  assert "| speeds, ours | 2 |" in text
  assert "| texts | 10 |" in text


def test_results_of_scripts_that_were_not_run_stay(tmp_path, monkeypatch, capsys):
  results = tmp_path / "results.json"
  results.write_text(json.dumps({"help_time": _result()}))
  flags = [
    f"--weights={ROOT}/samples",
    "--mrpc=m",
    "--corpus=c",
    "--peer_python=",
    "--only=hub_preprocess",
  ]
  flags += [f"--results={results}", f"--documents={tmp_path}"]
  monkeypatch.setattr(sys, "argv", ["all.py", *flags])
  with pytest.raises(SystemExit) as stop:  # there is no vocabulary w/vocab.txt
    bench_all.main()
  assert stop.value.code == 1
  assert "FAILED: hub_preprocess" in capsys.readouterr().out
  assert "4 ms" in (tmp_path / "text.md").read_text()
  assert "hub_preprocess" not in json.loads(results.read_text())
