"""The page of a sweep, read from a directory.

Alone: python -m pytest tests/scripts/report_pages_test.py (seconds)
"""

import pytest

from bert.scripts import report_pages
from bert.scripts.command_line import UsageError
from tests.reports import made_up_runs, pages


@pytest.fixture
def folder(tmp_path):
  """A directory of many runs that was moved, and whose models and data are gone."""
  return made_up_runs.write_seeds(tmp_path / "a moved folder")


def test_without_models_there_are_the_scores(folder):
  report_pages.write_at_end(str(folder))
  page = (folder / "report.html").read_text(encoding="utf-8")
  assert pages.data_of(page)["title"] == "MRPC"
  links = set(pages.Elements(page).links)
  assert links == {"seed_1/", "seed_2/report.html", "seed_3/", "seed_4/"}


def test_links_lead_from_the_page_to_the_runs(folder, tmp_path):
  page = report_pages.page_of_sweep(str(folder), str(tmp_path / "b" / "c.html"))
  assert "../a%20moved%20folder/seed_2/report.html" in pages.Elements(page).links


def test_results_of_something_else_are_no_sweep(tmp_path):
  assert report_pages.results_of(str(tmp_path)) == {}
  (tmp_path / "results.json").write_text('{"accuracy": 0.5}')
  assert report_pages.results_of(str(tmp_path)) == {}


def test_a_sweep_is_not_compared(folder, tmp_path):
  with pytest.raises(UsageError, match="is a directory of many runs"):
    report_pages.folders_of([str(tmp_path), str(folder)])
  assert report_pages.folders_of([str(folder)]) == [str(folder)]


def test_what_fails_is_a_warning(folder, monkeypatch, caplog):
  (folder / "results.json").write_text("{")
  monkeypatch.delenv("BERT_TRACEBACK", raising=False)
  report_pages.write_at_end(str(folder))
  (said,) = caplog.messages
  assert said.startswith("No report: ")
  assert said.endswith("All results are written; --noreport leaves the report out.")


def test_runs_of_tasks_are_linked_to_their_report_or_their_folder(tmp_path):
  report = tmp_path / "RTE" / "lr2e-05_epochs3_seed1" / "report.html"
  report.parent.mkdir(parents=True)
  report.touch()
  report_pages.write_at_end(str(made_up_runs.write_tasks(tmp_path)))
  links = pages.Elements((tmp_path / "report.html").read_text(encoding="utf-8")).links
  assert links.count("RTE/lr2e-05_epochs3_seed1/report.html") == 2, "as the best and in its row"
  assert links.count("MRPC/lr2e-05_epochs3_seed1/") == 1
  assert len(links) == 6
