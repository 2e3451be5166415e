"""benchmarks/electra_from_text.py: which runs it makes and skips, its table; nothing trains."""

import json

import pytest

from benchmarks import common, electra_from_text
from bert import create_pretraining_data, run_classifier, run_pretraining
from bert.scripts import flag_groups

SCRIPTS = {
  "create_pretraining_data": create_pretraining_data,
  "run_classifier": run_classifier,
  "run_pretraining": run_pretraining,
}


def flags_of(words):
  return dict(word.removeprefix("--").partition("=")[::2] for word in words)


def results_of(script, flags):
  """What a run would write: 1e-3 is the better rate of masked words, 2e-3 that of ELECTRA."""
  if script == "run_classifier":
    names = ("eval_accuracy", "eval_f1", "eval_matthews_corrcoef")
    return {name: 0.5 + 0.1 * int(flags["seed"]) for name in names}
  is_best = (flags["objective"], flags["learning_rate"]) in {("mlm", "0.001"), ("electra", "0.002")}
  figures = {"masked_lm_loss": 4.0} | ({"disc_auc": 0.6} if flags["objective"] == "electra" else {})
  return {"loss": 1.0 if is_best else 2.0, **figures}


@pytest.fixture
def study(tmp_path, monkeypatch):
  """Starts the study with scripts that only write their results; returns their names and words."""
  commands = []

  def run_script(name, *words, nice):
    assert nice == 3
    commands.append((name, words))
    flags = flags_of(words)
    if "output_file" in flags:
      open(flags["output_file"], "w").close()
    else:
      folder = tmp_path / flags["output_dir"]
      folder.mkdir(parents=True)
      results = results_of(name, flags)
      (folder / "eval_results.txt").write_text("".join(f"{k} = {v}\n" for k, v in results.items()))
    return common.Finished("", 100.0, [], processor_seconds=60.0)

  monkeypatch.setattr(common, "run_script", run_script)
  monkeypatch.setattr(electra_from_text, "_gflop", lambda output: 2500.0)

  def start(*words):
    text = tmp_path / "text.txt"
    text.write_text("\n\n".join(f"document {number}" for number in range(20)))
    inputs = [f"--corpus={text}", f"--glue_dir={tmp_path}", f"--output_dir={tmp_path}/out"]
    flags = [*inputs, "--nice=3", "--rates=1e-3,2e-3", *words]
    monkeypatch.setattr("sys.argv", ["electra_from_text.py", *flags])
    commands.clear()
    electra_from_text.main()
    return list(commands)

  return start


def test_both_objectives_have_the_same_runs_and_a_study_goes_on(study, tmp_path):
  first = study("--seeds=1")
  names = [name for name, _ in first]
  assert names[:3] == ["create_vocab", "create_pretraining_data", "create_pretraining_data"]
  assert (tmp_path / "out" / "held_out.txt").read_text() == "document 18\n\ndocument 19\n"
  assert names[3:7] == ["run_pretraining"] * 4, "two rates for each objective"
  pretraining, fine_tuning = ["run_pretraining"], ["run_classifier"] * 2
  assert names[7:] == [*fine_tuning, *pretraining, *fine_tuning, *pretraining, *fine_tuning]
  words, electra = (flags_of(first[at][1]) for at in (9, 12))
  assert (words["learning_rate"], electra["learning_rate"]) == ("0.001", "0.002")
  own = {"objective", "learning_rate", "output_dir"}
  assert {k: v for k, v in words.items() if k not in own} == {
    k: v for k, v in electra.items() if k not in own
  }
  tuned = [flags_of(first[at][1]) for at in (7, 10, 13)]
  assert [each.pop("init_checkpoint", None) for each in tuned] == [
    None,
    words["output_dir"],
    electra["output_dir"],
  ]
  assert len({json.dumps({**each, "output_dir": ""}) for each in tuned}) == 1
  for name, used in first[1:]:
    with flag_groups.defined_flags(SCRIPTS[name].define_flags) as known:
      unknown = {flag for flag in flags_of(used) if flag not in known}
      assert not unknown, name

  assert len(study("--seeds=1,2")) == 8
  assert not study("--seeds=1,2")
  with pytest.raises(SystemExit, match="the runs here have steps 1000, not 5"):
    study("--seeds=1", "--steps=5")


def test_the_table_has_mean_and_deviation(study, capsys, tmp_path):
  study("--seeds=1,2,3")
  capsys.readouterr()
  assert not study("--report")
  *rows, line = capsys.readouterr().out.splitlines()
  table = [[cell.strip() for cell in row.split("|")[1:-1]] for row in rows]
  scores = ["70.00 ± 10.00", "70.00 ± 10.00"]
  assert table[2] == ["random weights", "3/3", *scores, "", "", "", ""]
  assert table[3][4:6] == ["4.00 ± 0.00", ""]
  assert table[4] == [
    "ELECTRA",
    "3/3",
    *scores,
    "4.00 ± 0.00",
    "0.600 ± 0.000",
    "2.50 ± 0.00",
    "60 ± 0",
  ]
  results = json.loads(line)["results"]
  assert results["ELECTRA"]["MRPC"]["3"]["eval_accuracy"] == pytest.approx(0.8)


def test_a_folder_without_a_study_is_one_line(study, tmp_path):
  with pytest.raises(SystemExit, match=r"settings\.json"):
    study("--report")
