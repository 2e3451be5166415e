"""Runs this project against the tests of others, and prints one table.

  make conformance                                       # lists what to clone
  make conformance SUITES=FOLDER WEIGHTS=minilm_L-6_H-384_A-12

Clones lie in one folder under their own names; a suite whose clone is missing is skipped. The exit
status is 1 if a case failed. docs/conformance.md says what the outcomes mean.
"""

import argparse
import dataclasses
import importlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

from bert.io import start_lines
from conformance.cases import FAILED, OUTCOMES, SKIPPED, Case, Context
from conformance.report import Clone, Result, counts, details, document, table

# Folder -> the public repository and the commit that was tried.
CLONES = {
  "bert": ("google-research/bert", "eedf5716ce1268e56f0a50264a88cafad334ac61"),
  "transformers.js": ("huggingface/transformers.js", "5ed4c5c0d3c57d7aec34d2d65f51624786bc6e2e"),
  "text": ("tensorflow/text", "17c38bf014810b80abbb7c13ff1c2ac3cd9f710f"),
  "text-embeddings-inference": (
    "huggingface/text-embeddings-inference",
    "0d124dc9773be6ac5a9a57d8439aba9bbbf33273",
  ),
  "stsb-multi-mt": ("PhilipMay/stsb-multi-mt", "30de0dec4ee199b7f42351d3f1a0b19592955385"),
  "dataset-sts": ("brmson/dataset-sts", "e1d3375f5b3bc24f21aa4e46f96eb379e9fc1081"),
  "evaluate": ("huggingface/evaluate", "a7dd338386a4fae9a1767e05eb9ef9479513d9e8"),
  # transformers 4 of April 2025 under another name; its own repository has become too large.
  "transformers": ("yeatscircle/myTransformers", "23ac745c9796417ac9ecb0adee0297283f2d8f81"),
}
# Module -> what it compares, in the order in which they run.
SUITES = {
  "transformers_js": "tokens and ids, huggingface/transformers.js",
  "tensorflow_text": "tokens and ids, tensorflow/text",
  "bert_unit_tests": "unit tests, google-research/bert",
  "transformers_tests": "TensorFlow models, huggingface/transformers 4",
  "transformers_examples": "TensorFlow example scripts, huggingface/transformers 4",
  "text_embeddings_inference": "vectors, huggingface/text-embeddings-inference",
  "mteb_figures": "MTEB's figures of all-MiniLM-L6-v2",
}


def main(arguments: Sequence[str] | None = None) -> int:
  """Runs the suites; the exit status."""
  args = _parse(arguments)
  if not args.suites:
    print("\n".join(_what_to_clone()))
    return 0
  context = _context(args)
  earlier = _read_results(args.output)
  try:
    found = {name: _run(name, context) for name in args.only}
  finally:
    shutil.rmtree(context.scratch, ignore_errors=True)
  print("\n".join(details(list(found.values()))))
  every = {**earlier, **found}
  results = [every[name] for name in SUITES if name in every]
  clones = [_clone(context, folder) for folder in CLONES if context.has(folder)]
  print("\n".join(["", *table(results)]))
  if args.output:
    facts = [dataclasses.asdict(result) for result in results]
    content = {"clones": [dataclasses.asdict(clone) for clone in clones], "suites": facts}
    args.output.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", "utf-8")
  if args.document:
    args.document.write_text(document(args.document.read_text("utf-8"), results, clones), "utf-8")
  return int(any(counts(result)[FAILED] for result in results))


def _parse(arguments) -> argparse.Namespace:
  parser = argparse.ArgumentParser(prog="conformance", description=__doc__.splitlines()[0])
  parser.add_argument("--suites", default="", help="folder of the clones; empty: list them")
  parser.add_argument("--weights", default="", help="folder with all-MiniLM-L6-v2's checkpoint")
  parser.add_argument("--only", default=",".join(SUITES), help="suites, separated by commas")
  parser.add_argument(
    "--output",
    type=pathlib.Path,
    help="write all cases to this JSON file; suites that are not run now stay as they are there",
  )
  parser.add_argument("--document", type=pathlib.Path, help="write the table into this document")
  args = parser.parse_args(arguments)
  args.only = args.only.split(",")
  unknown = [name for name in args.only if name not in SUITES]
  if unknown:
    parser.error(f"--only: no {', '.join(unknown)} among {', '.join(SUITES)}.")
  if args.suites and not pathlib.Path(args.suites).is_dir():
    parser.error(f"--suites={args.suites} is no folder. Without --suites, what to clone is listed.")
  missing = [
    name
    for name in ("bert_config.json", "vocab.txt")
    if args.weights and not (pathlib.Path(args.weights) / name).is_file()
  ]
  if missing:
    parser.error(f"--weights={args.weights} has no {' and no '.join(missing)}.")
  return args


def _what_to_clone() -> Iterator[str]:
  yield "Clone these into one folder (all, or those that you want), then run"
  yield "  make conformance SUITES=FOLDER WEIGHTS=FOLDER_OF_MINILM"
  yield ""
  for folder, (repository, commit) in CLONES.items():
    yield f"  git clone https://github.com/{repository} FOLDER/{folder}  # tried: {commit[:12]}"
  yield ""
  yield "WEIGHTS is all-MiniLM-L6-v2 as a checkpoint of the original's format, with its vocab.txt"
  yield "(docs/conformance.md says how to make it). Without it, what needs it is skipped."


def _context(args: argparse.Namespace) -> Context:
  weights = pathlib.Path(args.weights) if args.weights else None
  vocab = weights / "vocab.txt" if weights else None
  scratch = pathlib.Path(tempfile.mkdtemp(prefix="conformance-"))
  return Context(pathlib.Path(args.suites), weights, vocab, scratch)


def _read_results(path: pathlib.Path | None) -> dict[str, Result]:
  """The results of an earlier run, by the suite's name."""
  if not path or not path.exists():
    return {}
  try:
    suites = json.loads(path.read_text("utf-8"))["suites"]
    results = [
      Result(**{**suite, "cases": [Case(**c) for c in suite["cases"]]}) for suite in suites
    ]
  except (KeyError, TypeError, ValueError) as error:
    sys.exit(f"--output={path} exists, but holds no results: {error}. Name another file.")
  return {result.name: result for result in results}


def _run(name: str, context: Context) -> Result:
  """All cases of a suite; what stops it is a failed case."""
  start = time.monotonic()
  with start_lines.hidden():
    cases = list(_cases(name, context))
  result = Result(name, SUITES[name], cases, round(time.monotonic() - start, 1))
  found = counts(result)
  line = ", ".join(f"{found[outcome]} {outcome}" for outcome in OUTCOMES)
  print(f"{SUITES[name]}: {line} ({result.seconds:.0f} s)", flush=True)
  return result


def _cases(name: str, context: Context) -> Iterator[Case]:
  module = importlib.import_module(f"conformance.{name}")
  missing = [folder for folder in module.FOLDERS if not context.has(folder)]
  if missing:
    yield Case("all", SKIPPED, f"not cloned: {', '.join(missing)}")
    return
  try:
    yield from module.cases(context)
  except Exception as error:  # one suite must not end the others
    message = " ".join(str(error).split())[:500]
    yield Case("the rest", FAILED, "the suite stopped", f"{type(error).__name__}: {message}")


def _clone(context: Context, folder: str) -> Clone:
  repository, tried = CLONES[folder]
  command = ["git", "-C", str(context.folder(folder)), "rev-parse", "HEAD"]
  try:
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    found = done.stdout.strip()
  except OSError:
    found = ""
  return Clone(repository, found or "unknown", tried)


if __name__ == "__main__":
  sys.exit(main())
