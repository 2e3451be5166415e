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
  default_seed,
  distillation,
  encoder_inference,
  fine_tuning,
  original_steps,
  pretraining_step,
)
from bert.checkpoints import saving
from tests.kit import toy_training
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
    default_seed,
    distillation,
    fine_tuning,
    original_steps,
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


# ---------------------------------------------------------------------------------------------
# Seeds of initial values, order and dropout.


def _trained(folder, mixture, stop_after=None):
  with default_seed.mixed_seeds(default_seed.Seeds(*mixture), stop_after):
    model = toy_training.make(folder, {"dropout": True})
    model.train(input_fn=toy_training.train_input_fn, max_steps=8, eval_spec=None)  # as scripts do
  return {name: variable.numpy().tolist() for name, variable in model.store.variables.items()}


@pytest.mark.ci
def test_mixed_seeds_change_what_they_name(tmp_path):
  plain = toy_training.make(tmp_path / "plain", {"dropout": True}, seed=3)
  plain.train(toy_training.train_input_fn, 8)
  variables = plain.store.variables.items()
  alike = _trained(tmp_path / "alike", (3, 3, 3))
  assert alike == {name: variable.numpy().tolist() for name, variable in variables}
  mixed = [
    _trained(tmp_path / str(place), [3] * place + [4] + [3] * (2 - place)) for place in range(3)
  ]
  kernels = [str(run["toy/kernel"]) for run in [alike, *mixed]]
  assert len(set(kernels)) == 4


@pytest.mark.ci
def test_a_run_stops_early_in_its_own_schedule(tmp_path):
  variables = _trained(tmp_path / "run", (3, 3, 3), stop_after=5)
  assert variables["global_step"] == 5


def test_results_of_runs_are_read_and_compared(tmp_path, capsys):
  lines = [
    *("ours 12345 rc=0 248 s exact_match = 11.5 f1 = 20.9 total = 573", "ours 1 f1 = 47.6"),
    "ours 2 f1 = 40.0",
    *("original 1 f1 = 41.8", "original 2 f1 = 43.3", "mixed 12345:1:1 f1 = 30.0"),
    *("early 1 steps = 50 loss = 3.25", "original 3 cut sh"),
  ]
  (tmp_path / "results.txt").write_text("\n".join(lines))
  results = default_seed.read_results(tmp_path)
  assert results["ours", "12345"] == 20.9
  assert results["mixed", "12345:1:1"] == 30.0
  assert results["early", "1"] == 3.25
  assert ("original", "3") not in results
  default_seed.report(results, {})
  *table, _, tests, without_default, last = capsys.readouterr().out.splitlines()
  assert "| ours | 3 | 36.2 | 13.8 | 20.9 (12345), 40.0 (2), 47.6 (1) |" in table
  assert tests.startswith("ours (all) against original: p = 0.800 for scores, 0.800 for their")
  assert tests.endswith("0.400 for their deviations")
  assert without_default.startswith("ours (without 12345) against original: p = 1.000")
  assert json.loads(last)["original"]["mean"] == pytest.approx(42.55)


def test_the_weights_of_runs_are_compared(tmp_path, capsys):
  values = {"ours_1": (0.0, 0.0), "ours_2": (3.0, 4.0), "original_1": (0.0, 2.0)}
  for name, (first, second) in values.items():
    tensors = {
      "bert/a": [first],
      "bert/b": [second],
      "bert/a/adam_m": [9 * first],
      "head": [second],
    }
    saving.save(str(tmp_path / name), 3, tensors, {})
  distances = default_seed.weight_distances(tmp_path)
  assert distances["ours, ours"] == [5.0]
  assert sorted(distances["original, ours"]) == pytest.approx([2.0, 13**0.5])
  default_seed.report({}, distances)
  assert "| original, ours | 2 | 2.80 | 2.00 | 3.61 |" in capsys.readouterr().out


def test_students_are_compared_with_those_of_labels_alone(tmp_path, monkeypatch, capsys):
  scores = {"labels": (0.6, 0.7), "tinybert": (0.65, 0.76), "texts": (0.5, 0.6)}
  for variant, of_seeds in scores.items():
    for seed, accuracy in enumerate(of_seeds, 1):
      folder = distillation.run_folder(tmp_path / "MRPC", variant, 2, seed)
      folder.mkdir(parents=True)
      (folder / "eval_results.txt").write_text(f"eval_accuracy = {accuracy}\n")
  monkeypatch.setattr(sys, "argv", ["distillation.py", f"--output_dir={tmp_path}", "--report"])
  distillation.main()
  *table, last = capsys.readouterr().out.splitlines()
  rows = {row.split("|")[2].strip(): [cell.strip() for cell in row.split("|")] for row in table[2:]}
  assert rows["labels"][3:6] == ["2", "65.00 ± 7.07", ""]
  assert rows["tinybert"][4:6] == ["70.50 ± 7.78", "+5.50 [-0.85, +11.85]"]
  assert rows["texts"][5] == "-10.00 [-10.00, -10.00]"
  assert len(json.loads(last)["results"]) == 3


class _Arrays(dict):
  """As `np.load` of an .npz file gives them."""

  files = property(list)


def _draws(scale: float, seed: int, count=200):
  gradients = np.random.default_rng(seed).normal(1.0, scale, [count, 500])
  moments = {"mean/v": gradients.mean(0), "square/v": (gradients**2).mean(0)}
  return _Arrays(outputs=gradients[:, :2], **moments)


def test_draws_of_one_distribution_have_ratios_of_one():
  alike = original_steps.compare_draws(_draws(1.0, 1), _draws(1.0, 2))
  assert alike["variance_ratio"] == pytest.approx(1, abs=0.05)
  assert alike["difference_ratio"] == pytest.approx(1, abs=0.3)
  wider = original_steps.compare_draws(_draws(2.0, 1), _draws(1.0, 2))
  assert wider["variance_ratio"] == pytest.approx(4, abs=0.3)
  assert wider["p_spread_of_loss"] < 1e-3 < alike["p_spread_of_loss"]
  shifted = _draws(1.0, 2)
  shifted["mean/v"] = shifted["mean/v"] + 0.5
  shifted["square/v"] = shifted["square/v"] + 1.25
  assert original_steps.compare_draws(_draws(1.0, 1), shifted)["difference_ratio"] > 10


def test_the_largest_difference_of_steps():
  ours = {"outputs": np.array([[1.0, 2.0], [3.0, 4.0]])}
  theirs = {"outputs": np.array([[1.0, 2.0], [3.0, 5.0]])}
  assert original_steps.compare_steps(ours, theirs) == pytest.approx({"loss": 0, "norm": 0.2})
