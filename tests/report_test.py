"""report.py: its flags, what it reads of a run, and reports of runs of all tasks.

Alone: python -m pytest tests/report_test.py (seconds; `-m ci`: a minute; `-m slow`: all tasks)
"""

import json
import re

import pytest

from bert import report
from bert.scripts import run_subject
from tests.kit import every_script, own_tasks
from tests.kit.script_runs import Script, check_help, results_in

REPORT = Script(report, takes_arguments=True)


def test_help_is_quick_and_complete(tmp_path):
  check_help(report, tmp_path, {"Report"})


@pytest.mark.parametrize(
  ("words", "flags", "said"),
  [
    ((), {}, "Name one run, the --output_dir of its script: report.py RUN."),
    (("a", "b"), {}, "2 were named; two runs are not compared yet."),
    (("a",), {"run": "b"}, "2 were named"),
    (("no/such/folder",), {}, "no/such/folder is no folder."),
    ((".",), {"max_examples": 0}, "--max_examples=0: must be at least 1"),
    ((".",), {"batch_size": 0}, "--batch_size=0: must be at least 1"),
  ],
)
def test_wrong_flags_are_one_message(words, flags, said):
  assert said in REPORT.error_of(*words, **flags)


def test_results_are_kept_as_they_are_spelled(tmp_path):
  assert run_subject.results_of(str(tmp_path)) == {}
  path = tmp_path / "eval_results.txt"
  path.write_text("eval_accuracy = 0.7794118\nglobal_step = 343\n")
  assert run_subject.results_of(str(tmp_path)) == {
    "eval_accuracy": "0.7794118",
    "global_step": "343",
  }
  path.write_text("eval_accuracy = high\n")
  with pytest.raises(ValueError, match="high"):
    run_subject.results_of(str(tmp_path))


# ---------------------------------------------------------------------------------------------
# Reports of runs.


def data_of(page):
  return json.loads(re.search(r'id="report-data">(.*?)</script>', page, re.DOTALL)[1])


def check_report(out) -> dict:
  """A second report has the bytes of that of the run, and the numbers are those of the run."""
  first = (out / "report.html").read_bytes()
  REPORT.run_well(str(out), output_file=out / "again.html")
  assert (out / "again.html").read_bytes() == first
  found = data_of(first.decode())
  if (out / "eval_results.txt").exists():
    assert found["results"] == results_in(out / "eval_results.txt")
  return found


@pytest.fixture(scope="module")
def files(tmp_path_factory):
  return every_script.write_files(tmp_path_factory.mktemp("files"))


TASKS = {
  "run_classifier": pytest.mark.ci,
  "run_ner": pytest.mark.slow,
  "run_swag": pytest.mark.slow,
  "run_similarity": pytest.mark.slow,
  "run_squad": pytest.mark.slow,
  "run_pretraining": pytest.mark.ci,
  "distill": pytest.mark.slow,
}


@pytest.mark.parametrize("name", [pytest.param(name, marks=mark) for name, mark in TASKS.items()])
def test_a_run_has_a_report(name, files, tmp_path):
  every_script.script(name).run_well(**every_script.flags(name, files, tmp_path), report=True)
  found = check_report(tmp_path / "out")
  examples = found["examples"]
  assert examples["count"] == examples["total"] > 0
  assert examples["highest_loss"]
  if name == "run_classifier":
    assert sum(map(sum, examples["matrix"]["counts"])) == examples["total"]
    computed, written = examples["scores"]["eval_accuracy"], found["results"]["eval_accuracy"]
    assert computed == pytest.approx(written, abs=1e-6)
    assert any("examples for dev" in each["what"] for each in found["findings"])
    part = {"eval_file": files / "tables" / "dev.csv", "max_examples": 5}
    REPORT.run_well(str(tmp_path / "out"), **part, output_file=tmp_path / "part.html")
    page = (tmp_path / "part.html").read_text()
    assert f"A random sample of 5 of {examples['total']} examples of dev" in page
    assert data_of(page)["examples"]["scores"] == {}  # of a part, they would be others
  # Where the data are gone, the rest is there.
  done = REPORT.run_well(
    str(tmp_path / "out"), data_dir=tmp_path / "nowhere", output_file=tmp_path / "b.html"
  )
  if name == "run_classifier":
    assert "The report has no examples: " in done.err
    assert "There are no examples: " in (tmp_path / "b.html").read_text()


@pytest.mark.slow
def test_a_task_of_ones_own_has_one(tmp_path):
  with own_tasks.loaded("stars"):
    flags = own_tasks.write(tmp_path, "stars") | {
      "num_train_epochs": 1,
      "output_dir": tmp_path / "out",
    }
    own_tasks.script("stars").run_well(**flags, do_train=True, do_eval=True, report=True)
    found = check_report(tmp_path / "out")
  assert found["headline"] == "eval_close"
  assert found["examples"]["count"] == 12
