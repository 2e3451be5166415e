"""What smaller weights cost: the models of an export on a labelled file, held against float32.

  rows = measure("out/export", described, "MRPC/dev.tsv", run_folder)
  write("out/export", rows)                                     # accuracy.json

The task itself reads the file, says what a `Predictor` takes of it, and scores the answers.
"""

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from absl import logging

from bert.exporting import model_folder
from bert.exporting.model_folder import Described
from bert.io import atomic_files, installation, json_files, processor
from bert.predicting.engines import registry
from bert.predicting.predictor import Predictor
from bert.scripts import command_line, run_files, trained_task

_WARM_UP = 32  # items that are answered before time is taken


class Row(NamedTuple):
  """One model on one engine."""

  engine: str
  precision: str
  file: str
  megabytes: float
  texts_per_second: float
  # Share of the answers that say the same as those of float32, of the first engine; None where
  # answers are numbers alone.
  agreement: float | None
  largest_difference: float  # between numbers of the answers
  metrics: Mapping[str, float]  # of the task; empty where answers alone do not tell them


def measure(
  folder: str, model: Described, eval_file: str, trained_in: str | None
) -> dict[str, Any]:
  """Answers a labelled file with all models in a folder.

  Args:
    folder: of the export.
    model: what is known of it; it has a task.
    eval_file: of the task.
    trained_in: the folder of the run, whose flags say how the file is read.

  Returns:
    The file, the number of examples, the machine, and a `Row` for each model, as JSON.

  Raises:
    UsageError: the file has no example.
    ValueError: the file is malformed.
  """
  task = _task(folder, model, eval_file, trained_in)
  data = trained_task.labelled_set(task)
  if not data.examples:
    raise command_line.UsageError(f"--eval_file={eval_file} has no example.")
  where = f"--eval_file={eval_file}: "
  items = trained_task.items_of(task, data.examples, where, ", or omit the flag")
  rows: list[Row] = []
  first: list[Mapping[str, Any]] = []
  for engine, precision, file in _installed_models_in(folder):
    predictor = Predictor.load(folder, engine, precision=precision)
    answers, speed = _answers(predictor, items)
    first = first or answers
    size = os.path.getsize(os.path.join(folder, file)) / 1e6
    agreement, difference = compare(first, answers)
    scores = _scores(task, data, answers)
    rows.append(Row(engine, precision, file, size, speed, agreement, difference, scores))
    logging.info("%s", _line(rows[-1]))
  return {
    "eval_file": os.path.basename(eval_file),
    "examples": len(items),
    **machine(),
    "models": [row._asdict() for row in rows],
  }


def write(folder: str, report: Mapping[str, Any]) -> None:
  """Writes accuracy.json."""
  text = json.dumps(report, indent=2, ensure_ascii=False) + "\n"
  atomic_files.write_text(os.path.join(folder, model_folder.ACCURACY), text)


def _installed_models_in(folder: str) -> Iterator[registry.ExportedModel]:
  models = list(registry.models_in(folder))
  missing = {each.engine for each in models if not registry.is_installed(each.engine)}
  for engine in sorted(missing):
    logging.warning("%s is not installed: its models are not in the report.", engine)
  yield from (each for each in models if each.engine not in missing)


def _task(folder: str, model: Described, eval_file: str, trained_in: str | None) -> Any:
  """Makes the task of a run that reads the file, with the flags of the run that trained."""
  task_class = model.kind.task_class()
  path = os.path.join(trained_in or "", run_files.FLAGS)
  known = json_files.read_if_there(path, "Remove it.") if trained_in else {}
  known = task_class.teacher_flags({**known, **model.settings}, model.facts)
  return trained_task.make(
    model.kind,
    model.config,
    model.vocab_file,
    model.do_lower_case,
    folder,
    {**known, "max_seq_length": model.max_seq_length},
    eval_file,
  )


def _answers(predictor: Predictor, items: list) -> tuple[list, float]:
  """Answers all items; returns the answers, and how many there were in a second."""
  predictor(items[:_WARM_UP])
  start = time.perf_counter()
  answers = predictor(items)
  return answers, len(items) / (time.perf_counter() - start)


def _scores(task: Any, data: Any, answers: Sequence[Mapping[str, Any]]) -> dict[str, float]:
  """Scores answers, by short names; nothing where the task cannot score them."""
  found = trained_task.scores_of(task, data, answers, "the report has agreement alone")
  return {name.removeprefix("eval_"): value for name, value in found.items()}


# ---------------------------------------------------------------------------------------------
# Comparing answers.


def compare(
  expected: Sequence[Mapping[str, Any]], answers: Sequence[Mapping[str, Any]]
) -> tuple[float | None, float]:
  """Compares answers with those of another model.

  Returns:
    The share of answers whose words and whole numbers are equal, None where there are none; and the
    largest difference of other numbers, of those that are as many.

  Example:
    >>> compare([{"label": "a", "p": 0.5}], [{"label": "b", "p": 0.25}])
    (0.0, 0.25)
  """
  equal, difference, has_words = 0, 0.0, False
  for one, other in zip(expected, answers, strict=True):
    words, numbers = _parts(one)
    other_words, other_numbers = _parts(other)
    has_words = has_words or bool(words)
    equal += words == other_words
    for name, values in numbers.items():
      if values.shape == np.shape(other_numbers.get(name)) and values.size:
        difference = max(difference, float(np.abs(values - other_numbers[name]).max()))
  return (equal / max(len(expected), 1) if has_words else None), difference


def _parts(answer: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
  """Takes an answer apart: words and whole numbers; other numbers. Objects follow from both."""
  words: dict[str, Any] = {}
  numbers: dict[str, np.ndarray] = {}
  for name, value in answer.items():
    array = np.asarray(value) if not isinstance(value, (list, dict)) else None
    if isinstance(value, list) and not any(isinstance(each, dict) for each in value):
      array = np.asarray(value)
    if array is None:
      continue
    if array.dtype.kind == "f":
      numbers[name] = array
    else:
      words[name] = array.tolist()
  return words, numbers


def _line(row: Row) -> str:
  metrics = "".join(f", {name} {value:.4f}" for name, value in row.metrics.items())
  agreement = "" if row.agreement is None else f", {100 * row.agreement:.2f} % as float32"
  return (
    f"{row.file}: {row.megabytes:.1f} MB, {row.texts_per_second:.0f} texts/s{agreement}{metrics}"
  )


def machine() -> dict[str, Any]:
  """Names the processor and counts the cores that this process may use."""
  return {"processor": processor.cpu_name(), "cores": installation.num_cores()}
