"""What the labels of a data set look like: counts, and what is probably a mistake.

  log_labels(examples, labels, "train")
  # INFO  Labels of 600 train examples: food 310, sport 200, Sport 90.
  # WARNING  The labels 'sport' (200), 'Sport' (90) are 2 classes, and differ in case, ...

Nothing here changes a label: a warning names what to correct in the file, or the flag that does
it. Pure Python.
"""

import collections
import unicodedata
from collections.abc import Iterable, Iterator, Sequence

from absl import logging

from bert.io.tables import DataError

_NUM_SHOWN = 12

# A column with fewer rows can be anything.
_MIN_ROWS_TO_JUDGE = 20

_SEPARATORS = (",", ";", "|")

# How programs write a value that is missing.
_MISSING = {"nan", "NaN", "NAN", "None", "null", "NULL", "n/a", "N/A", "#N/A", "<NA>"}


def log_labels(
  examples: Sequence,
  labels: Sequence[str],
  set_name: str,
  problem_type: str = "classification",
  separator: str = ",",
) -> None:
  """Logs how often each label occurs, and warns of labels that are probably mistakes.

  Warnings are about the set `train`, not `dev`. Labels are those of the model's outputs; the
  separator is what stands between several in a text.
  """
  values = [example.label for example in examples if example.label is not None]
  if not values:
    return
  if problem_type == "regression":
    _log_scores([float(value) for value in values], set_name)
    return
  is_multi_label = problem_type == "multi_label"
  counts = collections.Counter(
    str(name) for value in values for name in (value if is_multi_label else [value])
  )
  unlabelled = sum(not value for value in values) if is_multi_label else 0
  logging.info(
    "Labels of %d %s examples: %s%s.",
    len(examples),
    set_name,
    _shown(counts) or "none at all",
    f", no label at all {unlabelled}" if counts and unlabelled else "",
  )
  for label in filter(_invisible, counts):
    logging.warning(
      "The label %r of %d %s examples contains the invisible %s, first in %s. Remove it: "
      "with it, the label is another class.",
      *(
        label,
        counts[label],
        set_name,
        _invisible(label),
        _first_with(label, examples, is_multi_label),
      ),
    )
  if set_name == "train":
    for warning in _warnings(counts, labels, is_multi_label, separator):
      logging.warning("%s", warning)


def _log_scores(scores: Sequence[float], set_name: str) -> None:
  lowest, highest = min(scores), max(scores)
  mean = sum(scores) / len(scores)
  logging.info(
    "Labels of %d %s examples: from %g to %g, mean %g.",
    len(scores),
    set_name,
    lowest,
    highest,
    mean,
  )
  if set_name == "train" and lowest == highest:
    logging.warning("All labels are %g: there is nothing to learn.", lowest)


def _invisible(label: str) -> str:
  """Names the characters of a label that nobody sees.

  Example:
    >>> _invisible("pos\u200b"), _invisible("pos")
    ('U+200B', '')
  """
  if label.isascii():
    return ""
  found = (char for char in dict.fromkeys(label) if unicodedata.category(char) == "Cf")
  return ", ".join(f"U+{ord(char):04X}" for char in found)


def _first_with(label: str, examples: Sequence, is_multi_label: bool) -> str:
  """Returns the place of the first example with a label."""
  for example in examples:
    if label in (example.label if is_multi_label else [str(example.label)]):
      return getattr(example, "source", None) or str(example.guid)
  return ""


def _shown(counts: collections.Counter) -> str:
  """Writes the counts in words.

  Example:
    >>> _shown(collections.Counter("aaabb"))
    'a 3, b 2'
  """
  parts = [
    f"{repr(label) if label != label.strip() or ',' in label else label} {count}"
    for label, count in counts.most_common(_NUM_SHOWN)
  ]
  if len(counts) > _NUM_SHOWN:
    rest = counts.most_common()[_NUM_SHOWN:]
    parts.append(f"and {len(rest)} others with {rest[0][1]} to {rest[-1][1]} each")
  return ", ".join(parts)


def _warnings(
  counts: collections.Counter, labels: Sequence[str], is_multi_label: bool, separator: str
) -> Iterable[str]:
  yield from about_nearly_equal(counts, "labels")
  for label in counts:
    if label.strip() in _MISSING:
      yield f"The label {label!r} of {counts[label]} examples may be a missing value."
  if missing := [label for label in map(str, labels) if label not in counts]:
    yield f"No training example has the label {', '.join(map(repr, missing[:_NUM_SHOWN]))}."
  if not is_multi_label:
    if len(counts) == 1:
      yield f"All training examples have the label {next(iter(counts))!r}: nothing can be learned."
    return
  odd = next((label for label in counts if label.startswith(("[", "{"))), None)
  if odd:
    yield f"The label {odd!r} looks like a list in another language: write a,b without brackets."
  elif divided := next((label for label in counts if separator in label), None):
    yield (
      f"The label {divided!r} is one in a list, and would be several in a text, since "
      f"--label_separator={separator} stands in it. Give another --label_separator."
    )
  elif joined := next((label for label in counts if any(c in label for c in _SEPARATORS)), None):
    yield f"The label {joined!r} may be several: --label_separator says what is between them."


def about_nearly_equal(names: Iterable[str], what: str) -> Iterator[str]:
  """Yields a warning for each group of `nearly_equal`; `what` the names are: `labels`.

  Names that are counted are written with their counts.
  """
  counts = names if isinstance(names, collections.Counter) else {}
  for group in nearly_equal(names):
    shown = [f"{name!r} ({counts[name]})" if counts else repr(name) for name in group]
    yield (
      f"The {what} {', '.join(shown)} are {len(group)} classes, and differ in case, "
      "spaces or form alone. Correct the file if they mean the same."
    )


def nearly_equal(labels: Iterable[str]) -> list[list[str]]:
  """Groups of labels that differ in case, spaces, Unicode form or a final `.0` alone.

  `true` and `false`, which JSON has beside numbers, count as 1 and 0.

  Example:
    >>> nearly_equal(["sport", " Sport", "food", "1", "1.0", "true"])
    [['sport', ' Sport'], ['1', '1.0', 'true']]
  """
  groups = collections.defaultdict(list)
  for label in labels:
    groups[plain(label)].append(label)
  return [group for group in groups.values() if len(group) > 1]


def plain(label: str) -> str:
  """Returns what labels have in common that differ in case, spaces or form; see `nearly_equal`."""
  text = "".join(unicodedata.normalize("NFKC", label).casefold().split())
  text = "".join(char for char in text if unicodedata.category(char) != "Cf").removesuffix(".0")
  return {"true": "1", "false": "0"}.get(text, text)


def in_order_of(names: Iterable[str], model: Sequence[str]) -> list[str] | None:
  """Returns a model's labels as the data spell them; None if the data have others.

  Case, spaces and Unicode form do not count, and `LABEL_1`, transformers' name of what nobody
  named, is the number 1.

  Args:
    names: the labels of the data, or some of them.
    model: the labels of a model, in the order of its outputs.

  Example:
    >>> in_order_of(["bad", "good"], ["Good", "bad", "none"])
    ['good', 'bad', 'none']
    >>> in_order_of(["bad", "good"], ["LABEL_0", "LABEL_1"]), in_order_of("01", ["LABEL_0", "LABEL_1"])
    (None, ['0', '1'])
  """  # noqa: E501
  names = list(names)
  for key in (str, _number):
    spelled, theirs = {key(name): name for name in names}, list(map(key, model))
    are_distinct = len(spelled) == len(names) and len(set(theirs)) == len(theirs)
    if are_distinct and set(spelled) <= set(theirs):
      return [spelled.get(each, label) for each, label in zip(theirs, model, strict=True)]
  return None


def _number(label: str) -> str:
  return plain(label).removeprefix("label_")


def unknown_label(name: str, known: Sequence[str]) -> str:
  """Writes the message that `name` is not one of the `known` labels."""
  shown = ", ".join(repr(label) for label in known[:20]) + (", ..." if len(known) > 20 else "")
  near = [label for label in known if plain(label) == plain(name)]
  question = f" Did you mean {near[0]!r}?" if near else ""
  return f"the label {name!r:.80} is unknown; known labels: {shown}.{question}"


def check_is_label(values: Sequence[str], path: str) -> None:
  """Refuses (DataError) a column of a file whose labels mostly occur once: texts, or numbers."""
  distinct = set(values)
  if len(values) < _MIN_ROWS_TO_JUDGE or len(distinct) <= len(values) / 2:
    return
  advice = "Correct --label_column, or list the classes: --labels=a,b,c."
  if all(map(_is_number, distinct)):
    advice = "To predict numbers, give --problem_type=regression. Else list the classes: --labels."
  example = min(distinct, key=lambda value: (-len(value), value))
  reason = f"{len(distinct)} different labels in {len(values)} rows, such as {example!r:.60}."
  raise DataError(reason, path, advice=advice)


def _is_number(text: str) -> bool:
  try:
    float(text)
  except ValueError:
    return False
  return True
