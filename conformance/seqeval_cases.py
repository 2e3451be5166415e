"""chakki-works/seqeval: entities and scores, beside our own reading of labels.

`bert.tasks.tagging.score` calls the installed seqeval; what is ours is the reading of labels
(`label_schemes`) and the conversion between schemes. Ours reads malformed labels as conlleval, the
script of the CoNLL tasks, does; seqeval's strict mode drops them. A case of the strict mode counts
as passed if both agree, and is listed if ours is what seqeval gives in its default mode. The
clone's `conlleval.pl` is run on the same labels, if Perl is there.
"""

import ast
import random
import re
import shutil
import subprocess
from collections.abc import Iterator
from typing import Any

from bert.tasks import label_schemes, tagging
from bert.tasks.label_schemes import convert_labels as convert
from conformance.cases import (
  FAILED,
  LISTED,
  SKIPPED,
  Case,
  Context,
  SuiteError,
  compare,
  read_text,
  read_with,
)
from conformance.python_data import PythonFile, Test

FOLDERS = ("seqeval",)
_FILES = ("test_metrics.py", "test_v1.py", "test_scheme.py")
_OWN_CLASSES = "tests a class, a warning or an error message of its own"
_NO_TYPES = "labels without a type, or with the letter last: no such option"
_AVERAGES = "an average of types that no script reports"
_OUR_SCHEMES = {"iob1": "iob1", "iob2": "bio", "iobes": "bioes", "bilou": "bilou"}
_RANDOM_FILES = 50


def cases(context: Context) -> Iterator[Case]:
  """Cases of three files, and conlleval's output on the labels of the tests."""
  folder = context.folder("seqeval") / "tests"
  for name in _FILES:
    yield from read_with(folder / name, _file_cases)
  yield from read_with(folder / "conlleval.pl", lambda path: _beside_conlleval(context, path))


def _file_cases(path) -> Iterator[Case]:
  file = PythonFile(path)
  for test in file.tests():
    rule = _RULES.get(test.name)
    strict = re.fullmatch(r"test_(iob1|iob2|iobes|bilou)_tokens", test.name)
    for number, run in enumerate(test.parameters or [{}]):
      name = f"{path.name}: {test.name}[{number}]"
      if strict:
        yield _strict_entities(name, run, _OUR_SCHEMES[strict[1]])
      elif rule:
        yield from rule(file, test, name, run)
      else:
        yield Case(name, SKIPPED, _SKIPPED.get(test.name, _OWN_CLASSES))


_SKIPPED = {
  "TestMetrics.test_get_entities_with_suffix_style": _NO_TYPES,
  "TestMetrics.test_get_entities_with_only_IOB": _NO_TYPES,
  "TestMetrics.test_get_entities_with_non_NE_input": _NO_TYPES,
  **{f"test_{scheme}_tokens_without_tag": _NO_TYPES for scheme in (*_OUR_SCHEMES, "ioe1", "ioe2")},
  **{f"test_{scheme}_tokens": "IOE: no such scheme" for scheme in ("ioe1", "ioe2")},
  "TestMetrics.test_by_ground_truth": "below, as conlleval.pl on the same labels",
  "TestMetrics.test_statistical_tests": "below, as conlleval.pl on random labels",
  "TestMetrics.test_metrics_for_inv_data": _NO_TYPES,
}


def _entities(labels: list[str], scheme: str) -> list[list]:
  """Ours as theirs writes them: type, first word, last word."""
  found = label_schemes.entities_of(labels, scheme)
  return [[entity.type, entity.start, entity.end - 1] for entity in found]


def _strict_entities(name: str, run: dict[str, Any], scheme: str) -> Case:
  # (type, first word, the one after the last).
  expected = sorted([kind, start, end - 1] for kind, start, end in run["expected"])
  labels = run["tokens"]
  ours = sorted(_entities(labels, scheme))
  if ours == expected:
    return compare(name, expected, ours, what=labels)
  from seqeval.metrics.sequence_labeling import get_entities

  letters = {"L": "E", "U": "S"} if scheme == "bilou" else {}  # the default mode has no BILOU
  plain = [letters.get(label[0], label[0]) + label[1:] for label in labels]
  default = sorted(list(entity) for entity in get_entities(plain))
  detail = f"{labels}: strict {expected}, ours {ours}, seqeval's default mode {default}"
  if ours == default:
    reason = "malformed labels: ours reads them as seqeval's default mode and conlleval do"
    return Case(name, LISTED, reason, detail)
  return Case(name, FAILED, "ours differs from both modes of seqeval", detail)


def _get_entities(file: PythonFile, test: Test, name: str, run) -> Iterator[Case]:
  names = _assigned(file, test)
  [expected] = [
    file.value(node.args[1])
    for node in ast.walk(test.node)
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "self.assertEqual"
  ]
  yield compare(name, expected, _entities(names["y_true"], "bio"), what=names["y_true"])


def _assigned(file: PythonFile, test: Test) -> dict[str, Any]:
  found = {}
  for node in ast.walk(test.node):
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
      try:
        found[node.targets[0].id] = file.value(node.value)
      except SuiteError:
        continue
    is_pair = isinstance(node, ast.Assign) and isinstance(node.value, ast.Tuple)
    if is_pair and isinstance(node.targets[0], ast.Tuple):
      names = [each.id for each in node.targets[0].elts]
      found.update(zip(names, file.value(node.value), strict=True))
  return found


def _f1(file: PythonFile, test: Test, name: str, run) -> Iterator[Case]:
  """The default mode's F1: of each type, pooled, and the mean of types."""
  names = _assigned(file, test)
  scores = tagging.score(names["y_true"], names["y_pred"])
  if run["average"] == "micro":
    yield compare(name, run["expected"], scores["f1"])
  elif run["average"] is None:
    by_type = [value for key, value in scores.items() if key.startswith("f1_")]
    yield compare(name, list(run["expected"]), by_type)
  else:
    yield Case(name, SKIPPED, _AVERAGES)


def _v1_scores(file: PythonFile, test: Test, name: str, run) -> Iterator[Case]:
  """Precision, recall, F1 and support of each type; all labels are well formed."""
  names = _assigned(file, test)
  scores = tagging.score(names["y_true"], names["y_pred"])
  types = sorted(key.removeprefix("f1_") for key in scores if key.startswith("f1_"))
  kinds = zip(_expected_arrays(file, test), ("precision", "recall", "f1", "support"), strict=True)
  for expected, kind in kinds:
    found = [round(scores[f"{kind}_{each}"], 2) for each in types]
    yield compare(f"{name}, {kind}", expected, found)


def _expected_arrays(file: PythonFile, test: Test) -> list[list]:
  return [
    file.value(node.args[1])
    for node in ast.walk(test.node)
    if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("assert_array")
  ]


def _v1_average(file: PythonFile, test: Test, name: str, run) -> Iterator[Case]:
  if run["average"] != "micro":
    yield Case(name, SKIPPED, _AVERAGES)
    return
  names = _assigned(file, test)
  scores = tagging.score(names["y_true"], names["y_pred"])
  found = [round(scores[kind], 2) for kind in ("precision", "recall", "f1")]
  support = sum(value for key, value in scores.items() if key.startswith("support_"))
  yield compare(name, run["expected"], [*found, support])


_RULES = {
  "TestMetrics.test_get_entities": _get_entities,
  "TestF1score.test_conll_f1score": _f1,
  "TestPrecisionRecallFscoreSupport.test_scores": _v1_scores,
  "TestPrecisionRecallFscoreSupport.test_average_scores": _v1_average,
}

# ---------------------------------------------------------------------------------------------
# The script of the CoNLL tasks.

_LINE = re.compile(
  r"accuracy:\s*([\d.]+)%; precision:\s*([\d.]+)%; recall:\s*([\d.]+)%; FB1:\s*([\d.]+)"
)


def _beside_conlleval(context: Context, path) -> Iterator[Case]:
  read_text(path)
  perl = shutil.which("perl")
  names = ["ground_truth.txt", *(f"random labels {seed}" for seed in range(_RANDOM_FILES))]
  for number, name in enumerate(names):
    title = f"conlleval.pl: {name}"
    if perl is None:
      yield Case(title, SKIPPED, "Perl is not installed")
      continue
    text = _random_labels(number) if number else read_text(path.parent / "data" / name)
    yield from _conlleval_case(title, perl, path, text)


def _conlleval_case(title: str, perl: str, path, text: str) -> Iterator[Case]:
  """Scores of entities on the labels as they are; and accuracy on them as BIO, as ours counts it.

  `run_ner.py` writes malformed labels as the BIO of the entities that they stand for, so it
  counts a word as right whose label becomes right by that.
  """
  gold, predicted = _columns(text)
  scores = tagging.score(gold, predicted)
  ours = [f"{100 * scores[key]:.2f}" for key in ("precision", "recall", "f1")]
  yield compare(title, _conlleval(perl, path, gold, predicted)[1:], ours)
  as_bio = [[convert(labels, "bio", "bio") for labels in side] for side in (gold, predicted)]
  ours.insert(0, f"{100 * scores['accuracy']:.2f}")
  yield compare(f"{title}, as BIO", _conlleval(perl, path, *as_bio), ours)


def _conlleval(perl: str, path, gold: list, predicted: list) -> list[str]:
  """Accuracy, precision, recall and F1, in percent with two digits."""
  sentences = zip(gold, predicted, strict=True)
  text = "".join(
    "".join(f"X X {one} {two}\n" for one, two in zip(*sentence, strict=True)) + "\n"
    for sentence in sentences
  )
  done = subprocess.run([perl, str(path)], input=text, capture_output=True, text=True, timeout=60)
  found = _LINE.search(done.stdout)
  if not found:
    raise SuiteError(f"{path}: conlleval's line of scores was expected: {done.stdout[:200]!r}")
  return list(found.groups())


def _columns(text: str) -> tuple[list, list]:
  gold, predicted = [[]], [[]]
  for line in text.splitlines():
    words = line.split()
    if words:
      gold[-1].append(words[2])
      predicted[-1].append(words[3])
    elif gold[-1]:
      gold.append([])
      predicted.append([])
  return [labels for labels in gold if labels], [labels for labels in predicted if labels]


def _random_labels(seed: int) -> str:
  """Lines of four columns with labels in no order, well formed or not."""
  draw = random.Random(seed)
  lines = []
  for _ in range(1000):
    labels = []
    for _ in range(2):
      letter = draw.choice("BIO")
      labels.append(
        "O" if letter == "O" else f"{letter}-{draw.choice(['PER', 'ORG', 'LOC', 'MISC'])}"
      )
    lines.append(f"X X {labels[0]} {labels[1]}\n")
    if draw.random() > 0.95:
      lines.append("\n")
  return "".join(lines)
