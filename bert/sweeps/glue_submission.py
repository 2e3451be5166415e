"""The files that GLUE's server scores: https://gluebenchmark.com/submit takes `submission.zip`."""

import os
import zipfile
from collections.abc import Iterable, Mapping

from bert.io import atomic_files, tables
from bert.sweeps.glue import DIAGNOSTIC, TASKS

_SUBMISSION_FILES = (
  *(submission for task in TASKS.values() for _, _, submission in task.test_sets),
  DIAGNOSTIC.name,
)


def submission_text(task: str, predictions_file: str, test_file: str) -> str:
  """Writes a task's predictions as GLUE's server reads them: `index` and `prediction`.

  Args:
    task: its name; scores of STS-B are kept within 0 to 5, as GLUE's are.
    predictions_file: `predictions.tsv` of run_classifier.py.
    test_file: the texts that were predicted; its column `index` or `id`, if any, identifies rows.

  Raises:
    ValueError: the files differ in rows, as after --skip_bad_rows: GLUE needs every row.
  """
  with open(predictions_file, encoding="utf-8") as reader:
    values = [line.rstrip("\n").split("\t")[1] for line in reader][1:]
  indices = _indices(test_file)
  if len(indices) != len(values):
    raise ValueError(
      f"{test_file} has {len(indices)} rows, but {predictions_file} has {len(values)}: GLUE "
      "accepts only complete submissions."
    )
  if task == "STS-B":
    values = [_score_text(value) for value in values]
  rows = [f"{index}\t{value}\n" for index, value in zip(indices, values, strict=True)]
  return "".join(["index\tprediction\n", *rows])


def _indices(test_file: str) -> list[str]:
  header, *rows = tables.read_tsv(test_file)
  is_named = header[0].lower() in ("index", "id")
  return [row[0] if is_named else str(number) for number, row in enumerate(rows)]


def _score_text(text: str) -> str:
  """Writes a score of STS-B.

  Example:
    >>> _score_text("5.2093"), _score_text("-0.1"), _score_text("3.14159")
    ('5.000', '0.000', '3.142')
  """
  return f"{min(max(float(text), 0.0), 5.0):.3f}"


def write_submission(output_dir: str, texts: Mapping[str, str]) -> str:
  """Writes `submission/NAME.tsv` of each text and `submission.zip` of all; returns the latter."""
  folder = os.path.join(output_dir, "submission")
  os.makedirs(folder, exist_ok=True)
  for name in os.listdir(folder):
    if name.endswith(".tsv") and name[:-4] not in texts:  # of an earlier sweep over other tasks
      os.remove(os.path.join(folder, name))
  path = os.path.join(output_dir, "submission.zip")
  temporary = path + ".tmp"
  with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
    for name, text in texts.items():
      atomic_files.write_text(os.path.join(folder, f"{name}.tsv"), text)
      archive.write(os.path.join(folder, f"{name}.tsv"), f"{name}.tsv")
  atomic_files.force_to_disk(temporary)
  os.replace(temporary, path)
  return path


def missing_from_submission(names: Iterable[str]) -> list[str]:
  """Lists the files that GLUE's server expects in addition to these.

  Example:
    >>> missing_from_submission(set(_SUBMISSION_FILES) - {"MNLI-mm", "AX"})
    ['MNLI-mm', 'AX']
  """
  present = set(names)
  return [name for name in _SUBMISSION_FILES if name not in present]
