"""A run loads only the formats, tokenizers and sources that the user gave."""

import pytest

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
OTHERS = {
  "bert.checkpoints.h5_file",
  "bert.checkpoints.safetensors_file",
  "bert.checkpoints.torch_file",
  "bert.checkpoints.transformers_folder",
  "bert.io.http",
  "bert.run_squad",
  "bert.text.byte_pairs",
  "bert.text.sentence_pieces",
}


@pytest.mark.ci
def test_a_run_from_a_checkpoint_and_a_vocab_txt_loads_no_other_format(mrpc, tmp_path):
  values = {**mrpc.flags, "init_checkpoint": mrpc.out, "output_dir": tmp_path / "out"}
  flags = [f"--{name}={value}" for name, value in values.items()]
  done = run_python("-c", PROGRAM, *flags, "--do_eval", "--noreport")
  assert done.returncode == 0, done.stderr
  loaded = set(done.stdout.splitlines()[-1].split())
  assert "bert.checkpoints.reading" in loaded
  assert not loaded & OTHERS
