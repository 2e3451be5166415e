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


def test_row_names_of_a_wide_matrix_stay_whole_on_a_phone(browser, pages):
  with browsers.watched_page(browser, 375, "light") as page:
    page.set_content(pages["entities"])
    page.add_style_tag(content=".matrix td { min-width: 12rem }")
    heights = page.evaluate(
      "[...document.querySelectorAll('.matrix tbody th bdi')].map((e) => e.offsetHeight)"
    )
    assert heights
    assert max(heights) < 60, "letters below each other"


def test_a_narrow_table_shows_that_it_scrolls(browser, pages):
  with browsers.watched_page(browser, 375, "light") as page:
    page.set_content(pages["entities"])
    page.add_style_tag(content=".matrix td { min-width: 12rem }")
    style = "(e) => getComputedStyle(e).maskImage"
    table = page.locator(".scrolled:has(.matrix)")
    mask = table.evaluate(style)
    assert mask.startswith("linear-gradient"), "there is more to the right"
    table.evaluate("(e) => { e.scrollLeft = e.scrollWidth }")
    page.wait_for_timeout(100)
    assert page.locator(".scrolled:has(.matrix)").evaluate(style) != mask
    page.set_viewport_size({"width": 1280, "height": 800})
    whole = page.locator(".scrolled:not(:has(.matrix))").first
    assert whole.evaluate("(e) => e.scrollWidth - e.clientWidth") == 0
    assert whole.evaluate(style) == "none"


def test_meters_begin_at_one_line(browser, pages):
  with browsers.watched_page(browser, 1280, "light") as page:
    page.set_content(pages["classes"])
    lefts = page.evaluate(
      "[...document.querySelectorAll('.table')].map((table) =>"
      " [...table.querySelectorAll('.meter')].map((e) => e.getBoundingClientRect().left))"
    )
    assert any(len(each) > 1 for each in lefts)
    assert all(len(set(each)) <= 1 for each in lefts), lefts


def test_without_scripts_all_is_there(browser, pages):
  with browsers.watched_page(browser, java_script_enabled=False) as page:
    page.set_content(pages["classes"])
    page.locator("#further > summary").click()
    assert page.locator(".case:visible").count() == 4
    assert page.locator("button:visible").count() == 0
    page.set_content(pages["two of classes"])
    assert page.locator(".case:visible").count() == 3


def test_paper_is_white_also_in_the_dark(browser, pages):
  with browsers.watched_page(browser, scheme="dark") as page:
    page.set_content(pages["classes"])
    page.emulate_media(media="print", color_scheme="dark")
    style = "getComputedStyle(document.{0}).{1}"
    assert page.evaluate(style.format("body", "backgroundColor")) == "rgb(255, 255, 255)"
    assert page.evaluate(style.format("body", "color")) == "rgb(27, 29, 31)"
    assert "dark" not in page.evaluate(style.format("documentElement", "colorScheme"))
