"""The page of a sweep, read from a folder.

Alone: python -m pytest tests/scripts/sweep_pages_test.py (seconds)
"""

import json

import pytest

from bert.scripts import report_pages, sweep_pages
from bert.scripts.command_line import UsageError
from bert.scripts.run_subject import Chosen
from tests.reports import made_up_runs, pages


@pytest.fixture
def folder(tmp_path):
  """A folder of many runs that was moved, and whose models and data are gone."""
  found = tmp_path / "a moved folder"
  for seed in (1, 2, 3, 4):
    (found / f"seed_{seed}").mkdir(parents=True)
  (found / "seed_2" / "flags.json").write_text('{"task_name": "MRPC"}')
  (found / "seed_2" / "report.html").touch()
  (found / "results.json").write_text(json.dumps(made_up_runs.many_results()))
  return found


def test_without_models_there_are_the_scores(folder):
  sweep_pages.write_at_end(str(folder))
  page = (folder / "report.html").read_text(encoding="utf-8")
  assert "There are no examples: " in page
  assert pages.data_of(page)["task"] == "MRPC"
  assert pages.data_of(page)["metrics"] == made_up_runs.many_results()["metrics"]
  assert set(pages.Elements(page).links) == {"seed_2/report.html"}


def test_links_lead_from_the_page_to_the_runs(folder, tmp_path):
  page = sweep_pages.page_of(str(folder), str(tmp_path / "b" / "c.html"), Chosen())
  assert set(pages.Elements(page).links) == {"../a%20moved%20folder/seed_2/report.html"}


def test_results_of_something_else_are_no_sweep(tmp_path):
  assert sweep_pages.results_of(str(tmp_path)) == {}
  (tmp_path / "results.json").write_text('{"accuracy": 0.5}')
  assert sweep_pages.results_of(str(tmp_path)) == {}


def test_a_sweep_is_not_compared(folder, tmp_path):
  with pytest.raises(UsageError, match="is a folder of many runs"):
    report_pages.folders_of([str(tmp_path), str(folder)])
  assert report_pages.folders_of([str(folder)]) == [str(folder)]


def test_what_fails_is_a_warning(folder, monkeypatch, caplog):
  (folder / "results.json").write_text("{")
  monkeypatch.delenv("BERT_TRACEBACK", raising=False)
  sweep_pages.write_at_end(str(folder))
  (said,) = caplog.messages
  assert said.startswith("No report: ")
  assert said.endswith("All results are written; --noreport leaves the report out.")


def test_runs_of_tasks_are_linked_to_their_report_or_their_folder(tmp_path):
  report = tmp_path / "RTE" / "lr2e-05_epochs3_seed1" / "report.html"
  report.parent.mkdir(parents=True)
  report.touch()
  (tmp_path / "results.json").write_text(json.dumps(made_up_runs.task_results()))
  sweep_pages.write_at_end(str(tmp_path))
  links = pages.Elements((tmp_path / "report.html").read_text(encoding="utf-8")).links
  assert links.count("RTE/lr2e-05_epochs3_seed1/report.html") == 2, "as the best and in its row"
  assert links.count("MRPC/lr2e-05_epochs3_seed1/") == 1
  assert len(links) == 6
