"""Tests of bert/sweeps/sweep.py: a sweep of a kind that only this test knows."""

import pathlib
import sys

import pytest

from bert.scripts import run_states
from bert.sweeps import parallel_processes, sweep
from bert.sweeps.report import SweepReport
from bert.sweeps.sweep import Run, Sweep

PROGRAM = "import pathlib, sys; pathlib.Path(sys.argv[1], 'score').write_text(sys.argv[2])"


class Report(SweepReport):
  """A row for each run."""

  def __init__(self, outcomes, problems):
    self.outcomes, self.problems = list(outcomes), problems

  def _rows(self):
    return [["run", "score"], [], *([str(each.run), str(each.results)] for each in self.outcomes)]

  def _notes(self):
    return ["A note."]

  def json(self):
    return "{}"


class Scores(Sweep):
  """Each run writes its score, as its settings have it, into a file."""

  def _check_folders(self):
    if conflicts := self.conflicts():
      raise ValueError(str(conflicts))

  def _run_all(self):
    self.make_runs()

  def _steps_left(self, run):
    return [] if run_states.read_state(run.folder).get("finished") else ["write"]

  def _command(self, run, *steps):
    return [sys.executable, "-S", "-E", "-c", PROGRAM, run.folder, str(run.settings["score"])]

  def _mark_started(self, run):
    run_states.write_state(run.folder, settings=run.settings)

  def _mark_finished(self, run, seconds):
    run_states.write_state(run.folder, settings=run.settings, finished=True, seconds=seconds)

  def _read_results(self, outcome):
    outcome.results = {"score": float(pathlib.Path(outcome.run.folder, "score").read_text())}
    outcome.headline = ("score",)

  def _describe_results(self, outcome):
    return f"score {outcome.score}"

  def _report(self):
    return Report(self.outcomes.values(), self.problems)


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
  monkeypatch.setattr(parallel_processes, "POLL_SECONDS", 0.005)


def sweep_of(folder, *scores) -> Scores:
  runs = [Run(seed, str(folder / str(seed)), {"score": s}) for seed, s in enumerate(scores)]
  return Scores(runs, str(folder), parallel=2)


def test_what_is_left_is_made_and_all_is_reported(tmp_path, capfd):
  assert sweep_of(tmp_path, "0.5").carry_out() == 0
  first = (tmp_path / "0" / "run.json").read_text()
  done = sweep_of(tmp_path, "0.5", "0.7")
  assert done.carry_out() == 0
  assert (tmp_path / "0" / "run.json").read_text() == first
  assert [each.run.seed for each in sweep.ranked(done.finished)] == [1, 0]
  text = (tmp_path / "results.txt").read_text()
  assert text in capfd.readouterr().out
  assert text.splitlines()[:2] == ["run     score", "--------------" + "-" * 8]


def test_other_settings_are_refused_and_nothing_is_started(tmp_path):
  assert sweep_of(tmp_path, "0.5").carry_out() == 0
  with pytest.raises(ValueError, match=r"score was 0\.5, now 0\.6"):
    sweep_of(tmp_path, "0.6", "0.7").carry_out()
  assert not (tmp_path / "1").exists()


def test_a_run_whose_results_cannot_be_read_has_not_finished(tmp_path):
  broken = sweep_of(tmp_path, "half", "0.7")
  broken.carry_out()
  failures = [outcome.failure is not None for outcome in broken.outcomes.values()]
  assert failures == [True, False]
  assert [bool(broken._steps_left(run)) for run in broken.outcomes] == [True, False]


def test_a_run_may_be_of_a_script_of_ones_own(tmp_path):
  ours, own = sweep.program_of("run_ner"), sweep.program_of(str(tmp_path / "task.py"))
  assert (ours[1:], own[1:]) == (["-m", "bert.run_ner"], [str(tmp_path / "task.py")])
