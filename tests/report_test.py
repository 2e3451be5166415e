"""report.py: its flags, what it reads of a run, and reports of runs of all tasks.

Alone: python -m pytest tests/report_test.py (seconds; `-m ci`: a minute; `-m slow`: all tasks)
"""

import copy
import json
import shutil
import types

import pytest

from bert import report
from bert.checkpoints import finding, reading
from bert.predicting.engines import tensorflow
from bert.scripts import report_pages, run_subject
from bert.tasks import kinds
from tests.kit import every_script, own_tasks
from tests.kit.script_runs import Script, check_help, results_in
from tests.reports.pages import data_of

REPORT = Script(report, takes_arguments=True)


def test_help_is_quick_and_complete(tmp_path):
  check_help(report, tmp_path, {"Report"})


@pytest.mark.parametrize(
  ("words", "flags", "said"),
  [
    ((), {}, "Name a run, the --output_dir of its script, or several to compare: report.py RUN"),
    ((".", "..", "./."), {}, "./. is the same directory as ."),
    ((".",), {"run": "no/such/folder"}, "no/such/folder is not a directory."),
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


def test_only_runs_of_one_task_are_compared(tmp_path, monkeypatch):
  """Told before anything is read of the data."""
  scripts = dict.fromkeys("abc", "run_classifier") | dict.fromkeys("de", "run_ner")
  for name, task in {"a": "MRPC", "b": "mrpc", "c": "RTE"}.items():
    (tmp_path / name).mkdir()
    (tmp_path / name / "flags.json").write_text(json.dumps({"task_name": task}))
  (tmp_path / "d").mkdir()
  (tmp_path / "e").mkdir()
  monkeypatch.setattr(finding, "find_checkpoint", str)
  monkeypatch.setattr(reading, "read_facts", lambda prefix: {})

  def find_run(folder):
    return types.SimpleNamespace(kind=kinds.of_script(scripts[folder[-1]]))

  monkeypatch.setattr(report_pages.load_run, "find_run", find_run)
  compared = {
    names: REPORT.error_of(*(str(tmp_path / name) for name in names)) for names in ("ac", "ad")
  }
  assert "a is a run of run_classifier.py on MRPC, " in compared["ac"]
  assert (
    "c one of run_classifier.py on RTE. Only runs of the same task can be compared."
    in compared["ac"]
  )
  assert "d one of run_ner.py. Only runs" in compared["ad"]
  for first, second in ("ab", "de"):
    report_pages.check_tasks([str(tmp_path / first), str(tmp_path / second)])


# ---------------------------------------------------------------------------------------------
# Reports of runs.


def check_report(out) -> dict:
  """A report that computes the answers has the numbers of one that the evaluation made."""
  found = data_of((out / "report.html").read_text())
  REPORT.run_well(str(out), output_file=out / "again.html")
  assert_near(data_of((out / "again.html").read_text()), copy.deepcopy(found))
  if (out / "eval_results.txt").exists():
    assert found["results"] == results_in(out / "eval_results.txt")
  return found


def assert_near(found, expected):
  """Compares JSON, which is spent by that."""
  assert type(found) is type(expected)
  if isinstance(found, float):
    assert found == pytest.approx(expected, abs=1e-4)
  elif isinstance(found, dict | list):
    if isinstance(found, list):
      found, expected = dict(enumerate(found)), dict(enumerate(expected))
    for each in (found, expected):  # fewer answers are explained at the end of a short run
      for name in ("words", "typical", "further"):
        each.pop(name, None)
    assert found.keys() == expected.keys()
    for key in found:
      assert_near(found[key], expected[key])
  else:
    assert found == expected


def check_comparison(out, examples):
  """A run is as good as its copy: all of both pages' numbers are equal."""
  other = shutil.copytree(out, out.parent / "copy")
  REPORT.run_well(str(out), str(other))
  found = data_of((out / "compared_with_copy.html").read_text())
  assert found["differing"] == {}
  first, second = found["runs"]
  assert first["results"] == second["results"]
  both = found["examples"]
  assert (both["count"], both["p_value"]) == (examples["count"], 1.0)
  assert both["counts"]["both"] == pytest.approx(examples["right"] * examples["count"])
  assert both["became_wrong"] == both["became_right"] == []
  assert all(each["interval"] == [0.0, 0.0] for each in both["differences"])


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
def test_a_run_has_a_report(name, files, tmp_path, monkeypatch):
  with monkeypatch.context() as patch:
    patch.delattr(tensorflow, "load_checkpoint")  # the evaluation has computed it all
    every_script.script(name).run_well(**every_script.flags(name, files, tmp_path), report=True)
  found = check_report(tmp_path / "out")
  if name == "run_pretraining":
    assert "examples" not in found
    return
  examples = found["examples"]
  assert examples["count"] == examples["total"] > 0
  assert examples["highest_loss"]
  if name == "run_classifier":
    assert sum(map(sum, examples["matrix"]["counts"])) == examples["total"]
    computed, written = examples["scores"]["eval_accuracy"], found["results"]["eval_accuracy"]
    assert computed == pytest.approx(written, abs=1e-6)
    assert any("examples for dev" in each["what"] for each in found["findings"])
    again = data_of((tmp_path / "out" / "again.html").read_text())
    assert any("words" in each for each in again["examples"]["highest_loss"])
    part = {"eval_file": files / "tables" / "dev.csv", "max_examples": 5}
    REPORT.run_well(str(tmp_path / "out"), **part, output_file=tmp_path / "part.html")
    page = (tmp_path / "part.html").read_text()
    assert f"A random sample of 5 of {examples['total']} examples of dev" in page
    assert data_of(page)["examples"]["scores"] == {}  # of a part, they would be others
    check_comparison(tmp_path / "out", examples)
  # Where the data are gone, the rest is there.
  done = REPORT.run_well(
    str(tmp_path / "out"), data_dir=tmp_path / "nowhere", output_file=tmp_path / "b.html"
  )
  if name == "run_classifier":
    assert "The report has no examples: " in done.err
    assert "There are no examples: " in (tmp_path / "b.html").read_text()


@pytest.mark.slow
def test_examples_are_answered_in_the_dtype_of_the_run(files, tmp_path, monkeypatch):
  """Otherwise a close call is counted otherwise than in eval_results.txt."""
  asked, load = [], tensorflow.load_checkpoint

  def remembering(*arguments):
    asked.append(arguments[-1])
    return load(*arguments)

  monkeypatch.setattr(tensorflow, "load_checkpoint", remembering)
  flags = every_script.flags("run_classifier", files, tmp_path)
  for n, dtype in enumerate(("bfloat16", "float32")):
    flags |= {"output_dir": tmp_path / str(n), "dtype": dtype}
    every_script.script("run_classifier").run_well(**flags)
    REPORT.run_well(str(flags["output_dir"]))
  assert asked == ["bfloat16", "float32"]


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
