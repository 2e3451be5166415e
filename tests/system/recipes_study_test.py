"""benchmarks/recipes.py: which runs it makes, which it skips, and its table; nothing trains."""

import doctest
import json
import subprocess
import types

import pytest

from benchmarks import recipes
from bert import run_classifier
from bert.scripts import command_line, flag_groups, run_settings


def test_worked_examples():
  assert doctest.testmod(recipes).failed == 0


def write_run(folder, task, variant, seed, score):
  run = folder / task / variant / f"seed_{seed}"
  run.mkdir(parents=True)
  facts = recipes.TASKS[task]
  lines = {facts.metric: score, facts.other_metric: 0.5, "global_step": 187}
  (run / "eval_results.txt").write_text("".join(f"{k} = {v}\n" for k, v in lines.items()))


def report(folder, capsys, seeds=(1, 2, 3)):
  recipes._report(folder, list(recipes.TASKS), list(recipes.VARIANTS), list(seeds))
  *table, line = capsys.readouterr().out.splitlines()
  return [[cell.strip() for cell in row.split("|")[1:-1]] for row in table], json.loads(line)


def test_the_table_compares_the_same_seeds(tmp_path, capsys):
  for seed, score in ((1, 0.70), (2, 0.71), (3, 279 / 408)):
    write_run(tmp_path, "MRPC", "2018", seed, score)
  for seed, score in ((1, 0.72), (2, 0.75)):
    write_run(tmp_path, "MRPC", "stable", seed, score)
  write_run(tmp_path, "CoLA", "stable", 1, 0.0)
  table, line = report(tmp_path, capsys)
  assert table[2:] == [
    ["MRPC", "2018", "187", "3", "69.79 ± 1.32", "1", "", ""],
    ["MRPC", "stable", "187", "2", "73.50 ± 2.12", "0", "+3.00 [-9.71, +15.71]", "2"],
    ["CoLA", "stable", "187", "1", "0.00", "1", "", ""],
  ]
  gain = line["results"][1]["gain"]
  assert gain["mean"] == pytest.approx(3.0)
  # Student's t with one degree of freedom: 12.706 times 1.414 / sqrt(2).
  assert gain["interval"] == pytest.approx([3 - 12.706, 3 + 12.706], abs=1e-3)
  assert line["results"][0]["failed"] == [3]


def test_equal_scores_have_an_interval_of_no_width():
  gain = recipes.gain_over({1: 1.0, 2: 1.0}, {1: 2.0, 2: 2.0})
  assert (gain.mean, gain.interval, gain.count) == (1.0, (1.0, 1.0), 2)
  assert recipes.gain_over({1: 1.0}, {2: 2.0}) is None


@pytest.fixture
def study(tmp_path, monkeypatch):
  """Runs the study with processes that only write their results; returns their commands."""
  data = tmp_path / "glue"
  for task in recipes.TASKS:
    (data / task).mkdir(parents=True)
    for name in ("train.tsv", "dev.tsv"):
      (data / task / name).write_text("x\t1\t\ta sentence .\n" * 3000)
  commands = []

  def run(command, **_):
    commands.append(command)
    flags = dict(word[2:].split("=", 1) for word in command if "=" in word)
    task = flags["task_name"]
    if flags["seed"] == "13":
      return types.SimpleNamespace(returncode=1)
    folder = tmp_path / "out" / task / flags["output_dir"].split("/")[-2]
    write_run(folder.parent.parent, task, folder.name, flags["seed"], 0.75)
    (folder / f"seed_{flags['seed']}" / "model.ckpt-5.index").write_text("large")
    return types.SimpleNamespace(returncode=0)

  monkeypatch.setattr(subprocess, "run", run)

  def start(*flags):
    words = [f"--glue_dir={data}", f"--output_dir={tmp_path}/out", *flags]
    monkeypatch.setattr("sys.argv", ["recipes.py", *words, "--weights=w"])
    monkeypatch.setattr(recipes.common, "_model_folder", str)
    commands.clear()
    with pytest.raises(SystemExit) as left:
      recipes.main()
    return list(commands), left.value.code

  return start


def test_a_study_goes_on_where_it_stopped(study, tmp_path, monkeypatch):
  flags = ["--variants=2018,stable", "--tasks=MRPC,CoLA"]
  commands, code = study("--seeds=1", *flags)
  assert (len(commands), code) == (4, False)
  assert not list((tmp_path / "out").rglob("model.ckpt*"))
  commands, code = study("--seeds=1,2,13", *flags)
  assert [len(commands), code] == [8, True], "what failed is reported at the end"
  commands, _ = study("--seeds=1,2,13", *flags)
  assert len(commands) == 4

  monkeypatch.setitem(recipes.VARIANTS, "stable", ("--min_train_steps=9",))
  _, code = study("--seeds=3", *flags)
  assert "the runs here have other flags than" in code


def test_cola_is_a_part_and_its_dev_set_whole(study, tmp_path):
  [command], _ = study("--seeds=1", "--variants=2018", "--tasks=CoLA")
  [folder] = [word.split("=")[1] for word in command if word.startswith("--data_dir=")]
  lengths = {
    name: len((tmp_path / folder / name).read_text().splitlines())
    for name in ("train.tsv", "dev.tsv")
  }
  assert lengths == {"train.tsv": 2000, "dev.tsv": 3000}


@pytest.mark.parametrize("variant", recipes.VARIANTS)
def test_variants_are_flags_that_run_classifier_knows(variant, caplog):
  with flag_groups.defined_flags(run_classifier.define_flags):
    command_line.parse(["script.py", *recipes.COMMON_FLAGS, *recipes.VARIANTS[variant]])
    settings = run_settings.from_flags()
  assert "unknown" not in caplog.text
  assert settings.planned(3668).num_train_steps >= (343 if variant in ("2018", "bias") else 600)
