"""Sentences about people and places, small enough to learn, and the files that hold them."""

import pathlib
import random

from bert.tasks import label_schemes
from tests.kit import tiny_bert

OTHERS = ["lives", "in", "near", "and", "the", "."]

FIRST_NAMES, LAST_NAMES = ["ada", "alan", "grace"], ["love", "turing", "hopper"]

PLACES = ["london", "york", "paris"]

VOCAB = [
  *("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "##lace"),
  *OTHERS,
  *FIRST_NAMES,
  *LAST_NAMES,
  *PLACES,
]

SIZES = {"hidden_size": 32, "intermediate_size": 32}
CONFIG = tiny_bert.config(len(VOCAB), **SIZES)


def sentence(rng) -> list[tuple[str, str]]:
  """Words and labels; from 3 to 30 words, so that some need several windows."""
  rows = []
  for _ in range(rng.randint(1, 6)):
    kind = rng.randrange(3)
    if kind == 0:
      rows += [(rng.choice(FIRST_NAMES), "B-PER"), (rng.choice([*LAST_NAMES, "lovelace"]), "I-PER")]
    elif kind == 1:
      rows.append((rng.choice(PLACES), "B-LOC"))
    rows += [(word, "O") for word in rng.choices(OTHERS, k=3)]
  return rows


def sentences(count, seed):
  rng = random.Random(seed)
  return [sentence(rng) for _ in range(count)]


def write_conll(path, rows_of_sentences, scheme="bio", columns="{word}\t{label}") -> pathlib.Path:
  path.parent.mkdir(parents=True, exist_ok=True)
  lines = []
  for rows in rows_of_sentences:
    labels = label_schemes.convert_labels([label for _, label in rows], "bio", scheme)
    for (word, _), label in zip(rows, labels, strict=True):
      lines.append(columns.format(word=word, label=label) + "\n")
    lines.append("\n")
  path.write_text("".join(lines), encoding="utf-8", newline="")
  return path
