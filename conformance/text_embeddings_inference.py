"""huggingface/text-embeddings-inference: vectors of all-MiniLM-L6-v2, beside our Predictor.

Its Rust tests say which texts make a snapshot, how they are pooled, and whether the snapshot holds
pooled vectors or those of all pieces. The CPU's snapshots are float32; those of the GPU (flash
attention) are float16 and are only as exact as that.

Not all snapshots are equally exact: two of them may hold different vectors of one text. Where a
CPU's snapshot differs from ours by more than the limit, both are compared with the same formulas in
float64 (`exact_encoder`); the case is listed if ours is the one that agrees.
"""

import dataclasses
import pathlib
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from bert.tokenization import FullTokenizer
from conformance.cases import (
  FAILED,
  LISTED,
  PASSED,
  SKIPPED,
  Case,
  Context,
  SuiteError,
  read_text,
  read_with,
)
from conformance.exact_encoder import ExactEncoder

FOLDERS = ("text-embeddings-inference",)
_TESTS = "backends/candle/tests"
_MODEL = "sentence-transformers/all-MiniLM-L6-v2"
# File of tests -> largest difference: of float32, and of float16 (1 of its 1,024 steps near 1,
# several layers deep).
_LIMITS = {"test_bert.rs": 2e-5, "test_flash_bert.rs": 5e-3}
# Ours in float32 is this near to the exact value, or the case fails.
_EXACT = 5e-6
_OTHER_MODELS = "of another model than all-MiniLM-L6-v2"


def cases(context: Context) -> Iterator[Case]:
  """One case for each snapshot; those of other models are skipped."""
  folder = context.folder("text-embeddings-inference") / _TESTS
  seen: set[str] = set()
  encoders: dict[str, Any] = {}
  for name in _LIMITS:
    yield from read_with(folder / name, lambda path: _file_cases(context, path, seen, encoders))
  for path in sorted((folder / "snapshots").glob("*.snap")):
    if path.name not in seen:
      yield Case(path.name, SKIPPED, _OTHER_MODELS)


class Snapshot(NamedTuple):
  """What a test says of a snapshot.

  Attributes:
    name: of its file, without the test file's.
    pooling: `mean` or `cls`, of the pooled vectors.
    texts: the texts of the batch.
    rows: the texts whose vectors it holds, in order.
    is_raw: whether it holds a vector for each piece.
  """

  name: str
  pooling: str
  texts: list[str]
  rows: list[int]
  is_raw: bool


def _file_cases(context: Context, path: pathlib.Path, seen: set[str], encoders) -> Iterator[Case]:
  for snapshot in read_tests(path):
    file = path.parent / "snapshots" / f"{path.stem}__{snapshot.name}.snap"
    seen.add(file.name)
    if context.weights is None:
      yield Case(file.name, SKIPPED, "needs all-MiniLM-L6-v2: WEIGHTS=FOLDER")
      continue
    expected = read_snapshot(file)
    pooling = "none" if snapshot.is_raw else snapshot.pooling
    if pooling not in encoders:
      encoders[pooling] = _encoder(context, pooling)
    found = _chosen(snapshot, encoders[pooling](snapshot.texts))
    case = _compared(file.name, expected, found, _LIMITS[path.name])
    if case.outcome == FAILED and expected.shape == found.shape:
      exact = _chosen(snapshot, _exact_vectors(context, snapshot))
      case = _judged(case, expected, found, exact)
    yield case


def _chosen(snapshot: Snapshot, vectors: list) -> np.ndarray:
  """The vectors that a snapshot holds, of those of its batch: `[N, W]`."""
  rows = [vectors[row] for row in snapshot.rows]
  return np.concatenate(rows) if snapshot.is_raw else np.stack(rows)


def _exact_vectors(context: Context, snapshot: Snapshot) -> list[np.ndarray]:
  """The batch's vectors in float64."""
  encode = ExactEncoder(context.weights)
  tokenizer = FullTokenizer(str(context.weights / "vocab.txt"))
  pool = {"mean": lambda pieces: pieces.mean(axis=0), "cls": lambda pieces: pieces[0]}
  pieces = [encode(tokenizer.encode_batch([text])["input_ids"][0]) for text in snapshot.texts]
  return pieces if snapshot.is_raw else list(map(pool[snapshot.pooling], pieces))


def _judged(case: Case, expected: np.ndarray, found: np.ndarray, exact: np.ndarray) -> Case:
  ours, theirs = (float(np.abs(each - exact).max()) for each in (found, expected))
  detail = f"from the same formulas in float64, ours is {ours:.2g} and the snapshot {theirs:.2g}"
  if ours <= _EXACT and ours < theirs:
    reason = f"{case.reason}; {detail}"
    return dataclasses.replace(case, outcome=LISTED, reason=reason)
  return dataclasses.replace(case, detail=detail)


def _encoder(context: Context, pooling: str):
  from bert.predicting.predictor import Predictor

  return Predictor.load(str(context.weights), task="vectors", pooling=pooling)


def _compared(name: str, expected: np.ndarray, found: np.ndarray, limit: float) -> Case:
  if expected.shape != found.shape:
    shapes = f"the snapshot is {expected.shape}, ours {found.shape}"
    return Case(name, FAILED, "another number of vectors", shapes)
  difference = float(np.abs(expected - found).max())
  outcome = PASSED if difference <= limit else FAILED
  reason = "" if outcome == PASSED else f"differs by {difference:.3g}, more than {limit:g}"
  return Case(name, outcome, reason, difference=difference)


# ---------------------------------------------------------------------------------------------
# Reading Rust tests and snapshots.

_FUNCTION = re.compile(r"^fn (\w+)\(\).*?^\}", re.DOTALL | re.MULTILINE)
_POOL = re.compile(r"Pool::(\w+)")
_STEP = re.compile(
  r"batch\(\s*vec!\[(?P<texts>.*?)\],\s*(?P<pooled>\[[\d, ]*\]\.to_vec\(\)|vec!\[\]),"
  r"\s*(?P<raw>\[[\d, ]*\]\.to_vec\(\)|vec!\[\]),?\s*\)"
  r"|let (?P<made>\w+) = SnapshotEmbeddings::from\((?P<source>\w+)\)"
  r'|assert_yaml_snapshot!\("(?P<name>\w+)",\s*(?P<shown>\w+)',
  re.DOTALL,
)
_TEXT = re.compile(r'encode\(\s*"((?:[^"\\]|\\.)*)"')


def read_tests(path: pathlib.Path) -> list[Snapshot]:
  """The snapshots of the model's tests in a file.

  Raises:
    SuiteError: a test of the model has another form than expected.
  """
  found = []
  for function in _FUNCTION.finditer(read_text(path)):
    body = function[0]
    if _MODEL not in body:
      continue
    pool = _POOL.search(body)
    if not pool:
      raise SuiteError(f"{path}: {function[1]}: a pooling was expected.")
    found += _snapshots(path, function[1], body, pool[1].lower())
  return found


def _snapshots(path, function: str, body: str, pooling: str) -> Iterator[Snapshot]:
  batch, sources = None, {}
  for step in _STEP.finditer(body):
    if step["texts"] is not None:
      batch = step
    elif step["made"]:
      sources[step["made"]] = step["source"]
    elif batch is None or not sources.get(step["shown"], "").endswith("_embeddings"):
      raise SuiteError(f"{path}: {function}: a batch was expected before {step['name']}.")
    else:
      is_raw = sources[step["shown"]] == "raw_embeddings"
      rows = [int(number) for number in re.findall(r"\d+", batch["raw" if is_raw else "pooled"])]
      yield Snapshot(step["name"], pooling, _TEXT.findall(batch["texts"]), rows, is_raw)


def read_snapshot(path: pathlib.Path) -> np.ndarray:
  """The vectors of a snapshot: float64 `[N, W]`.

  Raises:
    SuiteError: a line is no number of a list of lists, with its number; or vectors differ in
      length.
  """
  rows: list[list[float]] = []
  lines = read_text(path).split("\n")
  if lines.count("---") < 2:
    raise SuiteError(f"{path}: a head between two lines '---' was expected.")
  first = lines.index("---", 1) + 1
  for number, line in enumerate(lines[first:], start=first + 1):
    if not line.strip():
      continue
    is_new, rest = line.startswith("- - "), line[4:]
    if not is_new and not line.startswith("  - "):
      raise SuiteError(f"{path}:{number}: a vector's number was expected, not {line[:40]!r}.")
    try:
      value = float(rest)
    except ValueError:
      raise SuiteError(f"{path}:{number}: a number was expected, not {rest[:40]!r}.") from None
    if is_new:
      rows.append([])
    rows[-1].append(value)
  if len({len(row) for row in rows}) != 1:
    raise SuiteError(f"{path}: {len(rows)} vectors, of {sorted({len(r) for r in rows})} numbers.")
  return np.array(rows)
