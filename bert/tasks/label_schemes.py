"""Label schemes: how labels of words encode entities.

  entities_of(["O", "B-LOC", "I-LOC", "O"], "bio")                   # [Entity("LOC", 1, 3)]
  convert_labels(["B-LOC", "I-LOC"], "bio", "bioes")                 # ["B-LOC", "E-LOC"]

All schemes encode entities: a conversion reads the entities in one scheme and encodes them in
another. Pure Python.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

# Letters of an entity's first, inner and last word, and of an entity that is a single word.
_LETTERS = {
  **{"bio": "BIIB", "iob1": "IIII", "bioes": "BIES", "bilou": "BILU"},
  **{"bmes": "BMES", "bmewo": "BMEW", "bmeo": "BMEB"},
}
# In `iob1` B appears only where an entity directly follows another one of its type. `plain` labels
# are types themselves, one for each word: parts of speech, for instance.
SCHEMES = (*_LETTERS, "plain")
_SAME_LETTER = {"L": "E", "U": "S", "M": "I", "W": "S"}
UNTYPED = "_"  # the type of labels that are letters alone (B, I, O), as seqeval names it


class Entity(NamedTuple):
  """Words `start` to `end` (exclusive) of a sentence."""

  type: str
  start: int
  end: int


def scheme_to_learn(scheme: str) -> str:
  """Chooses the scheme of a model for data in a scheme, unless another is asked for.

  In iob1 the label of a word depends on the entity before it, which is hard to learn.
  """
  return "bio" if scheme == "iob1" else scheme


def split_label(label: str, scheme: str) -> tuple[str, str]:
  """Splits a label into its letter, as in BIOES, and its type; a ValueError for other schemes'.

  Example:
    >>> [split_label(label, "bilou") for label in ("B-creative-work", "U-PER", "L")]
    [('B', 'creative-work'), ('S', 'PER'), ('E', '_')]
  """
  if scheme == "plain":
    return "S", label
  if label == "O":
    return "O", ""
  letters = sorted({*_LETTERS[scheme], "B"})
  letter, dash, entity_type = label.partition("-")
  if letter not in letters or bool(dash) != bool(entity_type):
    forms = ", ".join(f"{letter}-TYPE" for letter in letters)
    raise ValueError(f"the label {label!r} is not in the scheme {scheme}, which has O, {forms}")
  return _SAME_LETTER.get(letter, letter), entity_type or UNTYPED


def _label(letter: str, entity_type: str) -> str:
  return letter if entity_type == UNTYPED else f"{letter}-{entity_type}"


def entities_of(labels: Iterable[str], scheme: str) -> list[Entity]:
  """Decodes the entities of labels; a label that continues no entity begins one.

  Malformed sequences are read as by conlleval, the script of the CoNLL tasks, and seqeval.

  Example:
    >>> entities_of(["B-PER", "I-PER", "O", "I-LOC"], "bio")
    [Entity(type='PER', start=0, end=2), Entity(type='LOC', start=3, end=4)]
  """
  entities = []
  open_type, start = None, 0  # of the entity that the next word may continue
  for i, label in enumerate([*labels, None]):
    letter, entity_type = ("O", "") if label is None else split_label(label, scheme)
    if not (letter in "IE" and entity_type == open_type):
      if open_type is not None:
        entities.append(Entity(open_type, start, i))
      open_type, start = (None if letter == "O" else entity_type), i
    if letter in "ES":
      entities.append(Entity(open_type, start, i + 1))
      open_type = None
  return entities


def recognise(labels: Iterable[str]) -> str:
  """Recognises the scheme in which labels encode entities; `plain` if they do not.

  Example:
    >>> recognise(["B-PER", "I-PER", "O"]), recognise(["S", "O"]), recognise(["NOUN", "O"])
    ('bio', 'bioes', 'plain')
  """
  labels = set(labels)
  return next((n for n in _LETTERS if all(recognises(each, n) for each in labels)), "plain")


def recognises(label: str, scheme: str) -> bool:
  """Tells whether a label is of a scheme."""
  try:
    return bool(split_label(label, scheme))
  except ValueError:
    return False


def fitting(sentences: Iterable[Sequence[str]]) -> str | None:
  """Names the first scheme of entities that no label of these sentences violates; None if none is.

  Example:
    >>> fitting([["I-PER", "I-PER", "B-PER"], ["O"]]), fitting([["B-PER", "S-PER"]])
    ('iob1', None)
  """
  sentences = list(sentences)
  return next((scheme for scheme in _LETTERS if _all_fit(sentences, scheme)), None)


def _all_fit(sentences, scheme) -> bool:
  try:
    return all(convert_labels(each, scheme, scheme) == list(each) for each in sentences)
  except ValueError:  # a letter of another scheme
    return False


def labels_of(entities: Iterable[Entity], length: int, scheme: str) -> list[str]:
  """Encodes ordered entities of a sentence of `length` words, without overlaps, as labels.

  Example:
    >>> labels_of([Entity("PER", 0, 3), Entity("LOC", 4, 5)], 5, "bioes")
    ['B-PER', 'I-PER', 'E-PER', 'O', 'S-LOC']
  """
  labels = ["O"] * length
  before = Entity("", 0, 0)
  for entity in entities:
    entity_type, start, end = entity
    if scheme == "plain":
      labels[start:end] = [entity_type] * (end - start)
      continue
    first, inner, last, single = list(_LETTERS[scheme])
    letters = single if end == start + 1 else first + inner * (end - start - 2) + last
    if scheme == "iob1" and (before.type, before.end) == (entity_type, start):
      letters = "B" + letters[1:]
    labels[start:end] = [_label(letter, entity_type) for letter in letters]
    before = entity
  return labels


def convert_labels(labels: Sequence[str], scheme: str, new_scheme: str) -> list[str]:
  """Converts labels to another scheme.

  Example:
    >>> convert_labels(["B-PER", "I-PER", "B-PER", "O"], "bio", "bioes")
    ['B-PER', 'E-PER', 'S-PER', 'O']
  """
  return labels_of(entities_of(labels, scheme), len(labels), new_scheme)


def model_labels(types: Iterable[str], scheme: str) -> list[str]:
  """Lists all labels of a scheme for some types, in the order of the model's outputs.

  Includes labels that do not occur in training, where a type may have one-word entities only.

  Example:
    >>> model_labels({"PER", "LOC"}, "bio")
    ['O', 'B-LOC', 'I-LOC', 'B-PER', 'I-PER']
  """
  types = sorted(types)
  if scheme == "plain":
    return types
  letters = dict.fromkeys("B" + _LETTERS[scheme])
  return ["O", *(_label(letter, entity_type) for entity_type in types for letter in letters)]
