"""The documentation's site: it builds without a warning, and a broken page does not.

Alone: python -m pytest -m ci tests/docs/site_test.py (a minute and a half)
"""

import contextlib
import doctest
import functools
import http.server
import importlib
import os
import pathlib
import shutil
import subprocess
import sys
import threading

import pytest

from tests.kit import browser as browsers
from tests.kit.paths import ROOT

pytestmark = [
  pytest.mark.ci,
  pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed"),
]


def make_docs(root: pathlib.Path, site: pathlib.Path) -> subprocess.CompletedProcess:
  """Runs `make docs` in a checkout with this Python, as it stands in the Makefile."""
  python = pathlib.Path(sys.executable).parent
  command = ["make", "docs", "STAMP=", f"BIN={python}", f"SITE={site}", "-f", ROOT / "Makefile"]
  environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}
  return subprocess.run(
    command, cwd=root, env=environment, capture_output=True, text=True, timeout=600
  )


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> pathlib.Path:
  """The folder of the site."""
  folder = tmp_path_factory.mktemp("docs") / "site"
  done = make_docs(ROOT, folder)
  assert done.returncode == 0, done.stderr[-5000:]
  return folder


def test_every_page_is_there_and_the_entrance_leads_to_the_first(site):
  entrance = (site / "index.html").read_text()
  assert 'url=docs/index.html"' in entrance
  pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "docs").rglob("*.ipynb")]
  for page in pages:
    assert (site / page.relative_to(ROOT)).with_suffix(".html").is_file(), page


def test_links_to_programs_lead_to_their_text(site):
  page = (site / "docs" / "keras.html").read_text()
  assert 'href="../examples/keras_quick_start.py.html"' in page
  assert "keras_quick_start.py" in (site / "examples" / "index.html").read_text()
  text = (site / "examples" / "keras_quick_start.py.html").read_text()
  assert 'class="highlight"' in text
  assert "import" in text


class _Quiet(http.server.SimpleHTTPRequestHandler):
  def log_message(self, *args):
    pass


@contextlib.contextmanager
def served(folder: pathlib.Path):
  """The address of a folder on this machine."""
  handler = functools.partial(_Quiet, directory=str(folder))
  with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()


# A page of lists and pictures, one of the reference, one with tables and code; phone and desk.
_LOOKED_AT = {
  "docs/index.html": (375, "light"),
  "docs/api/prediction.html": (1440, "dark"),
  "docs/keras.html": (375, "dark"),
}


def test_nobody_is_shut_out_and_no_other_host_is_asked(site):
  with browsers.chromium() as browser, served(site) as address:
    for path, (width, scheme) in _LOOKED_AT.items():
      with browsers.watched_page(browser, width, scheme) as page:
        page.goto(f"{address}/{path}")
        assert browsers.serious_findings(page) == [], path
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, path
    with browsers.watched_page(browser) as page:
      page.goto(f"{address}/search.html?q=Predictor")
      page.get_by_role("link", name="bert.predicting.predictor.Predictor").first.wait_for()


def test_worked_examples(monkeypatch):
  monkeypatch.syspath_prepend(ROOT / "docs")
  for name in ("site_steps", "docstring_steps"):
    done = doctest.testmod(importlib.import_module(name))
    assert done.attempted
    assert not done.failed
