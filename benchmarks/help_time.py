"""Seconds that `--help` of each script takes; nothing heavy may be imported for it.

  python benchmarks/help_time.py --repeats=5

The interpreter alone, `python -c pass`, is the lower bound.
"""

import argparse
import functools
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks import common  # noqa: E402

INTERPRETER = "python -c pass"


def main():
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--repeats", type=int, default=5)
  parser.add_argument("--pattern", default="run_*.py", help="of the scripts to start")
  args = parser.parse_args()
  commands = {INTERPRETER: ["-c", "pass"]}
  for path in sorted(ROOT.glob(args.pattern)):
    if 'if __name__ == "__main__":' in path.read_text("utf-8"):
      commands[path.name] = [str(path), "--help"]
  systems = {name: functools.partial(_seconds, command) for name, command in commands.items()}
  values = common.take_turns(systems, args.repeats)
  rows = [common.Row("--help", name, "s", values[name]) for name in systems]
  common.report("help_time", rows)


def _seconds(command):
  return common.run_command([sys.executable, *command]).seconds


if __name__ == "__main__":
  main()
