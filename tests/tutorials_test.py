"""docs/tutorials/: every command is run, in order and from nothing but what the page makes.

Alone: python -m pytest tests/tutorials_test.py (seconds; `-m ci`: the commands, four minutes)
"""

import re

import pytest

from tests.kit.documents import Block, blocks, tutorials
from tests.kit.page_runs import check_shown, make_like_a_checkout, run_page

PAGES = [page for page in tutorials() if page.stem != "index"]
EACH = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)


@pytest.mark.ci
@EACH
def test_a_tutorial_does_what_it_says(page, tmp_path):
  make_like_a_checkout(tmp_path)
  run_page(page, tmp_path)


@EACH
def test_a_tutorial_is_short_and_shows_output(page):
  assert len(page.read_text(encoding="utf-8").split()) <= 900
  assert any(block.language == "text" for block in blocks(page))


def test_the_index_lists_all():
  index = next(page for page in tutorials() if page.stem == "index")
  links = re.findall(r"\]\((\w+)\.md\)", index.read_text(encoding="utf-8"))
  assert sorted(links) == [page.stem for page in PAGES]


@pytest.mark.parametrize("shown", ["eval_loss = 0.7\n", "...accuracy = 1.0\n...\n", "a  b\n"])
def test_shown_output_may_have_other_numbers_and_gaps(shown):
  check_shown(Block(1, "text", shown, ""), "eval_accuracy = 0.25\neval_loss = 1e-05\na b\n", "p:1")


@pytest.mark.parametrize("shown", ["eval_f1 = 0.7\n", "accuracy = 0.25\n"])
def test_shown_output_that_no_command_gave_is_found(shown):
  with pytest.raises(AssertionError, match="p:1: no output is like"):
    check_shown(Block(1, "text", shown, ""), "eval_accuracy = 0.25\n", "p:1")


def test_shown_output_of_a_command_that_is_not_run_is_found():
  with pytest.raises(AssertionError, match="is not run"):
    check_shown(Block(1, "text", "a\n", ""), None, "p:1")
