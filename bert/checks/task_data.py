"""The data of a task as `doctor.py` sees them, where there is no run.

The row of a kind (`tasks/kinds.py`) names a subclass of `TaskData`; that of tasks of one's own is
`own_data.OwnData`.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import ClassVar, NamedTuple

from bert.checks.findings import Finding, RunUnderCheck, finding_from_error
from bert.io import filesystem

SPLITS = ("train", "dev", "test")
_JOBS = {"train": "do_train", "dev": "do_eval", "test": "do_predict"}  # that need the split


class Text(NamedTuple):
  """One example, whatever the task."""

  first: str  # the text, or the question
  second: str | None  # the second text, or the paragraph, or None
  labels: tuple[str, ...]  # none, one or several
  where: str  # file:line


class TextSet(NamedTuple):
  """The examples of one split, and the file they are from."""

  split: str  # train, dev, test or another name
  path: str  # of the file
  texts: Sequence[Text]  # the examples
  known_labels: Sequence[str] = ()  # all labels of the model; [] if labels are not classes
  is_whole: bool = True  # whether an example is one sequence, and its labels are of all of it
  # What labels of words are counted as, such as their types; None of other labels.
  counted_as: Callable[[str], str] | None = None
  # The number of tokens to which first texts are cut, and the flag that says so.
  longest_first: tuple[int, str] | None = None


class TaskData:
  """Recognises and reads the data files of a task.

  Attributes:
    endings: of files that are of this task, whatever they hold.
    weak_endings: of files that are of this task, unless they look like those of another.
    reads_folder: whether it reads splits of `--data_dir`, which `--task_name` names, not files.
  """

  endings: ClassVar[tuple[str, ...]] = ()
  weak_endings: ClassVar[tuple[str, ...]] = ()
  reads_folder: ClassVar[bool] = False

  def __init__(self, subject: RunUnderCheck):
    self.subject = subject

  @classmethod
  def looks_like(cls, head: str) -> bool:
    """Tells whether a file is of this task by its first 64 KiB."""
    return False

  def read(self, name: str) -> Iterator[TextSet | Finding]:
    """Reads a file, or a split of the folder; what the data show of the task joins the facts.

    Raises:
      ValueError: it is malformed.
      OSError: it cannot be read.
    """
    raise NotImplementedError

  def sets(self, names: Iterable[str]) -> Iterator[TextSet | Finding]:
    """Reads files or splits, also where one cannot be read; absent splits are named last."""
    found: list[TextSet | Finding] = []
    absent: list[Finding] = []
    for name in names:
      try:
        found += self.read(name)
      except (ValueError, OSError) as failure:
        file = getattr(failure, "file", None) or ""
        is_absent = getattr(failure, "line", 0) is None and not filesystem.is_file(file)
        finding = finding_from_error(failure, "" if self.reads_folder else name)
        if not (is_absent and self.reads_folder):
          found.append(finding)
        else:
          is_needed = self.subject.settings.get(_JOBS.get(name, ""))
          absent.append(finding if is_needed else finding._replace(level=""))
    yield from found
    level = "note" if found else "error"
    yield from (each._replace(level=each.level or level) for each in absent)


def split_of(path: str) -> str:
  """Returns the split in a file's name, else the name.

  Example:
    >>> split_of("squad/train-v1.1.json"), split_of("ner/wnut17_dev.conll"), split_of("a.txt")
    ('train', 'dev', 'a.txt')
  """
  name = os.path.basename(path)
  words = re.split(r"[^a-z]+", name.lower())
  return next((split for split in SPLITS if split in words), name)
