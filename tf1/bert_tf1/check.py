"""`bert-tf1 --check SCRIPT`: which names of TensorFlow 1.x a script uses, and which are there.

The script and the modules beside it are read, not run. Each name is then asked of what the script
would get in a run: the module `bert_tf1`, the twins of the original's modules, today's Python and
NumPy with what `python2018` adds. The only names listed here are those with a DIFFERENCE.
"""

import importlib.util
import os
import pathlib
import sys
import textwrap
from collections.abc import Sequence
from typing import NamedTuple

from bert_tf1 import python2018, whose
from bert_tf1.checking import uses
from bert_tf1.checking.verdicts import OF_PYTHON_2, Finding, Verdict, find
from bert_tf1.importing import LIBRARY

_WIDTH = 100
# Top-level modules of Python 2, and what to do about them.
_PYTHON_2_MODULES = frozenset(
  (
    *("ConfigParser", "HTMLParser", "Queue", "StringIO", "__builtin__", "cPickle", "cStringIO"),
    *("commands", "urllib2"),
  )
)


class Line(NamedTuple):
  """What is said of one name: what was found, and all its uses."""

  found: Finding
  uses: list[uses.Use]


def report(script: str, is_module: bool, search: Sequence[str]) -> tuple[str, int]:
  """Says which names a script uses and whether they are there.

  Returned with the text is the number of names that are not there and of files that do not parse.
  Arguments and errors are those of `uses.read`.

  Raises:
    FileNotFoundError: there is no such script.
    ValueError: the script is a notebook.
  """
  program = uses.read(script, is_module, search)
  lines = judge(program)
  folder = os.path.abspath(search[0])
  blocks = [f"Files are named from {folder}." if folder != os.getcwd() else ""]
  blocks.append(_unparsed(program, folder))
  for verdict in Verdict:
    its = [line for line in lines if line.found.verdict == verdict]
    blocks.append(_table(verdict.value, its, folder))
  blocks += [_elsewhere(lines, folder), _needs(program, folder), _summary(program, lines)]
  failures = sum(line.found.verdict == Verdict.NOT_THERE for line in lines)
  return "\n\n".join(block for block in blocks if block), failures + len(program.unparsed)


def judge(program: uses.Program) -> list[Line]:
  """One line for each name and remark, in the order of the names."""
  supplied = frozenset(python2018.supply())
  found: dict[Finding, list[uses.Use]] = {}
  for use in program.uses:
    finding = find(use, supplied)
    if finding:
      found.setdefault(finding, []).append(use)
  for use, path in program.missing:
    finding = Finding(Verdict.NOT_THERE, use.name, f"{path} has no such module or name.")
    found.setdefault(finding, []).append(use)
  lines = []
  for finding, its in found.items():
    if finding.verdict == Verdict.NOT_THERE and all(use.guarded for use in its):
      finding = finding._replace(verdict=Verdict.GUARDED)
    lines.append(Line(finding, its))
  return sorted(lines, key=lambda line: (line.found.name.lower(), line.found.name, line.found.note))


def _table(heading: str, lines: list[Line], folder: str) -> str:
  """A section: name, number of uses, place of the first; below the names a remark is about."""
  if not lines:
    return ""
  width = max(len(line.found.name) for line in lines)
  digits = max(len(str(len(line.uses))) for line in lines)
  rows = [f"{heading} ({len(lines)})"]
  for line, after in zip(lines, [*lines[1:], None], strict=True):
    count = f"{len(line.uses):{digits}} use{'s' if len(line.uses) > 1 else ' '}"
    place = _place(line.uses[0], folder)
    if line.found.verdict == Verdict.NOT_THERE:
      at_start = [use for use in line.uses if use.at_start and not use.guarded]
      place = f"{_place(at_start[0], folder)}, at the script's start" if at_start else place
    rows.append(f"  {line.found.name:{width}}  {count}  {place}")
    if not after or after.found.note != line.found.note:
      rows += _wrapped(line.found.note)
  return "\n".join(rows)


def _wrapped(note: str) -> list[str]:
  return textwrap.wrap(
    note,
    _WIDTH,
    initial_indent=" " * 6,
    subsequent_indent=" " * 6,
    break_long_words=False,
    break_on_hyphens=False,
  )


def _place(where: uses.Use | uses.Unparsed, folder: str) -> str:
  """`file:line`, the file as seen from the folder if it lies below."""
  relative = os.path.relpath(where.path, folder)
  return f"{where.path if relative.startswith(os.pardir) else relative}:{where.line}"


def _unparsed(program: uses.Program, folder: str) -> str:
  """Returns the files that cannot be read."""
  if not program.unparsed:
    return ""
  rows = [f"not read: no Python 3 ({len(program.unparsed)})"]
  rows += [f"  {_place(bad, folder)}  {bad.message}" for bad in program.unparsed]
  paths = " ".join(bad.path for bad in program.unparsed)
  rows += _wrapped(
    "If this is Python 2, convert a copy; 2to3 comes with Python up to 3.12: 2to3 -w " + paths
  )
  return "\n".join(rows)


def _elsewhere(lines: list[Line], folder: str) -> str:
  """Returns where the script's own modules may be, for which the original's stand in."""
  gone = [line.found.name for line in lines if line.found.verdict == Verdict.NOT_THERE]
  here = pathlib.Path(folder)
  rows = []
  for name in ("bert", *LIBRARY):
    if not any(each.startswith(f"{name}.") for each in gone):
      continue
    file = f"{name}/modeling.py" if name == "bert" else f"{name}.py"
    found = [*here.glob(f"*/{file}"), here.parent / file, *here.parent.glob(f"*/{file}")]
    places = [str(path).removesuffix(f"/{file}") for path in found if path.is_file()]
    places = [place for place in places if not whose.is_ours(place, name)]
    rows += [f"  {file}  run with PYTHONPATH={place}" for place in places[:1]]
  return "\n".join(["not searched, and perhaps the script's own", *rows]) if rows else ""


def _needs(program: uses.Program, folder: str) -> str:
  """Returns the packages that are imported, but not installed."""
  rows = []
  for name, use in sorted(program.imports.items()):
    if _is_there(name) or (use.guarded and name in _PYTHON_2_MODULES):
      continue
    note = _own_package(name, program.modules[0])
    if use.guarded:
      note = "the script has another way"
    elif name in _PYTHON_2_MODULES:
      note = OF_PYTHON_2
    rows.append(f"  {name}  {_place(use, folder)}" + (f"  ({note})" if note else ""))
  return "\n".join([f"needs, not installed here ({len(rows)})", *rows]) if rows else ""


def _own_package(name: str, script: str) -> str:
  """Tells how to run a script that imports a package which it lies in itself; empty for others."""
  path = pathlib.Path(script).resolve().with_suffix("")
  for above in path.parents:
    if above.name == name:
      module = ".".join(path.relative_to(above.parent).parts)
      return f"the script lies in it; run it so: --cwd={above.parent} -m {module}"
  return ""


def _is_there(name: str) -> bool:
  """Tells whether a top-level module is installed, or one of `LIBRARY` stands in for it.

  Scripts of bert-alive's checkout do not count: they are for TensorFlow 2.
  """
  if name in ("bert", "keras", *LIBRARY):
    return True
  try:
    found = importlib.util.find_spec(name)
  except ValueError:  # A module without a spec.
    return True
  if found and found.has_location and whose.is_ours(os.path.dirname(str(found.origin)), name):
    found = whose.find_other(name, sys.path)
  return found is not None


def _summary(program: uses.Program, lines: list[Line]) -> str:
  """Returns the last line: `run_ner.py and 3 modules beside it: 61 names, 59 there, ...`."""
  names = {
    verdict: {li.found.name for li in lines if li.found.verdict == verdict} for verdict in Verdict
  }
  bad = names[Verdict.NOT_THERE]
  guarded = names[Verdict.GUARDED] - bad
  different = names[Verdict.DIFFERENT] - bad - guarded
  there = (names[Verdict.THERE] | names[Verdict.SUPPLIED]) - bad - guarded - different
  counts = [f"{len(there)} there", f"{len(different)} with a difference"]
  if guarded:
    counts.append(f"{len(guarded)} not there, but in a try")
  counts.append(f"{len(bad)} not there")
  if program.unparsed:
    counts.append(f"{len(program.unparsed)} of the files not read")
  others = len(program.modules) - 1
  beside = f" and {others} module{'s' * (others > 1)} beside it" if others else ""
  total = len(there | different | guarded | bad)
  script = os.path.basename(program.modules[0])
  return f"{script}{beside}: {total} name{'s' * (total != 1)}, {', '.join(counts)}."
