"""Runs commands of a checkout, each in a process of its own, with TensorFlow imported once.

  PYTHONPATH=CHECKOUT python tools/forked_commands.py CHECKOUT < jobs.json

`jobs.json` is a list of [folder, [[script, flags], ...]]; a script runs in its folder as
`python -m bert.SCRIPT FLAGS...` does, and writes `log_N.txt` there. Prints the exit codes of each
job. Only the checkout is on the path, so nothing of this project may be imported here.
"""

import json
import os
import runpy
import sys


def run_command(script, flags, log):
  """Runs a script in a fork of this process; returns its exit code."""
  process = os.fork()
  if process:
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
  output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
  os.dup2(output, 1)
  os.dup2(output, 2)
  sys.argv = [script, *flags]
  runpy.run_module(f"bert.{script}", run_name="__main__", alter_sys=True)
  sys.exit()  # Ends the fork as a program ends, so that all that it has opened is closed.


def main():
  """Runs the jobs of standard input; a job ends with its first failure."""
  sys.path.pop(0)  # This folder: its modules have names that others may import.
  import bert

  assert os.path.realpath(bert.__file__).startswith(os.path.realpath(sys.argv[1])), bert.__file__
  import tensorflow  # noqa: F401  # Only imported: a fork of a TensorFlow that has run would hang.

  for folder, commands in json.load(sys.stdin):
    os.chdir(folder)
    codes = []
    for number, (script, flags) in enumerate(commands):
      codes.append(run_command(script, flags, f"log_{number}.txt"))
      if codes[-1]:
        break
    print(json.dumps(codes), flush=True)


if __name__ == "__main__":
  main()
