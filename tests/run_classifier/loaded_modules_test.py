"""What a run loads: of formats, tokenizers and sources only those that the user gave.

Its report, which comes when all else is done, reads the folder as any other script does.
"""

import pytest

from tests.kit.import_graph import entries
from tests.kit.script_runs import run_python

# Trains nothing; the last line of its output names the modules that were loaded.
PROGRAM = """
import sys
from bert import run_classifier
from bert.scripts import command_line
try:
  command_line.run(run_classifier.main, run_classifier.define_flags, sys.argv)
finally:
  print(*(name for name in sys.modules if name.startswith("bert.")))
"""


@pytest.mark.ci
def test_a_run_from_a_checkpoint_and_a_vocab_txt_loads_no_other_format(mrpc, tmp_path):
  values = {**mrpc.flags, "init_checkpoint": mrpc.out, "output_dir": tmp_path / "out"}
  flags = [f"--{name}={value}" for name, value in values.items()]
  done = run_python("-c", PROGRAM, *flags, "--do_eval", "--noreport")
  assert done.returncode == 0, done.stderr
  loaded = set(done.stdout.splitlines()[-1].split())
  assert "bert.checkpoints.reading" in loaded
  found = {registry: loaded & of_registry for registry, of_registry in entries().items()}
  observers = found.pop("bert.checks.at_start")
  assert observers == {"bert.checks.at_start.cheap_checks"}, "they look on at every run"
  assert found.pop("bert.tasks.kinds") <= {"bert.run_classifier", "bert.model.task_heads"}
  assert not any(found.values()), found
