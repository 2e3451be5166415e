"""Chromium without a window, as people's browsers see a page.

Tests install nothing: the browser is Debian's `chromium`, driven by the Python package playwright.
Without them tests are skipped with the reason; with BERT_REQUIRE_BROWSER=1, which continuous
integration may set, they fail instead.
"""

import contextlib
import importlib.util
import os
import pathlib
import urllib.parse

import pytest

CHROMIUM = "/usr/bin/chromium"
PACKAGES = ("playwright", "axe_playwright_python", "uvicorn", "starlette", "fastapi", "requests")
WIDTHS = (375, 1440)  # a phone and a wide screen, in CSS pixels
SCHEMES = ("light", "dark")


def need_browser() -> None:
  """Skips, or fails where a browser is required, if something is missing."""
  missing = [name for name in PACKAGES if not importlib.util.find_spec(name)]
  if not pathlib.Path(CHROMIUM).exists():
    missing.append(f"{CHROMIUM} (apt-get install chromium)")
  if not missing:
    return
  reason = f"The page's tests need {', '.join(missing)}."
  if os.environ.get("BERT_REQUIRE_BROWSER") == "1":
    pytest.fail(reason)
  pytest.skip(reason)


@contextlib.contextmanager
def chromium():
  """Starts the browser."""
  need_browser()
  from playwright.sync_api import sync_playwright

  with sync_playwright() as driver:
    found = driver.chromium.launch(executable_path=CHROMIUM)
    try:
      yield found
    finally:
      found.close()


@contextlib.contextmanager
def watched_page(browser, width: int = 1440, scheme: str = "light", **options):
  """Opens a page; afterwards it must have logged no error, and asked no other host.

  `expected_errors` of the page is a list of texts: an error that has one of them is right.
  """
  context = browser.new_context(
    viewport={"width": width, "height": 900},
    color_scheme=scheme,
    reduced_motion="reduce",
    **options,
  )
  context.set_default_timeout(10_000)
  page = context.new_page()
  errors: list[str] = []
  hosts: set[str] = set()
  page.expected_errors = []
  page.on("console", lambda said: errors.append(said.text) if said.type in _BAD else None)
  page.on("pageerror", lambda error: errors.append(str(error)))
  page.on("request", lambda request: hosts.add(urllib.parse.urlsplit(request.url).hostname))
  try:
    yield page
  finally:
    context.close()
  unexpected = [e for e in errors if not any(text in e for text in page.expected_errors)]
  assert not unexpected
  assert hosts <= {"127.0.0.1"}


_BAD = ("error", "warning")


def serious_findings(page) -> list[str]:
  """What axe finds in a page that shuts people out: rule and elements of each finding."""
  from axe_playwright_python.sync_playwright import Axe

  found = Axe().run(page).response["violations"]
  return [
    f"{each['id']} at {', '.join(str(node['target']) for node in each['nodes'])}"
    for each in found
    if each["impact"] in ("serious", "critical")
  ]
