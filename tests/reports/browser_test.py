"""Reports in a browser: all can use them, also without scripts; cells choose examples.

Alone: python -m pytest tests/reports/browser_test.py -m ci (seconds; needs Chromium)
"""

import pytest

from bert.reports import html_page, runs
from bert.scripts import report_pages
from tests.kit import browser as browsers
from tests.reports import made_up_runs

pytestmark = pytest.mark.ci


@pytest.fixture(scope="module")
def browser():
  with browsers.chromium() as found:
    yield found


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
  found = {name: html_page.render(made_up_runs.of_kind(name)) for name in made_up_runs.KINDS}
  for name in ("classes", "entities"):
    found[f"two of {name}"] = runs.render(made_up_runs.compared(*made_up_runs.two_of_kind(name)))
  for write in (made_up_runs.write_seeds, made_up_runs.write_tasks):
    folder = str(write(tmp_path_factory.mktemp("sweep")))
    found[write.__name__] = report_pages.page_of_sweep(folder, f"{folder}/report.html")
  return found


@pytest.mark.parametrize(
  ("width", "scheme"), [(375, "light"), pytest.param(1440, "dark", marks=pytest.mark.slow)]
)
def test_nobody_is_shut_out(browser, pages, width, scheme):
  for name, page_of_run in pages.items():
    with browsers.watched_page(browser, width, scheme) as page:
      page.set_content(page_of_run)
      assert browsers.serious_findings(page) == [], name
      assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, name


def test_a_cell_chooses_its_examples(browser, pages):
  with browsers.watched_page(browser) as page:
    page.set_content(pages["classes"])
    shown = page.locator(".case:visible")
    assert shown.count() == 1, "the others are right, and folded up"
    page.locator('[data-cell="1-1"] button').click()
    assert shown.count() == 2
    page.locator('[data-cell="1-0"] button').click()
    assert shown.count() == 1
    assert page.locator("#filter").text_content() == (
      "1 shown of 1: gold “yes”, predicted “no”. Show all"
    )
    page.get_by_role("button", name="Show all").click()
    assert shown.count() == 1
    assert page.locator('[data-cell="0-1"] button').is_disabled()


def test_without_scripts_all_is_there(browser, pages):
  with browsers.watched_page(browser, java_script_enabled=False) as page:
    page.set_content(pages["classes"])
    page.locator("#further > summary").click()
    assert page.locator(".case:visible").count() == 4
    assert page.locator("button:visible").count() == 0
    page.set_content(pages["two of classes"])
    assert page.locator(".case:visible").count() == 3
