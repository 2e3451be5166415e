"""A script without TensorFlow, run in a process of its own as a user does; it takes a moment."""

import json
import os
import pathlib
import subprocess
import sys

from absl import flags

from bert.scripts import flag_groups
from tests.kit.paths import ROOT

SCRIPT = '''"""Pretends to train.

This paragraph goes on and on, longer than the line of a narrow terminal, so that it has to be cut.

  python script.py --data_dir=folder --and_an_example_line_that_is_longer_than_the_terminal_is_wide
"""

import json
import os
import sys

from absl import flags, logging

from bert.scripts import command_line, flag_groups, help_text
from bert.scripts.run_settings import TpuSettings

FLAGS = flags.FLAGS


def define_flags():
  with flag_groups.flag_group("Input and output"):
    flags.DEFINE_string("data_dir", None, "The folder with the data.")
    flags.DEFINE_string("output_dir", None, "Where results go.")
    flags.DEFINE_bool("do_lower_case", True, "Whether to lower-case.")
  with flag_groups.flag_group("Training"):
    flags.DEFINE_bool("do_train", False, "Whether to train.")
    flags.DEFINE_integer("train_batch_size", 32, "Examples in a step. " * 9, lower_bound=1)
    flags.DEFINE_float("learning_rate", 5e-5, "The first rate.")
    flags.DEFINE_enum("dtype", "float32", ["float32", "bfloat16"], "Numbers to compute with.")
  flags.DEFINE_string("layers", "-1,-2", "A flag in no group.")
  flag_groups.define(TpuSettings)
  flag_groups.mark_required(["data_dir", "output_dir"])


ERRORS = {
  "value": ValueError("dev.tsv, line 3: no label"),
  "decode": UnicodeDecodeError("utf-8", b"x", 0, 1, "bad byte"),
  "missing": FileNotFoundError(2, "No such file or directory", "nowhere/train.tsv"),
  "bug": RuntimeError("a bug"),
  "key": KeyError("a bug too"),
  "interrupt": KeyboardInterrupt(),
}


def main(argv):
  word = FLAGS.data_dir
  if word in ERRORS:
    raise ERRORS[word]
  if word == "library":
    json.loads("{")
  if word == "required":
    FLAGS.data_dir = None
    command_line.check_required()
  if word == "exit":
    return 7
  if word == "chinese":
    print("\\u732b")
  if word == "flood":
    for _ in range(100000):
      print("one of many lines")
  flag_groups.read(TpuSettings).explain_ignored_of_tpu()
  logging.info("  eval_accuracy = %s", 0.845588)
  logging.debug("fine print")
  names = ["data_dir", "do_lower_case", "do_train", "train_batch_size", "learning_rate", "dtype"]
  report = {name: FLAGS[name].value for name in names}
  report["argv"] = argv[1:]
  report["given"] = [name for name in names if command_line.flag_was_given(name)]
  report["cpp_log_level"] = os.environ["TF_CPP_MIN_LOG_LEVEL"]
  report["tensorflow"] = "tensorflow" in sys.modules
  print(json.dumps(report))


if __name__ == "__main__":
  command_line.run(main, define_flags)
'''


def write(folder: pathlib.Path) -> pathlib.Path:
  """Writes the script; returns its path."""
  path = folder / "script.py"
  path.write_text(SCRIPT)
  return path


def run(folder: pathlib.Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess:
  """Runs the script in a folder; keywords are environment variables."""
  clean = {k: v for k, v in os.environ.items() if k not in ("TF_CPP_MIN_LOG_LEVEL", "COLUMNS")}
  variables = {**clean, "PYTHONPATH": str(ROOT), **environment}
  return subprocess.run(
    [sys.executable, str(write(folder)), *arguments],
    env=variables,
    capture_output=True,
    encoding=variables.get("PYTHONIOENCODING", "utf-8"),
    cwd=folder,
    timeout=60,
  )


def report_of(done) -> dict:
  """What the script read from its command line, in a run that succeeded."""
  assert done.returncode == 0, done.stderr
  return json.loads(done.stdout.splitlines()[-1])


def define_some():
  with flag_groups.flag_group("Some"):
    flags.DEFINE_string("text", None, "A text.")
    flags.DEFINE_bool("switch", False, "A switch.")
    flags.DEFINE_bool("do_lower_case", True, "Another.")
    flags.DEFINE_integer("count", 3, "A count.")
    flags.DEFINE_float("rate", 0.5, "A rate.")
