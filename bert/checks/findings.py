"""The run that `doctor.py` examines, its findings, and the loop over its checks.

  def check_house(subject):
    yield ok("It stands.", "house")

  findings = list(examine([check_house], RunUnderCheck(vocab_file="vocab.txt")))

A check is a generator: it takes the subject, yields findings, and stores in the subject what later
checks need. Plain Python, no TensorFlow.
"""

import contextlib
import dataclasses
import json
import logging as std_logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from absl import logging


class Finding(NamedTuple):
  """The result of one check."""

  # ok, note, warning or error: that makes the run fail, a warning probably spoils its result.
  level: str
  what: str  # the finding, in a sentence
  where: str = ""  # file, or file:line; "" if it has no location
  remedy: str = ""  # how to correct it; "" if nothing needs correction
  leaks: str = ""  # the split whose scores are too high because of it; "" of other findings

  def __str__(self):
    r"""One line.

    Example:
      >>> str(Finding("error", "two\nlines", "data/train.tsv:3", "Remove one."))
      'error    data/train.tsv:3: two lines Remove one.'
    """
    place = f"{self.where}: " if self.where and self.where not in self.what else ""
    line = " ".join(f"{place}{self.what} {self.remedy}".split())
    return f"{self.level:8} {line}"


def ok(what: str, where: str = "") -> Finding:
  """All is well."""
  return Finding("ok", what, where)


def note(what: str, where: str = "", remedy: str = "") -> Finding:
  """Worth knowing."""
  return Finding("note", what, where, remedy)


def warning(what: str, where: str = "", remedy: str = "") -> Finding:
  """Probably a mistake."""
  return Finding("warning", what, where, remedy)


def error(what: str, where: str = "", remedy: str = "") -> Finding:
  """A mistake."""
  return Finding("error", what, where, remedy)


@dataclasses.dataclass
class RunUnderCheck:
  """A planned run: flags by their names, and what checks have read so far."""

  bert_config_file: str | None = None
  vocab_file: str | None = None
  init_checkpoint: str | None = None
  data_dir: str | None = None
  input_file: str | None = None
  task_name: str | None = None
  do_lower_case: bool | None = True  # None where no text is read
  max_seq_length: int | None = None
  max_predictions_per_seq: int | None = None
  train_batch_size: int = 32
  dtype: str = "float32"
  output_dir: str | None = None
  keep_checkpoint_max: int = 5
  max_examples: int = 100_000
  checksums: bool = True
  # `get(flag)` says how data are to be read: their folder, columns, labels.
  settings: Any = dataclasses.field(default_factory=dict)

  # `make_task(kind, config, **changed)`: a task that reads data with changed settings.
  make_task: Callable[..., Any] | None = None
  config: Any = None  # a `configuration.BertConfig`, once it is read
  vocab: Mapping[str, int] | None = None  # token -> id, once it is read
  checkpoint: Any = None  # a `reading.Checkpoint`, once it is found
  longest: int | None = None  # the longest training sequence, in word pieces, once it is known
  # Of the task, as far as the data show it, for the fingerprint of a run.
  facts: dict[str, Any] = dataclasses.field(default_factory=dict)

  @classmethod
  def of(cls, values: Mapping[str, Any], **further: Any) -> "RunUnderCheck":
    """Describes the run of flags; `further` are fields that are no flags or computed from several.

    Flags that are no fields are skipped; `train_batch_size` becomes the size of the micro-batches.
    """
    fields = {field.name for field in dataclasses.fields(cls)} & set(values)
    subject = cls(**{**{name: values[name] for name in fields}, **further})
    parts = values.get("gradient_accumulation_steps", 1)
    subject.train_batch_size = -(-subject.train_batch_size // parts)
    return subject


Check = Callable[[RunUnderCheck], Iterator[Finding]]


def examine(checks: Iterable[Check], subject: RunUnderCheck) -> Iterator[Finding]:
  """Runs the checks in order; a check that raises an exception becomes a finding."""
  for check in checks:
    try:
      yield from check(subject)
    except (ValueError, OSError) as failure:  # raised by readers; names the fault and the location
      yield finding_from_error(failure)
    except Exception as failure:
      yield error(
        f"{check.__name__} ended in {type(failure).__name__}: {failure}",
        remedy="The other checks are not affected. Please report this bug.",
      )


def finding_from_error(failure: Exception, place: str = "") -> Finding:
  """Makes the finding for an exception of a reader; `place` for one that does not say where.

  Example:
    >>> found = finding_from_error(FileNotFoundError(2, "No such file or directory", "vocab.txt"))
    >>> found.level, found.what, found.where
    ('error', 'No such file or directory.', 'vocab.txt')
  """
  if isinstance(failure, OSError) and failure.filename is not None and failure.strerror:
    return error(f"{failure.strerror}.", str(failure.filename))
  text = str(failure) or type(failure).__name__
  file, line = getattr(failure, "file", None), getattr(failure, "line", None)
  if file is None:
    return error(text, place)
  place = file if line is None else f"{file}:{line}"
  said = f"{file}: " if line is None else f"{file}, line {line}: "
  return error(text.removeprefix(said), place)


@contextlib.contextmanager
def logged_warnings() -> Iterator[list[str]]:
  """Collects what the block logs as warnings, and shows none of it.

  What a run warns of when it reads its data, `doctor.py` reports so without a second check.
  """
  logger, said = logging.get_absl_logger(), list[str]()

  def keep(record) -> bool:
    if record.levelno == std_logging.WARNING:
      said.append(record.getMessage())
    return record.levelno > std_logging.WARNING

  level = logger.level
  logger.addFilter(keep)
  logger.setLevel(std_logging.WARNING)
  try:
    yield said
  finally:
    logger.removeFilter(keep)
    logger.setLevel(level)


# ---------------------------------------------------------------------------------------------
# Reporting.


def to_text(findings: Iterable[Finding]) -> str:
  """One line for each finding, and one that counts them."""
  findings = list(findings)
  return "\n".join([*map(str, findings), _count(findings)])


def to_json(findings: Iterable[Finding]) -> str:
  """`{"errors": 0, "warnings": 1, "findings": [{"level", "what", ...}, ...]}`: all values."""
  findings = list(findings)
  report = {
    "errors": number_of("error", findings),
    "warnings": number_of("warning", findings),
    "findings": [finding._asdict() for finding in findings],
  }
  return json.dumps(report, indent=2, ensure_ascii=False)


def number_of(level: str, findings: Iterable[Finding]) -> int:
  """The number of findings of a level."""
  return sum(finding.level == level for finding in findings)


def _count(findings) -> str:
  errors, warnings = (number_of(level, findings) for level in ("error", "warning"))
  return f"{len(findings)} findings: {errors} error(s), {warnings} warning(s)."


def share(part: float, whole: float) -> str:
  """A fraction as a percentage.

  Example:
    >>> share(1, 3), share(1, 5000), share(0, 0)
    ('33%', '0.02%', '0%')
  """
  value = part / whole if whole else 0.0
  return f"{value:.0%}" if not value or value >= 0.01 else f"{value:.2%}"
