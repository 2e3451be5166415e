"""This project's command under a name that nobody else's package has.

  python -m bert_alive tf1 run_ner.py ...     as `bert tf1 run_ner.py ...`

A fork of google-research/bert has a package `bert` of its own. In the current folder or on
PYTHONPATH it comes before this project's, and `python -m bert` would run it. This package lies
beside `bert` and knows its place: importing it makes `bert` this project's in the process.
"""

import importlib.util
import os
import sys


def _load_bert() -> None:
  """Imports the package `bert` that lies beside this one, unless one was imported before."""
  if "bert" in sys.modules:
    return
  folder = os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(__file__))), "bert")
  spec = importlib.util.spec_from_file_location(
    "bert", os.path.join(folder, "__init__.py"), submodule_search_locations=[folder]
  )
  sys.modules["bert"] = package = importlib.util.module_from_spec(spec)
  spec.loader.exec_module(package)


_load_bert()
