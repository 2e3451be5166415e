"""Starts every Python of a test run with the rules of `tests/kit/windows_rules.py`."""

import importlib.util
import os
import pathlib

if os.environ.get("BERT_TEST_PLATFORM") == "windows":
  _path = pathlib.Path(__file__).parents[1] / "windows_rules.py"
  _spec = importlib.util.spec_from_file_location("_windows_rules", _path)
  _rules = importlib.util.module_from_spec(_spec)
  _spec.loader.exec_module(_rules)
  _rules.apply()
