"""The report at the end of a run: what it reads, and that it never costs the run anything.

Alone: python -m pytest tests/scripts/run_report_test.py (seconds)
"""

import os
import types

import pytest

from bert.reports.subject import Subject
from bert.scripts import run_report, run_subject


@pytest.fixture
def settings(tmp_path):
  """Those of a run, as far as its report asks."""
  path = lambda name: os.path.join(tmp_path, name)  # noqa: E731
  return types.SimpleNamespace(output_dir=str(tmp_path), path=path)


@pytest.fixture
def asked(monkeypatch):
  """What was asked of a made-up reader of runs."""
  found = []

  def subject_of(folder, chosen):
    found.append(chosen)
    return Subject(folder, "MRPC", {"eval_accuracy": "0.5"}, "eval_accuracy")

  monkeypatch.setattr(run_subject, "subject_of", subject_of)
  return found


def test_examples_are_answered_where_the_run_evaluated(settings, asked, tmp_path):
  run_report.write_at_end(settings)
  (tmp_path / "eval_results.txt").write_text("eval_accuracy = 0.5\n")
  run_report.write_at_end(settings)
  assert [each.is_answered for each in asked] == [False, True]
  assert "MRPC" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_a_student_names_its_teacher(tmp_path):
  (tmp_path / "bert_config.json").write_text('{"num_hidden_layers": 6, "hidden_size": 384}')
  (tmp_path / "eval_results.txt").write_text("eval_accuracy = 0.8063725\neval_loss = 0.5\n")
  said = run_subject.teacher_of({"teacher": str(tmp_path)})
  assert said == {"learned from": f"{tmp_path}, 6 layers of 384, accuracy 0.8063725"}
  assert run_subject.teacher_of({"teacher": "gone"}) == {"learned from": "gone"}
  assert run_subject.teacher_of({}) == {}


@pytest.mark.mutation("bert.scripts.run_report:failing_as_warning", "except Exception")
@pytest.mark.parametrize(
  "error", [ValueError("the data are gone."), RuntimeError("a bug"), OSError(28, "No space left")]
)
def test_what_fails_is_a_warning(settings, monkeypatch, caplog, error):
  def fail(*_):
    raise error

  monkeypatch.setattr(run_subject, "subject_of", fail)
  monkeypatch.delenv("BERT_TRACEBACK", raising=False)
  run_report.write_at_end(settings)
  (said,) = caplog.messages
  assert said.startswith("No report: ")
  assert said.endswith("The run itself is complete; --noreport leaves the report out.")
  monkeypatch.setenv("BERT_TRACEBACK", "1")
  with pytest.raises(type(error)):
    run_report.write_at_end(settings)


def test_a_remote_folder_gets_none(settings, asked, caplog):
  settings.output_dir = "gs://bucket/run"
  caplog.set_level("INFO", logger="absl")
  run_report.write_at_end(settings)
  assert not asked
  assert "gs://bucket/run is remote" in caplog.text
