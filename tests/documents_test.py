"""README and docs: every command runs, every flag exists, every link leads somewhere.

Alone: python -m pytest tests/documents_test.py (seconds; `-m "ci or slow"`: every command)
"""

import ast
import importlib
import re
import sys
import urllib.parse

import pytest

from bert.scripts.flag_groups import defined_flags
from tests.kit.documents import blocks, commands, name_of, pages
from tests.kit.import_graph import modules
from tests.kit.page_runs import make_like_a_checkout, run_page
from tests.kit.paths import ROOT

PAGES = pytest.mark.parametrize("page", pages(), ids=name_of)
# Whose commands are the first that a newcomer types. The others take minutes, and are slow.
_IN_CI = {"README", "first_run", "script_of_2018", "your_data", "glossary", "vocabularies"}
_TIERS = [
  pytest.param(page, id=name_of(page), marks=getattr(pytest.mark, tier))
  for page in pages()
  for tier in ["ci" if page.stem in _IN_CI else "slow"]
]


@PAGES
def test_links_lead_to_files_and_headings(page):
  text = page.read_text(encoding="utf-8")
  for target in re.findall(r"\]\(([^)\s]+)\)", text):
    if target.startswith("https://"):
      continue
    name, _, anchor = urllib.parse.unquote(target).partition("#")
    path = (page.parent / name) if name else page
    assert path.exists(), f"{name_of(page)} links to {target}"
    if anchor:
      headings = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
      assert anchor in {_anchor(heading) for heading in headings}, f"{name_of(page)}: {target}"


def _anchor(heading: str) -> str:
  return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def script_calls(code: str) -> list[tuple[str, list[str]]]:
  """`(script, words after it)` for each call of a root script in a shell block."""
  calls = []
  for words in commands(code):
    for number, word in enumerate(words[:-1]):
      is_script = word == "python" and re.fullmatch(r"\w+\.py", words[number + 1])
      is_word = word == "bert" and (ROOT / f"{words[number + 1]}.py").is_file()
      if is_script or is_word:
        calls.append((words[number + 1].removesuffix(".py"), words[number + 2 :]))
        break
  return calls


@PAGES
def test_every_flag_in_a_command_exists(page, monkeypatch):
  own = re.findall(r"^cat > (\w+)\.py <<", page.read_text(encoding="utf-8"), re.MULTILINE)
  for block in blocks(page):
    if block.language != "bash":
      continue
    for script, words in script_calls(block.code):
      if script in own:  # which the page writes, and runs
        continue
      assert (ROOT / f"{script}.py").is_file(), f"{name_of(page)}:{block.line}: no {script}.py"
      monkeypatch.setattr(sys, "argv", [f"{script}.py", *words])  # which distill.py looks into
      with defined_flags(importlib.import_module(f"bert.{script}").define_flags) as flag_values:
        for word in words:
          if word.startswith("--") and word not in ("--help", "--version"):
            name = word[2:].partition("=")[0]
            known = name in flag_values or name.removeprefix("no") in flag_values
            assert known, f"{name_of(page)}:{block.line}: {script}.py has no flag --{name}"


@PAGES
def test_programs_import_what_is_there(page):
  known = modules()
  for block in blocks(page):
    if block.language == "python":
      for node in ast.walk(ast.parse(block.code)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "bert":
          where = f"{name_of(page)}:{block.line}"
          module = importlib.import_module(node.module)
          for alias in node.names:
            name = f"{node.module}.{alias.name}"
            assert name in known or hasattr(module, alias.name), f"{where}: {name}"


@pytest.mark.parametrize("page", _TIERS)
def test_every_command_runs(page, tmp_path, forked_python):
  make_like_a_checkout(tmp_path)
  run_page(page, tmp_path, forked_python)
