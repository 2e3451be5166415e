"""One table for a run, divided into train, dev and test: `--data_dir=FILE`.

  OUTPUT_DIR/split/train.csv, dev.csv, test.csv     8 : 1 : 1, with the same shares of each label
  OUTPUT_DIR/split/split.json                       of which file, and by which seed

The split is written once, and read by all later runs in the folder. It depends on the file and the
seed alone. Examples with equal texts stay together. A run that does not train reads all of the
file, unless its folder, or that of its `--init_checkpoint`, has a split of it.
"""

import collections
import json
import os
import random
from collections.abc import Hashable, Iterator, Sequence
from typing import Any

from absl import logging

from bert.io import atomic_files, json_files
from bert.io.table_columns import TableReader
from bert.io.tables import DataError, Row, is_json_lines, read_table, row_writer
from bert.scripts import run_states
from bert.scripts.run_settings import FineTuningSettings
from bert.scripts.settings import UsageError
from bert.tasks import shared_texts, user_tables
from bert.tasks.user_tables import SPLIT_RECORD
from bert.training import distribution

SHARES = {"train": 0.8, "dev": 0.1, "test": 0.1}
_FOLDER = "split"
_BINS = 10  # of numbers, whose shares are the same in all parts


def check(task_class: Any, settings: FineTuningSettings) -> None:
  """Raises a UsageError where `--data_dir` is a table, but the task does not divide one."""
  path = settings.data_dir or ""
  if user_tables.is_table(path) and not _divides(task_class, settings):
    raise UsageError(
      f"--data_dir={path} is a file. Give the folder that holds it, in which the files have the "
      "names of the task; a table of your own is read by --task_name=csv."
    )


def _divides(task_class: Any, settings: FineTuningSettings) -> bool:
  """Tells whether the files of a task are tables of the user's own."""
  is_own = (settings.get("task_name") or "csv").lower() == "csv"
  return is_own and "jsonl" in task_class.file_endings


def with_split(
  task_class: Any, settings: FineTuningSettings, config: Any = None, tokenizer: Any = None
) -> FineTuningSettings:
  """Returns the settings; where `--data_dir` is a table, with the folder of its split.

  Raises:
    DataError: the table is malformed or too small, or not the one that was divided here.
  """
  if not user_tables.is_table(settings.data_dir or ""):
    return settings
  folder = distribution.on_chief(_find_or_write, task_class, settings, config, tokenizer)
  return settings.replace(data_dir=folder) if folder else settings


def _find_or_write(task_class, settings, config, tokenizer) -> str | None:
  """Returns the folder of the split; None where the run reads the whole table."""
  path, folder = settings.data_dir, settings.path(_FOLDER)
  found = {"file": os.path.abspath(path), "content": run_states.identity([path])}
  # What the model of --init_checkpoint has learned is not asked of it.
  earlier = [folder, *(os.path.join(each, _FOLDER) for each in [settings.init_folder] if each)]
  records = {each: _record_in(each) for each in earlier}
  for each, there in records.items():
    if there.get("content") == found["content"]:
      logging.info("%s was divided by an earlier run: reading %s.", path, each)
      return each
  for each, there in records.items():
    is_changed = there.get("file") == found["file"]
    if there and (each == folder if settings.do_train else is_changed):
      raise DataError(
        f"{each} has the split of {there.get('file')} as it was, and this is another content.",
        path,
        advice=f"Read the split, --data_dir={each}, or give another "
        + ("--output_dir." if settings.do_train else "file with rows that are not in it."),
      )
  if not settings.do_train:
    logging.info("%s is read whole: this run does not train, and no split of it is here.", path)
    return None
  header, parts, num_shared = _divided(task_class(settings, config, tokenizer), settings)
  sizes = {part: len(rows) for part, rows in parts.items()}
  if not all(sizes.values()):
    raise DataError(
      f"{sum(sizes.values())} rows, of which {num_shared} repeat the text of another one, are too "
      "few to divide.",
      path,
      advice="Give a folder with train.csv and dev.csv as --data_dir.",
    )
  with atomic_files.folder_written_whole(folder) as aside:
    for part, rows in parts.items():
      name = f"{part}.jsonl" if is_json_lines(path) else f"{part}.csv"
      write = row_writer(name, header)
      lines = [*([header] if header and name.endswith(".csv") else []), *rows]
      atomic_files.write_bytes(os.path.join(aside, name), b"".join(map(write, lines)))
    record = {**found, "seed": settings.seed, "rows": sizes}
    atomic_files.write_text(os.path.join(aside, SPLIT_RECORD), json.dumps(record, indent=2) + "\n")
  logging.info(
    "%s: %d rows, divided by --seed=%d into %s: %s. %d rows have the text of another one; these "
    "stay together.",
    *(path, sum(sizes.values()), settings.seed, folder),
    ", ".join(f"{part} {size}" for part, size in sizes.items()),
    num_shared,
  )
  return folder


def table_of(folder: str | None) -> str | None:
  """Returns the table whose split is in a folder; the folder where it holds none."""
  return _record_in(folder).get("file", folder) if folder else folder


def _record_in(folder: str) -> dict[str, Any]:
  return json_files.read_if_there(os.path.join(folder, SPLIT_RECORD), f"Remove {folder}.")


def _divided(
  task: Any, settings: FineTuningSettings
) -> tuple[list[str], dict[str, list[Row]], int]:
  """Returns header ([] without one), part -> rows, and the number of rows with equal texts.

  Rows of training are in random order: those of a table are often sorted.
  """
  examples = task.data_sets("train")[0].examples
  rows = _rows_of(examples, settings)
  keys, labels = [], []
  for number, example in enumerate(examples):
    try:
      texts = shared_texts.texts_of(task.view(example)[0])
    except AttributeError:  # the task has no view of its own
      texts = [str(value) for value in rows[number + 1]]
    # Empty texts are not equal to each other.
    keys.append(shared_texts.key(texts) if "".join(texts).strip() else ("", number))
    labels.append(_label_in(example))
  places = divide(keys, _binned(labels), settings.seed)
  parts = {
    part: [row for row, at in zip(rows[1:], places, strict=True) if at == part] for part in SHARES
  }
  random.Random(settings.seed).shuffle(parts["train"])
  return list(map(str, rows[0])), parts, len(keys) - len(set(keys))


def _rows_of(examples: Sequence[Any], settings: FineTuningSettings) -> list[Row]:
  """Returns the header, empty without one, and the row of each example."""
  path = settings.data_dir
  rows = read_table(path, TableReader(skip_bad_rows=True).on_bad_row)
  has_header = settings.get("header") is not False or is_json_lines(path)
  header = [rows[0] if has_header else Row([], path, 1, 0)]
  rows = rows[1:] if has_header else rows
  by_place = {row.source: row for row in rows}
  sources = [getattr(example, "source", None) for example in examples]
  if all(source in by_place for source in sources):
    return header + [by_place[source] for source in sources]
  if len(examples) == len(rows):
    return header + rows
  raise DataError(
    f"the table has {len(rows)} rows, the task makes {len(examples)} examples of them, which do "
    "not name their rows.",
    path,
    advice="Keep `source=row.source` in each example, or give a folder with train and dev files.",
  )


def _label_in(example: Any) -> Any:
  """Returns a label that is a number: of a class as a name, of a score as it is."""
  label = getattr(example, "label", None)
  if isinstance(label, float):
    return label
  several = label if isinstance(label, list | tuple) else [label]
  return {str(each) for each in several if each is not None}


def _binned(labels: Sequence[Any]) -> list[set[str]]:
  """Puts the name of a bin in the place of each number; bins are of equal size."""
  numbers = sorted((label, i) for i, label in enumerate(labels) if isinstance(label, float))
  found = list(labels)
  for rank, (_, i) in enumerate(numbers):
    found[i] = {f"{rank * _BINS // len(numbers)}"}
  return found


def divide(keys: Sequence[Hashable], labels: Sequence[set[str]], seed: int) -> list[str]:
  """Divides examples into the parts of `SHARES`.

  Args:
    keys: equal ones are in the same part.
    labels: of each example. All are in train, and of each about as large a share is in each part.
    seed: decides which examples are in which part.

  Returns:
    The part of each example.

  Example:
    >>> parts = divide(range(20), [{"a"}] * 10 + [{"b"}] * 10, seed=1)
    >>> [parts[:10].count(part) for part in SHARES], [parts[10:].count(part) for part in SHARES]
    ([8, 1, 1], [8, 1, 1])
  """
  parts, sizes, known = [""] * len(keys), dict.fromkeys(SHARES, 0), set[str]()
  for group in _by_rarest_label(keys, labels, random.Random(seed)):
    total = sum(sizes.values()) + len(group)
    names = set[str]().union(*(labels[i] for i in group))
    part = max(SHARES, key=lambda each: SHARES[each] * total - sizes[each])
    if names - known:
      part = "train"
    if part == "train":
      known |= names
    sizes[part] += len(group)
    for i in group:
      parts[i] = part
  return parts


def _by_rarest_label(keys, labels, order: random.Random) -> Iterator[list[int]]:
  """Yields groups of examples with equal keys, those of a label in random order."""
  counts = collections.Counter(name for names in labels for name in names)
  groups: dict[Hashable, list[int]] = {}
  for i, key in enumerate(keys):
    groups.setdefault(key, []).append(i)
  strata: dict[str, list[list[int]]] = {}
  for group in groups.values():
    names = set[str]().union(*(labels[i] for i in group))
    rarest = min(names, key=lambda name: (counts[name], name), default="")
    strata.setdefault(rarest, []).append(group)
  for name in sorted(strata):
    order.shuffle(strata[name])
    yield from strata[name]
