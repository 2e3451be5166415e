"""Modules that load none of the libraries that take seconds to import."""

import json

import pytest

from tests.kit.script_runs import run_python

# Module -> what importing it does not load.
LIGHT = {
  "bert.convert_checkpoint": {"tensorflow"},
  "bert.create_vocab": {"tensorflow"},
  "bert.tokenization": {"tensorflow", "numpy"},
  "bert.checkpoints.transformers_folder": {"tensorflow"},
  "bert.exporting.unicode_tables": {"tensorflow"},
  "bert.figures.training_curves": {"tensorflow", "matplotlib"},
  "bert.io.tables": {"tensorflow", "numpy"},
  "bert.report": {"tensorflow", "matplotlib", "jinja2"},
  "bert.scripts.command_line": {"tensorflow"},
  "bert.serve": {"tensorflow", "fastapi", "uvicorn"},
  "bert.serving.app": {"tensorflow"},
  "bert.serving.served_models": {"tensorflow", "fastapi"},
  "bert.scripts.flag_groups": {"tensorflow"},
  "bert.scripts.help_text": {"tensorflow"},
  "bert.tasks.glue": {"tensorflow", "numpy"},
  "bert.tasks.metrics": {"tensorflow", "sklearn", "scipy"},
  "bert.tasks.squad": {"tensorflow"},
  "bert.tasks.squad_scores": {"tensorflow"},
  "bert.tasks.tagging": {"tensorflow", "seqeval"},
  "bert.transformers.data_collators": {"tensorflow"},
  "bert.transformers.tokenization": {"tensorflow", "keras"},
}
_EACH_IN_A_FORK = """
import importlib, json, os, sys
for module in json.loads(sys.argv[1]):
  if os.fork() == 0:
    try:
      importlib.import_module(module)
      print(json.dumps([module, sorted(sys.modules)]), flush=True)
    finally:
      os._exit(0)
  os.wait()
"""


@pytest.fixture(scope="module")
def loaded() -> dict[str, list[str]]:
  """Module -> all that is loaded once it is imported."""
  done = run_python("-c", _EACH_IN_A_FORK, json.dumps(list(LIGHT)))
  assert (done.returncode, done.stderr) == (0, "")
  return dict(map(json.loads, done.stdout.splitlines()))


@pytest.mark.parametrize("module", LIGHT)
def test_it_is_imported_without(loaded, module):
  assert module in loaded[module]
  assert not LIGHT[module] & set(loaded[module])
