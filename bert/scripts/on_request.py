"""What few command lines ask for, or what comes when all else is done, one module each.

  on_request.module("help").format_help(program, doc)

The word decides: `--help` needs the text of all flags, `--num_runs` a program that starts several
runs, a misspelt flag the names of all others. Only this module imports those, when the word is
there, so a command line that says what to train faces none of them. Of the report a run knows no
more than that it is written at its end: a reader of training faces neither pages nor charts.
"""

import importlib
from typing import Any

# Word -> the module that answers it.
_MODULES = {
  "help": "bert.scripts.help_text",
  "unknown": "bert.scripts.flag_names",  # a flag that the script does not have
  "report": "bert.scripts.run_report",  # --report
  "num_runs": "bert.sweeps.many_runs",
}


def module(word: str) -> Any:
  """Returns the module that answers a word of the command line."""
  return importlib.import_module(_MODULES[word])
