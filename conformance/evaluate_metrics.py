"""huggingface/evaluate: the worked examples in its metrics' docstrings, beside our metrics.

The examples are read, not run: `metric.compute(predictions=..., references=...)` gives the inputs,
the line printed after it the expected value.
"""

import ast
import doctest
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from bert.tasks import metrics, squad_scores, tagging
from conformance.cases import SKIPPED, Case, Context, SuiteError, compare, read_with
from conformance.python_data import PythonFile

FOLDERS = ("evaluate",)
_METRICS = (
  *("glue", "accuracy", "f1", "precision", "recall", "matthews_correlation", "pearsonr"),
  *("spearmanr", "mse", "roc_auc", "squad", "squad_v2", "seqeval"),
)


def cases(context: Context) -> Iterator[Case]:
  """Each printed line of each metric's examples."""
  for metric in _METRICS:
    path = context.folder("evaluate") / "metrics" / metric / f"{metric}.py"
    yield from read_with(path, _file_cases)


class _NoCounterpart(Exception):  # noqa: N818
  """Our metrics lack an option; says which."""


def _file_cases(path) -> Iterator[Case]:
  file = PythonFile(path)
  texts = [text for text in file.names.values() if isinstance(text, str) and ">>>" in text]
  if not texts:
    raise SuiteError(f"{path}: a docstring with examples was expected.")
  reader = _Examples(file, path.stem)
  for text in texts:
    for example in doctest.DocTestParser().get_examples(text):
      yield from reader.read(example.source, example.want)


class _Examples:
  """Follows the statements of examples: names, results, and lines that are printed."""

  def __init__(self, file: PythonFile, metric: str):
    self._file, self._metric, self._config = file, metric, ""
    self._names: dict[str, Any] = {}
    self._results: dict[str, Any] = {}  # name -> ours, or why there is none
    self._number = 0

  def read(self, source: str, want: str) -> Iterator[Case]:
    [node] = ast.parse(source).body
    if isinstance(node, ast.Assign):
      self._assign(node.targets[0].id, node.value)
    elif want:
      self._number += 1
      name = f"{self._metric}: example {self._number}"
      try:
        yield self._printed(name, node.value, want)
      except _NoCounterpart as error:
        yield Case(name, SKIPPED, str(error))

  def _assign(self, name: str, node) -> None:
    called = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
    if called.endswith("load"):
      words = [self._file.value(each) for each in node.args]
      words += [self._file.value(each.value) for each in node.keywords]
      self._config = words[1] if len(words) > 1 else ""
    elif called.endswith(".compute"):
      keywords = {each.arg: self._file.value(each.value, self._names) for each in node.keywords}
      try:
        self._results[name] = _ours(self._metric, self._config, keywords)
      except _NoCounterpart as error:
        self._results[name] = error
    else:
      self._names[name] = self._file.value(node)

  def _printed(self, name: str, node, want: str) -> Case:
    if not (isinstance(node, ast.Call) and ast.unparse(node.func) == "print"):
      raise SuiteError(f"{self._file.path}: {name}: print(...) was expected.")
    shown = node.args[0]
    text = ast.unparse(shown)
    if "keys()" in text:
      raise _NoCounterpart("prints names, no values")
    ours = _rounded(self._value(shown))
    expected = _rounded(_expected(want))
    if isinstance(ours, dict) and isinstance(expected, dict):
      ours = {key: ours[key] for key in expected if key in ours}
    return compare(name, expected, ours, what=text)

  def _value(self, node) -> Any:
    """A result, a part of one, rounded or in a dictionary."""
    if isinstance(node, ast.Name):
      found = self._results.get(node.id)
      if isinstance(found, _NoCounterpart):
        raise found
      return found
    if isinstance(node, ast.Subscript):
      found, key = self._value(node.value), self._file.value(node.slice)
      if key not in found:
        raise _NoCounterpart(f"no {key}")
      return found[key]
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "round":
      found = self._value(node.args[0])
      return round(found, self._file.value(node.args[1]))
    if isinstance(node, ast.Dict):
      pairs = zip(node.keys, node.values, strict=True)
      return {self._file.value(key): self._value(item) for key, item in pairs}
    raise _NoCounterpart("prints what this project does not return")


def _expected(want: str) -> Any:
  text = re.sub(r"array\((\[.*?\])\)", r"\1", want.strip())
  try:
    return ast.literal_eval(text)
  except (ValueError, SyntaxError):
    raise _NoCounterpart("prints what this project does not return") from None


def _rounded(value: Any) -> Any:
  """Numbers to 12 places: the order of sums differs."""
  if isinstance(value, dict):
    return {key: _rounded(item) for key, item in value.items()}
  if isinstance(value, (list, tuple, np.ndarray)):
    return [_rounded(item) for item in value]
  return round(float(value), 12) if isinstance(value, (int, float)) else value


# ---------------------------------------------------------------------------------------------
# Ours, by their names.


def _ours(metric: str, config: str, arguments: dict[str, Any]) -> dict[str, Any]:
  """Our scores under the names of the suite's.

  Raises:
    _NoCounterpart: an argument is an option that ours does not have.
  """
  arguments = dict(arguments)
  inputs = [arguments.pop("references"), _predictions(arguments)]
  if metric == "roc_auc":
    if config:
      raise _NoCounterpart("AUC of several classes or labels: no such option")
    return {"roc_auc": metrics.auc(*map(np.array, inputs))}
  if arguments.pop("return_pvalue", False):
    pass  # the correlation beside it is the same
  if metric in _TEXT_METRICS:
    _refuse(arguments)
    return _TEXT_METRICS[metric](*inputs)
  references, predictions = map(np.array, inputs)
  if metric == "glue":
    _refuse(arguments)
    return {key: _NUMBERS[key](references, predictions) for key in _GLUE[config]}
  if metric in ("f1", "precision", "recall"):
    average = arguments.pop("average", "binary")
    if average not in ("binary", "macro", "micro"):
      raise _NoCounterpart("scores weighted by class, or of each class: no such option")
    _refuse(arguments)
    return {metric: getattr(metrics, metric)(references, predictions, average)}
  _refuse(arguments)
  if config in ("multilabel", "multilist"):
    raise _NoCounterpart("several labels or columns at once: no such option")
  return {metric: _NUMBERS[metric](references, predictions)}


def _predictions(arguments: dict[str, Any]) -> list:
  name = "prediction_scores" if "prediction_scores" in arguments else "predictions"
  return arguments.pop(name)


_OPTIONS = {
  "sample_weight": "examples with weights",
  "pos_label": "another class than 1 as the positive one",
  "normalize": "counts instead of shares",
  "squared": "the root of the mean squared error",
}


def _refuse(arguments: dict[str, Any]) -> None:
  if arguments:
    first = next(iter(arguments))
    raise _NoCounterpart(f"{_OPTIONS.get(first, first)}: no such option")


_NUMBERS: dict[str, Callable] = {
  "accuracy": metrics.accuracy,
  "f1": metrics.f1,
  "matthews_correlation": metrics.matthews_corrcoef,
  "pearson": metrics.pearson,
  "pearsonr": metrics.pearson,
  "spearmanr": metrics.spearman,
  "mse": metrics.mse,
}
_GLUE = {
  "sst2": ("accuracy",),
  "mrpc": ("accuracy", "f1"),
  "stsb": ("pearson", "spearmanr"),
  "cola": ("matthews_correlation",),
}


def _squad(references: list[dict], predictions: list[dict]) -> dict[str, float]:
  answers = {each["id"]: each["answers"]["text"] for each in references}
  return squad_scores.evaluate_v1(answers, {p["id"]: p["prediction_text"] for p in predictions})


def _squad_v2(references: list[dict], predictions: list[dict]) -> dict[str, float]:
  answers = {each["id"]: each["answers"]["text"] for each in references}
  texts = {each["id"]: each["prediction_text"] for each in predictions}
  odds = {each["id"]: each["no_answer_probability"] for each in predictions}
  return squad_scores.evaluate_v2(answers, texts, odds)


def _seqeval(references: list, predictions: list) -> dict[str, Any]:
  scores = tagging.score(references, predictions)
  names = ("precision", "recall", "f1", "accuracy")
  found: dict[str, Any] = {f"overall_{name}": scores[name] for name in names}
  types = [key.removeprefix("f1_") for key in scores if key.startswith("f1_")]
  return found | {each: {"f1": scores[f"f1_{each}"]} for each in types}


_TEXT_METRICS = {"squad": _squad, "squad_v2": _squad_v2, "seqeval": _seqeval}
