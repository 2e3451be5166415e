"""The examples of a task for `doctor.py`: what its run reads, by `Task.read` and `Task.view`."""

import functools
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from bert.checks.findings import Finding, RunUnderCheck, finding_from_error, note
from bert.io import filesystem
from bert.io.tables import DataError

SPLITS = ("train", "dev", "test")
_JOBS = {"train": "do_train", "dev": "do_eval", "test": "do_predict"}  # that need the split


class Text(NamedTuple):
  """One example, whatever the task."""

  first: str  # the text, or the question
  second: str  # the other texts, or ""
  labels: tuple[str, ...]  # none, one or several
  where: str  # file:line


class TextSet(NamedTuple):
  """The examples of one split, and the file they are from."""

  split: str  # train, dev, test or another name
  path: str  # of the file
  texts: Sequence[Text]  # the examples
  known_labels: Sequence[str] = ()  # all labels of the model; [] if labels are not classes
  is_whole: bool = True  # whether an example is one sequence, and its labels are of all of it
  # The number of tokens to which first texts are truncated, and the flag that says so.
  longest_first: tuple[int, str] | None = None


def split_of(path: str) -> str:
  """Returns the split in a file's name, else the name.

  Example:
    >>> split_of("squad/train-v1.1.json"), split_of("ner/wnut17_dev.conll"), split_of("a.txt")
    ('train', 'dev', 'a.txt')
  """
  name = os.path.basename(path)
  words = re.split(r"[^a-z]+", name.lower())
  return next((split for split in SPLITS if split in words), name)


def sets_of_folder(
  subject: RunUnderCheck, kind: Any, splits: Sequence[str]
) -> Iterator[TextSet | Finding]:
  """Reads splits of `--data_dir`; those without a file are named last."""
  changed: Mapping[str, Any] = {"data_dir": subject.data_dir}
  # Known even if the files cannot be read.
  name = (subject.task_name or "csv").lower() if kind.name == "sentences" else kind.name
  subject.facts["task_name"] = name
  found: list[TextSet | Finding] = []
  absent: list[Finding] = []
  for split in splits:
    reader = _Reader(subject, kind, changed)
    for each in reader.read(split, split, subject.data_dir or ""):
      if isinstance(each, Finding) and reader.is_absent:
        is_needed = subject.settings.get(_JOBS[split])
        absent.append(each if is_needed else each._replace(level=""))
      else:
        found.append(each)
    changed = {**changed, **reader.known}
  yield from found
  level = "note" if found else "error"
  yield from (each._replace(level=each.level or level) for each in absent)


def sets_of_files(
  subject: RunUnderCheck, kind: Any, paths: Sequence[str]
) -> Iterator[TextSet | Finding]:
  """Reads files, whose names tell their splits."""
  for path in paths:
    subject.facts["task_name"] = kind.name
    split = split_of(path)
    if kind.name == "squad":
      read_as = "train" if _has_answers_to_learn(subject, path) else "test"
      changed = {"train_file": path, "predict_file": path, "do_eval": False}
      changed |= {"version_2_with_negative": _has_unanswerable(path)}
    else:
      read_as = split if split in SPLITS else "dev"
      changed = {f"{read_as}_file": path}
    yield from _Reader(subject, kind, changed).read(read_as, split, path)


class _Reader:
  """Reads a split as a run does, and the good rows of a file with malformed ones.

  Attributes:
    known: flags with what was found, for the splits that are read next.
    is_absent: whether there is no file of the split.
  """

  def __init__(self, subject: RunUnderCheck, kind: Any, changed: Mapping[str, Any]):
    self._subject = subject
    self._kind = kind
    self.known = dict(changed)
    self.is_absent = False

  def read(self, read_as: str, split: str, path: str) -> Iterator[TextSet | Finding]:
    """Yields the examples of a split, and before them an error where its file has one."""
    skips = bool(self._subject.settings.get("skip_bad_rows"))
    try:
      yield self._set(read_as, split, path, skips)
      return
    except (ValueError, OSError) as failure:
      yield from self._failed(failure)
      if isinstance(failure, DataError) and (failure.line is None or skips):
        return
    except AttributeError as failure:
      yield note(f"The task does not tell the texts of {split}: write its method view. {failure}")
      return
    try:
      yield self._set(read_as, split, path, True)
    except (ValueError, OSError) as failure:
      yield from self._failed(failure)

  def _failed(self, failure: Exception) -> Iterator[Finding]:
    file = getattr(failure, "file", None) or ""
    self.is_absent = getattr(failure, "line", 0) is None and not filesystem.is_file(file)
    yield finding_from_error(failure)

  def _set(self, read_as: str, split: str, path: str, skips: bool) -> TextSet:
    subject = self._subject
    assert subject.make_task is not None
    task = subject.make_task(self._kind, subject.config, **self.known, skip_bad_rows=skips)
    data = task.data_sets(read_as)[0]
    if data.is_training:
      task.prepare(data)
    if not data.examples:
      raise DataError(f"there is no example for {split}.", path)
    facts = task.facts()
    if not self._kind.file:
      facts = {
        name: facts[name] for name in ("task_name", "labels", "problem_type") if name in facts
      }
    self._subject.facts |= facts
    if task.labels or data.is_training:
      task.check_data({read_as: [data]})
    has_classes = bool(task.labels) and task.problem_type != "regression"
    if has_classes and (task.settings.get("task_name") or "csv").lower() == "csv":
      self.known |= {"labels": list(task.labels)} if "labels" in task.settings.values else {}
    texts = [
      _text(task, example, has_classes and read_as != "test", f"{path}, {split} example {n}", path)
      for n, example in enumerate(data.examples, start=1)
    ]
    is_file = filesystem.is_file(path)
    limit = task.settings.get("max_query_length")
    return TextSet(
      split,
      path if is_file else re.sub(r":\d+$", "", texts[0].where),
      texts,
      task.labels if has_classes else (),
      is_whole=not {"words", "context"} & set(task.view(data.examples[0])[0]),
      longest_first=(limit, "--max_query_length") if limit else None,
    )


def _text(task: Any, example: Any, has_labels: bool, place: str, path: str) -> Text:
  item, gold = task.view(example)
  if "words" in item:
    first, others = " ".join(item["words"]), []
  else:
    first, *others = [
      str(text or "")
      for value in item.values()
      for text in (value if isinstance(value, list | tuple) else [value])
    ]
  several = gold if isinstance(gold, list | tuple) else [gold]
  if lines := getattr(example, "lines", None):
    place = f"{path}:{lines[0] + 1}"
  return Text(
    first,
    " ".join(others),
    tuple(str(each) for each in several if each is not None) if has_labels else (),
    (getattr(example, "source", None) or place).replace(", line ", ":"),
  )


def _has_answers_to_learn(subject: RunUnderCheck, path: str) -> bool:
  """Whether the answers in a file are to be learned, and not merely compared with."""
  get = subject.settings.get
  files = {job: (get(f"{job}_file") or "").split(",") for job in ("train", "predict")}
  is_training = path in files["train"] or (
    path not in files["predict"] and split_of(path) not in ("dev", "test")
  )
  return is_training and b'"answer_start"' in _content(path)


def _has_unanswerable(path: str) -> bool:
  return re.search(rb'"is_impossible"|"text":\s*\[\s*\]', _content(path)) is not None


@functools.lru_cache(maxsize=1)
def _content(path: str) -> bytes:
  from bert.text import text_files

  with text_files.open_bytes(path) as reader:
    return reader.read()
