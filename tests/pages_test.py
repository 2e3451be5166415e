"""README and docs as texts: how long a page is, what stands first, how long its sentences are.

`tests/documents_test.py` runs their commands.

Alone: python -m pytest tests/pages_test.py (a second)
"""

import re

import pytest

from tests.kit.documents import blocks, name_of, pages
from tests.kit.paths import ROOT
from tests.kit.plain_language import long_sentences

PAGES = pytest.mark.parametrize("page", pages(), ids=name_of)
MOST_WORDS = 2000
# Pages that no reader works through with a command, or folders of such pages, and why.
_NO_GUIDES = {
  "docs/api.md": "lists names that other programs import",
  "docs/benchmarks.md": "is the table of contents of docs/results/",
  "docs/design.md": "says where the code is",
  "docs/design": "says why the code is as it is",
  "docs/differences.md": "lists what differs from the original",
  "docs/glossary.md": "explains words",
  "docs/index.md": "is the table of contents of the site",
  "docs/other_packages.md": "is a table of promises",
  "docs/reliability": "holds the tables that tests/system/protections.py reads",
  "docs/results": "holds what was measured, each table with its command",
  "docs/tutorials/index.md": "is the table of contents of the tutorials",
}
# Long sentences that a page may have. No guide has any; tutorials have a few from before this test.
_MOST_LONG_SENTENCES = {"docs/tutorials": 3}


def _is_guide(page) -> bool:
  above = [page, *page.parents]
  return not {name_of(path) for path in above if path.is_relative_to(ROOT)} & set(_NO_GUIDES)


GUIDES = pytest.mark.parametrize("page", [*filter(_is_guide, pages())], ids=name_of)


def test_the_readme_fits_two_screens():
  assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 170


@PAGES
def test_a_page_is_read_in_one_sitting(page):
  assert len(page.read_text(encoding="utf-8").split()) <= MOST_WORDS


@PAGES
def test_a_page_says_first_what_the_reader_gets(page):
  title, first, *_ = page.read_text(encoding="utf-8").split("\n\n")
  assert re.fullmatch(r"# [^\n]+", title), "one title, and an empty line below it"
  assert re.match(r"[\w`*\[]", first), "a sentence comes first, no heading, table or block"
  assert first.rstrip().endswith((".", ":"))
  assert len(first.split()) <= 70, "a sentence or two; details come after the command"


@GUIDES
def test_a_guide_has_a_command_on_its_first_screen(page):
  lines = [block.line for block in blocks(page) if block.language in ("bash", "python")]
  assert lines, "no command at all"
  assert lines[0] <= 25


@GUIDES
def test_a_guide_has_short_sentences(page):
  most = _MOST_LONG_SENTENCES.get(name_of(page.parent), 0)
  found = long_sentences(page.read_text(encoding="utf-8"))
  assert len(found) <= most, "Split these sentences:\n" + "\n".join(found)
