"""Fuzzes one parser until a time is over, guided by which of our lines each input runs.

  pip install atheris                          # has wheels for Python 3.11 to 3.13 on Linux
  python tools/atheris_fuzz.py squad -max_total_time=300 -print_final_stats=1
  python tools/atheris_fuzz.py squad crash-0123abcd           # one input again
  for target in $(python tools/atheris_fuzz.py); do ...       # the names of all

Arguments after the name are libFuzzer's. What crashes is left as `crash-*` in the current folder:
correct the parser, and store the input in the tables of tests/system/bad_inputs_test.py or
tests/system/bad_weights_test.py.
"""

import os
import pathlib
import sys
import tempfile
import warnings

import atheris
from absl import logging

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from tests.kit.paths import ROOT

# Only our own modules are instrumented: TensorFlow's would take minutes and guide nobody. A name
# stands for the modules below it, too; those at the root are loaded under their plain names.
_OURS = ["bert", *(path.stem for path in ROOT.glob("*.py"))]

with atheris.instrument_imports(include=[*_OURS, "tests.kit.fuzz_targets"]):
  from tests.kit import fuzz_targets


def _import_the_slow() -> None:
  """TensorFlow, and ours that need it: before the clock of the first input starts."""
  with atheris.instrument_imports(include=_OURS):
    from bert.checkpoints import reading  # noqa: F401
    from bert.pretraining import record_checks  # noqa: F401


def _write_seeds(folder: pathlib.Path, target: fuzz_targets.Target) -> None:
  for number, seed in enumerate(target.seeds):
    (folder / str(number)).write_bytes(seed)


def _write_dictionary(path: pathlib.Path) -> None:
  """What breaks parsers, as libFuzzer wants to have it: in quotes, each byte in hexadecimal."""
  short = (snippet for snippet in fuzz_targets.SNIPPETS if len(snippet) < 60)
  lines = ('"' + "".join(f"\\x{byte:02x}" for byte in snippet) + '"\n' for snippet in short)
  path.write_text("".join(lines))


def _empty(folder: pathlib.Path) -> None:
  for path in folder.iterdir():
    path.unlink()


def main() -> None:
  """Does as the docstring of this file says."""
  if len(sys.argv) < 2:
    print("\n".join(fuzz_targets.TARGETS))
    return
  name, arguments = sys.argv[1], sys.argv[2:]
  target = fuzz_targets.TARGETS[name]
  logging.set_verbosity(logging.FATAL)
  warnings.simplefilter("ignore")
  os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
  if target.needs_tensorflow:
    _import_the_slow()
  with tempfile.TemporaryDirectory() as temporary:
    seeds, work = (pathlib.Path(temporary) / part for part in ("seeds", "work"))
    seeds.mkdir()
    work.mkdir()
    _write_seeds(seeds, target)
    _write_dictionary(work.with_name("dictionary"))

    def run_once(data: bytes) -> None:
      _empty(work)
      target.run(data, work)

    is_replay = bool(arguments) and not arguments[-1].startswith("-")
    own = [] if is_replay else [str(seeds), f"-dict={work.with_name('dictionary')}"]
    atheris.Setup([sys.argv[0], *own, "-max_len=8192", *arguments], run_once)
    atheris.Fuzz()


if __name__ == "__main__":
  main()
