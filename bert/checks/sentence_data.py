"""Tables for `doctor.py`: those of GLUE, and the user's own."""

import inspect
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from bert.checks.findings import Finding, finding_from_error, note, share, warning
from bert.checks.task_data import SPLITS, TaskData, Text, TextSet
from bert.io import filesystem
from bert.io.tables import (
  DataError,
  by_reason,
  lines_of,
  reasons_of,
)
from bert.tasks import glue, label_counts, processors, user_tables

# Where a larger part of a file has one fault, it is the file that is to be mended, not its rows.
_MANY_BAD_ROWS = 0.1

_FLAGS = (
  *("text_a_column", "text_b_column", "id_column"),
  *("label_column", "labels", "problem_type", "label_separator", "header", "skip_bad_rows"),
)


class SentenceData(TaskData):
  """Texts or pairs of texts with labels, in a folder with train, dev and test."""

  endings = (".csv",)
  weak_endings = (".tsv", ".jsonl")
  reads_folder = True

  def sets(self, names):
    """Reads the splits of `--task_name`, by default tables of the user's own; or one table.

    Raises:
      ValueError: `--data_dir` is no folder, or a flag has a value that it cannot have.
    """
    subject = self.subject
    if not subject.data_dir:
      if len(names) != 1:
        raise ValueError("Tables are checked together: give the --data_dir of train, dev and test.")
      (subject.data_dir,) = names
    folder = subject.data_dir
    name = subject.task_name or "csv"
    is_one = name.lower() == "csv" and user_tables.is_table(folder)
    if not is_one and not filesystem.is_folder(folder):
      raise ValueError(
        f"--data_dir={folder} is not a folder: give the one with train, dev and test."
      )
    subject.facts["task_name"] = name.lower()  # known, even if its files cannot be read
    options = {flag: subject.settings.get(flag) for flag in _FLAGS}
    if name.lower() == "csv":
      options["data_dir"] = folder
    if "skip_bad_rows" in inspect.signature(glue.find_processor(name)).parameters:
      options["skip_bad_rows"] = True  # the good ones are examined, whatever the run does
    has_classes = self._has_classes(name, options)
    self.labels = self.processor.get_labels() if has_classes else []
    labels = self.labels or self.processor.get_labels()
    subject.facts |= processors.task_facts(name, self.processor, labels)
    # Without labels there is no training example, and the other splits cannot be read.
    if is_one:
      yield note("A run divides this table into train, dev and test; here it is whole.", folder)
    splits = SPLITS if self.labels or not has_classes else SPLITS[:1]
    yield from super().sets(splits[:1] if is_one else splits)

  def _has_classes(self, name: str, options: Mapping[str, Any]) -> bool:
    """Makes the processor; tells whether its labels are classes."""
    self.processor = glue.create_processor(name, **options)
    return self.processor.problem_type != "regression"

  def read(self, name):
    """Reads a split."""
    is_skipped = bool(self.subject.settings.get("skip_bad_rows"))
    bad_rows = getattr(self.processor, "bad_rows", {})
    try:
      examples = getattr(self.processor, f"get_{name}_examples")(self.subject.data_dir)
    except DataError as error:
      yield from _as_errors([each for each in bad_rows.values() if each.file == error.file])
      raise
    texts = [_text_of(example, name != "test") for example in examples]
    path = re.sub(r":\d+$", "", texts[0].where)
    separator = self.subject.settings.get("label_separator") or ","
    problem_type = self.processor.problem_type
    label_counts.log_labels(examples, self.labels, name, problem_type, separator)
    yield from malformed_rows(bad_rows.values(), path, len(examples), is_skipped)
    yield TextSet(name, path, texts, self.labels)


def malformed_rows(
  errors: Iterable[DataError], path: str, count: int, is_skipped: bool
) -> Iterator[Finding]:
  """Yields the malformed rows of a file, beside so many good ones, by reason.

  They are errors, unless `--skip_bad_rows` leaves them out.
  """
  errors = [each for each in errors if each.file == path]
  total = count + len(errors)
  if not is_skipped:
    yield from _as_errors(errors)
    return
  if not errors:
    return
  what = f"{share(len(errors), total)} of {total} rows are left out: {reasons_of(errors)}."
  many = len(errors) > _MANY_BAD_ROWS * total
  yield (warning if many else note)(what, path, "Correct them." if many else "")


def _as_errors(errors: Sequence[DataError]) -> Iterator[Finding]:
  """Yields an error for each reason, where it is first, with the lines of the others."""
  for group in by_reason(sorted(errors, key=lambda each: each.line or 0)):
    finding = finding_from_error(group[0])
    where = f"This is so in {len(group)} rows{lines_of(group)}."
    yield finding._replace(remedy=where) if group[1:] else finding


def _text_of(example, has_label: bool) -> Text:
  label = example.label if has_label else ()
  labels = label if isinstance(label, tuple) else (label,)
  where = (getattr(example, "source", None) or str(example.guid)).replace(", line ", ":")
  return Text(example.text_a, example.text_b, tuple(map(str, labels)), where)
