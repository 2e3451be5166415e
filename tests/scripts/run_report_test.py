"""The report at the end of a run: what it reads, and that it never costs the run anything.

Alone: python -m pytest tests/scripts/run_report_test.py (seconds)
"""

import json
import os
import shlex
import types

import pytest

from bert.io import installation
from bert.model.configuration import BertConfig
from bert.predicting.contributions import Contributions
from bert.predicting.known_rows import KnownRows
from bert.reports.subject import Subject
from bert.scripts import answered_examples, run_report, run_subject
from bert.tasks import kinds


def write_at_end(settings):
  run_report.write_at_end(settings, 0, KnownRows())


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
  write_at_end(settings)
  (tmp_path / "eval_results.txt").write_text("eval_accuracy = 0.5\n")
  write_at_end(settings)
  assert [each.is_answered for each in asked] == [False, True]
  assert "MRPC" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_a_student_names_its_teacher(tmp_path):
  (tmp_path / "bert_config.json").write_text('{"num_hidden_layers": 6, "hidden_size": 384}')
  (tmp_path / "eval_results.txt").write_text("eval_accuracy = 0.8063725\neval_loss = 0.5\n")
  said = run_subject.teacher_of({"teacher": str(tmp_path)})
  assert said == {"learned from": f"{tmp_path}, 6 layers of 384, accuracy 0.8063725"}
  assert run_subject.teacher_of({"teacher": "gone"}) == {"learned from": "gone"}
  assert run_subject.teacher_of({}) == {}


def test_the_work_of_the_run_limits_what_is_answered(settings, asked):
  known = KnownRows()
  run_report.write_at_end(settings, 1234, known)
  assert (asked[0].run_passes, asked[0].known_rows) == (1234, known)


@pytest.mark.parametrize(
  ("run_passes", "count"),
  [(None, 13), (3 * 3 * 3668 + 408, 13), (4 * 480, 4), (408, 0)],
)
def test_explanations_cost_a_twentieth_of_a_run(run_passes, count):
  explain = Contributions("prefix", BertConfig(30522), None)  # 8 steps, each of 3 passes
  budget = answered_examples.Budget(run_passes=run_passes)
  assert answered_examples._num_explained(explain, budget) == count
  assert answered_examples._num_explained(explain, budget._replace(is_explained=False)) == 0


def test_what_the_run_did_not_keep_is_said(monkeypatch):
  def fail(*_):
    raise answered_examples.NotKnownError("not known.")

  monkeypatch.setattr(answered_examples, "examples_of", fail)
  subject = Subject("out/a run", "MRPC", {"eval_accuracy": "0.5"}, "eval_accuracy")
  run_subject._answer(subject, None, None, None, None, run_subject.Chosen())
  assert subject.examples is None
  [said] = subject.missing
  assert said == "There are no examples: not known. They come with: python report.py 'out/a run'"


@pytest.mark.parametrize(
  ("known", "name", "title"),
  [
    ({"task_name": "MRPC", "data_dir": "glue/MRPC"}, "sentences", "MRPC"),
    (
      {"task_name": "MRPC", "data_dir": str(installation.SAMPLES / "MRPC")},
      "sentences",
      "MRPC, a synthetic sample",
    ),
    ({"task_name": "csv", "data_dir": "./reviews"}, "sentences", "Text classification: reviews"),
    (
      {"task_name": "CSV", "train_file": "a/t.csv", "problem_type": "regression"},
      "sentences",
      "Text scores: t.csv",
    ),
    ({"task_name": "own", "data_dir": "data/x/"}, "sentences", "own: x"),
    ({"data_dir": "conll", "dev_file": "conll/dev.txt"}, "ner", "Named entities: dev.txt"),
    ({}, "swag", "Multiple choice"),
    ({}, "", ""),
  ],
)
def test_the_title_says_what_the_data_are(known, name, title):
  assert run_subject.title_of(known, kinds.find(name) if name else None) == title


def test_the_title_of_a_divided_table_names_the_table(tmp_path):
  (tmp_path / "split.json").write_text('{"file": "/data/reviews.csv"}')
  known = {"task_name": "csv", "data_dir": str(tmp_path)}
  title = run_subject.title_of(known, kinds.find("sentences"))
  assert title == "Text classification: reviews.csv"


def test_the_lines_to_use_a_model_hold_its_own_text():
  usage = run_subject.usage_of("out/a run", {"text_a": "It's late."})
  python, lines, service = usage.values()
  assert python.endswith("Predictor.load('out/a run')\npredictor([{'text_a': \"It's late.\"}])")
  assert lines == "python predict.py --init_checkpoint='out/a run' <<'END'\nIt's late.\nEND"
  body = json.dumps({"items": [{"text_a": "It's late."}]})
  assert shlex.split(service)[-1] == body


@pytest.mark.parametrize(
  "error", [ValueError("the data are gone."), RuntimeError("a bug"), OSError(28, "No space left")]
)
def test_what_fails_is_a_warning(settings, monkeypatch, caplog, error):
  def fail(*_):
    raise error

  monkeypatch.setattr(run_subject, "subject_of", fail)
  monkeypatch.delenv("BERT_TRACEBACK", raising=False)
  write_at_end(settings)
  (said,) = caplog.messages
  assert said.startswith("No report: ")
  assert said.endswith("The run itself is complete; --noreport leaves the report out.")
  monkeypatch.setenv("BERT_TRACEBACK", "1")
  with pytest.raises(type(error)):
    write_at_end(settings)


def test_a_remote_folder_gets_none(settings, asked, caplog):
  settings.output_dir = "gs://bucket/run"
  caplog.set_level("INFO", logger="absl")
  write_at_end(settings)
  assert not asked
  assert "gs://bucket/run is remote" in caplog.text
