"""Checks the distributions that are to be published: what is in them, and their version.

  python -m build --outdir dist . && python -m build --outdir dist tf1
  python tools/check_dist.py dist [TAG]

Needs the standard library only. .github/workflows/release.yml and tests/workflows_test.py call it.
"""

import configparser
import email
import pathlib
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parents[1]


class Expected(NamedTuple):
  """What a distribution must contain."""

  package: str  # the only top-level name of its wheel
  files: dict[str, pathlib.Path]  # name in the wheel -> file of this checkout
  needed: tuple[str, ...]  # patterns of names that the checkout itself must have
  entry_points: dict[str, str]  # group -> name


def expected() -> dict[str, Expected]:
  """Returns name of a distribution -> what it must contain."""
  main = _files(ROOT / "bert", "bert")
  samples = _files(ROOT / "samples", "bert/samples")
  main |= {name: path for name, path in samples.items() if ".py" not in path.suffix}
  main |= {f"bert/{path.name}": path for path in ROOT.glob("*.py")}
  pages = [f"bert/{part}/page/*.{kind}" for part in ("reports", "serving") for kind in _OF_PAGES]
  of_main = ("bert/py.typed", "bert/modeling.py", "bert/samples/MRPC/train.tsv", *pages)
  of_tf1 = ("bert_tf1/__init__.py", "bert_tf1/__main__.py")
  return {
    "bert_alive": Expected("bert", main, of_main, {"console_scripts": "bert"}),
    "bert_alive_tf1": Expected(
      "bert_tf1", _files(ROOT / "tf1" / "bert_tf1", "bert_tf1"), of_tf1, {"bert.commands": "tf1"}
    ),
  }


_OF_PAGES = ("html", "css", "js")


def _files(folder: pathlib.Path, prefix: str) -> dict[str, pathlib.Path]:
  """Returns the name in a wheel -> the path of each file below `folder`."""
  return {
    f"{prefix}/{path.relative_to(folder).as_posix()}": path
    for path in folder.rglob("*")
    if path.is_file() and "__pycache__" not in path.parts
  }


def problems(folder: pathlib.Path, tag: str = "") -> Iterator[str]:
  """Yields a line for each thing that is wrong in a directory of wheels and sdists.

  Args:
    folder: the directory; it must hold a wheel and an sdist of each distribution, nothing else.
    tag: of the release, such as v0.2.0; without one, the versions must only be the same.
  """
  found = sorted(path.name for path in folder.iterdir())
  versions = {name.split("-")[1].removesuffix(".tar.gz") for name in found if "-" in name}
  if tag:
    versions.add(tag.removeprefix("v"))
  if len(versions) != 1:
    yield f"{folder}: expected one version, found {', '.join(sorted(versions)) or 'none'}."
    return
  [version] = versions
  stems = {f"{name}-{version}": each for name, each in expected().items()}
  wanted = sorted(f"{stem}{end}" for stem in stems for end in ("-py3-none-any.whl", ".tar.gz"))
  if found != wanted:
    yield f"{folder}: expected {', '.join(wanted)}, found {', '.join(found)}."
    return
  for stem, each in stems.items():
    yield from _problems_of_wheel(folder / f"{stem}-py3-none-any.whl", stem, version, each)
    yield from _problems_of_sdist(folder / f"{stem}.tar.gz", stem, each)


def _problems_of_wheel(
  path: pathlib.Path, stem: str, version: str, wanted: Expected
) -> Iterator[str]:
  with zipfile.ZipFile(path) as wheel:
    names = {name for name in wheel.namelist() if not name.endswith("/")}
    metadata_folder = f"{stem}.dist-info"
    content = {name for name in names if not name.startswith(f"{metadata_folder}/")}
    tops = {name.split("/")[0] for name in content}
    if tops != {wanted.package}:
      yield f"{path.name}: its top-level names are {sorted(tops)}, not only {wanted.package}."
    for problem, others in (
      ("lacks", wanted.files.keys() - content),
      ("has, unlike this checkout,", content - wanted.files.keys()),
      ("differs from this checkout in", _different(wheel, wanted, content)),
    ):
      if others:
        yield f"{path.name} {problem} {', '.join(sorted(others)[:5])} ({len(others)} files)."
    for pattern in wanted.needed:
      if not any(pathlib.PurePosixPath(name).match(pattern) for name in content):
        yield f"{path.name} lacks {pattern}."
    missing = {"METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE"}
    missing -= {name.removeprefix(f"{metadata_folder}/") for name in names}
    if missing:
      yield f"{path.name} lacks {', '.join(sorted(missing))} in {metadata_folder}."
      return
    metadata = email.message_from_bytes(wheel.read(f"{metadata_folder}/METADATA"))
    if metadata["Version"] != version:
      yield f"{path.name}: its metadata have the version {metadata['Version']}."
    entry_points = configparser.ConfigParser(delimiters="=")
    entry_points.read_string(wheel.read(f"{metadata_folder}/entry_points.txt").decode())
    for group, name in wanted.entry_points.items():
      target = entry_points.get(group, name, fallback="")
      module = target.split(":")[0].strip().replace(".", "/")
      if f"{module}.py" not in content and f"{module}/__init__.py" not in content:
        yield f'{path.name}: the entry point {name} of {group} is "{target}".'


def _different(wheel: zipfile.ZipFile, wanted: Expected, content: set[str]) -> set[str]:
  common = wanted.files.keys() & content
  return {name for name in common if wheel.read(name) != wanted.files[name].read_bytes()}


def _problems_of_sdist(path: pathlib.Path, stem: str, wanted: Expected) -> Iterator[str]:
  with tarfile.open(path) as archive:
    names = set(archive.getnames())
  tops = {name.split("/")[0] for name in names}
  if tops != {stem}:
    yield f"{path.name}: its top-level names are {sorted(tops)}, not only {stem}."
  needed = ["PKG-INFO", "pyproject.toml", "README.md", f"{wanted.package}/__init__.py"]
  for name in needed:
    if f"{stem}/{name}" not in names:
      yield f"{path.name} lacks {name}."


def main(arguments: list[str]) -> int:
  """Prints what is wrong; returns the exit code."""
  if len(arguments) not in (1, 2):
    print(__doc__, file=sys.stderr)
    return 2
  found = list(problems(pathlib.Path(arguments[0]), *arguments[1:]))
  print("\n".join(found) or f"{arguments[0]}: both distributions are complete.")
  return 1 if found else 0


if __name__ == "__main__":
  sys.exit(main(sys.argv[1:]))
